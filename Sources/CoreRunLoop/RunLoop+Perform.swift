// SPDX-License-Identifier: Apache-2.0
//
// Closures queued for a loop: performBlock's rules, but that these wake the loop.

import CCoreRunLoop
import CoreRunLoopShims

/// One queued closure; freed after it ran, or when the loop is taken down.
private final class QueuedBlock: Sendable {
    let block: @Sendable () -> Void
    init(_ block: @escaping @Sendable () -> Void) { self.block = block }
}

extension RunLoop {
    /// Queues `block` to be run once by the loop, in the order of queueing, and wakes the loop. Any thread.
    ///
    /// A block that is queued by a block waits for the next pass. Blocks keep a mode alive while queued, and do not end
    /// ``run(mode:before:)``. If the loop's thread ends before, the block is dropped.
    @preconcurrency
    public func perform(_ block: @escaping @isolated(any) @Sendable () -> Void) { perform(inModes: [.common], block: block) }

    /// Queues `block` to be run once by the loop, in whichever of `modes` it runs first, and wakes the loop. Any thread.
    ///
    /// Without any mode nothing happens.
    ///
    /// The corresponding C function is `CFRunLoopPerformBlock`, which does not wake the loop.
    @preconcurrency
    public func perform(inModes modes: [Mode], block: @escaping @isolated(any) @Sendable () -> Void) {
        guard !modes.isEmpty else { return }
        let info = unsafe retainedInfo(QueuedBlock(checked(block)))
        unsafe withModeNames(modes) { names in
            unsafe CRLRunLoopPerformFunction(
                loop, names, { info in unsafe object(QueuedBlock.self, from: info).block() }, info, { info in unsafe releaseInfo(info) })
        }
        CFRunLoopWakeUp(loop)
    }

    /// A mode's name, or an array of names.
    private func withModeNames(_ modes: [Mode], _ body: (CFTypeRef?) -> Void) {
        if modes.count == 1 {
            withExtendedLifetime(modes[0].name) { name in unsafe body(unsafeBitCast(name, to: CFTypeRef?.self)) }
            return
        }
        var pointers = unsafe modes.map { unsafe unsafeBitCast($0.name, to: UnsafeRawPointer?.self) }
        let names = unsafe withUnsafePointer(to: kCFTypeArrayCallBacks) { callbacks in
            unsafe require(CFArrayCreate(nil, &pointers, pointers.count, callbacks), "RunLoop.perform")
        }
        withExtendedLifetime((names, modes)) { unsafe body(unsafeBitCast(names, to: CFTypeRef?.self)) }
    }
}
