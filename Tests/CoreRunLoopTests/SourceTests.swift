// SPDX-License-Identifier: Apache-2.0
//
// Observers, input sources, descriptors, signals and child processes.

import CoreRunLoop
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite(.timeLimit(.minutes(1))) struct `An observer` {
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
            #expect(loop.contains(observer, inMode: .default))
            loop.perform {}
            _ = loop.run(in: .default, for: .zero)
            #expect(!observer.isValid)
            #expect(!loop.contains(observer, inMode: .default))
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
            #expect(!RunLoop.current.contains(observer, inMode: .default))
            #expect(observer.isValid)
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `An input source` {
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
            #expect(RunLoop.current.contains(source, inMode: .default))
        }
        while left.value < 2 { await Task.yield() }
        #expect(source.isValid)
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

@Suite(.timeLimit(.minutes(1))) struct `A descriptor source` {
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

    @Test(arguments: [Int32(-1), 987_654]) func `is refused a descriptor that is not open`(descriptor: Int32) {
        #expect(throws: RunLoopError.invalidDescriptor(descriptor)) { try DescriptorSource(descriptor: descriptor) { _ in } }
    }
}

@Suite(.timeLimit(.minutes(1)), .serialized) struct `A signal source` {
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

    @Test(arguments: [Int32(0), -3, 1000, SIGKILL, SIGSTOP]) func `is refused what is no signal`(number: Int32) {
        #expect(throws: RunLoopError.invalidSignal(number)) { try SignalSource(signal: number) { _ in } }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A child process source` {
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
