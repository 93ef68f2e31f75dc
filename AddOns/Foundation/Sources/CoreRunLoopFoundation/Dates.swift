// SPDX-License-Identifier: Apache-2.0
//
// Cocoa's calls with Foundation's Date and TimeInterval. Parameters that are dates are disfavoured, so that `.now` and `.distantFuture`
// mean a WallTime where the type is not given. For results and properties the overlay's own are disfavoured, so that they are read as
// Foundation's types. A file that imports both Foundation and CoreRunLoop sees some names twice: RunLoop, Timer, Thread. It tells them
// apart by the module, `CoreRunLoop::RunLoop`, or by the names with NS.

public import CoreRunLoop
public import Foundation

extension WallTime {
    /// Makes a wall time for the same date.
    public init(_ date: Date) { self.init(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate) }
}

extension Date {
    /// Makes Foundation's value for the same date.
    public init(_ time: WallTime) { self.init(timeIntervalSinceReferenceDate: time.timeIntervalSinceReferenceDate) }
}

extension CoreRunLoop::RunLoop {
    /// Runs in the default mode until `limit`; see `run(until:)` with a `WallTime`.
    @available(*, noasync)
    @_disfavoredOverload
    public func run(until limit: Date) { run(until: WallTime(limit)) }

    /// Runs once in `mode`; see `run(mode:before:)` with a `WallTime`.
    @available(*, noasync)
    @discardableResult
    public func run(mode: Mode, before limit: Date) -> Bool { run(mode: mode, before: WallTime(limit)) }

    /// Runs once in `mode`, without an answer.
    @available(*, noasync)
    @_disfavoredOverload
    public func acceptInput(forMode mode: Mode, before limit: Date) { acceptInput(forMode: mode, before: WallTime(limit)) }

    /// Runs once in the mode of this name, as Foundation spells it.
    @available(*, noasync)
    @_disfavoredOverload
    public func acceptInput(forMode mode: String, before limit: Date) { acceptInput(forMode: Mode(mode), before: limit) }

    /// Fires the timers that are due in `mode`, and returns the date of its next timer. See `limitDate(forMode:)` with a `WallTime`.
    @available(*, noasync)
    @discardableResult
    public func limitDate(forMode mode: Mode) -> Date? {
        self.CoreRunLoop::limitDate(forMode: mode).map { Date($0) }
    }
}

extension CoreRunLoop::Timer {
    /// Makes a timer that first fires `interval` seconds from now, and is in no loop yet.
    ///
    /// Zero, a negative number and NaN become 0.1 ms.
    @preconcurrency
    public convenience init(
        timeInterval interval: TimeInterval, repeats: Bool, block: @escaping @isolated(any) @Sendable (CoreRunLoop::Timer) -> Void
    ) {
        self.init(timeInterval: Duration(clampedSeconds: interval), repeats: repeats, block: block)
    }

    /// Makes a timer that first fires at `date`, and is in no loop yet.
    @preconcurrency
    public convenience init(
        fire date: Date, interval: TimeInterval, repeats: Bool, block: @escaping @isolated(any) @Sendable (CoreRunLoop::Timer) -> Void
    ) {
        self.init(fire: WallTime(date), interval: Duration(clampedSeconds: interval), repeats: repeats, block: block)
    }

    /// Makes a timer that calls a method of `target` that has no parameter; it is in no loop yet.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        timeInterval interval: TimeInterval, target: Target, selector action: @escaping @Sendable (Target) -> @isolated(any) () -> Void,
        userInfo: (any Sendable)?, repeats: Bool
    ) {
        self.init(
            timeInterval: Duration(clampedSeconds: interval), target: target, selector: action, userInfo: userInfo, repeats: repeats)
    }

    /// Makes a timer that calls a method of `target` with the timer; it is in no loop yet.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        timeInterval interval: TimeInterval, target: Target,
        selector action: @escaping @Sendable (Target) -> @isolated(any) (CoreRunLoop::Timer) -> Void, userInfo: (any Sendable)?,
        repeats: Bool
    ) {
        self.init(
            timeInterval: Duration(clampedSeconds: interval), target: target, selector: action, userInfo: userInfo, repeats: repeats)
    }

    /// Makes a timer that first fires at `date` and calls a method of `target` with the timer; it is in no loop yet.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        fireAt date: Date, interval: TimeInterval, target: Target,
        selector action: @escaping @Sendable (Target) -> @isolated(any) (CoreRunLoop::Timer) -> Void, userInfo: (any Sendable)?,
        repeats: Bool
    ) {
        self.init(
            fireAt: WallTime(date), interval: Duration(clampedSeconds: interval), target: target, selector: action, userInfo: userInfo,
            repeats: repeats)
    }

    /// Makes a timer that first fires at `date` and calls a method of `target` that has no parameter; it is in no loop yet.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        fireAt date: Date, interval: TimeInterval, target: Target,
        selector action: @escaping @Sendable (Target) -> @isolated(any) () -> Void, userInfo: (any Sendable)?, repeats: Bool
    ) {
        self.init(
            fireAt: WallTime(date), interval: Duration(clampedSeconds: interval), target: target, selector: action, userInfo: userInfo,
            repeats: repeats)
    }

    /// Makes a timer and adds it to the calling thread's loop in the default mode.
    ///
    /// As on Darwin, an asynchronous function may call this. Its actor must have a thread that runs a loop: the main actor, or an actor of
    /// a loop (`RunLoopActor`). The thread of any other task runs no loop, and its timer never fires.
    @discardableResult
    public static func scheduledTimer(
        withTimeInterval interval: TimeInterval, repeats: Bool, block: @escaping @isolated(any) (CoreRunLoop::Timer) -> Void
    ) -> CoreRunLoop::Timer {
        scheduledTimer(withTimeInterval: Duration(clampedSeconds: interval), repeats: repeats, block: block)
    }

    /// Makes a timer that calls a method of `target` that has no parameter, and adds it to the calling thread's loop in the default mode.
    @discardableResult
    public static func scheduledTimer<Target: AnyObject>(
        timeInterval interval: TimeInterval, target: Target, selector action: @escaping (Target) -> @isolated(any) () -> Void,
        userInfo: (any Sendable)?, repeats: Bool
    ) -> CoreRunLoop::Timer {
        scheduledTimer(
            timeInterval: Duration(clampedSeconds: interval), target: target, selector: action, userInfo: userInfo, repeats: repeats)
    }

    /// Makes a timer that calls a method of `target` with the timer, and adds it to the calling thread's loop in the default mode.
    @discardableResult
    public static func scheduledTimer<Target: AnyObject>(
        timeInterval interval: TimeInterval, target: Target,
        selector action: @escaping (Target) -> @isolated(any) (CoreRunLoop::Timer) -> Void,
        userInfo: (any Sendable)?, repeats: Bool
    ) -> CoreRunLoop::Timer {
        scheduledTimer(
            timeInterval: Duration(clampedSeconds: interval), target: target, selector: action, userInfo: userInfo, repeats: repeats)
    }

    /// When it fires next, as Foundation has dates.
    public var fireDate: Date {
        get { Date(self.CoreRunLoop::fireDate) }
        set { self.CoreRunLoop::fireDate = WallTime(newValue) }
    }

    /// The interval of a repeating timer in seconds; zero when it fires once.
    public var timeInterval: TimeInterval { self.CoreRunLoop::timeInterval.inSeconds }

    /// How many seconds later than its date it may fire.
    public var tolerance: TimeInterval {
        get { self.CoreRunLoop::tolerance.inSeconds }
        set { self.CoreRunLoop::tolerance = Duration(clampedSeconds: newValue) }
    }

    /// The next fire date by another name.
    public var date: Date {
        get { fireDate }
        set { fireDate = newValue }
    }
}
