// SPDX-License-Identifier: Apache-2.0
//
// One run of a test's body by a seed: a thread that runs all jobs of the body's tasks, one at a time, and the passes of its own loop. Which
// is next is drawn. The thread's clocks are moved by hand, to the next sleep or timer when nothing else can run.
//
// `state` is used by any thread; all else by the run's thread. Invariants: a task belongs to the run from its first job on, as that is
// queued by the run's thread. A job that was taken is run by the run's thread or, once the run is over, by nobody. What is drawn depends on
// nothing but the seed and what the jobs do.

import CoreRunLoop
import CoreRunLoopShims
import CoreRunLoopSwiftRuntime
import CoreRunLoopTestingShims
import Synchronization

final class SeededRun: Sendable {
    /// How a run ended.
    struct Result: Sendable {
        var failure: SeedFailure.Reason?
        var steps = 0
        /// Follows from all that was drawn, and from how the run ended.
        var order: UInt64 = 0
        /// The number of jobs that other threads brought.
        var strangers = 0
    }

    enum Executor { case main, byDefault, hop }

    struct Job {
        let job: UnownedJob
        let executor: Executor
    }

    fileprivate struct Sleeper {
        let deadline: Int64
        let job: UnownedJob
    }

    fileprivate struct State {
        /// Jobs that can run, but for the main actor's, which keep their order.
        var ready: [Job] = []
        var main: [UnownedJob] = []
        /// By deadline; equal ones in their order.
        var sleeping: [Sleeper] = []
        /// The numbers of the tasks that have had a job here.
        var tasks: Set<UInt64> = []
        var firstTask: UInt64 = 0
        var strangers = 0
        var end: Swift.Result<Void, any Error>?
        var isOver = false
        var threadID: Int32 = 0
        var steps = 0
    }

    private let state = Mutex(State())
    private let mostSteps: Int

    /// After so many steps time passes although there are jobs: they may wait for it.
    private static let mostStepsAtOnce = 1000
    /// Sleeps until then, by the run's clock, have no end.
    private static let farthest: Int64 = 3_000_000_000_000_000_000
    private static let beginning: (monotonic: Int64, wall: Int64) = (1_000_000_000, 1_767_225_600_000_000_000)

    // The run's thread has these to itself.
    @safe nonisolated(unsafe) private var random: SplitMix
    @safe nonisolated(unsafe) private var result = Result()
    @safe nonisolated(unsafe) private var stepsAtOnce = 0
    /// The job that runs is the main actor's, or the loop has its pass.
    @safe nonisolated(unsafe) private(set) var isMainActor = false
    @safe nonisolated(unsafe) private var loop: RunLoop?
    @safe nonisolated(unsafe) private var descriptor: Int32 = -1

    init(seed: Int, mostSteps: Int) {
        random = SplitMix(state: UInt64(truncatingIfNeeded: seed))
        self.mostSteps = mostSteps
    }

    /// Tells this run from others.
    var identity: UnsafeRawPointer { unsafe UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    /// The tasks that had a job here, when the run is over.
    var tasks: Set<UInt64> { state.withLock { $0.tasks } }
    var progress: (steps: Int, threadID: Int32) { state.withLock { ($0.steps, $0.threadID) } }

    // MARK: Jobs come

    /// Whether the job is one of the run's.
    func take(_ job: UnownedJob, _ executor: Executor, isHere: Bool) -> Bool {
        state.withLock { state in
            guard state.owns(job, isHere: isHere) else { return false }
            if state.isOver { return true }
            if executor == .main { state.main.append(job) } else { state.ready.append(Job(job: job, executor: executor)) }
            return true
        }
    }

    /// The same for a job that sleeps; only the run's thread can say for how long.
    func take(_ job: UnownedJob, after delay: Duration, isHere: Bool) -> Bool {
        let (deadline, overflow) = shim_monotonic_ns().addingReportingOverflow(max(0, delay.inNanoseconds))
        return state.withLock { state in
            guard state.owns(job, isHere: isHere) else { return false }
            if state.isOver || overflow || deadline >= Self.farthest { return true }
            let place = state.sleeping.lastIndex { $0.deadline <= deadline }.map { $0 + 1 } ?? 0
            state.sleeping.insert(Sleeper(deadline: deadline, job: job), at: place)
            return true
        }
    }

    /// The body has ended.
    func bodyEnded(_ end: Swift.Result<Void, any Error>) { state.withLock { $0.end = end } }

    /// From now on jobs that come are kept for ever.
    func giveUp() { state.withLock { $0.isOver = true } }

    // MARK: The run's thread

    /// Runs everything. `cancel` cancels the body's task.
    func run(cancel: @Sendable () -> Void) -> Result {
        let hops = unsafe unsafeBitCast(HopExecutor.shared.asUnownedSerialExecutor(), to: (UInt, UInt).self)
        shim_clock_begin_skipping(Self.beginning.monotonic, Self.beginning.wall)
        let loop = RunLoop.current
        self.loop = loop
        let alive = loop.keepAlive()
        ThreadState.serveOwnRequests()
        state.withLock { $0.threadID = shim_thread_id() }
        unsafe seeded_thread_begin(identity, hops.0, hops.1)
        while step(cancel) {}
        finish()
        seeded_thread_end()
        loop.leaveHosted()
        alive.cancel()
        self.loop = nil
        return result
    }

    /// False when the run is over.
    private func step(_ cancel: @Sendable () -> Void) -> Bool {
        if state.withLock({ $0.end != nil || $0.isOver }) { return false }
        if result.steps >= mostSteps {
            fail(.endless(steps: mostSteps))
            return false
        }
        if runDrawn(orPass: true) {
            if stepsAtOnce >= Self.mostStepsAtOnce { _ = letTimePass() }
            return true
        }
        if pass() || letTimePass() || outsideComes() { return true }
        let isFirst = result.failure == nil
        fail(.deadlock(after: .nanoseconds(shim_monotonic_ns() - Self.beginning.monotonic)))
        if isFirst { cancel() }  // whoever minds that leaves
        return isFirst
    }

    /// Runs what was drawn: a job, or with `orPass` perhaps a pass of the loop. False if there is no job.
    private func runDrawn(orPass: Bool) -> Bool {
        let number = random.next()
        var isPass = false
        let job = state.withLock { state -> Job? in
            let jobs = state.ready.count + (state.main.isEmpty ? 0 : 1)
            if jobs == 0 { return nil }
            let drawn = Int(truncatingIfNeeded: number % UInt64(jobs + (orPass ? 1 : 0)))
            state.steps += 1
            note(UInt64(drawn) << 32 | UInt64(jobs))
            if drawn < state.ready.count {
                state.ready.swapAt(drawn, state.ready.count - 1)
                return state.ready.removeLast()
            }
            isPass = drawn >= jobs
            return isPass ? nil : Job(job: state.main.removeFirst(), executor: .main)
        }
        if isPass {
            _ = pass()
        } else if let job {
            run(job)
        } else {
            random.takeBack()
            return false
        }
        return true
    }

    private func run(_ job: Job) {
        switch job.executor {
        case .byDefault: job.job.runOnDefaultExecutor()
        case .hop: unsafe job.job.runSynchronously(on: HopExecutor.shared.asUnownedSerialExecutor())
        case .main:
            isMainActor = true
            job.job.runOnMainExecutor()
            isMainActor = false
        }
    }

    /// Has the loop do what it has to do. Whether it had anything.
    private func pass() -> Bool {
        guard let loop else { return false }
        isMainActor = true
        defer { isMainActor = false }
        guard loop.prepareHosted() else {
            loop.leaveHosted()  // an observer has stopped the run
            return false
        }
        descriptor = loop.pollableDescriptor ?? -1  // asked for anew: it then shows what has been added since
        if loop.hostedTimeout != .zero && !seeded_is_readable(descriptor, 0) { return false }
        if loop.dispatchHosted() != nil { loop.leaveHosted() }
        return true
    }

    /// Moves the clocks to the next sleep's end or timer. False if there is none.
    private func letTimePass() -> Bool {
        let now = shim_monotonic_ns()
        let timer = loop?.hostedTimeout.map { now + min($0.inNanoseconds, Self.farthest) }
        let sleep = state.withLock { $0.sleeping.first?.deadline }
        guard let next = [timer, sleep].compactMap(\.self).min(), next < Self.farthest else { return false }
        if next > now { shim_clock_advance(next - now) }
        stepsAtOnce = 0
        state.withLock { state in
            let due = state.sleeping.prefix { $0.deadline <= next }
            for sleeper in due { state.ready.append(Job(job: sleeper.job, executor: .byDefault)) }
            state.sleeping.removeFirst(due.count)
        }
        note(UInt64(bitPattern: next))
        return true
    }

    /// What comes by the kernel may take a moment. Whether something came.
    private func outsideComes() -> Bool {
        let isReadable = descriptor >= 0 && seeded_is_readable(descriptor, 20)
        return isReadable || state.withLock { !$0.ready.isEmpty || !$0.main.isEmpty }
    }

    private func fail(_ reason: SeedFailure.Reason) { if result.failure == nil { result.failure = reason } }

    private func note(_ number: UInt64) {
        result.order = (result.order ^ number) &* 0x100_0000_01b3 &+ 0x9e37_79b9
        result.steps += 1
        stepsAtOnce += 1
    }

    /// The body's end, or why there is none. Tasks that it has left run as long as they need no time.
    private func finish() {
        var left = 10_000
        while left > 0 && state.withLock({ !$0.isOver }) && runDrawn(orPass: false) { left -= 1 }
        state.withLock { state in
            if case .failure(let error) = state.end, result.failure == nil { result.failure = .threw(error) }
            state.isOver = true
            result.strangers = state.strangers
        }
    }
}

extension SeededRun.State {
    /// Whether the job's task belongs to the run, or does from now on. What the run's thread queues is its own, unless the task is older.
    fileprivate mutating func owns(_ job: UnownedJob, isHere: Bool) -> Bool {
        let task = unsafe seeded_job_task(unsafeBitCast(job, to: UnsafeMutableRawPointer.self))
        if task != 0 && tasks.contains(task) {
            if !isHere { strangers += 1 }
            return true
        }
        guard isHere, task == 0 || task >= firstTask else { return false }
        if task != 0 {
            if firstTask == 0 { firstTask = task }
            tasks.insert(task)
        }
        return true
    }
}

/// A generator of which each seed gives another sequence.
private struct SplitMix {
    private static let step: UInt64 = 0x9e37_79b9_7f4a_7c15
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= Self.step
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// The last number has not been used.
    mutating func takeBack() { state &-= Self.step }
}

/// Where a task is queued before it goes from one executor to another.
final class HopExecutor: SerialExecutor {
    static let shared = HopExecutor()
    func enqueue(_ job: consuming ExecutorJob) { SeededRuns.shared.takeHop(UnownedJob(job)) }
}
