// SPDX-License-Identifier: Apache-2.0

import CoreRunLoopShims

/// Joins a C object with the Swift object that has it as a stored property. They share one reference count, and a reference to either keeps
/// both alive. So the C object may refer to the Swift object without counting. A weak reference instead would cost most of a callout.
@safe struct JoinedObjects: Sendable {
    /// The C object's address. It is not counted, so the deinitializer may use it.
    @safe nonisolated(unsafe) private let address: UnsafeMutableRawPointer

    init<Object>(of object: Object) { unsafe address = unsafeBitCast(object, to: UnsafeMutableRawPointer.self) }

    /// Joins the two objects. Called once, at the end of the Swift object's initializer.
    func join(_ swiftObject: some AnyObject) { unsafe shim_join(address, Unmanaged.passUnretained(swiftObject).toOpaque()) }

    /// Parts the two objects. Called once, in the Swift object's deinitializer; the end of the stored property then frees the C object.
    func part() { unsafe shim_part(address) }
}
