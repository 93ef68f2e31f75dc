// SPDX-License-Identifier: Apache-2.0
//
// The runs of a process by seeds, of which one is under way at a time: they wait for each other.

import CoreRunLoop
import CoreRunLoopSwiftRuntime
import CoreRunLoopTestingShims
import Synchronization

final class SeededRuns: JobTaker {
    static let shared = SeededRuns()

    fileprivate struct State {
        var current: SeededRun?
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        /// The tasks of runs that are over, which never go on, and those of older runs. Very old ones are forgotten.
        var left: Set<UInt64> = []
        var leftBefore: Set<UInt64> = []
    }

    fileprivate static let mostLeft = 500_000

    private let state = Mutex(State())

    // MARK: Jobs

    func take(_ job: UnownedJob, isMain: Bool) -> Bool {
        find(job) { $0.take(job, isMain ? .main : .byDefault, isHere: $1) }
    }

    func take(_ job: UnownedJob, after delay: Duration) -> Bool { find(job) { $0.take(job, after: delay, isHere: $1) } }

    func takeHop(_ job: UnownedJob) { _ = find(job) { $0.take(job, .hop, isHere: $1) } }

    var isMainActor: Bool? {
        guard let here = unsafe seeded_thread_run() else { return nil }
        let run = state.withLock { $0.current }
        return unsafe run?.identity == here ? run?.isMainActor : nil
    }

    private func find(_ job: UnownedJob, _ take: (SeededRun, Bool) -> Bool) -> Bool {
        let task = unsafe seeded_job_task(unsafeBitCast(job, to: UnsafeMutableRawPointer.self))
        let (run, isLeft) = state.withLock { state in
            (state.current, task != 0 && (state.left.contains(task) || state.leftBefore.contains(task)))
        }
        if isLeft { return true }
        guard let run else { return unsafe seeded_thread_run() != nil }  // of a run that was given up
        let here = unsafe seeded_thread_run() ?? seeded_claimed()
        if unsafe here != nil && here != run.identity { return true }
        return take(run, unsafe here != nil)
    }

    // MARK: Runs

    /// A sanitizer has a function of its own for reading clocks.
    static let clocksAreVirtual = seeded_clocks_are_read_here()

    /// Runs `body` by `seed`, when those before are done.
    func run(seed: Int, _ limits: Seed.Limits, _ body: @escaping @Sendable () async throws -> Void) async -> SeededRun.Result {
        await takeTurn()
        defer { giveTurn() }
        await Task.yield()  // the runtime makes its executors for the first job
        guard JobRouting.isInstalled && Self.clocksAreVirtual else { return SeededRun.Result(failure: .unavailable) }
        JobRouting.taker = self
        let run = SeededRun(seed: seed, mostSteps: limits.steps)
        state.withLock { $0.current = run }
        let root = begin(body, in: run)
        let end = End()
        let thread = Thread { end.come(run.run { root.cancel() }) }
        thread.name = "seeded test"
        let watch = Task {
            if await Self.isBlocked(run, limits.blocked) {
                run.giveUp()
                end.come(SeededRun.Result(failure: .blocked))
            }
        }
        var result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                end.wait(continuation)
                do { try thread.launch() } catch { end.come(SeededRun.Result(failure: .threw(error))) }
            }
        } onCancel: {
            root.cancel()
        }
        watch.cancel()
        await watch.value
        if case .blocked = result.failure {} else { try? await thread.value }
        state.withLock { $0.end(run) }
        if result.failure != nil && result.strangers > 0 { result.order = 0 }
        return result
    }

    /// The body's task; its first job is the run's.
    private func begin(_ body: @escaping @Sendable () async throws -> Void, in run: SeededRun) -> Task<Void, Never> {
        unsafe seeded_claim(run.identity)
        defer { seeded_claim(nil) }
        return Task {
            do {
                try await TestLoop.here(body)
                run.bodyEnded(.success(()))
            } catch {
                run.bodyEnded(.failure(error))
            }
        }
    }

    /// Whether the run's thread has slept in one and the same step for that long; looks as long as the task is not cancelled.
    private static func isBlocked(_ run: SeededRun, _ limit: Duration) async -> Bool {
        let looks = 20
        var (steps, asleep, awake) = (-1, 0, 0)
        while (try? await Task.sleep(for: limit / looks)) != nil {
            let progress = run.progress
            if progress.steps != steps { (steps, asleep, awake) = (progress.steps, 0, 0) }
            if seeded_thread_is_blocked(progress.threadID) { asleep += 1 } else { awake += 1 }
            if asleep >= looks && awake * 4 <= asleep { return true }
            if asleep + awake > 2 * looks { (asleep, awake) = (0, 0) }
        }
        return false
    }

    private func takeTurn() async {
        await withCheckedContinuation { continuation in
            let isMine = state.withLock { state in
                if state.isTaken { state.waiting.append(continuation) }
                defer { state.isTaken = true }
                return !state.isTaken
            }
            if isMine { continuation.resume() }
        }
    }

    private func giveTurn() {
        let next = state.withLock { state in
            state.isTaken = !state.waiting.isEmpty
            return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
        }
        next?.resume()
    }
}

extension SeededRuns.State {
    fileprivate mutating func end(_ run: SeededRun) {
        current = nil
        if left.count >= SeededRuns.mostLeft { (leftBefore, left) = (left, []) }
        left.formUnion(run.tasks)
    }
}

/// The end of a run, for one who waits for it. What comes later is forgotten.
private final class End: Sendable {
    private let waiter = Mutex<CheckedContinuation<SeededRun.Result, Never>?>(nil)

    func wait(_ continuation: CheckedContinuation<SeededRun.Result, Never>) { waiter.withLock { $0 = continuation } }

    func come(_ result: SeededRun.Result) {
        let continuation = waiter.withLock { waiter in
            defer { waiter = nil }
            return waiter
        }
        continuation?.resume(returning: result)
    }
}
