// SPDX-License-Identifier: Apache-2.0
//
// Both loops of a thread in one run.

public import CoreRunLoop
import CoreRunLoopFoundationShims
import Foundation

extension CoreRunLoop::RunLoop {
    /// Whether a run of this package's loop serves the items of Foundation's loop of the same thread, and the other way round.
    ///
    /// It is so in every program that imports this module, unless ``separateFromFoundation()`` was called. It is not so where Foundation
    /// is linked statically, or was loaded before this module; the program then says so once on the standard error.
    public static var isJoinedWithFoundation: Bool { foundation_loops_are_joined() }

    /// Lets each loop serve its own items only, from now on and for good.
    ///
    /// It is for programs that want the two apart. Call it before the first run: a run that is under way may serve both until it ends.
    public static func separateFromFoundation() { foundation_loops_part() }

    /// Runs this loop in its default mode for `duration` or until it is stopped, also while it is empty.
    ///
    /// - Parameter duration: How long to run at most; `nil` means no limit, zero one pass without sleeping.
    /// - Returns: `.timedOut` when the time is up, `.stopped` when the loop was stopped.
    @available(*, noasync, message: "running a loop would block the task's thread")
    @available(*, deprecated, message: "every run serves Foundation's items as well: use run(in:for:)")
    @discardableResult
    public func runWithFoundation(for duration: Duration? = nil) throws -> RunResult {
        let alive = keepAlive()
        let result = run(in: .default, for: duration)
        alive.cancel()
        return result
    }
}
