// SPDX-License-Identifier: Apache-2.0
//
// All that is known of the runtime's unfinished interface for executors. A runtime with another one gets no executors of this package.
//
// The executors here run nothing themselves. A job goes to the run of a seeded test, if it is one of that's; else to what has been set to
// run jobs, which are loops where CoreRunLoopExecutors is linked; else to the runtime's own executors.

private import CoreRunLoopExecutorsShims

#if compiler(>=6.3) && compiler(<6.4)
    @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) internal import _Concurrency
    private import CoreRunLoopMainHook

    /// Called once, when the runtime first asks for an executor.
    @c func corerunloop_create_executors() {
        let present = MainActor.executor
        if type(of: present) != type(of: PlatformExecutorFactory.mainExecutor) {
            return unsafe main_hook_report(executors_hook_owner(), "the program's main executor is \(_typeName(type(of: present)))")
        }
        executors_set_job_runner()
        _createExecutors(factory: JobExecutors.self)
        JobRouting.isInstalled = true
    }

    private struct JobExecutors: ExecutorFactory {
        static var mainExecutor: any MainExecutor { MainJobExecutor.shared }
        static var defaultExecutor: any TaskExecutor { DefaultJobExecutor.shared }
    }

    /// The runtime's own.
    private var platformMain: any MainExecutor { PlatformExecutorFactory.mainExecutor }
    private let platformDefault = PlatformExecutorFactory.defaultExecutor

    final class MainJobExecutor: MainExecutor {
        static let shared = MainJobExecutor()

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            if JobRouting.isTaken(job, isMain: true) { return }
            if let runner = JobRouting.runner { return runner.enqueueMain(job) }
            platformMain.enqueue(ExecutorJob(job))
        }

        /// Called by the runtime where the hook of `CoreRunLoopMain` is not set.
        func run() throws { if let runner = JobRouting.runner { runner.runMain() } else { try platformMain.run() } }

        func runUntil(_ condition: () -> Bool) throws {
            if let runner = JobRouting.runner { runner.runMain(until: condition) } else { try platformMain.runUntil(condition) }
        }

        func stop() { if let runner = JobRouting.runner { runner.stopMain() } else { platformMain.stop() } }

        func isIsolatingCurrentContext() -> Bool? {
            if let isMain = JobRouting.isMainActor { return isMain }
            return JobRouting.runner?.isMain == true ? true : platformMain.isIsolatingCurrentContext()
        }

        func checkIsolated() { if isIsolatingCurrentContext() != true { platformMain.checkIsolated() } }
    }

    final class DefaultJobExecutor: TaskExecutor, SchedulingExecutor {
        static let shared = DefaultJobExecutor()

        func enqueue(_ job: consuming ExecutorJob) {
            let priority = job.priority
            let job = UnownedJob(job)
            if JobRouting.isTaken(job, isMain: false) { return }
            if let runner = JobRouting.runner { return runner.enqueue(job, priority) }
            platformDefault.enqueue(ExecutorJob(job))
        }

        func enqueue<C: Clock>(_ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C) {
            let priority = job.priority
            let job = UnownedJob(job)
            guard let delay = delay as? Duration, clock is ContinuousClock || clock is SuspendingClock else {
                // A clock that is none of the runtime's sleeps by itself.
                let instant = clock.now.advanced(by: delay)
                Task {
                    try? await clock.sleep(until: instant, tolerance: tolerance)
                    self.enqueue(ExecutorJob(job))
                }
                return
            }
            if JobRouting.isTaken(job, after: delay) { return }
            let tolerance = tolerance as? Duration
            if let runner = JobRouting.runner {
                return runner.enqueue(job, priority, after: delay, tolerance: tolerance, isSuspending: clock is SuspendingClock)
            }
            guard let platform = platformDefault as? any SchedulingExecutor else { fatalError("Swift's default executor keeps no time") }
            if clock is SuspendingClock {
                platform.enqueue(ExecutorJob(job), after: delay, tolerance: tolerance, clock: SuspendingClock())
            } else {
                platform.enqueue(ExecutorJob(job), after: delay, tolerance: tolerance, clock: ContinuousClock())
            }
        }
    }

    extension UnownedJob {
        /// Runs the job as one of the main actor's.
        package func runOnMainExecutor() { unsafe runSynchronously(on: MainJobExecutor.shared.asUnownedSerialExecutor()) }

        /// Runs the job as one of the default executor's.
        package func runOnDefaultExecutor() { unsafe runSynchronously(on: DefaultJobExecutor.shared.asUnownedTaskExecutor()) }
    }
#else
    extension UnownedJob {
        package func runOnMainExecutor() { fatalError("this Swift runtime is not known") }
        package func runOnDefaultExecutor() { fatalError("this Swift runtime is not known") }
    }
#endif
