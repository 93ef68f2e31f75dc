// SPDX-License-Identifier: Apache-2.0
//
// Names of functions in calls: those that Swift abbreviates, and those that should not even be read.

import ActorProtocols
import CoreRunLoop
import CoreRunLoopDistributed
import Distributed
import Synchronization
import Testing

@Resolvable
protocol DoorKeeper: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func openDoor() async throws -> Int
    distributed func openWindow() async throws -> Int
    distributed func shut() async throws -> Int
}

/// In the place where the protocol's name has `Door`, this one has `Window`.
distributed actor WindowKeeper: DoorKeeper {
    typealias ActorSystem = MessagePortActorSystem
    distributed func openDoor() -> Int { 1 }
    distributed func openWindow() -> Int { 2 }
    distributed func shut() -> Int { 3 }
}

/// Whose protocol is in another module.
distributed actor WindowActor: DoorProtocol {
    typealias ActorSystem = MessagePortActorSystem
    private var open: [Door] = []
    distributed func openDoor(_ door: Door) -> Door {
        open.append(door)
        return door
    }
    distributed func openWindow(_ door: Door) -> Int { -door.number }
    distributed func close() { open = [] }
    distributed func openDoors() -> [Door] { open }
}

struct Job: Codable, Sendable { var number: Int }
struct Local: Codable, Sendable { var number: Int }

@Resolvable
protocol JobQueue: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func run(_ job: Job) async throws -> Int
}

distributed actor LocalQueue: JobQueue {
    typealias ActorSystem = MessagePortActorSystem
    distributed func run(_ job: Job) -> Int { job.number }
    distributed func run(_ local: Local) -> Int { -local.number }
}

@Suite(.timeLimit(.minutes(5))) struct `The name of a function in a call` {
    private func expectRefusal(_ call: () async throws -> Int) async throws {
        let error = await #expect(throws: MessagePortActorError.self) { _ = try await call() }
        guard case .unknownTarget(let text) = error else { throw try #require(error) }
        #expect(text.contains("module of its own") && !text.contains("$s"))
    }

    @Test func `that shares words with its type means no other function of an actor in the same module`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name, as: $DoorKeeper.self) { WindowKeeper(actorSystem: there) }
            let keeper = try here.actor(name, as: $DoorKeeper.self)
            let asked = Mutex(0)
            there.admission = { _ in
                asked.withLock { $0 += 1 }
                return true
            }
            try await expectRefusal { try await keeper.openDoor() }
            try await expectRefusal { try await keeper.openWindow() }
            #expect(asked.withLock { $0 } == 0)
            #expect(try await keeper.shut() == 3)
            let own = try WindowKeeper.resolve(id: keeper.id, using: here)
            #expect(try await own.openDoor() == 1)
            try await there.host(name, as: $JobQueue.self) { LocalQueue(actorSystem: there) }
            let queue = try here.actor(name, as: $JobQueue.self)
            try await expectRefusal { try await queue.run(Job(number: 5)) }
        }
    }

    @Test func `of a protocol in another module means the actor's own, whatever words they share`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name, as: $DoorProtocol.self) { WindowActor(actorSystem: there) }
            let actor = try here.actor(name, as: $DoorProtocol.self)
            let asked = Mutex<[String]>([])
            there.admission = { call in
                asked.withLock { $0.append(call.function) }
                return true
            }
            let doors = [Door(number: 1), Door(number: 2)]
            for door in doors { #expect(try await actor.openDoor(door) == door) }
            #expect(try await actor.openDoors() == doors)
            #expect(try await actor.openWindow(doors[1]) == -2)
            try await actor.close()
            #expect(try await WindowActor.resolve(id: actor.id, using: here).openDoors() == [])
            #expect(asked.withLock { $0 }.prefix(2) == ["openDoor", "openDoor"])
            #expect(asked.withLock { $0 }.dropFirst(3).prefix(2) == ["openWindow", "close"])
        }
    }

    @Test func `is shown as Swift prints it, and that of a type of others only if it stands for no more than its letters`() {
        #expect(CallTarget.displayName(of: "$s4Jobs5QueueC3addyyYaKFTE") == "Jobs.Queue.add() async throws -> ()")
        #expect(CallTarget.displayName(ofType: "4Jobs5QueueC3AddV") == "Jobs.Queue.Add")
        #expect(CallTarget.displayName(ofType: "8JobQueue0aB5ErrorO") == "JobQueue.JobQueueError")
        #expect(CallTarget.displayName(ofType: "s13DecodingErrorO") == "Swift.DecodingError")
        for name in ["", "Say4Jobs3AddVG", "SDyS2iG", "4Job", "99999999999999999999JobV", "0z4JobsV", "$s4Jobs3AddV", "\u{e9}"] {
            #expect(CallTarget.displayName(ofType: name) == nil, "\(name)")
        }
    }

    @Test func `is not read if the program has no such function, however much it would say`() async throws {
        try await withTwo { here, there, name in
            let id = try await there.host(name) { Host(actorSystem: there) }.id
            // A dictionary whose keys and values are each what was named before: 2 to the 24th of them.
            let levels = 24
            let pairs = (0..<levels).map { "A\(Character(UnicodeScalar(UInt8(0x41 + $0))))G" }.joined()
            let bomb = "$s" + String(repeating: "SDy", count: levels + 1) + "SiSiG" + pairs
            var shortest = Duration.seconds(60)  // of three, as other tests use the processors
            for _ in 0..<3 {
                let began = ContinuousClock.now
                #expect(try await refusal(of: forgedCall(bomb), by: id) == .unknownTarget(bomb))
                shortest = min(shortest, began.duration(to: .now))
            }
            #expect(shortest < .seconds(8))  // to take it apart takes 10 s on an idle machine, and gigabytes
            #expect(try await here.actor(name, as: Host.self).greet("you") == "hello, you")
        }
    }
}
