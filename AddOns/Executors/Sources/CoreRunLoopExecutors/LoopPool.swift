// SPDX-License-Identifier: Apache-2.0
//
// The default executor: threads that run loops and share one queue of jobs. A thread that finds no job looks again for a moment if jobs
// come quickly; then its loop sleeps. One that takes a job and leaves others wakes the next thread.
//
// Invariants: whoever queues a job sees a thread that looks for one, or wakes one that sleeps, or there is none that sleeps. A thread stops
// looking, and is counted as sleeping, in one step with finding the queue empty. So no job is left while a thread sleeps.

private import CCoreRunLoop
private import CoreRunLoopExecutorsShims
private import CoreRunLoopMainHook
internal import CoreRunLoop
private import CoreRunLoopSwiftRuntime
private import Synchronization

final class LoopPool: Sendable {
    static let shared = LoopPool()

    /// How many jobs a thread runs before the timers and sources of its loop have their turn.
    private static let budget = 256

    private struct State {
        var settings = TaskLoops()
        var hasStarted = false
        var ready = ReadyJobs()
        var workers: [Worker] = []
        /// Those whose loops sleep, or are about to.
        var sleeping: [Worker] = []
        /// A thread looks for a job without sleeping. One is enough: it wakes the next.
        var isLooking = false

        /// A worker to wake, if there are jobs that nobody looks for.
        mutating func nextToWake() -> Worker? { ready.count == 0 || isLooking ? nil : sleeping.popLast() }
    }

    private let state = Mutex(State())
    /// Whether there may be jobs, for the thread that looks without the lock.
    private let hasJobs = Atomic(false)

    func use(_ settings: TaskLoops) -> Bool {
        state.withLock { state in
            if !state.hasStarted { state.settings = settings }
            return !state.hasStarted
        }
    }

    var loops: [RunLoop] { state.withLock { $0.workers.map(\.loop) } }

    func enqueue(_ job: UnownedJob, _ priority: JobPriority) {
        let (worker, isFirst) = state.withLock { state in
            defer { state.hasStarted = true }
            state.ready.append(job, priority)
            hasJobs.store(true, ordering: .relaxed)
            return (state.nextToWake(), !state.hasStarted)
        }
        worker?.wake()
        if isFirst { start() }
    }

    private func start() {
        let settings = state.withLock { $0.settings }
        main_hook_tasks_have_threads()
        for number in 1...settings.count {
            let thread = Thread { self.work(settings) }
            thread.name = "\(settings.name) \(number)"
            do { try thread.launch() } catch {
                if number == 1 { fatalError("CoreRunLoopExecutors: no thread to run tasks on: \(error)") }
                return  // fewer do as well
            }
        }
    }

    /// What each of the threads does.
    private func work(_ settings: TaskLoops) {
        if !settings.processors.isEmpty { unsafe _ = executors_use_processors(settings.processors, settings.processors.count) }
        let worker = Worker(busyWait: settings.busyWait)
        state.withLock { $0.workers.append(worker) }
        while true {
            var left = Self.budget
            while left > 0, let job = takeJob(worker) {
                job.runOnDefaultExecutor()
                left -= 1
            }
            main_hook_end_stranded_child()
            worker.sleep(left > 0)
        }
    }

    /// The next job; none when the worker is to sleep.
    private func takeJob(_ worker: Worker) -> UnownedJob? {
        var hasLooked = false
        while true {
            let (job, looks, next) = state.withLock { state -> (UnownedJob?, Bool, Worker?) in
                if hasLooked { state.isLooking = false }
                state.sleeping.removeAll { $0 === worker }  // it may have woken by itself
                if let job = state.ready.takeNext() {
                    hasJobs.store(state.ready.count > 0, ordering: .relaxed)
                    return (job, false, state.nextToWake())
                }
                if worker.looksForJobs && !hasLooked && !state.isLooking {
                    state.isLooking = true
                    return (nil, true, nil)
                }
                state.sleeping.append(worker)
                return (nil, false, nil)
            }
            if let next { next.wake() }
            worker.note(hasJob: job != nil)
            if !looks { return job }
            worker.look { hasJobs.load(ordering: .relaxed) }
            hasLooked = true
        }
    }
}

/// One thread's part. Only its thread uses it, but for `wake`.
@safe private final class Worker: @unchecked Sendable {
    let loop = RunLoop.current
    private let source: CFRunLoopSource
    private let busyWait: Duration
    /// Since when there has been no job.
    private var idleSince: ContinuousClock.Instant?
    /// The last job came so soon that it is worth looking for the next one.
    private(set) var looksForJobs = false
    /// Nobody looks before: the processors were busy with others.
    private var looksAgain = ContinuousClock.now
    /// How long nobody looks after that.
    private static let pause = Duration.milliseconds(100)

    init(busyWait: Duration) {
        self.busyWait = busyWait
        var context = unsafe CFRunLoopSourceContext()
        unsafe context.perform = { _ in }
        guard let source = unsafe CFRunLoopSourceCreate(nil, 0, &context) else { fatalError("CoreRunLoopExecutors: no memory") }
        self.source = source
    }

    /// Runs the loop until there may be jobs, or lets it have one pass. Only then is the source in it: a job that runs the loop itself,
    /// until a mode has nothing left, is not to wait for it.
    func sleep(_ isWaiting: Bool) {
        CFRunLoopAddSource(loop.getCFRunLoop(), source, kCFRunLoopDefaultMode)
        _ = loop.run(in: .default, for: isWaiting ? nil : .zero, returnAfterSourceHandled: true)
        CFRunLoopRemoveSource(loop.getCFRunLoop(), source, kCFRunLoopDefaultMode)
    }

    /// Ends the sleep of the worker's loop, from any thread.
    func wake() {
        CFRunLoopSourceSignal(source)
        CFRunLoopWakeUp(loop.getCFRunLoop())
    }

    /// Learns from how long there was no job.
    func note(hasJob: Bool) {
        if !hasJob {
            if idleSince == nil { idleSince = .now }
        } else if let since = idleSince {
            let now = ContinuousClock.now
            looksForJobs = now - since <= busyWait && now >= looksAgain
            idleSince = nil
        }
    }

    /// Looks until there is something, or the time is up. Other threads of the system come first: where they are many, looking costs more
    /// than a sleep, and is left for a while.
    func look(until hasSomething: () -> Bool) {
        let end = ContinuousClock.now + busyWait
        var now = end
        repeat {
            executors_yield()
            now = .now
        } while !hasSomething() && now < end
        if now > end + busyWait { looksAgain = now + Self.pause }
    }
}
