// SPDX-License-Identifier: Apache-2.0
//
// Calls between systems of one process, which go by message ports as those of two processes do.

import CoreRunLoop
import CoreRunLoopDistributed
import Distributed
import Testing

@Suite(.timeLimit(.minutes(5))) struct `A call of a distributed actor` {
    @Test func `by name and type, or by name and protocol, has its result`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try here.actor(name, as: Host.self)
            #expect(try await host.greet("you") == "hello, you")
            #expect(try await host.count == 1)
            #expect(try await host.echo([UInt8](repeating: 7, count: 200_000)).count == 200_000)
            #expect(try await host.weigh([Parcel(label: "a", weight: 2), Parcel(label: "b", weight: 3)]) == 5)
            #expect(throws: MessagePortActorError.notFound(name)) { try here.actor(name, as: $Greeter.self) }
            try await there.host(name, as: $Greeter.self) { Host(actorSystem: there) }
            let greeter = try here.actor(name, as: $Greeter.self)
            #expect(try await greeter.greet("all") == "hello, all")
        }
    }

    @Test func `within its own system is not sent`() async throws {
        try await withTwo { here, _, name in
            let made = try await here.host(name) { Host(actorSystem: here) }
            let found = try here.actor(name, as: Host.self)
            #expect(found === made)
            #expect(try await found.greet("you") == "hello, you")
        }
    }

    @Test func `takes actors as arguments, by their type or by a protocol`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try here.actor(name, as: Host.self)
            let own = Host(actorSystem: here)
            #expect(try await host.greetedBy(own) == "hello, a friend")
            #expect(try await own.count == 1)
            let (heard, continuation) = AsyncStream.makeStream(of: String.self)
            let ear = Ear(continuation, actorSystem: here)
            try await host.tell($Listener.resolve(id: ear.id, using: here), "news")
            #expect(await heard.first { _ in true } == "news")
        }
    }

    @Test func `throws what the function throws: itself if it may come, or its text`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try here.actor(name, as: Host.self)
            here.allowErrors(Refusal.self)
            await #expect(throws: Refusal(reason: "no")) { try await host.refuse("no") }
            await #expect(throws: MessagePortActorError.failed("not for others")) { try await host.beShy() }
            let unlisted = await #expect(throws: MessagePortActorError.self) { try await host.beUnlisted() }
            guard case .failed(let text) = unlisted else { throw try #require(unlisted) }
            #expect(text == "an error of the type CoreRunLoopDistributedTests.Unlisted")
        }
    }

    @Test func `of a generic function names only types that are allowed`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try here.actor(name, as: Host.self)
            #expect(try await host.echo(3) == 3)
            let refused = await #expect(throws: MessagePortActorError.self) { try await host.echo(Parcel(label: "a", weight: 1)) }
            guard case .refused(let text) = refused else { throw try #require(refused) }
            #expect(text.contains(".echo<") && text.hasSuffix("for the type CoreRunLoopDistributedTests.Parcel"))
            there.allowGenericArguments(Parcel.self)
            #expect(try await host.echo(Parcel(label: "a", weight: 1)).weight == 1)
            let greeter = try $Greeter.resolve(id: host.id, using: here)
            await #expect(throws: MessagePortActorError.self) { try await greeter.echo(3) }
        }
    }

    @Test func `has a time limit, which goes on to the calls that are made for it`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try here.actor(name, as: Host.self)
            let other = Host(actorSystem: here)
            let left = try await MessagePortActorSystem.withTimeLimit(.seconds(1000)) {
                let first = try await host.secondsLeft()
                let inner = try await MessagePortActorSystem.withTimeLimit(.seconds(50)) {
                    let second = try await host.secondsLeft(at: other)
                    let third = try await MessagePortActorSystem.withTimeLimit(.seconds(10_000)) { try await host.secondsLeft() }
                    return [second, third]
                }
                return [first] + inner
            }
            #expect((0...1000).contains(left[0]))
            #expect((0...50).contains(left[1]))
            #expect((0...50).contains(left[2]))
            var limit = Duration.milliseconds(5)
            repeat {  // until the function has begun before its time was over, and was cancelled
                let late = await #expect(throws: MessagePortActorError.self) {
                    try await MessagePortActorSystem.withTimeLimit(limit) { try await host.sleep() }
                }
                guard case .deadlinePassed(let function) = late else { throw try #require(late) }
                #expect(function.contains(".") && !function.hasPrefix("$s"))
                limit *= 2
            } while try await host.sleepers[1] == 0
            try await eventually { try await host.sleepers[0] == 0 }
            await #expect(throws: MessagePortActorError.self) {
                try await MessagePortActorSystem.withTimeLimit(.seconds(-1)) { try await host.greet("nobody") }
            }
            #expect(try await host.count == 0)
        }
    }

    @Test func `that is cancelled is cancelled on the other side`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try here.actor(name, as: Host.self)
            let task = Task { try await host.sleep() }
            try await eventually { try await host.sleepers == [1, 0] }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await eventually { try await host.sleepers == [0, 1] }
        }
    }

    @Test func `is refused where the actor's author says so`() async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try here.actor(name, as: Host.self)
            there.admission = { call in
                #expect(call.actor.port.hasSuffix(name))
                #expect(call.process == nil || call.process! > 0)
                return call.function != "greet"
            }
            await #expect(throws: MessagePortActorError.refused("greet")) { try await host.greet("you") }
            #expect(try await host.echo(2) == 2)
        }
    }

    @Test func `with another coding says which`() async throws {
        struct Other: ActorCoding {
            let compact = CompactCoding()
            var name: String { "other" }
            func encode<Value: Encodable>(_ value: Value, into bytes: inout [UInt8], userInfo: [CodingUserInfoKey: any Sendable]) throws {
                try compact.encode(value, into: &bytes, userInfo: userInfo)
            }
            func decode<Value: Decodable>(_ type: Value.Type, from: ArraySlice<UInt8>, userInfo: [CodingUserInfoKey: any Sendable]) throws
                -> Value
            { try compact.decode(type, from: from, userInfo: userInfo) }
        }
        let other = try MessagePortActorSystem(coding: Other())
        defer { other.close() }
        try await withTwo { here, there, name in
            try await there.host(name) { Host(actorSystem: there) }
            let host = try other.actor(name, as: Host.self)
            await #expect(throws: MessagePortActorError.otherCoding("other", "compact")) { try await host.greet("you") }
        }
    }

    @Test func `of a thousand actors, many at once, goes to the right one`() async throws {
        try await withTwo { here, there, _ in
            let actors = (0..<1000).map { _ in Host(actorSystem: there) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, actor) in actors.enumerated() {
                    if index >= 64 { try await group.next() }  // other tests of the process need descriptors, too
                    let remote = try Host.resolve(id: actor.id, using: here)
                    group.addTask { for _ in 0..<index % 4 { _ = try await remote.greet("you") } }
                }
                try await group.waitForAll()
            }
            for (index, actor) in actors.enumerated() { #expect(try await actor.count == index % 4) }
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A call that nobody should send` {
    private static let greet = "$s27CoreRunLoopDistributedTests4HostC5greetyS2SYaKFTE"
    private static let shown = "CoreRunLoopDistributedTests.Host.greet(Swift.String) async throws -> Swift.String"

    @Test func `gets an error that says what is wrong with it`() async throws {
        try await withTwo { _, there, name in
            let id = try await there.host(name) { Host(actorSystem: there) }.id
            let (greet, shown, word) = (Self.greet, Self.shown, [0xA1, 0x61] as [UInt8])
            #expect(try await refusal(of: forgedCall(greet, [word]), by: id) == nil)
            func gets(_ error: MessagePortActorError, _ call: [UInt8]) async throws {
                #expect(try await refusal(of: call, by: id) == error)
            }
            try await gets(.malformedCall("it is of version 2"), forgedCall(version: 2, greet, [word]))
            try await gets(.malformedCall("the bytes end too soon"), [])
            try await gets(.otherCoding("other", "compact"), forgedCall(coding: "other", greet, [word]))
            try await gets(.malformedArgument(shown, 0, "it is not there"), forgedCall(greet, []))
            try await gets(.malformedCall("\(shown) has 0 generic parameters"), forgedCall(greet, generic: ["Si"], [word]))
            let unread = try await refusal(of: forgedCall(greet, [[5]]), by: id)
            guard case .malformedArgument(shown, 0, _) = unread else { throw try #require(unread) }
            let gone = try await refusal(of: forgedCall(actor: 9, greet, [word]), by: id)
            guard case .gone(let missing) = gone else { throw try #require(gone) }
            #expect(missing.number == 9)
        }
    }

    @Test func `cannot name a function of another type, or one that is not distributed`() async throws {
        try await withTwo { _, there, name in
            let id = try await there.host(name) { Host(actorSystem: there) }.id
            let module = "$s27CoreRunLoopDistributedTests"
            let targets = [
                "\(module)4SafeC4openSiyYaKFTE", "\(module)4SafeC5InnerC4openSiyYaKFTE", "\(module)9$ListenerC4hearyySSYaKFTE",
                "\(module)4HostC5greetyS2SF", "\(module)4HostC7nothingyyYaKFTE", "$sSi", "", "greet", "\(module)4HostC",
                String(repeating: "Sa", count: 500),
            ]
            for target in targets {
                let error = try await refusal(of: forgedCall(target, [[0xA1, 0x61]]), by: id)
                #expect(error == .unknownTarget(target))
            }
            let long = String(repeating: "x", count: 2000)
            #expect(try await refusal(of: forgedCall(long), by: id) == .malformedCall("the function's name is too long"))
            // The same names are right for actors of these types.
            let inner = try await there.host(name, as: Safe.self) { Safe(actorSystem: there) }.id
            #expect(try await refusal(of: forgedCall(targets[0]), by: inner) == nil)
        }
    }

    @Test func `gets a reply and harms nobody, whatever its bytes`() async throws {
        try await withTwo { here, there, name in
            let id = try await there.host(name) { Host(actorSystem: there) }.id
            let weigh = "$s27CoreRunLoopDistributedTests4HostC5weighySiSayAA6ParcelVGYaKFTE"
            let argument: [UInt8] = [
                0x89, 0x8A, 0xA5, 0x6C, 0x61, 0x62, 0x65, 0x6C, 0xA0, 0xA6, 0x77, 0x65, 0x69, 0x67, 0x68, 0x74, 1, 0x8B, 0x8B,
            ]
            let right = forgedCall(weigh, [argument])
            #expect(try await refusal(of: right, by: id) == nil)
            let seed = UInt64.random(in: 0 ... .max)
            var random = SeededGenerator(seed)
            var refused = 0
            for _ in 0..<1000 {
                if try await refusal(of: mutated(right, &random), by: id) != nil { refused += 1 }
            }
            print("calls: seed \(seed), \(refused) of 1000 mutations are refused")
            #expect(refused > 0, "seed \(seed)")
            #expect(try await here.actor(name, as: Host.self).greet("you") == "hello, you")
        }
    }
}
