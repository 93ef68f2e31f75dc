// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Counts the calls of a closure that are running, so that a call needs neither a lock nor a reference to the closure.
///
/// The closure lives until it has been given up and the last call has ended. Any thread may call. Calls may be nested, and a call may give
/// the closure up.
struct CallCount: ~Copyable, Sendable {
    /// Twice the number of calls, and 1 once the closure has been given up.
    private let state = Atomic<Int>(0)

    /// Begins a call. False if the closure has been given up; then the caller must not call `end`.
    func begin() -> Bool {
        var old = state.load(ordering: .relaxed)
        while old & 1 == 0 {
            let (exchanged, found) = state.weakCompareExchange(
                expected: old, desired: old + 2, successOrdering: .acquiring, failureOrdering: .relaxed)
            if exchanged { return true }
            old = found
        }
        return false
    }

    /// Ends a call. True if the caller must free the closure, because it was given up and this was the last call.
    func end() -> Bool { state.subtract(2, ordering: .acquiringAndReleasing).newValue == 1 }

    /// Lets no further call begin. True if the caller must free the closure: no call is running, and it was not given up before.
    func giveUp() -> Bool { state.bitwiseOr(1, ordering: .acquiringAndReleasing).oldValue == 0 }
}
