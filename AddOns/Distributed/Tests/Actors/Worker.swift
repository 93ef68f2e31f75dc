// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import CoreRunLoopDistributed
import Distributed

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

struct Refusal: Error, Codable, Hashable { let reason: String }

/// What each process hosts.
@Resolvable
protocol Worker: DistributedActor where ActorSystem == MessagePortActorSystem {
    distributed func process() async throws -> Int32
    distributed func add(_ one: Int, _ other: Int) async throws -> Int
    distributed func refuse(_ reason: String) async throws
    distributed func sleep() async throws
    distributed func secondsLeft() async throws -> Int
    distributed func sleepers() async throws -> [Int]
    distributed func numbers() async throws -> ActorStream<Int>
}

distributed actor SimpleWorker: Worker {
    typealias ActorSystem = MessagePortActorSystem
    private var begun = 0
    private var cancelled = 0

    distributed func process() -> Int32 { getpid() }
    distributed func add(_ one: Int, _ other: Int) -> Int { one + other }
    distributed func refuse(_ reason: String) throws { throw Refusal(reason: reason) }
    /// Sleeps until it is cancelled.
    distributed func sleep() async throws {
        begun += 1
        do { try await Task.sleep(for: .seconds(100_000)) } catch {
            cancelled += 1
            throw error
        }
    }
    /// The caller's time limit.
    distributed func secondsLeft() -> Int {
        MessagePort.requestDeadline.map { Int(SuspendingClock.now.duration(to: $0).components.seconds) } ?? -1
    }
    /// How many sleeps have begun, and how many of them were cancelled.
    distributed func sleepers() -> [Int] { [begun, cancelled] }
    /// All numbers from 0.
    distributed func numbers() -> ActorStream<Int> { ActorStream(Numbers()) }
}

private struct Numbers: AsyncSequence, AsyncIteratorProtocol, Sendable {
    private var last = -1
    func makeAsyncIterator() -> Numbers { self }
    mutating func next() async throws -> Int? {
        try Task.checkCancellation()
        last += 1
        return last
    }
}
