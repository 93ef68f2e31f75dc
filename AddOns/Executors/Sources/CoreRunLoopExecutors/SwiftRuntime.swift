// SPDX-License-Identifier: Apache-2.0
//
// All that is known of the runtime's unfinished interface for executors. A runtime with another one gets no executors of this package.

#if compiler(>=6.3) && compiler(<6.4)
    @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) internal import _Concurrency
    private import CoreRunLoop
    private import CoreRunLoopMain
    private import CoreRunLoopMainHook

    /// Called once, when the runtime first asks for an executor.
    @c func corerunloop_create_executors() {
        let present = MainActor.executor
        if type(of: present) != type(of: PlatformExecutorFactory.mainExecutor) {
            return unsafe main_hook_report("CoreRunLoopExecutors", "the program's main executor is \(_typeName(type(of: present)))")
        }
        RunLoop.mainThreadWillRunLoop = { MainLoopExecutor.shared.mainLoopRuns() }
        _createExecutors(factory: LoopExecutors.self)
    }

    private struct LoopExecutors: ExecutorFactory {
        static var mainExecutor: any MainExecutor { MainLoopExecutor.shared }
        static var defaultExecutor: any TaskExecutor { LoopPool.shared }
    }

    extension MainLoopExecutor: MainExecutor {
        func enqueue(_ job: consuming ExecutorJob) { queue(UnownedJob(job)) }

        /// Called by the runtime where the hook of `CoreRunLoopMain` is not set.
        func run() throws { RunLoop.runMainThread() }

        func runUntil(_ condition: () -> Bool) throws {
            while !condition() { _ = RunLoop.main.run(in: .default, for: nil, returnAfterSourceHandled: true) }
        }

        func stop() { RunLoop.main.stop() }

        func isIsolatingCurrentContext() -> Bool? {
            RunLoop.main.isIsolatingCurrentContext() == true ? true : PlatformExecutorFactory.mainExecutor.isIsolatingCurrentContext()
        }

        func checkIsolated() {
            if isIsolatingCurrentContext() != true { PlatformExecutorFactory.mainExecutor.checkIsolated() }
        }
    }

    extension LoopPool: TaskExecutor, SchedulingExecutor {
        func enqueue(_ job: consuming ExecutorJob) {
            let priority = job.priority
            enqueue(UnownedJob(job), priority)
        }

        func enqueue<C: Clock>(_ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C) {
            let priority = job.priority
            let job = UnownedJob(job)
            guard let delay = delay as? Duration, clock is ContinuousClock || clock is SuspendingClock else {
                // A clock that is none of the runtime's sleeps by itself.
                let instant = clock.now.advanced(by: delay)
                Task {
                    try? await clock.sleep(until: instant, tolerance: tolerance)
                    self.enqueue(job, priority)
                }
                return
            }
            SleepLoop.shared.add(after: delay, tolerance: tolerance as? Duration, isSuspending: clock is SuspendingClock) {
                self.enqueue(job, priority)
            }
        }
    }
#endif
