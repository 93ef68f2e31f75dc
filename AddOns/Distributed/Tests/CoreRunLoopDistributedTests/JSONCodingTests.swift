// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import CoreRunLoopDistributed
import CoreRunLoopDistributedJSON
import Distributed
import Testing

@Suite(.timeLimit(.minutes(5))) struct `A call in JSON` {
    @Test func `takes and gives values, actors and streams`() async throws {
        let here = try MessagePortActorSystem(coding: JSONCoding(), timeLimit: .seconds(600))
        let there = try MessagePortActorSystem(coding: JSONCoding(), timeLimit: .seconds(600))
        defer {
            here.close()
            there.close()
        }
        let kept = Host(actorSystem: there)
        let host = try Host.resolve(id: kept.id, using: here)
        #expect(try await host.greet("ö") == "hello, ö")
        #expect(try await host.weigh([Parcel(label: "a", weight: 2)]) == 2)
        let own = Host(actorSystem: here)
        #expect(try await host.greetedBy(own) == "hello, a friend")
        here.allowErrors(Refusal.self)
        await #expect(throws: Refusal(reason: "no")) { try await host.refuse("no") }
        let name = "test.\(UInt64.random(in: 0 ... .max))"
        try await there.host(name) { Source(Numbers(1000), Numbers(1), actorSystem: there) }
        let source = try here.actor(name, as: Source.self)
        #expect(try await source.stream().reduce(0, +) == 499_500)
        withExtendedLifetime(kept) {}
    }
}
