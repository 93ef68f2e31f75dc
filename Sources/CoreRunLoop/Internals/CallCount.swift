// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Counts the calls of a closure that are under way, so that calling it takes neither a lock nor a reference of its own: the closure stays
/// until it has been given up and the last call has ended. Any thread; calls may be nested, and give it up.
struct CallCount: ~Copyable, Sendable {
    /// Twice the number of calls, and 1 once the closure has been given up.
    private let state = Atomic<Int>(0)

    /// A call begins. False, and nothing is to be ended, if the closure has been given up.
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

    /// A call has ended. True if the closure is to be freed: it was the last.
    func end() -> Bool { state.subtract(2, ordering: .acquiringAndReleasing).newValue == 1 }

    /// No call is to begin any more. True if the closure is to be freed: none is under way, and this has not been called before.
    func giveUp() -> Bool { state.bitwiseOr(1, ordering: .acquiringAndReleasing).oldValue == 0 }
}
