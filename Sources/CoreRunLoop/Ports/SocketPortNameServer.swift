// SPDX-License-Identifier: Apache-2.0
//
// Names of socket ports: for each a message port of its own, which answers with the address.

import CoreRunLoopShims
import Synchronization

/// Finds socket ports by their names, on one machine and for one user.
///
/// A name is kept by the process that registered it, on a thread of its own, and goes with the port or with the process.
public final class SocketPortNameServer: Sendable {
    /// The only one.
    public static let shared = SocketPortNameServer()

    private struct Entry {
        weak var port: SocketPort?
        let holder: MessagePort
        /// By which the port tells of its end.
        let watch: Int
    }
    /// The entries by name. A name is the bytes by which other processes know it.
    private let entries = Mutex<[[UInt8]: Entry]>([:])
    private static let loop = Mutex<RunLoop?>(nil)
    private init() {}

    /// The name of the message port that answers for a name.
    private static func holderName(_ name: String) -> String { "SocketPort:" + name }

    /// Finds the port with this name.
    ///
    /// Asks the process that has the name, and waits at most five seconds for the answer.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - host: `nil`, empty or `localhost`: names are known on their own machine.
    /// - Returns: This process's own port, or one that sends; `nil` when nobody has the name.
    @available(*, noasync, message: "waiting would block the task's thread; ask on a thread")
    public func port(forName name: String, host: String? = nil) -> SocketPort? {
        guard ["", "localhost"].contains(host ?? "") else { return nil }
        if let entry = entries.withLock({ $0[Array(name.utf8)] }) { return entry.port.flatMap { $0.isValid ? $0 : nil } }
        guard let holder = try? MessagePort(remote: Self.holderName(name)),
            let bytes = try? holder.requestAndWait(number: 0, [], timeout: .seconds(5)), let address = SocketAddress(inMessage: bytes)
        else { return nil }
        return try? SocketPort(
            remoteWithProtocolFamily: address.family.rawValue, socketType: 1, protocol: 0, address: address.bytes)
    }

    /// Gives a port of this process a name; it may have several.
    ///
    /// - Parameters:
    ///   - port: A local port.
    ///   - name: At most 117 bytes.
    /// - Returns: `false` when a living port has the name, the name cannot be one, or `port` only sends or is invalid.
    public func registerPort(_ port: SocketPort, name: String) -> Bool {
        let bytes = Array(name.utf8)
        if let entry = entries.withLock({ $0[bytes] }) {
            if let own = entry.port, own.isValid { return own === port }
            remove(bytes, entry.holder)
        }
        guard !port.isRemote, port.isValid, !name.isEmpty, let loop = Self.servingLoop(),
            let holder = try? MessagePort(name: Self.holderName(name)), let address = port.addressForOthers
        else { return false }
        holder.onRequest = { _, _ in address }
        let watch = port.addInvalidationHandler { [weak self, weak holder] in if let holder { self?.remove(bytes, holder) } }
        entries.withLock { $0[bytes] = Entry(port: port, holder: holder, watch: watch) }
        loop.add(holder, forMode: .default)
        if !port.isValid { remove(bytes, holder) }  // what the watch did may have come too early
        return port.isValid
    }

    /// Takes a name from its port, which stays valid.
    ///
    /// - Returns: `false` when no port of this process has the name.
    public func removePort(forName name: String) -> Bool {
        let bytes = Array(name.utf8)
        guard let holder = entries.withLock({ $0[bytes]?.holder }) else { return false }
        remove(bytes, holder)
        return true
    }

    private func remove(_ name: [UInt8], _ holder: MessagePort) {
        let removed = entries.withLock { entries in entries[name]?.holder === holder ? entries.removeValue(forKey: name) : nil }
        if let removed { removed.port?.removeInvalidationHandler(removed.watch) }
        holder.invalidate()
    }

    /// The loop that answers for this process's names; made at the first name, and never stopped.
    private static func servingLoop() -> RunLoop? {
        if let loop = loop.withLock({ $0 }) { return loop }
        // The lock is not held: a handler that is told of the process's first thread may need the loop, too. Only one of the loops made
        // stays.
        let stop = RunLoop.StopToken()
        guard let made = try? Thread.runningLoop(name: "port names", until: stop) else { return nil }
        let kept = loop.withLock { loop in
            let kept = loop ?? made
            loop = kept
            return kept
        }
        if kept !== made { stop.requestStop() }
        return kept
    }
}

extension SocketPort {
    /// The address by which other processes of this machine reach it.
    fileprivate var addressForOthers: [UInt8]? {
        let host = socketAddress.isWildcard ? SocketAddress.loopback(socketAddress.family) : socketAddress.host
        return socketAddress.family == .unix ? socketAddress.inMessage : socketAddress.with(host: host)?.inMessage
    }
}
