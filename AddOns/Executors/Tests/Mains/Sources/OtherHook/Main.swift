// SPDX-License-Identifier: Apache-2.0
//
// Another library has set the hook first: this one stands back.

import Checks
import CoreRunLoop
import CoreRunLoopMain

@main struct Program {
    static func main() async throws {
        check("the property", !RunLoop.mainThreadRunsLoop)
        check("no host will run", !RunLoop.mainThreadRuns {})
        try await Task.sleep(for: .milliseconds(1))
        check("still here", true)
        endProgram()
    }
}
