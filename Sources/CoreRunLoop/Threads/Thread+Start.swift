// SPDX-License-Identifier: Apache-2.0
//
// The start of a thread, and its loop for callers that ask for it before the thread has begun.

import CoreRunLoopShims
import Synchronization

extension Thread {
    /// Starts a thread that runs `block`.
    @preconcurrency
    public static func detachNewThread(_ block: @escaping @Sendable () throws -> Void) { Thread(block: block).start() }

    /// Starts the thread.
    ///
    /// - Throws: ``ThreadError/alreadyStarted(_:)``, ``ThreadError/invalidStackSize(_:)``, or ``ThreadError/system(_:)`` when the system
    ///   has no thread left. A thread that could not be started has ended.
    public func launch() throws(ThreadError) {
        var stackSize = self.stackSize
        if stackSize == Int(shim_default_stack_size()) { stackSize = 0 }  // the system's own, whatever it is
        if isForeign
            || !state.withLock({ state in
                defer { if state.phase == .new { state.phase = .running } }
                return state.phase == .new
            })
        {
            throw .alreadyStarted(name ?? "")
        }
        do throws(ThreadError) {
            if stackSize != 0 { try Self.check(stackSize: stackSize) }
            Self.announceFirstStart()
            let info = unsafe retainedInfo(self)
            let error = unsafe shim_thread_start(
                UInt(stackSize),
                { info in
                    unsafe withBorrowed(Thread.self, from: info) { $0.prepare() }
                    unsafe releaseInfo(info)  // now the thread's own state keeps it
                    unsafe withBorrowed(Thread.self, from: info) { $0.begin() }
                }, info)
            if error != 0 {
                unsafe releaseInfo(info)
                throw .system(error)
            }
        } catch {
            finish(error)
            throw error
        }
    }

    /// On the new thread.
    private func begin() {
        var failure: (any Error)?
        if !isCancelled {
            do { try main() } catch { failure = error }
        }
        finish(failure)
    }

    /// The closure's captures are not on the stack while ``main()`` runs, because that may end by ``exit()``.
    private func prepare() {
        ThreadState.current.thread = self
        let priority = state.withLock { state in
            state.threadID = shim_thread_id()
            state.stackSize = Int(shim_stack_size())
            if state.name != nil { Self.showName(state) }
            return state.priority
        }
        if let priority { try? setThreadPriority(priority) }
        open(RunLoop.current)
    }

    /// Gives the loop to the callers that asked for it early. The lock is held, so that later callers come after them. The early callers'
    /// closures call none of the program's code.
    func open(_ loop: RunLoop) {
        let early = state.withLock { state in
            state.loop = loop
            state.isOpen = true
            for request in state.early { request(loop) }
            defer { state.early = [] }
            return state.early
        }
        _ = early  // freed here, outside the lock
    }

    /// Gives the thread's loop to `body`: at once if the thread runs already, otherwise at its start. If the thread has ended,
    /// `body` gets `nil`. At the start, `body` must neither call a program's code nor ask for anything of the thread.
    func withLoop(_ body: @escaping @Sendable (RunLoop?) -> Void) {
        let (isReady, loop) = state.withLock { state -> (Bool, RunLoop?) in
            if state.phase == .finished { return (true, nil) }
            if state.isOpen { return (true, state.loop) }
            state.early.append(body)
            return (false, nil)
        }
        if isReady { body(loop) }
    }
}
