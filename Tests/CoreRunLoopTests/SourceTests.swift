// SPDX-License-Identifier: Apache-2.0
//
// Observers, input sources, descriptors, signals and child processes.

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite(.timeLimit(.minutes(10))) struct `An observer` {
    @Test func `is told of every point of a pass, in order`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            let late = RunLoop.Observer(activities: .allActivities, order: 2) { _, activity in trace.add(activity.short + "2") }
            let early = RunLoop.Observer(activities: .allActivities, order: -1) { _, activity in trace.add(activity.short + "1") }
            loop.add(late, forMode: .default)
            loop.add(early, forMode: .default)
            loop.perform {}
            #expect(loop.run(in: .default, for: .zero) == .timedOut)
            #expect(trace.text == "E1 E2 BT1 BT2 BS1 BS2 X1 X2")
            #expect(early.order == -1 && early.repeats && early.activities == .allActivities)
        }
    }

    @Test func `that does not repeat is called once and dropped`() async throws {
        let freed = Count()
        try await onThread {
            let loop = RunLoop.current
            func add() -> RunLoop.Observer {
                let witness = Witness { freed.next() }
                let observer = RunLoop.Observer(activities: [.beforeTimers, .beforeSources], repeats: false) { _, _ in witness.touch() }
                loop.add(observer, forMode: .default)
                return observer
            }
            let observer = add()
            #expect(loop.contains(observer, in: .default))
            loop.perform {}
            _ = loop.run(in: .default, for: .zero)
            #expect(!observer.isValid)
            #expect(!loop.contains(observer, in: .default))
        }
        #expect(freed.value == 1)
    }

    @Test func `may invalidate itself`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let count = Count()
            loop.observe(.beforeTimers) { observer, _ in
                count.next()
                observer.invalidate()
            }
            for _ in 0..<3 {
                loop.perform {}
                _ = loop.run(in: .default, for: .zero)
            }
            #expect(count.value == 1)
        }
    }

    @Test func `can be removed and added again`() async throws {
        try await onThread {
            let observer = RunLoop.Observer(activities: .entry) { _, _ in }
            RunLoop.current.add(observer, forMode: .default)
            RunLoop.current.remove(observer, forMode: .default)
            #expect(!RunLoop.current.contains(observer, in: .default))
            #expect(observer.isValid)
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `An input source` {
    @Test func `performs the commands of other threads together, in order`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            let source = InputSource<Int>(
                schedule: { loop, mode in trace.add("scheduled \(loop.isCurrent) \(mode == .default)") },
                cancel: { _, _ in trace.add("cancelled") },
                perform: { commands in trace.add("\(commands)") })
            loop.add(source, forMode: .default)
            #expect(source.loops == [loop])
            let sender = Thread { for number in 1...5 { source.send(number) } }
            sender.start()
            sender.join()
            #expect(source.pendingCount == 5)
            #expect(loop.run(mode: .default, before: .distantFuture))
            source.invalidate()
            #expect(trace.events == ["scheduled true true", "[1, 2, 3, 4, 5]", "cancelled"])
            #expect(!source.isValid)
            #expect(source.loops.isEmpty)
        }
    }

    @Test func `collects commands until it is fired`() async throws {
        try await onThread {
            let trace = Trace()
            let source = InputSource<String>(order: 4) { trace.add($0.joined()) }
            RunLoop.current.add(source, forMode: .default)
            source.enqueue("a")
            source.enqueue("b")
            #expect(RunLoop.current.run(in: .default, for: .zero) == .timedOut)
            #expect(trace.events.isEmpty)
            source.fireAllCommands(on: RunLoop.current)
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(trace.events == ["ab"])
            #expect(source.order == 4)
            source.invalidate()
        }
    }

    @Test func `in two modes of two loops leaves them one by one`() async throws {
        let left = Count()
        let source = InputSource<Void>(cancel: { _, _ in left.next() }, perform: { _ in })
        try await onThread {
            RunLoop.current.add(source, forMode: .default)
            RunLoop.current.add(source, forMode: "second")
            RunLoop.current.remove(source, forMode: "second")
            #expect(left.value == 1)
            #expect(RunLoop.current.contains(source, in: .default))
        }
        while left.value < 2 { await Task.yield() }
        #expect(source.isValid)
    }

    @Test func `that ends in a nested call of its closure frees it after the outer one, and drops its commands`() async throws {
        try await onThread {
            let trace = Trace()
            let source = Mutex<InputSource<Int>?>(nil)
            @Sendable func current() -> InputSource<Int> { source.withLock { $0! } }
            func make() -> InputSource<Int> {
                let witness = Witness { trace.add("freed") }
                return InputSource { commands in
                    trace.add("\(commands)")
                    if commands == [1] {
                        current().send(2)
                        _ = RunLoop.current.run(in: .default, for: .zero, returnAfterSourceHandled: true)
                    } else {
                        current().send(3)
                        current().invalidate()
                        trace.add("\(current().pendingCount)")
                    }
                    witness.touch()
                    trace.add("/\(commands)")
                }
            }
            source.withLock { $0 = make() }
            RunLoop.current.add(current(), forMode: .default)
            current().send(1)
            _ = RunLoop.current.run(in: .default, for: .zero, returnAfterSourceHandled: true)
            #expect(trace.text == "[1] [2] 0 /[2] /[1] freed")
            current().invalidate()
            source.withLock { $0 = nil }
            #expect(trace.text == "[1] [2] 0 /[2] /[1] freed")
        }
    }

    @Test func `that another thread ends during its closure frees it after that`() async throws {
        try await onThread {
            let trace = Trace()
            let source = Mutex<InputSource<Void>?>(nil)
            @Sendable func current() -> InputSource<Void> { source.withLock { $0! } }
            func make() -> InputSource<Void> {
                let canary = Canary { trace.add("freed") }
                return InputSource { _ in
                    let other = Thread { current().invalidate() }
                    other.start()
                    other.join()
                    trace.add("ended \(canary.isWhole)")
                }
            }
            source.withLock { $0 = make() }
            RunLoop.current.add(current(), forMode: .default)
            current().signal()
            _ = RunLoop.current.run(in: .default, for: .zero, returnAfterSourceHandled: true)
            #expect(trace.text == "ended true freed")
            source.withLock { $0 = nil }
        }
    }

    @Test func `in two loops that a third thread ends has a whole closure in each, which is freed once`() async throws {
        let stop = RunLoop.StopToken()
        let loops = [try Thread.runningLoop(until: stop), try Thread.runningLoop(until: stop)]
        let (freed, wrong, called) = (Count(), Count(), Count())
        func add() -> InputSource<Int> {
            let canary = Canary { freed.next() }
            let source = InputSource<Int> { _ in
                if !canary.isWhole { wrong.next() }
                called.next()
                if !canary.isWhole { wrong.next() }
            }
            for loop in loops { loop.add(source, forMode: .common) }
            return source
        }
        for round in 1...100 {
            let source = add()
            let before = called.value
            source.send(round)
            while called.value == before { await Task.yield() }
            source.send(round)
            source.invalidate()
            while freed.value < round { await Task.yield() }
        }
        #expect(freed.value == 100 && wrong.value == 0)
        stop.requestStop()
    }

    @Test func `loses and doubles no command of senders that wait for each, among signals that bring none`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let performed = [Count(), Count(), Count()]
        let source = InputSource<Int> { commands in for sender in commands { performed[sender].next() } }
        loop.add(source, forMode: .common)
        let senders = try (0..<3).map { sender in
            try Thread.joinable {
                for number in 1...2000 {
                    source.send(sender)
                    if sender == 0 { source.signal() }
                    while performed[sender].value < number { sched_yield() }
                }
            }
        }
        for sender in senders { try await sender.value }
        #expect(performed.map(\.value) == [2000, 2000, 2000] && source.pendingCount == 0)
        source.invalidate()
        stop.requestStop()
    }

    @Test func `keeps no command that is sent when it is invalid`() {
        let freed = Count()
        let source = InputSource<Witness> { _ in }
        source.send(Witness { freed.next() })
        source.invalidate()
        source.send(Witness { freed.next() })
        #expect(source.pendingCount == 0)
        #expect(freed.value == 2)
    }

    @Test func `is freed with its closures`() async throws {
        let freed = Count()
        try await onThread {
            let witness = Witness { freed.next() }
            let source = InputSource<Void> { _ in witness.touch() }
            RunLoop.current.add(source, forMode: .default)
            source.signal()
            _ = RunLoop.current.run(mode: .default, before: .distantFuture)
            RunLoop.current.remove(source, forMode: .default)
        }
        #expect(freed.value == 1)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A descriptor source` {
    @Test func `is called as long as there is something to read`() async throws {
        try await onThread {
            let (reading, writing) = makePipe()
            let count = Count()
            let source = try DescriptorSource(descriptor: reading, closeOnInvalidate: true) { event in
                #expect(event.readiness == .readable)
                drainPipe(event.descriptor)
                count.next()
            }
            RunLoop.current.add(source, forMode: .default)
            writePipe(writing)
            writePipe(writing)
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(count.value == 2)
            let pipe = fileIdentity(writing)
            #expect(fileIdentity(reading) == pipe)
            source.invalidate()
            #expect(source.descriptor == -1)
            #expect(fileIdentity(reading) != pipe)
            close(writing)
        }
    }

    @Test func `tells of writing when it is asked to`() async throws {
        try await onThread {
            let (reading, writing) = makePipe()
            let count = Count()
            let source = try DescriptorSource(descriptor: writing, interest: []) { event in
                #expect(event.readiness == .writable)
                count.next()
                event.invalidate()
            }
            RunLoop.current.add(source, forMode: .default)
            #expect(RunLoop.current.run(in: .default, for: .zero) == .timedOut)
            source.interest = .writable
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(count.value == 1)
            #expect(!source.isValid)
            close(reading)
            close(writing)
        }
    }

    @Test func `tells of a byte out of band`() async throws {
        try await onThread {
            let (near, far) = tcpPair()
            let count = Count()
            let source = try DescriptorSource(descriptor: near, interest: .priority) { event in
                #expect(event.readiness == .priority)
                var byte: UInt8 = 0
                let received = recv(event.descriptor, &byte, 1, outOfBand)
                #expect(received == 1 && byte == 7)
                count.next()
            }
            RunLoop.current.add(source, forMode: .default)
            var byte: UInt8 = 6
            #expect(send(far, &byte, 1, 0) == 1)
            #expect(RunLoop.current.run(in: .default, for: .zero) == .timedOut)
            byte = 7
            #expect(send(far, &byte, 1, outOfBand) == 1)
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(count.value == 1)
            source.invalidate()
            close(near)
            close(far)
        }
    }

    @Test(arguments: [Int32(-1), 987_654]) func `is refused a descriptor that is not open`(descriptor: Int32) {
        #expect(throws: RunLoopError.invalidDescriptor(descriptor)) { try DescriptorSource(descriptor: descriptor) { _ in } }
    }
}

@Suite(.timeLimit(.minutes(10)), .serialized) struct `A signal source` {
    @Test func `handles the signal in the loop`() async throws {
        try await onThread {
            let trace = Trace()
            let source = try SignalSource(signal: SIGUSR1) { signal in
                trace.add("\(signal.number == SIGUSR1) \(signal.processID == getpid())")
            }
            RunLoop.current.add(source, forMode: .default)
            pthread_kill(pthread_self(), SIGUSR1)
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(trace.events == ["true true"])
            source.invalidate()
        }
    }

    @Test func `receives what arrives in threads that do not block it`() async throws {
        try await onThread {  // beside the threads of the tests' tasks, which began before
            let trace = Trace()
            let source = try SignalSource(signal: SIGUSR2) { signal in trace.add("\(signal.number) \(signal.processID)") }
            RunLoop.current.add(source, forMode: .default)
            for count in 1...10 {
                kill(getpid(), SIGUSR2)
                while trace.events.count < count { _ = RunLoop.current.run(mode: .default, before: .now + .seconds(1)) }
            }
            #expect(trace.events.allSatisfy { $0 == "\(SIGUSR2) \(getpid())" })
            source.invalidate()
        }
    }

    @Test(arguments: [Int32(0), -3, 1000, SIGKILL, SIGSTOP]) func `is refused what is no signal`(number: Int32) {
        #expect(throws: RunLoopError.invalidSignal(number)) { try SignalSource(signal: number) { _ in } }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A child process source` {
    @Test func `tells how the child ended`() async throws {
        try await onThread {
            for (command, status) in [("exit 7", ChildProcessSource.Status.exited(7)), ("kill -KILL $$", .signalled(SIGKILL))] {
                let trace = Trace()
                let child = spawn("/bin/sh", "-c", command)
                let source = try ChildProcessSource(processID: child) { process, ended in
                    #expect(process == child)
                    #expect(ended == status)
                    trace.add("ended")
                }
                RunLoop.current.add(source, forMode: .default)
                while source.isValid { _ = RunLoop.current.run(mode: .default, before: .distantFuture) }
                #expect(trace.events == ["ended"])
            }
        }
    }

    @Test(arguments: [Int32(1), -1, 0]) func `is refused what is no child`(process: Int32) {
        #expect(throws: RunLoopError.notAChild(process)) { try ChildProcessSource(processID: process) { _, _ in } }
    }
}

func spawn(_ arguments: String...) -> pid_t {
    var pid: pid_t = 0
    var pointers = arguments.map { strdup($0) } + [nil]
    defer { pointers.forEach { free($0) } }
    precondition(posix_spawn(&pid, arguments[0], nil, nil, &pointers, environ) == 0)
    return pid
}
