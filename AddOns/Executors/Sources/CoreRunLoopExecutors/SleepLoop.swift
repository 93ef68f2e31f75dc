// SPDX-License-Identifier: Apache-2.0
//
// The sleeps of tasks: timers of one loop, whose thread does nothing else, so that no task that is long at work makes another one's sleep
// longer. It starts with the first sleep. A sleep that is cancelled leaves its timer until it is due, as the runtime says nothing.

private import CCoreRunLoop
private import CoreRunLoop
private import CoreRunLoopShims

/// Jobs that wait for their time.
final class SleepLoop: Sendable {
    static let shared = SleepLoop()

    private let loop: RunLoop

    private init() {
        do { loop = try Thread.runningLoop(name: "task sleeps", until: RunLoop.StopToken()) } catch {
            fatalError("CoreRunLoopExecutors: no thread for the sleeps of tasks: \(error)")
        }
    }

    /// Calls `wake` after `delay`, or up to `tolerance` later. With `isSuspending` the time of a suspended system does not count.
    func add(after delay: Duration, tolerance: Duration?, isSuspending: Bool, _ wake: @escaping @Sendable () -> Void) {
        let nanoseconds = max(0, delay.inNanoseconds)
        let sleep = Sleep(wake, tolerance, isSuspending ? sum(shim_monotonic_ns(), nanoseconds) : nil)
        start(sleep, at: sum(shim_elapsed_ns(), nanoseconds))
    }

    private func start(_ sleep: Sleep, at instant: Int64) {
        var context = unsafe CFRunLoopTimerContext()
        unsafe context.info = Unmanaged.passUnretained(sleep).toOpaque()
        unsafe context.retain = { info in unsafe UnsafeRawPointer(Unmanaged<Sleep>.fromOpaque(info!).retain().toOpaque()) }
        unsafe context.release = { info in unsafe Unmanaged<Sleep>.fromOpaque(info!).release() }
        let timer = unsafe CFRunLoopTimerCreate(
            nil, .greatestFiniteMagnitude, 0, 0, 0,
            { _, info in unsafe SleepLoop.shared.end(Unmanaged<Sleep>.fromOpaque(info!).takeUnretainedValue()) }, &context)
        guard let timer else { fatalError("CoreRunLoopExecutors: no memory for a task's sleep") }
        shim_timer_set_instant(timer, instant)
        if let tolerance = sleep.tolerance { CFRunLoopTimerSetTolerance(timer, Double(tolerance.inNanoseconds) / 1e9) }
        CFRunLoopAddTimer(loop.getCFRunLoop(), timer, kCFRunLoopCommonModes)
    }

    private func end(_ sleep: Sleep) {
        if let deadline = sleep.awakeDeadline {
            let left = deadline - shim_monotonic_ns()
            if left > 0 { return start(sleep, at: sum(shim_elapsed_ns(), left)) }
        }
        sleep.wake()
    }
}

/// One sleep.
private final class Sleep: Sendable {
    let wake: @Sendable () -> Void
    let tolerance: Duration?
    /// By the clock that stands still while the system is suspended, for sleeps that go by it.
    let awakeDeadline: Int64?

    init(_ wake: @escaping @Sendable () -> Void, _ tolerance: Duration?, _ awakeDeadline: Int64?) {
        (self.wake, self.tolerance, self.awakeDeadline) = (wake, tolerance, awakeDeadline)
    }
}

private func sum(_ first: Int64, _ second: Int64) -> Int64 {
    let (sum, overflow) = first.addingReportingOverflow(second)
    return overflow ? .max : sum
}
