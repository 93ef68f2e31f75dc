// SPDX-License-Identifier: Apache-2.0

import HostChecks
import HostInterface

@main struct Program {
    static func main() async throws { try await runAsynchronousMain { host_attach({ _ in countStop() }, nil) } }
}
