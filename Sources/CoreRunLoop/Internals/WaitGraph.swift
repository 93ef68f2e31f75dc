// SPDX-License-Identifier: Apache-2.0
//
// Records which blocked thread waits for which other one, so that a circle becomes an error instead of a deadlock. The lock guards the
// table; a thread's own lock is taken inside it.

import CCoreRunLoop
import Synchronization

/// The waiting threads, identified by their loops: every thread has one.
final class WaitGraph: Sendable {
    static let shared = WaitGraph()

    /// An event for which a thread waits.
    enum Event: Sendable {
        /// A loop reaches a request.
        case turn(of: RunLoop)
        /// A thread ends.
        case end(of: Thread)

        /// The loop of the thread that makes the event happen; nil while that thread has not begun.
        fileprivate var bringer: UInt? {
            switch self {
            case .turn(let loop): address(of: loop.loop)
            case .end(let thread): thread.ownLoop.map { address(of: $0.loop) }
            }
        }

        /// Whether a time limit cannot help in a circle. A loop whose thread is waiting does not reach the request before the limit either.
        fileprivate var isInVainWithALimit: Bool { if case .turn = self { true } else { false } }
    }

    private struct Wait {
        let event: Event
        let isLimited: Bool
    }
    private let waits = Mutex<[UInt: Wait]>([:])

    /// Calls `wait`, which blocks the calling thread until `event`. Returns `nil` without a call if the event would never happen, because
    /// the thread that makes it happen waits for this one.
    func waiting<Result>(for event: Event, isLimited: Bool, _ wait: () -> Result) -> Result? {
        let waiter = address(of: CFRunLoopGetCurrent() as CFRunLoop)
        let isCircle = waits.withLock { waits in
            if Self.isCircle(from: waiter, Wait(event: event, isLimited: isLimited), waits) { return true }
            waits[waiter] = Wait(event: event, isLimited: isLimited)
            return false
        }
        if isCircle { return nil }
        defer { waits.withLock { _ = $0.removeValue(forKey: waiter) } }
        return wait()
    }

    private static func isCircle(from waiter: UInt, _ first: Wait, _ waits: [UInt: Wait]) -> Bool {
        var (wait, isEndless) = (first, !first.isLimited)
        // A circle of other threads, which have a limit, would never end this loop: the count bounds it.
        for _ in 0...waits.count {
            guard let bringer = wait.event.bringer else { return false }
            if bringer == waiter { return isEndless || first.event.isInVainWithALimit }
            guard let next = waits[bringer] else { return false }
            wait = next
            isEndless = isEndless && !next.isLimited
        }
        return false
    }
}
