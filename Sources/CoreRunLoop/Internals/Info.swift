// SPDX-License-Identifier: Apache-2.0
//
// The single place where Swift objects become the `info` pointers of C contexts and come back. A context owns one reference to its object.

import CCoreRunLoop

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

/// A closure that may not leave its thread, kept in an object that may: only the loop's own thread calls it, and that is the thread that
/// made it.
struct OwnThread<Closure>: @unchecked Sendable {
    let closure: Closure
    init(_ closure: Closure) { self.closure = closure }
}

extension [UInt8] {
    init(copying bytes: RawSpan) { self = unsafe bytes.withUnsafeBytes { unsafe Array($0) } }
}
