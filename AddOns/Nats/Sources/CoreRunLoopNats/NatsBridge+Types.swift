// SPDX-License-Identifier: Apache-2.0

extension NatsBridge {
    /// How a bridge reaches its server.
    public struct Configuration: Hashable, Sendable {
        /// URLs, `nats://HOST:PORT` or `tls://HOST:PORT`, which may have user and password: at most 16.
        public var servers: [String]
        /// The user, for servers whose URL has none.
        public var user: String?
        /// The user's password. It needs a user.
        public var password: String?
        /// The path of a file with a JWT and its seed, as nsc writes it.
        public var credentials: String?
        /// The path of a file of certificates in PEM that may have signed the server's; `nil` for the system's. Means TLS.
        public var authorities: String?
        /// The path of the client's own certificate in PEM. It needs a ``key``. Means TLS.
        public var certificate: String?
        /// The path of the certificate's key in PEM.
        public var key: String?
        /// This machine's name among the bridges, of at most 64 bytes; `nil` for the host's name.
        public var machine: String?
        /// Whether one-way messages are kept by the server (JetStream) until their receivers have them.
        public var isDurable = false

        /// A configuration for servers, of which one is chosen, and another when it is lost.
        public init(servers: [String]) { self.servers = servers }
    }

    /// Something that happened to a bridge.
    public struct Event: Hashable, Sendable {
        /// What happened.
        public enum Kind: Int32, Hashable, Sendable, CaseIterable {
            /// The server was reached.
            case connected = 0
            /// The connection is lost, and being made again.
            case disconnected = 1
            /// An imported name has a local port, or the port of an exported name is there.
            case nameAppeared = 2
            /// The port of a name has gone.
            case nameVanished = 3
            /// No server was reached. It is tried again.
            case cannotConnect = -1
            /// The server wants other credentials. It is tried again.
            case refused = -2
            /// Another machine exports the name, and not both share it: only `NAME@MACHINE` leads here.
            case nameTaken = -3
            /// The local port of an imported name cannot be made: another program has the name.
            case nameUnusable = -4
            /// A message was refused or dropped: it is too large, the receiver is too slow or has gone, or there is no connection.
            case messageDropped = -5
            /// Something that no bridge sends has arrived, and was dropped.
            case peerMisbehaves = -6
            /// The server does not allow a subject, for instance, or does not keep messages.
            case serverComplains = -7
            /// A kept message may have been handled, or not. It is not sent again.
            case messageInDoubt = -8

            /// Whether it is an error. Each kind of error is told once a second at most, with the number of those left out;
            /// each message in doubt is told.
            public var isError: Bool { rawValue < 0 }
        }

        /// What happened.
        public let kind: Kind
        /// The port's name; `nil` if it is about the server.
        public let name: String?
        /// One line for people, with the name in it.
        public let text: String
    }
}

/// Why a bridge, or a name of it, cannot be.
public enum NatsBridgeError: Error, Hashable, Sendable {
    /// The configuration cannot be followed, or there is no memory. A line on standard error has said why.
    case invalidConfiguration
    /// A name cannot be one, or is used already. The text has the name and the reason.
    case invalidName(String)
    /// The bridge has ended.
    case invalidated
    /// There is no memory.
    case noMemory
}
