// SPDX-License-Identifier: Apache-2.0

/// A number from which the order of a run follows: which task, timer or source is next whenever several could be.
///
/// The traits `.seeded(_:)` and `.seeds(_:)` run tests so. A body that is no test, or of which a failure is expected, is run by the
/// functions here.
public struct Seed: Sendable, Hashable, ExpressibleByIntegerLiteral {
    /// The number.
    public let number: Int

    /// Makes a seed of a number; every number gives an order.
    public init(_ number: Int) { self.number = number }
    /// Makes a seed of a number.
    public init(integerLiteral number: Int) { self.number = number }

    /// Runs `body` in the order of this seed and in virtual time.
    ///
    /// - Throws: ``SeedFailure`` when the body throws, waits for something that never comes, blocks its thread, or does not end.
    public func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        if let failure = await failure(of: body) { throw failure }
    }

    /// Runs `body` with one seed after the other, until one fails.
    ///
    /// - Returns: The first failure, which `failure.seed.run(body)` repeats; `nil` if there is none.
    public static func firstFailure(
        among seeds: ClosedRange<Int>, _ body: @escaping @Sendable () async throws -> Void
    ) async -> SeedFailure? {
        for number in seeds { if let failure = await Seed(number).failure(of: body) { return failure } }
        return nil
    }

    /// When a run is given up.
    struct Limits {
        /// The longest sleep of its thread in a call.
        var blocked = Duration.seconds(10)
        var steps = 1_000_000
    }

    func failure(of body: @escaping @Sendable () async throws -> Void, _ limits: Limits = Limits()) async -> SeedFailure? {
        let result = await SeededRuns.shared.run(seed: number, limits, body)
        return result.failure.map { SeedFailure(seed: self, reason: $0, order: result.order, hasStrangers: result.strangers > 0) }
    }
}

/// How the run of a seed failed.
public struct SeedFailure: Error, CustomStringConvertible {
    /// Why a run failed.
    public enum Reason: Sendable {
        /// The body threw an error.
        case threw(any Error)
        /// Everything waits, and nothing is left that could end a wait. The virtual time since the beginning.
        case deadlock(after: Duration)
        /// A call slept in the kernel for ten real seconds. Its thread was left to it.
        case blocked
        /// There was no end after a million steps.
        case endless(steps: Int)
        /// The tasks of this process cannot be ordered: see the article.
        case unavailable
    }

    /// The seed.
    public let seed: Seed
    /// The reason.
    public let reason: Reason
    /// Follows from everything that was drawn: runs with equal numbers were the same.
    let order: UInt64
    /// Threads outside of the run have brought it jobs. When they came is not the seed's to say.
    let hasStrangers: Bool

    /// The failure in a sentence.
    public var description: String {
        let what =
            switch reason {
            case .threw(let error): "\(error)"
            case .deadlock(let time):
                "deadlock: after \(time) of virtual time nothing can run, and no sleep or timer is left; the tasks wait for one another, "
                    + "or for a thread, dispatch queue or process outside, for which a seeded test does not wait"
            case .blocked: "a call has blocked the thread of all its tasks for long, perhaps to wait for one of them"
            case .endless(let steps): "there is no end after \(steps) steps"
            case .unavailable:
                "this process's tasks cannot be ordered: its Swift runtime is unknown, CORERUNLOOP_MAIN is 0, another library has set the "
                    + "executors, or a sanitizer reads the clocks"
            }
        let note = hasStrangers ? " (other threads have resumed tasks, so it may not be repeated exactly)" : ""
        return "seed \(seed.number): \(what)\(note)"
    }
}
