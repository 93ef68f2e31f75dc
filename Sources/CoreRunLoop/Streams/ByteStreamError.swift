// SPDX-License-Identifier: Apache-2.0

import CCoreRunLoop
import CoreRunLoopShims

/// Why a byte stream, or a listener for connections, could not do something.
public struct ByteStreamError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong.
    public enum Reason: Hashable, Sendable {
        /// The system refused; the number is `errno`'s.
        case system(Int32)
        /// The host's name cannot be resolved; the number is `getaddrinfo`'s.
        case name(Int32)
        /// TLS failed; the number is the TLS library's.
        case tls(Int32)
        /// An error of another domain of `CFStreamError`.
        case other(domain: Int, number: Int32)
        /// A host's name, or TLS, needs the add-on library `corerunloop-net`, which is not in the process.
        case needsNetworkLibrary
        /// The time limit came first.
        case timedOut
        /// The program has closed it.
        case closed
        /// The thread of the loop has ended.
        case loopEnded
        /// The line has more bytes than the limit. They can still be read.
        case lineTooLong(limit: Int)
        /// The bytes ended before as many as were asked for. Those that came can still be read.
        case endedEarly(received: Int, wanted: Int)
        /// An earlier write was given up when a part of its bytes had gone out. More bytes would not be understood.
        case writeCutShort
        /// The stream is only written to.
        case notReadable
        /// The stream is only read from, or its writing has been finished.
        case notWritable
    }

    /// What went wrong.
    public let reason: Reason
    /// The other end as the program named it, or its numeric address: `host:port`, or the path of a file. `nil` if there is none.
    public let peer: String?

    /// What is known beyond the reason, such as the name that a certificate should have had.
    private let detail: String?

    /// The reason in words, and the other end.
    public var description: String { (peer.map { "\($0): " } ?? "") + (detail ?? reason.text) }

    /// Makes an error, as tests of a program may need one.
    public init(_ reason: Reason, peer: String? = nil) {
        self.init(reason, peer, nil)
    }

    private init(_ reason: Reason, _ peer: String?, _ detail: String?) {
        (self.reason, self.peer, self.detail) = (reason, peer, detail)
    }

    /// Whether both have the same reason and the same other end.
    public static func == (one: Self, other: Self) -> Bool { one.reason == other.reason && one.peer == other.peer }

    /// Hashes the reason and the other end.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(reason)
        hasher.combine(peer)
    }

    /// The error of a C stream, and a copy of it that has its words.
    init(_ error: CFStreamError, _ copy: CFError?, peer: String?) {
        switch error.domain {
        case CFStreamErrorDomain.domainPOSIX.rawValue:
            // The core library's sign that a name cannot be asked for. connect(2) does not give it.
            self.init(error.error == Int32(SHIM_ENOSYS) ? .needsNetworkLibrary : .system(error.error), peer: peer)
        case Int(kCFStreamErrorDomainNetDB): self.init(.name(error.error), peer: peer)
        case Int(kCFStreamErrorDomainSSL): self.init(.tls(error.error), peer, copy.flatMap { text(CFErrorCopyFailureReason($0)) })
        default: self.init(.other(domain: error.domain, number: error.error), peer: peer)
        }
    }
}

extension ByteStreamError.Reason {
    fileprivate var text: String {
        switch self {
        case .system(let number): systemText(number)
        case .name(let number): words("kCFErrorDomainCFNetwork", number) ?? "the name does not resolve, error \(number)"
        case .tls(let number): words("NSOSStatusErrorDomain", number) ?? "TLS failed, error \(number)"
        case .other(let domain, let number): "error \(number) of the domain \(domain)"
        case .needsNetworkLibrary: "host names and TLS need the library corerunloop-net, which is not in this process"
        case .timedOut: "the time limit came first"
        case .closed: "closed by the program"
        case .loopEnded: "the thread of the loop has ended"
        case .lineTooLong(let limit): "a line has more than \(limit) bytes"
        case .endedEarly(let received, let wanted): "the bytes ended after \(received) of \(wanted)"
        case .writeCutShort: "an earlier write was given up halfway"
        case .notReadable: "this stream cannot be read"
        case .notWritable: "this stream cannot be written"
        }
    }
}

/// What the system calls a number of `errno`.
package func systemText(_ number: Int32) -> String { words("NSPOSIXErrorDomain", number) ?? "error \(number) of the system" }

private func text(_ string: CFString?) -> String? { string.map { String($0) } }

/// The C library's words for a number.
private func words(_ domain: String, _ number: Int32) -> String? {
    CFErrorCreate(nil, domain.cfString, CFIndex(number), nil).flatMap { text(CFErrorCopyFailureReason($0)) }
}
