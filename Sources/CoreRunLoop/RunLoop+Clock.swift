// SPDX-License-Identifier: Apache-2.0
//
// Sleeping with a loop's timer. The waiter resumes its continuation exactly once: by the timer, by cancellation, or by the end of the
// loop's thread.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

extension RunLoop {
    /// A clock whose sleeps are timers of a loop.
    ///
    /// ```swift
    /// try await Task.sleep(for: .seconds(1), clock: loop.clock)
    /// ```
    ///
    /// The clock goes on while the system is suspended, and nobody can set it. A test can move it by hand. A sleep ends while the loop runs
    /// in a common mode.
    public struct Clock: _Concurrency.Clock, Sendable {
        /// An instant of the clock, in nanoseconds from an origin that means nothing.
        public struct Instant: InstantProtocol, Sendable {
            /// Nanoseconds.
            public var nanoseconds: Int64
            /// The current instant, which is the same for the clocks of all loops.
            static var now: Instant { Instant(nanoseconds: shim_elapsed_ns()) }
            /// The instant `duration` later.
            public func advanced(by duration: Duration) -> Instant { advanced(byNanoseconds: duration.inNanoseconds) }
            /// The instant `distance` nanoseconds later, clamped to the first and the last instant.
            func advanced(byNanoseconds distance: Int64) -> Instant {
                let (sum, overflow) = nanoseconds.addingReportingOverflow(distance)
                return Instant(nanoseconds: overflow ? (distance < 0 ? .min : .max) : sum)
            }
            /// The wall clock's time at the instant, as far as it can be foreseen.
            var date: WallTime {
                var wall: Int64 = 0
                return unsafe shim_wall_of_instant(nanoseconds, &wall) ? WallTime(nanoseconds: wall) : .distantFuture
            }
            /// How long it is to `other`.
            public func duration(to other: Instant) -> Duration { .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds) }
            /// Whether `first` is earlier.
            public static func < (first: Instant, second: Instant) -> Bool { first.nanoseconds < second.nanoseconds }
        }

        /// The loop whose timers are used.
        public let loop: RunLoop

        /// The current instant.
        public var now: Instant { .now }

        /// One nanosecond.
        public var minimumResolution: Duration { .nanoseconds(1) }

        /// Sleeps until `deadline`, or up to `tolerance` longer.
        ///
        /// - Throws: `CancellationError` when the task is cancelled; ``RunLoopError/loopEnded`` when the loop's thread ends before.
        public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
            try Task.checkCancellation()
            let waiter = Waiter()
            let timer = Timer(due: max(deadline, now)) { [waiter] _ in waiter.resume(with: .success(())) }
            if let tolerance { timer.tolerance = tolerance }
            let number = loop.end.add(on: loop.loop) { waiter.resume(with: .failure(RunLoopError.loopEnded)) }
            defer { loop.end.remove(number) }
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    waiter.wait(continuation)
                    loop.add(timer, forMode: .common)
                }
            } onCancel: {
                timer.invalidate()
                waiter.resume(with: .failure(CancellationError()))
            }
        }
    }

    /// The clock that sleeps with this loop's timers. Any thread.
    public var clock: Clock { Clock(loop: self) }
}

/// Someone who waits for one event, which may come before the waiting begins.
final class Waiter: Sendable {
    private enum State {
        case early
        case waiting(CheckedContinuation<Void, any Error>)
        case done(Result<Void, any Error>)
        case resumed
    }
    private let state = Mutex(State.early)

    func wait(_ continuation: CheckedContinuation<Void, any Error>) {
        let result = state.withLock { state -> Result<Void, any Error>? in
            guard case .done(let result) = state else {
                state = .waiting(continuation)
                return nil
            }
            state = .resumed
            return result
        }
        if let result { continuation.resume(with: result) }
    }

    func resume(with result: Result<Void, any Error>) {
        let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            switch state {
            case .early:
                state = .done(result)
                return nil
            case .waiting(let continuation):
                state = .resumed
                return continuation
            case .done, .resumed: return nil
            }
        }
        continuation?.resume(with: result)
    }
}
