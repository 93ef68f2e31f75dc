// SPDX-License-Identifier: Apache-2.0
//
// Code of the main actor where that is not on the process's first thread: in tests, and after the first suspension of an asynchronous main
// function. Also of actors with executors of their own, in their jobs.

import CoreRunLoop
import Synchronization
import Testing

@MainActor private final class Ticker {
    var count = 0
    func start() { Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: false) { _ in self.count += 1 } }
    func observe() -> RunLoop.Observer { RunLoop.current.observe(.entry) { _, _ in self.count += 1 } }
    func step(_ timer: Timer) { count += 1 }
}

/// An executor that knows its thread, and answers only by stopping the process or not.
private final class OldExecutor: SerialExecutor {
    private let loop: RunLoop
    init(_ loop: RunLoop) { self.loop = loop }
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.perform { [self] in unsafe job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }
    func checkIsolated() { precondition(loop.isCurrent) }
}

private actor WithItsOwn {
    private let executor: OldExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private(set) var count = 0
    init(_ loop: RunLoop) { executor = OldExecutor(loop) }
    func start() { Timer.scheduledTimer(withTimeInterval: .zero, repeats: false) { _ in self.count += 1 } }
    func countInside() -> Int {
        start()
        RunLoop.current.run(for: .milliseconds(20))
        return count
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Code of the main actor that is not on the first thread` {
    @Test @MainActor func `gets its scheduled timers`() {
        let ticker = Ticker()
        ticker.start()
        RunLoop.current.run(until: .now + .milliseconds(50))
        #expect(ticker.count == 1)
    }

    @Test @MainActor func `gets its scheduled timers after a suspension`() async throws {
        try await Task.sleep(for: .milliseconds(1))
        func run() -> Int {
            let ticker = Ticker()
            ticker.start()
            RunLoop.current.run(until: .now + .milliseconds(50))
            return ticker.count
        }
        #expect(run() == 1)
    }

    @Test @MainActor func `gets its methods, observers and sendable closures`() {
        let ticker = Ticker()
        let observer = ticker.observe()
        Timer.scheduledTimer(timeInterval: .zero, target: ticker, selector: Ticker.step, repeats: false)
        RunLoop.current.add(Timer(timeInterval: .zero, repeats: false) { @MainActor _ in ticker.count += 1 }, forMode: .default)
        RunLoop.current.perform { @MainActor in ticker.count += 1 }
        _ = RunLoop.current.run(in: .default, for: .milliseconds(50))
        observer.invalidate()
        #expect(ticker.count == 4)
    }

    @Test @MainActor func `gets what another loop is to call`() async throws {
        let ticker = Ticker()
        let stop = RunLoop.StopToken()
        let other = try Thread.runningLoop(until: stop)
        other.add(Timer(timeInterval: .zero, repeats: false) { @MainActor _ in ticker.count += 1 }, forMode: .common)
        while ticker.count == 0 { await Task.yield() }
        #expect(try await other.run { @MainActor in ticker.count } == 1)
        stop.requestStop()
    }

    @Test func `an actor whose executor can only stop the process is asked by that`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let actor = WithItsOwn(loop)
        #expect(await actor.countInside() == 1)
        await actor.start()  // the loop calls the closure between the actor's jobs, on its thread
        while await actor.count < 2 { await Task.yield() }
        stop.requestStop()
    }
}
