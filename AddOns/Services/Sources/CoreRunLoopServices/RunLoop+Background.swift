// SPDX-License-Identifier: Apache-2.0
//
// Work on the threads of the C library's pool, for tasks. The C object has a `BackgroundCall` for its info, and is kept by it only as long
// as it can be cancelled: the release of the info is what tells that the loop has ended.

import CCoreRunLoop
public import CoreRunLoop
import CoreRunLoopShims
import Synchronization

extension RunLoop {
    /// Calls `work` on a thread of a pool, away from the loop and from Swift's own pool, and returns what it returned.
    ///
    /// ```swift
    /// let sum = try await loop.performInBackground { (1...1_000_000_000).reduce(0, &+) }
    /// ```
    ///
    /// It is for what blocks or computes for long. The loop tells the end when it runs `mode`, and a run of the mode is kept alive until
    /// then. Calls begin in the order in which they were made, as many at once as there are processors, but at least four.
    ///
    /// A task that is cancelled before the work has begun gets `CancellationError`, and the work is not called. Work that has begun goes
    /// on to its end, for which the call waits. So nothing that the work uses is needed after the call. Any thread.
    ///
    /// - Throws: What `work` throws; `CancellationError`; `RunLoopError.loopEnded` when the loop's thread ends before, and the work has
    ///   ended or will not begin; `ThreadError.system` when no thread can be started, and `ThreadError.exited` when the work ends its own.
    ///
    /// The corresponding C function is `CRLRunLoopPerformInBackground`.
    public nonisolated(nonsending) func performInBackground<Value: Sendable>(
        in mode: Mode = .common, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        let call = BackgroundCall(work)
        let number = end.add(on: getCFRunLoop()) { call.forgetWork() }
        defer { end.remove(number) }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                call.wait(continuation)
                if let given = call.give(to: self, mode) {
                    call.keep(given)
                } else {
                    call.finish(.failure(end.hasEnded ? RunLoopError.loopEnded : ThreadError.system(Int32(SHIM_EAGAIN))))
                }
            }
        } onCancel: {
            call.cancel()
        }
    }
}

/// What the C callbacks know of a call.
private protocol BackgroundWork: AnyObject, Sendable {
    /// On a thread of the pool.
    func run()
    /// On the loop's thread; `nil` on any, when the work was released.
    func end(_ end: CRLWorkEnd?)
}

/// The `info` of the C object.
private final class BackgroundInfo: Sendable {
    let work: any BackgroundWork
    init(_ work: any BackgroundWork) { self.work = work }

    static func of(_ info: UnsafeMutableRawPointer?) -> BackgroundInfo {
        unsafe Unmanaged<BackgroundInfo>.fromOpaque(info!).takeUnretainedValue()  // the context always has one
    }
}

/// One call of `performInBackground`.
private final class BackgroundCall<Value: Sendable>: BackgroundWork {
    private struct State {
        /// Until it begins, or will not.
        var function: (@Sendable () throws -> Value)?
        /// The C object, from which the work can be cancelled: at most as long as there is a function.
        var work: CRLWork?
        var isCancelled = false
        var hasLoop = true
        var result: Result<Value, any Error>?
        /// Until the task goes on.
        var continuation: CheckedContinuation<Value, any Error>?
    }
    private let state = Mutex(State())

    init(_ function: @escaping @Sendable () throws -> Value) { state.withLock { $0.function = function } }

    // MARK: The task

    func wait(_ continuation: CheckedContinuation<Value, any Error>) { state.withLock { $0.continuation = continuation } }

    /// Gives the work to the pool. `nil` when that has no thread, or the loop has ended.
    func give(to loop: RunLoop, _ mode: RunLoop.Mode) -> CRLWork? {
        var context = unsafe CRLSourceContext()
        unsafe context.info = Unmanaged.passRetained(BackgroundInfo(self)).toOpaque()
        unsafe context.release = { info in
            guard let info = unsafe info else { return }
            unsafe Unmanaged<BackgroundInfo>.fromOpaque(info).takeRetainedValue().work.end(nil)
        }
        let given = unsafe CRLRunLoopPerformInBackground(
            loop.getCFRunLoop(), mode.name, { unsafe BackgroundInfo.of($0).work.run() },
            { _, end, info in unsafe BackgroundInfo.of(info).work.end(end) }, &context)
        if given == nil { unsafe Unmanaged<BackgroundInfo>.fromOpaque(context.info).release() }
        return given
    }

    /// Keeps the work for ``cancel()``, which may have come already, unless it has begun or its loop has ended.
    func keep(_ work: CRLWork) {
        let isCancelled = state.withLock { state in
            if state.function != nil, !state.isCancelled, state.hasLoop { state.work = work }
            return state.isCancelled
        }
        if isCancelled { cancel(work) }
    }

    func cancel() {
        let work = state.withLock { state in
            state.isCancelled = true
            return state.work.take()
        }
        if let work { cancel(work) }
    }

    /// The task goes on at once, whether or not the loop runs.
    private func cancel(_ work: CRLWork) { if CRLWorkCancel(work) { finish(.failure(CancellationError())) } }

    /// Lets the work go with its loop.
    func forgetWork() {
        let work = state.withLock { state in
            state.hasLoop = false
            return state.work.take()
        }
        _ = work  // released here, outside the lock
    }

    /// The first call has the task go on.
    func finish(_ result: Result<Value, any Error>) {
        let (continuation, function) = state.withLock { ($0.continuation.take(), $0.function.take()) }
        _ = function  // freed here, outside the lock, and before the task goes on
        continuation?.resume(with: result)
    }

    // MARK: The pool and the loop

    func run() {
        let (function, work) = state.withLock { ($0.function.take(), $0.work.take()) }
        _ = work  // it cannot be cancelled any more
        guard let function else { return }
        let result = Result { try function() }
        state.withLock { $0.result = result }
    }

    func end(_ end: CRLWorkEnd?) {
        switch end {
        case .done: finish(state.withLock { $0.result.take() } ?? .failure(ThreadError.exited))
        case .cancelled: finish(.failure(CancellationError()))
        default: finish(.failure(RunLoopError.loopEnded))
        }
    }
}
