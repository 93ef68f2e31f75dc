// SPDX-License-Identifier: Apache-2.0
//
// Distributed actors over message ports.
//
// Ports. Each system has one port with a name that nobody else has, and all its actors share it: an actor's ID is that name and a number.
// An actor that is hosted under a name has a port of its own, with the actor's name in the port's. So the directory of port names is the
// directory of actors, the library's lock on a name is what refuses a second owner, an ID by name outlives its process, and whatever
// carries ports to other machines carries such actors. A hosted actor costs a port, two descriptors and two files; any other costs an entry
// of a table.
//
// Threads. All ports of a system are in one loop, whose thread only takes calls from the queues. Each call is a task. `state` guards all
// that changes. No lock is held while the program's code runs, and no actor is released with one held, because its end calls back.

public import CoreRunLoop
public import Distributed
import Synchronization

/// Connects distributed actors of the processes of one user by message ports.
///
/// ```swift
/// @Resolvable
/// protocol Greeter: DistributedActor where ActorSystem == MessagePortActorSystem {
///     distributed func greet(_ name: String) async throws -> String
/// }
/// distributed actor Host: Greeter {
///     typealias ActorSystem = MessagePortActorSystem
///     distributed func greet(_ name: String) -> String { "hello, \(name)" }
/// }
/// ```
///
/// One process hosts the actor, and any other finds it by its name and protocol:
///
/// ```swift
/// let system = try MessagePortActorSystem()
/// try await system.host("hall", as: $Greeter.self) { Host(actorSystem: system) }
/// ```
///
/// ```swift
/// let system = try MessagePortActorSystem()
/// let greeter = try system.actor("hall", as: $Greeter.self)
/// print(try await greeter.greet("you"))
/// ```
public final class MessagePortActorSystem: DistributedActorSystem, Sendable {
    /// The names of actors.
    public typealias ActorID = MessagePortActorID
    /// Makes calls.
    public typealias InvocationEncoder = MessagePortInvocationEncoder
    /// Reads calls.
    public typealias InvocationDecoder = MessagePortInvocationDecoder
    /// Makes replies.
    public typealias ResultHandler = MessagePortResultHandler
    /// Arguments and results are `Codable`.
    public typealias SerializationRequirement = any Codable

    /// The loop that takes calls from the system's ports.
    public let runLoop: RunLoop
    /// How arguments and results become bytes.
    public let coding: any ActorCoding
    /// How long a call may take if neither ``withTimeLimit(_:_:)`` nor the call that is being served says so.
    public let timeLimit: Duration

    let port: MessagePort
    private let stop: RunLoop.StopToken?

    struct WeakActor { weak var actor: (any DistributedActor)? }
    private struct Hosted {
        let port: MessagePort
        var actor: (any DistributedActor)?
    }
    private struct State {
        var lastNumber: UInt64 = 0
        var actors: [ActorID: WeakActor] = [:]
        var hosted: [ActorID: Hosted] = [:]
        var isClosed = false
    }
    private let state = Mutex(State())
    let remotes = Mutex(Remotes())
    let types = Mutex(AllowedTypes())
    /// What is offered to readers, by numbers that nobody can guess.
    let streams = Mutex<[UInt64: StreamOffer]>([:])
    let admissionCheck = Mutex<(@Sendable (IncomingCall) -> Bool)?>(nil)
    /// Those that have not ended.
    let watches = Mutex<[ObjectIdentifier: DirectoryWatch]>([:])

    /// Makes a system with a port of its own.
    ///
    /// - Parameters:
    ///   - runLoop: The loop that takes calls, in its common modes. `nil` makes a thread for it.
    ///   - coding: How arguments and results become bytes; the same for all systems that call each other.
    ///   - timeLimit: How long a call may take if nothing else says so.
    /// - Throws: `PortError` or `ThreadError` when the system has no means left.
    public init(on runLoop: RunLoop? = nil, coding: some ActorCoding = CompactCoding(), timeLimit: Duration = .seconds(30)) throws {
        port = try MessagePort(name: nil)
        self.coding = coding
        self.timeLimit = timeLimit
        if let runLoop {
            self.runLoop = runLoop
            stop = nil
        } else {
            let stop = RunLoop.StopToken()
            self.runLoop = try Thread.runningLoop(name: "actors", until: stop)
            self.stop = stop
        }
        serve(at: port, 1024)
        self.runLoop.add(port, forMode: .common)
    }

    deinit { close() }

    /// Ends the system for good: its actors cannot be called any more, hosted ones are no longer kept, and calls under way to other
    /// processes still end. Any thread.
    public func close() {
        let hosted = state.withLock { state in
            state.isClosed = true
            defer { state.hosted = [:] }
            return state.hosted
        }
        for one in hosted.values { one.port.invalidate() }
        port.invalidate()
        for offer in streams.withLock({ Array($0.values) }) { offer.buffer.close() }
        for watch in watches.withLock({ Array($0.values) }) { watch.end() }
        let known = remotes.withLock { $0.forgetAll() }
        withExtendedLifetime(known) {}  // freed here, outside the lock
        stop?.requestStop()
    }

    // MARK: Actors of this process

    /// The ID that the next actor of a type gets in its system, in the task that hosts it.
    private final class Name: Sendable {
        private let id: ActorID
        private let type: ObjectIdentifier
        private weak let system: MessagePortActorSystem?  // tasks that began meanwhile keep this name
        private let isTaken = Mutex(false)
        init(_ id: ActorID, _ type: Any.Type, _ system: MessagePortActorSystem) {
            self.id = id
            self.type = ObjectIdentifier(type)
            self.system = system
        }

        func take(_ type: Any.Type, _ system: MessagePortActorSystem) -> ActorID? {
            if ObjectIdentifier(type) != self.type || system !== self.system { return nil }
            return isTaken.withLock { isTaken in
                defer { isTaken = true }
                return isTaken ? nil : id
            }
        }
    }
    @TaskLocal private static var name: Name?

    /// Makes an actor and hosts it under a name, by its own type. As ``host(_:as:callsAtOnce:_:)``, also in what it throws.
    @discardableResult
    public nonisolated(nonsending) func host<Act: DistributedActor>(
        _ name: String, callsAtOnce: Int = 256, _ make: nonisolated(nonsending) () async throws -> Act
    ) async throws -> Act where Act.ID == ActorID {
        try await host(name, as: Act.self, callsAtOnce: callsAtOnce, make)
    }

    /// Makes an actor and hosts it under a name: others find it by the name and a type, and the system keeps it until
    /// ``withdraw(_:)`` or ``close()``.
    ///
    /// - Parameters:
    ///   - name: Not empty; with the type's name at most 121 bytes.
    ///   - type: The type by which others find the actor: its own, or, for a protocol `P` that is `@Resolvable`, `$P.self`.
    ///   - callsAtOnce: How many calls of the actor may be under way. Further ones wait. Of one process there are at most 256.
    ///   - make: Makes the actor. If it makes several of the type, the first one gets the name.
    /// - Throws: ``MessagePortActorError/nameTaken(_:)``, ``MessagePortActorError/invalidName(_:)``,
    ///   ``MessagePortActorError/unnamedType(_:)``, ``MessagePortActorError/closed``, also when the system is closed meanwhile, and what
    ///   `make` throws.
    @discardableResult
    public nonisolated(nonsending) func host<Act: DistributedActor, Known: DistributedActor>(
        _ name: String, as type: Known.Type, callsAtOnce: Int = 256, _ make: nonisolated(nonsending) () async throws -> Act
    ) async throws -> Act where Act.ID == ActorID, Known.ID == ActorID {
        let id = ActorID(port: try PortName(name, type).text)
        let port = try own(id, name)
        let actor: Act
        do {
            actor = try await Self.$name.withValue(Name(id, Act.self, self)) { try await make() }
            if actor.id != id { throw MessagePortActorError.invalidName("\(name), for an actor that was made before") }
        } catch {
            give(up: id) { _ in true }
            throw error
        }
        let isHosted = state.withLock { state in
            state.hosted[id]?.actor = actor
            return state.hosted[id] != nil
        }
        if !isHosted { throw MessagePortActorError.closed }  // meanwhile
        serve(at: port, callsAtOnce)
        runLoop.add(port, forMode: .common)
        return actor
    }

    private func own(_ id: ActorID, _ name: String) throws -> MessagePort {
        let port: MessagePort
        do { port = try MessagePort(name: id.port) } catch {
            switch error {
            case .nameTaken: throw MessagePortActorError.nameTaken(name)
            case .invalidName: throw MessagePortActorError.invalidName(name)
            default: throw MessagePortActorError.transport(name)
            }
        }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.hosted[id] = Hosted(port: port) }
            return state.isClosed
        }
        if isClosed {
            port.invalidate()
            throw MessagePortActorError.closed
        }
        return port
    }

    /// Gives an actor's name up, and no longer keeps the actor. Any thread; without effect for an actor that is not hosted here.
    public func withdraw(_ actor: some DistributedActor & Identifiable<ActorID>) { give(up: actor.id) { $0 === actor } }

    /// Gives a hosted actor's name up if the actor, `nil` before it is made, is the right one. Its ID means nobody here from then on.
    private func give(up id: ActorID, if isRight: ((any DistributedActor)?) -> Bool) {
        let hosted = state.withLock { state -> Hosted? in
            guard let hosted = state.hosted[id], isRight(hosted.actor) else { return nil }
            state.hosted[id] = nil
            state.actors[id] = nil
            return hosted
        }
        hosted?.port.invalidate()
    }

    /// Gives an actor its ID. Called by Swift.
    public func assignID<Act: DistributedActor>(_ type: Act.Type) -> ActorID where Act.ID == ActorID {
        if let id = Self.name?.take(type, self) { return id }
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        return ActorID(port: port.name, number: number)
    }

    /// Notes an actor, which may be called from now on. Called by Swift.
    public func actorReady<Act: DistributedActor>(_ actor: Act) where Act.ID == ActorID {
        state.withLock { $0.actors[actor.id] = WeakActor(actor: actor) }
    }

    /// Forgets an actor that ends. Called by Swift.
    public func resignID(_ id: ActorID) {
        let other = state.withLock { state in
            let other = state.actors[id]?.actor  // it may have the name already
            if other == nil { state.actors[id] = nil }
            return other
        }
        withExtendedLifetime(other) {}  // its last reference may be this one: it ends here, outside the lock
    }

    /// The actor of this process with an ID.
    func local(_ id: ActorID) -> (any DistributedActor)? { state.withLock { $0.actors[id]?.actor } }

    // MARK: Actors of any process

    /// Returns the actor of this process that has the ID, or `nil` for one elsewhere. Called by Swift. Throws nothing.
    public func resolve<Act: DistributedActor>(id: ActorID, as type: Act.Type) throws -> Act? where Act.ID == ActorID {
        local(id) as? Act
    }

    /// The actor that is hosted under a name, anywhere.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - type: The type under which it is hosted: its own, or `$P.self` for a protocol `P`.
    /// - Throws: ``MessagePortActorError/notFound(_:)`` when nobody hosts such an actor now.
    public func actor<Act: DistributedActor>(_ name: String, as type: Act.Type) throws -> Act
    where Act.ID == ActorID, Act.ActorSystem == MessagePortActorSystem {
        let id = ActorID(port: try PortName(name, type).text)
        if local(id) == nil { _ = try remote(id) }
        return try Act.resolve(id: id, using: self)
    }

    /// Makes the encoder of a call. Called by Swift.
    public func makeInvocationEncoder() -> InvocationEncoder { InvocationEncoder(self) }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// What encoders and decoders need to know, to read actors among the values.
    var userInfo: [CodingUserInfoKey: any Sendable] { [.actorSystemKey: self] }

    /// The same for a value of a type; nothing for plain values, which have no actors in them.
    func userInfo(for type: any Any.Type) -> [CodingUserInfoKey: any Sendable] { Self.isPlain(type) ? [:] : userInfo }

    static func isPlain(_ type: any Any.Type) -> Bool {
        type == [UInt8].self || type == Int.self || type == String.self || type == Bool.self || type == Double.self
    }
}
