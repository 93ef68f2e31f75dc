// SPDX-License-Identifier: Apache-2.0
//
// Requests that are answered in tasks: the handler with its bound, and each request from its receipt to its answer.

import CoreRunLoopShims
import Synchronization

extension MessagePort {
    /// Answers requests in tasks of their own, at most `limit` at the same time; the others wait in the order of their receipt.
    final class ConcurrentRequestHandler: RequestHandler {
        private struct State {
            var running = 0
            /// Those before `next` have had their turn.
            var waiting: [ServedRequest] = []
            var next = 0
            /// The port is asked to take nothing more.
            var isFull = false
        }
        private let limit: Int
        private let owner: Owner
        private let serve: @Sendable ([UInt8]) async throws -> [UInt8]?
        private let state = Mutex(State())

        /// `serve` returns `nil` for bytes that are malformed.
        init(_ limit: Int, _ owner: Owner, _ serve: @escaping @Sendable ([UInt8]) async throws -> [UInt8]?) {
            self.limit = limit
            self.owner = owner
            self.serve = serve
        }

        func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            guard let deferred = unsafe reply.later() else { return reply.refuse(SHIM_FAILED, "there is no memory") }
            let request = unsafe ServedRequest(deferred, reply.process, [UInt8](copying: bytes))
            unsafe request.watch(deferred)
            let (mayRun, isNowFull) = state.withLock { state in
                if state.running < limit {
                    state.running += 1
                    return (true, false)
                }
                state.waiting.append(request)
                if state.isFull || state.waiting.count - state.next < limit { return (false, false) }
                state.isFull = true
                return (false, true)
            }
            if mayRun { run(request) }
            if isNowFull { owner.countFull(1) }
        }

        /// Runs a request whose place is taken, or the first that still waits, or gives the place back.
        private func run(_ first: ServedRequest) {
            var request: ServedRequest? = first
            while let turn = request, !turn.begin(self, serve) { request = nextWaiting() }
        }

        fileprivate func hasEnded() {
            if let request = nextWaiting() { run(request) }
        }

        private func nextWaiting() -> ServedRequest? {
            let (request, hasRoom) = state.withLock { state -> (ServedRequest?, Bool) in
                if state.next == state.waiting.count {
                    state.running -= 1
                    return (nil, false)
                }
                let request = state.waiting[state.next]
                state.next += 1
                if state.next == state.waiting.count || state.next > 64 && state.next * 2 > state.waiting.count {
                    state.waiting.removeFirst(state.next)
                    state.next = 0
                }
                let hasRoom = state.isFull && (state.waiting.count - state.next) * 2 <= limit
                if hasRoom { state.isFull = false }
                return (request, hasRoom)
            }
            if hasRoom { owner.countFull(-1) }
            return request
        }
    }

    /// One request whose answer comes later. It is answered once, or its caller has left.
    fileprivate final class ServedRequest: Sendable {
        /// Any thread may use the C answer, once.
        @safe private enum State: @unchecked Sendable {
            case waiting(OpaquePointer, [UInt8])
            case running(OpaquePointer, Task<Void, Never>?)
            case over
        }
        private let state: Mutex<State>
        private let served: Served

        init(_ deferred: OpaquePointer, _ process: Int32, _ bytes: [UInt8]) {
            state = Mutex(unsafe .waiting(deferred, bytes))
            let instant = unsafe shim_deferred_deadline(deferred)
            let deadline = instant == 0 ? nil : SuspendingClock.now.advanced(by: .nanoseconds(instant - shim_monotonic_ns()))
            served = Served(deadline: deadline, process: process)
        }

        /// From now on the caller may leave.
        func watch(_ deferred: OpaquePointer) {
            unsafe shim_deferred_watch(
                deferred, { info in unsafe object(ServedRequest.self, from: info).callerHasLeft() }, retainedInfo(self), releaseInfo)
        }

        /// Any thread, which calls none of the program's code: a cancelled task's handlers are called by a task of their own.
        private func callerHasLeft() {
            let (deferred, task) = unsafe state.withLock { state -> (OpaquePointer?, Task<Void, Never>?) in
                defer { state = .over }
                switch state {
                case .waiting(let deferred, _): return unsafe (deferred, nil)
                case .running(let deferred, let task): return unsafe (deferred, task)
                case .over: return (nil, nil)
                }
            }
            if let deferred = unsafe deferred { unsafe shim_deferred_answer(deferred, UInt32(SHIM_FAILED), nil, 0) }
            if let task { Task { task.cancel() } }
        }

        /// Begins the request's task; false if the caller has left. The handler hears of the task's end.
        func begin(_ handler: ConcurrentRequestHandler, _ serve: @escaping @Sendable ([UInt8]) async throws -> [UInt8]?) -> Bool {
            let bytes = state.withLock { state -> [UInt8]? in
                guard case .waiting(let deferred, let bytes) = state else { return nil }
                state = unsafe .running(deferred, nil)
                return bytes
            }
            guard let bytes else { return false }
            let task = Task {  // outside the lock, at which it may stop before this function goes on
                do {
                    let answer = try await MessagePort.$served.withValue(self.served) { try await serve(bytes) }
                    self.answer(answer == nil ? SHIM_MALFORMED : SHIM_ANSWERED, answer ?? [])
                } catch {
                    self.answer(SHIM_FAILED, Array("\(error)".utf8))
                }
                handler.hasEnded()
            }
            let isOver = state.withLock { state in
                guard case .running(let deferred, _) = state else { return true }
                state = unsafe .running(deferred, task)
                return false
            }
            if isOver { task.cancel() }  // it has answered, or its caller has left meanwhile
            return true
        }

        private func answer(_ status: Int, _ bytes: [UInt8]) {
            let deferred = unsafe state.withLock { state -> OpaquePointer? in
                defer { state = .over }
                guard case .running(let deferred, _) = state else { return nil }
                return unsafe deferred
            }
            guard let deferred = unsafe deferred else { return }  // the caller has left
            unsafe bytes.withUnsafeBufferPointer { bytes in
                unsafe shim_deferred_answer(deferred, UInt32(status), bytes.baseAddress, bytes.count)
            }
        }
    }
}
