// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import CoreRunLoopTesting
import Testing

@Suite struct `The text of a date` {
    @Test(arguments: [
        (0.0, "2001-01-01 00:00:00.000000 +0000"), (-0.5, "2000-12-31 23:59:59.500000 +0000"), (0.57, "2001-01-01 00:00:00.570000 +0000"),
        (0.9999999, "2001-01-01 00:00:01.000000 +0000"), (86400 * 58 + 3661.25, "2001-02-28 01:01:01.250000 +0000"),
        (94694400, "2004-01-02 00:00:00.000000 +0000"), (1e13, "10000000000000.0 s since 2001"), (.infinity, "inf s since 2001"),
    ]) func `has the time in UTC`(seconds: Double, text: String) {
        #expect("\(WallTime(timeIntervalSinceReferenceDate: seconds))" == text)
    }

    @Test func `is there for the earliest and the latest`() {
        #expect("\(WallTime.distantFuture)" == "4001-01-01 00:00:00.000000 +0000")
        #expect("\(WallTime.distantPast)" == "0000-12-30 00:00:00.000000 +0000")  // the first of year 1 in the Julian calendar
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A duration` {
    @Test(arguments: [
        (Duration.zero, 0), (.seconds(1), 1), (.seconds(-1), -1), (.milliseconds(100), 0.1), (.milliseconds(-1500), -1.5),
        (.microseconds(1), 1e-6), (.nanoseconds(1), 1e-9), (.nanoseconds(-1), -1e-9), (.seconds(10), 10), (.seconds(20), 20),
        (.seconds(-3600), -3600), (.seconds(86400 * 365), 31_536_000), (.seconds(Int64.max), 0x1p63), (.seconds(Int64.min), -0x1p63),
    ]) func `is so many seconds`(duration: Duration, seconds: Double) {
        // Of a second or more exactly; below, the halves of a negative one are rounded apart.
        let isExact = abs(seconds) >= 1 || seconds >= 0
        #expect(isExact ? duration.inSeconds == seconds : abs(duration.inSeconds - seconds) < 1e-14)
    }

    @Test(arguments: [
        (0.0, Duration.zero), (0.25, .milliseconds(250)), (-2, .seconds(-2)), (.nan, .zero), (1e300, .seconds(6_311_433_600)),
        (-1e300, .seconds(-6_311_433_600)), (.infinity, .seconds(6_311_433_600)), (-.infinity, .seconds(-6_311_433_600)),
    ])
    func `is made of seconds, and of 200 years at most`(seconds: Double, duration: Duration) {
        #expect(Duration(clampedSeconds: seconds) == duration)
    }

    private static let asNanoseconds: [(Duration, Int)] = [
        (Duration.zero, 0), (.nanoseconds(1), 1), (.nanoseconds(-1), -1), (.milliseconds(-1500), -1_500_000_000),
        (Duration(secondsComponent: 0, attosecondsComponent: 999_999_999), 0), (.nanoseconds(Int.max), Int.max),
        (.nanoseconds(Int.min), Int.min), (.nanoseconds(Int.max) + .nanoseconds(1), Int.max),
        (.nanoseconds(Int.min) - .nanoseconds(1), Int.min), (.seconds(Int.max), Int.max), (.seconds(Int.min), Int.min),
        (.seconds(Int.max) * 10, Int.max), (.seconds(Int.min) * 10, Int.min), (Duration(attoseconds: .max), Int.max),
    ]

    @Test(arguments: asNanoseconds)
    func `is so many nanoseconds, as far as 64 bits say`(duration: Duration, nanoseconds: Int) {
        #expect(duration.inNanoseconds == Int64(nanoseconds))
    }

    @Test func `is the same after a way through seconds, to the nanosecond`() {
        for nanoseconds in stride(from: 1, through: 1_000_000_000, by: 999_983) {
            for duration in [Duration.nanoseconds(nanoseconds), .nanoseconds(-nanoseconds), .microseconds(nanoseconds)] {
                #expect(Duration(clampedSeconds: duration.inSeconds) == duration)
            }
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A date` {
    @Test(.manualTime, arguments: 1...200)
    func `that is a duration from now comes when the duration has passed, and not a nanosecond before`(milliseconds: Int) {
        let duration = Duration.milliseconds(milliseconds) + .nanoseconds(milliseconds)
        let loop = RunLoop.current
        let fired = Count()
        ManualTime.advance(by: .nanoseconds(milliseconds * 12_345))  // an odd time to begin at
        let timer = Timer(fire: .now + duration, interval: .seconds(1000), repeats: true) { timer in fired.next() }
        loop.add(timer, forMode: .default)
        for firing in 1...3 {
            #expect(timer.fireDate - .now == duration)
            ManualTime.advance(by: duration - .nanoseconds(1))
            loop.pump()
            #expect(fired.value == firing - 1)
            ManualTime.advance(by: .nanoseconds(1))
            loop.pump()
            #expect(fired.value == firing)
            if firing == 1 { timer.fireDate = .now + duration } else { timer.fireDate += duration - .seconds(1000) }
        }
        timer.invalidate()
    }

    @Test(.manualTime, arguments: 1...20) func `that is a duration from now is as long a run`(microseconds: Int) {
        let duration = Duration.nanoseconds(microseconds * 1003)
        let loop = RunLoop.current
        let observer = RunLoop.Observer(activities: .beforeWaiting) { _, _ in
            ManualTime.advance(by: .nanoseconds(1003))
            loop.wake()
        }
        loop.add(observer, forMode: .default)
        let start = loop.clock.now
        loop.run(until: .now + duration)
        #expect(start.duration(to: loop.clock.now) == duration)
        observer.invalidate()
    }

    @Test(.manualTime, arguments: 1...20) func `of the next timer is told to the nanosecond`(number: Int) {
        let loop = RunLoop.current
        let duration = Duration.nanoseconds(number * 1_003)
        ManualTime.advance(by: duration * 3)
        let timer = Timer(timeInterval: duration, repeats: true) { _ in }
        loop.add(timer, forMode: .default)
        for _ in 1...3 {
            guard let next = loop.nextTimerFireDate(in: .default), let limit = loop.limitDate(forMode: .default) else {
                Issue.record("no date")
                break
            }
            #expect(next - .now == duration && limit - .now == duration)
            ManualTime.advance(by: duration)
            loop.pump()
        }
        timer.fireDate = WallTime(timeIntervalSinceReferenceDate: 0)
        #expect(loop.nextTimerFireDate(in: .default) == timer.fireDate)
        timer.invalidate()
        #expect(loop.nextTimerFireDate(in: .default) == nil)
    }

    @Test func `keeps the nanoseconds of durations that it is moved by, and is the same date without them`() {
        let start = WallTime.now
        var date = start
        for step in 1...1000 { date += .nanoseconds(step * 1_000_003) }
        #expect(date - start == .nanoseconds(500_500 * 1_000_003))
        #expect(date - .nanoseconds(500_500 * 1_000_003) - start == .zero)
        let seconds = WallTime(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate)
        #expect(seconds == date && !(seconds < date) && seconds.hashValue == date.hashValue)
        #expect(start < date && date > start && start != date)
    }

    @Test func `that is no number never comes, however it is made`() {
        var date = WallTime.now
        date.timeIntervalSinceReferenceDate = .nan
        #expect(date == .distantFuture)
        #expect(WallTime(timeIntervalSinceReferenceDate: .nan) == .distantFuture)
        #expect(WallTime(timeIntervalSinceNow: .nan) == .distantFuture)
        let never = WallTime(timeIntervalSinceReferenceDate: .infinity)
        #expect(never - .infinitePast == Duration(clampedSeconds: .infinity))
        #expect(never - never == .zero)
    }
}

extension WallTime {
    fileprivate static let infinitePast = WallTime(timeIntervalSinceReferenceDate: -.infinity)
}

/// Durations of more than a process's life, also such as have no number of seconds in 64 bits.
private let endless = [Duration.seconds(1_000_000_000_000), .seconds(Int64.max), .seconds(Int64.max) * 10, Duration(attoseconds: .max)]

@Suite(.timeLimit(.minutes(10))) struct `A duration without end` {
    @Test(.manualTime, arguments: endless) func `is a timer's that does not fire`(duration: Duration) {
        let loop = RunLoop.current
        let timers = [
            Timer(timeInterval: duration, repeats: true) { _ in Issue.record("fired") },
            Timer(timeInterval: duration, repeats: false) { _ in Issue.record("fired") },
            Timer(fire: .now + duration, interval: duration, repeats: true) { _ in Issue.record("fired") },
        ]
        for timer in timers {
            timer.tolerance = duration
            loop.add(timer, forMode: .default)
            #expect(timer.fireDate > .now + .seconds(100_000_000))
        }
        let scheduled = loop.schedule(every: duration, tolerance: duration, in: .default) { _ in Issue.record("fired") }
        ManualTime.advance(by: .seconds(100_000_000))
        loop.pump()
        scheduled.cancel()
        for timer in timers { timer.invalidate() }
    }

    @Test(.manualTime, arguments: endless) func `is a run's that something else ends`(duration: Duration) throws {
        let loop = RunLoop.current
        loop.perform { loop.stop() }
        #expect(loop.run(in: .default, for: duration) == .stopped)
        loop.perform { loop.stop() }
        #expect(try loop.runChecked(in: .default, for: duration) == .stopped)
        #expect(loop.pump(until: { true }, limit: duration))
        let once = Timer(timeInterval: .zero, repeats: false) { _ in }
        loop.add(once, forMode: "apart")
        ManualTime.advance(by: .seconds(1))
        #expect(loop.run(in: "apart", for: duration) == .finished)
        loop.busyWait = duration
        #expect(loop.busyWait == .seconds(504_911_232))
    }

    @Test(arguments: endless) func `is the default mode's run until that is empty`(duration: Duration) async throws {
        try await onThread {
            for run in [{ @Sendable in RunLoop.current.run(for: duration) }, { RunLoop.current.run(until: .now + duration) }] {
                let fired = Count()
                Timer.scheduledTimer(withTimeInterval: .microseconds(1), repeats: false) { _ in fired.next() }
                run()
                #expect(fired.value == 1)
            }
        }
    }

    @Test(arguments: endless) func `is a sleep's, and ticks', that are cancelled`(duration: Duration) async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let ticks = try loop.ticks(every: duration, tolerance: duration)
        let tasks = [
            Task { try await Task.sleep(for: duration, clock: loop.clock) }, Task { for await _ in ticks { Issue.record("ticked") } },
        ]
        for task in tasks {
            while loop.nextTimerFireDate(in: .default) == nil { await Task.yield() }
            task.cancel()
            _ = await task.result
        }
        #expect(loop.clock.now.advanced(by: duration) > loop.clock.now)
        #expect(loop.clock.now.advanced(by: .zero - duration) < loop.clock.now)
        stop.requestStop()
    }

    @Test(.manualTime, arguments: endless) func `moves a test's clocks as far as they go`(duration: Duration) {
        let start = WallTime.now
        for _ in 0..<3 { ManualTime.advance(by: duration) }
        #expect(WallTime.now - start > .seconds(3_000_000_000))
        ManualTime.stepWallClock(by: duration)
        ManualTime.stepWallClock(by: .zero - duration)
        ManualTime.stepWallClock(by: .zero - duration)
        #expect(WallTime.now - start < .seconds(1))
    }
}

/// Durations that no time passes in.
private let passed = [
    Duration.zero, .nanoseconds(-1), .seconds(-5), .seconds(Int64.min), .seconds(Int64.min) * 10, Duration(attoseconds: .min),
]

@Suite(.timeLimit(.minutes(10))) struct `A duration that is negative` {
    @Test(arguments: passed) func `is 0.1 ms as an interval, and no tolerance`(duration: Duration) {
        let timer = Timer(timeInterval: duration, repeats: true) { _ in }
        #expect(timer.timeInterval == .microseconds(100))
        timer.tolerance = duration
        #expect(timer.tolerance == .zero)
        #expect(Timer(fire: .now, interval: duration, repeats: true) { _ in }.timeInterval == .microseconds(100))
    }

    @Test(.runLoop, arguments: passed) func `is one look as a run`(duration: Duration) {
        let loop = RunLoop.current
        let fired = Count()
        loop.add(Timer(fire: .distantPast, interval: .zero, repeats: false) { _ in fired.next() }, forMode: .default)
        loop.run(for: duration)
        #expect(fired.value == 1)
        #expect(loop.run(in: .default, for: duration) == .timedOut)
        loop.run(until: .now + duration)
    }

    @Test(arguments: passed) func `is no time to sleep`(duration: Duration) async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        try await loop.clock.sleep(until: loop.clock.now.advanced(by: duration), tolerance: duration)
        try await onThread { Thread.sleep(for: duration) }
        stop.requestStop()
    }

    @Test(.manualTime, arguments: passed) func `does not move a test's clocks`(duration: Duration) {
        let start = WallTime.now
        ManualTime.advance(by: duration)
        ManualTime.advance(by: duration, pumping: .current)
        #expect(WallTime.now == start)
    }
}
