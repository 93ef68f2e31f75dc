// SPDX-License-Identifier: Apache-2.0

/// An item's closure, until the item is invalidated. Any thread.
@safe final class Callback<Argument>: @unchecked Sendable {
    /// An object: the closure itself could not be called without a reference of the call's own.
    private final class Closure {
        let call: (Argument) -> Void
        init(_ call: @escaping (Argument) -> Void) { self.call = call }
    }
    private let closure: Unmanaged<Closure>
    private let calls = CallCount()

    init(_ call: @escaping @Sendable (Argument) -> Void) { unsafe closure = .passRetained(Closure(call)) }

    deinit { drop() }

    /// Calls the closure, if it is still there.
    func callAsFunction(_ argument: Argument) {
        guard calls.begin() else { return }
        unsafe closure._withUnsafeGuaranteedRef { $0.call(argument) }
        if calls.end() { unsafe closure.release() }
    }

    /// Frees the closure, at once or by the end of the last call. What it holds may end this very item.
    func drop() {
        if calls.giveUp() { unsafe closure.release() }
    }
}
