// SPDX-License-Identifier: Apache-2.0
//
// Calls between systems of one process, which go by message ports as those of two processes do.

import CoreRunLoop
import CoreRunLoopDistributed
import Distributed
import Testing

struct Refusal: Error, Codable, Hashable { let reason: String }
private struct Shy: Error, CustomStringConvertible { let description = "not for others" }

@Resolvable
protocol Greeter: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func greet(_ name: String) async throws -> String
    distributed func refuse(_ reason: String) async throws
}

distributed actor Host: Greeter {
    typealias ActorSystem = MessagePortActorSystem
    private(set) var greeted = 0
    distributed func greet(_ name: String) -> String {
        greeted += 1
        return "hello, \(name)"
    }
    distributed func refuse(_ reason: String) throws { throw Refusal(reason: reason) }
    distributed func shy() throws { throw Shy() }
    distributed func echo<Value: Codable & Sendable>(_ value: Value) -> Value { value }
    distributed func next(of other: Host) async throws -> String { try await other.greet("a friend") }
    distributed var count: Int { greeted }
}

/// Two systems, one with a hosted actor.
func withTwo(_ body: (_ here: MessagePortActorSystem, _ there: MessagePortActorSystem, _ name: String) async throws -> Void) async throws {
    let here = try MessagePortActorSystem()
    let there = try MessagePortActorSystem()
    try await body(here, there, "test.\(UInt64.random(in: 0 ... .max))")
    here.close()
    there.close()
}

@Suite(.timeLimit(.minutes(5))) struct `A call of a distributed actor` {
    @Test func `by name and type, or by name and protocol, has its result`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try here.actor(name, as: Host.self)
            #expect(try await host.greet("you") == "hello, you")
            #expect(try await host.count == 1)
            #expect(try await host.echo([UInt8](repeating: 7, count: 200_000)).count == 200_000)
            #expect(throws: MessagePortActorError.notFound(name)) { try here.actor(name, as: $Greeter.self) }
            try await there.host(name, as: $Greeter.self) { Host(actorSystem: there) }
            let greeter = try here.actor(name, as: $Greeter.self)
            #expect(try await greeter.greet("all") == "hello, all")
        }
    }
}
