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
    /// What it counts is its ``kind``; ``RunLoop/clock`` is continuous. A test can move it by hand. A sleep ends while the loop runs in a
    /// common mode.
    public struct Clock: _Concurrency.Clock, Sendable {
        /// What a clock counts, by the names of the standard library's clocks. They differ when the system is suspended, or when somebody
        /// sets the wall clock. A loop notices either in a sleep of more than five seconds; a shorter one may end as late as it would have.
        public enum Kind: Sendable, Hashable {
            /// The time that passes, as `ContinuousClock` does: it goes on while the system is suspended, and nobody can set it. Timers go
            /// by it.
            case continuous
            /// The time that the system is awake, as `SuspendingClock` does: it stands still while the system is suspended. The limits of
            /// runs go by it.
            case suspending
            /// The wall clock: a sleep ends when it shows the date, also if somebody sets it meanwhile.
            case wall

            fileprivate var now: Instant {
                switch self {
                case .continuous: Instant.now
                case .suspending: Instant(nanoseconds: shim_monotonic_ns())
                case .wall: Instant(nanoseconds: shim_wall_ns())
                }
            }
        }

        /// An instant of a clock, in nanoseconds. Instants of clocks of different kinds have nothing to do with each other.
        public struct Instant: InstantProtocol, Sendable {
            /// Nanoseconds: for a clock of ``Kind/wall`` since 2001, for others from an origin that means nothing.
            public var nanoseconds: Int64
            /// The current instant of continuous clocks, by which timers go.
            static var now: Instant { Instant(nanoseconds: shim_elapsed_ns()) }
            init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }
            /// The instant at which a clock of ``Kind/wall`` shows `date`.
            public init(_ date: WallTime) { nanoseconds = date.nanoseconds }
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

        /// What the clock counts.
        public let kind: Kind

        /// The current instant.
        public var now: Instant { kind.now }

        /// One nanosecond.
        public var minimumResolution: Duration { .nanoseconds(1) }

        /// Sleeps until `deadline`, or up to `tolerance` longer.
        ///
        /// - Throws: `CancellationError` when the task is cancelled; ``RunLoopError/loopEnded`` when the loop's thread ends before.
        public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
            try Task.checkCancellation()
            let waiter = Waiter()
            let timer = makeTimer(until: deadline, waking: waiter)
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

        /// Makes a timer that is due at `deadline`, as far as that can be foreseen by the clock of timers. It goes on as long as this
        /// clock is not there yet: the system was suspended, or the wall clock has been set back.
        private func makeTimer(until deadline: Instant, waking waiter: Waiter) -> Timer {
            let timer = Timer(due: .now, interval: .seconds(86_400), repeats: true) { [self] timer in
                if now < deadline { return set(timer, to: deadline) }
                timer.invalidate()
                waiter.resume(with: .success(()))
            }
            if kind == .wall { shim_timer_follow_wall(timer.cfRunLoopTimer) }
            set(timer, to: deadline)
            return timer
        }

        private func set(_ timer: Timer, to deadline: Instant) {
            switch kind {
            case .continuous: timer.instant = max(deadline, .now)
            case .suspending:
                // In this order: if time passes in between, the timer comes too early, and is set again.
                let (foreseen, now) = (Instant.now, now)
                timer.instant = foreseen.advanced(byNanoseconds: deadline > now ? deadline.nanoseconds - now.nanoseconds : 0)
            case .wall: timer.CoreRunLoop::fireDate = WallTime(nanoseconds: deadline.nanoseconds)
            }
        }
    }

    /// The clock that sleeps with this loop's timers, and counts the time that passes. Any thread.
    public var clock: Clock { clock(.continuous) }

    /// The clock that sleeps with this loop's timers, and counts what `kind` says. Any thread.
    ///
    /// ```swift
    /// try await Task.sleep(for: .seconds(60), clock: loop.clock(.suspending))
    /// try await loop.clock(.wall).sleep(until: .init(.now + .seconds(3600)))
    /// ```
    public func clock(_ kind: Clock.Kind) -> Clock { Clock(loop: self, kind: kind) }
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
