// SPDX-License-Identifier: Apache-2.0
//
// The requests, rules 1613 to 1620 of docs/rules.md: handlers in tasks, errors, deadlines, cancellations.

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

extension MessagePort {
    /// With a limit that a busy machine keeps: tests that compute share two threads with those that wait for an answer.
    fileprivate func request<Request, Reply>(_ exchange: Exchange<Request, Reply>, _ request: Request) async throws -> Reply {
        try await self.request(exchange, request, timeout: .seconds(600))
    }
}

private struct Refusal: Error, CustomStringConvertible { let description: String }

/// Holds tasks until it is opened.
private final class Gate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))
    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
    func open() {
        let waiting = state.withLock { state in
            defer { state = (true, []) }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A request to a service` {
    private static let echo = MessagePort.Exchange.bytes(number: 1)

    private func withService<Value: Sendable>(_ body: (MessagePort) async throws -> Value) async throws -> Value {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "service", until: stop)
        let service = try MessagePort(name: nil)
        loop.add(service, forMode: .common)
        let value = try await body(service)
        service.invalidate()
        stop.requestStop()
        return value
    }

    /// What a blocking request throws.
    private func failure(of client: MessagePort, _ number: Int32, _ bytes: [UInt8], timeout: Duration = .seconds(100)) async throws
        -> PortError?
    {
        try await onThread {
            do throws(PortError) { _ = try client.requestAndWait(number: number, bytes, timeout: timeout) } catch { return error }
            return nil
        }
    }

    @Test func `whose number nobody handles is an error of its own`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            await #expect(throws: PortError.unhandled(7)) { try await client.requestBytes(number: 7, [1]) }
            await #expect(throws: PortError.unhandled(7)) { try await client.request(.text(number: 7), "anyone?") }
            #expect(try await failure(of: client, 7, [1]) == .unhandled(7))
            service.handle(.bytes(number: 8)) { $0 }
            await #expect(throws: PortError.unhandled(7)) { try await client.requestBytes(number: 7, [1]) }
            #expect(try await client.requestBytes(number: 8, [1]) == [1])
        }
    }

    @Test func `that is malformed is an error of its own, for handlers of both kinds`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            service.handle(.text(number: 1)) { $0 }
            service.handle(.text(number: 2)) { text async throws in text }
            for number in [1, 2] as [Int32] {
                await #expect(throws: PortError.malformed(number)) { try await client.requestBytes(number: number, [0xFF]) }
                #expect(try await client.request(.text(number: number), "ö") == "ö")
            }
        }
    }

    @Test func `gets what its handler throws as an error with its text, also a caller that blocks`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            service.handle(Self.echo) { bytes in
                if bytes.isEmpty { throw Refusal(description: "nothing to do, sagt der Dienst: ö") }
                await Task.yield()
                return bytes
            }
            let failure = PortError.failed("nothing to do, sagt der Dienst: ö")
            await #expect(throws: failure) { try await client.request(Self.echo, []) }
            #expect(try await self.failure(of: client, 1, []) == failure)
            #expect(try await client.request(Self.echo, [1, 2]) == [1, 2])
            let large = [UInt8](repeating: 3, count: 300_000)
            #expect(try await client.request(Self.echo, large) == large)
            #expect(try await onThread { try client.requestAndWait(number: 1, large) } == large)
        }
    }

    @Test func `is handled beside others, as many as the author allows`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            let running = Mutex(0)
            let most = Mutex(0)
            let gate = Gate()
            service.handle(Self.echo, concurrently: 3) { bytes in
                let now = running.withLock { running in
                    running += 1
                    return running
                }
                most.withLock { $0 = max($0, now) }
                if now == 3 { gate.open() }  // three have come together
                await gate.pass()
                running.withLock { $0 -= 1 }
                return bytes
            }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<40 as Range<UInt8> { group.addTask { try await client.request(Self.echo, [number]) == [number] } }
                for try await isEqual in group { #expect(isEqual) }
            }
            #expect(most.withLock { $0 } == 3)
        }
    }

    @Test func `waits with its sender while the receiver has enough to do`() async throws {
        try await withService { service in
            let gate = Gate()
            service.handle(Self.echo, concurrently: 2) { bytes in
                await gate.pass()
                return bytes
            }
            let late = await withTaskGroup(of: PortError?.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        do { _ = try await MessagePort(remote: service.name).request(Self.echo, [1], timeout: .milliseconds(200)) } catch {
                            return error as? PortError
                        }
                        return nil
                    }
                }
                return await group.reduce(into: [PortError]()) { errors, error in if let error { errors.append(error) } }
            }
            #expect(late.count == 20)
            // Two are handled, two wait, and the queue has room for five.
            #expect(late.count { $0 == .sendTimeout } >= 11)
            gate.open()
            let client = try MessagePort(remote: service.name)
            for number in 0..<40 as Range<UInt8> { #expect(try await client.request(Self.echo, [number]) == [number]) }
        }
    }

    @Test(arguments: ["is invalidated", "is taken out of the mode", "comes into another mode"])
    func `that waits in a port keeps no run going when the port leaves`(way: String) async throws {
        let mode = RunLoop.Mode("service")
        let (loops, found) = AsyncStream.makeStream(of: RunLoop.self)
        let service = try MessagePort(name: nil)
        let gate = Gate()
        service.handle(Self.echo, concurrently: 1) { bytes in
            await gate.pass()
            return bytes
        }
        let thread = try Thread.joinable(name: "service") {
            let loop = RunLoop.current
            loop.add(service, forMode: mode)
            found.yield(loop)
            while loop.run(mode: mode, before: .distantFuture) {}
            return true
        }
        let loop = try #require(await loops.first { _ in true })
        let name = service.name
        let callers = (0..<8).map { _ in
            Task { try await MessagePort(remote: name).request(Self.echo, [1], timeout: .seconds(100)) }
        }
        while !service.isHeldBack { try await Task.sleep(for: .milliseconds(1)) }
        switch way {
        case "is invalidated": service.invalidate()
        case "is taken out of the mode": loop.remove(service, forMode: mode)
        default:
            let other = RunLoop.Mode("other")
            loop.add(service, forMode: other)
            loop.remove(service, forMode: other)
            loop.remove(service, forMode: mode)
        }
        loop.wake()  // so that it looks for sources
        #expect(try await thread.value)
        gate.open()
        service.invalidate()
        for caller in callers { _ = try? await caller.value }
    }

    @Test func `says which process has sent it`() async throws {
        try await withService { service in
            #expect(MessagePort.requestProcess == nil)
            service.handle(Self.echo) { _ async in Array("\(MessagePort.requestProcess ?? 0)".utf8) }
            let answer = try await MessagePort(remote: service.name).request(Self.echo, [])
            #expect(String(decoding: answer, as: UTF8.self) == "\(getpid())")
        }
    }

    @Test func `runs on its handler's actor`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            service.handle(Self.echo) { @MainActor bytes async in
                MainActor.assertIsolated()
                await Task.yield()
                return bytes
            }
            #expect(try await client.request(Self.echo, [4]) == [4])
        }
    }

    @Test func `brings its deadline to the handler`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            service.handle(.text(number: 1)) { _ async throws in
                guard let deadline = MessagePort.requestDeadline else { return "none" }
                return "\(deadline > .now && deadline <= .now + .seconds(100))"
            }
            #expect(try await client.request(.text(number: 1), "", timeout: .seconds(100)) == "true")
            let told = try await onThread { try client.requestAndWait(number: 1, [], timeout: .seconds(100)) }
            #expect(told == Array("true".utf8))
            #expect(try await client.request(.text(number: 1), "", timeout: .seconds(Int64.max)) == "none")
            #expect(MessagePort.requestDeadline == nil)
        }
    }

    @Test func `is over at both ends when its task is cancelled, its time is over, or the port ends`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            let (begun, cancelled) = (Count(), Count())
            service.handle(Self.echo, concurrently: 2) { bytes in
                begun.next()
                do { try await Task.sleep(for: .seconds(1000)) } catch { cancelled.next() }
                throw Refusal(description: "too late")
            }
            // Two run, and one waits for its turn: it is dropped, and never begins.
            let tasks = (0..<3).map { _ in Task { try await client.request(Self.echo, [1], timeout: .seconds(1000)) } }
            while begun.value < 2 { await Task.yield() }
            for task in tasks { task.cancel() }
            for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
            while cancelled.value < 2 { await Task.yield() }
            #expect(begun.value == 2)

            let limit = Duration.milliseconds(20)
            for waits in [false, true] {
                let before = begun.value
                while begun.value == before {  // on a busy machine a request may be over before its handler begins
                    if waits {
                        #expect(try await failure(of: client, 1, [1], timeout: limit) == .receiveTimeout)
                    } else {
                        await #expect(throws: PortError.receiveTimeout) { try await client.request(Self.echo, [1], timeout: limit) }
                    }
                }
                while cancelled.value < begun.value { await Task.yield() }
            }

            let before = begun.value
            let last = Task { try await client.request(Self.echo, [1], timeout: .seconds(1000)) }
            while begun.value == before { await Task.yield() }
            let name = service.name
            service.invalidate()
            await #expect(throws: PortError.invalid(name)) { try await last.value }
            while cancelled.value < begun.value { await Task.yield() }
        }
    }

    @Test func `whose handler never ends keeps nothing but the handler's place`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            let gate = Gate()
            service.handle(Self.echo, concurrently: 2) { bytes in
                if bytes == [0] { await gate.pass() }  // whoever cancels it
                return bytes
            }
            await #expect(throws: PortError.receiveTimeout) { try await client.request(Self.echo, [0], timeout: .milliseconds(10)) }
            for number in 1..<20 as Range<UInt8> { #expect(try await client.request(Self.echo, [number]) == [number]) }
            gate.open()
        }
    }

    @Test(.enabled(if: sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1, "the slow handler takes one of the threads of tasks"))
    func `whose handler is slow to hear of its cancellation holds up no other`() async throws {
        try await withService { service in
            let (began, ended) = (Gate(), Gate())
            let (hears, mayGo, waitedInVain) = (Count(), Count(), Count())
            service.handle(Self.echo) { $0 }
            service.handle(.bytes(number: 2), concurrently: 1) { bytes in
                await withTaskCancellationHandler {
                    began.open()
                    await ended.pass()
                } onCancel: {
                    hears.next()
                    let limit = ContinuousClock.now + .seconds(20)
                    while mayGo.value == 0 && ContinuousClock.now < limit { sched_yield() }
                    if mayGo.value == 0 { waitedInVain.next() }
                    ended.open()
                }
                return bytes
            }
            let client = try MessagePort(remote: service.name)
            let slow = Task { try await client.requestBytes(number: 2, []) }
            await began.pass()
            slow.cancel()
            _ = await slow.result
            while hears.value == 0 { await Task.yield() }
            #expect(try await client.requestBytes(number: 1, [5], timeout: .seconds(100)) == [5])
            mayGo.next()
            #expect(waitedInVain.value == 0)
        }
    }

    @Test func `is one of 300 in flight, of which nothing is left when all are cancelled`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            let (begun, ended) = (Count(), Count())
            service.handle(Self.echo, concurrently: 1000) { bytes in
                begun.next()
                try? await Task.sleep(for: .seconds(1000))
                ended.next()
                return bytes
            }
            let tasks = (0..<300).map { _ in Task { try await client.request(Self.echo, [1], timeout: .seconds(1000)) } }
            while begun.value < 60 { await Task.yield() }  // how many channels there are depends on the process's descriptors
            for task in tasks { task.cancel() }
            for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
            while ended.value < begun.value { await Task.yield() }
            service.handle(.bytes(number: 2)) { $0 }
            #expect(try await client.requestBytes(number: 2, [2]) == [2])
        }
    }

    @Test func `is one of many in flight, which all end with the port`() async throws {
        for _ in 0..<5 {
            try await withService { service in
                let (client, name) = (try MessagePort(remote: service.name), service.name)
                let begun = Count()
                service.handle(Self.echo, concurrently: 150) { bytes in  // some wait for their turn
                    begun.next()
                    try await Task.sleep(for: .seconds(1000))
                    return bytes
                }
                let tasks = (0..<400).map { _ in Task { try await client.request(Self.echo, [1], timeout: .seconds(1000)) } }
                while begun.value < 60 { await Task.yield() }
                service.invalidate()
                for task in tasks { await #expect(throws: PortError.invalid(name)) { try await task.value } }
            }
        }
    }

    @Test func `has one deadline for the room in the queue and the answer`() async throws {
        let silent = try MessagePort(name: nil)  // in no loop
        let client = try MessagePort(remote: silent.name)
        try await onThread {
            let bytes: [UInt8] = [1]
            for _ in 0..<5 { try client.sendAndWait(number: 1, bytes.span.bytes) }  // the queue is full
            let begin = SuspendingClock.now
            #expect(throws: PortError.sendTimeout) { try client.requestAndWait(number: 1, [1], timeout: .milliseconds(20)) }
            #expect(SuspendingClock.now - begin >= .milliseconds(20))
        }
        // Messages of tasks go by the socket, which has a queue of its own. What was given up stays there, as nobody takes it.
        for number in 0..<6 {
            await #expect(throws: number < 5 ? PortError.receiveTimeout : .sendTimeout) {
                try await client.requestBytes(number: 1, [1], timeout: .milliseconds(20))
            }
        }
        silent.invalidate()
    }

    @Test func `of a task that was cancelled before is not sent`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            let handled = Count()
            service.handle(Self.echo) { bytes in
                handled.next()
                return bytes
            }
            let gate = Gate()
            let task = Task {
                await gate.pass()
                return try await client.request(Self.echo, [1])
            }
            task.cancel()
            gate.open()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(try await client.request(Self.echo, [2]) == [2])
            #expect(handled.value == 1)
        }
    }

    @Test func `is answered under the port's further names, and after a change of the handler`() async throws {
        try await withService { service in
            let client = try MessagePort(remote: service.name)
            service.handle(Self.echo) { bytes async throws in bytes + [1] }
            let further = service.name + ".further"
            #expect(MessagePortNameServer.shared.registerPort(service, name: further))
            #expect(try await MessagePort(remote: further).request(Self.echo, [0]) == [0, 1])
            service.handle(Self.echo) { $0 + [2] }
            #expect(try await client.request(Self.echo, [0]) == [0, 2])
            #expect(service.setName(service.name + ".new"))
            #expect(try await MessagePort(remote: service.name).request(Self.echo, [0]) == [0, 2])
        }
    }
}
