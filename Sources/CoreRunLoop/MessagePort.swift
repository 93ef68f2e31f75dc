// SPDX-License-Identifier: Apache-2.0
//
// CFMessagePort. Messages between two of this class are envelopes, in which a port is its name; everything else is a request as C programs
// send it, and goes to the request handlers.

public import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A kind of request with its answer: the number that it has on the wire, and how both become bytes.
///
/// ```swift
/// extension Exchange where Request == String, Reply == String {
///     static let greeting = Exchange.text(number: 1)
/// }
/// ```
public struct Exchange<Request: Sendable, Reply: Sendable>: Sendable {
    /// The message's number.
    public let number: Int32
    let encodeRequest: @Sendable (Request) -> [UInt8]
    let decodeRequest: @Sendable ([UInt8]) -> Request?
    let encodeReply: @Sendable (Reply) -> [UInt8]
    let decodeReply: @Sendable ([UInt8]) -> Reply?

    /// Describes an exchange by four closures; the two that decode return `nil` for bytes that are malformed.
    public init(
        number: Int32, encodeRequest: @escaping @Sendable (Request) -> [UInt8], decodeRequest: @escaping @Sendable ([UInt8]) -> Request?,
        encodeReply: @escaping @Sendable (Reply) -> [UInt8], decodeReply: @escaping @Sendable ([UInt8]) -> Reply?
    ) {
        self.number = number
        self.encodeRequest = encodeRequest
        self.decodeRequest = decodeRequest
        self.encodeReply = encodeReply
        self.decodeReply = decodeReply
    }
}

extension Exchange where Request == String, Reply == String {
    /// An exchange of texts.
    public static func text(number: Int32) -> Exchange {
        let decode: @Sendable ([UInt8]) -> String? = { String(validating: $0, as: UTF8.self) }
        return Exchange(
            number: number, encodeRequest: { Array($0.utf8) }, decodeRequest: decode, encodeReply: { Array($0.utf8) }, decodeReply: decode)
    }
}

extension Exchange where Request == [UInt8], Reply == [UInt8] {
    /// An exchange of bytes.
    public static func bytes(number: Int32) -> Exchange {
        Exchange(number: number, encodeRequest: { $0 }, decodeRequest: { $0 }, encodeReply: { $0 }, decodeReply: { $0 })
    }
}

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
    /// Whether it stands for another port: one that can only be sent to.
    public let isRemote: Bool
    private let owner: Owner
    /// The C ports have what is here as their callee.
    private let answerers: Mutex<Answerers>
    private let ownSource: CFRunLoopSource?
    private let toItself = Mutex<CFMessagePort?>(nil)
    /// The C ports of its further names, by what other processes know as a name: its bytes.
    private let others = Mutex<[[UInt8]: (port: CFMessagePort, source: CFRunLoopSource)]>([:])
    /// What errors call the port; an invalid one has lost its name.
    private let lastName: Mutex<String>

    private struct Weakly: @unchecked Sendable { weak var port: MessagePort? }

    /// Whom the C ports belong to.
    private final class Owner: Sendable {
        let port = Mutex(Weakly())

        /// False if it is no envelope, or there is nobody for it.
        func receiveEnvelope(_ bytes: RawSpan) -> Bool {
            port.withLock { $0.port }?.receiveEnvelope([UInt8](copying: bytes)) ?? false
        }
    }

    /// What messages go to. It never changes but is replaced as a whole, and the C port keeps it while a call is under way: so a message
    /// needs neither a lock of ours nor a reference.
    private final class Answerers: Sendable {
        private let owner: Owner
        private let ofNumbers: [Int32: Answerer]
        let ofOthers: Answerer?

        init(_ owner: Owner, _ ofNumbers: [Int32: Answerer] = [:], _ ofOthers: Answerer? = nil) {
            self.owner = owner
            self.ofNumbers = ofNumbers
            self.ofOthers = ofOthers
        }

        /// With another one for a number, or for all that have none of their own.
        func with(_ new: Answerer?, of number: Int32?) -> Answerers {
            guard let number else { return Answerers(owner, ofNumbers, new) }
            var ofNumbers = ofNumbers
            ofNumbers[number] = new
            return Answerers(owner, ofNumbers, ofOthers)
        }

        /// Takes a C port's messages from now on.
        func answer(_ port: CFMessagePort) { unsafe shim_message_port_call(port, retainedInfo(self)) }

        func receive(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if !ofNumbers.isEmpty || number == MessagePort.envelope { return receiveKnown(number, bytes, &reply) }
            ofOthers?.answer(number, bytes, &reply)
        }

        @inline(never)
        private func receiveKnown(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if number == MessagePort.envelope && owner.receiveEnvelope(bytes) { return }
            (ofNumbers[number] ?? ofOthers)?.answer(number, bytes, &reply)
        }
    }

    /// Answers a number, or all that have none of their own. Calls under way end with what they began with.
    private func set(_ new: Answerer?, of number: Int32?) {
        let old = answerers.withLock { current in
            let old = current
            current = old.with(new, of: number)
            if !isRemote {
                current.answer(cfMessagePort)
                others.withLock { others in for other in others.values { current.answer(other.port) } }
            }
            return old
        }
        _ = old  // freed here, outside the lock
    }

    /// Who answers requests. An object: reading a function out of a generic value would allocate at each message.
    private class Answerer: @unchecked Sendable {
        func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {}
    }

    private final class AnswererOfArrays: Answerer, @unchecked Sendable {
        let function: @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?

        init(_ function: @escaping @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?) { self.function = function }

        override func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if let answer = function(number, [UInt8](copying: bytes)) { unsafe reply.set(answer.span.bytes) }
        }
    }

    private final class AnswererOfSpans: Answerer, @unchecked Sendable {
        let function: @Sendable (_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) -> Void

        init(_ function: @escaping @Sendable (_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) -> Void) { self.function = function }

        override func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) { function(number, bytes, &reply) }
    }

    /// The answer to a request, for as long as the call of the handler lasts.
    @safe public struct Reply: ~Copyable {
        private let reply: OpaquePointer

        fileprivate init(_ reply: OpaquePointer) { unsafe self.reply = reply }

        /// Makes the answer: a copy of `bytes`, in the place of an answer given before. Without any the answer is empty.
        public mutating func set(_ bytes: RawSpan) {
            unsafe bytes.withUnsafeBytes { buffer in unsafe shim_reply_set(reply, buffer.baseAddress, buffer.count) }
        }
    }

    private static let lastNumber = Mutex(0)

    /// A name that nobody else has.
    private static func freshName() -> String {
        let number = lastNumber.withLock { number in
            number += 1
            return number
        }
        return "corerunloop.\(shim_process_id()).\(number).\(UInt64.random(in: 0 ... .max))"
    }

    /// A C port whose messages go to `answerers`; `nil` when it cannot have the name.
    private static func make(_ name: String, _ owner: Owner, _ answerers: Answerers) -> CFMessagePort? {
        let info = unsafe retainedInfo(owner)
        let made: CFMessagePort? = unsafe shim_message_port_create(
            name.cfString,
            { callee, number, bytes, length, reply in
                var reply = unsafe Reply(reply)
                unsafe lend(Answerers.self, from: callee) { answerers in
                    unsafe answerers.receive(number, UnsafeRawBufferPointer(start: bytes, count: length).bytes, &reply)
                }
            }, info, { reference in unsafe releaseConstantInfo(reference) })
        guard let made else {
            unsafe releaseInfo(info)
            return nil
        }
        answerers.answer(made)
        return made
    }

    /// Makes a local port, which can be added to a loop.
    ///
    /// - Parameter name: By which others find it; `nil` for a name that nobody else has.
    /// - Throws: ``PortError/nameTaken(_:)`` when another port has the name, ``PortError/invalidName(_:)``.
    ///
    /// The corresponding C function is `CFMessagePortCreateLocal`.
    public init(name: String?) throws(PortError) {
        let name = name ?? Self.freshName()
        if !Self.isPossible(name) { throw .invalidName(name) }
        let owner = Owner()
        let answerers = Answerers(owner)
        guard let made = Self.make(name, owner, answerers) else {
            let owner: CFMessagePort? = CFMessagePortCreateRemote(nil, name.cfString)
            throw owner == nil ? .transport : .nameTaken(name)
        }
        self.owner = owner
        self.answerers = Mutex(answerers)
        cfMessagePort = made
        lastName = Mutex(name)
        isRemote = false
        ownSource = CFMessagePortCreateRunLoopSource(nil, made, 0)
        super.init()
        owner.port.withLock { $0.port = self }
        unsafe CFMessagePortSetInvalidationCallBack(made) { _, info in
            if unsafe info != nil { unsafe object(Owner.self, from: info).port.withLock { $0.port }?.becomeInvalid() }
        }
    }

    /// Makes a local port with a name that nobody else has.
    ///
    /// - Throws: ``PortError/transport`` when the directory of names cannot be used.
    public convenience init(anonymous: Void = ()) throws(PortError) { try self.init(name: nil) }

    /// Stands for the port with a name, for sending.
    ///
    /// - Throws: ``PortError/notFound(_:)`` when nobody has the name.
    ///
    /// The corresponding C function is `CFMessagePortCreateRemote`.
    public init(remote name: String) throws(PortError) {
        let found: CFMessagePort? = CFMessagePortCreateRemote(nil, name.cfString)
        guard let found else { throw .notFound(name) }
        cfMessagePort = found
        lastName = Mutex(name)
        isRemote = true
        ownSource = nil
        owner = Owner()
        answerers = Mutex(Answerers(owner))
        super.init()
        Self.remotes.withLock { $0[address(of: found), default: [:]][ObjectIdentifier(self)] = Weakly(port: self) }
        // A remote port's callback has no info of its own, and several objects may share one C port.
        unsafe CFMessagePortSetInvalidationCallBack(found) { port, _ in
            guard let port else { return }
            let objects = MessagePort.remotes.withLock { $0.removeValue(forKey: address(of: port)) } ?? [:]
            for object in objects.values { object.port?.becomeInvalid() }
        }
    }

    /// The objects of each C port, which they keep, by their own identity.
    private static let remotes = Mutex<[UInt: [ObjectIdentifier: Weakly]]>([:])

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
    fileprivate func addName(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        if self.name.utf8.elementsEqual(bytes) || others.withLock({ $0[bytes] != nil }) { return true }
        let answerers = answerers.withLock { $0 }
        guard !isRemote, isValid, Self.isPossible(name), let made = Self.make(name, owner, answerers),
            let source: CFRunLoopSource = CFMessagePortCreateRunLoopSource(nil, made, 0)
        else { return false }
        others.withLock { $0[bytes] = (made, source) }
        self.answerers.withLock { $0.answer(made) }  // there may be others meanwhile
        withExtendedLifetime(answerers) {}  // which are freed here, outside the lock
        scheduleAlso(source)
        if !isValid { close() }  // meanwhile
        return true
    }

    private static func isPossible(_ name: String) -> Bool { !name.isEmpty && name.utf8.count <= 128 && !name.utf8.contains(0) }

    /// Whether it can be used: a remote one until its peer has gone. Any thread.
    public override var isValid: Bool { super.isValid && CFMessagePortIsValid(cfMessagePort) }

    /// The port's name; empty when it is invalid. Any thread.
    public var name: String {
        let name: CFString? = CFMessagePortGetName(cfMessagePort)
        return name.map { String($0) } ?? ""
    }

    /// Gives a local port another name.
    ///
    /// - Returns: `false` when another port has it.
    ///
    /// The corresponding C function is `CFMessagePortSetName`.
    public func setName(_ name: String) -> Bool {
        guard CFMessagePortSetName(cfMessagePort, name.cfString) else { return false }
        lastName.withLock { $0 = name }
        return true
    }

    override var label: String { lastName.withLock { $0 } }

    // MARK: Messages

    override func encode(_ port: Port) -> [UInt8]? { (port as? MessagePort).map { Array($0.name.utf8) } }

    /// The number of messages between objects of this class: an envelope with the message's own number at its end.
    private static let envelope: Int32 = 0x4352_4C31

    override func transmit(_ parts: [Part], _ msgid: UInt32, _ receivePort: Port?, _ date: WallTime) throws(PortError) {
        guard let remote = remotePort() else { throw .invalid(label) }
        let answerTo = (receivePort as? MessagePort).map { Array($0.name.utf8) } ?? []
        let number = (0..<4).map { UInt8(truncatingIfNeeded: msgid >> (UInt32($0) * 8)) }
        let bytes = Envelope.encode(answerTo: answerTo, [.bytes(number)] + parts)
        try check(
            unsafe bytes.withUnsafeBytes { buffer in
                unsafe shim_message_port_send(
                    remote, Self.envelope, buffer.baseAddress, buffer.count, max(0, date.timeIntervalSinceNow), 0, nil)
            })
    }

    /// Throws what CFMessagePortSendRequest returned.
    private func check(_ status: Int32) throws(PortError) {
        switch status {
        case 0: return
        case -1: throw .sendTimeout
        case -2: throw .receiveTimeout
        case -3, -5: throw .invalid(label)
        default: throw .transport
        }
    }

    /// What to send to: of a local port, a remote one for its own name.
    private func remotePort() -> CFMessagePort? {
        if isRemote { return cfMessagePort }
        let name = self.name
        return toItself.withLock { port in
            if let port, CFMessagePortIsValid(port) { return port }
            port = CFMessagePortCreateRemote(nil, name.cfString)
            return port
        }
    }

    /// On the loop's thread. False if it is none.
    private func receiveEnvelope(_ bytes: [UInt8]) -> Bool {
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

    // MARK: Requests

    /// Answers requests of one kind, on the loop's thread. Any thread; replaces the handler of the same number.
    ///
    /// - Parameters:
    ///   - exchange: The kind of request.
    ///   - reply: Returns the answer. A request that is malformed gets an empty answer.
    public func handle<Request, Reply>(_ exchange: Exchange<Request, Reply>, _ reply: @escaping @Sendable (Request) -> Reply) {
        let answerer = AnswererOfArrays { _, bytes in exchange.decodeRequest(bytes).map { exchange.encodeReply(reply($0)) } }
        set(answerer, of: exchange.number)
    }

    /// Answers the requests that no ``handle(_:_:)`` answers, on the loop's thread; also those of C programs.
    ///
    /// It takes the place of ``onRequestBytes``.
    public var onRequest: (@Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?)? {
        get { (answerers.withLock { $0.ofOthers } as? AnswererOfArrays)?.function }
        set { set(newValue.map { AnswererOfArrays($0) }, of: nil) }
    }

    /// Answers the requests that no ``handle(_:_:)`` answers, as ``onRequest``, whose place it takes, but without copying the request: the
    /// bytes are the message's own and are there during the call only. Nothing is allocated but the answer.
    ///
    /// ```swift
    /// let port = try MessagePort(name: "com.example.echo")
    /// port.onRequestBytes = { number, request, reply in if number == 1 { reply.set(request) } }
    /// ```
    public var onRequestBytes: (@Sendable (_ number: Int32, _ request: RawSpan, _ reply: inout Reply) -> Void)? {
        get { (answerers.withLock { $0.ofOthers } as? AnswererOfSpans)?.function }
        set { set(newValue.map { AnswererOfSpans($0) }, of: nil) }
    }

    /// Sends a request and waits for the answer.
    ///
    /// The waiting is done by a thread of its own, so that neither the task's thread nor a loop is blocked.
    ///
    /// - Parameters:
    ///   - exchange: The kind of request.
    ///   - request: The request.
    ///   - timeout: How long the message may wait for room, and then how long the answer may take.
    /// - Throws: ``PortError``; `CancellationError` when the task is cancelled: the message may then still be handled.
    public func request<Request, Reply>(
        _ exchange: Exchange<Request, Reply>, _ request: Request, timeout: Duration = .seconds(30)
    ) async throws -> Reply {
        let bytes = try await requestBytes(number: exchange.number, exchange.encodeRequest(request), timeout: timeout)
        guard let reply = exchange.decodeReply(bytes) else { throw PortError.malformed(exchange.number) }
        return reply
    }

    /// Sends bytes as C programs do, and waits for the answer's.
    ///
    /// - Throws: ``PortError``; `CancellationError` when the task is cancelled: the message may then still be handled.
    public func requestBytes(number: Int32, _ bytes: [UInt8], timeout: Duration = .seconds(30)) async throws -> [UInt8] {
        if timeout < .zero { throw PortError.invalidTimeout(timeout) }
        try Task.checkCancellation()
        let waiter = Waiter()
        let sent = Answer()
        let thread = Thread { [self] in
            do throws(PortError) {
                let bytes = try requestNow(number: number, bytes, timeout: timeout)
                sent.bytes.withLock { $0 = bytes }
                waiter.resume(with: .success(()))
            } catch { waiter.resume(with: .failure(error)) }
        }
        do { try thread.launch() } catch { throw PortError.transport }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter.wait($0) }
        } onCancel: {
            waiter.resume(with: .failure(CancellationError()))
        }
        return sent.bytes.withLock { $0 }
    }

    /// Sends bytes and blocks the calling thread until the answer has come.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`.
    ///
    /// - Throws: ``PortError``.
    @available(*, noasync, message: "waiting would block the task's thread; use requestBytes(number:_:timeout:)")
    public func requestNow(number: Int32, _ bytes: [UInt8], timeout: Duration = .seconds(30)) throws(PortError) -> [UInt8] {
        try unsafe requestNow(number: number, bytes.span.bytes, timeout: timeout) { [UInt8](copying: $0) }
    }

    /// Sends bytes and blocks the calling thread until the answer has come, which is read where it lies.
    ///
    /// - Parameters:
    ///   - number: The message's number.
    ///   - bytes: The request.
    ///   - timeout: How long the message may wait for room, and then how long the answer may take.
    ///   - read: Called with the answer's bytes, which are there during the call only.
    /// - Returns: What `read` returns.
    /// - Throws: ``PortError``.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`.
    @available(*, noasync, message: "waiting would block the task's thread; use requestBytes(number:_:timeout:)")
    public func requestNow<Result>(
        number: Int32, _ bytes: RawSpan, timeout: Duration = .seconds(30), read: (RawSpan) -> Result
    ) throws(PortError) -> Result {
        var answer = unsafe shim_answer()
        defer { unsafe shim_answer_drop(&answer) }
        try unsafe send(number, bytes, timeout, &answer)
        return read(unsafe UnsafeRawBufferPointer(start: answer.bytes, count: answer.length).bytes)
    }

    /// Sends bytes for which no answer is wanted. The calling thread waits for no more than room in the receiver's queue.
    ///
    /// - Parameters:
    ///   - number: The message's number.
    ///   - bytes: The message.
    ///   - timeout: How long it may wait for room.
    /// - Throws: ``PortError``.
    ///
    /// The corresponding C function is `CFMessagePortSendRequest`, without a reply mode.
    @available(*, noasync, message: "waiting for room would block the task's thread")
    public func sendNow(number: Int32, _ bytes: RawSpan, timeout: Duration = .seconds(30)) throws(PortError) {
        try unsafe send(number, bytes, timeout, nil)
    }

    private func send(
        _ number: Int32, _ bytes: RawSpan, _ timeout: Duration, _ answer: UnsafeMutablePointer<shim_answer>?
    ) throws(PortError) {
        let limit = timeout.inSeconds
        if timeout.isNegative { throw .invalidTimeout(timeout) }
        guard let remote = isRemote ? cfMessagePort : remotePort() else { throw .invalid(label) }
        let status = unsafe bytes.withUnsafeBytes { buffer in
            unsafe shim_message_port_send(remote, number, buffer.baseAddress, buffer.count, limit, limit, answer)
        }
        if status != 0 { try check(status) }
    }

    /// The messages that come to this port, as a sequence; takes the place of ``Port/onMessage``.
    ///
    /// Ends when the port becomes invalid, or another sequence or closure takes its place.
    public var messages: AsyncStream<PortMessage> { messageStream() }

    private final class Answer: Sendable { let bytes = Mutex<[UInt8]>([]) }
}

extension MachPort {
    /// The messages that come to this port, as a sequence; takes the place of ``Port/onMessage``.
    ///
    /// Ends when the port becomes invalid, or another sequence or closure takes its place.
    public var messages: AsyncStream<PortMessage> { messageStream() }
}

/// Where message ports are found by their names: the user's directory of ports.
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
    /// - Returns: `false` when another living port has the name, it can be no name, or `port` only sends or is invalid. Invalidating the
    ///   port gives its names up.
    public func registerPort(_ port: MessagePort, name: String) -> Bool { !port.isRemote && port.isValid && port.addName(name) }
}

/// Where the threads of one process find ports by their names.
public final class MachBootstrapServer: Sendable {
    /// The only one.
    public static let shared = MachBootstrapServer()
    private final class Entry: @unchecked Sendable {
        private(set) weak var port: MachPort?
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
