// SPDX-License-Identifier: Apache-2.0
//
// Time that a test moves by hand, and loops for tests.

import CCoreRunLoop
public import CoreRunLoop
import CoreRunLoopShims
public import Testing

/// The clocks of a test, held still and moved by hand.
///
/// ```swift
/// @Test(.manualTime) func `a reminder comes after an hour`() {
///     ...
///     ManualTime.advance(by: .seconds(3600))
///     RunLoop.current.pump()
/// }
/// ```
///
/// Timers, `WallTime` and `RunLoop.Clock` follow these clocks on the test's own thread, on threads that it starts, and in tasks that
/// prefer a loop of these threads. `ContinuousClock` and other tests do not. Loops on other threads look at these clocks once a
/// millisecond.
///
/// The trait gives a test the loop's thread, which a test of the main actor cannot have. In a module whose default isolation is the main
/// actor, tests with a loop stand in a type that says so: `nonisolated struct Sessions { @Test(.manualTime) func ... }`.
public enum ManualTime {
    /// Lets `duration` pass in an asynchronous test: does everything that is ready on the test's loop, moves the clocks on by
    /// ``advance(by:)``, and does everything that is ready then.
    ///
    /// ```swift
    /// @Test(.manualTime) func `a lease ends after an hour`() async throws {
    ///     async let lease: Void = Task.sleep(for: .seconds(3600), clock: RunLoop.ofTest.clock)
    ///     await ManualTime.pass(.seconds(3600))
    ///     try await lease
    /// }
    /// ```
    ///
    /// The test's own task, `async let` and the children of groups run on that loop. When the call returns, they wait for something that
    /// has to come from elsewhere, or for later times. A task of `Task { }` runs there if it says so:
    /// `Task(executorPreference: RunLoop.ofTest) { }`.
    public static func pass(_ duration: Duration) async {
        RunLoop.ofTest.preconditionIsCurrent("ofTest, ManualTime.pass")
        await settle()
        advance(by: duration)
        await settle()
    }

    /// The loop's executor runs jobs in the order of their coming, so a yield lets all others have a turn.
    private static func settle() async {
        var hasMore = true
        while hasMore {
            pumpTestLoop()
            hasMore = RunLoop.ofTest.hasJobs
            await Task.yield()
            hasMore = hasMore || RunLoop.ofTest.hasJobs
        }
    }

    private static func pumpTestLoop() { RunLoop.current.pump() }

    /// Moves the clocks on by `duration`; a negative one is ignored. They go no farther than 97 years in all.
    ///
    /// On a thread that has no such clocks, the call stops the process with a message. A line on the standard error output says so, once,
    /// if something is in the main loop, which has clocks of its own, and which nobody has run.
    public static func advance(by duration: Duration) {
        if shim_loop_waits_for_first_run(CFRunLoopGetMain()) { _ = hasWarnedOfMain }
        if !shim_clock_advance(max(0, duration.inNanoseconds)) {
            fatalError("CoreRunLoopTesting: ManualTime.advance: this thread's clocks are not moved by hand")
        }
    }

    private static let hasWarnedOfMain: Void = {
        var line = "CoreRunLoopTesting: something is in RunLoop.main, which does not run here, and has other clocks than RunLoop.ofTest\n"
        line.withUTF8 { bytes in if let base = bytes.baseAddress { unsafe shim_report(base, bytes.count) } }
    }()

    /// Moves the clocks on as a suspension of the system does: dates and continuous clocks go on, and the time that the system is awake
    /// does not. A negative duration is ignored. They go no farther than 36 years in all.
    ///
    /// On a thread that has no such clocks, the call stops the process with a message.
    public static func suspend(for duration: Duration) {
        if !shim_clock_suspend(max(0, duration.inNanoseconds)) {
            fatalError("CoreRunLoopTesting: ManualTime.suspend: this thread's clocks are not moved by hand")
        }
    }

    /// Moves the wall clock alone, on or back, as setting the system's time does: dates change, and no time passes.
    ///
    /// The wall clock goes no farther than 97 years in all. On a thread that has no such clocks, the call stops the process with a message.
    public static func stepWallClock(by duration: Duration) {
        if !shim_clock_step_wall(duration.inNanoseconds) {
            fatalError("CoreRunLoopTesting: ManualTime.stepWallClock: this thread's clocks are not moved by hand")
        }
    }

    /// Moves the clocks on by `duration` in steps, and pumps `loop` after each, so that timers fire at their own dates. A step of zero or
    /// less is the whole way.
    ///
    /// If more than ten million steps would be needed, the steps are longer. A timer then fires once for all of its dates that a step
    /// passes.
    @available(*, noasync)
    public static func advance(by duration: Duration, pumping loop: RunLoop, step: Duration = .milliseconds(1)) {
        advance(by: duration, pumping: loop, step: step, most: 10_000_000)
    }

    /// Does the same with at most `count` steps.
    @available(*, noasync)
    package static func advance(by duration: Duration, pumping loop: RunLoop, step: Duration, most count: Int64) {
        var left = max(0, duration.inNanoseconds)
        let shortest = 1 + max(0, left - 1) / count
        let step = step > .zero ? max(step.inNanoseconds, shortest) : left
        loop.pump()
        while left > 0 {
            let next = min(left, step)
            advance(by: .nanoseconds(next))
            left -= next
            loop.pump()
        }
    }
}

extension RunLoop {
    /// The loop of the test that runs, as asynchronous functions may ask for it; in others it is ``current`` as well.
    ///
    /// In a test without a trait that gives it a loop, the call stops the process with a message.
    public static var ofTest: RunLoop {
        guard let loop = TestLoop.current else { fatalError("CoreRunLoopTesting: RunLoop.ofTest: this test has no loop of its own") }
        return loop
    }

    /// Does everything that is ready, without sleeping: passes in `mode` until one finds nothing to do.
    ///
    /// - Parameters:
    ///   - mode: Any mode but the common ones' name.
    ///   - limit: How many passes at most; zero and less are none.
    @available(*, noasync)
    public func pump(mode: Mode = .default, limit: Int = 100) {
        for _ in 0..<max(0, limit) where run(in: mode, for: .zero, returnAfterSourceHandled: true) != .handledSource { return }
    }

    /// Runs passes in `mode` until `condition` holds. In a mode that cannot be run it asks once, or twice.
    ///
    /// - Parameters:
    ///   - mode: Any mode but the common ones' name.
    ///   - limit: How long at most, in real time.
    ///   - condition: Asked after each pass.
    /// - Returns: Whether the condition holds.
    @available(*, noasync)
    public func pump(until condition: () -> Bool, mode: Mode = .default, limit: Duration = .seconds(10)) -> Bool {
        let start = ContinuousClock.now
        let alive = keepAlive(in: mode)
        while !condition() && start.duration(to: .now) < limit {
            if run(in: mode, for: .milliseconds(1), returnAfterSourceHandled: true) == .finished { break }  // it cannot be run
        }
        alive.cancel()
        return condition()
    }
}

enum TestLoop {
    @TaskLocal static var current: RunLoop?

    /// The calling thread's loop is that of the test while `body` runs.
    static func here(_ body: () async throws -> Void) async rethrows {
        try await $current.withValue(threadsLoop()) { try await body() }
    }

    private static func threadsLoop() -> RunLoop { .current }
}

/// Runs a test on a thread of its own whose loop runs: `RunLoop.current` is that loop, which nothing else has used.
public struct RunLoopTrait: TestTrait, SuiteTrait, TestScoping {
    /// Holds for the tests of a suite, each on a loop of its own.
    public var isRecursive: Bool { true }

    /// Gives the test its loop.
    public func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
        if testCase == nil { try await function() } else { try await Self.withLoop(function) }
    }

    fileprivate static func withLoop(_ function: @Sendable () async throws -> Void) async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "test", until: stop)
        defer { stop.requestStop() }
        try await TestLoop.$current.withValue(loop) { try await withTaskExecutorPreference(loop) { try await function() } }
    }
}

/// Gives a test clocks of its own: ``ManualTime``. The test runs on a loop of its own.
public struct ManualTimeTrait: TestTrait, SuiteTrait, TestScoping {
    /// Holds for the tests of a suite.
    public var isRecursive: Bool { true }

    /// Holds the clocks still while the test runs.
    public func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
        if testCase == nil { try await function() } else { try await Self.withClocks(function) }
    }

    package static func withClocks(_ function: @Sendable () async throws -> Void) async throws {
        try await RunLoopTrait.withLoop {
            shim_clock_begin()
            try await function()
        }
    }
}

extension Trait where Self == RunLoopTrait {
    /// Runs the test on a loop of its own.
    public static var runLoop: RunLoopTrait { RunLoopTrait() }
}

extension Trait where Self == ManualTimeTrait {
    /// Runs the test on a loop of its own, with clocks that ``ManualTime`` moves.
    public static var manualTime: ManualTimeTrait { ManualTimeTrait() }
}
