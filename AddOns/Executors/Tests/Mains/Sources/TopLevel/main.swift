// SPDX-License-Identifier: Apache-2.0
//
// Top-level asynchronous code, whose main thread is given to a host: a loop that the program writes, with the main loop's passes in it.

import Checks
import CoreRunLoop
import CoreRunLoopMain
import Synchronization

/// What the host has done.
final class Host: Sendable {
    let rounds = Atomic(0)
}
let host = Host()

check("a host may run", RunLoop.mainThreadRuns {
    while host.rounds.load(ordering: .relaxed) < 3 {
        host.rounds.add(1, ordering: .relaxed)
        _ = RunLoop.main.run(in: .default, for: .milliseconds(1))
    }
})
check("main thread at first", isOnFirstThread())
try await Task.sleep(for: .milliseconds(20))
check("main thread after a sleep", isOnFirstThread())
check("the host ran first, then the main loop", host.rounds.load(ordering: .relaxed) == 3)
endProgram()
