// SPDX-License-Identifier: Apache-2.0
//
// Requests as C programs send them, answered by a local port and sent to a remote one.

import CCoreRunLoop
import CoreRunLoopShims

extension MessagePort {
    // MARK: Answering

    /// Answers requests of one kind, on the loop's thread. Any thread; replaces the handler of the same number.
    ///
    /// - Parameters:
    ///   - exchange: The kind of request.
    ///   - reply: Returns the answer. A request that is malformed gets an empty answer.
    public func handle<Request, Reply>(
        _ exchange: Exchange<Request, Reply>, _ reply: @escaping @isolated(any) @Sendable (Request) -> Reply
    ) {
        let reply = answeringOnActorOf(reply)
        let handler = ArrayRequestHandler { _, bytes in exchange.decodeRequest(bytes).map { exchange.encodeReply(reply($0)) } }
        set(handler, of: exchange.number)
    }

    /// Answers the requests that no ``handle(_:_:)`` answers, on the loop's thread; also those of C programs.
    ///
    /// Setting this replaces ``onRequestBytes``. Both may be an actor's, as ``Port/onMessage`` may.
    public var onRequest: (@isolated(any) @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?)? {
        get { (handlers.withLock { $0.fallback } as? ArrayRequestHandler)?.closure }
        set { set(newValue.map { ArrayRequestHandler($0) }, of: nil) }
    }

    /// Answers the requests that no ``handle(_:_:)`` answers, without copying the request. Setting this replaces ``onRequest``. The bytes
    /// are the message's own, and are valid only during the call. Nothing is allocated but the answer.
    ///
    /// ```swift
    /// let port = try MessagePort(name: "com.example.echo")
    /// port.onRequestBytes = { number, request, reply in if number == 1 { reply.set(request) } }
    /// ```
    public var onRequestBytes: (@isolated(any) @Sendable (_ number: Int32, _ request: RawSpan, _ reply: inout Reply) -> Void)? {
        get { (handlers.withLock { $0.fallback } as? SpanRequestHandler)?.closure }
        set { set(newValue.map { SpanRequestHandler($0) }, of: nil) }
    }

    /// Sets the handler of one number, or of all numbers that have no handler. Calls under way end with the handler they began with.
    private func set(_ new: RequestHandler?, of number: Int32?) {
        let old = handlers.withLock { current in
            let old = current
            current = old.with(new, of: number)
            if !isRemote {
                current.receiveMessages(of: cfMessagePort)
                others.withLock { others in for other in others.values { current.receiveMessages(of: other.port) } }
            }
            return old
        }
        _ = old  // freed here, outside the lock
    }

    // MARK: Sending

    /// Sends a request and waits for the answer, which is empty when the receiver has no handler for the request's number.
    ///
    /// A thread of its own does the waiting, so that neither the task's thread nor a loop is blocked.
    ///
    /// - Parameters:
    ///   - exchange: The kind of request.
    ///   - request: The request.
    ///   - timeout: How long the message may wait for room, and then how long the answer may take.
    /// - Throws: ``PortError``; `CancellationError` when the task is cancelled: the message may then still be handled.
    public func request<Request, Reply>(
        _ exchange: Exchange<Request, Reply>, _ request: Request, timeout: Duration = .seconds(30)
    ) async throws -> Reply {
        let bytes = try await requestBytes(number: exchange.number, exchange.encodeRequest(request), timeout: timeout)
        guard let reply = exchange.decodeReply(bytes) else { throw PortError.malformed(exchange.number) }
        return reply
    }

    /// Sends bytes as C programs do, and waits for the answer's.
    ///
    /// - Throws: ``PortError``; `CancellationError` when the task is cancelled: the message may then still be handled.
    public func requestBytes(number: Int32, _ bytes: [UInt8], timeout: Duration = .seconds(30)) async throws -> [UInt8] {
        if timeout < .zero { throw PortError.invalidTimeout(timeout) }
        try Task.checkCancellation()
        let waiter = Waiter()
        let sent = Answer()
        let thread = Thread { [self] in
            do throws(PortError) {
                let bytes = try requestNow(number: number, bytes, timeout: timeout)
                sent.bytes.withLock { $0 = bytes }
                waiter.resume(with: .success(()))
            } catch { waiter.resume(with: .failure(error)) }
        }
        do { try thread.launch() } catch { throw PortError.transport }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter.wait($0) }
        } onCancel: {
            waiter.resume(with: .failure(CancellationError()))
        }
        return sent.bytes.withLock { $0 }
    }

    /// Sends bytes and blocks the calling thread until the answer has come.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`.
    ///
    /// - Throws: ``PortError``.
    @available(*, noasync, message: "waiting would block the task's thread; use requestBytes(number:_:timeout:)")
    public func requestNow(number: Int32, _ bytes: [UInt8], timeout: Duration = .seconds(30)) throws(PortError) -> [UInt8] {
        try unsafe requestNow(number: number, bytes.span.bytes, timeout: timeout) { [UInt8](copying: $0) }
    }

    /// Sends bytes and blocks the calling thread until the answer has come, which is read where it lies.
    ///
    /// - Parameters:
    ///   - number: The message's number.
    ///   - bytes: The request.
    ///   - timeout: How long the message may wait for room, and then how long the answer may take.
    ///   - read: Called with the answer's bytes, which are there during the call only.
    /// - Returns: The result of `read`.
    /// - Throws: ``PortError``.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`.
    @available(*, noasync, message: "waiting would block the task's thread; use requestBytes(number:_:timeout:)")
    public func requestNow<Result>(
        number: Int32, _ bytes: RawSpan, timeout: Duration = .seconds(30), read: (RawSpan) -> Result
    ) throws(PortError) -> Result {
        var answer = unsafe shim_answer()
        defer { unsafe shim_answer_drop(&answer) }
        try unsafe send(number, bytes, timeout, &answer)
        return read(unsafe UnsafeRawBufferPointer(start: answer.bytes, count: answer.length).bytes)
    }

    /// Sends bytes for which no answer is wanted. The calling thread waits for no more than room in the receiver's queue.
    ///
    /// - Parameters:
    ///   - number: The message's number.
    ///   - bytes: The message.
    ///   - timeout: How long it may wait for room.
    /// - Throws: ``PortError``.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`, without a reply mode.
    @available(*, noasync, message: "waiting for room would block the task's thread")
    public func sendNow(number: Int32, _ bytes: RawSpan, timeout: Duration = .seconds(30)) throws(PortError) {
        try unsafe send(number, bytes, timeout, nil)
    }

    private func send(
        _ number: Int32, _ bytes: RawSpan, _ timeout: Duration, _ answer: UnsafeMutablePointer<shim_answer>?
    ) throws(PortError) {
        let limit = timeout.inSeconds
        if timeout.isNegative { throw .invalidTimeout(timeout) }
        guard let remote = isRemote ? cfMessagePort : remotePort() else { throw .invalid(label) }
        let status = unsafe bytes.withUnsafeBytes { buffer in
            unsafe shim_message_port_send(remote, number, buffer.baseAddress, buffer.count, limit, limit, answer)
        }
        if status != 0 { try check(status) }
    }

    private final class Answer: Sendable { let bytes = Mutex<[UInt8]>([]) }
}
