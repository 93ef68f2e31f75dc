// SPDX-License-Identifier: Apache-2.0
//
// Addresses of socket ports: the system's structure, as bytes, and the form in which they travel, which does not depend on the system.

import CoreRunLoopShims

/// The families that socket ports know, by the numbers of Linux.
enum SocketFamily: Int32 {
    case unix = 1
    case ipv4 = 2
    case ipv6 = 10
}

/// An address that a socket port can have.
struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in the form of the system's calls.
    let bytes: [UInt8]
    let family: SocketFamily

    /// Returns `nil` if the bytes are not an address of a family that socket ports know.
    init?(bytes: [UInt8]) {
        let number = unsafe bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return Int32(-1) }
            return unsafe shim_address_family(base, buffer.count)
        }
        guard let family = SocketFamily(rawValue: number) else { return nil }
        self.bytes = bytes
        self.family = family
    }

    /// A host's address, of 4 or 16 bytes, and a port's number.
    init?(host: [UInt8], number: UInt16) {
        guard host.count == 4 || host.count == 16 else { return nil }
        let family = host.count == 4 ? SocketFamily.ipv4 : .ipv6
        unsafe self.init { address in
            unsafe host.withUnsafeBufferPointer { buffer in
                unsafe buffer.baseAddress.map { unsafe shim_address_make(family.rawValue, $0, number, address) } ?? 0
            }
        }
    }

    /// A path of the file system.
    init?(path: [UInt8]) {
        unsafe self.init { address in
            unsafe path.withUnsafeBufferPointer { buffer in
                unsafe buffer.baseAddress.map { unsafe shim_address_of_path($0, buffer.count, address) } ?? 0
            }
        }
    }

    /// The address that a listening socket has.
    static func of(socket: Int32) -> SocketAddress? { unsafe SocketAddress { unsafe shim_socket_name(socket, $0) } }
    /// The address that a connection comes from.
    static func ofPeer(_ socket: Int32) -> SocketAddress? { unsafe SocketAddress { unsafe shim_socket_peer(socket, $0) } }

    /// Calls `fill`, which writes the address and returns its length.
    private init?(_ fill: (UnsafeMutablePointer<UInt8>) -> Int) {
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Int(SHIM_ADDRESS_SIZE)) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            unsafe base.initialize(repeating: 0, count: buffer.count)
            count = unsafe max(0, min(fill(base), buffer.count))
        }
        self.init(bytes: bytes)
    }

    /// The number of a TCP port.
    var number: UInt16 {
        unsafe bytes.withUnsafeBufferPointer { buffer in unsafe buffer.baseAddress.map { unsafe shim_address_number($0) } ?? 0 }
    }

    /// The host's 4 or 16 bytes; of a Unix socket the path's.
    var host: [UInt8] {
        if family == .unix { return Array(bytes.dropFirst(2).prefix { $0 != 0 }) }
        return unsafe bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return [] }
            return unsafe Array(UnsafeBufferPointer(start: shim_address_host(base, family.rawValue), count: family == .ipv4 ? 4 : 16))
        }
    }

    /// Whether the address stands for all addresses of this machine.
    var isWildcard: Bool { family != .unix && host.allSatisfy { $0 == 0 } }

    /// Whether a machine can only reach itself by this address.
    var isLoopback: Bool {
        switch family {
        case .unix: true
        case .ipv4: host[0] == 127
        case .ipv6: host == Self.loopback(.ipv6) || (host.prefix(12) == Self.mapped && host[12] == 127)
        }
    }

    /// The beginning of an IPv4 address that is written as one of IPv6.
    private static let mapped: ArraySlice<UInt8> = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    static func loopback(_ family: SocketFamily) -> [UInt8] {
        family == .ipv4 ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1]
    }

    /// The address with another host.
    func with(host: [UInt8]) -> SocketAddress? { SocketAddress(host: host, number: number) }

    // MARK: In messages

    /// The family as 0, 4 or 6; the number, highest byte first; the host or the path.
    var inMessage: [UInt8] {
        let kind: UInt8 =
            switch family {
            case .unix: 0
            case .ipv4: 4
            case .ipv6: 6
            }
        return [kind, UInt8(number >> 8), UInt8(number & 0xFF)] + host
    }

    init?(inMessage bytes: [UInt8]) {
        guard bytes.count > 3 else { return nil }
        let rest = Array(bytes.dropFirst(3))
        switch (bytes[0], rest.count) {
        case (0, _): self.init(path: rest)
        case (4, 4), (6, 16): self.init(host: rest, number: UInt16(bytes[1]) << 8 | UInt16(bytes[2]))
        default: return nil
        }
    }

    // MARK: As text

    /// The address as people write it.
    var description: String {
        switch family {
        case .unix: String(decoding: host, as: UTF8.self)
        case .ipv4: "\(hostText):\(number)"
        case .ipv6: "[\(hostText)]:\(number)"
        }
    }

    private var hostText: String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(SHIM_ADDRESS_SIZE)) { text in
            unsafe host.withUnsafeBufferPointer { host in
                guard let base = text.baseAddress, let bytes = host.baseAddress else { return "" }
                unsafe shim_host_format(family.rawValue, bytes, base)
                return unsafe String(cString: base)
            }
        }
    }

    /// The bytes of a host that is written in numbers, or is `localhost`; `nil` for a name that would need a lookup.
    static func parse(host: String) -> [UInt8]? {
        if host.isEmpty || host == "localhost" { return loopback(.ipv4) }
        if host.utf8.contains(0) { return nil }  // where C would take it to end
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            if let base = buffer.baseAddress { count = unsafe shim_host_parse(host, base) }
        }
        return bytes.isEmpty ? nil : bytes
    }
}

/// The file that a Unix socket has made. Another socket may get the path when somebody removes the file.
struct SocketFile: Sendable {
    private let address: SocketAddress
    private let identity: shim_file_identity

    /// `nil` of an address without a file.
    init?(at address: SocketAddress) {
        var identity = shim_file_identity()
        let isFound = unsafe address.bytes.withUnsafeBufferPointer { buffer in
            unsafe buffer.baseAddress.map { unsafe shim_socket_file($0, buffer.count, &identity) } ?? false
        }
        if !isFound { return nil }
        (self.address, self.identity) = (address, identity)
    }

    /// Removes the socket's file, if it is still at its path.
    func remove() {
        unsafe address.bytes.withUnsafeBufferPointer { buffer in
            if let base = buffer.baseAddress { unsafe shim_socket_unlink(base, buffer.count, identity) }
        }
    }
}
