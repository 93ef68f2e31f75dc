// SPDX-License-Identifier: Apache-2.0
//
// A listening socket whose connections become byte streams. A connection is accepted when somebody wants it; until then it waits in the
// kernel's queue. `state` guards the fields. Streams are made, and the program's closures are called, without it.

import CoreRunLoopShims
import Synchronization

/// Accepts connections as ``ByteStream``s.
///
/// ```swift
/// let listener = try ByteStreamListener(port: 7000, on: loop)
/// for try await stream in listener.connections() { Task { try await stream.write("hello\n") } }
/// ```
///
/// A connection is accepted only when somebody wants it; up to then, it waits in the system's queue. All calls may be made on any thread.
/// The last release of a listener closes it.
public final class ByteStreamListener: Sendable {
    private let body: Body
    private let source: DescriptorSource
    private let endNumber: Int

    /// The loop that accepts the connections, and serves their streams.
    public var loop: RunLoop { body.loop }
    /// The address where it listens: `host:port`, or a path.
    public var address: String { body.name }
    /// The port's number; 0 for a path.
    public let port: UInt16

    /// Listens on a TCP port.
    ///
    /// - Parameters:
    ///   - port: The port's number; 0 lets the system choose one, which ``port`` then tells.
    ///   - host: A numeric address of this machine; `0.0.0.0` or `::` is all of them.
    ///   - loop: The loop that accepts the connections, and serves their streams.
    ///   - mode: The mode of the loop in which that happens.
    ///   - tls: Settings of a server, with which the connections are protected by TLS; `nil` for connections in the clear.
    /// - Throws: ``ByteStreamError``.
    public convenience init(
        port: UInt16, host: String = "127.0.0.1", on loop: RunLoop, mode: RunLoop.Mode = .common, withTLS tls: TLSSettings? = nil
    ) throws(ByteStreamError) {
        let address = SocketAddress.parse(host: host).flatMap { SocketAddress(host: $0, number: port) }
        try self.init(at: address, "\(host):\(port)", loop, mode, tls)
    }

    /// Listens on a Unix socket, whose file is removed when the listener is closed.
    ///
    /// - Throws: ``ByteStreamError``, also when there is a file already.
    public convenience init(
        path: String, on loop: RunLoop, mode: RunLoop.Mode = .common, withTLS tls: TLSSettings? = nil
    ) throws(ByteStreamError) {
        try self.init(at: SocketAddress(path: Array(path.utf8)), path, loop, mode, tls)
    }

    private init(
        at address: SocketAddress?, _ name: String, _ loop: RunLoop, _ mode: RunLoop.Mode, _ tls: TLSSettings?
    ) throws(ByteStreamError) {
        guard let address else { throw ByteStreamError(.system(Int32(SHIM_EINVAL)), peer: name) }
        let socket = unsafe address.bytes.withUnsafeBufferPointer { bytes in
            unsafe bytes.baseAddress.map { unsafe shim_connections_listen(address.family.rawValue, $0, bytes.count) } ?? Int32(-SHIM_EINVAL)
        }
        if socket < 0 { throw ByteStreamError(.system(-socket), peer: name) }
        let own = SocketAddress.of(socket: socket) ?? address
        port = own.family == .unix ? 0 : own.number
        let body = Body(loop, mode, own.description, tls, address.family == .unix ? SocketFile(at: address) : nil)
        self.body = body
        do {
            source = try DescriptorSource(descriptor: socket, interest: [], closeOnInvalidate: true) { [weak body] event in
                body?.serve(event)
            }
        } catch {
            shim_socket_close(socket)
            throw ByteStreamError(.system(Int32(SHIM_ENOMEM)), peer: name)
        }
        endNumber = loop.end.add(on: loop.loop) { [weak body] in body?.close(.loopEnded) }
        loop.add(source, forMode: mode)
    }

    deinit { close() }

    /// Stops listening. Whoever waits gets ``ByteStreamError/Reason/closed``, and ``connections(timeout:)`` ends. Accepted streams go on.
    public func close() {
        loop.end.remove(endNumber)
        source.invalidate()
        body.close(.closed)
    }

    /// Waits for a connection.
    ///
    /// - Parameter timeout: How long to wait; `nil` is for ever.
    /// - Throws: ``ByteStreamError``, such as `EMFILE` when the process has no descriptor left; `CancellationError` when the task is
    ///   cancelled. No connection is lost by either.
    public nonisolated(nonsending) func accept(timeout: Duration? = nil) async throws -> ByteStream {
        try await waitInTask { [body, source] number, end in
            if body.wait(number, timeout, end) { source.interest = .readable }
        } giveUp: { [body] number in
            body.giveUp(number, CancellationError())
        }
    }

    /// Connections, as they are accepted.
    public struct Connections: AsyncSequence, Sendable {
        /// A connection.
        public typealias Element = ByteStream
        fileprivate let listener: ByteStreamListener
        fileprivate let timeout: Duration?
        /// Begins with the next connection.
        public func makeAsyncIterator() -> Iterator { Iterator(connections: self) }

        /// One iteration.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let connections: Connections
            /// The next connection; `nil` when the program has closed the listener.
            public mutating func next() async throws -> ByteStream? { try await next(isolation: nil) }
            /// The next connection; `nil` when the program has closed the listener.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> ByteStream? {
                do { return try await connections.listener.accept(timeout: connections.timeout) } catch let error as ByteStreamError {
                    if error.reason == .closed { return nil }
                    throw error
                }
            }
        }
    }

    /// The connections that come, until the program closes the listener.
    ///
    /// - Parameter timeout: How long to wait for each connection; `nil` is for ever.
    public func connections(timeout: Duration? = nil) -> Connections { Connections(listener: self, timeout: timeout) }

    /// Told on the loop's thread of each connection, and of an error. After an error none is accepted until this is set again. Any thread.
    ///
    /// Waits of tasks come first. The closure of an actor that is not on the loop is sent to the actor.
    public var onConnection: (@isolated(any) @Sendable (Result<ByteStream, ByteStreamError>) -> Void)? {
        get { body.handler?.closure }
        set {
            body.set(newValue.map { Body.Handler(closure: $0, call: onActorOf($0)) })
            if newValue != nil { source.interest = .readable }
        }
    }
}

/// What the source's closure and those who wait refer to.
private final class Body: Sendable {
    struct Handler: Sendable {
        let closure: @isolated(any) @Sendable (Result<ByteStream, ByteStreamError>) -> Void
        let call: @Sendable (Result<ByteStream, ByteStreamError>) -> Void
    }
    private struct State {
        var waits = WaitList<Void, ByteStream>()
        var handler: Handler?
        /// Why no connection is accepted any more.
        var end: ByteStreamError?
    }
    let loop: RunLoop
    let name: String
    private let mode: RunLoop.Mode
    private let tls: TLSSettings?
    private let file: SocketFile?
    private let state = Mutex(State())

    init(_ loop: RunLoop, _ mode: RunLoop.Mode, _ name: String, _ tls: TLSSettings?, _ file: SocketFile?) {
        self.loop = loop
        self.mode = mode
        self.name = name
        self.tls = tls
        self.file = file
    }

    var handler: Handler? { state.withLock { $0.handler } }

    func set(_ handler: Handler?) {
        let old = state.withLock { state in
            let old = state.handler
            state.handler = state.end == nil ? handler : nil
            return old
        }
        _ = old  // freed here, outside the lock
    }

    /// Returns whether there is something to wait for.
    func wait(_ number: Int, _ timeout: Duration?, _ end: WaitEnd<ByteStream>) -> Bool {
        let limit = timeout.map {
            loop.limit($0) { [weak self] in if let self { giveUp(number, ByteStreamError(.timedOut, peer: name)) } }
        }
        let wait = Wait(number, (), limit, end)
        let why = state.withLock { state in
            if state.end == nil { state.waits.append(wait) }
            return state.end
        }
        if let why {
            wait.finish(.failure(why))
            return false
        }
        if let limit { loop.add(limit, forMode: mode) }
        return true
    }

    func giveUp(_ number: Int, _ why: any Error) { state.withLock { $0.waits.remove(number) }?.finish(.failure(why)) }

    func close(_ reason: ByteStreamError.Reason) {
        let why = ByteStreamError(reason, peer: name)
        let (waits, handler) = state.withLock { state -> ([Wait<Void, ByteStream>], Handler?) in
            if state.end != nil { return ([], nil) }
            defer { (state.end, state.handler) = (why, nil) }
            file?.remove()
            return (state.waits.takeAll(), state.handler)
        }
        for wait in waits { wait.finish(.failure(why)) }
        _ = handler  // freed here, outside the lock
    }

    /// Accepts connections for those who want them. On the loop's thread.
    func serve(_ event: DescriptorSource.Event) {
        event.pause()  // first, so that whoever comes from now on sets the interest for good
        while isWanted {
            let accepted = shim_connections_accept(event.descriptor)
            if accepted == Int32(-SHIM_EAGAIN) { return event.goOn() }
            tell(accepted < 0 ? .failure(ByteStreamError(.system(-accepted), peer: name)) : stream(of: accepted))
        }
    }

    private var isWanted: Bool { state.withLock { $0.end == nil && (!$0.waits.isEmpty || $0.handler != nil) } }

    private func stream(of socket: Int32) -> Result<ByteStream, ByteStreamError> {
        do { return .success(try ByteStream(socket: socket, on: loop, mode: mode, withTLS: tls)) } catch { return .failure(error) }
    }

    private func tell(_ result: Result<ByteStream, ByteStreamError>) {
        let (wait, handler) = state.withLock { state -> (Wait<Void, ByteStream>?, Handler?) in
            if !state.waits.isEmpty { return (state.waits.removeFirst(), nil) }
            defer { if case .failure = result { state.handler = nil } }
            return (nil, state.handler)
        }
        if let wait { return wait.finish(result.mapError { $0 }) }
        handler?.call(result)
    }
}
