// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import CoreRunLoopLibuv
import HostChecks

@main struct Program {
    static func main() async throws { try await runAsynchronousMain { RunLoop.main.attachToLibuv(onStop: countStop) != nil } }
}
