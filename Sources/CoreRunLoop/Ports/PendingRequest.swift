// SPDX-License-Identifier: Apache-2.0
//
// Requests that a task waits for. One thread of the process sends them and takes their answers; it calls none of the program's code. The
// thread of a test by seed does so for its own tasks.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// The thread that serves the process's requests, and notices callers that leave. It is started when it is first needed.
@safe final class RequestService: Sendable {
    /// Any thread may use it: the C object has a lock of its own.
    @safe nonisolated(unsafe) private let requests: OpaquePointer
    private let loop: CFRunLoop
    private static let service = Mutex<RequestService?>(nil)

    /// `nil` when the system has no thread left; then the next call tries again.
    static var shared: RequestService? {
        if let state = ThreadState.existing, state.servesOwnRequests {
            if state.requests == nil { state.requests = RequestService(on: .current) }
            return state.requests
        }
        return service.withLock { service in
            if service == nil { service = RequestService() }
            return service
        }
    }

    private init?() {
        var loop: CFRunLoop?
        guard let requests = unsafe shim_requests_start(&loop), let loop else { return nil }
        unsafe self.requests = requests
        self.loop = loop
    }

    /// One that the calling thread's loop serves.
    private init?(on loop: RunLoop) {
        guard let requests = unsafe shim_requests_start_here() else { return nil }
        unsafe self.requests = requests
        self.loop = loop.loop
    }

    /// Ends the requests of a thread that ends.
    func end() { unsafe shim_requests_end(requests) }

    func send(_ request: OpaquePointer) { unsafe shim_request_send(requests, request) }

    /// Adds a source whose closure calls none of the program's code.
    func add(_ source: some RunLoopSource) { CFRunLoopAddSource(loop, source.cfRunLoopSource, CFRunLoopMode.defaultMode) }

    /// Returns false when there are no means for that.
    func listen(to port: CFMessagePort) -> Bool { shim_port_listen(port, loop) }
}

/// One request. It ends once, whatever comes first: its answer, its deadline, a cancellation, the end of the port.
final class PendingRequest: Sendable {
    struct Outcome: Sendable {
        let result: Int
        var status: UInt32 = 0
        var bytes: [UInt8] = []
    }
    /// Any thread may use the C request: it has a lock of its own.
    @safe private enum State: @unchecked Sendable {
        case new
        case cancelled
        case sent(OpaquePointer)
        case over
    }
    private let state = Mutex(State.new)
    private let continuation = Mutex<CheckedContinuation<Outcome, Never>?>(nil)

    func send(
        to port: CFMessagePort, _ number: Int32, _ bytes: [UInt8], _ limit: Int64, _ continuation: CheckedContinuation<Outcome, Never>
    ) {
        guard let service = RequestService.shared else { return continuation.resume(returning: Outcome(result: -4)) }
        self.continuation.withLock { $0 = continuation }
        let info = unsafe retainedInfo(self)
        let request = unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe shim_request_create(port, number, bytes.baseAddress, bytes.count, limit, Self.ended, info)
        }
        guard let request = unsafe request else {
            unsafe releaseInfo(info)
            return resume(Outcome(result: -4))
        }
        let wasCancelled = state.withLock { state in
            if case .cancelled = state { return true }
            state = unsafe .sent(request)
            unsafe service.send(request)
            return false
        }
        if wasCancelled {
            unsafe shim_request_release(request)
            unsafe releaseInfo(info)
            resume(Outcome(result: Int(SHIM_REQUEST_CANCELLED)))
        }
    }

    /// Any thread, also before the sending and after the end.
    func cancel() {
        state.withLock { state in
            switch state {
            case .new: state = .cancelled
            case .sent(let request): unsafe shim_request_cancel(request)
            case .cancelled, .over: break
            }
        }
    }

    private static let ended: shim_request_ended = { info, result, status, reply in
        let pending = unsafe object(PendingRequest.self, from: info)
        let bytes = reply.map { [UInt8]($0) } ?? []
        unsafe releaseInfo(info)
        pending.end(Outcome(result: Int(result), status: status, bytes: bytes))
    }

    /// On the thread that serves.
    private func end(_ outcome: Outcome) {
        state.withLock { state in
            if case .sent(let request) = state { unsafe shim_request_release(request) }
            state = .over
        }
        resume(outcome)
    }

    private func resume(_ outcome: Outcome) {
        let continuation = continuation.withLock { $0.take() }
        continuation?.resume(returning: outcome)
    }
}
