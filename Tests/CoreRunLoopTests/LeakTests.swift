// SPDX-License-Identifier: Apache-2.0
//
// Who keeps whom: a loop keeps what is added to it, an item keeps its closure until it is invalidated, and nothing else keeps anything.

import CoreRunLoop
import Testing

/// A kind of item with a closure.
private enum Item: CaseIterable, Sendable {
    case timer, observer, inputSource, descriptorSource, signalSource, machPort, messagePort, socketPort

    /// Adds an item whose closure calls `used`, and returns what ends it.
    func add(to loop: RunLoop, _ used: @escaping @Sendable () -> Void) throws -> @Sendable () -> Void {
        switch self {
        case .timer:
            let timer = Timer(timeInterval: .seconds(1000), repeats: true) { _ in used() }
            loop.add(timer, forMode: .default)
            return { timer.invalidate() }
        case .observer:
            let observer = RunLoop.Observer(activities: .allActivities) { _, _ in used() }
            loop.add(observer, forMode: .default)
            return { observer.invalidate() }
        case .inputSource:
            let source = InputSource<Void> { _ in used() }
            loop.add(source, forMode: .default)
            return { source.invalidate() }
        case .descriptorSource:
            let (reading, writing) = makePipe()
            closePipe(writing)
            let source = try DescriptorSource(descriptor: reading, interest: [], closeOnInvalidate: true) { _ in used() }
            loop.add(source, forMode: .default)
            return { source.invalidate() }
        case .signalSource:
            let source = try SignalSource(signal: 12) { _ in used() }
            loop.add(source, forMode: .default)
            return { source.invalidate() }
        case .machPort: return add(MachPort(), to: loop, used)
        case .messagePort: return add(try MessagePort(name: nil), to: loop, used)
        case .socketPort: return add(try SocketPort(tcpPort: 0), to: loop, used)
        }
    }

    private func add(_ port: Port, to loop: RunLoop, _ used: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        port.onMessage = { _ in used() }
        loop.add(port, forMode: .default)
        return { port.invalidate() }
    }
}

/// A holder of its own item, as classes often are: a cycle until the item is invalidated.
private final class Holder: @unchecked Sendable {
    private let witness: Witness
    var end: (@Sendable () -> Void)?
    init(_ freed: Count) { witness = Witness { freed.next() } }
    func use() { witness.touch() }
}

/// A reference that keeps nothing; one thread's.
private final class Weakly<Object: AnyObject>: @unchecked Sendable {
    weak var object: Object?
}

@Suite(.timeLimit(.minutes(10))) struct `Ownership` {
    @Test(arguments: Item.allCases) private func `an item is kept by its loop, and freed when it is invalidated`(item: Item) async throws {
        let freed = Count()
        try await onThread {
            func add() throws -> @Sendable () -> Void {
                let holder = Holder(freed)
                holder.end = try item.add(to: RunLoop.current) { holder.use() }
                return { [weak holder] in holder?.end?() }
            }
            let end = try add()
            _ = RunLoop.current.run(in: .default, for: .zero)
            #expect(freed.value == 0)
            end()
            #expect(freed.value == 0 || freed.value == 1)
            _ = RunLoop.current.run(in: .default, for: .zero)
        }
        while freed.value == 0 { await Task.yield() }
    }

    @Test(arguments: Item.allCases) private func `an item that a thread leaves in its loop is freed with the thread`(item: Item)
        async throws
    {
        let freed = Count()
        try await onThread {
            let witness = Witness { freed.next() }
            _ = try item.add(to: RunLoop.current) { witness.touch() }
        }
        while freed.value == 0 { await Task.yield() }
    }

    @Test func `a port that is added to a loop whose thread has ended is not kept`() async throws {
        let loop = try await onThread {
            RunLoop.current.add(MachPort(), forMode: .default)
            return RunLoop.current
        }
        while !loop.end.hasEnded { await Task.yield() }
        let seen = Weakly<Port>()
        func add() {
            let port = MachPort()
            seen.object = port
            loop.add(port, forMode: .default)
        }
        add()
        #expect(seen.object == nil)
    }

    @Test func `ports leave nothing in a loop when they have left it`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let (removed, ended) = (MachPort(), MachPort())
            for port in [removed, ended] {
                for mode in [RunLoop.Mode.default, "second", .default] { loop.add(port, forMode: mode) }
            }
            #expect(loop.end.count > 0)
            loop.remove(removed, forMode: .default)
            loop.remove(removed, forMode: "second")
            ended.invalidate()
            #expect(loop.end.count == 0)
        }
    }

    @Test func `a timer that only its loop keeps is the same object each time`() async throws {
        try await onThread {
            let seen = Weakly<Timer>()
            let fired = Count()
            func add() {
                let timer = Timer(fire: .now, interval: .microseconds(100), repeats: true) { timer in
                    // An object made for each call would have gone between them.
                    #expect(fired.value == 0 || seen.object === timer)
                    seen.object = timer
                    if fired.next() == 3 { timer.invalidate() }
                }
                RunLoop.current.add(timer, forMode: .default)
            }
            add()
            RunLoop.current.run()
            #expect(fired.value == 3)
            #expect(seen.object == nil)
        }
    }

    @Test func `an observer that only its loop keeps is the same object each time`() async throws {
        try await onThread {
            let seen = Weakly<RunLoop.Observer>()
            let called = Count()
            func add() {
                let observer = RunLoop.Observer(activities: [.entry, .beforeTimers, .exit]) { observer, _ in
                    #expect(called.value == 0 || seen.object === observer)
                    seen.object = observer
                    if called.next() == 3 { observer.invalidate() }
                }
                RunLoop.current.add(observer, forMode: .default)
            }
            add()
            let alive = RunLoop.current.keepAlive()
            _ = RunLoop.current.run(in: .default, for: .zero)
            alive.cancel()
            #expect(called.value == 3)
            #expect(seen.object == nil)
        }
    }

    @Test func `a C timer and a C observer keep their Swift object, and nothing keeps those that are in no loop`() async throws {
        try await onThread {
            let freed = Count()
            let timers = Weakly<Timer>()
            let observers = Weakly<RunLoop.Observer>()
            func make() -> (CFRunLoopTimer, CFRunLoopObserver) {
                let witness = Witness { freed.next() }
                let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in witness.touch() }
                let observer = RunLoop.Observer(activities: .exit) { _, _ in witness.touch() }
                (timers.object, observers.object) = (timer, observer)
                return (timer.cfRunLoopTimer, observer.cfRunLoopObserver)
            }
            func use() {
                let (timer, observer) = make()
                #expect(timers.object?.isValid == true && observers.object?.isValid == true)
                #expect(CFRunLoopTimerIsValid(timer) && CFRunLoopObserverIsValid(observer))
            }
            use()
            #expect(timers.object == nil && observers.object == nil)
            #expect(freed.value == 1)
        }
    }

    @Test func `a request keeps its target and argument until it is performed`() async throws {
        try await onThread {
            let freed = Count()
            let loop = RunLoop.current
            func request() {
                let target = Asker(Witness { freed.next() })
                loop.perform(Asker.take, target: target, argument: Witness { freed.next() })
                target.perform(Asker.take, with: Witness { freed.next() }, afterDelay: .zero)
                target.perform(Asker.method, on: .current, with: Witness { freed.next() }, waitUntilDone: false)
            }
            request()
            #expect(freed.value == 0)
            let alive = loop.keepAlive()
            while freed.value < 4 { _ = loop.run(mode: .default, before: .now + .milliseconds(10)) }
            alive.cancel()
            #expect(freed.value == 4)
        }
    }

    @Test func `a request that is cancelled keeps nothing`() async throws {
        try await onThread {
            let freed = Count()
            func request() {
                let target = Asker(Witness { freed.next() })
                RunLoop.current.perform(Asker.take, target: target, argument: Witness { freed.next() })
                target.perform(Asker.take, with: Witness { freed.next() }, afterDelay: .seconds(1000))
                RunLoop.current.cancelPerformSelectors(withTarget: target)
                Asker.cancelPreviousPerformRequests(withTarget: target)
            }
            request()
            #expect(freed.value == 3)
        }
    }

    @Test(arguments: [false, true]) func `requests that a thread never came to are freed with it`(isLoopKept: Bool) async throws {
        let freed = Count()
        let loop = try await onThread {
            let target = Asker(Witness { freed.next() })
            RunLoop.current.perform(Asker.take, target: target, argument: Witness { freed.next() })
            target.perform(Asker.take, with: Witness { freed.next() }, afterDelay: .seconds(1000))
            target.perform(Asker.method, on: .current, with: Witness { freed.next() }, waitUntilDone: false)
            let witness = Witness { freed.next() }
            RunLoop.current.perform { witness.touch() }
            return isLoopKept ? RunLoop.current : nil
        }
        while freed.value < 5 { await Task.yield() }
        loop?.perform(Asker.take, target: Asker(Witness { freed.next() }), argument: Witness { freed.next() })
        #expect(freed.value == (isLoopKept ? 7 : 5))
        withExtendedLifetime(loop) {}
    }

    @Test func `ticks leave nothing in their loop`() async throws {
        try await expectFreed { loop in
            for await _ in try loop.ticks(every: .milliseconds(1)) { break }
        }
    }

    @Test func `activities leave nothing in their loop`() async throws {
        try await expectFreed { loop in
            let activities = loop.activities(.allActivities)
            loop.wake()  // an observer alone does not
            for await _ in activities { break }
        }
    }

    @Test func `sleeps leave nothing in their loop`() async throws {
        try await expectFreed { loop in
            try await Task.sleep(for: .milliseconds(1), clock: loop.clock)
        }
    }

    @Test func `actors leave nothing in their loop`() async throws {
        try await expectFreed { loop in
            _ = await Worker(on: loop).increment()
        }
    }

    @Test func `requests leave nothing in their loop`() async throws {
        try await expectFreed { loop in
            _ = try await loop.run { 1 }
        }
    }

    @Test func `readiness leave nothing in their loop`() async throws {
        try await expectFreed { loop in
            let (reading, writing) = makePipe()
            writePipe(writing)
            for await _ in try loop.readiness(of: reading) { break }
            closePipe(reading)
            closePipe(writing)
        }
    }

    /// The loop, and so what is in it, must go with its thread.
    private func expectFreed(_ use: (RunLoop) async throws -> Void) async throws {
        let stop = RunLoop.StopToken()
        let weakly = try await { () -> WeakLoop in
            let loop = try Thread.runningLoop(until: stop)
            try await use(loop)
            return WeakLoop(loop)
        }()
        stop.requestStop()
        while weakly.loop != nil { await Task.yield() }
    }
}

private final class Asker: Performing, Sendable {
    let witness: Witness
    init(_ witness: Witness) { self.witness = witness }
    func method(_ argument: Witness) { argument.touch() }
    static let take = Action("take", Asker.method)
}
