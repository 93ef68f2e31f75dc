// SPDX-License-Identifier: Apache-2.0
//
// How a thread ends, who waits for that, and who is told of it.

import CoreRunLoopShims
import Synchronization

extension Thread {
    /// Ends the calling thread now.
    ///
    /// What Swift has on the stack is not unwound: objects and locks that its functions hold stay held, such as the loop in a call of
    /// `RunLoop.current.run()`, or the closure of a timer that is firing. This package's own functions keep nothing there of a run, of its
    /// token, of what was queued, and, built with optimization, of the thread's block. Return from ``main()`` where that is possible. Who
    /// waits for ``value`` gets ``ThreadError/exited``.
    @available(*, noasync, message: "a task has no thread to end")
    public static func exit() -> Never {
        current.finish(ThreadError.exited)
        shim_thread_exit()
    }

    // MARK: Waiting

    /// Waits until the thread has ended. Any number of threads may, any number of times.
    ///
    /// What would never come is not waited for, but reported on the standard error output: a thread's own end, and, without a limit, the
    /// end of one that waits for this thread without one, here or in ``performAndWait(inModes:timeout:_:)``, directly or by way of others.
    ///
    /// - Parameter timeout: How long at most; `nil` is without limit.
    /// - Returns: Whether it has ended.
    @available(*, noasync, message: "waiting would block the task's thread; use value")
    @discardableResult
    public func join(timeout: Duration? = nil) -> Bool {
        if end.wait(for: .zero) { return true }
        if ThreadState.existing?.thread === self {
            report("Thread.join: the thread \"\(name ?? "")\" would wait for its own end")
            return false
        }
        if let hasEnded = WaitGraph.shared.waiting(for: .end(of: self), isLimited: timeout != nil, { end.wait(for: timeout) }) {
            return hasEnded
        }
        report("Thread.join: the thread \"\(name ?? "")\" waits for the end of the one that would wait for it")
        return false
    }

    /// Waits until the thread has ended, and throws what its ``main()`` threw.
    ///
    /// - Throws: The error of ``main()``; ``ThreadError/exited`` after ``exit()``; why it could not be started.
    public var value: Void {
        get async throws {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let outcome = state.withLock { state -> Result<Void, any Error>? in
                    if state.phase == .finished { return state.failure.map { .failure($0) } ?? .success(()) }
                    state.waiting.append(continuation)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        }
    }

    // MARK: Being told

    /// Has `handler` called on the thread when it is about to end, while its dictionary and its loop are still there; not any more when
    /// those who asked are being told. Any thread.
    ///
    /// It may be a closure of an actor whose thread this is: of one that conforms to ``RunLoopActor`` with this thread's loop, or the main
    /// actor's on the main thread. It is called at once, without a task, and on another thread it stops the process. Of a thread that could
    /// not be started it is called on the one that tried.
    public func onExit(_ handler: @escaping @isolated(any) @Sendable () -> Void) {
        let handler = checked(handler)
        state.withLock { if !$0.isEndTold { $0.willExit.append(handler) } }
    }

    /// A handler that is called when threads end, as long as the registration lives.
    public struct ExitRegistration: ~Copyable, Sendable {
        fileprivate let number: Int
        /// Ends it now.
        public consuming func cancel() {}
        deinit {
            let dropped = Thread.exitHandlers.withLock { $0.handlers.removeValue(forKey: number) }
            _ = dropped  // freed here, outside the lock
        }
    }

    private struct ExitHandlers {
        var last = 0
        var handlers: [Int: @Sendable (Thread) -> Void] = [:]
    }
    private static let exitHandlers = Mutex(ExitHandlers())

    /// Has `handler` called whenever a thread that has an object is about to end, on that thread: what Cocoa posts as `NSThreadWillExit`.
    ///
    /// A thread that something else has started has one if it asked for ``current``. No actor's closure, as threads that end are nobody's
    /// in common: ``onExit(_:)`` takes one's for its own thread.
    public static func onWillExit(_ handler: @escaping @Sendable (Thread) -> Void) -> ExitRegistration {
        let number = exitHandlers.withLock { state in
            state.last += 1
            state.handlers[state.last] = handler
            return state.last
        }
        return ExitRegistration(number: number)
    }

    private static func announceExit(of thread: Thread) {
        for (_, handler) in exitHandlers.withLock({ $0.handlers }).sorted(by: { $0.key < $1.key }) { handler(thread) }
    }

    // MARK: The end itself

    /// For a thread that something else has started, or has ended.
    func finishUnlessFinished() { if !hasEnded { finish(isForeign ? nil : ThreadError.exited) } }

    /// On the thread itself, or where it could not be started. Once, or once more out of a handler that ends the thread.
    func finish(_ failure: (any Error)?) {
        tellEnd()
        let last = state.withLock { state in
            state.phase = .finished
            state.failure = failure
            defer { (state.early, state.waiting, state.dictionary, state.companion, state.body) = ([], [], [:], nil, nil) }
            return (
                loop: state.loop, early: state.early, waiting: state.waiting, freed: (state.dictionary, state.companion, state.body)
            )
        }
        for request in last.early { request(nil) }
        last.loop?.refuseRequests()
        end.open()
        for continuation in last.waiting { continuation.resume(with: failure.map { .failure($0) } ?? .success(())) }
    }

    private func tellEnd() {
        let (isTold, handlers) = state.withLock { state in
            defer { (state.isEndTold, state.willExit) = (true, []) }
            return (state.isEndTold, state.willExit)
        }
        if isTold { return }
        for handler in handlers { handler() }
        Self.announceExit(of: self)
    }
}
