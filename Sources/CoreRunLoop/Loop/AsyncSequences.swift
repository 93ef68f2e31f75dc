// SPDX-License-Identifier: Apache-2.0
//
// A loop's events as asynchronous sequences. Each iteration has a timer, observer or source of its own, which is invalidated when the
// iteration ends or its task is cancelled. The element arrives after the event: what must happen at the event itself is a closure's work.

public import CCoreRunLoop
import Synchronization

/// How ticks are handled that came due while nobody could take them.
public enum MissedTickPolicy: Hashable, Sendable, CaseIterable {
    /// One tick stands for all that were missed. A tick that is late because the loop was busy has the first missed date, and the next tick
    /// tells how many more were missed. A tick that nobody took in time is replaced by the next, which tells how many were missed.
    case collapse
    /// There is no late tick: after a time without ticks the next one comes on time, and tells how many were missed.
    case skip
    /// Every tick comes, the late ones in a burst.
    case all
}

extension RunLoop {
    /// Ticks of a loop's timer.
    public struct Ticks: AsyncSequence, Sendable {
        /// One tick.
        public struct Element: Hashable, Sendable {
            /// The wall clock's time when the tick was due.
            public let scheduled: WallTime
            /// How many ticks between the one before and this one were missed.
            public let missed: Int
        }
        /// Ticks do not fail.
        public typealias Failure = Never

        fileprivate let loop: RunLoop
        fileprivate let interval: Duration
        fileprivate let tolerance: Duration
        fileprivate let policy: MissedTickPolicy
        fileprivate let mode: Mode

        /// Begins ticking: the first tick is due one interval from now.
        public func makeAsyncIterator() -> Iterator { Iterator(self) }

        /// The instants of ticks, numbered from 1: whole nanoseconds, as timers count.
        private struct Series {
            let start = Clock.Instant.now
            let interval: Duration

            init(every interval: Duration) { self.interval = .nanoseconds(Swift.max(1, interval.inNanoseconds)) }

            func instant(of slot: Int) -> Clock.Instant { start.advanced(by: interval * slot) }

            /// The last slot that is not later than `instant`.
            func slot(at instant: Clock.Instant) -> Int { Int((instant.nanoseconds - start.nanoseconds) / interval.inNanoseconds) }

            /// The slot of a timer's date. The date may be off by some nanoseconds when the interval is months.
            func slot(near instant: Clock.Instant) -> Int { slot(at: instant.advanced(by: interval / 2)) }
        }

        /// The ticks of one iteration.
        public struct Iterator: AsyncIteratorProtocol {
            private struct Tick {
                let slot: Int
                let date: WallTime
            }
            /// The newest tick that nobody has taken. The ticks before it are known by their numbers.
            private var ticks: AsyncStream<Tick>.Iterator
            private let series: Series
            private let takesAll: Bool
            private var last = 0
            /// How far the ticks have come that are to be taken one by one.
            private var newest = 0

            fileprivate init(_ ticks: Ticks) {
                let (series, policy) = (Series(every: ticks.interval), ticks.policy)
                (self.series, takesAll) = (series, policy == .all)
                let (stream, continuation) = AsyncStream.makeStream(of: Tick.self, bufferingPolicy: .bufferingNewest(1))
                self.ticks = stream.makeAsyncIterator()
                let timer = Timer(due: series.instant(of: 1), interval: series.interval, repeats: true) { timer in
                    let (due, now) = (timer.instant, Clock.Instant.now)
                    if policy == .skip && due.duration(to: now) >= series.interval { return }
                    // A firing stands for the periods that were missed, up to now.
                    let slot = policy == .all ? Swift.max(series.slot(near: due), series.slot(at: now)) : series.slot(near: due)
                    continuation.yield(Tick(slot: slot, date: series.instant(of: slot).date))
                }
                timer.tolerance = ticks.tolerance
                ticks.loop.feed(continuation) { timer.invalidate() }
                ticks.loop.add(timer, forMode: ticks.mode)
            }

            /// The next tick; `nil` when the task is cancelled or the loop's thread has ended.
            public mutating func next() async -> Element? { await next(isolation: nil) }

            /// The next tick; `nil` when the task is cancelled or the loop's thread has ended.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
                if takesAll { return await nextOfAll(isolation: actor) }
                guard let tick = await ticks.next(isolation: actor) else { return nil }
                defer { last = tick.slot }
                return Element(scheduled: tick.date, missed: Swift.max(0, tick.slot - last - 1))
            }

            private mutating func nextOfAll(isolation actor: isolated (any Actor)?) async -> Element? {
                while last >= newest {
                    guard let tick = await ticks.next(isolation: actor) else { return nil }
                    newest = tick.slot
                }
                if Task.isCancelled { return nil }
                last += 1
                return Element(scheduled: series.instant(of: last).date, missed: 0)
            }
        }
    }

    /// Ticks every `interval` of the monotonic clock's time, while the loop runs in `mode`. Any thread.
    ///
    /// ```swift
    /// for await tick in try loop.ticks(every: .seconds(1)) { print(tick.scheduled, tick.missed) }
    /// ```
    ///
    /// - Parameters:
    ///   - interval: More than zero.
    ///   - tolerance: How late a tick may be so that the loop can wake once for several timers.
    ///   - policy: How missed ticks are handled.
    ///   - mode: Where the timer is added.
    /// - Throws: ``RunLoopError/invalidDuration(_:)``.
    public func ticks(
        every interval: Duration, tolerance: Duration = .zero, policy: MissedTickPolicy = .collapse, in mode: Mode = .common
    ) throws(RunLoopError) -> Ticks {
        if interval <= .zero { throw .invalidDuration(interval) }
        if tolerance < .zero { throw .invalidDuration(tolerance) }
        return Ticks(loop: self, interval: interval, tolerance: tolerance, policy: policy, mode: mode)
    }

    /// The points that the loop's passes come to, reported afterwards. Any thread.
    ///
    /// The observer is added now, which does not wake the loop. The newest 256 activities that nobody has taken yet are kept.
    ///
    /// - Parameters:
    ///   - activities: The points to report.
    ///   - mode: The mode that the observer is added to.
    public func activities(_ activities: Activity, in mode: Mode = .common) -> AsyncStream<Activity> {
        let (stream, continuation) = AsyncStream.makeStream(of: Activity.self, bufferingPolicy: .bufferingNewest(256))
        let observer = Observer(activities: activities) { _, activity in continuation.yield(activity) }
        feed(continuation) { observer.invalidate() }
        add(observer, forMode: mode)
        return stream
    }

    /// The signals of the given numbers that the process receives, while the loop runs in `mode`. Any thread.
    ///
    /// The signals are blocked in the calling thread, and in others once they arrive there: see ``SignalSource``.
    /// Every signal that the loop has come to is kept until it is taken. Equal signals that still wait for the loop are one.
    ///
    /// - Throws: ``RunLoopError/invalidSignal(_:)``.
    public func signals(_ numbers: [Int32], in mode: Mode = .common) throws(RunLoopError) -> AsyncStream<SignalSource.Signal> {
        let (stream, continuation) = AsyncStream.makeStream(of: SignalSource.Signal.self)
        var sources: [SignalSource] = []
        for number in numbers {
            let source = try SignalSource(signal: number) { signal in continuation.yield(signal) }
            sources.append(source)
        }
        feed(continuation) { [sources] in for source in sources { source.invalidate() } }
        for source in sources { add(source, forMode: mode) }
        return stream
    }

    /// When a descriptor is ready, each time that it is asked for.
    public struct DescriptorReadiness: AsyncSequence, Sendable {
        /// The kinds of readiness of the descriptor.
        public typealias Element = DescriptorSource.Readiness
        /// Waiting does not fail.
        public typealias Failure = Never

        fileprivate let loop: RunLoop
        fileprivate let descriptor: Int32
        fileprivate let interest: DescriptorSource.Readiness
        fileprivate let mode: Mode

        /// Begins watching.
        public func makeAsyncIterator() -> Iterator { Iterator(self) }

        /// One iteration. The descriptor is watched only while a call of `next` waits.
        public struct Iterator: AsyncIteratorProtocol {
            private var events: AsyncStream<Element>.Iterator
            private let source: DescriptorSource?
            private let interest: DescriptorSource.Readiness

            fileprivate init(_ readiness: DescriptorReadiness) {
                let (stream, continuation) = AsyncStream.makeStream(of: Element.self)
                interest = readiness.interest
                events = stream.makeAsyncIterator()
                source = try? DescriptorSource(descriptor: readiness.descriptor, interest: []) { event in
                    event.pause()
                    continuation.yield(event.readiness)
                }
                guard let source else {
                    continuation.finish()
                    return
                }
                readiness.loop.feed(continuation) { source.invalidate() }
                readiness.loop.add(source, forMode: readiness.mode)
            }

            /// Waits until the descriptor is ready; `nil` when it was not open, the task is cancelled, or the loop's thread has ended.
            public mutating func next() async -> Element? { await next(isolation: nil) }

            /// Waits until the descriptor is ready; `nil` when it was not open, the task is cancelled, or the loop's thread has ended.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
                source?.interest = interest
                return await events.next(isolation: actor)
            }
        }
    }

    /// Waits for a descriptor, while the loop runs in `mode`. Any thread.
    ///
    /// - Throws: ``RunLoopError/invalidDescriptor(_:)`` when it is not open.
    public func readiness(
        of descriptor: Int32, for interest: DescriptorSource.Readiness = .readable, in mode: Mode = .common
    ) throws(RunLoopError) -> DescriptorReadiness {
        _ = try DescriptorSource(descriptor: descriptor, interest: []) { _ in }
        return DescriptorReadiness(loop: self, descriptor: descriptor, interest: interest, mode: mode)
    }
}
