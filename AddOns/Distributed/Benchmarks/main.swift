// SPDX-License-Identifier: Apache-2.0
//
// What a distributed call between processes costs, beside the request of a message port under it: `bench-distributed [CALLS]`.
//
// This process starts a second one, which hosts an actor and a port that echoes. The ways take turns in each round, and the table has the
// medians of the rounds. Processor time and allocations are those of the calling process, of all its threads.

import Allocations
import CoreRunLoop
import CoreRunLoopDistributed
import Distributed

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Resolvable
protocol Echo: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func echo(_ bytes: [UInt8]) async throws -> [UInt8]
    distributed func add(_ one: Int, _ other: Int) async throws -> Int
    distributed func numbers(_ count: Int) async throws -> ActorStream<Int>
}

distributed actor Echoer: Echo {
    typealias ActorSystem = MessagePortActorSystem
    distributed func echo(_ bytes: [UInt8]) -> [UInt8] { bytes }
    distributed func add(_ one: Int, _ other: Int) -> Int { one + other }
    distributed func numbers(_ count: Int) -> ActorStream<Int> {
        ActorStream(AsyncStream(unfolding: Counter(count).next))
    }
}

final class Counter: @unchecked Sendable {
    private var left: Int
    init(_ count: Int) { left = count }
    @Sendable func next() async -> Int? {
        left -= 1
        return left < 0 ? nil : left
    }
}

func serve(_ name: String) async throws {
    let parent = getppid()
    let system = try MessagePortActorSystem()
    let port = try MessagePort(name: name)
    port.handle(.bytes(number: 1)) { $0 }
    port.handle(.bytes(number: 2), concurrently: 256) { bytes async in bytes }
    system.runLoop.add(port, forMode: .common)
    try await system.host(name) { Echoer(actorSystem: system) }
    try await system.host(name, as: $Echo.self) { Echoer(actorSystem: system) }
    while getppid() == parent { try await Task.sleep(for: .milliseconds(100)) }
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
func text(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }

func start(_ name: String) -> pid_t {
    var pid: pid_t = 0
    let words = (["bench-distributed", "serve", name] as [String]).map { strdup($0) } + [nil]
    guard posix_spawn(&pid, "/proc/self/exe", nil, nil, words, environ) == 0 else { fatalError("a process cannot be started") }
    return pid
}

func waitFor<Value>(_ body: () throws -> Value) async -> Value {
    while true {
        if let value = try? body() { return value }
        try? await Task.sleep(for: .milliseconds(5))
    }
}

func measure(_ calls: Int) async throws {
    let name = "bench.\(getpid())"
    let child = start(name)
    defer { kill(child, SIGKILL) }
    let system = try MessagePortActorSystem()
    let echo = await waitFor { try system.actor(name, as: $Echo.self) }
    let echoer = await waitFor { try system.actor(name, as: Echoer.self) }
    let port = try MessagePort(remote: name)
    let bytes = [UInt8](repeating: 7, count: 64)
    let ways: [(name: String, call: @Sendable () async throws -> Void)] = [
        ("request of 64 bytes, answered on the loop", { _ = try await port.requestBytes(number: 1, bytes) }),
        ("request of 64 bytes, answered in a task", { _ = try await port.requestBytes(number: 2, bytes) }),
        ("distributed call with 64 bytes", { _ = try await echoer.echo(bytes) }),
        ("the same by a protocol", { _ = try await echo.echo(bytes) }),
        ("distributed call with two integers", { _ = try await echoer.add(2, 3) }),
    ]
    var times = [[Double]](repeating: [], count: ways.count)
    var processor = times
    var allocations = [Double](repeating: 0, count: ways.count)
    let clock = ContinuousClock()
    for round in 0..<8 {
        for (index, way) in ways.enumerated() {
            let (before, start) = (allocations_so_far(), process_time_ns())
            let time = try await clock.measure { for _ in 0..<calls { try await way.call() } }
            let used = Double(process_time_ns() - start) / 1000
            if round == 0 { continue }  // to warm up
            processor[index].append(used / Double(calls))
            allocations[index] = Double(allocations_so_far() - before) / Double(calls)
            times[index].append(Double(time.components.seconds) * 1e6 + Double(time.components.attoseconds) * 1e-12)
        }
    }
    let columns = [
        "one after the other, between two processes", "µs", "more than a request in a task", "the caller's processor, µs",
        "its allocations",
    ]
    print("| " + columns.joined(separator: " | ") + " |\n|---|--:|--:|--:|--:|")
    let base = median(times[1]) / Double(calls)
    for (index, way) in ways.enumerated() {
        let time = median(times[index]) / Double(calls)
        let figures = [text(time), index > 1 ? text(time - base) : "", text(median(processor[index])), text(allocations[index])]
        print("| \(way.name) | \(figures.joined(separator: " | ")) |")
    }
    let count = 200_000
    var sum = 0
    let time = try await clock.measure { for try await number in try await echoer.numbers(count) { sum += number } }
    if sum != count * (count - 1) / 2 { fatalError("elements were lost") }
    print("\na stream of integers: \(text(Double(count) / (time / .seconds(1)) / 1000)) thousand a second")
}

if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "serve" {
    try await serve(CommandLine.arguments[2])
} else {
    try await measure(CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 3000)
}
