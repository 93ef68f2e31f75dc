// SPDX-License-Identifier: Apache-2.0
//
// Converts Swift objects to the `info` pointers of C contexts and back; no other file does. A context owns one reference to its object.

import CCoreRunLoop
import CoreRunLoopShims

/// Returns a new reference to `object` as a context's `info`. `releaseInfo` gives it back.
func retainedInfo(_ object: some AnyObject) -> UnsafeMutableRawPointer {
    unsafe Unmanaged.passRetained(object).toOpaque()
}

/// Returns the object behind an `info`.
func object<T: AnyObject>(_ type: T.Type = T.self, from info: UnsafeMutableRawPointer?) -> T {
    guard let info = unsafe info else { fault("a context of the overlay's own has lost its info") }
    return unsafe Unmanaged<T>.fromOpaque(info).takeUnretainedValue()
}

/// Calls `use` with the object behind an `info`, without counting references. It is for callbacks: the context keeps its reference until
/// they return.
func withBorrowed<T: AnyObject>(_ type: T.Type = T.self, from info: UnsafeMutableRawPointer?, to use: (T) -> Void) {
    guard let info = unsafe info else { fault("a context of the overlay's own has lost its info") }
    unsafe Unmanaged<T>.fromOpaque(info)._withUnsafeGuaranteedRef { use($0) }
}

/// Gives a context's reference back. For `void (*release)(void *)`.
func releaseInfo(_ info: UnsafeMutableRawPointer?) {
    if let info = unsafe info { unsafe Unmanaged<AnyObject>.fromOpaque(info).release() }
}

/// Gives a context's reference back. For `void (*release)(const void *)`.
func releaseConstantInfo(_ info: UnsafeRawPointer?) {
    if let info = unsafe info { unsafe Unmanaged<AnyObject>.fromOpaque(info).release() }
}

/// Unwraps the result of a C function that returns NULL only when there is no memory.
func require<T>(_ created: T?, _ function: StaticString) -> T {
    guard let created else { fault("\(function): there is no memory") }
    return created
}

/// Returns the address of a C object, which identifies it.
func address<T>(of reference: T) -> UInt { unsafe unsafeBitCast(reference, to: UInt.self) }

/// Holds a closure that must not leave its thread in an object that may.
///
/// Only the thread that created this object uses the closure, and that thread also frees it with its captures.
final class OwnThread<Closure>: Sendable {
    @safe nonisolated(unsafe) private var bound: Closure?
    private let thread = shim_thread_number()
    private let loop: CFRunLoop = CFRunLoopGetCurrent()

    init(_ closure: Closure) { bound = closure }

    deinit {
        if shim_thread_number() == thread { return }
        // The loop frees the closure in its next pass or when it is taken down. After that it is freed here, as the thread is gone.
        unsafe shim_perform_and_wake(loop, { _ in }, moveOut(), { info in unsafe releaseInfo(info) })
    }

    /// Moves the closure into an `info`. After the return nothing else in this object refers to it.
    private func moveOut() -> UnsafeMutableRawPointer { unsafe retainedInfo(Moved(bound.take())) }

    private final class Moved {
        private let closure: Closure?
        init(_ closure: consuming Closure?) { self.closure = closure }
    }

    /// The closure. Access from another thread stops the process with a message.
    var closure: Closure {
        guard shim_thread_number() == thread, let bound else {
            fault("a closure that is bound to its thread was called on another one, by fire() or in that thread's loop")
        }
        return bound
    }
}

extension [UInt8] {
    init(copying bytes: RawSpan) { self = unsafe bytes.withUnsafeBytes { unsafe Array($0) } }
}
