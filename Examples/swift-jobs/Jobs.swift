// SPDX-License-Identifier: Apache-2.0
//
// The queue, in one process, and the workers, each in a process of its own. Nobody registers: the queue watches which workers are hosted. A
// job whose worker dies goes to another one.

import CoreRunLoopDistributed
import Distributed

struct Job: Codable, Sendable {
    let number: Int
    let from: Int
    let to: Int
}

@Resolvable
protocol Worker: DistributedActor where ActorSystem == MessagePortActorSystem {
    /// Counts the prime numbers of a range.
    distributed func run(_ job: Job) async throws -> Int
}

distributed actor PrimeWorker: Worker {
    typealias ActorSystem = MessagePortActorSystem

    distributed func run(_ job: Job) throws -> Int {
        try (job.from..<job.to).count { number in
            try Task.checkCancellation()  // when the queue does not wait any more
            return number > 1 && !(2..<number).prefix { $0 * $0 <= number }.contains { number % $0 == 0 }
        }
    }
}

/// The jobs that are not done. Each worker has a task here, which takes one job after the other.
actor JobQueue {
    private var waiting: [Job] = []
    private var results: [Int: CheckedContinuation<Int, Never>] = [:]
    private var idle: [CheckedContinuation<Job, any Error>] = []
    private(set) var doneBy: [String: Int] = [:]
    private(set) var givenBack = 0

    /// Waits until a worker has done the job.
    func add(_ job: Job) async -> Int {
        await withCheckedContinuation { continuation in
            results[job.number] = continuation
            give(job)
        }
    }

    private func give(_ job: Job) {
        if idle.isEmpty { waiting.append(job) } else { idle.removeFirst().resume(returning: job) }
    }

    private func next() async throws -> Job {
        if !waiting.isEmpty { return waiting.removeFirst() }
        return try await withCheckedThrowingContinuation { idle.append($0) }
    }

    /// Gives jobs to a worker, until it has gone.
    func serve(_ worker: $Worker, _ name: String) async throws {
        while true {
            let job = try await next()
            do {
                let result = try await MessagePortActorSystem.withTimeLimit(.seconds(20)) { try await worker.run(job) }
                doneBy[name, default: 0] += 1
                results.removeValue(forKey: job.number)?.resume(returning: result)
            } catch {
                givenBack += 1
                give(job)
                print("\(name) has not done job \(job.number): \(error)")
                return
            }
        }
    }

    /// Ends the tasks of workers that have nothing to do.
    func close() {
        for one in idle { one.resume(throwing: CancellationError()) }
        idle = []
    }
}
