// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import CoreRunLoopGLib
import HostChecks

@main struct Program {
    static func main() async throws { try await runAsynchronousMain { RunLoop.main.attachToGLib(onStop: countStop) != nil } }
}
