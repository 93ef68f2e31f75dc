// SPDX-License-Identifier: Apache-2.0
//
// Ports on stream sockets. A local port listens; a remote port is an address and the line to it. A message carries the port for its answer
// as that port's address. The registry turns the address back into the object of this process that has it.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A port with an address: for messages between processes, by TCP or by a Unix socket.
///
/// ```swift
/// let port = try SocketPort(tcpPort: 0)
/// RunLoop.main.add(port, forMode: .common)
/// // in another process of this machine, which has been told the number
/// let remote = try SocketPort(remoteWithTCPPort: number, host: nil)
/// try remote.post(msgid: 1, components: [Array("hello".utf8)], before: .now + .seconds(5))
/// ```
///
/// Whoever can reach the address can send to the port: of a number of TCP, every user of the machine. Messages for processes of one user
/// are ``MessagePort``'s. A message is sent when the system has taken its bytes; if the receiver ends before it has handled them they are
/// lost. The bytes on the wire are this library's own.
///
/// Messages that one port object sends arrive in their order, unless a send fails at its date: the next message then takes a new
/// connection.
public final class SocketPort: Port, @unchecked Sendable {
    let socketAddress: SocketAddress
    private let listener: SocketListener?
    private let descriptorSource: DescriptorSource?
    private let line: SocketLine
    private let ownFile: SocketFile?
    /// The protocol, as `socket` takes it; 0 is the family's usual one.
    public let `protocol`: Int32

    private static let locals = WeakTable<SocketAddress, SocketPort>()
    private static let remotes = WeakTable<SocketAddress, SocketPort>()

    // MARK: Local ports

    /// Makes a port that listens on this machine's own address, 127.0.0.1: on Apple's systems on all addresses.
    ///
    /// - Parameter number: The number of the TCP port; 0 lets the system choose one, which ``tcpPort`` then is.
    /// - Throws: ``PortError/nameTaken(_:)`` when another socket has the number, ``PortError/invalidAddress(_:)`` when it is not for this
    ///   user, ``PortError/transport``.
    @_disfavoredOverload
    public convenience init(tcpPort number: UInt16) throws(PortError) {
        guard let address = SocketAddress(host: SocketAddress.loopback(.ipv4), number: number) else { throw .invalidAddress("\(number)") }
        try self.init(listeningAt: address, 0)
    }

    /// Makes a port that listens at an address.
    ///
    /// - Parameters:
    ///   - family: `AF_INET`, `AF_INET6` or `AF_UNIX`, the address's own.
    ///   - type: `SOCK_STREAM`.
    ///   - protocol: 0, or a protocol of the family.
    ///   - address: A `sockaddr` structure. The file of a Unix socket is made, and removed when the port becomes invalid.
    /// - Throws: ``PortError/invalidAddress(_:)`` with the address, ``PortError/nameTaken(_:)`` when another socket has it,
    ///   ``PortError/transport``.
    public convenience init(
        protocolFamily family: Int32, socketType type: Int32, protocol: Int32, address: [UInt8]
    ) throws(PortError) {
        try self.init(listeningAt: try Self.validated(family, type, address), `protocol`)
    }

    /// Makes a port of a stream socket that listens already, and takes the socket over.
    ///
    /// - Parameters:
    ///   - family: The socket's family.
    ///   - type: `SOCK_STREAM`.
    ///   - protocol: The socket's protocol; without effect.
    ///   - socket: The socket; closed when the port becomes invalid, or at once if the port cannot be made.
    /// - Throws: ``PortError/invalidAddress(_:)`` if `socket` is not such a socket.
    @_disfavoredOverload
    public convenience init(protocolFamily family: Int32, socketType type: Int32, protocol: Int32, socket: Int32) throws(PortError) {
        guard shim_socket_is_listening(socket), shim_socket_keep_quiet(socket) == 0, type == Self.stream,
            let address = SocketAddress.of(socket: socket), address.family.rawValue == family
        else {
            shim_socket_close(socket)
            throw .invalidAddress("socket \(socket)")
        }
        try self.init(listening: socket, address, nil)
    }

    private convenience init(listeningAt address: SocketAddress, _ protocol: Int32) throws(PortError) {
        let made = unsafe address.bytes.withUnsafeBufferPointer { buffer in
            unsafe buffer.baseAddress.map { Int(unsafe shim_socket_listen(address.family.rawValue, `protocol`, $0, buffer.count)) } ?? -1
        }
        switch made {
        case 0...: break
        case SHIM_SOCKET_TAKEN: throw .nameTaken("\(address)")
        case SHIM_SOCKET_NO_MEANS: throw .transport
        default: throw .invalidAddress("\(address)")
        }
        let socket = Int32(made)
        guard let own = SocketAddress.of(socket: socket) else {
            shim_socket_close(socket)
            throw .transport
        }
        try self.init(listening: socket, own, SocketFile(at: own))
    }

    private init(listening socket: Int32, _ address: SocketAddress, _ ownFile: SocketFile?) throws(PortError) {
        let listener = try SocketListener(socket: socket)
        let owner = Owner()
        descriptorSource = try listener.makeSource { owner.port.withLock { $0.object }?.receiveNext() }
        self.listener = listener
        socketAddress = address
        self.ownFile = ownFile
        self.protocol = shim_socket_protocol(socket)
        let loopback = address.isWildcard ? address.with(host: SocketAddress.loopback(address.family)) : nil
        line = SocketLine(to: loopback ?? address, 0)
        super.init()
        owner.port.withLock { $0.object = self }
        Self.locals.set(self, for: address)
    }

    private final class Owner: Sendable { let port = Mutex(Weak<SocketPort>()) }

    // MARK: Remote ports

    /// Stands for a port that listens on a TCP port, for sending. It connects when something is sent.
    ///
    /// - Parameters:
    ///   - number: The number of the TCP port, not 0.
    ///   - host: An IPv4 or IPv6 address in numbers; `nil`, empty and `localhost` are this machine. Other names are for the program to look
    ///     up.
    /// - Throws: ``PortError/notFound(_:)`` with the host, ``PortError/invalidAddress(_:)`` for number 0.
    @_disfavoredOverload
    public convenience init(remoteWithTCPPort number: UInt16, host: String?) throws(PortError) {
        guard let bytes = SocketAddress.parse(host: host ?? "") else { throw .notFound(host ?? "") }
        guard number != 0, let address = SocketAddress(host: bytes, number: number) else { throw .invalidAddress("\(number)") }
        self.init(remote: address, 0)
    }

    /// Stands for a port that listens at an address, for sending. It connects when something is sent.
    ///
    /// - Parameters:
    ///   - family: `AF_INET`, `AF_INET6` or `AF_UNIX`, the address's own.
    ///   - type: `SOCK_STREAM`.
    ///   - protocol: 0, or a protocol of the family.
    ///   - address: A `sockaddr` structure.
    /// - Throws: ``PortError/invalidAddress(_:)``.
    public convenience init(
        remoteWithProtocolFamily family: Int32, socketType type: Int32, protocol: Int32, address: [UInt8]
    ) throws(PortError) {
        self.init(remote: try Self.validated(family, type, address), `protocol`)
    }

    /// Like the initializer that throws, but for an address that no port can have it makes a port that is invalid.
    package convenience init(remoteOrInvalid family: Int32, _ type: Int32, _ protocol: Int32, address: [UInt8]) {
        if let address = try? Self.validated(family, type, address) {
            self.init(remote: address, `protocol`)
        } else {
            guard let nowhere = SocketAddress(host: SocketAddress.loopback(.ipv4), number: 0) else { fault("loopback is an address") }
            self.init(remote: nowhere, 0)
            becomeInvalid()
        }
    }

    private init(remote address: SocketAddress, _ protocol: Int32) {
        listener = nil
        descriptorSource = nil
        socketAddress = address
        ownFile = nil
        self.protocol = `protocol`
        line = SocketLine(to: address, `protocol`)
        super.init()
        Self.remotes.set(self, for: address)
    }

    private static func validated(_ family: Int32, _ type: Int32, _ bytes: [UInt8]) throws(PortError) -> SocketAddress {
        guard type == stream, let address = SocketAddress(bytes: bytes), address.family.rawValue == family else {
            throw .invalidAddress("family \(family), type \(type), \(bytes.count) bytes")
        }
        return address
    }

    // MARK: What it is

    private static let stream: Int32 = 1

    /// The address's family, as `socket` takes it.
    public var protocolFamily: Int32 { socketAddress.family.rawValue }

    /// The kind of socket, as `socket` takes it: `SOCK_STREAM`.
    public var socketType: Int32 { Self.stream }

    /// The address, as a `sockaddr` structure: the one where the port listens, or the one that it sends to.
    @_disfavoredOverload
    public var address: [UInt8] { socketAddress.bytes }

    /// The number of the TCP port; `nil` of a Unix socket.
    public var tcpPort: UInt16? { socketAddress.family == .unix ? nil : socketAddress.number }

    /// The listening socket; -1 for a port that only sends, and for an invalid one.
    public var socket: Int32 { isValid ? listener?.socket ?? -1 : -1 }

    /// Whether this object stands for another port, and can only be sent to.
    public var isRemote: Bool { listener == nil }

    override var sources: [CFRunLoopSource] { descriptorSource.map { [$0.cfRunLoopSource] } ?? [] }

    override var label: String { "\(socketAddress)" }

    override func close() {
        descriptorSource?.invalidate()
        ownFile?.remove()  // before the socket is closed, which keeps the file's number from being another's
        listener?.close()
        line.end()
        if isRemote { Self.remotes.remove(self, for: socketAddress) } else { Self.locals.remove(self, for: socketAddress) }
    }

    override func isEqual(_ other: Port) -> Bool {
        guard self !== other, isRemote, let other = other as? SocketPort, other.isRemote else { return self === other }
        return socketAddress == other.socketAddress
    }

    /// Feeds the address that the port sends to, or the object's identity.
    public override func hash(into hasher: inout Hasher) {
        if isRemote { hasher.combine(socketAddress) } else { super.hash(into: &hasher) }
    }

    // MARK: Messages

    override func encode(_ port: Port) -> [UInt8]? { (port as? SocketPort)?.socketAddress.inMessage }

    override func transmit(_ parts: [Part], _ msgid: UInt32, _ receivePort: Port?, _ date: WallTime) throws(PortError) {
        let answerTo = receivePort.flatMap { encode($0) } ?? []
        guard let frame = SocketFrame.encode(msgid: msgid, try Envelope.encode(answerTo: answerTo, parts)) else { throw .transport }
        switch line.send(frame, until: date) {
        case SHIM_SOCKET_FINE: return
        case SHIM_SOCKET_TIMEOUT: throw .sendTimeout
        case SHIM_SOCKET_NO_MEANS: throw .transport
        default:
            if isRemote { becomeInvalid() }
            throw .invalid(label)
        }
    }

    /// On the loop's thread: one message, so that a run returns for each.
    private func receiveNext() {
        guard let message = listener?.next() else { return }
        descriptorSource?.interest = .readable  // a run inside the delegate receives, too
        guard let (answerTo, parts) = Envelope.decode(message.payload) else { return }
        let components = parts.compactMap { part -> (any Sendable)? in
            switch part {
            case .bytes(let bytes): bytes
            case .port(let bytes): Self.port(bytes, named: message.peer)
            }
        }
        let answerPort = Self.port(answerTo, named: message.peer)
        deliver(PortMessage(answerTo: answerPort, cameTo: self, number: message.msgid, components: components))
    }

    /// The port that a peer has named: this process's own, one that is known, or a new one. A peer on another machine cannot name an
    /// address of this machine.
    private static func port(_ bytes: [UInt8], named peer: SocketAddress?) -> SocketPort? {
        guard var address = SocketAddress(inMessage: bytes) else { return nil }
        let isNear = peer?.isLoopback ?? true
        if isNear, let local = locals[address], local.isValid { return local }
        if address.isWildcard { address = address.with(host: peer?.host ?? SocketAddress.loopback(address.family)) ?? address }
        if address.isLoopback && !isNear { return nil }
        let known = [locals[address], remotes[address]].compactMap { $0 }
        return known.first { $0.isValid } ?? SocketPort(remote: address, 0)
    }
}

/// The sending side to an address: a connection that is made when it is first needed.
@safe private final class SocketLine: Sendable {
    /// Any thread may use it: the C object has a lock of its own.
    @safe nonisolated(unsafe) private let line: OpaquePointer

    init(to address: SocketAddress, _ protocol: Int32) {
        line = unsafe address.bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { fault("an address has bytes") }
            return unsafe shim_line_create(`protocol`, base, buffer.count)
        }
    }

    deinit { unsafe shim_line_destroy(line) }

    func end() { unsafe shim_line_end(line) }

    /// One of SHIM_SOCKET_FINE to SHIM_SOCKET_GONE.
    func send(_ bytes: [UInt8], until date: WallTime) -> Int {
        let limit = Duration(clampedSeconds: max(0, date.timeIntervalSinceNow)).inNanoseconds
        return unsafe bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return SHIM_SOCKET_FINE }
            return Int(unsafe shim_line_send(line, base, buffer.count, limit))
        }
    }
}
