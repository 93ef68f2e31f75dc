// SPDX-License-Identifier: Apache-2.0
//
// As with observers, the C timer and the Swift object are joined, and the C timer's info is the body. The body's closure and user info
// are dropped when the timer is invalidated.

public import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A closure that a run loop calls at a date, or at every interval after one.
///
/// ```swift
/// let timer = Timer(timeInterval: .milliseconds(500), repeats: true) { timer in print("every half second") }
/// timer.tolerance = .milliseconds(50)
/// RunLoop.main.add(timer, forMode: .common)
/// ```
///
/// A repeating timer fires at whole intervals after its first date. A late firing does not move the later ones, and all missed periods are
/// one firing. A timer never fires inside its own closure. It fires only while its loop runs in one of its modes, and is no real-time
/// mechanism.
///
/// The loop keeps the timer, and the timer its closure, until it is invalidated: ``invalidate()``, or the firing of a timer that does not
/// repeat. A closure that captures what owns the timer therefore keeps both alive; ``Timer/Scheduled`` is a registration that ends with
/// its owner.
public final class Timer: Sendable {
    /// The C object of this timer.
    public let cfRunLoopTimer: CFRunLoopTimer
    private let joined: JoinedObjects
    private let body: Body

    /// The closure, and the way back to the Swift object, which lives longer. Both are written before the timer is in a loop. Afterwards
    /// they are written by the loop's thread, or when no call is under way or can come: the C timer does not release its info earlier.
    /// `userInfo` has a lock because any thread may fire the timer by hand.
    @safe private final class Body: Sendable {
        @safe nonisolated(unsafe) private var block: (@Sendable (Timer) -> Void)?
        private let userInfo: Mutex<(any Sendable)?>
        @safe nonisolated(unsafe) private var timer: Unmanaged<Timer>?
        private let repeats: Bool
        /// Whether a timer that fires once has fired, by its loop or by hand.
        private let hasFired = Atomic(false)

        /// A closure in a structure leaves a generic function as it is, without a block of memory.
        private struct Dropped {
            let block: (@Sendable (Timer) -> Void)?
            let userInfo: (any Sendable)?
        }

        init(_ block: @escaping @Sendable (Timer) -> Void, _ userInfo: (any Sendable)?, repeats: Bool) {
            self.repeats = repeats
            self.block = block
            self.userInfo = Mutex(userInfo)
        }

        var info: (any Sendable)? { userInfo.withLock { $0 } }

        /// Once, before the timer is in a loop.
        func belong(to timer: Timer) { unsafe self.timer = .passUnretained(timer) }

        /// Whether the caller may call the closure.
        private func mayFire() -> Bool { repeats || !hasFired.exchange(true, ordering: .relaxed) }

        /// The loop calls, with a reference to the joined objects.
        func fire() {
            if mayFire(), let block, let timer { unsafe timer._withUnsafeGuaranteedRef { block($0) } }
        }

        /// False if it was not for the caller to fire.
        func fireByHand(_ timer: Timer) -> Bool {
            if !mayFire() { return false }
            let current = userInfo.withLock { _ -> (@Sendable (Timer) -> Void)? in block }
            current?(timer)
            return true
        }

        func clear() {
            let dropped = userInfo.withLock { userInfo in
                defer { (block, userInfo) = (nil, nil) }
                return Dropped(block: block, userInfo: userInfo)
            }
            withExtendedLifetime(dropped) {}  // freed here, outside the lock
        }
    }

    private init(_ timer: CFRunLoopTimer, _ body: Body) {
        cfRunLoopTimer = timer
        self.body = body
        joined = JoinedObjects(of: timer)
        body.belong(to: self)
        joined.join(self)
    }

    deinit { joined.part() }

    /// The interval that replaces one of zero or less. Every other interval is kept.
    private static let intervalInsteadOfNone = Duration.microseconds(100)

    private static func possible(_ interval: Duration) -> Duration { interval > .zero ? interval : intervalInsteadOfNone }

    /// Makes a timer without a date.
    private convenience init(
        interval: Duration, repeats: Bool, userInfo: (any Sendable)?, block: @escaping @Sendable (Timer) -> Void
    ) {
        let body = Body(block, userInfo, repeats: repeats)
        let seconds = repeats ? Self.possible(interval).inSeconds : 0
        let timer = unsafe CRLRunLoopTimerCreateWithFunction(
            nil, .nan, seconds, 0, 0,
            { _, info in unsafe withBorrowed(Body.self, from: info) { $0.fire() } }, retainedInfo(body),
            { info in
                unsafe object(Body.self, from: info).clear()
                unsafe releaseInfo(info)
            })
        self.init(require(timer, "Timer"), body)
    }

    /// Makes a timer that first fires at exactly this instant of the loops' clock, however the wall clock is set.
    convenience init(
        due instant: RunLoop.Clock.Instant, interval: Duration = .zero, repeats: Bool = false, userInfo: (any Sendable)? = nil,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        self.init(interval: interval, repeats: repeats, userInfo: userInfo, block: block)
        shim_timer_set_instant(cfRunLoopTimer, instant.nanoseconds)
    }

    // MARK: Creation

    /// Makes a timer that first fires at `date`, and is in no loop yet.
    ///
    /// - Parameters:
    ///   - date: A date in the past is due as soon as a loop watches the timer, and the intervals count from its making.
    ///   - interval: Zero or less becomes 0.1 ms. Without a meaning when the timer does not repeat.
    ///   - repeats: `false` makes a timer that is invalid after it has fired once.
    ///   - userInfo: Anything; see ``userInfo``.
    ///   - block: Called on the thread of the loop that the timer is added to.
    public convenience init(
        fire date: WallTime, interval: Duration, repeats: Bool, userInfo: (any Sendable)? = nil,
        block: @escaping @isolated(any) @Sendable (Timer) -> Void
    ) {
        self.init(interval: interval, repeats: repeats, userInfo: userInfo, block: onActorOf(block))
        set(date)
    }

    /// Makes a timer that first fires `interval` from now, and is in no loop yet.
    ///
    /// - Parameters:
    ///   - interval: Zero or less becomes 0.1 ms.
    ///   - repeats: `false` makes a timer that is invalid after it has fired once.
    ///   - userInfo: Anything; see ``userInfo``.
    ///   - block: Called on the thread of the loop that the timer is added to.
    public convenience init(
        timeInterval interval: Duration, repeats: Bool, userInfo: (any Sendable)? = nil,
        block: @escaping @isolated(any) @Sendable (Timer) -> Void
    ) {
        let first = RunLoop.Clock.Instant.now.advanced(by: Self.possible(interval))
        self.init(due: first, interval: interval, repeats: repeats, userInfo: userInfo, block: onActorOf(block))
    }

    // MARK: Use

    /// Calls the closure now, on this thread. A repeating timer's dates stay as they are; one that fires once is then invalid.
    ///
    /// An invalid timer does nothing. A timer that fires once does nothing while it is firing. Any thread may fire a timer whose closure is
    /// `Sendable`; an actor's is sent to the actor, unless this thread is in its isolation. The closure of `scheduledTimer` belongs to the
    /// thread that scheduled it: on another thread this call stops the process with a message.
    public func fire() {
        guard isValid, body.fireByHand(self) else { return }
        if !CFRunLoopTimerDoesRepeat(cfRunLoopTimer) { invalidate() }
    }

    /// The date of the next firing; in the timer's closure the date that has just come. Setting it counts the intervals from the new date,
    /// or from now if the date has passed. Any thread.
    ///
    /// An invalid timer has no date: ``WallTime/distantPast``.
    ///
    /// The corresponding C functions are `CFRunLoopTimerGetNextFireDate` and `CFRunLoopTimerSetNextFireDate`.
    @_disfavoredOverload
    public var fireDate: WallTime {
        get { WallTime(shim_timer_date(cfRunLoopTimer)) ?? .distantPast }
        set { set(newValue) }
    }

    private func set(_ date: WallTime) {
        shim_timer_set_date(cfRunLoopTimer, date.timeIntervalSinceReferenceDate, date.instant.nanoseconds)
    }

    /// The instant of the next firing; in the timer's closure the instant that has just come. Any thread.
    var instant: RunLoop.Clock.Instant {
        get { RunLoop.Clock.Instant(nanoseconds: shim_timer_instant(cfRunLoopTimer)) }
        set { shim_timer_set_instant(cfRunLoopTimer, newValue.nanoseconds) }
    }

    /// The interval of a repeating timer, to the nanosecond and 200 years at most; zero when it fires once. Any thread.
    @_disfavoredOverload
    public var timeInterval: Duration { Duration(clampedSeconds: CFRunLoopTimerGetInterval(cfRunLoopTimer)) }

    /// How much later than its date it may fire, so that the loop can wake once for several timers. Any thread.
    ///
    /// At first zero. A negative one becomes zero; of a repeating timer at most half of the interval is taken. Later dates are not moved
    /// by it. A tenth of the interval is a good choice.
    @_disfavoredOverload
    public var tolerance: Duration {
        get { Duration(clampedSeconds: CFRunLoopTimerGetTolerance(cfRunLoopTimer)) }
        set { CFRunLoopTimerSetTolerance(cfRunLoopTimer, newValue.inSeconds) }
    }

    /// The value passed at creation; `nil` once the timer is invalid. Any thread.
    public var userInfo: (any Sendable)? { body.info }

    /// Whether the timer may still fire: also true in the closure of a timer that fires once. Any thread.
    public var isValid: Bool { CFRunLoopTimerIsValid(cfRunLoopTimer) }

    /// Whether the timer fires more than once. Any thread.
    public var repeats: Bool { CFRunLoopTimerDoesRepeat(cfRunLoopTimer) }

    /// Takes the timer out of its loop for good, and drops its closure and user info. Any thread, also in the closure.
    ///
    /// After a call on the loop's own thread the closure is not called again. After a call on another thread, at most a call that is under
    /// way still ends.
    ///
    /// The corresponding C function is `CFRunLoopTimerInvalidate`.
    public func invalidate() { CFRunLoopTimerInvalidate(cfRunLoopTimer) }

    /// A timer that ends with its owner: dropping the registration invalidates it.
    public struct Scheduled: ~Copyable, Sendable {
        /// The timer.
        public let timer: Timer
        fileprivate init(_ timer: Timer) { self.timer = timer }
        /// Ends it now; the registration may stay where it is, as in a property. Once more has no effect. Any thread.
        public func cancel() { timer.invalidate() }
        deinit { timer.invalidate() }
    }
}

extension Timer: Hashable {
    /// Whether both are the same object.
    public static func == (first: Timer, second: Timer) -> Bool { first === second }
    /// Feeds the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension RunLoop {
    /// Adds `timer` to `mode`. Any thread; a sleeping loop takes notice by itself.
    ///
    /// Nothing happens when it is there, is in another loop, or is invalid. A timer may be in several modes of one loop.
    ///
    /// The corresponding C function is `CFRunLoopAddTimer`.
    public func add(_ timer: Timer, forMode mode: Mode) { CFRunLoopAddTimer(loop, timer.cfRunLoopTimer, mode.name) }

    /// Takes `timer` out of `mode`; it stays valid. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopRemoveTimer`.
    public func remove(_ timer: Timer, forMode mode: Mode) { CFRunLoopRemoveTimer(loop, timer.cfRunLoopTimer, mode.name) }

    /// Whether `timer` is in `mode`. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopContainsTimer`.
    public func contains(_ timer: Timer, in mode: Mode) -> Bool { CFRunLoopContainsTimer(loop, timer.cfRunLoopTimer, mode.name) }

    /// Adds a timer that is invalidated when the registration that is returned goes away. Any thread.
    ///
    /// - Parameters:
    ///   - interval: Zero or less becomes 0.1 ms.
    ///   - repeats: Whether the timer fires more than once.
    ///   - tolerance: See ``Timer/tolerance``.
    ///   - mode: Where it is added.
    ///   - block: Called on the loop's thread.
    public func schedule(
        every interval: Duration, repeats: Bool = true, tolerance: Duration = .zero, in mode: Mode = .common,
        _ block: @escaping @isolated(any) @Sendable (Timer) -> Void
    ) -> Timer.Scheduled {
        let timer = Timer(timeInterval: interval, repeats: repeats, block: block)
        timer.tolerance = tolerance
        add(timer, forMode: mode)
        return Timer.Scheduled(timer)
    }
}
