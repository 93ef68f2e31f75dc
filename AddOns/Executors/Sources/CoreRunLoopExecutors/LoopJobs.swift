// SPDX-License-Identifier: Apache-2.0

private import CoreRunLoop
private import CoreRunLoopMain
private import CoreRunLoopSwiftRuntime

/// Called once, before the runtime has its executors.
@c func corerunloop_run_jobs_on_loops() {
    RunLoop.mainThreadWillRunLoop = { MainLoopExecutor.shared.mainLoopRuns() }
    JobRouting.runner = LoopJobs()
}

/// Brings each job to the loops that run it.
private struct LoopJobs: JobRunner {
    func enqueueMain(_ job: UnownedJob) { MainLoopExecutor.shared.queue(job) }
    func enqueue(_ job: UnownedJob, _ priority: JobPriority) { LoopPool.shared.enqueue(job, priority) }

    func enqueue(_ job: UnownedJob, _ priority: JobPriority, after delay: Duration, tolerance: Duration?, isSuspending: Bool) {
        SleepLoop.shared.add(after: delay, tolerance: tolerance, isSuspending: isSuspending) { LoopPool.shared.enqueue(job, priority) }
    }

    func runMain() -> Never { RunLoop.runMainThread() }

    func runMain(until condition: () -> Bool) {
        while !condition() { _ = RunLoop.main.run(in: .default, for: nil, returnAfterSourceHandled: true) }
    }

    func stopMain() { RunLoop.main.stop() }

    var isMain: Bool { RunLoop.main.isIsolatingCurrentContext() == true }
}
