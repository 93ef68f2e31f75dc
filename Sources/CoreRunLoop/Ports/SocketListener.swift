// SPDX-License-Identifier: Apache-2.0
//
// The receiving side of a socket port: a listening socket and its accepted connections, in one poll set, which is one descriptor for
// the loop. Nothing is read ahead: a message that the loop has not asked for waits in the kernel, and its sender with it. `state` guards
// the sockets; messages are delivered without it.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A message as it came, and the connection's other end.
struct SocketMessage: Sendable {
    let msgid: UInt32
    let payload: [UInt8]
    let peer: SocketAddress?
}

/// The bytes of a message on a connection: a mark, the payload's length, the message's number, the payload; lowest bytes first.
enum SocketFrame {
    static let headerSize = 12
    /// The largest payload that is sent or received.
    static let largestPayload = 16 << 20
    private static let mark: [UInt8] = Array("CRLS".utf8)

    static func encode(msgid: UInt32, _ payload: [UInt8]) -> [UInt8]? {
        guard payload.count <= largestPayload else { return nil }
        return mark + bytes(UInt32(payload.count)) + bytes(msgid) + payload
    }

    /// `nil` for a header that no sender of ours has written.
    static func decode(header: [UInt8]) -> (length: Int, msgid: UInt32)? {
        guard header.count == headerSize, header.starts(with: mark) else { return nil }
        let length = Int(number(header[4..<8]))
        return length <= largestPayload ? (length, number(header[8..<12])) : nil
    }

    private static func bytes(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (UInt32($0) * 8)) } }
    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) } }
}

/// One accepted connection.
private struct Connection {
    enum Progress {
        case incomplete
        case whole(SocketMessage)
        case ended
    }
    /// The most that one call reads. Bytes that a sender only announces take no memory.
    private static let step = 65536

    let socket: Int32
    private var header: [UInt8] = []
    private var payload: [UInt8] = []

    init(_ socket: Int32) { self.socket = socket }

    /// Reads up to the end of the current message.
    mutating func read() -> Progress {
        while true {
            let missing = header.count < SocketFrame.headerSize ? SocketFrame.headerSize - header.count : missingPayload
            guard let missing else { return .ended }
            if missing == 0 { return takeMessage() }
            guard let bytes = readSome(min(missing, Self.step)) else { return .ended }
            if bytes.isEmpty { return .incomplete }
            if header.count < SocketFrame.headerSize { header += bytes } else { payload += bytes }
        }
    }

    /// `nil` if the header is malformed.
    private var missingPayload: Int? { SocketFrame.decode(header: header).map { $0.length - payload.count } }

    private mutating func takeMessage() -> Progress {
        guard let (_, msgid) = SocketFrame.decode(header: header) else { return .ended }
        defer { (header, payload) = ([], []) }
        return .whole(SocketMessage(msgid: msgid, payload: payload, peer: .ofPeer(socket)))
    }

    /// Empty when nothing has come yet; `nil` at the end.
    private func readSome(_ limit: Int) -> [UInt8]? {
        var result = SHIM_ENDED
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            result = unsafe shim_socket_read(socket, base, limit)
            count = max(0, result)
        }
        return result == SHIM_ENDED ? nil : bytes
    }
}

/// A listening socket with its connections.
final class SocketListener: Sendable {
    /// More peers than this wait to be accepted.
    private static let mostConnections = 512
    /// How many sockets one call looks at.
    private static let budget = 64

    private struct State {
        var connections: [Int32: Connection] = [:]
        var isListening = true
        var isClosed = false
    }
    let socket: Int32
    private let pollSet: Int32
    private let state = Mutex(State())

    /// Takes over a listening socket, also if it throws.
    init(socket: Int32) throws(PortError) {
        self.socket = socket
        pollSet = shim_poll_set_create()
        guard pollSet >= 0, shim_poll_set_add(pollSet, socket) == 0 else {
            shim_socket_close(pollSet)
            shim_socket_close(socket)
            throw .transport
        }
    }

    deinit { close() }

    /// A source that calls `receive` when there is something to look at, on its loop's thread.
    func makeSource(_ receive: @escaping @Sendable () -> Void) throws(PortError) -> DescriptorSource {
        do { return try DescriptorSource(descriptor: pollSet) { _ in receive() } } catch { throw .transport }
    }

    /// Closes all sockets. Any thread.
    func close() {
        state.withLock { state in
            if state.isClosed { return }
            state.isClosed = true
            for socket in state.connections.keys { shim_socket_close(socket) }
            state.connections = [:]
            shim_socket_close(socket)
            shim_socket_close(pollSet)
        }
    }

    /// The next message that is whole; `nil` when there is none yet.
    func next() -> SocketMessage? {
        state.withLock { state in
            for _ in 0..<Self.budget {
                if state.isClosed { return nil }
                let ready = shim_poll_set_next(pollSet)
                if ready < 0 { return nil }
                let connection = ready == socket ? accept(&state) : ready
                if let connection, let message = read(connection, &state) { return message }
            }
            return nil
        }
    }

    private func accept(_ state: inout State) -> Int32? {
        let accepted = shim_socket_accept(socket)
        if accepted < 0 || state.connections.count + 1 >= Self.mostConnections { pauseListening(&state) }
        guard accepted >= 0 else { return nil }
        guard shim_poll_set_add(pollSet, accepted) == 0 else {
            shim_socket_close(accepted)
            return nil
        }
        state.connections[accepted] = Connection(accepted)
        return accepted
    }

    /// Until a connection ends, there is no room or no descriptor for another.
    private func pauseListening(_ state: inout State) {
        guard state.isListening, !state.connections.isEmpty else { return }
        state.isListening = false
        shim_poll_set_remove(pollSet, socket)
    }

    private func read(_ socket: Int32, _ state: inout State) -> SocketMessage? {
        guard let progress = state.connections[socket]?.read() else { return nil }
        switch progress {
        case .incomplete: return nil
        case .whole(let message): return message
        case .ended:
            state.connections[socket] = nil
            shim_socket_close(socket)
            if !state.isListening { state.isListening = shim_poll_set_add(pollSet, self.socket) == 0 }
            return nil
        }
    }
}
