// SPDX-License-Identifier: Apache-2.0
//
// The common part of all ports. A port keeps itself alive while it is in a loop, as the loop would on Darwin. The C source's info knows the
// port only weakly. `state` guards everything; handlers and delegates are called without it.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// Why a port could not be made or used. Each case names the value that was refused.
public enum PortError: Error, Hashable, Sendable {
    /// The name is empty, too long, or holds a character that names may not have.
    case invalidName(String)
    /// Another port has the name.
    case nameTaken(String)
    /// No port has the name.
    case notFound(String)
    /// The port is invalid: it has been invalidated, or its peer has gone.
    case invalid(String)
    /// A component, or the answer's port, is of a type that cannot be sent to this port.
    case unsupportedComponent(String)
    /// The address is none that a socket port can have, or none that this system has.
    case invalidAddress(String)
    /// The receiver's queue stayed full.
    case sendTimeout
    /// The time limit is negative.
    case invalidTimeout(Duration)
    /// No answer came in time.
    case receiveTimeout
    /// The message is too large, or the system has no means left.
    case transport
    /// The bytes do not have the expected form: those of an answer, or, says the receiver, those of a request of this number.
    case malformed(Int32)
    /// The receiver has no handler for requests of this number.
    case unhandled(Int32)
    /// The receiver's handler has thrown an error, whose text this is.
    case failed(String)
}

/// Something that a message can carry as bytes: `[UInt8]`, and, with `CoreRunLoopFoundation`, `Data`.
public protocol PortMessageData: Sendable {
    /// The bytes.
    var portMessageBytes: [UInt8] { get }
}

extension Array: PortMessageData where Element == UInt8 {
    /// The bytes.
    public var portMessageBytes: [UInt8] { self }
}

/// Stands for a component that cannot travel, and could not even be kept. The port that is to send it reports its type's name.
package struct ForeignComponent: Sendable {
    fileprivate let typeName: String
    package init(_ component: Any) { typeName = "\(type(of: component))" }
}

/// Receives a port's messages.
///
/// A class that belongs to the main actor, or to another actor, conforms by `@preconcurrency`. In the Swift 6 language mode, each call then
/// checks that the thread is the actor's, and stops the process if it is not.
///
/// ```swift
/// @MainActor final class Inbox: @preconcurrency PortDelegate {
///     private var numbers: [UInt32] = []
///     func handle(_ message: PortMessage) { numbers.append(message.msgid) }
/// }
/// ```
@preconcurrency
public protocol PortDelegate: AnyObject, Sendable {
    /// A message has come: called on the thread of the loop that the port is in.
    func handle(_ message: PortMessage)
}

/// A message: a receiver, a sender, a number, and components.
///
/// In a message that is to be sent, ``sendPort`` is the receiver and ``receivePort`` is the port for an answer. In a message that has come,
/// ``sendPort`` is the port to answer to, and ``receivePort`` is the port that the message came to.
public final class PortMessage: Sendable {
    /// The receiver; in a message that has come, the port to answer to.
    public let sendPort: Port?
    /// The sender's own port; in a message that has come, the port that it came to.
    public let receivePort: Port?
    /// The components: byte arrays and ports.
    @_disfavoredOverload
    public let components: [any Sendable]
    private let number: Mutex<UInt32>

    /// Makes a message to be sent.
    ///
    /// - Parameters:
    ///   - sendPort: The receiver.
    ///   - receivePort: Where an answer should go.
    ///   - components: Bytes, and ports of the receiver's class. `nil` is none.
    public init(sendPort: Port?, receivePort: Port?, components: [any Sendable]?) {
        self.sendPort = sendPort
        self.receivePort = receivePort
        self.components = components ?? []
        number = Mutex(0)
    }

    init(answerTo sendPort: Port?, cameTo receivePort: Port, number: UInt32, components: [any Sendable]) {
        self.sendPort = sendPort
        self.receivePort = receivePort
        self.components = components
        self.number = Mutex(number)
    }

    /// A number of the program's that tells messages apart. At first 0.
    public var msgid: UInt32 {
        get { number.withLock { $0 } }
        set { number.withLock { $0 = newValue } }
    }

    /// Sends the message; waits while the receiver's queue is full.
    ///
    /// - Parameter date: Until when to wait; a date in the past tries once.
    /// - Returns: Whether it is in the receiver's queue.
    @_disfavoredOverload
    public func send(before date: WallTime) -> Bool {
        sendPort?.send(before: date, msgid: msgid, components: components, from: receivePort) ?? false
    }
}

/// A channel for messages between threads or processes. Its subclasses differ in the means of transport.
///
/// A port that is in a loop keeps the loop alive, and the loop keeps the port. Messages wait in the port's queue until the loop runs in one
/// of the port's modes. They then go to the delegate, which the port does not keep. Without a delegate they are dropped.
open class Port: @unchecked Sendable, Hashable {  // an open class, and so its subclasses, cannot be checked
    /// A mode of a loop that the port is in.
    private struct Place {
        let loop: RunLoop
        let mode: RunLoop.Mode
        /// The number of the handler that tells the port of the loop's end.
        let watch: Int
    }
    private struct State {
        weak var delegate: (any PortDelegate)?
        var receiver: Receiver?
        var places: [Place] = []
        /// The port itself while it is in a loop.
        var keptAlive: Port?
        var invalidated = false
        var onInvalidate = Handlers<@Sendable () -> Void>()

        /// Takes places out. With the last place, it also takes the reference that keeps the port. The caller frees both outside the lock.
        mutating func leave(_ isLeft: (Place) -> Bool) -> (places: [Place], kept: Port?) {
            let left = places.filter(isLeft)
            places.removeAll(where: isLeft)
            guard places.isEmpty else { return (left, nil) }
            defer { keptAlive = nil }
            return (left, keptAlive)
        }
    }
    /// The closure that gets the messages in the delegate's place.
    private final class Receiver: Sendable {
        /// The closure as the program passed it.
        let closure: @isolated(any) @Sendable (PortMessage) -> Void
        let receive: @Sendable (PortMessage) -> Void
        /// Called once, when it gets no more: another one has its place, or the port is invalid.
        let end: @Sendable () -> Void
        init(_ closure: @escaping @isolated(any) @Sendable (PortMessage) -> Void, end: @escaping @Sendable () -> Void = {}) {
            (self.closure, self.end) = (closure, end)
            receive = onActorOf(closure)
        }
    }
    private let state = Mutex(State())
    /// What stands in the loops for the sources of a port that takes no messages for a while. Its lock is held while sources enter and
    /// leave loops, so that each place has either the sources or what stands for them. It is taken before the lock of `state`.
    private let heldBack = Mutex<CFRunLoopSource?>(nil)
    /// The implementation of a port of no subclass.
    private let machPort: MachPort?

    /// Makes a port that behaves as a ``MachPort``, or the base of a subclass's object.
    ///
    /// A subclass that a program declares gets no messages. Only the sources that its ``schedule(in:forMode:)`` adds are in a loop.
    public init() {
        machPort = Self.self == Port.self ? MachPort() : nil
        machPort?.stand(for: self)
        machPort?.onMessage = { [weak self] message in
            guard let self else { return }
            self.deliver(PortMessage(answerTo: message.sendPort, cameTo: self, number: message.msgid, components: message.components))
        }
    }

    /// The port that does the work: itself, but for a port of no subclass.
    private var carrier: Port { machPort ?? self }

    /// The C sources that are added to loops; none for a port that only sends.
    var sources: [CFRunLoopSource] { machPort?.sources ?? [] }

    /// For subclasses: whether the end of this port is announced. A port that only serves another port is not announced; the other port's
    /// end is.
    var isAnnounced: Bool { true }

    /// Gives up the port's resources. Called once.
    func close() { machPort?.invalidate() }

    /// Gives up the resources that only this object uses, at its last release. Called in the place of `close`.
    func closeUnkept() { close() }

    // The subclass's implementation is still there: Swift frees it after this.
    deinit {
        guard let last = giveUp() else { return }
        closeUnkept()
        last.receiver?.end()
        for handler in last.onInvalidate.inOrder { handler() }
    }

    // MARK: Messages

    /// The receiver of the messages; not kept. `nil` once the port is invalid. Any thread.
    public var delegate: (any PortDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { state in if !state.invalidated { state.delegate = newValue } } }
    }

    /// A closure that gets the messages, after the delegate if there is one; dropped when the port becomes invalid. Any thread.
    ///
    /// The closure is called on the thread of the loop that the port is in. If it belongs to an actor that does not have that thread, it is
    /// sent to the actor. Calling a closure that was read back takes `await`, because its type does not tell its actor.
    public var onMessage: (@isolated(any) @Sendable (PortMessage) -> Void)? {
        get { state.withLock { $0.receiver }?.closure }
        set { replaceReceiver(with: newValue.map { Receiver($0) }) }
    }

    private func replaceReceiver(with new: Receiver?) {
        let ended = state.withLock { state -> Receiver? in
            if state.invalidated { return new }
            defer { state.receiver = new }
            return state.receiver
        }
        ended?.end()
    }

    /// Removes a receiver, if it has not been replaced.
    private func remove(_ receiver: Receiver?) {
        let removed = state.withLock { state -> Receiver? in
            guard let current = state.receiver, current === receiver else { return nil }
            state.receiver = nil
            return current
        }
        _ = removed  // freed here, outside the lock
    }

    /// Receives the messages that come to this port from now on, as a sequence. It takes the place of ``onMessage`` and of an earlier one.
    ///
    /// The sequence ends when the port becomes invalid, or when another sequence or closure takes its place.
    ///
    /// - Parameter policy: How many messages to keep that nobody has taken yet, and whether the oldest or the newest ones; those beyond are
    ///   lost. By default all are kept, however many come: give a bound where the reader may fall behind.
    public func messages(
        keeping policy: AsyncStream<PortMessage>.Continuation.BufferingPolicy = .unbounded
    ) -> AsyncStream<PortMessage> {
        let (stream, continuation) = AsyncStream.makeStream(of: PortMessage.self, bufferingPolicy: policy)
        let receiver = Receiver({ continuation.yield($0) }, end: { continuation.finish() })
        continuation.onTermination = { [weak self, weak receiver] _ in self?.remove(receiver) }
        replaceReceiver(with: receiver)
        return stream
    }

    /// On the loop's thread.
    func deliver(_ message: PortMessage) {
        let (delegate, receiver) = state.withLock { ($0.delegate, $0.receiver) }
        delegate?.handle(message)
        receiver?.receive(message)
    }

    /// Sends a message to this port; waits while its queue is full.
    ///
    /// - Parameters:
    ///   - date: Until when to wait; a date in the past tries once.
    ///   - msgid: What the message is.
    ///   - components: Bytes, and ports of this port's class. `nil` is none.
    ///   - receivePort: Where an answer should go, of this port's class.
    ///   - reserved: Has no effect: this library needs no room in the first component.
    /// - Returns: `false` when the queue stayed full, when the port is invalid, or when a component or the answer's port is of a wrong
    ///   type. A wrong type is also reported on the standard error output. ``post(msgid:components:from:before:)`` tells which.
    public func send(
        before date: WallTime, msgid: UInt32 = 0, components: [any Sendable]?, from receivePort: Port?, reserved: Int = 0
    ) -> Bool {
        do {
            try post(msgid: msgid, components: components ?? [], from: receivePort, before: date)
            return true
        } catch PortError.unsupportedComponent(let type) {
            report("\(Self.self).send: a component, or the answer's port, is a \(type); bytes and ports of the same class can be sent")
            return false
        } catch { return false }
    }

    /// Sends a message to this port, and says why that was not possible; waits while its queue is full.
    ///
    /// - Parameters:
    ///   - msgid: What the message is.
    ///   - components: Bytes, and ports of this port's class.
    ///   - receivePort: Where an answer should go, of this port's class.
    ///   - date: Until when to wait; a date in the past tries once.
    /// - Throws: ``PortError/invalid(_:)`` with the port's description, ``PortError/unsupportedComponent(_:)`` with the type's name,
    ///   ``PortError/sendTimeout``, ``PortError/transport``.
    public func post(
        msgid: UInt32 = 0, components: [any Sendable] = [], from receivePort: Port? = nil, before date: WallTime
    ) throws(PortError) {
        guard isValid else { throw .invalid(label) }
        let parts = try encode(components)
        if let receivePort, type(of: receivePort.carrier) != type(of: carrier) {
            throw .unsupportedComponent("\(type(of: receivePort))")
        }
        try carrier.transmit(parts, msgid, receivePort?.carrier, date)
    }

    /// For subclasses: sends an encoded message.
    func transmit(_ parts: [Part], _ msgid: UInt32, _ receivePort: Port?, _ date: WallTime) throws(PortError) { throw .transport }

    /// For subclasses: a port as a component's bytes; `nil` if it cannot travel.
    func encode(_ port: Port) -> [UInt8]? { nil }

    /// For subclasses: the port's name in error messages.
    var label: String { "\(type(of: self))" }

    private func encode(_ components: [any Sendable]) throws(PortError) -> [Part] {
        var parts: [Part] = []
        for component in components {
            if let data = component as? any PortMessageData {
                parts.append(.bytes(data.portMessageBytes))
            } else if let port = component as? Port, type(of: port.carrier) == type(of: carrier), let bytes = carrier.encode(port.carrier) {
                parts.append(.port(bytes))
            } else {
                throw .unsupportedComponent((component as? ForeignComponent)?.typeName ?? "\(type(of: component))")
            }
        }
        return parts
    }

    // MARK: Life

    /// Whether the port can be used. Any thread.
    open var isValid: Bool { !state.withLock { $0.invalidated } }

    /// Ends the port for good. The port leaves every loop, drops its closure, and calls its invalidation handlers once. Any thread.
    ///
    /// A port that nobody keeps any more ends as well. A subclass's override calls `super`'s. With `CoreRunLoopFoundation`, it may post
    /// `didBecomeInvalidNotification` instead, as Darwin's programs do. Without either, the loops keep the port.
    open func invalidate() { becomeInvalid() }

    /// Makes a port of the usual class: ``MachPort``.
    public class func port() -> Port { MachPort() }

    /// Makes the port invalid. Returns its former state, to be freed outside the lock, or `nil` if the port was invalid already.
    private func giveUp() -> State? {
        state.withLock { state in
            if state.invalidated { return nil }
            defer { state = State(invalidated: true) }
            return state
        }
    }

    func becomeInvalid() {
        guard let last = giveUp() else { return }
        for place in last.places {
            place.loop.end.remove(place.watch)
            remove(from: place.loop, forMode: place.mode)
        }
        heldBack.withLock { held in if let held { CFRunLoopSourceInvalidate(held) } }  // no loop takes it any more
        close()
        last.receiver?.end()
        for handler in last.onInvalidate.inOrder { handler() }
        guard isAnnounced else { return }
        for handler in Self.invalidationHandlers.withLock({ $0.inOrder }) { handler(self) }
    }

    /// Leaves every loop. For a port whose own `invalidate()` reports its end in another way.
    package func leaveLoops() {
        let left = state.withLock { state in state.leave { _ in true } }
        for place in left.places {
            place.loop.end.remove(place.watch)
            remove(from: place.loop, forMode: place.mode)
        }
        withExtendedLifetime(left.kept) {}  // freed here, outside the lock
    }

    /// Registers `handler` to be called when the port becomes invalid, also by its last release. Calls it at once if the port is invalid.
    /// Any thread.
    ///
    /// The thread that ends the port calls the handler. If the closure belongs to an actor, that thread must be the actor's. When the peer
    /// of a remote ``MessagePort`` ends, the loop of the thread that has registered a handler last calls all handlers, within 50 ms. If
    /// that loop does not run in a common mode, the main loop does.
    public func onInvalidate(_ handler: @escaping @isolated(any) @Sendable () -> Void) { _ = addInvalidationHandler(onActorOf(handler)) }

    /// Registers `handler` to be called when the port becomes invalid. Returns a number for removing it, or 0 if it has been called
    /// already.
    func addInvalidationHandler(_ handler: @escaping @Sendable () -> Void) -> Int {
        let number = state.withLock { $0.invalidated ? 0 : $0.onInvalidate.add(handler) }
        if number == 0 { handler() } else { watchForEnd() }
        return number
    }

    /// For subclasses: somebody wants to hear of the port's end.
    func watchForEnd() {}

    func removeInvalidationHandler(_ number: Int) {
        let dropped = state.withLock { $0.onInvalidate.remove(number) }
        _ = dropped  // freed here, outside the lock
    }

    /// The number of handlers that wait for the port's end.
    package var invalidationHandlerCount: Int { state.withLock { $0.onInvalidate.count } }

    private static let invalidationHandlers = Mutex(Handlers<@Sendable (Port) -> Void>())

    /// A handler that is called when ports become invalid, as long as the registration lives.
    public struct InvalidationRegistration: ~Copyable, Sendable {
        fileprivate let number: Int
        /// Ends it now; the registration may stay where it is, as in a property. Once more has no effect. Any thread.
        public func cancel() {
            let dropped = Port.invalidationHandlers.withLock { $0.remove(number) }
            _ = dropped  // freed here, outside the lock
        }
        deinit { cancel() }
    }

    /// Registers `handler` to be called once for each port that becomes invalid. Cocoa posts `NSPortDidBecomeInvalid` then.
    ///
    /// The handler is not called for a port that ends by its last release, because it might keep that port. The port's own
    /// ``onInvalidate(_:)`` reports that end, too. It also takes an actor's closure. This function does not, because ports end on any
    /// thread.
    public static func onDidBecomeInvalid(_ handler: @escaping @Sendable (Port) -> Void) -> InvalidationRegistration {
        InvalidationRegistration(number: invalidationHandlers.withLock { $0.add(handler) })
    }

    // MARK: Loops

    /// Adds the port's sources to `mode` of `loop`. ``RunLoop/add(_:forMode:)-(Port,_)`` calls this when the port is new there.
    open func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        enter(loop, mode)
        heldBack.withLock { held in
            for source in held.map({ [$0] }) ?? sources { CFRunLoopAddSource(loop.loop, source, mode.name) }
        }
    }

    /// Takes the port's sources out of `mode` of `loop`. Called when the port leaves the mode by ``RunLoop/remove(_:forMode:)-(Port,_)`` or
    /// ``invalidate()``.
    open func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        leave(loop, mode)
        heldBack.withLock { held in  // what was exchanged since the port has left may be either
            for source in sources { CFRunLoopRemoveSource(loop.loop, source, mode.name) }
            if let held { CFRunLoopRemoveSource(loop.loop, held, mode.name) }
        }
    }

    /// Records that the port is in a mode, and keeps the port. Returns `false` if it was there, is invalid, or the loop's thread has ended.
    @discardableResult
    fileprivate func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        let watch = loop.end.add(on: loop.loop) { [weak self, weak loop] in if let loop { self?.forget(loop) } }
        let isNew = state.withLock { state in
            if state.invalidated || state.places.contains(where: { $0.loop == loop && $0.mode == mode }) { return false }
            state.places.append(Place(loop: loop, mode: mode, watch: watch))
            state.keptAlive = self
            return true
        }
        if !isNew { loop.end.remove(watch) }
        guard loop.end.hasEnded else { return isNew }
        forget(loop)  // what the watch did may have come too early
        return false
    }

    /// `false` when the port was not there.
    @discardableResult
    fileprivate func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        let left = state.withLock { state in state.leave { $0.loop == loop && $0.mode == mode } }
        for place in left.places { loop.end.remove(place.watch) }
        return !left.places.isEmpty
    }

    /// For subclasses: leaves messages in the port's queue, or takes them again. `isWanted` is asked with a lock held, so that of several
    /// calls at the same time the last one decides.
    func receive(if isWanted: () -> Bool) {
        heldBack.withLock { placeholder in
            switch (isWanted(), placeholder) {
            case (true, let held?):
                exchange([held], for: sources)
                CFRunLoopSourceInvalidate(held)
                placeholder = nil
            case (false, nil) where !state.withLock { $0.invalidated }:
                // It keeps runs going that would end without a source.
                var context = unsafe CFRunLoopSourceContext()
                guard let held: CFRunLoopSource = unsafe CFRunLoopSourceCreate(nil, 0, &context) else { return }
                exchange(sources, for: [held])
                placeholder = held
            default: break
            }
        }
    }

    /// Puts sources in the place of others, wherever the port is. With the lock of `heldBack` held.
    private func exchange(_ old: [CFRunLoopSource], for new: [CFRunLoopSource]) {
        for place in state.withLock({ $0.places }) {
            for source in new { CFRunLoopAddSource(place.loop.loop, source, place.mode.name) }
            for source in old { CFRunLoopRemoveSource(place.loop.loop, source, place.mode.name) }
        }
    }

    /// Whether messages are left in the port's queue.
    package var isHeldBack: Bool { heldBack.withLock { $0 != nil } }

    /// For subclasses: adds a source that is new among ``sources`` to the loops that the port is in.
    func scheduleAlso(_ source: CFRunLoopSource) {
        heldBack.withLock { held in if held == nil { exchange([], for: [source]) } }
    }

    /// The loop's thread has ended.
    private func forget(_ loop: RunLoop) {
        let left = state.withLock { state in state.leave { $0.loop == loop } }
        _ = left  // freed here, outside the lock
    }

    /// For subclasses: whether both stand for the same thing.
    func isEqual(_ other: Port) -> Bool { self === other }

    /// Whether both are the same object, or socket ports that send to the same address.
    public static func == (first: Port, second: Port) -> Bool { first.isEqual(second) }
    /// Feeds the object's identity, or the address that a socket port sends to.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension RunLoop {
    /// Adds `port` to `mode`; once more has no effect. Any thread.
    ///
    /// The loop keeps the port until it is removed, or invalid, or the loop's thread ends; after that end it has no effect.
    public func add(_ port: Port, forMode mode: Mode) { if port.enter(self, mode) { port.schedule(in: self, forMode: mode) } }

    /// Takes `port` out of `mode`; without effect when it is not there. Any thread.
    public func remove(_ port: Port, forMode mode: Mode) { if port.leave(self, mode) { port.remove(from: self, forMode: mode) } }
}

/// An encoded component.
enum Part: Equatable {
    case bytes([UInt8])
    case port([UInt8])

    fileprivate var kind: UInt8 { if case .bytes = self { 0 } else { 1 } }

    fileprivate var content: [UInt8] {
        switch self {
        case .bytes(let content), .port(let content): content
        }
    }
}

/// A message's bytes: a mark, the answer's port, the components; numbers are of 32 bits, lowest byte first.
enum Envelope {
    private static let mark: [UInt8] = Array("CRLPORT1".utf8)

    /// No message has room for more bytes.
    private static let largest = Int(Int32.max)

    /// Encodes a message. Throws if it is too large, before anything is copied.
    static func encode(answerTo: [UInt8], _ parts: [Part]) throws(PortError) -> [UInt8] {
        if parts.reduce(answerTo.count, { $0 + $1.content.count + 5 }) > largest { throw .transport }
        var bytes = mark
        append(answerTo, to: &bytes)
        append(UInt32(parts.count), to: &bytes)
        for part in parts {
            bytes.append(part.kind)
            append(part.content, to: &bytes)
        }
        return bytes
    }

    /// `nil` for bytes that were not made by `encode`.
    static func decode(_ bytes: [UInt8]) -> (answerTo: [UInt8], parts: [Part])? {
        var rest = bytes[...]
        guard rest.starts(with: mark) else { return nil }
        rest = rest.dropFirst(mark.count)
        guard let answerTo = takeBytes(&rest), let count = takeNumber(&rest) else { return nil }
        var parts: [Part] = []
        for _ in 0..<count {
            guard let kind = rest.popFirst(), kind <= 1, let content = takeBytes(&rest) else { return nil }
            parts.append(kind == 0 ? .bytes(content) : .port(content))
        }
        return rest.isEmpty ? (answerTo, parts) : nil
    }

    private static func append(_ number: UInt32, to bytes: inout [UInt8]) {
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> UInt32(shift))) }
    }

    private static func append(_ content: [UInt8], to bytes: inout [UInt8]) {
        append(UInt32(content.count), to: &bytes)
        bytes += content
    }

    private static func takeNumber(_ rest: inout ArraySlice<UInt8>) -> UInt32? {
        guard rest.count >= 4 else { return nil }
        defer { rest = rest.dropFirst(4) }
        return rest.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func takeBytes(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
        guard let count = takeNumber(&rest), rest.count >= Int(count) else { return nil }
        defer { rest = rest.dropFirst(Int(count)) }
        return Array(rest.prefix(Int(count)))
    }
}
