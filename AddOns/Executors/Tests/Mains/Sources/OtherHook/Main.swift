// SPDX-License-Identifier: Apache-2.0
//
// Another library sets the hooks as well, before or after this one, as OTHER_HOOKS in the environment says: this one stands back, or is
// called by the other.

import Checks
import CoreRunLoop
import CoreRunLoopMain
import Glibc
import OtherHookSetter

@main struct Program {
    static func main() async throws {
        let way = getenv("OTHER_HOOKS").map { String(cString: $0) } ?? ""
        if way == "main" || way == "chain" { set_main_hook() }
        let stands = way == "later"
        #if JOBS_ON_LOOP
            let runs = way != "first"  // by the other's hook, which has the runtime run the main executor
        #else
            let runs = stands || way == "chain"
        #endif
        check("the property", RunLoop.mainThreadRunsLoop == stands)
        if !stands { check("no host will run", !RunLoop.mainThreadRuns {}) }
        try await Task.sleep(for: .milliseconds(1))
        check("the main thread", isOnFirstThread() == runs)
        check("the property afterwards", RunLoop.mainThreadRunsLoop == runs)
        endProgram()
    }
}
