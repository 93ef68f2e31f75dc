// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import CoreRunLoopShims
import CoreRunLoopTesting
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@globalActor private actor Pinned: RunLoopActor {
    static let stop = RunLoop.StopToken()
    static let loop: RunLoop = {
        guard let loop = try? Thread.runningLoop(name: "pinned", until: stop) else { fatalError("no thread") }
        return loop
    }()
    static let shared = Pinned()
    nonisolated let runLoop = Pinned.loop
}

@Pinned private var pinnedState = 0

@Suite(.timeLimit(.minutes(10))) struct `A loop as an executor` {
    @Test func `runs an actor's code on its thread`() async throws {
        try await withLoop { loop in
            let worker = Worker(on: loop)
            #expect(await worker.isOnLoop)
            var last = 0
            for _ in 0..<100 { last = await worker.increment() }
            #expect(last == 100)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<8 { group.addTask { for _ in 0..<250 { _ = await worker.increment() } } }
            }
            #expect(await worker.increment() == 2101)
        }
    }

    @Test func `stays awake between jobs that come quickly, unless the program has chosen otherwise`() async throws {
        try await withLoop { loop in
            let worker = Worker(on: loop)
            var wasAwake = false
            for _ in 0..<10_000 where !wasAwake {  // a machine that is busy may not manage two jobs in a tenth of a millisecond at once
                _ = await worker.increment()
                wasAwake = worker.runLoop.busyWait == .microseconds(100)
            }
            #expect(wasAwake || !shim_has_processors())
            loop.busyWait = .zero
            for _ in 0..<10 { _ = await worker.increment() }
            #expect(loop.busyWait == .zero)
        }
        try await withLoop { loop in
            loop.busyWait = .zero
            let worker = Worker(on: loop)
            for _ in 0..<10 { _ = await worker.increment() }
            #expect(loop.busyWait == .zero)
        }
        try await withLoop { loop in
            CRLRunLoopSetBusyWait(loop.getCFRunLoop(), 0.001)
            #expect(await Worker(on: loop).increment() == 1)
            #expect(loop.busyWait == .milliseconds(1))
        }
    }

    @Test func `lets a loop sleep for which several jobs wait at once`() async throws {
        try await withLoop { loop in
            let worker = Worker(on: loop)
            for _ in 0..<10 {
                for job in await worker.beginThree() { await job.value }  // in one drain with this one
                _ = await worker.increment()
                #expect(loop.busyWait == .zero)
            }
        }
    }

    @Test(.manualTime) func `lets a loop sleep whose clock stands still`() async throws {
        try await withLoop { loop in
            let worker = Worker(on: loop)
            for _ in 0..<10 { _ = await worker.increment() }
            #expect(loop.busyWait == .zero)
        }
    }

    @Test func `may be freed by the job whose queueing is not over yet`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<100 {
                        let stop = RunLoop.StopToken()
                        let worker = Worker(on: try Thread.runningLoop(until: stop))
                        #expect(await worker.increment() == 1)
                        stop.requestStop()
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `runs a global actor's code on its thread`() async {
        let onLoop = await Task { @Pinned in
            pinnedState += 1
            return Pinned.loop.isCurrent
        }.value
        #expect(onLoop)
    }

    @Test func `is a task's preferred executor`() async throws {
        try await withLoop { loop in
            #expect(await Task(executorPreference: loop) { loop.isCurrent }.value)
            #expect(await withTaskExecutorPreference(loop) { await concurrently { loop.isCurrent } })
        }
    }

    @Test func `gives callbacks the actor's state without waiting`() async throws {
        try await withLoop { loop in
            let worker = Worker(on: loop)
            let seen = Count()
            let timer = Timer(fire: .now, interval: .zero, repeats: false) { _ in
                worker.assumeIsolated { $0.state = 41 }
                seen.next()
            }
            loop.add(timer, forMode: .common)
            while seen.value == 0 { await Task.yield() }
            #expect(await worker.increment() == 42)
        }
    }

    @Test func `stops the process when another thread assumes the actor's isolation`() async {
        await #expect(processExitsWith: .failure) {
            let worker = Worker(on: RunLoop.main)
            try await onThread { worker.assumeIsolated { $0.state = 1 } }
        }
    }

    @Test func `does not run an actor's other jobs inside a job's own run of the loop`() async throws {
        try await withLoop { loop in
            let nesting = Nesting(on: loop)
            async let outer: Void = nesting.runNested()
            while nesting.hasBegun.value == 0 { await Task.yield() }
            async let inner: Void = nesting.other()
            await outer
            await inner
            #expect(nesting.trace.text == "begin timer end other")
        }
    }

    @Test func `wakes its loop once for a burst of jobs`() async throws {
        try await withLoop { loop in
            let passes = Count()
            let observer = RunLoop.Observer(activities: .afterWaiting) { _, _ in passes.next() }
            loop.add(observer, forMode: .common)
            let done = Count()
            try await loop.run {
                // The loop is busy here: what is enqueued meanwhile must not wake it once a job.
                for _ in 0..<100 { Task(executorPreference: loop) { done.next() } }
            }
            while done.value < 100 { await Task.yield() }
            #expect(passes.value < 20)
            observer.invalidate()
        }
    }

    @Test func `leaves no job behind when its thread ends`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let worker = Worker(on: loop)
        _ = await worker.increment()
        stop.requestStop()
        while loop.isWaiting { await Task.yield() }
        for _ in 0..<20 { _ = await worker.increment() }
        #expect(await worker.increment() == 22)
    }

    @Test func `frees its actors and itself`() async throws {
        let weakly = try await withLoop { loop in
            let worker = Worker(on: loop)
            _ = await worker.increment()
            return WeakWorker(worker)
        }
        while weakly.worker != nil { await Task.yield() }
    }
}

private actor Nesting: RunLoopActor {
    nonisolated let runLoop: RunLoop
    nonisolated let trace = Trace()
    nonisolated let hasBegun = Count()
    init(on runLoop: RunLoop) { self.runLoop = runLoop }

    func runNested() {
        trace.add("begin")
        hasBegun.next()
        let timer = Timer(timeInterval: .milliseconds(20), repeats: false) { [trace, runLoop] _ in
            trace.add("timer")
            runLoop.stop()
        }
        runLoop.add(timer, forMode: .default)
        nested()
        trace.add("end")
    }

    private func nested() { _ = runLoop.run(in: .default) }

    func other() { trace.add("other") }
}

@concurrent private func concurrently<Value: Sendable>(_ body: @Sendable () -> Value) async -> Value { body() }

private final class WeakWorker: @unchecked Sendable {
    weak var worker: Worker?
    init(_ worker: Worker) { self.worker = worker }
}

@Suite(.timeLimit(.minutes(10))) struct `A loop's clock` {
    @Test func `sleeps with a timer of the loop`() async throws {
        try await withLoop { loop in
            let start = loop.clock.now
            try await Task.sleep(for: .milliseconds(5), clock: loop.clock)
            #expect(start.duration(to: loop.clock.now) >= .milliseconds(5))
            try await loop.clock.sleep(until: start)
            try await loop.clock.sleep(until: loop.clock.now.advanced(by: .milliseconds(1)), tolerance: .milliseconds(1))
            #expect(loop.clock.minimumResolution == .nanoseconds(1))
        }
    }

    @Test(.manualTime, arguments: 1...20) func `ends a sleep at its deadline, and not a nanosecond earlier`(number: Int) async throws {
        let loop = try Thread.runningLoop(until: RunLoop.StopToken())
        let hasWoken = Count()
        let duration = Duration.nanoseconds(number * 1_234_567)
        let sleeper = Task(executorPreference: loop) {
            try await Task.sleep(for: duration, clock: loop.clock)
            hasWoken.next()
        }
        while loop.nextTimerFireDate(in: .default) == nil { await Task.yield() }
        ManualTime.advance(by: duration - .nanoseconds(1))
        for _ in 0..<10 { try await loop.run {} }
        #expect(hasWoken.value == 0)
        ManualTime.advance(by: .nanoseconds(1))
        try await sleeper.value
        #expect(hasWoken.value == 1)
    }

    @Test(.manualTime) func `goes on in a suspension, stands still in it, or follows the wall clock`() {
        let loop = RunLoop.current
        func passed(_ kind: RunLoop.Clock.Kind, _ body: () -> Void) -> Duration {
            let start = loop.clock(kind).now
            body()
            return start.duration(to: loop.clock(kind).now)
        }
        for (kind, suspension, step) in [(.continuous, 3600, 0), (.suspending, 0, 0), (.wall, 3600, 60)] as [(RunLoop.Clock.Kind, Int, Int)]
        {
            #expect(passed(kind) { ManualTime.suspend(for: .seconds(3600)) } == .seconds(suspension))
            #expect(passed(kind) { ManualTime.stepWallClock(by: .seconds(60)) } == .seconds(step))
            #expect(passed(kind) { ManualTime.advance(by: .seconds(5)) } == .seconds(5))
            #expect(passed(kind) { ManualTime.suspend(for: .seconds(-5)) } == .zero)
        }
        #expect(loop.clock.kind == .continuous)
        #expect(RunLoop.Clock.Instant(.now) == loop.clock(.wall).now)
    }

    /// A sleep of 600 s, during which the clocks are moved; which moves have ended it.
    private func sleep(_ kind: RunLoop.Clock.Kind, _ moves: [() -> Void]) async throws -> Int {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        defer { stop.requestStop() }
        let hasWoken = Count()
        let sleeper = Task(executorPreference: loop) {
            try await loop.clock(kind).sleep(until: loop.clock(kind).now.advanced(by: .seconds(600)))
            hasWoken.next()
        }
        while loop.nextTimerFireDate(in: .default) == nil { await Task.yield() }
        for (number, move) in moves.enumerated() {
            move()
            if number == moves.count - 1 { break }
            for _ in 0..<10 { try await loop.run {} }
            if hasWoken.value > 0 { return number + 1 }
        }
        try await sleeper.value
        return moves.count
    }

    @Test(.manualTime) func `ends a sleep by what it counts`() async throws {
        let suspend = { ManualTime.suspend(for: .seconds(3600)) }
        let (forward, back) = ({ ManualTime.stepWallClock(by: .seconds(3600)) }, { ManualTime.stepWallClock(by: .seconds(-100)) })
        let advance = { ManualTime.advance(by: .seconds(600)) }
        #expect(try await sleep(.continuous, [back, suspend]) == 2)
        #expect(try await sleep(.continuous, [forward, advance]) == 2)
        #expect(try await sleep(.suspending, [suspend, forward, advance]) == 3)
        #expect(try await sleep(.wall, [suspend]) == 1)
        #expect(try await sleep(.wall, [forward]) == 1)
        #expect(try await sleep(.wall, [back, advance, { ManualTime.advance(by: .seconds(100)) }]) == 3)
    }

    @Test func `of each kind sleeps as long as it should, and not at all for what has passed`() async throws {
        try await withLoop { loop in
            for kind in [RunLoop.Clock.Kind.continuous, .suspending, .wall] {
                let clock = loop.clock(kind)
                let deadline = clock.now.advanced(by: .milliseconds(5))
                try await clock.sleep(until: deadline)
                #expect(clock.now >= deadline)
                try await clock.sleep(until: deadline)
                try await clock.sleep(until: clock.now.advanced(by: .seconds(Int64.min)), tolerance: .seconds(1))
            }
            try await loop.clock(.wall).sleep(until: .init(.distantPast))
        }
    }

    @Test func `is cancelled at once`() async throws {
        try await withLoop { loop in
            let task = Task { try await Task.sleep(for: .seconds(1000), clock: loop.clock) }
            while loop.nextTimerFireDate(in: .default) == nil { await Task.yield() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(loop.nextTimerFireDate(in: .default) == nil)
        }
    }

    @Test func `of a thread that ends wakes its sleepers with an error`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let task = Task { try await Task.sleep(for: .seconds(1000), clock: loop.clock) }
        while loop.nextTimerFireDate(in: .default) == nil { await Task.yield() }
        stop.requestStop()
        await #expect(throws: RunLoopError.loopEnded) { try await task.value }
        await #expect(throws: RunLoopError.loopEnded) { try await Task.sleep(for: .seconds(1000), clock: loop.clock) }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Sequences of a loop's events` {
    @Test func `tick at multiples of their interval`() async throws {
        try await withLoop { loop in
            var dates: [WallTime] = []
            for await tick in try loop.ticks(every: .milliseconds(2)) {
                dates.append(tick.scheduled)
                if dates.count == 3 { break }
            }
            #expect(zip(dates, dates.dropFirst()).allSatisfy { ($1 - $0) >= .milliseconds(1.9) })
            while loop.nextTimerFireDate(in: .default) != nil { await Task.yield() }
        }
    }

    @Test(.manualTime, arguments: MissedTickPolicy.allCases)
    func `collapse, skip or deliver the ticks that were missed`(policy: MissedTickPolicy) async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let start = WallTime.now
        var ticks = try loop.ticks(every: .milliseconds(4), policy: policy).makeAsyncIterator()
        var seen: [String] = []
        func take(_ number: Int) async {
            for _ in 0..<number {
                let tick = await ticks.next()
                seen.append(tick.map { "\(Int(($0.scheduled - start).inMilliseconds)) \($0.missed)" } ?? "none")
            }
        }
        ManualTime.advance(by: .milliseconds(4))
        await take(1)
        try await loop.run {}  // the timer has its next date once its closure has returned
        ManualTime.advance(by: .milliseconds(30))  // the loop sees the time when seven ticks have passed
        if policy != .skip { await take(policy == .all ? 7 : 1) }
        for _ in 0..<2 { try await loop.run {} }  // a late tick that is skipped has had its turn
        ManualTime.advance(by: .milliseconds(2))
        await take(1)
        switch policy {
        case .collapse: #expect(seen == ["4 0", "8 0", "36 6"])
        case .skip: #expect(seen == ["4 0", "36 7"])
        case .all: #expect(seen == (1...9).map { "\($0 * 4) 0" })
        }
        stop.requestStop()
    }

    @Test(.manualTime, arguments: MissedTickPolicy.allCases)
    func `tick by the time that passes, whoever sets the wall clock`(policy: MissedTickPolicy) async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        var ticks = try loop.ticks(every: .milliseconds(10), policy: policy).makeAsyncIterator()
        for step in [Duration.seconds(3600), .seconds(-7200), .zero] {
            ManualTime.stepWallClock(by: step)
            ManualTime.advance(by: .milliseconds(10))
            let tick = await ticks.next()
            #expect(tick?.scheduled == .now)
            #expect(tick?.missed == 0)
            try await loop.run {}  // the timer has its next date once its closure has returned
        }
        stop.requestStop()
    }

    @Test(.manualTime) func `come one by one after the longest time, and take no room before`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let start = WallTime.now
        var ticks = try loop.ticks(every: .nanoseconds(1), policy: .all).makeAsyncIterator()
        ManualTime.advance(by: .seconds(3600))
        for number in 1...1000 {
            let tick = await ticks.next()
            #expect(tick?.missed == 0)
            #expect(tick.map { $0.scheduled - start } == .nanoseconds(number))
        }
        try await loop.run {}
        stop.requestStop()
    }

    @Test(arguments: [Duration.zero, .seconds(-1)]) func `refuse an interval that is not positive`(interval: Duration) {
        #expect(throws: RunLoopError.invalidDuration(interval)) { try RunLoop.main.ticks(every: interval) }
    }

    @Test func `end when their task is cancelled`() async throws {
        try await withLoop { loop in
            let ticks = try loop.ticks(every: .seconds(1000))
            let task = Task { for await _ in ticks { Issue.record("ticked") } }
            while loop.nextTimerFireDate(in: .default) == nil { await Task.yield() }
            task.cancel()
            await task.value
            #expect(loop.nextTimerFireDate(in: .default) == nil)
        }
    }

    @Test func `end when the loop's thread ends`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let ticks = try loop.ticks(every: .seconds(1000))
        let task = Task { for await _ in ticks {} }
        while loop.nextTimerFireDate(in: .default) == nil { await Task.yield() }
        stop.requestStop()
        await task.value
    }

    @Test func `tell of activities`() async throws {
        try await withLoop { loop in
            var seen: [RunLoop.Activity] = []
            let activities = loop.activities([.beforeWaiting, .afterWaiting])
            loop.wake()
            loop.perform {}
            for await activity in activities {
                seen.append(activity)
                if seen.count == 2 { break }
                loop.wake()
            }
            #expect(seen.contains(.afterWaiting))
        }
    }

    @Test func `tell of a descriptor only while someone waits`() async throws {
        try await withLoop { loop in
            let (reading, writing) = makePipe()
            writePipe(writing)
            var readiness = try loop.readiness(of: reading).makeAsyncIterator()
            #expect(await readiness.next() == .readable)
            #expect(await readiness.next() == .readable)
            drainPipe(reading)
            writePipe(writing)
            #expect(await readiness.next() == .readable)
            close(writing)
            close(reading)
            #expect(throws: RunLoopError.invalidDescriptor(987_654)) { try loop.readiness(of: 987_654) }
        }
    }

    @Test func `tell of signals`() async throws {
        let stop = RunLoop.StopToken()
        let signals = Mutex<AsyncStream<SignalSource.Signal>?>(nil)
        let thread = Thread {
            signals.withLock { $0 = try? RunLoop.current.signals([SIGUSR2]) }
            pthread_kill(pthread_self(), SIGUSR2)
            RunLoop.current.run(in: .default, until: stop)
        }
        thread.start()
        while signals.withLock({ $0 == nil }) { await Task.yield() }
        let stream = try #require(signals.withLock { $0 })
        for await signal in stream {
            #expect(signal.number == SIGUSR2)
            break
        }
        stop.requestStop()
        #expect(throws: RunLoopError.invalidSignal(0)) { try RunLoop.main.signals([0]) }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A registration` {
    @Test func `ends its item with its owner, unless it is left`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let dropped = Timer(timeInterval: .seconds(10), repeats: true) { _ in }
            let left = Timer(timeInterval: .seconds(10), repeats: true) { _ in }
            let observer = RunLoop.Observer(activities: .entry) { _, _ in }
            let source = InputSource<Void> { _ in }
            func register() {
                _ = loop.register(dropped)
                loop.register(left).leave()
                loop.register(observer).cancel()
                let registration = loop.register(source)
                #expect(source.isValid)
                _ = consume registration
            }
            register()
            #expect(!dropped.isValid && left.isValid && !observer.isValid && !source.isValid)
            left.invalidate()
        }
    }

    private final class Owner {
        var registration: RunLoop.Registration?
        var ticking: Timer.Scheduled?
        var alive: RunLoop.KeepAlive?
        var ends: Thread.ExitRegistration?
        var invalidations: Port.InvalidationRegistration?
    }

    @Test func `is cancelled where it stands, and once more has no effect`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let source = CountingSource()
            let owner = Owner()
            owner.registration = loop.register(source, in: "mine")
            owner.ticking = loop.schedule(every: .seconds(10), in: "mine") { _ in }
            owner.alive = loop.keepAlive(in: "mine")
            let (ends, invalidations) = (Count(), Count())
            owner.ends = Thread.onWillExit { thread in if thread.name == "counted" { ends.next() } }
            let port = MachPort()
            owner.invalidations = Port.onDidBecomeInvalid { if $0 === port { invalidations.next() } }
            #expect(loop.run(in: "mine", for: .zero) == .timedOut)
            for _ in 1...2 {
                owner.registration?.cancel()
                owner.ticking?.cancel()
                owner.alive?.cancel()
                owner.ends?.cancel()
                owner.invalidations?.cancel()
            }
            #expect(loop.run(in: "mine", for: .zero) == .finished)
            let thread = Thread {}
            thread.name = "counted"
            thread.start()
            thread.join()
            port.invalidate()
            owner.registration = nil  // does not end it once more
            #expect(source.ends == 1 && ends.value == 0 && invalidations.value == 0)
        }
    }
}

/// Counts how often it is invalidated.
private final class CountingSource: RunLoopSource {
    private let source = InputSource<Void> { _ in }
    private let count = Count()
    var cfRunLoopSource: CFRunLoopSource { source.cfRunLoopSource }
    var ends: Int { count.value }
    func invalidate() {
        count.next()
        source.invalidate()
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Helpers for tests` {
    @Test(.runLoop) func `run a test on a loop of its own`() async {
        #expect(Self.isOnNamedThread())
        await Task.yield()
        #expect(Self.isOnNamedThread())
    }

    private static func isOnNamedThread() -> Bool { Thread.current.name == "test" && RunLoop.current.isCurrent }

    @Test(.manualTime) func `move the clocks by hand`() {
        let count = Count()
        let start = WallTime.now
        Timer.scheduledTimer(withTimeInterval: .seconds(3600), repeats: true) { _ in count.next() }
        RunLoop.current.pump()
        #expect(count.value == 0)
        ManualTime.advance(by: .seconds(3600))
        RunLoop.current.pump()
        #expect(count.value == 1)
        ManualTime.advance(by: .seconds(7200), pumping: .current, step: .seconds(600))
        #expect(count.value == 3)
        #expect(WallTime.now - start == .seconds(10800))
        ManualTime.advance(by: .seconds(-5))
        #expect(WallTime.now - start == .seconds(10800))
    }

    @Test(.manualTime) func `move the wall clock alone, on and back`() {
        let loop = RunLoop.current
        let (start, date) = (loop.clock.now, WallTime.now)
        ManualTime.stepWallClock(by: .seconds(60))
        #expect(WallTime.now - date == .seconds(60))
        ManualTime.stepWallClock(by: .seconds(-3600))
        #expect(WallTime.now - date == .seconds(-3540))
        #expect(loop.clock.now == start)
    }

    @Test(.manualTime) func `take a step of zero for the whole way`() {
        let start = WallTime.now
        ManualTime.advance(by: .seconds(60), pumping: .current, step: .zero)
        #expect(WallTime.now - start == .seconds(60))
    }

    @Test(.manualTime, arguments: [Duration.seconds(97 * 365 * 86400), .seconds(Int64.max)])
    func `take longer steps where there would be too many`(duration: Duration) {
        let (count, start) = (Count(), RunLoop.current.clock.now)
        Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { _ in count.next() }
        ManualTime.advance(by: duration, pumping: .current, step: .milliseconds(1), most: 1000)
        #expect(start.duration(to: RunLoop.current.clock.now) > .seconds(96 * 365 * 86400))
        #expect(count.value > 0 && count.value <= 1000)
    }

    @Test(.manualTime) func `take each step where there are not too many`() {
        let (count, start) = (Count(), WallTime.now)
        Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { _ in count.next() }
        ManualTime.advance(by: .seconds(1), pumping: .current, step: .milliseconds(1), most: 1000)
        #expect(count.value == 1000)
        ManualTime.advance(by: .nanoseconds(10), pumping: .current, step: .nanoseconds(1) / 2)
        #expect(WallTime.now - start == .seconds(1) + .nanoseconds(10))
    }

    /// A task of the test sleeps twice, in a child, behind calls that are asynchronous themselves, and beside a timer.
    @Test(.manualTime) func `let time pass in an asynchronous test`() async throws {
        let (loop, trace) = (RunLoop.ofTest, Trace())
        #expect(loop.isCurrent)
        let ticking = loop.schedule(every: .seconds(1800)) { _ in trace.add("tick") }
        let others = (0..<10).map { _ in Task(executorPreference: loop) { for _ in 0..<100 { await Task.yield() } } }
        async let slept: Void = {
            for _ in 0..<10 { await Task.yield() }
            try await Task.sleep(for: .seconds(3600), clock: loop.clock)
            trace.add("first")
            try await Task.sleep(for: .seconds(1), clock: loop.clock)
            trace.add("second")
        }()
        await ManualTime.pass(.seconds(3599))
        #expect(trace.text == "tick")
        await ManualTime.pass(.seconds(1))
        #expect(Set(trace.events.dropFirst()) == ["tick", "first"])
        await ManualTime.pass(.seconds(1))
        #expect(trace.events.last == "second")
        try await slept
        for other in others { await other.value }
        ticking.cancel()
    }

    @Test func `say once that something is in the main loop, whose clocks they do not move`() async throws {
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
            try await ManualTimeTrait.withClocks {
                let timer = Timer(timeInterval: .seconds(1), repeats: false) { _ in }
                ManualTime.advance(by: .seconds(1))
                RunLoop.main.add(timer, forMode: .common)
                for _ in 0..<2 { ManualTime.advance(by: .seconds(1)) }
                timer.invalidate()
            }
        }
        let said = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(said.split(separator: "something is in RunLoop.main", omittingEmptySubsequences: false).count == 2)
        #expect(!said.contains("the program ends with something"))
    }

    @Test func `have no loop without a trait that gives them one`() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = RunLoop.ofTest }
        #expect(String(decoding: result.standardErrorContent, as: UTF8.self).contains("RunLoop.ofTest: this test has no loop of its own"))
    }

    @Test(.manualTime) func `let sleeps pass at once`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let task = Task(executorPreference: loop) { try await Task.sleep(for: .seconds(86400), clock: loop.clock) }
        while loop.nextTimerFireDate(in: .default) == nil { await Task.yield() }
        ManualTime.advance(by: .seconds(86400))
        try await task.value
        stop.requestStop()
    }

    @Test(.manualTime) func `end each sleep, whoever moves the clocks, cancels sleeps or begins others meanwhile`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let ended = Count()
        let movers = (0..<3).map { _ in
            Thread { while ended.value < 300 { ManualTime.advance(by: .microseconds(100)) } }
        }
        for mover in movers { mover.start() }
        let sleepers = (0..<300).map { number in
            Task(executorPreference: loop) {
                defer { ended.next() }
                let deadline = loop.clock.now.advanced(by: .milliseconds(number % 40 - 10))
                try await loop.clock.sleep(until: deadline)
                return loop.clock.now >= deadline
            }
        }
        for (number, sleeper) in sleepers.enumerated() where number % 3 == 0 { sleeper.cancel() }
        for (number, sleeper) in sleepers.enumerated() {
            do { #expect(try await sleeper.value) } catch { #expect(error is CancellationError && number % 3 == 0) }
        }
        for mover in movers { try await mover.value }
        #expect(loop.nextTimerFireDate(in: .default) == nil)
        stop.requestStop()
    }

    @Test(.manualTime) func `let a wait beside a descriptor sleep until the clocks are moved`() throws {
        let (reading, writing) = makePipe()
        let source = try DescriptorSource(descriptor: reading, closeOnInvalidate: true) { _ in }
        RunLoop.current.add(source, forMode: .default)
        let fired = Count()
        Timer.scheduledTimer(withTimeInterval: .microseconds(30), repeats: false) { _ in
            fired.next()
            RunLoop.current.stop()
        }
        let (start, used) = (nanoseconds(of: CLOCK_MONOTONIC), nanoseconds(of: CLOCK_THREAD_CPUTIME_ID))
        Thread.detachNewThread {
            usleep(50_000)  // real time, in which the loop could use a processor
            ManualTime.advance(by: .milliseconds(1))
        }
        _ = RunLoop.current.run(in: .default)
        #expect(fired.value == 1)
        let passed = nanoseconds(of: CLOCK_MONOTONIC) - start
        #expect(nanoseconds(of: CLOCK_THREAD_CPUTIME_ID) - used < passed / 2)
        source.invalidate()
        closePipe(writing)
    }

    private func nanoseconds(of clock: clockid_t) -> Int {
        var time = timespec()
        clock_gettime(clock, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    @Test(.runLoop, arguments: [Int.min, -1, 0]) func `pump not at all when no pass is allowed`(limit: Int) {
        let count = Count()
        RunLoop.current.perform { count.next() }
        RunLoop.current.pump(limit: limit)
        #expect(count.value == 0)
        RunLoop.current.pump()
        #expect(count.value == 1)
    }

    @Test func `pump until something has happened`() async throws {
        try await onThread {
            let count = Count()
            let loop = RunLoop.current
            Thread.detachNewThread { loop.perform { count.next() } }
            #expect(loop.pump(until: { count.value == 1 }))
            #expect(!loop.pump(until: { false }, limit: .milliseconds(2)))
            let asked = Count()
            #expect(!loop.pump(until: { asked.next() < 0 }, mode: .common, limit: .milliseconds(50)))
            #expect(asked.value == 2)
        }
    }
}

extension Worker {
    /// Tasks whose first jobs are queued before this ends.
    fileprivate func beginThree() -> [Task<Void, Never>] { (0..<3).map { _ in Task { _ = increment() } } }
}
