// SPDX-License-Identifier: Apache-2.0
//
// A synchronous main, which gives the first thread to a loop itself, by its argument: this package's, Foundation's or the dispatch library.

import Checks
import CoreRunLoop
import Dispatch
import Foundation

let way = CommandLine.arguments.dropFirst().first

/// The dispatch library ends the first thread, and others serve its main queue.
let leavesFirstThread = way == "dispatch"

Task { @MainActor in
    check("the main actor is on the first thread", isOnFirstThread() != leavesFirstThread)
    await Task.detached {}.value
    check("after an await too", isOnFirstThread() != leavesFirstThread)
    try await Task.sleep(for: .milliseconds(1))
    check("after a sleep too", isOnFirstThread() != leavesFirstThread)
    DispatchQueue.main.async {
        check("the main queue is served", isOnFirstThread() != leavesFirstThread)
        endProgram()
    }
}
switch way {
case "dispatch": dispatchMain()
case "foundation": Foundation.RunLoop.main.run()
default: CoreRunLoop.RunLoop.main.run()
}
