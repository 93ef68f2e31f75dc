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
}
