// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import Testing

@Suite(.timeLimit(.minutes(1))) struct `A duration` {
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
    func `is made of seconds`(seconds: Double, duration: Duration) { #expect(Duration(clampedSeconds: seconds) == duration) }

    @Test(arguments: [
        (Duration.zero, 0), (.nanoseconds(1), 1), (.nanoseconds(-1), -1), (.milliseconds(-1500), -1_500_000_000),
        (Duration(secondsComponent: 0, attosecondsComponent: 999_999_999), 0), (.nanoseconds(Int.max), Int.max),
        (.nanoseconds(Int.min), Int.min), (.nanoseconds(Int.max) + .nanoseconds(1), Int.max),
        (.nanoseconds(Int.min) - .nanoseconds(1), Int.min), (.seconds(Int.max), Int.max), (.seconds(Int.min), Int.min),
    ])
    func `is so many nanoseconds, as far as 64 bits say`(duration: Duration, nanoseconds: Int) {
        #expect(duration.inNanoseconds == Int64(nanoseconds))
    }
}
