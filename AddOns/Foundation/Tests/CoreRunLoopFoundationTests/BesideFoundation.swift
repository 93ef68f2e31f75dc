// SPDX-License-Identifier: Apache-2.0
//
// Which of the two modules' methods the files of this module mean that import Foundation as well: no other module may be imported here.

import CoreRunLoopFoundation

extension Process {
    func waitUntilExit() { self.CoreRunLoopFoundation::waitUntilExit() }
}
