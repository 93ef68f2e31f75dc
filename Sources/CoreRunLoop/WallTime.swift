// SPDX-License-Identifier: Apache-2.0

import CCoreRunLoop

/// A date: seconds since the first instant of 2001, UTC, as `CFAbsoluteTime` counts.
///
/// It is what run loops' dates are without Foundation; `CoreRunLoopFoundation` has the same calls with `Date`. Durations are Swift's
/// `Duration`.
public struct WallTime: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Seconds since the first instant of 2001, UTC. What is not a number becomes ``distantFuture``: a date that never comes.
    public var timeIntervalSinceReferenceDate: Double {
        didSet { self = WallTime(timeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate) }
    }

    /// Makes a date from seconds since 2001. What is not a number becomes ``distantFuture``: a date that never comes.
    public init(timeIntervalSinceReferenceDate seconds: Double) {
        timeIntervalSinceReferenceDate = seconds.isNaN ? Self.distantFuture.timeIntervalSinceReferenceDate : seconds
    }

    /// Makes the date that is `seconds` from now; before now if negative.
    public init(timeIntervalSinceNow seconds: Double) {
        self.init(timeIntervalSinceReferenceDate: CFAbsoluteTimeGetCurrent() + seconds)
    }

    /// The current date.
    ///
    /// The corresponding C function is `CFAbsoluteTimeGetCurrent`.
    public static var now: WallTime { WallTime(timeIntervalSinceReferenceDate: CFAbsoluteTimeGetCurrent()) }

    /// A date in the year 4001: later than any that a program waits for.
    public static let distantFuture = WallTime(verbatim: 63_113_904_000)

    /// A date of the first year: earlier than any that a program waits for.
    public static let distantPast = WallTime(verbatim: -63_114_076_800)

    private init(verbatim seconds: Double) { timeIntervalSinceReferenceDate = seconds }

    /// How long from now it is until this date; negative when it has passed.
    public var timeIntervalSinceNow: Double { timeIntervalSinceReferenceDate - CFAbsoluteTimeGetCurrent() }

    /// The date `duration` later. One that is later than all that a program waits for never comes.
    public static func + (date: WallTime, duration: Duration) -> WallTime {
        WallTime(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate + duration.inSeconds)
    }

    /// The date `duration` earlier.
    public static func - (date: WallTime, duration: Duration) -> WallTime {
        WallTime(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate - duration.inSeconds)
    }

    /// How long it is from `other` to `date`; 200 years at most.
    public static func - (date: WallTime, other: WallTime) -> Duration {
        Duration(clampedSeconds: date.timeIntervalSinceReferenceDate - other.timeIntervalSinceReferenceDate)
    }

    /// Moves the date on by `duration`.
    public static func += (date: inout WallTime, duration: Duration) { date = date + duration }

    /// Whether `first` is earlier.
    public static func < (first: WallTime, second: WallTime) -> Bool {
        first.timeIntervalSinceReferenceDate < second.timeIntervalSinceReferenceDate
    }

    /// The seconds since 2001, as text.
    public var description: String { "\(timeIntervalSinceReferenceDate) s since 2001" }
}

extension Duration {
    /// As a number of seconds.
    ///
    /// From the two halves: the divisions that would give the seconds and the rest take longer than many a call that this is for.
    package var inSeconds: Double {
        let attoseconds = attoseconds
        let high = Int64(truncatingIfNeeded: attoseconds >> 64)
        return (Double(high) * 0x1p64 + Double(UInt64(truncatingIfNeeded: attoseconds))) / 1e18
    }

    /// Whether it is below zero, by any amount.
    package var isNegative: Bool { Int64(truncatingIfNeeded: attoseconds >> 64) < 0 }

    /// As whole nanoseconds, held within what 64 bits can say.
    package var inNanoseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000) }

    /// A number of seconds as a duration, to the nearest nanosecond; what no duration can hold becomes one of 200 years, what is not a
    /// number none.
    package init(clampedSeconds seconds: Double) {
        let limit = 6_311_433_600.0
        self = seconds.isNaN ? .zero : .nanoseconds(Int64((min(max(seconds, -limit), limit) * 1e9).rounded()))
    }
}
