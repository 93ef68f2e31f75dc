// SPDX-License-Identifier: Apache-2.0
//
// Calls to actors of other systems: as requests of their ports, and what comes back.

import CoreRunLoop
public import Distributed
import Synchronization

/// The numbers of the messages between systems.
enum MessageNumber {
    static let call: Int32 = 0x4441_0001
    static let hold: Int32 = 0x4441_0002
    static let pull: Int32 = 0x4441_0003
}

extension MessagePortActorSystem {
    @TaskLocal private static var deadline: SuspendingClock.Instant?

    /// Limits the time of all calls that `body` makes, one after the other or beside each other. The limit goes to the other side with
    /// each call, and from there to the calls that are made for it. An earlier limit that is already there stays.
    ///
    /// - Parameters:
    ///   - limit: How long from now.
    ///   - body: Makes calls.
    /// - Throws: What `body` throws. A call that has no result in time throws ``MessagePortActorError/deadlinePassed(_:)``.
    public nonisolated(nonsending) static func withTimeLimit<Result>(
        _ limit: Duration, _ body: nonisolated(nonsending) () async throws -> Result
    ) async rethrows -> Result {
        let deadline = SuspendingClock.now.advanced(by: limit)
        return try await $deadline.withValue(earliest(deadline, Self.deadline)) { try await body() }
    }

    private static func earliest(_ one: SuspendingClock.Instant?, _ other: SuspendingClock.Instant?) -> SuspendingClock.Instant? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }

    /// How long a request that is made now may take, if that was said.
    var explicitLimit: Duration? {
        Self.earliest(Self.deadline, MessagePort.requestDeadline).map { SuspendingClock.now.duration(to: $0) }
    }

    /// Calls a function that has a result. Called by Swift.
    ///
    /// - Throws: What the function has thrown, or ``MessagePortActorError``; `CancellationError` when the task is cancelled.
    public func remoteCall<Act: DistributedActor, Err: Error, Res: Codable>(
        on actor: Act, target: RemoteCallTarget, invocation: inout InvocationEncoder, throwing: Err.Type, returning: Res.Type
    ) async throws -> Res where Act.ID == ActorID {
        let bytes = try await reply(actor.id, target, invocation)
        guard bytes.first == CallFrame.Reply.value else { throw failure(bytes, target.identifier) }
        do { return try coding.decode(Res.self, from: bytes.dropFirst(), userInfo: userInfo(for: Res.self)) } catch {
            throw MessagePortActorError.malformedResult(CallTarget.displayName(of: target.identifier), "\(error)")
        }
    }

    /// Calls a function that has no result. Called by Swift.
    ///
    /// - Throws: What the function has thrown, or ``MessagePortActorError``; `CancellationError` when the task is cancelled.
    public func remoteCallVoid<Act: DistributedActor, Err: Error>(
        on actor: Act, target: RemoteCallTarget, invocation: inout InvocationEncoder, throwing: Err.Type
    ) async throws where Act.ID == ActorID {
        let bytes = try await reply(actor.id, target, invocation)
        if bytes.first != CallFrame.Reply.nothing { throw failure(bytes, target.identifier) }
    }

    private func reply(_ id: ActorID, _ target: RemoteCallTarget, _ invocation: InvocationEncoder) async throws -> [UInt8] {
        try await request(id, MessageNumber.call, invocation.frame(id, target.identifier), explicitLimit ?? timeLimit, target.identifier)
    }

    /// The error of a reply that has no result, to a request about `subject`.
    func failure(_ bytes: [UInt8], _ subject: String) -> any Error {
        switch bytes.first {
        case CallFrame.Reply.refusal:
            let error = try? CompactCoding().decode(MessagePortActorError.self, from: bytes.dropFirst())
            // The other side does not take apart a name that it does not know.
            if error == .unknownTarget(subject) { return MessagePortActorError.unknownTarget(CallTarget.displayName(of: subject)) }
            return error ?? MessagePortActorError.failed("the error of the call cannot be read")
        case CallFrame.Reply.error:
            var reader = CompactReader(bytes.dropFirst())
            guard let name = try? reader.text() else { break }
            if let decode = types.withLock({ $0.errors[name] }) { return decode(self, bytes[reader.position...]) }
            let type = CallTarget.displayName(ofType: name).map { "the type \($0)" }
            return MessagePortActorError.failed("an error of \(type ?? "a type that is not allowed")")
        default: break
        }
        return MessagePortActorError.malformedResult(CallTarget.displayName(of: subject), "the reply is of another kind")
    }

    // MARK: Requests

    private static let timeBetweenChecks = Duration.milliseconds(10)

    /// How many ports of other actors are known.
    package var knownPortCount: Int { remotes.withLock { $0.count } }

    /// The port to send to.
    func remote(_ id: ActorID) throws(MessagePortActorError) -> MessagePort {
        let now = SuspendingClock.now
        if let known = remotes.withLock({ $0[id.port] }) {
            if now < known.checkAgain { return known.port }
            if known.port.isValid {
                remotes.withLock { $0.checked(known.port, of: id.port, now.advanced(by: Self.timeBetweenChecks)) }
                return known.port
            }
        }
        do {
            let port = try MessagePort(remote: id.port)
            let remote = Remotes.Remote(port: port, checkAgain: now.advanced(by: Self.timeBetweenChecks))
            let (old, isLarge) = remotes.withLock { $0.add(remote, of: id.port) }
            withExtendedLifetime(old) {}  // freed here, outside the lock
            if isLarge { forgetEnded() }
            return port
        } catch {
            if id.number == 0, let name = PortName(id.port)?.name { throw .notFound(name) }
            throw .gone(id)
        }
    }

    /// Forgets the ports of processes that have ended and of actors that were withdrawn.
    private func forgetEnded() {
        let ended = remotes.withLock { $0.all }.filter { !$0.value.port.isValid }
        let gone = ended.map { (name, remote) in remotes.withLock { $0.forget(remote.port, of: name) } }
        withExtendedLifetime(gone) {}  // freed here, outside the lock
        remotes.withLock { $0.haveBeenChecked() }
    }

    /// Sends a request to an actor's port, and waits for the answer. `subject` is what an error is about.
    func request(_ id: ActorID, _ number: Int32, _ bytes: [UInt8], _ limit: Duration, _ subject: String) async throws -> [UInt8] {
        if limit < .zero { throw MessagePortActorError.deadlinePassed(CallTarget.displayName(of: subject)) }
        let port = try remote(id)
        do { return try await port.requestBytes(number: number, bytes, timeout: limit) } catch let error as PortError {
            switch error {
            case .invalid:
                let known = remotes.withLock { $0.forget(port, of: id.port) }
                withExtendedLifetime(known) {}  // freed here, outside the lock
                throw MessagePortActorError.gone(id)
            case .sendTimeout, .receiveTimeout: throw MessagePortActorError.deadlinePassed(CallTarget.displayName(of: subject))
            case .unhandled, .malformed: throw MessagePortActorError.malformedCall(CallTarget.displayName(of: subject))
            case .failed(let text): throw MessagePortActorError.failed(text)
            default: throw MessagePortActorError.transport(CallTarget.displayName(of: subject))
            }
        }
    }
}

/// The ports of other actors, by their names. What is taken out is returned, so that nothing is freed under the lock.
struct Remotes {
    /// A port, and when to look whether its owner lives. A look takes three system calls.
    struct Remote {
        let port: MessagePort
        var checkAgain: SuspendingClock.Instant
    }
    private(set) var all: [String: Remote] = [:]
    /// From this count on, they are looked at for those that have ended.
    private var large = leastLarge
    private static let leastLarge = 64

    var count: Int { all.count }
    subscript(name: String) -> Remote? { all[name] }

    /// Notes when to look again.
    mutating func checked(_ port: MessagePort, of name: String, _ checkAgain: SuspendingClock.Instant) {
        if all[name]?.port === port { all[name]?.checkAgain = checkAgain }
    }

    /// Returns what had the name before, and whether it is time to look for those that have ended.
    mutating func add(_ remote: Remote, of name: String) -> (old: Remote?, isLarge: Bool) {
        let old = all.updateValue(remote, forKey: name)
        if all.count < large { return (old, false) }
        large = .max  // one thread looks
        return (old, true)
    }

    /// They have been looked at. The next look comes when they are twice as many, so that looking costs no more than adding.
    mutating func haveBeenChecked() { large = max(Self.leastLarge, 2 * all.count) }

    mutating func forget(_ port: MessagePort, of name: String) -> Remote? {
        all[name]?.port === port ? all.removeValue(forKey: name) : nil
    }

    mutating func forgetAll() -> [String: Remote] {
        defer { all = [:] }
        return all
    }
}
