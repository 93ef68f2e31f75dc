// SPDX-License-Identifier: Apache-2.0

import FirstThread
import Glibc
import Synchronization

/// Whether the caller runs on the process's first thread.
public func isOnFirstThread() -> Bool { is_first_thread() }

private let failures = Atomic(0)

/// Prints a line; a program ends with the number of those that failed.
public func check(_ name: String, _ holds: Bool) {
    print(holds ? "ok   \(name)" : "FAIL \(name)")
    if !holds { failures.add(1, ordering: .relaxed) }
}

/// Ends the process.
public func endProgram() -> Never { exit(Int32(failures.load(ordering: .relaxed))) }

/// How many checks have failed.
public func failureCount() -> Int { failures.load(ordering: .relaxed) }
