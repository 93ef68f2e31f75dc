// SPDX-License-Identifier: Apache-2.0
//
// Ports and their messages with Foundation's Data, Date and arrays.

public import CoreRunLoop
public import Foundation
import Synchronization

extension Data: PortMessageData {
    /// The bytes.
    public var portMessageBytes: [UInt8] { [UInt8](self) }

    /// The bytes of a C object.
    public init(_ data: CFData) { self.init([UInt8](data)) }

    /// A new C object with these bytes: what `as CFData` gives on Darwin.
    public var cfData: CFData { [UInt8](self).cfData }
}

/// Converts a component for sending: Data becomes bytes, and the port decides on all else.
private func sendable(_ component: Any) -> any Sendable {
    switch component {
    case let data as Data: [UInt8](data)
    case let data as NSData: [UInt8](Data(referencing: data))
    case let port as CoreRunLoop::Port: port
    case let bytes as [UInt8]: bytes
    default: ForeignComponent(component)
    }
}

extension CoreRunLoop::PortMessage {
    /// Makes a message to be sent, with Foundation's components: data and ports.
    @_disfavoredOverload
    public convenience init(sendPort: CoreRunLoop::Port?, receivePort: CoreRunLoop::Port?, components: [Any]?) {
        self.init(sendPort: sendPort, receivePort: receivePort, components: components.map { $0.map(sendable) })
    }

    /// Makes a message to be sent, with Foundation's components, by the shorter of Darwin's two names for the same.
    @_disfavoredOverload
    public convenience init(send sendPort: CoreRunLoop::Port?, receive receivePort: CoreRunLoop::Port?, components: [Any]?) {
        self.init(sendPort: sendPort, receivePort: receivePort, components: components)
    }

    /// The components as Foundation has them: data and ports; `nil` without any.
    public var components: [Any]? {
        let components = self.CoreRunLoop::components
        return components.isEmpty ? nil : components.map { component -> Any in (component as? [UInt8]).map { Data($0) } ?? component }
    }

    /// Sends the message; see `send(before:)` with a `WallTime`.
    @discardableResult
    public func send(before date: Date) -> Bool { send(before: WallTime(date)) }

    /// The components that are bytes, as Foundation has them.
    public var dataComponents: [Data] { self.CoreRunLoop::components.compactMap { ($0 as? [UInt8]).map { Data($0) } } }
}

extension CoreRunLoop::Port {
    /// The receiver of the messages: the property `delegate`, as Foundation spells it.
    @_disfavoredOverload
    public func delegate() -> (any CoreRunLoop::PortDelegate)? { delegate }

    /// How much room the first component needs for this port: none.
    public var reservedSpaceLength: Int { 0 }

    /// Posted once when a port becomes invalid, on the thread where that happened, with the port as its object.
    ///
    /// The default notification center gets it from the first use of this name on. A port whose subclass posts it by itself leaves its
    /// loops.
    public static let didBecomeInvalidNotification: Notification.Name = {
        let name = Notification.Name("NSPortDidBecomeInvalidNotification")
        invalidations.start { NotificationCenter.default.post(name: name, object: $0) }
        // Foundation's center keeps the observer for as long as the process lives.
        _ = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { notification in
            (notification.object as? CoreRunLoop::Port)?.leaveLoops()
        }
        return name
    }()

    /// Sends a message with Foundation's components, data and ports; see `send(before:msgid:components:from:reserved:)` with a `WallTime`.
    @_disfavoredOverload
    @discardableResult
    public func send(
        before date: Date, msgid: Int = 0, components: NSMutableArray?, from receivePort: CoreRunLoop::Port?, reserved: Int = 0
    ) -> Bool {
        send(
            before: WallTime(date), msgid: UInt32(truncatingIfNeeded: msgid), components: components.map { $0.map(sendable) },
            from: receivePort, reserved: reserved)
    }
}

/// Keeps the handler that posts invalidations for as long as the process lives.
private final class Invalidations: Sendable {
    func start(_ handler: @escaping @Sendable (CoreRunLoop::Port) -> Void) {
        registration.withLock { $0 = CoreRunLoop::Port.onDidBecomeInvalid(handler) }
    }
    private let registration = Mutex<CoreRunLoop::Port.InvalidationRegistration?>(nil)
}
private let invalidations = Invalidations()

extension CoreRunLoop::SocketPort {
    /// The address as a `sockaddr` structure: the one where the port listens, or the one that it sends to.
    public var address: Data { Data(self.CoreRunLoop::address) }

    // Foundation's initializers tell no reason. The overlay's throw: `try SocketPort.CoreRunLoop::init(tcpPort: 80)`.

    /// Makes a port that listens on 127.0.0.1; `nil` if that is not possible. Number 0 lets the system choose one.
    public convenience init?(tcpPort number: UInt16) {
        do { try self.CoreRunLoop::init(tcpPort: number) } catch { return nil }
    }

    /// Makes a port that listens at an address; `nil` if that is not possible.
    public convenience init?(protocolFamily family: Int32, socketType type: Int32, protocol: Int32, address: Data) {
        do {
            try self.init(protocolFamily: family, socketType: type, protocol: `protocol`, address: [UInt8](address))
        } catch { return nil }
    }

    /// Makes a port of a socket that listens already, and takes the socket over. It closes the socket and is `nil` if that is not possible.
    public convenience init?(protocolFamily family: Int32, socketType type: Int32, protocol: Int32, socket: Int32) {
        do {
            try self.CoreRunLoop::init(protocolFamily: family, socketType: type, protocol: `protocol`, socket: socket)
        } catch { return nil }
    }

    /// Makes a port that sends to a TCP port of `host`; `nil` for a host that is not an address in numbers, and for number 0.
    public convenience init?(remoteWithTCPPort number: UInt16, host: String?) {
        do { try self.CoreRunLoop::init(remoteWithTCPPort: number, host: host) } catch { return nil }
    }

    /// Makes a port that sends to an address. The port is invalid if it can have no such address.
    public convenience init(remoteWithProtocolFamily family: Int32, socketType type: Int32, protocol: Int32, address: Data) {
        self.init(remoteOrInvalid: family, type, `protocol`, address: [UInt8](address))
    }
}

extension CoreRunLoop::MessagePort {
    /// Sends data as C programs do, waits for the answer, and returns the answer's data.
    ///
    /// - Throws: Any error that `requestBytes(number:_:timeout:)` throws.
    public func requestData(number: Int32, _ data: Data, timeout: TimeInterval = 30) async throws -> Data {
        Data(try await requestBytes(number: number, [UInt8](data), timeout: Duration(clampedSeconds: timeout)))
    }
}
