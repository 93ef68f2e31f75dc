// SPDX-License-Identifier: Apache-2.0
//
// CFMessagePort. Messages between two ports of this class are envelopes, in which a port is its name. Every other message is a request as C
// programs send it, and goes to the request handlers.

public import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A port between processes of one machine, found by its name.
///
/// ```swift
/// let port = try MessagePort(name: "com.example.greeter")
/// port.handle(.text(number: 1)) { name in "hello, \(name)" }
/// RunLoop.main.add(port, forMode: .common)
/// // in another process
/// let answer = try await MessagePort(remote: "com.example.greeter").request(.text(number: 1), "world")
/// ```
public final class MessagePort: Port, @unchecked Sendable {
    /// The C object.
    public let cfMessagePort: CFMessagePort
    /// Whether this object stands for another port, and can only be sent to.
    public let isRemote: Bool
    let owner: Owner
    /// The C ports call the table of handlers that is here.
    let handlers: Mutex<RequestHandlers>
    private let ownSource: CFRunLoopSource?
    private let toItself = Mutex<CFMessagePort?>(nil)
    /// The C ports of the port's further names. A key is the bytes of the name, by which other processes know it.
    let others = Mutex<[[UInt8]: (port: CFMessagePort, source: CFRunLoopSource)]>([:])

    private static let lastNumber = Mutex(0)

    /// A name that nobody else has.
    private static func freshName() -> String {
        let number = lastNumber.withLock { number in
            number += 1
            return number
        }
        return "corerunloop.\(shim_process_id()).\(number).\(UInt64.random(in: 0 ... .max))"
    }

    /// Makes a local port, which can be added to a loop.
    ///
    /// - Parameter name: The name by which others find the port, of 1 to 128 bytes and without a zero; `nil` for a name that nobody else
    ///   has.
    /// - Throws: ``PortError/nameTaken(_:)`` when another port has the name, ``PortError/invalidName(_:)``.
    ///
    /// The corresponding C function is `CFMessagePortCreateLocal`.
    public init(name: String?) throws(PortError) {
        let name = name ?? Self.freshName()
        if !Self.isPossible(name) { throw .invalidName(name) }
        let owner = Owner()
        let handlers = RequestHandlers(owner)
        guard let made = Self.make(name, owner, handlers) else {
            let owner: CFMessagePort? = CFMessagePortCreateRemote(nil, name.cfString)
            throw owner == nil ? .transport : .nameTaken(name)
        }
        self.owner = owner
        self.handlers = Mutex(handlers)
        cfMessagePort = made
        isRemote = false
        ownSource = CFMessagePortCreateRunLoopSource(nil, made, 0)
        super.init()
        owner.port.withLock { $0.object = self }
        unsafe CFMessagePortSetInvalidationCallBack(made) { _, info in
            if unsafe info != nil { unsafe object(Owner.self, from: info).port.withLock { $0.object }?.becomeInvalid() }
        }
    }

    /// Stands for the port with a name, for sending.
    ///
    /// - Throws: ``PortError/notFound(_:)`` when nobody has the name.
    ///
    /// The corresponding C function is `CFMessagePortCreateRemote`.
    public init(remote name: String) throws(PortError) {
        let found: CFMessagePort? = Self.isPossible(name) ? CFMessagePortCreateRemote(nil, name.cfString) : nil
        guard let found else { throw .notFound(name) }
        cfMessagePort = found
        isRemote = true
        ownSource = nil
        owner = Owner()
        handlers = Mutex(RequestHandlers(owner))
        super.init()
        Self.remotes.withLock { $0[address(of: found), default: [:]][ObjectIdentifier(self)] = Weak(object: self) }
        unsafe shim_message_port_set_invalidation_callback(found, Self.tellObjects)
    }

    // A remote port's callback has no info of its own, and several objects may share one C port.
    private static let tellObjects: CFMessagePortInvalidationCallBack = { port, _ in
        guard let port else { return }
        let objects = MessagePort.remotes.withLock { $0.removeValue(forKey: address(of: port)) } ?? [:]
        for port in objects.values { port.object?.becomeInvalid() }
    }

    /// Only a port whose end somebody wants to hear of is watched.
    override func watchForEnd() { if isRemote { unsafe CFMessagePortSetInvalidationCallBack(cfMessagePort, Self.tellObjects) } }

    /// The objects of each C port, which they keep, by their own identity.
    private static let remotes = Mutex<[UInt: [ObjectIdentifier: Weak<MessagePort>]]>([:])

    private func leaveRemotes() {
        let key = address(of: cfMessagePort)
        Self.remotes.withLock { remotes in
            remotes[key]?[ObjectIdentifier(self)] = nil
            if remotes[key]?.isEmpty == true { remotes[key] = nil }
        }
    }

    deinit { if isRemote { leaveRemotes() } }

    /// A remote C port may have other objects.
    override func closeUnkept() { if !isRemote { close() } }

    override var sources: [CFRunLoopSource] {
        guard let ownSource else { return [] }
        return [ownSource] + others.withLock { $0.values.map(\.source) }
    }

    override func close() {
        CFMessagePortInvalidate(cfMessagePort)
        let others = others.withLock { others in
            defer { others = [:] }
            return others
        }
        for other in others.values { CFMessagePortInvalidate(other.port) }
    }

    /// Gives the port one more name, for as long as it is valid.
    func addName(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        if self.name.utf8.elementsEqual(bytes) || others.withLock({ $0[bytes] != nil }) { return true }
        let handlers = handlers.withLock { $0 }
        guard !isRemote, isValid, Self.isPossible(name), let made = Self.make(name, owner, handlers),
            let source: CFRunLoopSource = CFMessagePortCreateRunLoopSource(nil, made, 0)
        else { return false }
        others.withLock { $0[bytes] = (made, source) }
        self.handlers.withLock { $0.receiveMessages(of: made) }  // the table may have been replaced meanwhile
        withExtendedLifetime(handlers) {}  // they are freed here, outside the lock
        scheduleAlso(source)
        if !isValid { close() }  // meanwhile
        return true
    }

    private static func isPossible(_ name: String) -> Bool { !name.isEmpty && name.utf8.count <= 128 && !name.utf8.contains(0) }

    /// Whether the port can be used. A remote port can be used until its peer has gone. Any thread.
    public override var isValid: Bool { super.isValid && CFMessagePortIsValid(cfMessagePort) }

    /// The port's name; an invalid one keeps the last that it had. Any thread.
    public var name: String {
        let name: CFString? = CFMessagePortGetName(cfMessagePort)
        return name.map { String($0) } ?? ""
    }

    /// Gives a local port another name, and gives up the one that it has.
    ///
    /// - Returns: `false`, and nothing changes, when the port is remote or invalid. The same holds when any port has the name, including
    ///   this one, and when ``init(name:)`` refuses the name.
    ///
    /// The corresponding C function is `CFMessagePortSetName`, which takes the beginning of a name that is too long.
    public func setName(_ name: String) -> Bool { Self.isPossible(name) && CFMessagePortSetName(cfMessagePort, name.cfString) }

    override var label: String { name }

    // MARK: Messages

    override func encode(_ port: Port) -> [UInt8]? { (port as? MessagePort).map { Array($0.name.utf8) } }

    /// The number of messages between objects of this class: an envelope with the message's own number at its end.
    static let envelope: Int32 = 0x4352_4C31

    override func transmit(_ parts: [Part], _ msgid: UInt32, _ receivePort: Port?, _ date: WallTime) throws(PortError) {
        guard let remote = remotePort() else { throw .invalid(label) }
        let answerTo = (receivePort as? MessagePort).map { Array($0.name.utf8) } ?? []
        let number = (0..<4).map { UInt8(truncatingIfNeeded: msgid >> (UInt32($0) * 8)) }
        let bytes = try Envelope.encode(answerTo: answerTo, [.bytes(number)] + parts)
        try check(
            unsafe bytes.withUnsafeBytes { buffer in
                unsafe shim_message_port_send(
                    remote, Self.envelope, buffer.baseAddress, buffer.count, Self.limit(date.timeIntervalSinceNow), nil)
            })
    }

    /// Nanoseconds, and none that are negative. A division of the duration would take as long as many a message.
    static func limit(_ seconds: Double) -> Int64 { seconds < 9e9 ? Int64(max(0, seconds) * 1e9) : .max }

    /// Throws the error that matches a result of CFMessagePortSendRequest; zero is none.
    func check(_ status: Int32) throws(PortError) {
        switch status {
        case 0: return
        case -1: throw .sendTimeout
        case -2: throw .receiveTimeout
        case -3, -5: throw .invalid(label)
        default: throw .transport
        }
    }

    /// The port to send to. For a local port it is a remote one for its own name.
    func remotePort() -> CFMessagePort? {
        if isRemote { return cfMessagePort }
        let name = self.name
        return toItself.withLock { port in
            if let port, CFMessagePortIsValid(port) { return port }
            port = CFMessagePortCreateRemote(nil, name.cfString)
            return port
        }
    }

    /// On the loop's thread. False if it is none.
    func receiveEnvelope(_ bytes: [UInt8]) -> Bool {
        guard let (answerTo, parts) = Envelope.decode(bytes), case .bytes(let own)? = parts.first, own.count == 4
        else { return false }
        var components: [any Sendable] = []
        for part in parts.dropFirst() {
            switch part {
            case .bytes(let bytes): components.append(bytes)
            case .port(let bytes):
                guard let port = Self.port(named: String(decoding: bytes, as: UTF8.self)) else { continue }
                components.append(port)
            }
        }
        deliver(
            PortMessage(
                answerTo: answerTo.isEmpty ? nil : Self.port(named: String(decoding: answerTo, as: UTF8.self)), cameTo: self,
                number: own.reversed().reduce(0) { $0 << 8 | UInt32($1) }, components: components))
        return true
    }

    private static func port(named name: String) -> MessagePort? { try? MessagePort(remote: name) }
}
