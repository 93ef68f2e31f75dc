// SPDX-License-Identifier: Apache-2.0
//
// The single place where Swift objects become the `info` pointers of C contexts and come back. A context owns one reference to its object.

import CCoreRunLoop
import CoreRunLoopShims

/// A reference to `object` as a context's `info`, to be given back by `releaseInfo`.
func retainedInfo(_ object: some AnyObject) -> UnsafeMutableRawPointer {
    unsafe Unmanaged.passRetained(object).toOpaque()
}

/// The object behind an `info`, borrowed.
func object<T: AnyObject>(_ type: T.Type = T.self, from info: UnsafeMutableRawPointer?) -> T {
    guard let info = unsafe info else { fault("a context of the overlay's own has lost its info") }
    return unsafe Unmanaged<T>.fromOpaque(info).takeUnretainedValue()
}

/// The same for the length of `use`, without counting: in a callback the context's reference lasts until it returns.
func lend<T: AnyObject>(_ type: T.Type = T.self, from info: UnsafeMutableRawPointer?, to use: (T) -> Void) {
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

/// What the C library returns where only a lack of memory gives NULL.
func require<T>(_ created: T?, _ function: StaticString) -> T {
    guard let created else { fault("\(function): there is no memory") }
    return created
}

/// The address of a C object, for identity.
func address<T>(of reference: T) -> UInt { unsafe unsafeBitCast(reference, to: UInt.self) }

/// A closure that may not leave the thread that made this, in an object that may: nor does what it holds, which that thread frees. Only it
/// uses the closure, and whoever ends this when no other reference is left.
final class OwnThread<Closure>: @unchecked Sendable {
    private var bound: Closure?
    private let thread = shim_thread_number()
    private let loop: CFRunLoop = CFRunLoopGetCurrent()

    init(_ closure: Closure) { bound = closure }

    deinit {
        if shim_thread_number() == thread { return }
        // In the loop's next pass, or when it is taken down; here if it has been, as nobody of that thread is left.
        unsafe shim_perform_and_wake(loop, { _ in }, moveOut(), { info in unsafe releaseInfo(info) })
    }

    /// The closure as an `info`: once this has returned nothing else here refers to it.
    private func moveOut() -> UnsafeMutableRawPointer { unsafe retainedInfo(Moved(bound.take())) }

    private final class Moved {
        private let closure: Closure?
        init(_ closure: consuming Closure?) { self.closure = closure }
    }

    /// To be called, on its own thread: others stop the process with a sentence.
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
