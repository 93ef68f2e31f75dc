// SPDX-License-Identifier: Apache-2.0

import Distributed

/// Names a distributed actor of a ``MessagePortActorSystem``: the message port where its calls go, and its number there.
///
/// An actor that is hosted under a name has a port of its own, and the number 0. Its ID means whoever has that name now, also after its
/// process was started anew. Every other actor has a number at the port of its system, and its ID ends with it.
///
/// As text, and when it is encoded, an ID is its version, its number and the port's name with a colon between: `1:0:actor:Jobs.Queue/main`.
public struct MessagePortActorID: Hashable, Sendable, CustomStringConvertible {
    /// The name of the message port.
    public let port: String
    /// The actor's number at the port; 0 for the actor whose port it is.
    public let number: UInt64

    private static let version = "1"

    init(port: String, number: UInt64 = 0) {
        self.port = port
        self.number = number
    }

    /// Reads an ID that ``description`` has written.
    ///
    /// - Throws: ``MessagePortActorError/unknownVersion(_:)`` for an ID of another version of this library, and
    ///   ``MessagePortActorError/invalidID(_:)`` for a text that is no ID.
    public init(_ text: String) throws(MessagePortActorError) {
        let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { throw .invalidID(text) }
        if parts[0] != Self.version { throw .unknownVersion(text) }
        let port = String(parts[2])
        guard let number = UInt64(parts[1]), PortName.isPossible(port) else { throw .invalidID(text) }
        self.init(port: port, number: number)
    }

    /// The ID as text.
    public var description: String { "\(Self.version):\(number):\(port)" }
}

extension MessagePortActorID: Codable {
    /// Decodes the text.
    ///
    /// - Throws: As ``init(_:)``, and what the decoder throws.
    public init(from decoder: any Decoder) throws { try self.init(String(from: decoder)) }

    /// Encodes the text.
    ///
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}

/// The names of the ports of hosted actors: `actor:`, the actor's kind, a slash, its own name. The kind is a type or a protocol with its
/// module, by which the actors of a kind are found in the directory of names, without a question to anybody.
struct PortName: Hashable, Sendable {
    let kind: String
    let name: String

    private static let prefix = "actor:"
    private static let longest = 128  // bytes, of any port's name

    static func isPossible(_ port: String) -> Bool { !port.isEmpty && port.utf8.count <= longest && !port.utf8.contains(0) }

    var text: String { "\(Self.prefix)\(kind)/\(name)" }

    /// `nil` for a port that hosts no actor.
    init?(_ port: String) {
        guard port.hasPrefix(Self.prefix) else { return nil }
        let parts = port.dropFirst(Self.prefix.count).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
        kind = String(parts[0])
        name = String(parts[1])
    }

    /// The name of an actor of a type, or of the protocol that a `@Resolvable` type stands for.
    init(_ name: String, _ type: Any.Type) throws(MessagePortActorError) {
        self.name = name
        kind = try Self.kind(of: type)
        if name.isEmpty || !Self.isPossible(text) { throw .invalidName(name) }
    }

    /// `Jobs.Queue` for `Jobs.Queue`, and for `Jobs.$Queue` or `Jobs.$Queue<...>`, which the compiler makes for a protocol `Jobs.Queue`.
    static func kind(of type: Any.Type) throws(MessagePortActorError) -> String {
        let full = String(reflecting: type)
        if full.contains("(") { throw .unnamedType(full) }  // private types are described by addresses
        if type is any _DistributedActorStub.Type { return full.prefix { $0 != "<" }.filter { $0 != "$" } }
        if full.contains("<") { throw .unnamedType(full) }  // the names of its functions have no types for its parameters
        return full
    }
}
