// SPDX-License-Identifier: Apache-2.0
//
// What the overlay costs beside the C calls under it, and what a hop to a loop's executor costs beside others: `make bench-swift`.
// Rounds of the cases are interleaved and the medians printed. Callbacks are measured in the thread's own processor time, requests to
// another thread in the process's, hops on the wall. Allocations are those of the overlay beyond those of the C calls.
//
// `bench-swift source callback 1000` does nothing but one case in one way, as often as said: for tools that count instructions.

import Allocations
import CoreRunLoop
import Dispatch

final class Counter: @unchecked Sendable { var value = 0 }  // one thread's

let rounds = 181  // short ones: what else the machine does then meets all the ways alike
let roundsOfHops = 9
let loop = RunLoop.current
let cLoop = loop.getCFRunLoop()
let counter = Counter()
let info = Unmanaged.passUnretained(counter).toOpaque()

/// One operation, the same for the C interface and for the overlay.
struct Case {
    let word: String
    let name: String
    var iterations = 1000
    var clock: () -> UInt = { thread_time_ns() }
    let cWay: () -> Void
    let overlaysCallback: () -> Void
    let overlay: () -> Void
}

// MARK: The cases

var sourceContext = CFRunLoopSourceContext()
sourceContext.info = info
sourceContext.perform = { info in Unmanaged<Counter>.fromOpaque(info!).takeUnretainedValue().value += 1 }
let cSource: CFRunLoopSource = CFRunLoopSourceCreate(nil, 0, &sourceContext)
let source = InputSource<Void> { _ in counter.value += 1 }
var timerContext = CFRunLoopTimerContext()
timerContext.info = info
let cTimer: CFRunLoopTimer = CFRunLoopTimerCreate(
    nil, 1e10, 1e9, 0, 0, { _, info in Unmanaged<Counter>.fromOpaque(info!).takeUnretainedValue().value += 1 }, &timerContext)
let timer = Timer(fire: .distantFuture, interval: .seconds(1_000_000_000), repeats: true) { _ in counter.value += 1 }
var observerContext = CFRunLoopObserverContext()
observerContext.info = info
let cObserver: CFRunLoopObserver = CFRunLoopObserverCreate(
    nil, CFRunLoopActivity.beforeTimers.rawValue, true, 0,
    { _, _, info in Unmanaged<Counter>.fromOpaque(info!).takeUnretainedValue().value += 1 }, &observerContext)
let observer = RunLoop.Observer(activities: .beforeTimers) { _, _ in counter.value += 1 }

/// A message port in C and one of the overlay, both of which answer with what they got, and what sends to them.
struct EchoPorts {
    let cPort: CFMessagePort
    let port: MessagePort
    let cRemote: CFMessagePort
    let cRemoteOfPort: CFMessagePort
    let remote: MessagePort

    init(_ name: String) throws {
        cPort = echo_port_create(text(name + ".c"))!
        port = try MessagePort(name: name)
        port.onRequestBytes = { _, request, reply in reply.set(request) }
        cRemote = CFMessagePortCreateRemote(nil, text(name + ".c"))!
        cRemoteOfPort = CFMessagePortCreateRemote(nil, text(name))!
        remote = try MessagePort(remote: name)
    }

    func add(to loop: RunLoop, _ cMode: RunLoop.Mode, _ mode: RunLoop.Mode) {
        CFRunLoopAddSource(loop.getCFRunLoop(), CFMessagePortCreateRunLoopSource(nil, cPort, 0), cMode.name)
        loop.add(port, forMode: mode)
    }
}

func text(_ string: String) -> CFString { CFStringCreateWithCString(nil, string, CFStringBuiltInEncodings.UTF8.rawValue)! }

let message = [UInt8](repeating: 7, count: 64)
let prefix = "corerunloop.bench.\(UInt64.random(in: 0 ... .max))"
let ownPorts = try EchoPorts(prefix + ".own")
let otherPorts = try EchoPorts(prefix + ".other")
let stopOther = RunLoop.StopToken()
let otherLoop = try Thread.runningLoop(name: "bench-echo", until: stopOther)

// Each item in a mode of its own.
let modes = (
    cSource: RunLoop.Mode("C source"), source: RunLoop.Mode("source"), cTimer: RunLoop.Mode("C timer"),
    timer: RunLoop.Mode("timer"), cObserver: RunLoop.Mode("C observer"), observer: RunLoop.Mode("observer"),
    cPort: RunLoop.Mode("C port"), port: RunLoop.Mode("port"), post: RunLoop.Mode("post")
)
ownPorts.add(to: loop, modes.cPort, modes.port)
otherPorts.add(to: otherLoop, .default, .default)
CFRunLoopAddSource(cLoop, cSource, modes.cSource.name)
loop.add(source, forMode: modes.source)
CFRunLoopAddTimer(cLoop, cTimer, modes.cTimer.name)
loop.add(timer, forMode: modes.timer)
CFRunLoopAddObserver(cLoop, cObserver, modes.cObserver.name)
loop.add(observer, forMode: modes.observer)
loop.addCommonMode(modes.post)
// An observer alone does not keep a mode from being empty.
for mode in [modes.cObserver, modes.observer] { loop.add(InputSource<Void> { _ in }, forMode: mode) }

/// No actor's, unlike a closure here.
let countOne: @Sendable () -> Void = { [counter] in counter.value += 1 }
func anyObject(_ string: CFString) -> CFTypeRef { unsafeBitCast(string, to: CFTypeRef.self) }
func run(_ mode: RunLoop.Mode) { _ = CFRunLoopRunInMode(mode.name, 0, true) }
func overlayRun(_ mode: RunLoop.Mode) { _ = loop.run(in: mode, for: .zero, returnAfterSourceHandled: true) }

let cases = [
    Case(
        word: "source",
        name: "a signalled source, and the poll that performs it",
        cWay: {
            CFRunLoopSourceSignal(cSource)
            run(modes.cSource)
        },
        overlaysCallback: {
            CFRunLoopSourceSignal(source.cfRunLoopSource)
            run(modes.source)
        },
        overlay: {
            source.signalWithoutWaking()
            overlayRun(modes.source)
        }),
    Case(
        word: "timer",
        name: "a timer that is due, and the poll that fires it",
        cWay: {
            CFRunLoopTimerSetNextFireDate(cTimer, 0)
            run(modes.cTimer)
        },
        overlaysCallback: {
            CFRunLoopTimerSetNextFireDate(timer.cfRunLoopTimer, 0)
            run(modes.timer)
        },
        overlay: {
            timer.fireDate = WallTime(timeIntervalSinceReferenceDate: 0)
            overlayRun(modes.timer)
        }),
    Case(
        word: "post",
        name: "a function or a closure queued, and the poll that calls it",
        cWay: {
            CRLRunLoopPerformFunction(
                cLoop, anyObject(kCFRunLoopCommonModes),
                { info in Unmanaged<Counter>.fromOpaque(info!).takeUnretainedValue().value += 1 }, info, nil)
            CFRunLoopWakeUp(cLoop)
            run(modes.post)
        },
        overlaysCallback: {
            loop.perform(countOne)
            run(modes.post)
        },
        overlay: {
            loop.perform(countOne)
            overlayRun(modes.post)
        }),
    Case(
        word: "observer",
        name: "an observer, and the poll that calls it",
        cWay: { run(modes.cObserver) },
        overlaysCallback: { run(modes.observer) },
        overlay: { overlayRun(modes.observer) }),
    Case(
        word: "message",
        name: "a message of 64 bytes to the loop's own port, and the poll that receives it",
        cWay: {
            check(echo_port_request(ownPorts.cRemote, message, message.count, false))
            run(modes.cPort)
        },
        overlaysCallback: {
            check(echo_port_request(ownPorts.cRemoteOfPort, message, message.count, false))
            run(modes.port)
        },
        overlay: {
            try! ownPorts.remote.sendAndWait(number: 1, message.span.bytes)
            overlayRun(modes.port)
        }),
    Case(
        word: "request",
        name: "a request of 64 bytes to another thread, and the answer", iterations: 150, clock: { process_time_ns() },
        cWay: { check(echo_port_request(otherPorts.cRemote, message, message.count, true)) },
        overlaysCallback: { check(echo_port_request(otherPorts.cRemoteOfPort, message, message.count, true)) },
        overlay: { check(try! otherPorts.remote.requestAndWait(number: 1, message.span.bytes) { $0.byteCount } == message.count) }),
]

func check(_ went: Bool) { if !went { fatalError("a message was not answered") } }

// MARK: Measuring

/// Nanoseconds and allocations of one call.
func measure(_ iterations: Int, _ clock: () -> UInt, _ body: @escaping () -> Void) -> (time: Double, allocations: Double) {
    let (start, before) = (clock(), allocations_so_far())
    for _ in 0..<iterations { body() }
    let (end, after) = (clock(), allocations_so_far())
    return (Double(end - start) / Double(iterations), Double(after - before) / Double(iterations))
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
func text(_ value: Double, _ digits: Int = 1) -> String {
    let scale = (0..<digits).reduce(1.0) { scale, _ in scale * 10 }
    return "\((value * scale).rounded() / scale)"
}

func measureCallbacks() {
    print("| operation | C | the overlay's callback | overhead | through the overlay | overhead | allocations |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for one in cases {
        let ways: [() -> Void] = [one.cWay, one.overlaysCallback, one.overlay]
        var times: [[Double]] = [[], [], []]
        var allocations: [Double] = [0, 0, 0]
        for way in ways { _ = measure(1000, one.clock, way) }
        for round in 0..<rounds {
            for index in 0..<3 {
                let way = (index + round) % 3
                let (time, count) = measure(one.iterations, one.clock, ways[way])
                times[way].append(time)
                allocations[way] = count
            }
        }
        let (c, callback, overlay) = (median(times[0]), median(times[1]), median(times[2]))
        print(
            "| \(one.name) | \(text(c)) ns | \(text(callback)) ns | \(text(callback - c)) ns "
                + "| \(text(overlay)) ns | \(text(overlay - c)) ns | \(text(allocations[2] - allocations[0], 3)) |"
        )
    }
}

// MARK: Objects

/// Allocations of an object that is made and freed, those of the C objects included.
func countObjects() {
    let ways: [(name: String, make: () -> Void)] = [
        ("a timer", { _ = Timer(timeInterval: .seconds(1), repeats: true) { _ in } }),
        ("an input source", { InputSource<Int> { _ in }.invalidate() }),
        ("a thread that is not started", { _ = Thread {} }),
        ("a Mach port", { MachPort().invalidate() }),
        ("a local message port", { try! MessagePort(name: nil).invalidate() }),
        ("a remote message port", { _ = try! MessagePort(remote: prefix + ".own") }),
    ]
    print("\n| made and freed | allocations |\n|---|--:|")
    for way in ways {
        _ = measure(10, thread_time_ns, way.make)
        print("| \(way.name) | \(text(measure(100, thread_time_ns, way.make).allocations)) |")
    }
}

// MARK: Posts

/// Counts what a loop or a queue has done of `expected`, on its thread, and says when that is all.
final class Tally: @unchecked Sendable {
    let expected: Int
    private(set) var done = 0
    let isComplete = DispatchSemaphore(value: 0)
    init(_ expected: Int) { self.expected = expected }

    func add() {
        done += 1
        if done == expected { isComplete.signal() }
    }
}

/// Processor time, of all threads, of one post among many without pause.
func measurePosts() throws {
    let count = 100_000
    let stop = RunLoop.StopToken()
    let other = try Thread.runningLoop(name: "bench, posts", until: stop)
    let thread = try other.performAndWait { Thread.current }
    let cOther = other.getCFRunLoop()
    let queue = DispatchQueue(label: "bench")
    let ways: [(name: String, post: (Tally) -> Void)] = [
        ("a loop, by C", { tally in
            CRLRunLoopPerformFunction(
                cOther, anyObject(kCFRunLoopCommonModes), { info in Unmanaged<Tally>.fromOpaque(info!).takeUnretainedValue().add() },
                Unmanaged.passUnretained(tally).toOpaque(), nil)
            CFRunLoopWakeUp(cOther)
        }),
        ("a loop", { tally in other.perform { tally.add() } }),
        ("a thread, as an input source", { tally in thread.perform { tally.add() } }),
        ("a dispatch queue", { tally in queue.async { tally.add() } }),
    ]
    var times = [[Double]](repeating: [], count: ways.count)
    for _ in 0..<roundsOfHops {
        for (index, way) in ways.enumerated() {
            let tally = Tally(count)
            let start = process_time_ns()
            for _ in 0..<count { way.post(tally) }
            tally.isComplete.wait()
            times[index].append(Double(process_time_ns() - start) / Double(count))
        }
    }
    print("\n| a closure posted without pause to | both threads |\n|---|--:|")
    for (index, way) in ways.enumerated() { print("| \(way.name) | \(text(median(times[index]))) ns |") }
    stop.requestStop()
}

// MARK: Hops

final class QueueExecutor: SerialExecutor {
    let queue = DispatchQueue(label: "bench")
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

actor OnLoop: RunLoopActor {
    nonisolated let runLoop: RunLoop
    var value = 0
    init(_ runLoop: RunLoop) { self.runLoop = runLoop }
    func next() { value += 1 }
    func many(_ iterations: Int) async { for _ in 0..<iterations { next() } }
}

actor OnQueue {
    let executor = QueueExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    var value = 0
    func next() { value += 1 }
}

actor OnPool {
    var value = 0
    func next() { value += 1 }
}

func hop(_ iterations: Int, _ body: () async -> Void) async -> (time: Double, allocations: Double) {
    let clock = ContinuousClock()
    let before = allocations_so_far()
    let time = await clock.measure { for _ in 0..<iterations { await body() } }
    let allocations = allocations_so_far() - before
    return (Double(time.components.seconds) * 1e9 + Double(time.components.attoseconds) * 1e-9, Double(allocations))
}

func measureHops() async throws {
    let stop = RunLoop.StopToken()
    let other = try Thread.runningLoop(name: "bench", until: stop)
    let awake = try Thread.runningLoop(name: "bench, awake", until: stop)
    awake.busyWait = .microseconds(100)
    let asleep = try Thread.runningLoop(name: "bench, asleep", until: stop)
    asleep.busyWait = .zero
    let (onLoop, onAwake, onAsleep, onQueue, onPool) = (OnLoop(other), OnLoop(awake), OnLoop(asleep), OnQueue(), OnPool())
    let sibling = OnLoop(other)
    let ways: [(name: String, iterations: Int, body: @Sendable (Int) async -> (time: Double, allocations: Double))] = [
        ("a loop's actor", 1000, { count in await hop(count) { await onLoop.next() } }),
        ("an actor of a loop that always waits awake", 1000, { count in await hop(count) { await onAwake.next() } }),
        ("an actor of a loop that never does", 1000, { count in await hop(count) { await onAsleep.next() } }),
        ("an actor on a dispatch queue", 1000, { count in await hop(count) { await onQueue.next() } }),
        ("an actor of the default executor", 1000, { count in await hop(count) { await onPool.next() } }),
        (
            "a loop's actor, from a task that prefers the loop", 10_000,
            { count in
                await Task(executorPreference: other) { await hop(count) { await sibling.next() } }.value
            }
        ),
    ]
    print("\n| to this and back | on the wall | allocations |\n|---|--:|--:|")
    var times = [[Double]](repeating: [], count: ways.count)
    var allocations = [Double](repeating: 0, count: ways.count)
    for (name, _, body) in ways where !name.isEmpty { _ = await body(100) }
    for _ in 0..<roundsOfHops {
        for (index, way) in ways.enumerated() {
            let (time, count) = await way.body(way.iterations)
            times[index].append(time / Double(way.iterations))
            allocations[index] = count / Double(way.iterations)
        }
    }
    for (index, way) in ways.enumerated() { print("| \(way.name) | \(text(median(times[index]))) ns | \(text(allocations[index], 2)) |") }
    stop.requestStop()
}

// MARK: Crowds

/// Processor time, of all threads, of one of 1,000 tasks that hop once each.
func measureCrowds() async throws {
    let stop = RunLoop.StopToken()
    let asleep = try Thread.runningLoop(name: "bench, asleep", until: stop)
    asleep.busyWait = .zero
    let onLoop = OnLoop(try Thread.runningLoop(name: "bench", until: stop))
    let (onAsleep, onQueue, onPool) = (OnLoop(asleep), OnQueue(), OnPool())
    let own: [(name: String, hop: @Sendable () async -> Void)] = [
        ("a loop's actor", { await onLoop.next() }),
        ("an actor of a loop that never waits awake", { await onAsleep.next() }),
        ("an actor on a dispatch queue", { await onQueue.next() }),
        ("an actor of the default executor", { await onPool.next() }),
    ]
    let ways = own + crowdsOfNIO
    var times = [[Double]](repeating: [], count: ways.count)
    for _ in 0..<roundsOfHops {
        for (index, way) in ways.enumerated() {
            let start = process_time_ns()
            for _ in 0..<20 { await withTaskGroup { group in for _ in 0..<1000 { group.addTask { await way.hop() } } } }
            times[index].append(Double(process_time_ns() - start) / 20_000)
        }
    }
    print("\n| 1,000 tasks hop once each to | a task's processor time |\n|---|--:|")
    for (index, way) in ways.enumerated() { print("| \(way.name) | \(text(median(times[index]))) ns |") }
    stop.requestStop()
}

/// What the arguments say, if there are any.
func runOneCase() throws -> Bool {
    let words = CommandLine.arguments.dropFirst()
    if words.isEmpty { return false }
    if try runStreams(Array(words)) { return true }
    if words.first == "crowds" {
        try RunLoop.runMain { try await Task.detached { try await measureCrowds() }.value }
        return true
    }
    let ways: [String: KeyPath<Case, () -> Void>] = ["c": \.cWay, "callback": \.overlaysCallback, "overlay": \.overlay]
    guard words.count == 3, let one = cases.first(where: { $0.word == words[1] }), let way = ways[words[2]], let count = Int(words[3])
    else { fatalError("usage: bench-swift [\(cases.map(\.word).joined(separator: "|")) c|callback|overlay count]") }
    let body = one[keyPath: way]
    for _ in 0..<count { body() }
    return true
}

if try !runOneCase() {
    measureCallbacks()
    countObjects()
    stopOther.requestStop()
    try measurePosts()
    try RunLoop.runMain {
        try await Task.detached {
            try await measureHops()
            try await measureCrowds()
        }.value
    }
    try measureStreams()
}
