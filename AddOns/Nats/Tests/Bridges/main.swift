// SPDX-License-Identifier: Apache-2.0
//
// Bridges in Swift, with a server on loopback. Another process is another machine: it has a directory of names of its own, and hosts a
// distributed actor there, which this process calls by its name and protocol, as if it were here.

import CoreRunLoop
import CoreRunLoopDistributed
import CoreRunLoopNats
import Distributed
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Resolvable
protocol Adder: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func add(_ one: Int, _ other: Int) async throws -> Int
    distributed func process() async throws -> Int32
    distributed func numbers() async throws -> ActorStream<Int>
}

distributed actor SimpleAdder: Adder {
    typealias ActorSystem = MessagePortActorSystem
    distributed func add(_ one: Int, _ other: Int) -> Int { one + other }
    distributed func process() -> Int32 { getpid() }
    distributed func numbers() -> ActorStream<Int> {
        ActorStream(
            AsyncStream { continuation in
                for number in 1...1000 { continuation.yield(number) }
                continuation.finish()
            })
    }
}

/// What a task leaves for the main thread.
private final class Result<Value: Sendable>: Sendable {
    private let state = Mutex<Value?>(nil)
    var value: Value? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

// MARK: What is tested

private func testErrors(_ url: String) throws {
    do {
        var configuration = NatsBridge.Configuration(servers: [url])
        configuration.key = "no certificate"
        _ = try NatsBridge(configuration)
        fail("a key without a certificate makes a bridge")
    } catch NatsBridgeError.invalidConfiguration {}
    var events: [NatsBridge.Event] = []
    let bridge = try NatsBridge(.init(servers: [url])) { events.append($0) }
    for name in ["", String(repeating: "x", count: 129), "zero\0"] {
        do {
            try bridge.export(name)
            fail("'\(name)' is exported")
        } catch NatsBridgeError.invalidName(let reason) { expect(reason.contains(name), "no name in: \(reason)") }
    }
    try bridge.import("twice", from: "there")
    do {
        try bridge.import("other", as: "twice@there")
        fail("two imports have one local name")
    } catch NatsBridgeError.invalidName(let reason) { expect(reason.contains("twice@there"), "no name in: \(reason)") }
    expect(events.isEmpty, "what was thrown was told as well: \(events)")
    bridge.invalidate()
    do {
        try bridge.export("late")
        fail("a bridge that has ended exports")
    } catch NatsBridgeError.invalidated {}
    bridge.invalidate()
}

/// A handler may end the bridge, and a task hears of all events until then.
private func testEvents(_ url: String) throws {
    final class Holder { var bridge: NatsBridge? }
    let holder = Holder()
    var events: [NatsBridge.Event] = []
    let bridge = try NatsBridge(.init(servers: [url])) { event in
        events.append(event)
        holder.bridge?.invalidate()
        holder.bridge = nil
    }
    holder.bridge = bridge
    let stream = bridge.events()
    let heard = Result<[NatsBridge.Event]>()
    Task {
        var all: [NatsBridge.Event] = []
        for await event in stream { all.append(event) }
        heard.value = all
    }
    run { heard.value != nil }
    withExtendedLifetime(bridge) {}
    expect(events.map(\.kind) == [.connected] && events[0].name == nil, "there were other events: \(events)")
    expect(heard.value == events, "the task heard of others")
}

/// Calls an actor of the machine "there". Its own process knows nothing of this one.
private func testActor(_ place: Place) throws {
    place.become("there")
    guard let there = start("/proc/self/exe", ["host", place.url]) else { fail("a process cannot be started") }
    place.become("here")
    var events: [NatsBridge.Event] = []
    var configuration = NatsBridge.Configuration(servers: [place.url])
    configuration.machine = "here"
    let bridge = try NatsBridge(configuration) { events.append($0) }
    try bridge.import(port)
    run { events.contains { $0.kind == .nameAppeared } }
    expect(events.last?.name == port, "another name has appeared: \(events)")
    let results = Result<[Int]>()
    Task {
        do {
            let adder = try MessagePortActorSystem().actor("hall", as: $Adder.self)
            var all = [Int(try await adder.process())]
            for number in 0..<100 { all.append(try await adder.add(number, 1)) }
            for try await number in try await adder.numbers() { all.append(number) }
            results.value = all
        } catch { fail("the call has failed: \(error)") }
    }
    run { results.value != nil }
    expect(results.value == [Int(there)] + (1...100) + (1...1000), "a call has another result")
    end(there)
    run { events.contains { $0.kind == .nameVanished } }
    bridge.invalidate()
}

// MARK: The program

/// The machine "there": it hosts the actor, and exports its port.
private func host(_ url: String) throws {
    let parent = getppid()
    let system = try MessagePortActorSystem()
    var configuration = NatsBridge.Configuration(servers: [url])
    configuration.machine = "there"
    let bridge = try NatsBridge(configuration)
    try bridge.export(port)
    Task {
        do { try await system.host("hall", as: $Adder.self) { SimpleAdder(actorSystem: system) } } catch { fail("no actor: \(error)") }
    }
    run { getppid() != parent }
}

if CommandLine.arguments.count > 1 {
    try host(CommandLine.arguments[2])
} else {
    let place = Place()
    try testErrors(place.url)
    try testEvents(place.url)
    try testActor(place)
    place.remove()
    print("bridges: an actor of another machine was called")
}
