// SPDX-License-Identifier: Apache-2.0
//
// Which actors are hosted. The directory of port names is the directory of actors: it is read, and nobody is asked. A watch looks again
// when a file of the directory comes or goes, and when an actor's port ends, since a process that is killed changes no file. What it has
// seen is only its own task's.

import CoreRunLoop
import CoreRunLoopShims
public import Distributed
import Synchronization

extension MessagePortActorSystem {
    /// An actor that a process hosts under a name.
    public struct HostedActor: Hashable, Sendable {
        /// The actor's ID.
        public let id: ActorID
        /// The name under which it is hosted.
        public let name: String
        /// The type or protocol under which it is hosted, with its module.
        public let kind: String
        /// The ID of its process.
        public let process: Int32
    }

    /// Actors of one kind that come and go.
    public enum Change<Act: Sendable>: Sendable {
        /// An actor is hosted under this name now, or was when the watch began.
        case appeared(String, Act)
        /// The actor of this name has gone: withdrawn, or its process has ended.
        case gone(String)
    }

    /// The actors of all processes of the user that are hosted now, in the order of their names. Any thread; reads the directory of names.
    public func hostedActors() -> [HostedActor] {
        final class Found { var actors: [HostedActor] = [] }
        let found = Found()
        unsafe shim_port_names_list(
            { info, name, length, process in
                let text = unsafe String(decoding: UnsafeBufferPointer(start: name, count: length), as: UTF8.self)
                guard let info = unsafe info, let port = PortName(text) else { return }
                let actor = HostedActor(id: ActorID(port: text), name: port.name, kind: port.kind, process: process)
                unsafe Unmanaged<Found>.fromOpaque(info).takeUnretainedValue().actors.append(actor)
            }, Unmanaged.passUnretained(found).toOpaque())
        return found.actors.sorted { ($0.name, $0.kind) < ($1.name, $1.kind) }
    }

    /// The actors that are hosted under a type now, in the order of their names.
    ///
    /// - Parameter type: Their own type, or `$P.self` for a protocol `P`.
    /// - Throws: ``MessagePortActorError/unnamedType(_:)``.
    public func actors<Act: DistributedActor>(as type: Act.Type) throws -> [Act]
    where Act.ID == ActorID, Act.ActorSystem == MessagePortActorSystem {
        let kind = try PortName.kind(of: type)
        return try hostedActors().filter { $0.kind == kind }.map { try Act.resolve(id: $0.id, using: self) }
    }

    /// The actors that are hosted under a type, as they come and go: first those that are there, then each change. Ends when the system is
    /// closed.
    ///
    /// Changes wait for the reader without bound. An actor that comes and goes between two looks may be left out.
    ///
    /// - Parameter type: Their own type, or `$P.self` for a protocol `P`.
    /// - Throws: ``MessagePortActorError/unnamedType(_:)``.
    public func changes<Act: DistributedActor>(of type: Act.Type) throws -> AsyncStream<Change<Act>>
    where Act.ID == ActorID, Act.ActorSystem == MessagePortActorSystem {
        let kind = try PortName.kind(of: type)
        let (changes, continuation) = AsyncStream.makeStream(of: Change<Act>.self)
        let watch = DirectoryWatch(self, kind)
        watches.withLock { $0[ObjectIdentifier(watch)] = watch }
        if isClosed { watch.end() }  // close() may not have seen it
        let task = Task.detached { [weak self] in
            for await change in watch.changes {
                guard let self else { break }
                switch change {
                case .appeared(let name, let id):
                    if let actor = try? Act.resolve(id: id, using: self) { continuation.yield(.appeared(name, actor)) }
                case .gone(let name): continuation.yield(.gone(name))
                }
            }
            continuation.finish()
            self?.watches.withLock { $0[ObjectIdentifier(watch)] = nil }
        }
        continuation.onTermination = { _ in task.cancel() }
        return changes
    }

    /// How many watches have not ended.
    package var watchCount: Int { watches.withLock { $0.count } }
}

/// Looks into the directory of names when something has changed there.
final class DirectoryWatch: Sendable {
    enum Change: Sendable {
        case appeared(String, MessagePortActorID)
        case gone(String)
    }
    private struct Seen {
        let name: String
        let port: MessagePort
    }
    /// What has changed; one reader.
    let changes: AsyncStream<Change>
    /// Something may have changed.
    private let signal: AsyncStream<Void>.Continuation

    private static let pause = Duration.milliseconds(10)  // between two looks
    private static let lookAgain = Duration.milliseconds(500)  // where the kernel does not tell

    init(_ system: MessagePortActorSystem, _ kind: String) {
        let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let (changes, found) = AsyncStream.makeStream(of: Change.self)
        self.changes = changes
        self.signal = signal
        signal.yield()
        let files = Self.watchFiles(system.runLoop, signal)
        let task = Task.detached { [weak system] in
            var seen: [MessagePortActorID: Seen] = [:]
            for await _ in signals {
                guard let system else { break }
                if Self.look(system, kind, &seen, found, signal) { signal.yield() }
                try? await Task.sleep(for: files == nil ? Self.lookAgain : Self.pause)
                if files == nil { signal.yield() }
            }
            files?.invalidate()
            found.finish()
        }
        found.onTermination = { _ in
            task.cancel()
            signal.finish()
        }
    }

    func end() { signal.finish() }

    /// `nil` if the system has no means to tell of files.
    private static func watchFiles(_ loop: RunLoop, _ signal: AsyncStream<Void>.Continuation) -> DescriptorSource? {
        let files = shim_port_names_watch()
        if files < 0 { return nil }
        let source = try? DescriptorSource(descriptor: files, closeOnInvalidate: true) { event in
            shim_port_names_drain(event.descriptor)
            signal.yield()
        }
        if let source { loop.add(source, forMode: .common) }
        return source
    }

    /// Returns whether it has to look again soon: a name is there whose process is just ending.
    private static func look(
        _ system: MessagePortActorSystem, _ kind: String, _ seen: inout [MessagePortActorID: Seen],
        _ found: AsyncStream<Change>.Continuation, _ signal: AsyncStream<Void>.Continuation
    ) -> Bool {
        let listed = system.hostedActors().filter { $0.kind == kind }
        let there = Set(listed.map(\.id))
        for (id, one) in seen where !there.contains(id) || !one.port.isValid {
            seen[id] = nil
            found.yield(.gone(one.name))
        }
        var looksAgain = false
        for actor in listed where seen[actor.id] == nil {
            guard let port = try? MessagePort(remote: actor.id.port) else {
                looksAgain = true
                continue
            }
            seen[actor.id] = Seen(name: actor.name, port: port)
            system.runLoop.perform { port.onInvalidate { signal.yield() } }  // the calling thread's loop watches
            found.yield(.appeared(actor.name, actor.id))
        }
        return looksAgain
    }
}
