// SPDX-License-Identifier: Apache-2.0
//
// Reports of callouts that keep a loop from its sleep. The C library hands them to a thread of its own.

import CCoreRunLoop

/// The handler of one loop; freed when another takes its place, or when the loop's thread has ended.
private final class StallHandler: Sendable {
    let call: @Sendable (RunLoop.Stall) -> Void
    init(_ call: @escaping @Sendable (RunLoop.Stall) -> Void) { self.call = call }
}

extension RunLoop {
    /// For how long a loop has called the program without a sleep, and what its thread does.
    ///
    /// The corresponding C type is `CRLStall`.
    public struct Stall: Sendable, CustomStringConvertible {
        /// The loop.
        public let loop: RunLoop
        /// The mode of the innermost run when the stall was noticed; `nil` when there was no run.
        public let mode: Mode?
        /// Whether the stall has come to its end. Before that the thread is stuck.
        public let isOver: Bool
        /// How much time has passed since the first callout after the loop's last sleep.
        public let duration: Duration
        /// How many callouts had begun in that time when the stall was noticed.
        public let callouts: Int
        /// Addresses in the functions that were active when the stall was noticed, the innermost first.
        public let frames: [UInt]
        /// All this as lines of text, with the names of functions as far as the dynamic linker knows them.
        public let description: String

        fileprivate init(_ stall: CRLStall) {
            loop = unsafe RunLoop.of(stall.loop)
            mode = unsafe stall.mode.map(Mode.init)
            isOver = unsafe stall.isOver
            duration = unsafe .seconds(stall.duration)
            callouts = unsafe stall.callouts
            frames = unsafe UnsafeBufferPointer(start: stall.frames, count: stall.frameCount).map { UInt(bitPattern: $0) }
            description = unsafe String(cString: stall.text)
        }
    }

    /// Calls `handler` whenever callouts of the loop last longer than `limit` without a sleep, and again when that stall is over.
    ///
    /// The first call comes while the thread is stuck, and brings its backtrace. The handler runs on a thread of the library's own. It may
    /// take its time; other stalls wait meanwhile, or are only counted. A handler takes the place of the one before it. Any thread.
    ///
    /// The loop's thread is sent a real-time signal while it is stuck, which may end system calls such as `poll` early. Returns whether the
    /// loop is watched. It is not when the process has no thread, memory or signal left for that.
    ///
    /// ```swift
    /// RunLoop.main.onStall(longerThan: .milliseconds(250)) { stall in print(stall) }
    /// ```
    ///
    /// The corresponding C function is `CRLRunLoopSetStallHandler`.
    @discardableResult
    public func onStall(longerThan limit: Duration, _ handler: @escaping @Sendable (Stall) -> Void) -> Bool {
        unsafe CRLRunLoopSetStallHandler(
            loop, limit.inSeconds, { stall, info in unsafe object(StallHandler.self, from: info).call(Stall(stall!.pointee)) },
            retainedInfo(StallHandler(handler)), { info in unsafe releaseInfo(info) })
    }

    /// No longer watches the loop for stalls, not even if the environment asks for it. Any thread.
    public func ignoreStalls() { _ = CRLRunLoopSetStallHandler(loop, 0, nil, nil, nil) }
}
