// SPDX-License-Identifier: Apache-2.0

import HostChecks
import HostInterface

makeHost()
check("it is attached", host_attach({ _ in countStop() }, nil))
Task {
    try await checkHost()
    endProgram()
}
host_run()
