// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import Synchronization
import Testing
@testable import CoreRunLoopTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite(.serialized, .enabled(if: SeededRuns.clocksAreVirtual)) struct `Races by seed` {
    @Test(arguments: Race.all) func `a seed finds it, and repeats it`(race: Race) async throws {
        let found = try #require(await Seed.firstFailure(among: 1...1000, race.wrong))
        for _ in 0..<10 {
            let again = try #require(await found.seed.failure(of: race.wrong))
            #expect(again.order == found.order && again.description == found.description)
        }
    }

    @Test(arguments: Race.all) func `no seed finds anything in the right one`(race: Race) async {
        let failure = await Seed.firstFailure(among: 1...1000, race.right)
        #expect(failure == nil, "\(race)")
    }
}

/// What happened, in its order.
private final class Log: Sendable {
    private let state = Mutex("")
    var text: String { state.withLock { $0 } }
    func add(_ text: String) { state.withLock { $0 += text } }
}

/// The texts that different seeds give, each of which repeats.
private func texts(of seeds: ClosedRange<Int>, _ body: @escaping @Sendable (Log) async throws -> Void) async throws -> Set<String> {
    var texts: Set<String> = []
    for number in seeds {
        let (first, second) = (Log(), Log())
        try await Seed(number).run { try await body(first) }
        try await Seed(number).run { try await body(second) }
        #expect(first.text == second.text)
        texts.insert(first.text)
    }
    return texts
}

@Suite(.enabled(if: SeededRuns.clocksAreVirtual)) struct `A run by seed` {
    @Test func `draws the order of tasks`() async throws {
        let orders = try await texts(of: 1...60) { log in
            let tasks = ["a", "b", "c"].map { name in Task { log.add(name) } }
            for task in tasks { await task.value }
        }
        #expect(orders.count == 6)
    }

    @Test(.seeds(1...20)) func `takes no time to sleep, by any clock`() async throws {
        let (continuous, suspending, wall) = (ContinuousClock.now, SuspendingClock.now, WallTime.now)
        try await Task.sleep(for: .seconds(3600), tolerance: .seconds(60))
        try await Task.sleep(for: .seconds(3600), clock: .suspending)
        try await Task.sleep(nanoseconds: 3_600_000_000_000)
        try await Task.sleep(for: .seconds(3600), clock: RunLoop.ofTest.clock)
        #expect(continuous.duration(to: .now) == .seconds(4 * 3600))
        #expect(suspending.duration(to: .now) == .seconds(4 * 3600))
        #expect(wall + .seconds(4 * 3600) == .now)
    }

    @Test(.seeds(1...50)) func `ends sleeps in the order of their ends`() async throws {
        let log = Log()
        await withTaskGroup(of: Void.self) { group in
            for number in [3, 1, 2] {
                group.addTask {
                    try? await Task.sleep(for: .seconds(number))
                    log.add("\(number)")
                }
            }
        }
        #expect(log.text == "123")
    }

    @Test func `draws which of two comes first at one time: a sleep or a timer`() async throws {
        let orders = try await texts(of: 1...20) { log in
            let timer = Timer(timeInterval: .seconds(5), repeats: false) { _ in log.add("t") }
            RunLoop.ofTest.add(timer, forMode: .common)
            try await Task.sleep(for: .seconds(5))
            log.add("s")
            try await Task.sleep(for: .seconds(1))
        }
        #expect(orders == ["st", "ts"])
    }

    @Test(.seeds(1...20)) @MainActor func `runs the main actor's jobs in their order, and knows that they are`() async throws {
        let log = Log()
        MainActor.assertIsolated()
        let tasks = (0..<5).map { number in
            Task { @MainActor in
                MainActor.assertIsolated()
                log.add("\(number)")
            }
        }
        for task in tasks { await task.value }
        #expect(log.text == "01234")
        let timer = Timer(timeInterval: .seconds(1), repeats: false) { _ in MainActor.assumeIsolated { log.add("t") } }
        RunLoop.ofTest.add(timer, forMode: .common)
        try await Task.sleep(for: .seconds(2))
        #expect(log.text == "01234t")
    }

    @Test(.seeds(1...20)) func `serves pipes, streams and messages within the process`() async throws {
        let loop = RunLoop.ofTest
        let ends = makePipe()
        let reader = try ByteStream(descriptor: ends.reading, on: loop)
        let writer = try ByteStream(descriptor: ends.writing, on: loop)
        async let lines = reader.lines().reduce(into: []) { $0.append($1) }
        try await Task.sleep(for: .seconds(1))
        writer.send(Array("a\nb\n".utf8)) { _ in writer.close() }
        let read = try await lines
        #expect(read == ["a", "b"])
        let service = try MessagePort(name: nil)
        service.handle(.bytes(number: 1)) { bytes in
            try await Task.sleep(for: .seconds(20))
            return bytes.reversed()
        }
        loop.add(service, forMode: .common)
        let answer = try await service.requestBytes(number: 1, [1, 2, 3])
        #expect(answer == [3, 2, 1])
        service.invalidate()
    }

    @Test func `lets nested runs of the loop take no time`() async throws {
        let orders = try await texts(of: 1...3) { log in
            nestedRun(log)
            log.add(" done")
        }
        #expect(orders == ["..... done"])
    }

    @Test func `tells a deadlock, and leaves its tasks`() async throws {
        let start = ContinuousClock.now
        for _ in 0..<3 {
            let failure = await Seed(7).failure {
                try await Task.sleep(for: .seconds(90))
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
            }
            #expect("\(failure!)".hasPrefix("seed 7: deadlock: after 90.0 seconds of virtual time nothing can run"))
        }
        #expect(start.duration(to: .now) < .seconds(90))
        // Who minds cancellation comes to an end; that it waited is told even so.
        let log = Log()
        let failure = await Seed(8).failure {
            let stream = AsyncStream<Int> { _ in }
            for await _ in stream {}
            log.add("ended")
        }
        #expect("\(failure!)".contains("deadlock") && log.text == "ended")
    }

    @Test func `tells a call that blocks`() async throws {
        let ends = makePipe()
        let failure = await Seed(1).failure(of: { drainPipe(ends.reading) }, .init(blocked: .seconds(1)))
        #expect("\(failure!)".hasPrefix("seed 1: a call has blocked the thread of all its tasks"))
        try await Seed(2).run { await Task.yield() }
        writePipe(ends.writing)
    }

    @Test func `tells tasks that go on for ever`() async throws {
        let failure = await Seed(1).failure(of: { while true { await Task.yield() } }, .init(steps: 50_000))
        #expect("\(failure!)" == "seed 1: there is no end after 50000 steps")
    }

    @Test(.seeds(1...10)) func `lets time pass for tasks that ask again and again`() async throws {
        let isDone = Atomic(false)
        async let sleep: Void = {
            try? await Task.sleep(for: .seconds(1))
            isDone.store(true, ordering: .relaxed)
        }()
        while !isDone.load(ordering: .relaxed) { await Task.yield() }
        await sleep
    }

    @Test(.seeds(1...20)) func `leaves tasks that outlive the body`() async throws {
        Task { while true { try await Task.sleep(for: .seconds(1)) } }
        Task { while true { await Task.yield() } }
    }

    /// What the trait reports of a test that has this body.
    private func issues(of seeds: ClosedRange<Int>, _ body: @Sendable () async throws -> Void) async throws -> String {
        let (test, testCase) = try (#require(Test.current), #require(Test.Case.current))
        let issues = Log()
        let catching = IssueHandlingTrait.compactMapIssues { issue in
            issues.add("\(issue.error.map { "\($0) | " } ?? "")\(issue.comments.map(\.rawValue).joined())\n")
            return nil
        }
        try await catching.provideScope(for: test, testCase: testCase) {
            try await SeededTrait(seeds: seeds).provideScope(for: test, testCase: testCase, performing: body)
        }
        return issues.text
    }

    @Test func `says which seed failed, and stops there`() async throws {
        let runs = Atomic(0)
        let expectation = try await issues(of: 1...100) {
            runs.add(1, ordering: .relaxed)
            #expect(runs.load(ordering: .relaxed) < 3)
        }
        #expect(expectation == "seed 3, which @Test(.seeded(3)) repeats\n" && runs.load(ordering: .relaxed) == 3)
        let error = try await issues(of: 6...9) { throw Broken("broken") }
        #expect(error == "broken | seed 6, which @Test(.seeded(6)) repeats\n")
        let requirement = try await issues(of: 7...9) { try #require(Bool(false)) }
        #expect(requirement == "seed 7, which @Test(.seeded(7)) repeats\n")
        let deadlock = try await issues(of: 5...9) { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
        #expect(deadlock.hasPrefix("seed 5: deadlock: ") && deadlock.hasSuffix("| seed 5, which @Test(.seeded(5)) repeats\n"))
        let none = try await issues(of: 1...3) {}
        #expect(none.isEmpty)
    }

    @Test func `leaves the tasks of other tests alone`() async throws {
        let stop = Atomic(false)
        let other = Task {
            while !stop.load(ordering: .relaxed) {
                await Task { @MainActor in }.value
                try? await Task.sleep(for: .microseconds(100))
            }
        }
        let orders = try await texts(of: 1...100) { log in
            let tasks = (0..<4).map { number in Task { await Task { @MainActor in log.add("\(number)") }.value } }
            for task in tasks { await task.value }
        }
        #expect(orders.count > 10)
        stop.store(true, ordering: .relaxed)
        await other.value
    }
}

extension Seed {
    fileprivate func failure(_ body: @escaping @Sendable () async throws -> Void) async -> SeedFailure? { await failure(of: body) }
}

private func nestedRun(_ log: Log) {
    let timer = Timer(timeInterval: .seconds(60), repeats: true) { _ in log.add(".") }
    RunLoop.current.add(timer, forMode: .default)
    _ = RunLoop.current.run(in: .default, for: .seconds(330))
    timer.invalidate()
}

private func makePipe() -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [0, 0]
    precondition(pipe(&ends) == 0)
    return (ends[0], ends[1])
}

private func drainPipe(_ descriptor: Int32) {
    var byte: UInt8 = 0
    _ = read(descriptor, &byte, 1)
}

private func writePipe(_ descriptor: Int32) {
    var byte: UInt8 = 1
    _ = write(descriptor, &byte, 1)
}
