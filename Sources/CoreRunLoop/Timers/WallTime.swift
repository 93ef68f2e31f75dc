// SPDX-License-Identifier: Apache-2.0

import CoreRunLoopShims

/// A date: seconds since the first instant of 2001, UTC, as `CFAbsoluteTime` counts.
///
/// The dates of run loops without Foundation. `CoreRunLoopFoundation` has the same calls with `Date`. Durations are Swift's `Duration`.
///
/// Today's dates in seconds are some 120 ns apart. A `WallTime` from ``now`` also knows the nanoseconds, even after it has been moved by a
/// duration. The nanoseconds count in durations between dates, and in dates that are given to a loop. Comparing dates uses only the
/// seconds.
public struct WallTime: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The number next to the date.
    private let seconds: Double
    /// The difference between the date and `seconds`, too small for a number of that size to hold.
    private let rest: Double

    /// Seconds since the first instant of 2001, UTC. Setting NaN gives ``distantFuture``: a date that never comes.
    public var timeIntervalSinceReferenceDate: Double {
        get { seconds }
        set { self = WallTime(timeIntervalSinceReferenceDate: newValue) }
    }

    /// Makes a date from seconds since 2001. NaN becomes ``distantFuture``: a date that never comes.
    public init(timeIntervalSinceReferenceDate seconds: Double) {
        self.init(seconds.isNaN ? Self.distantFuture.seconds : seconds, rest: 0)
    }

    private init(_ seconds: Double, rest: Double) {
        self.seconds = seconds
        self.rest = rest
    }

    /// Makes a date from nanoseconds since 2001.
    init(nanoseconds: Int64) {
        let (whole, part) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        self = WallTime(Double(whole), rest: 0).moved(by: Double(part) * 1e-9)
    }

    /// Nanoseconds since 2001, clamped to what 64 bits hold.
    var nanoseconds: Int64 {
        let whole = seconds.rounded(.down)
        if whole.magnitude >= 9e9 { return seconds < 0 ? .min : .max }
        return Int64(whole) * 1_000_000_000 + Int64(((seconds - whole + rest) * 1e9).rounded())
    }

    /// Takes a timer's date: its number, and the nanoseconds where they are those of its instant. They are not if the date was past when it
    /// was given, or the wall clock has been set since.
    init?(_ date: shim_timer_date) {
        if !date.exists { return nil }
        let exact = RunLoop.Clock.Instant(nanoseconds: date.instant_ns).date
        let known = WallTime(timeIntervalSinceReferenceDate: date.seconds)
        self = known == exact ? exact : known
    }

    /// Makes the date that is `seconds` from now; before now if negative.
    public init(timeIntervalSinceNow seconds: Double) { self = WallTime.now.moved(by: seconds) }

    /// The current date.
    ///
    /// The corresponding C function is `CFAbsoluteTimeGetCurrent`.
    public static var now: WallTime { WallTime(nanoseconds: shim_wall_ns()) }

    /// A date in the year 4001: later than any that a program waits for.
    public static let distantFuture = WallTime(63_113_904_000, rest: 0)

    /// A date of the first year: earlier than any that a program waits for.
    public static let distantPast = WallTime(-63_114_076_800, rest: 0)

    /// The seconds from now until this date; negative when the date has passed.
    public var timeIntervalSinceNow: Double { secondsSince(.now) }

    /// The date's instant by the clock of the loops' timers; at the earliest now.
    var instant: RunLoop.Clock.Instant { RunLoop.Clock.Instant(nanoseconds: shim_instant_of_date(seconds, rest)) }

    private func secondsSince(_ other: WallTime) -> Double { (seconds - other.seconds) + (rest - other.rest) }

    /// Adds a number of seconds, and keeps the part that the sum's rounding loses.
    private func moved(by distance: Double) -> WallTime {
        let sum = seconds + distance
        if !sum.isFinite { return WallTime(timeIntervalSinceReferenceDate: sum) }
        let added = sum - seconds
        let left = rest + (seconds - (sum - added)) + (distance - added)
        let nearest = sum + left
        return WallTime(nearest, rest: left - (nearest - sum))
    }

    /// The date `duration` later. A date that is later than any that a program waits for never comes.
    public static func + (date: WallTime, duration: Duration) -> WallTime { date.moved(by: duration.inSeconds) }

    /// The date `duration` earlier.
    public static func - (date: WallTime, duration: Duration) -> WallTime { date.moved(by: -duration.inSeconds) }

    /// How long it is from `other` to `date`; 200 years at most.
    public static func - (date: WallTime, other: WallTime) -> Duration { Duration(clampedSeconds: date.secondsSince(other)) }

    /// Moves the date on by `duration`.
    public static func += (date: inout WallTime, duration: Duration) { date = date + duration }

    /// Whether both are the same number of seconds.
    public static func == (first: WallTime, second: WallTime) -> Bool { first.seconds == second.seconds }

    /// Whether `first` is earlier, by the number of seconds.
    public static func < (first: WallTime, second: WallTime) -> Bool { first.seconds < second.seconds }

    /// Feeds the number of seconds.
    public func hash(into hasher: inout Hasher) { hasher.combine(seconds) }

    /// The date and time in UTC, to the microsecond: `2001-01-01 00:00:00.000000 +0000`.
    public var description: String {
        guard seconds.magnitude < 1e12 else { return "\(seconds) s since 2001" }
        let whole = seconds.rounded(.down)
        let microseconds = Int64(whole) * 1_000_000 + Int64(((seconds - whole + rest) * 1e6).rounded())
        return unsafe String(unsafeUninitializedCapacity: 64) { buffer in
            unsafe buffer.withMemoryRebound(to: CChar.self) { unsafe shim_date_text(microseconds, $0.baseAddress!, $0.count) }
        }
    }
}

extension Duration {
    /// The duration as a number of seconds.
    ///
    /// From the two halves: the divisions that would give the seconds and the rest take longer than many a call that this is for.
    package var inSeconds: Double {
        let attoseconds = attoseconds
        let high = Int64(truncatingIfNeeded: attoseconds >> 64)
        return (Double(high) * 0x1p64 + Double(UInt64(truncatingIfNeeded: attoseconds))) / 1e18
    }

    /// Whether the duration is below zero, by any amount.
    package var isNegative: Bool { Int64(truncatingIfNeeded: attoseconds >> 64) < 0 }

    /// The duration in whole nanoseconds, clamped to 64 bits.
    package var inNanoseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000) }

    /// A number of seconds as a duration, to the nearest nanosecond. A number that is too large for a duration becomes 200 years, and NaN
    /// becomes zero.
    package init(clampedSeconds seconds: Double) {
        let limit = 6_311_433_600.0
        self = seconds.isNaN ? .zero : .nanoseconds(Int64((min(max(seconds, -limit), limit) * 1e9).rounded()))
    }
}
