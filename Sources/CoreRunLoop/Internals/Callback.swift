// SPDX-License-Identifier: Apache-2.0

/// The closure of a timer, source or observer, until that is invalidated. Any thread.
@safe final class Callback<Argument>: Sendable {
    /// Holds the closure in an object, because a call of a bare closure would retain and release it.
    private final class Closure {
        let call: (Argument) -> Void
        init(_ call: @escaping (Argument) -> Void) { self.call = call }
    }
    /// `calls` says when it may be called, and when it is freed.
    @safe nonisolated(unsafe) private let closure: Unmanaged<Closure>
    private let calls = CallCount()

    init(_ call: @escaping @Sendable (Argument) -> Void) { unsafe closure = .passRetained(Closure(call)) }

    deinit { drop() }

    /// Calls the closure, unless it has been dropped.
    func callAsFunction(_ argument: Argument) {
        guard calls.begin() else { return }
        unsafe closure._withUnsafeGuaranteedRef { $0.call(argument) }
        if calls.end() { unsafe closure.release() }
    }

    /// Frees the closure at once, or at the end of its last running call. The closure's captures may hold the owner's last reference.
    func drop() {
        if calls.giveUp() { unsafe closure.release() }
    }
}
