// SPDX-License-Identifier: Apache-2.0
//
// Requests as C programs send them, answered by a local port and sent to a remote one.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

extension MessagePort {
    // MARK: Answering

    /// Answers requests of one kind, on the loop's thread. Any thread; replaces the handler of the same number.
    ///
    /// A request that is malformed gets no answer: the caller's call throws ``PortError/malformed(_:)``.
    ///
    /// - Parameters:
    ///   - exchange: The kind of request.
    ///   - reply: Returns the answer.
    public func handle<Request, Reply>(
        _ exchange: Exchange<Request, Reply>, _ reply: @escaping @isolated(any) @Sendable (Request) -> Reply
    ) {
        let reply = answeringOnActorOf(reply)
        let handler = ExchangeRequestHandler { bytes in try exchange.decodeRequest(bytes).map { try exchange.encodeReply(reply($0)) } }
        set(handler, of: exchange.number)
    }

    /// Answers requests of one kind in tasks of their own, several at the same time. Any thread; replaces the handler of the same number.
    ///
    /// ```swift
    /// let port = try MessagePort(name: "com.example.archive")
    /// port.handle(.text(number: 1), concurrently: 8) { name in
    ///     try await Task.sleep(for: .milliseconds(10))
    ///     return "the text of \(name)"
    /// }
    /// ```
    ///
    /// The port's loop only receives the requests. A request that comes while as many are answered as the bound allows waits for its
    /// turn, and counts against the port's budget of memory. When as many wait, the port takes no more messages of any number before
    /// half of them have had their turn. The others stay in its queue, and their senders wait for room. The handler's task is cancelled
    /// when nobody waits for the answer any more: the caller has cancelled its call, its time is over, either process has ended, or the
    /// port is invalid. A request that is still waiting is dropped then. A handler that ends too late, or never, keeps nothing but its
    /// place among those that run.
    ///
    /// - Parameters:
    ///   - exchange: The kind of request.
    ///   - limit: How many handlers of this number may run at the same time, at least 1. One process has at most 256 requests to a port
    ///     under way, fewer with few descriptors: more handlers run only for several processes.
    ///   - reply: Returns the answer. ``requestDeadline`` is the caller's deadline in it. The text of an error that it throws reaches the
    ///     caller as ``PortError/failed(_:)``.
    public func handle<Request, Reply>(
        _ exchange: Exchange<Request, Reply>, concurrently limit: Int = 16,
        _ reply: @escaping @isolated(any) @Sendable (Request) async throws -> Reply
    ) {
        if limit < 1 { fault("a handler of requests cannot run \(limit) at a time; the bound is 1 or more") }
        let handler = ConcurrentRequestHandler(limit, owner) { bytes in
            guard let request = exchange.decodeRequest(bytes) else { return nil }
            return try exchange.encodeReply(try await reply(request))
        }
        set(handler, of: exchange.number)
    }

    /// Inside of a handler that runs in a task: the instant after which the caller waits no more. `nil` outside of handlers, for a caller
    /// without a time limit, and for one that does not send it, as C programs do.
    ///
    /// The clock is the one that stands still while the machine sleeps. The instant is meaningless if the two processes are in different
    /// time namespaces.
    public static var requestDeadline: SuspendingClock.Instant? { served?.deadline }

    /// Inside of a handler that runs in a task: the process that has sent the request, as the kernel says. `nil` outside of handlers, and
    /// for a process in another PID namespace.
    public static var requestProcess: Int32? { served.flatMap { $0.process == 0 ? nil : $0.process } }

    /// What a handler that runs in a task may ask about its request.
    struct Served: Sendable {
        let deadline: SuspendingClock.Instant?
        let process: Int32
    }
    @TaskLocal static var served: Served?

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
    private func set(_ new: (any RequestHandler)?, of number: Int32?) {
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

    /// Sends a request and waits for the answer. No thread waits with it: one thread of the process serves all such calls.
    ///
    /// - Parameters:
    ///   - exchange: The kind of request.
    ///   - request: The request.
    ///   - timeout: How long the whole call may take, also its wait while 256 requests of this process are under way.
    /// - Throws: ``PortError``, among others ``PortError/unhandled(_:)`` and ``PortError/failed(_:)``; `CancellationError` when the task is
    ///   cancelled. The request may still be handled then, if its handler does not run in a task.
    public func request<Request, Reply>(
        _ exchange: Exchange<Request, Reply>, _ request: Request, timeout: Duration = .seconds(30)
    ) async throws -> Reply {
        let bytes = try await requestBytes(number: exchange.number, try exchange.encodeRequest(request), timeout: timeout)
        guard let reply = exchange.decodeReply(bytes) else { throw PortError.malformed(exchange.number) }
        return reply
    }

    /// Sends bytes as C programs do, and waits for the answer's.
    ///
    /// - Throws: As ``request(_:_:timeout:)``.
    public func requestBytes(number: Int32, _ bytes: [UInt8], timeout: Duration = .seconds(30)) async throws -> [UInt8] {
        if timeout < .zero { throw PortError.invalidTimeout(timeout) }
        try Task.checkCancellation()
        guard let remote = isRemote ? cfMessagePort : remotePort() else { throw PortError.invalid(label) }
        guard let service = RequestService.shared,
            let pending = PendingRequest(to: remote, number, bytes, Self.limit(timeout.inSeconds))
        else { throw PortError.transport }
        let outcome = await pending.outcome(service)
        if outcome.result == SHIM_REQUEST_CANCELLED { throw CancellationError() }
        if outcome.result == -3 || outcome.result == -5 { CFMessagePortInvalidate(remote) }  // its peer has gone
        try check(Int32(outcome.result))
        try Self.check(outcome.status, number) { String(decoding: outcome.bytes, as: UTF8.self) }
        return outcome.bytes
    }

    /// Throws the error that matches the receiver's reason to give no answer.
    private static func check(_ status: UInt32, _ number: Int32, text: () -> String) throws(PortError) {
        switch Int(status) {
        case SHIM_ANSWERED: return
        case SHIM_UNHANDLED: throw .unhandled(number)
        case SHIM_MALFORMED: throw .malformed(number)
        default: throw .failed(text())
        }
    }

    /// Sends bytes and blocks the calling thread until the answer has come.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`.
    ///
    /// - Parameters:
    ///   - number: The message's number.
    ///   - bytes: The request.
    ///   - timeout: How long the whole call may take.
    /// - Throws: ``PortError``.
    @available(*, noasync, message: "waiting would block the task's thread; use requestBytes(number:_:timeout:)")
    public func requestAndWait(number: Int32, _ bytes: [UInt8], timeout: Duration = .seconds(30)) throws(PortError) -> [UInt8] {
        try unsafe requestAndWait(number: number, bytes.span.bytes, timeout: timeout) { [UInt8](copying: $0) }
    }

    /// Sends bytes and blocks the calling thread until the answer has come, which is read where it lies.
    ///
    /// - Parameters:
    ///   - number: The message's number.
    ///   - bytes: The request.
    ///   - timeout: How long the whole call may take.
    ///   - read: Called with the answer's bytes, which are there during the call only.
    /// - Returns: The result of `read`.
    /// - Throws: ``PortError``.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`.
    @available(*, noasync, message: "waiting would block the task's thread; use requestBytes(number:_:timeout:)")
    public func requestAndWait<Result>(
        number: Int32, _ bytes: RawSpan, timeout: Duration = .seconds(30), read: (RawSpan) -> Result
    ) throws(PortError) -> Result {
        var answer = unsafe shim_answer()
        defer { unsafe shim_answer_drop(&answer) }
        try unsafe send(number, bytes, timeout, &answer)
        let result = unsafe UnsafeRawBufferPointer(start: answer.bytes, count: answer.length)
        try unsafe Self.check(answer.status, number) { unsafe String(decoding: result, as: UTF8.self) }
        return read(unsafe result.bytes)
    }

    /// Sends bytes for which no answer is wanted. The calling thread is blocked while the receiver's queue has no room.
    ///
    /// - Parameters:
    ///   - number: The message's number.
    ///   - bytes: The message.
    ///   - timeout: How long it may wait for room.
    /// - Throws: ``PortError``.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`, without a reply mode.
    @available(*, noasync, message: "waiting for room would block the task's thread")
    public func sendAndWait(number: Int32, _ bytes: RawSpan, timeout: Duration = .seconds(30)) throws(PortError) {
        try unsafe send(number, bytes, timeout, nil)
    }

    private func send(
        _ number: Int32, _ bytes: RawSpan, _ timeout: Duration, _ answer: UnsafeMutablePointer<shim_answer>?
    ) throws(PortError) {
        if timeout.isNegative { throw .invalidTimeout(timeout) }
        guard let remote = isRemote ? cfMessagePort : remotePort() else { throw .invalid(label) }
        let status = unsafe bytes.withUnsafeBytes { buffer in
            unsafe shim_message_port_send(remote, number, buffer.baseAddress, buffer.count, Self.limit(timeout.inSeconds), answer)
        }
        if status != 0 { try check(status) }
    }
}
