// SPDX-License-Identifier: Apache-2.0
//
// Apple's C interface comes with the overlay; here are the spellings of Darwin that the importer cannot give.

@_exported public import CCoreRunLoop

/// Queues `block` for the loop, as the C function of this name does, with the mode's name typed. The loop is not woken.
@preconcurrency
public func CFRunLoopPerformBlock(_ loop: CFRunLoop?, _ mode: CFRunLoopMode, _ block: @escaping @isolated(any) @Sendable () -> Void) {
    let block = onActorOf(block)
    withExtendedLifetime(mode) {
        unsafe CCoreRunLoop.CFRunLoopPerformBlock(loop, unsafeBitCast(mode, to: CFTypeRef?.self), block)
    }
}

extension CFRunLoopMode {
    /// The mode itself: on Darwin a mode is a structure around its name.
    public var rawValue: CFString { self }
}
