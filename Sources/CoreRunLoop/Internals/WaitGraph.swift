// SPDX-License-Identifier: Apache-2.0
//
// Which blocked thread waits for which other one, so that a circle is an error and not the end of the program. The lock guards the table; a
// thread's own is taken inside it.

import CCoreRunLoop

/// Threads that wait, by their loops: every thread has one.
final class WaitGraph: Sendable {
    static let shared = WaitGraph()

    /// What a thread waits for.
    enum Event: Sendable {
        /// That a loop comes to a request.
        case turn(of: RunLoop)
        /// That a thread ends.
        case end(of: Thread)

        /// Who brings it; nobody as long as the thread has not begun.
        fileprivate var bringer: UInt? {
            switch self {
            case .turn(let loop): address(of: loop.loop)
            case .end(let thread): thread.ownLoop.map { address(of: $0.loop) }
            }
        }

        /// Whether a limit in a circle makes no difference: a loop whose thread waits does not come to the request before the limit either.
        fileprivate var isInVainWithALimit: Bool { if case .turn = self { true } else { false } }
    }

    private struct Wait {
        let event: Event
        let isLimited: Bool
    }
    private let waits = Mutex<[UInt: Wait]>([:])

    /// Calls `wait`, which is to block the calling thread until `event`; `nil`, without a call, if that would never come, as who is to
    /// bring it waits for this thread.
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
        // Circles of others, which have a limit, come to no end here.
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
