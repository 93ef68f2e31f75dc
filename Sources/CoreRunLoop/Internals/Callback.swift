// SPDX-License-Identifier: Apache-2.0

/// An item's closure, until the item is invalidated. Any thread.
///
/// The closure lies in an object of its own: reading a function out of a generic value would allocate at each event.
final class Callback<Argument>: @unchecked Sendable {
    private final class Closure: @unchecked Sendable {
        let call: (Argument) -> Void
        init(_ call: @escaping (Argument) -> Void) { self.call = call }
    }
    private let closure: Mutex<Closure?>

    init(_ call: @escaping @Sendable (Argument) -> Void) { closure = Mutex(Closure(call)) }

    /// Calls the closure, if it is still there, without the lock.
    func callAsFunction(_ argument: Argument) {
        if let closure = closure.withLock({ $0 }) { closure.call(argument) }
    }

    func drop() {
        let dropped = closure.withLock { closure in
            defer { closure = nil }
            return closure
        }
        _ = dropped  // freed here, outside the lock: what it holds may end this very item
    }
}
