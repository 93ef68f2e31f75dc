// SPDX-License-Identifier: Apache-2.0

import CoreRunLoopShims

/// A C object and the Swift object that has it as a stored property, joined: a reference to either keeps both alive, with one count. So the
/// C object may refer to the Swift object without counting, and needs no weak reference, whose cost would be most of a callout's.
@safe struct Whole: @unchecked Sendable {
    /// Of the C object, not counted: what the deinitializer may use.
    private let address: UnsafeMutableRawPointer

    init<Object>(of object: Object) { unsafe address = unsafeBitCast(object, to: UnsafeMutableRawPointer.self) }

    /// Once, at the end of the Swift object's initializer.
    func join(_ swiftObject: some AnyObject) { unsafe shim_join(address, Unmanaged.passUnretained(swiftObject).toOpaque()) }

    /// Once, in its deinitializer: the stored property's end then frees the C object.
    func part() { unsafe shim_part(address) }
}
