// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop
import CoreRunLoopServices
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// Something that threads of the pool wait for: the end of a pipe.
private final class Gate: Sendable {
    private let ends: (read: Int32, write: Int32)
    private let isOpen = Atomic(false)

    init() {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        self.ends = (ends[0], ends[1])
    }

    deinit {
        open()
        close(ends.read)
    }

    func open() { if !isOpen.exchange(true, ordering: .acquiringAndReleasing) { close(ends.write) } }

    func pass() {
        var byte: UInt8 = 0
        while read(ends.read, &byte, 1) < 0 {}
    }
}

/// Far more work than the pool has threads, so that what is behind it waits.
private func withFullPool(on loop: RunLoop, _ body: () async throws -> Void) async throws {
    let gate = Gate()
    let (begun, begins) = AsyncStream<Void>.makeStream()
    let others = (0..<200).map { _ in
        Task {
            try await loop.performInBackground {
                begins.yield()
                gate.pass()
            }
        }
    }
    _ = await begun.first { _ in true }
    while loop.end.count < others.count { await Task.yield() }  // until all have asked
    defer { gate.open() }
    try await body()
    gate.open()
    for other in others { _ = await other.result }
}

/// A number that any thread may read and add to.
private final class Count: Sendable {
    private let number = Atomic(0)
    var value: Int { number.load(ordering: .sequentiallyConsistent) }
    func add(_ other: Int = 1) { number.add(other, ordering: .sequentiallyConsistent) }
}

private struct Wrong: Error, Equatable {}

/// Counts those of its kind that are there.
private final class Counted: Sendable {
    static let count = Count()
    init() { Self.count.add() }
    deinit { Self.count.add(-1) }
}

private actor Home: RunLoopActor {
    nonisolated let runLoop: RunLoop
    init(_ loop: RunLoop) { runLoop = loop }

    func isHereAfterwards() async throws -> (there: Bool, here: Bool) {
        let loop = runLoop
        let there = try await loop.performInBackground { loop.isCurrent }
        return (there, loop.isCurrent)
    }
}

@Suite(.serialized, .timeLimit(.minutes(5))) struct BackgroundTests {
    @Test func `Work in the background gives its value to a task on the loop`() async throws {
        try await withLoop { loop in
            let product = try await loop.performInBackground { 6 * 7 }
            #expect(product == 42)
            let place = try await Home(loop).isHereAfterwards()
            #expect(!place.there)
            #expect(place.here)
        }
    }

    @Test func `What the work throws is thrown`() async throws {
        try await withLoop { loop in
            _ = await #expect(throws: Wrong.self) { try await loop.performInBackground { throw Wrong() } }
        }
    }

    @Test func `A task that is cancelled before its work begins goes on at once`() async throws {
        try await withLoop { loop in
            let calls = Count()
            try await withFullPool(on: loop) {
                let before = loop.end.count
                let waiting = Task { try await loop.performInBackground { calls.add() } }
                while loop.end.count == before { await Task.yield() }
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await waiting.value }
            }
            let late = Task {
                while !Task.isCancelled { await Task.yield() }
                try await loop.performInBackground { calls.add() }
            }
            late.cancel()
            await #expect(throws: CancellationError.self) { try await late.value }
            #expect(calls.value == 0)
        }
    }

    @Test func `Work that has begun goes on when its task is cancelled, which waits for it`() async throws {
        try await withLoop { loop in
            let gate = Gate()
            let (begun, begins) = AsyncStream<Void>.makeStream()
            let task = Task {
                try await loop.performInBackground {
                    begins.yield()
                    gate.pass()
                    return 5
                }
            }
            _ = await begun.first { _ in true }
            task.cancel()
            gate.open()
            let value = try await task.value
            #expect(value == 5)
        }
    }

    @Test func `Each of 10,000 pieces of work ends, and nothing is left`() async throws {
        try await withLoop { loop in
            let sum = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 1...10_000 {
                    let counted = Counted()
                    group.addTask { try await loop.performInBackground { withExtendedLifetime(counted) { number } } }
                }
                return try await group.reduce(0, +)
            }
            #expect(sum == 50_005_000)
            #expect(loop.end.count == 0)
        }
        #expect(Counted.count.value == 0)
    }

    @Test func `Of 10,000 that are cancelled at any time each ends once`() async throws {
        try await withLoop { loop in
            let runs = Count()
            let tasks = (0..<10_000).map { _ in
                Task { [counted = Counted()] in
                    try await loop.performInBackground {
                        withExtendedLifetime(counted) { runs.add() }
                    }
                }
            }
            for task in tasks { task.cancel() }
            var done = 0
            for task in tasks {
                do {
                    try await task.value
                    done += 1
                } catch { #expect(error is CancellationError) }
            }
            #expect(done == runs.value)
            #expect(loop.end.count == 0)
        }
        // What a task captured is freed with it, after its value was given.
        while Counted.count.value > 0 { await Task.yield() }
    }

    @Test func `Work keeps a run of its mode alive`() async throws {
        let stop = RunLoop.StopToken()
        let runs = Count()
        let (loops, found) = AsyncStream<RunLoop>.makeStream()
        let (ends, ended) = AsyncStream<RunLoop.RunResult>.makeStream()
        let thread = Thread {
            let keep = RunLoop.current.keepAlive()
            found.yield(RunLoop.current)
            RunLoop.current.run(until: stop)
            keep.cancel()
            runs.add()
            ended.yield(RunLoop.current.run(in: .default))
        }
        thread.start()
        let loop = try #require(await loops.first { _ in true })
        let sleeps = try await loop.performInBackground {
            stop.requestStop()
            while runs.value == 0 || !loop.isWaiting { sched_yield() }
            return loop.isWaiting
        }
        #expect(sleeps)
        #expect(await ends.first { _ in true } == .finished)
    }

    @Test func `Work of a loop that ends is an error for its task, once it has ended`() async throws {
        let (loops, found) = AsyncStream<RunLoop>.makeStream()
        let stop = RunLoop.StopToken()
        let thread = Thread {
            let keep = RunLoop.current.keepAlive()
            found.yield(RunLoop.current)
            RunLoop.current.run(until: stop)
            keep.cancel()
        }
        thread.start()
        let loop = try #require(await loops.first { _ in true })
        let calls = Count()
        let ends = Count()
        let gate = Gate()
        try await withLoop { other in
            try await withFullPool(on: other) {
                let waiting = Task { try await loop.performInBackground { calls.add() } }
                while loop.end.count == 0 { await Task.yield() }
                stop.requestStop()
                await #expect(throws: RunLoopError.loopEnded) { try await waiting.value }
            }
        }
        #expect(calls.value == 0)
        await #expect(throws: RunLoopError.loopEnded) { try await loop.performInBackground {} }

        let task = try await withLoop { short in
            let (begun, begins) = AsyncStream<Void>.makeStream()
            let task = Task {
                defer { ends.add() }
                try await short.performInBackground {
                    begins.yield()
                    gate.pass()
                    ends.add()
                }
            }
            _ = await begun.first { _ in true }
            return task
        }
        gate.open()
        await #expect(throws: RunLoopError.loopEnded) { try await task.value }
        #expect(ends.value == 2)
    }

    @Test func `Work that ends its thread is an error`() async throws {
        try await withLoop { loop in
            let ends: @Sendable () -> Void = { Thread.exit() }
            await #expect(throws: ThreadError.exited) { try await loop.performInBackground(ends) }
            let next = try await loop.performInBackground { 1 }
            #expect(next == 1)
        }
    }
}
