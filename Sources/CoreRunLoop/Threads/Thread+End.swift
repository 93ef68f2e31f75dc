// SPDX-License-Identifier: Apache-2.0
//
// The end of a thread: exit, waiting for it, and the handlers that it calls.

import CoreRunLoopShims
import Synchronization

extension Thread {
    /// Ends the calling thread now.
    ///
    /// Swift's stack is not unwound: objects and locks that its functions hold stay held. Examples are the loop in a call of
    /// `RunLoop.current.run()`, and the closure of a timer that is firing. This package's own functions keep no run, token or queued
    /// request on the stack. Built with optimization, they do not keep the thread's block there either. Return from ``main()`` where that
    /// is possible. A task that waits for ``value`` gets ``ThreadError/exited``.
    @available(*, noasync, message: "a task has no thread to end")
    public static func exit() -> Never {
        current.finish(ThreadError.exited)
        shim_thread_exit()
    }

    // MARK: Waiting

    /// Waits until the thread has ended. Any number of threads may, any number of times.
    ///
    /// A wait that could never end is reported on the standard error output instead. This is so for a thread's own end. A wait without a
    /// limit is refused too if that thread waits for this one without a limit. Such a wait may be here or in
    /// ``performAndWait(in:timeout:_:)``, directly or by way of other threads.
    ///
    /// - Parameter timeout: The longest time to wait; `nil` means no limit.
    /// - Returns: Whether the thread has ended.
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
    /// - Throws: The error of ``main()``; ``ThreadError/exited`` after ``exit()``; why it could not be started; `CancellationError` when
    ///   the task is cancelled meanwhile. The thread goes on then.
    public var value: Void {
        get async throws {
            if let outcome { return try outcome.get() }
            try await waitInTask { number, tell in
                state.withLock { $0.waiting.append(Wait(number, (), nil, tell)) }
                if let outcome, let wait = state.withLock({ $0.waiting.remove(number) }) { wait.finish(outcome) }
            } giveUp: { [self] number in
                state.withLock { $0.waiting.remove(number) }?.finish(.failure(CancellationError()))
            }
        }
    }

    /// How the thread has ended; `nil` before.
    private var outcome: Result<Void, any Error>? {
        state.withLock { state in state.phase == .finished ? state.failure.map { .failure($0) } ?? .success(()) : nil }
    }

    // MARK: Being told

    /// Registers `handler` to be called on the thread when it is about to end. Its dictionary and its loop still exist then. A handler that
    /// is added while the handlers are being called is not called any more. Any thread.
    ///
    /// The handler may be a closure of an actor whose thread this is. Such an actor conforms to ``RunLoopActor`` with this thread's loop,
    /// or is the main actor on the main thread. The closure is called at once, without a task; any other actor's is sent to its actor. If
    /// the thread could not be started, the handler is called on the thread that tried to start it.
    public func onExit(_ handler: @escaping @isolated(any) @Sendable () -> Void) {
        let handler = onActorOf(handler)
        state.withLock { if !$0.isEndTold { $0.willExit.append(handler) } }
    }

    /// A handler that is called when threads end, as long as the registration lives.
    public struct ExitRegistration: ~Copyable, Sendable {
        fileprivate let number: Int
        /// Ends it now; the registration may stay where it is, as in a property. Once more has no effect. Any thread.
        public func cancel() {
            let dropped = Thread.exitHandlers.withLock { $0.handlers.removeValue(forKey: number) }
            _ = dropped  // freed here, outside the lock
        }
        deinit { cancel() }
    }

    private struct ExitHandlers {
        var last = 0
        var handlers: [Int: @Sendable (Thread) -> Void] = [:]
    }
    private static let exitHandlers = Mutex(ExitHandlers())

    /// Registers `handler` to be called whenever a thread that has an object is about to end, on that thread. Cocoa posts
    /// `NSThreadWillExit` then.
    ///
    /// A thread that something else has started has an object if it asked for ``current``. The closure cannot be an actor's, because the
    /// ending threads share no actor. ``onExit(_:)`` takes an actor's closure for its own thread.
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
        var last = state.withLock { state in
            state.phase = .finished
            state.failure = failure
            defer { (state.early, state.dictionary, state.companion, state.body) = ([], [:], nil, nil) }
            return (
                loop: state.loop, early: state.early, waiting: state.waiting.takeAll(),
                freed: (state.dictionary, state.companion, state.body)
            )
        }
        for request in last.early { request(nil) }
        last.loop?.refuseRequests()
        last.freed = ([:], nil, nil)  // released before whoever waits is told, as a join may be followed by a look at what they held
        end.open()
        for wait in last.waiting { wait.finish(failure.map { .failure($0) } ?? .success(())) }
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
