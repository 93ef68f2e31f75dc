// SPDX-License-Identifier: Apache-2.0

@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency
import Dispatch
import Glibc

/// Runs what it is given on the thread that runs it.
final class OwnMainExecutor: MainExecutor {
    private let queue = DispatchQueue(label: "jobs")  // an order that the thread sanitizer sees
    nonisolated(unsafe) private var jobs: [UnownedJob] = []

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.sync { jobs.append(job) }
    }

    func run() throws {
        while true {
            let waiting = queue.sync {
                defer { jobs = [] }
                return jobs
            }
            for job in waiting { job.runSynchronously(on: asUnownedSerialExecutor()) }
            if waiting.isEmpty { sched_yield() }
        }
    }

    func stop() {}
    func checkIsolated() {}
}

struct OwnFactory: ExecutorFactory {
    static let main = OwnMainExecutor()
    static var mainExecutor: any MainExecutor { main }
    static var defaultExecutor: any TaskExecutor { PlatformExecutorFactory.defaultExecutor }
}
