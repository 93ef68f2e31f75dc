// SPDX-License-Identifier: Apache-2.0
//
// Top-level asynchronous code, whose main thread is given to a host: a loop that the program writes, with the main loop's passes in it.
// With the argument "deaf" it has none, and reads what the library says of that.

import Checks
import CoreRunLoop
import CoreRunLoopMain
import Glibc
import Synchronization

/// What the host has done.
final class Host: Sendable {
    let rounds = Atomic(0)
}
let host = Host()

if CommandLine.arguments.dropFirst().first == "deaf" {
    check("a host may run that never asks", RunLoop.mainThreadRuns {
        var ends: [Int32] = [0, 0]
        var bytes = [UInt8](repeating: 0, count: 200)
        guard pipe(&ends) == 0, dup2(ends[1], STDERR_FILENO) >= 0 else { exit(1) }
        let count = read(ends[0], &bytes, bytes.count)
        print(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self))
        endProgram()
    })
    try await Task.sleep(for: .milliseconds(1))
    check("nobody serves the main actor", false)
}
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
