// SPDX-License-Identifier: Apache-2.0

/// Finds message ports by their names, in the user's directory of ports.
public final class MessagePortNameServer: Sendable {
    /// The only one.
    public static let shared = MessagePortNameServer()
    private init() {}

    /// Finds the port with this name.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - host: `nil` or empty: message ports do not leave their machine.
    /// - Returns: `nil` when nobody has the name.
    public func port(forName name: String, host: String? = nil) -> MessagePort? {
        guard host?.isEmpty ?? true else { return nil }
        return try? MessagePort(remote: name)
    }

    /// Gives a port of this process a name, beside those that it has.
    ///
    /// - Parameters:
    ///   - port: A local port.
    ///   - name: The name.
    /// - Returns: `false` when another living port has the name, when the name is not possible, or when `port` only sends or is invalid.
    ///   Invalidating the port gives its names up.
    public func registerPort(_ port: MessagePort, name: String) -> Bool { !port.isRemote && port.isValid && port.addName(name) }
}
