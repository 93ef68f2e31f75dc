// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import CoreRunLoopGLib
import HostChecks
import HostInterface

makeHost()
let host = RunLoop.main.attachToGLib(onStop: countStop)
check("it is attached", host != nil)
host?.detach()
check("it is attached again", RunLoop.main.attachToGLib(onStop: countStop) != nil)
Task {
    try await checkHost()
    endProgram()
}
host_run()
