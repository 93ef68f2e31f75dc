// SPDX-License-Identifier: Apache-2.0
//
// The wait for a process's end, in this package's loop. As with FileHandles.swift, the declaration hides Foundation's.

import CoreRunLoop
import CoreRunLoopFoundationShims
public import Foundation

extension Process {
    /// Runs the calling thread's loop in the default mode until the process has ended. The mode's timers fire, and the notifications of
    /// background reads by a file handle are posted.
    ///
    /// Returns at once when the process does not run. `isRunning` is false afterwards, but `terminationHandler` is called on another
    /// thread, and may come later. A stop of the loop does not end the wait.
    public func waitUntilExit() { waitUntilEnd() }

    /// The same by a name that Foundation does not have.
    package func waitUntilEnd() {
        let loop = CoreRunLoop::RunLoop.current
        let stay = loop.keepAlive()
        defer { withExtendedLifetime(stay) {} }
        let end = endSource()
        defer { end?.invalidate() }
        if let end { loop.add(end, forMode: .default) }
        while isRunning {
            // Foundation, which takes the status on a thread of its own, hears of the end at about the same time.
            loop.run(mode: .default, before: Date(timeIntervalSinceNow: end?.isValid == true ? 0.05 : 0.001))
        }
    }

    /// Ends a run, and itself, once the process has ended; the status is left to Foundation. `nil` where the system has no such thing.
    private func endSource() -> DescriptorSource? {
        let descriptor = process_descriptor(processIdentifier)
        return descriptor < 0 ? nil : try? DescriptorSource(descriptor: descriptor, closeOnInvalidate: true) { $0.invalidate() }
    }
}
