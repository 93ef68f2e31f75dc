// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Finds ports by their names, among the threads of one process.
public final class MachBootstrapServer: Sendable {
    /// The only one.
    public static let shared = MachBootstrapServer()
    private final class Entry: Sendable {
        weak let port: MachPort?
        init(_ port: MachPort) { self.port = port }
    }
    /// By what names are on Apple's systems: their bytes.
    private let entries = Mutex<[[UInt8]: Entry]>([:])
    private init() {}

    /// Finds the port with this name.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - host: `nil` or empty: these ports do not leave their process.
    /// - Returns: `nil` when nobody has the name.
    public func port(forName name: String, host: String? = nil) -> MachPort? {
        guard host?.isEmpty ?? true else { return nil }
        return entries.withLock { $0[Array(name.utf8)]?.port }.flatMap { $0.isValid ? $0 : nil }
    }

    /// Gives a port a name, beside those that it has.
    ///
    /// - Returns: `false` when another living port has the name, it is empty, or `port` is invalid. Invalidating the port, or its last
    ///   release, gives its names up.
    public func registerPort(_ port: MachPort, name: String) -> Bool {
        let bytes = Array(name.utf8)
        let entry = Entry(port)
        if bytes.isEmpty || !port.isValid { return false }
        let (owner, isNew) = entries.withLock { entries -> (MachPort?, Bool) in
            let owner = entries[bytes]?.port
            if let owner, owner.isValid { return (owner, false) }
            entries[bytes] = entry
            return (owner, true)
        }
        if isNew { port.onInvalidate { [self] in forget(bytes, entry) } }
        return isNew || owner === port
    }

    private func forget(_ name: [UInt8], _ entry: Entry) {
        entries.withLock { entries in if entries[name] === entry { entries[name] = nil } }
    }

    /// Whether there is an entry, be its port there or not.
    package func isKnown(_ name: String) -> Bool { entries.withLock { $0[Array(name.utf8)] != nil } }
}
