// SPDX-License-Identifier: Apache-2.0
//
// What loops have done, in numbers. The C library counts, each loop on its own thread.

import CCoreRunLoop

extension RunLoop {
    /// What a loop has done since it is counted. Two of one loop differ by what it did in between.
    ///
    /// The corresponding C type is `CRLStatistics`.
    public struct Statistics: Sendable, Hashable {
        /// How many passes have begun.
        public let passes: Int
        /// How many sleeps have begun.
        public let sleeps: Int
        /// How many callouts have begun: of sources, timers, observers, blocks and ports.
        public let callouts: Int
        /// How many timers were fired.
        public let timers: Int
        /// The time awake in runs, up to now.
        public let busy: Duration
        /// How long the longest callout took; one that has not ended does not count.
        public let longestCallout: Duration
        /// By how much all those timers together were late.
        public let lateness: Duration
        /// By how much the latest of them was late.
        public let latestTimer: Duration
        /// How many blocks waited when the last pass began.
        public let queuedBlocks: Int

        fileprivate init(_ counted: CRLStatistics) {
            passes = unsafe Int(counted.passes)
            sleeps = unsafe Int(counted.sleeps)
            callouts = unsafe Int(counted.callouts)
            timers = unsafe Int(counted.timers)
            busy = unsafe .seconds(counted.busy)
            longestCallout = unsafe .seconds(counted.longest)
            lateness = unsafe .seconds(counted.late)
            latestTimer = unsafe .seconds(counted.latest)
            queuedBlocks = unsafe counted.queued
        }
    }

    /// Begins to count what all loops of this process do, until it ends. Any thread.
    ///
    /// A loop is counted from its next pass on, up to 64 at once, at some 50 ns a callout.
    ///
    /// The corresponding C function is `CRLStatisticsStart`.
    public static func startStatistics() { CRLStatisticsStart() }

    /// What the loop has done since it is counted; `nil` when it is not, or its thread has ended. Any thread.
    ///
    /// It takes no time of the loop's. A monitor asks now and then, here in the text format of Prometheus:
    ///
    /// ```swift
    /// if let counted = RunLoop.main.statistics {
    ///     print("loop_busy_seconds_total", counted.busy / .seconds(1))
    ///     print("loop_passes_total", counted.passes)
    /// }
    /// ```
    ///
    /// The corresponding C function is `CRLRunLoopGetStatistics`.
    public var statistics: Statistics? {
        var counted = unsafe CRLStatistics()
        return unsafe CRLRunLoopGetStatistics(loop, &counted) ? Statistics(counted) : nil
    }
}
