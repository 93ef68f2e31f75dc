// SPDX-License-Identifier: Apache-2.0
//
// Tells everyone who waits for a loop's events that the loop is gone. An observer of no activity, which only the C loop keeps, does this.
// It is freed when the loop is taken down with its thread, or at once if that has happened before. The release calls the handlers.

import CCoreRunLoop
import Synchronization

/// The handlers of a loop's end.
package final class EndHandlers: Sendable {
    private struct State {
        var isWatching = false
        var hasEnded = false
        var handlers = Handlers<@Sendable () -> Void>()
    }
    private let state = Mutex(State())

    /// Registers `handler` to be called once, when the loop's thread has ended. Calls it at once if the thread has ended already.
    package func add(on loop: CFRunLoop, _ handler: @escaping @Sendable () -> Void) -> Int {
        let (number, mustWatch, hasEnded) = state.withLock { state -> (Int, Bool, Bool) in
            if state.hasEnded { return (0, false, true) }
            defer { state.isWatching = true }
            return (state.handlers.add(handler), !state.isWatching, false)
        }
        if hasEnded { handler() }
        if mustWatch { watch(loop) }
        return number
    }

    /// Whether the loop's thread has ended: then the handlers have been called, or are being called.
    package var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// The number of handlers.
    package var count: Int { state.withLock { $0.handlers.count } }

    package func remove(_ number: Int) {
        let dropped = state.withLock { $0.handlers.remove(number) }
        _ = dropped  // freed here, outside the lock
    }

    private func watch(_ loop: CFRunLoop) {
        let observer = unsafe CRLRunLoopObserverCreateWithFunction(
            nil, 0, true, 0, { _, _, _ in }, retainedInfo(self),
            { info in
                unsafe object(EndHandlers.self, from: info).tell()
                unsafe releaseInfo(info)
            })
        CFRunLoopAddObserver(loop, observer, kCFRunLoopDefaultMode)
    }

    private func tell() {
        let handlers = state.withLock { state in
            state.hasEnded = true
            return state.handlers.takeAll()
        }
        for handler in handlers { handler() }
    }
}

extension RunLoop {
    /// Whether the loop's thread has ended. Looks for itself, so that nobody need have registered a handler before.
    package var hasEnded: Bool {
        end.remove(end.add(on: loop) {})
        return end.hasEnded
    }

    /// Ends `continuation`'s stream with the loop's thread. Calls `cleanUp` when the stream has ended, for whatever reason.
    package func feed<Element>(_ continuation: AsyncStream<Element>.Continuation, cleanUp: @escaping @Sendable () -> Void) {
        let number = end.add(on: loop) { continuation.finish() }
        continuation.onTermination = { [end] _ in
            end.remove(number)
            cleanUp()
        }
    }
}
