// SPDX-License-Identifier: Apache-2.0
//
// Names of actors, who has them, and how others learn of that.

import CoreRunLoop
import CoreRunLoopDistributed
import Distributed
import Testing

private distributed actor Hidden {
    typealias ActorSystem = MessagePortActorSystem
    distributed func act() {}
}

@Suite(.timeLimit(.minutes(5))) struct `A hosted actor` {
    @Test func `has its name alone, and gives it up when it is withdrawn`() async throws {
        try await withTwo { here, there, name in
            let first = try await there.host(name) { Host(actorSystem: there) }
            await #expect(throws: MessagePortActorError.nameTaken(name)) { try await here.host(name) { Host(actorSystem: here) } }
            let remote = try here.actor(name, as: Host.self)
            there.withdraw(first)
            // The first call may find the port that it knew, whose owner has gone.
            await #expect(throws: MessagePortActorError.self) { try await remote.greet("you") }
            await #expect(throws: MessagePortActorError.notFound(name)) { try await remote.greet("you") }
            try await here.host(name) { Host(actorSystem: here) }
            #expect(try await there.actor(name, as: Host.self).greet("you") == "hello, you")
        }
    }

    @Test func `is kept by its system, and no other actor is`() async throws {
        try await withTwo { here, there, name in
            weak let kept = try await there.host(name) { Host(actorSystem: there) }
            #expect(kept != nil)
            if let kept { there.withdraw(kept) }
            #expect(kept == nil)
            let remote: Host
            do {
                let unkept = Host(actorSystem: there)
                remote = try Host.resolve(id: unkept.id, using: here)
                #expect(try await remote.greet("you") == "hello, you")
            }
            await #expect(throws: MessagePortActorError.gone(remote.id)) { try await remote.greet("you") }
        }
    }

    @Test func `needs a name and a type that others can say`() async throws {
        try await withTwo { here, _, name in
            for wrong in ["", "a\0b", String(repeating: "a", count: 200)] {
                await #expect(throws: MessagePortActorError.invalidName(wrong)) { try await here.host(wrong) { Host(actorSystem: here) } }
            }
            await #expect(throws: MessagePortActorError.self) { try await here.host(name) { Hidden(actorSystem: here) } }
            let old = Host(actorSystem: here)
            await #expect(throws: MessagePortActorError.self) { try await here.host(name) { old } }
            #expect(throws: MessagePortActorError.notFound(name)) { try here.actor(name, as: Host.self) }
        }
    }

    @Test func `has an ID that is a text, of this version`() throws {
        let system = try MessagePortActorSystem()
        defer { system.close() }
        let actor = Host(actorSystem: system)
        #expect(try MessagePortActorID(actor.id.description) == actor.id)
        #expect(try MessagePortActorID("1:0:actor:Jobs.Queue/a:b").port == "actor:Jobs.Queue/a:b")
        #expect(throws: MessagePortActorError.unknownVersion("2:new:x")) { try MessagePortActorID("2:new:x").port == "" ? () : () }
        for text in ["", "1", "1:x:port", "1:1:", "a:1:port"] {
            #expect(throws: MessagePortActorError.invalidID(text)) { try MessagePortActorID(text) }
        }
    }

    @Test func `is listed, and watched as it comes and goes`() async throws {
        try await withTwo { here, there, name in
            let first = try await there.host(name + ".1", as: $Greeter.self) { Host(actorSystem: there) }
            try await there.host(name + ".1") { Host(actorSystem: there) }
            let listed = here.hostedActors().filter { $0.name.hasPrefix(name) }
            #expect(listed.map(\.kind) == ["CoreRunLoopDistributedTests.Greeter", "CoreRunLoopDistributedTests.Host"])
            #expect(listed.map(\.id).contains(first.id))
            var changes = try here.changes(of: $Greeter.self).makeAsyncIterator()
            func next() async throws -> MessagePortActorSystem.Change<$Greeter> {
                while let change = await changes.next() {  // other tests host Greeters as well
                    switch change {
                    case .appeared(let other, _) where other.hasPrefix(name): return change
                    case .gone(let other) where other.hasPrefix(name): return change
                    default: continue
                    }
                }
                throw MessagePortActorError.closed
            }
            guard case .appeared(name + ".1", let greeter) = try await next() else { throw MessagePortActorError.closed }
            #expect(try await greeter.greet("you") == "hello, you")
            let second = try await there.host(name + ".2", as: $Greeter.self) { Host(actorSystem: there) }
            guard case .appeared(name + ".2", _) = try await next() else { throw MessagePortActorError.closed }
            #expect(try here.actors(as: $Greeter.self).filter { $0.id.port.contains(name) }.count == 2)
            there.withdraw(first)
            guard case .gone(name + ".1") = try await next() else { throw MessagePortActorError.closed }
            there.withdraw(second)
            guard case .gone(name + ".2") = try await next() else { throw MessagePortActorError.closed }
            here.close()
            while await changes.next() != nil {}
        }
    }

    @Test func `of a system that was closed is gone, and its calls end`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let remote = try here.actor(name, as: Host.self)
            let task = Task { try await remote.sleep() }
            try await eventually { try await remote.sleepers[0] == 1 }
            there.close()
            await #expect(throws: MessagePortActorError.gone(remote.id)) { try await task.value }
            await #expect(throws: MessagePortActorError.closed) { try await there.host(name) { Host(actorSystem: there) } }
        }
    }
}

distributed actor OnLoop {
    typealias ActorSystem = MessagePortActorSystem
    nonisolated var unownedExecutor: UnownedSerialExecutor { actorSystem.runLoop.asUnownedSerialExecutor() }
    distributed func isOnItsLoop() async -> Bool {
        await Task.yield()
        return actorSystem.runLoop.isCurrent
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A distributed actor on a run loop` {
    @Test func `runs on the loop's thread`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "pinned", until: stop)
        let there = try MessagePortActorSystem(on: loop)
        let here = try MessagePortActorSystem()
        let actor = OnLoop(actorSystem: there)
        #expect(try await OnLoop.resolve(id: actor.id, using: here).isOnItsLoop())
        #expect(try await actor.isOnItsLoop())
        there.close()
        here.close()
        stop.requestStop()
    }
}
