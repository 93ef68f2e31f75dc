// SPDX-License-Identifier: Apache-2.0
//
// What a distributed call between processes costs, beside the request of a message port under it: `bench-distributed [CALLS [ROW]]`.
//
// This process starts a second one, which hosts an actor and ports that echo. The ways take turns in each round, and the table has the
// medians of the rounds. Processor time is that of all threads; allocations are the calling process's.

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
    let cPort = echo_port_create(text(name + ".c"))!
    CFRunLoopAddSource(system.runLoop.getCFRunLoop(), CFMessagePortCreateRunLoopSource(nil, cPort, 0), RunLoop.Mode.default.name)
    try await system.host(name) { Echoer(actorSystem: system) }
    try await system.host(name, as: $Echo.self) { Echoer(actorSystem: system) }
    while getppid() == parent { try await Task.sleep(for: .milliseconds(100)) }
}

func text(_ string: String) -> CFString { CFStringCreateWithCString(nil, string, CFStringBuiltInEncodings.UTF8.rawValue)! }

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

/// What is measured: `tasks` tasks, each of which makes one call after the other.
struct Way: @unchecked Sendable {
    let name: String
    let tasks: Int
    let call: () async throws -> Void

    init(_ name: String, _ tasks: Int, _ call: @escaping () async throws -> Void) {
        (self.name, self.tasks, self.call) = (name, tasks, call)
    }

    func run(_ calls: Int) async throws {
        if tasks == 1 {
            for _ in 0..<calls { try await call() }
            return
        }
        try await withThrowingTaskGroup { group in
            for _ in 0..<tasks { group.addTask { for _ in 0..<calls / tasks { try await call() } } }
            try await group.waitForAll()
        }
    }
}

/// Of one call, in microseconds.
struct Measured {
    let wall: Double
    let both: Double
    let caller: Double
    let allocations: Double
}

func processorTime(of process: pid_t) -> Double {
    var id = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(process, &id) == 0, clock_gettime(id, &time) == 0 else { fatalError("the second process has ended") }
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1000
}

/// The rounds of each way.
func rounds(_ ways: [Way], _ calls: Int, _ child: pid_t) async throws -> [[Measured]] {
    var results = [[Measured]](repeating: [], count: ways.count)
    let clock = ContinuousClock()
    for round in 0..<8 {
        for (index, way) in ways.enumerated() {
            let (before, start, childsStart) = (allocations_so_far(), process_time_ns(), processorTime(of: child))
            let wall = try await clock.measure { try await way.run(calls) } / .microseconds(1)
            let caller = Double(process_time_ns() - start) / 1000
            let both = caller + processorTime(of: child) - childsStart
            let allocations = Double(allocations_so_far() - before)
            if round == 0 { continue }  // to warm up
            let count = Double(calls)
            results[index].append(
                Measured(wall: wall / count, both: both / count, caller: caller / count, allocations: allocations / count))
        }
    }
    return results
}

func measure(_ calls: Int, _ row: Int?) async throws {
    let name = "bench.\(getpid())"
    let child = start(name)
    defer { kill(child, SIGKILL) }
    let system = try MessagePortActorSystem()
    let echo = await waitFor { try system.actor(name, as: $Echo.self) }
    let echoer = await waitFor { try system.actor(name, as: Echoer.self) }
    let port = try MessagePort(remote: name)
    let bytes = [UInt8](repeating: 7, count: 64)
    guard let cPort = await waitFor({ CFMessagePortCreateRemote(nil, text(name + ".c")) }) else { fatalError("there is no port in C") }
    let one: [Way] = [
        Way("a request in C, which blocks its thread", 1) {
            if !echo_port_request(cPort, bytes, bytes.count, true) { fatalError("a request was not answered") }
        },
        Way("request of 64 bytes, answered on the loop", 1) { _ = try await port.requestBytes(number: 1, bytes) },
        Way("request of 64 bytes, answered in a task", 1) { _ = try await port.requestBytes(number: 2, bytes) },
        Way("distributed call with 64 bytes", 1) { _ = try await echoer.echo(bytes) },
        Way("the same by a protocol", 1) { _ = try await echo.echo(bytes) },
        Way("distributed call with two integers", 1) { _ = try await echoer.add(2, 3) },
    ]
    let all = one + one[1...3].map { Way("16 at once: \($0.name)", 16, $0.call) }
    let ways = row.map { [all[$0]] } ?? all
    let measured = try await rounds(ways, calls, child)
    let columns = ["between two processes", "µs", "both processors, µs", "of C's", "the caller's, µs", "its allocations"]
    print("| " + columns.joined(separator: " | ") + " |\n|---|--:|--:|--:|--:|--:|")
    let c = median(measured[0].map(\.both))
    for (way, one) in zip(ways, measured) {
        let both = median(one.map(\.both))
        let figures = [median(one.map(\.wall)), both, both / c, median(one.map(\.caller)), one.last!.allocations]
        print("| \(way.name) | \(figures.map(text).joined(separator: " | ")) |")
    }
    if row != nil { return }
    let count = 200_000
    var sum = 0
    let time = try await ContinuousClock().measure { for try await number in try await echoer.numbers(count) { sum += number } }
    if sum != count * (count - 1) / 2 { fatalError("elements were lost") }
    print("\na stream of integers: \(text(Double(count) / (time / .seconds(1)) / 1000)) thousand a second")
}

if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "serve" {
    try await serve(CommandLine.arguments[2])
} else {
    let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
    try await measure(numbers.first ?? 3000, numbers.dropFirst().first)
}
