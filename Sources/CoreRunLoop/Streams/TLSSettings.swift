// SPDX-License-Identifier: Apache-2.0

public import CCoreRunLoop

/// How a connection is protected by TLS, which is done by the library `corerunloop-net`.
///
/// ```swift
/// let stream = try await ByteStream.connect(to: "www.example.com", port: 443, on: loop, withTLS: .client)
/// ```
///
/// Without changes a client verifies its peer: the certificate must come from an authority that the system trusts, be valid today, and have
/// the name that the program connects to.
public struct TLSSettings: Hashable, Sendable {
    /// Whose certificate is accepted.
    public enum Verification: Hashable, Sendable {
        /// That of the host that the program connects to.
        case host
        /// That of this name.
        case name(String)
        /// Anybody's whom a trusted authority knows.
        case anyName
        /// Anybody's: there is no protection against an active attacker.
        case none
    }

    /// Whose certificate is accepted.
    public var verification = Verification.host
    /// The authorities to trust, as certificates in PEM; empty are those of the system.
    public var authorities: [[UInt8]] = []
    /// The own certificate, its private key and its authorities, in PEM. A server needs them; a client does if the server asks.
    public var certificates: [[UInt8]] = []
    /// The application protocols to offer by ALPN, the best one first.
    public var applicationProtocols: [String] = []
    /// Whether this end takes the server's part in the handshake.
    public var isServer = false

    /// Settings of a client that verifies its peer.
    public init() {}

    /// Settings of a client that verifies its peer.
    public static let client = TLSSettings()

    /// Settings of a server, which asks its peers for no certificate.
    public static func server(certificates: [[UInt8]]) -> TLSSettings {
        var settings = TLSSettings()
        (settings.isServer, settings.certificates) = (true, certificates)
        return settings
    }
}

extension TLSSettings {
    /// The settings as `kCFStreamPropertySSLSettings` has them, for a stream of the C interface.
    ///
    /// The keys are the texts of CFNetwork's constants: `kCFStreamSSLPeerName` and its siblings.
    public var cfDictionary: CFDictionary {
        let made = unsafe withUnsafePointer(to: kCFTypeDictionaryKeyCallBacks) { keys in
            unsafe withUnsafePointer(to: kCFTypeDictionaryValueCallBacks) { values in unsafe CFDictionaryCreateMutable(nil, 0, keys, values)
            }
        }
        let settings = require(made, "TLSSettings")
        switch verification {
        case .host: break
        case .name(let name): settings.set("kCFStreamSSLPeerName", name.cfString)
        case .anyName: settings.set("kCFStreamSSLPeerName", kCFNull)
        case .none: settings.set("kCFStreamSSLValidatesCertificateChain", kCFBooleanFalse)
        }
        if !authorities.isEmpty { settings.set("kCRLStreamSSLAnchorCertificates", array(authorities.map(\.cfData))) }
        if !certificates.isEmpty { settings.set("kCFStreamSSLCertificates", array(certificates.map(\.cfData))) }
        if !applicationProtocols.isEmpty { settings.set("kCRLStreamSSLProtocols", array(applicationProtocols.map(\.cfString))) }
        if isServer { settings.set("kCFStreamSSLIsServer", kCFBooleanTrue) }
        return settings
    }
}

extension CFDictionary {
    fileprivate func set(_ key: String, _ value: some CFObject) {
        let key = key.cfString
        withExtendedLifetime((key, value)) { unsafe CFDictionarySetValue(self, key.address, value.address) }
    }
}

private func array(_ values: [some CFObject]) -> CFArray {
    let made = unsafe withUnsafePointer(to: kCFTypeArrayCallBacks) { unsafe CFArrayCreateMutable(nil, values.count, $0) }
    let array = require(made, "TLSSettings")
    for value in values { withExtendedLifetime(value) { unsafe CFArrayAppendValue(array, value.address) } }
    return array
}
