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
    fileprivate let loop: CFRunLoop
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

    func send(_ request: OpaquePointer, _ info: UnsafeMutableRawPointer) { unsafe shim_request_send(requests, request, info) }

    /// Adds a source whose closure calls none of the program's code.
    func add(_ source: some RunLoopSource) { CFRunLoopAddSource(loop, source.cfRunLoopSource, CFRunLoopMode.defaultMode) }

    /// Returns false when there are no means for that.
    func listen(to port: CFMessagePort) -> Bool { shim_port_listen(port, loop) }
}

extension RunLoop {
    /// A loop that runs, whether or not the program runs any, for what calls none of the program's code; `nil` without a thread for it.
    package static var serving: CFRunLoop? { RequestService.shared?.loop }
}

/// One request. It ends once, whatever comes first: its answer, its deadline, a cancellation, the end of the port.
@safe struct PendingRequest: ~Copyable, @unchecked Sendable {
    struct Outcome: Sendable {
        let result: Int
        var status: UInt32 = 0
        var reply: CFData?
        var bytes: [UInt8] { reply.map { [UInt8]($0) } ?? [] }
    }
    #if CRL_TSAN
        /// The thread sanitizer does not see that a task goes on only after its continuation was resumed. It sees the lock.
        private final class End: Sendable {
            private let state = Mutex<(continuation: UnsafeContinuation<Void, Never>?, outcome: Outcome?)>((nil, nil))
            var outcome: Outcome? { state.withLock { $0.outcome } }
            func wait(_ continuation: UnsafeContinuation<Void, Never>) { unsafe state.withLock { unsafe $0.continuation = continuation } }
            func come(_ outcome: Outcome) {
                let continuation = unsafe state.withLock { state in
                    state.outcome = outcome
                    return unsafe state.continuation
                }
                unsafe continuation?.resume()
            }
        }
        private static func end(_ info: UnsafeMutableRawPointer, _ outcome: Outcome) {
            unsafe Unmanaged<End>.fromOpaque(info).takeRetainedValue().come(outcome)
        }
    #else
        private typealias Continuation = UnsafeContinuation<Outcome, Never>
        /// A continuation is one word.
        private static func end(_ info: UnsafeMutableRawPointer, _ outcome: Outcome) {
            unsafe unsafeBitCast(info, to: Continuation.self).resume(returning: outcome)
        }
    #endif
    /// Any thread may use the C request: it has a lock of its own.
    private let request: OpaquePointer

    /// `nil` when there is no memory.
    init?(to port: CFMessagePort, _ number: Int32, _ bytes: [UInt8], _ limit: Int64) {
        let request = unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe shim_request_create(port, number, bytes.baseAddress, bytes.count, limit) { info, result, status, reply in
                unsafe Self.end(info!, Outcome(result: Int(result), status: status, reply: reply))
            }
        }
        guard let request = unsafe request else { return nil }
        unsafe self.request = request
    }

    deinit { unsafe shim_request_release(request) }

    /// Sends the request, and waits for its end. A cancellation of the task ends it, also one that was there before.
    borrowing func outcome(_ service: RequestService) async -> Outcome {
        await withTaskCancellationHandler {
            #if CRL_TSAN
                let end = End()
                await unsafe withUnsafeContinuation { continuation in
                    unsafe end.wait(continuation)
                    unsafe service.send(request, Unmanaged.passRetained(end).toOpaque())
                }
                return end.outcome!  // it has come: the task was resumed
            #else
                return await unsafe withUnsafeContinuation { (continuation: Continuation) in
                    unsafe service.send(request, unsafeBitCast(continuation, to: UnsafeMutableRawPointer.self))
                }
            #endif
        } onCancel: {
            unsafe shim_request_cancel(request)
        }
    }
}
