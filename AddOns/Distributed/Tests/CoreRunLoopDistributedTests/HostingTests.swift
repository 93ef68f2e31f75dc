// SPDX-License-Identifier: Apache-2.0
//
// Names of actors, who has them, and how others learn of that.

import CoreRunLoop
import CoreRunLoopDistributed
import Distributed
import Synchronization
import Testing

private distributed actor Hidden {
    typealias ActorSystem = MessagePortActorSystem
    distributed func act() {}
}

distributed actor Box<Value: Codable & Sendable> {
    typealias ActorSystem = MessagePortActorSystem
    distributed actor Lid { typealias ActorSystem = MessagePortActorSystem }
}

/// A protocol for any system of actors, whose type is generic.
@Resolvable
protocol Opener: DistributedActor where ActorSystem: DistributedActorSystem<any Codable> {
    distributed func open() async throws
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
            #expect(throws: MessagePortActorError.notFound(name)) { try there.actor(name, as: Host.self) }
            try await here.host(name) { Host(actorSystem: here) }
            let second = try there.actor(name, as: Host.self)
            #expect(second !== first)
            #expect(try await second.greet("you") == "hello, you")
            #expect(try await first.greet("nobody else") == "hello, nobody else")
        }
    }

    @Test func `ends on one thread while another asks for it`() async throws {
        let system = try MessagePortActorSystem()
        defer { system.close() }
        var actor: Host? = Host(actorSystem: system)
        let state = Mutex((id: actor?.id, asked: 0))
        let asker = Task.detached {
            while let id = state.withLock({ $0.id }) {
                for _ in 0..<100 { system.resignID(id) }
                state.withLock { $0.asked += 1 }
            }
        }
        for round in 0..<2000 {
            while state.withLock({ $0.asked }) < round { await Task.yield() }
            actor = Host(actorSystem: system)
            state.withLock { $0.id = actor?.id }
            while state.withLock({ $0.asked }) <= round { await Task.yield() }
            actor = nil
        }
        state.withLock { $0.id = nil }
        await asker.value
    }

    @Test func `gets its name in its own system, and is kept, or is not hosted`() async throws {
        try await withTwo { here, there, name in
            let actor = try await here.host(name) {
                #expect(Host(actorSystem: there).id.number != 0)
                return Host(actorSystem: here)
            }
            #expect(actor.id.port.hasSuffix(name))
            await #expect(throws: MessagePortActorError.closed) {
                try await there.host(name + ".late") {
                    there.close()
                    return Host(actorSystem: there)
                }
            }
        }
    }

    @Test func `does not keep its system by tasks that began while it was made`() async throws {
        let task = Mutex<Task<Void, any Error>?>(nil)
        func host() async throws -> MessagePortActorSystem {
            let system = try MessagePortActorSystem()
            try await system.host("test.\(UInt64.random(in: 0 ... .max))") {
                task.withLock { $0 = Task { try await Task.sleep(for: .seconds(100_000)) } }
                return Host(actorSystem: system)
            }
            system.close()
            return system
        }
        weak let system = try await host()
        try await eventually { system == nil }
        task.withLock { $0 }?.cancel()
    }

    @Test func `is of no generic type`() async throws {
        try await withTwo { here, _, name in
            await #expect(throws: MessagePortActorError.unnamedType("CoreRunLoopDistributedTests.Box<Swift.Int>")) {
                try await here.host(name) { Box<Int>(actorSystem: here) }
            }
            await #expect(throws: MessagePortActorError.self) { try await here.host(name) { Box<Int>.Lid(actorSystem: here) } }
            #expect(throws: MessagePortActorError.self) { try here.actors(as: Box<Int>.self) }
            try await here.host(name, as: $Opener<MessagePortActorSystem>.self) { Host(actorSystem: here) }
            #expect(here.hostedActors().first { $0.name == name }?.kind == "CoreRunLoopDistributedTests.Opener")
        }
    }

    @Test func `leaves nothing with those that knew it, when they look for others`() async throws {
        try await withTwo { here, there, name in
            for number in 0..<300 {
                let actor = try await there.host("\(name).\(number)") { Host(actorSystem: there) }
                _ = try here.actor("\(name).\(number)", as: Host.self)
                there.withdraw(actor)
            }
            #expect(here.knownPortCount <= 128)
            here.close()
            #expect(here.knownPortCount == 0)
        }
    }

    @Test func `is not watched by a system that was closed, nor by watches that have ended`() async throws {
        try await withTwo { here, _, _ in
            for _ in 0..<100 {
                let changes = try here.changes(of: Host.self)
                let task = Task { for await _ in changes {} }
                task.cancel()
                await task.value
            }
            try await eventually { here.watchCount == 0 }
            here.close()
            for await _ in try here.changes(of: Host.self) {}
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
        let there = try MessagePortActorSystem(on: loop, timeLimit: .seconds(600))
        let here = try MessagePortActorSystem(timeLimit: .seconds(600))
        let actor = OnLoop(actorSystem: there)
        #expect(try await OnLoop.resolve(id: actor.id, using: here).isOnItsLoop())
        #expect(try await actor.isOnItsLoop())
        there.close()
        here.close()
        stop.requestStop()
    }
}
