// SPDX-License-Identifier: Apache-2.0
//
// Closures queued for a loop, by the rules of performBlock. Unlike performBlock, these functions wake the loop.

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
    public func perform(_ block: @escaping @isolated(any) @Sendable () -> Void) {
        unsafe withModeName(.common) { name in unsafe queue(block, for: name) }
    }

    /// Queues `block` to be run once by the loop, in whichever of `modes` it runs first, and wakes the loop. Any thread.
    ///
    /// Without any mode nothing happens.
    ///
    /// The corresponding C function is `CFRunLoopPerformBlock`, which does not wake the loop.
    @preconcurrency
    public func perform(inModes modes: [Mode], block: @escaping @isolated(any) @Sendable () -> Void) {
        guard !modes.isEmpty else { return }
        unsafe withModeNames(modes) { names in unsafe queue(block, for: names) }
    }

    private func queue(_ block: @escaping @isolated(any) @Sendable () -> Void, for names: CFTypeRef?) {
        unsafe CRLRunLoopPerformFunction(
            loop, names, { info in unsafe object(QueuedBlock.self, from: info).block() }, retainedInfo(QueuedBlock(onActorOf(block))),
            { info in unsafe releaseInfo(info) })
        CFRunLoopWakeUp(loop)
    }

    private func withModeName(_ mode: Mode, _ body: (CFTypeRef?) -> Void) {
        withExtendedLifetime(mode.name) { name in unsafe body(unsafeBitCast(name, to: CFTypeRef?.self)) }
    }

    /// A mode's name, or an array of names.
    private func withModeNames(_ modes: [Mode], _ body: (CFTypeRef?) -> Void) {
        if modes.count == 1 {
            unsafe withModeName(modes[0], body)
            return
        }
        var pointers = unsafe modes.map { unsafe unsafeBitCast($0.name, to: UnsafeRawPointer?.self) }
        let names = unsafe withUnsafePointer(to: kCFTypeArrayCallBacks) { callbacks in
            unsafe require(CFArrayCreate(nil, &pointers, pointers.count, callbacks), "RunLoop.perform")
        }
        withExtendedLifetime((names, modes)) { unsafe body(unsafeBitCast(names, to: CFTypeRef?.self)) }
    }
}
