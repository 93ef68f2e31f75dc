// SPDX-License-Identifier: Apache-2.0
//
// The queue, in one process, and the workers, each in a process of its own. Nobody registers: the queue watches which workers are hosted. A
// job whose worker dies goes to another one.

import CoreRunLoopDistributed
import Distributed

struct Job: Codable, Sendable {
    let number: Int
    var range: Range<Int> { number * Self.size..<(number + 1) * Self.size }
    static let size = 2000
}

@Resolvable
protocol Worker: DistributedActor where ActorSystem == MessagePortActorSystem {
    /// Counts the prime numbers of the job's range.
    distributed func run(_ job: Job) async throws -> Int
}

distributed actor PrimeWorker: Worker {
    typealias ActorSystem = MessagePortActorSystem

    distributed func run(_ job: Job) throws -> Int {
        try job.range.count { number in
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
    private var come: Set<String> = []
    private var awaited: (count: Int, continuation: CheckedContinuation<Void, Never>)?
    private(set) var doneBy: [String: Int] = [:]
    private(set) var givenBack = 0

    /// Returns how many prime numbers there are in the ranges of all these jobs.
    func primes(of numbers: Range<Int>) async -> Int {
        await withTaskGroup(of: Int.self) { group in
            for number in numbers { group.addTask { await self.add(Job(number: number)) } }
            var primes = 0
            for await result in group { primes += result }
            return primes
        }
    }

    /// Waits until a worker has done the job.
    private func add(_ job: Job) async -> Int {
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

    /// Waits until so many workers have come, those among them that have gone. One task waits at a time.
    func waitForWorkers(_ count: Int) async {
        if come.count < count { await withCheckedContinuation { awaited = (count, $0) } }
    }

    /// Gives jobs to a worker, until it has gone.
    func serve(_ worker: $Worker, _ name: String) async throws {
        come.insert(name)
        if let awaited, come.count >= awaited.count {
            self.awaited = nil
            awaited.continuation.resume()
        }
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
