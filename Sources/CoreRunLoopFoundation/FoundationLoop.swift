// SPDX-License-Identifier: Apache-2.0
//
// Both loops of a thread in one run: Foundation's waits, and this package's is a guest in it.

public import CoreRunLoop
import CoreRunLoopFoundationShims
import Foundation

extension CoreRunLoop::RunLoop {
    /// Runs this loop and Foundation's loop of the same thread, each in its default mode, for `duration` or until one of them is stopped.
    ///
    /// A run of this loop alone does not serve what Foundation adds to its own, where a library asks it to: its timers, the postings of its
    /// `NotificationQueue`, and the background reading and waiting of a `FileHandle`, which works on the main thread only. Here
    /// Foundation's loop waits for both, and this one makes a pass whenever it has something to do. The run goes on while both are empty.
    /// What runs one of the loops in a callback serves that one only; a call of this function in a callback of this loop returns at once.
    ///
    /// - Parameter duration: How long at most; `nil` is without limit, zero one pass without sleeping.
    /// - Returns: `.timedOut` when the time is up, `.stopped` when one of the loops was stopped.
    /// - Throws: `POSIXError` with `EMFILE` when there is no descriptor left by which one loop could wait for the other.
    @available(*, noasync, message: "running a loop would block the task's thread")
    @discardableResult
    public func runWithFoundation(for duration: Duration? = nil) throws -> RunResult {
        guard let descriptor = pollableDescriptor, let watch = unsafe foundation_loop_watch(descriptor) else { throw POSIXError(.EMFILE) }
        defer { unsafe foundation_loop_forget(watch) }
        let end = duration.map { SuspendingClock.now + min($0, .seconds(1_000_000_000)) }
        let alive = keepAlive()
        let result = passesWithFoundation(watching: descriptor, until: end)
        leaveHosted()
        alive.cancel()
        return result
    }

    /// Passes until one of the loops is stopped, or until `end`.
    private func passesWithFoundation(watching descriptor: Int32, until end: SuspendingClock.Instant?) -> RunResult {
        while prepareHosted() {
            let isReady = foundation_loop_is_readable(descriptor)
            let waits = [isReady ? .zero : hostedTimeout, end.map { $0 - .now }].compactMap(\.self)
            let theirs = foundation_loop_run(waits.min().map { max($0 / .seconds(1), 0) } ?? 1e20)
            if let result = dispatchHosted() { return result }
            if theirs == FOUNDATION_LOOP_STOPPED { return .stopped }
            if let end, end <= .now { return .timedOut }
        }
        return .stopped
    }
}
