// SPDX-License-Identifier: Apache-2.0
//
// The actors of the tests, and systems for them.

import CoreRunLoop
import CoreRunLoopDistributed
import Distributed

struct Refusal: Error, Codable, Hashable { let reason: String }
struct Unlisted: Error, Codable { let number: Int }
struct Shy: Error, CustomStringConvertible { let description = "not for others" }
struct Parcel: Codable, Hashable, Sendable {
    var label: String
    var weight: Int
}

@Resolvable
protocol Greeter: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func greet(_ name: String) async throws -> String
    distributed func refuse(_ reason: String) async throws
    distributed func echo<Value: Codable & Sendable>(_ value: Value) async throws -> Value
}

@Resolvable
protocol Listener: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func hear(_ text: String) async throws
}

distributed actor Host: Greeter {
    typealias ActorSystem = MessagePortActorSystem
    private var greeted = 0
    private var cancelled = 0
    private var sleeping = 0

    distributed func greet(_ name: String) -> String {
        greeted += 1
        return "hello, \(name)"
    }
    distributed func refuse(_ reason: String) throws { throw Refusal(reason: reason) }
    distributed func beShy() throws { throw Shy() }
    distributed func beUnlisted() throws { throw Unlisted(number: 3) }
    distributed func echo<Value: Codable & Sendable>(_ value: Value) -> Value { value }
    distributed func weigh(_ parcels: [Parcel]) -> Int { parcels.reduce(0) { $0 + $1.weight } }
    distributed func tell(_ listener: $Listener, _ text: String) async throws { try await listener.hear(text) }
    distributed func greetedBy(_ other: Host) async throws -> String { try await other.greet("a friend") }
    distributed func sleep() async throws {
        sleeping += 1
        defer { sleeping -= 1 }
        do { try await Task.sleep(for: .seconds(100_000)) } catch {
            cancelled += 1
            throw error
        }
    }
    distributed func secondsLeft() async -> Int {
        MessagePort.requestDeadline.map { Int(SuspendingClock.now.duration(to: $0).components.seconds) } ?? -1
    }
    distributed func secondsLeft(at other: Host) async throws -> Int { try await other.secondsLeft() }
    distributed var count: Int { greeted }
    distributed var sleepers: [Int] { [sleeping, cancelled] }
}

/// Whose functions nobody may call on a Host.
distributed actor Safe {
    typealias ActorSystem = MessagePortActorSystem
    private let secret = 4711
    distributed func open() -> Int { secret }
    distributed actor Inner {
        typealias ActorSystem = MessagePortActorSystem
        distributed func open() -> Int { 1 }
    }
}

distributed actor Ear: Listener {
    typealias ActorSystem = MessagePortActorSystem
    private let heard: AsyncStream<String>.Continuation
    init(_ heard: AsyncStream<String>.Continuation, actorSystem: MessagePortActorSystem) {
        self.heard = heard
        self.actorSystem = actorSystem
    }
    distributed func hear(_ text: String) { heard.yield(text) }
}

/// Two systems, as two processes have them, and a name that nobody else has. Tests that take long may keep all threads of the pool busy.
func withTwo(_ body: (_ here: MessagePortActorSystem, _ there: MessagePortActorSystem, _ name: String) async throws -> Void) async throws {
    let here = try MessagePortActorSystem(timeLimit: .seconds(600))
    let there = try MessagePortActorSystem(timeLimit: .seconds(600))
    defer {
        here.close()
        there.close()
    }
    try await body(here, there, "test.\(UInt64.random(in: 0 ... .max))")
}

func eventually(_ isTrue: () async throws -> Bool) async throws {
    while try await !isTrue() { try await Task.sleep(for: .milliseconds(1)) }
}

/// The bytes of a call, as CallFrame.swift describes them.
func forgedCall(
    version: UInt8 = 1, coding: String = "compact", actor: UInt8 = 0, _ target: String, generic: [String] = [], _ arguments: [[UInt8]] = []
) -> [UInt8] {
    func text(_ text: String) -> [UInt8] { [0x87, UInt8(text.utf8.count & 0x7F) | 0x80, UInt8(text.utf8.count >> 7)] + Array(text.utf8) }
    let head = [version] + text(coding) + [actor] + text(target) + [UInt8(generic.count)] + generic.flatMap(text)
    return head + [UInt8(arguments.count)] + arguments.flatMap { [UInt8($0.count), 0, 0, 0] + $0 }
}

/// The error in the reply to bytes that were sent to an actor's port as a call.
func refusal(of bytes: [UInt8], by id: MessagePortActorID) async throws -> MessagePortActorError? {
    let reply = try await MessagePort(remote: id.port).requestBytes(number: 0x4441_0001, bytes)
    return reply.first == 3 ? try CompactCoding().decode(MessagePortActorError.self, from: reply.dropFirst()) : nil
}
