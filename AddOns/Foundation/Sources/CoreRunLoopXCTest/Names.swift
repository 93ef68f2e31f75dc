// SPDX-License-Identifier: Apache-2.0
//
// `import CoreRunLoopXCTest` in the place of `import XCTest` and `import Foundation`: all of both, with this package's loops. XCTest brings
// Foundation by itself, so each name and each call that both modules declare is declared here once more: what this module declares hides
// what it re-exports.

@_exported public import CoreRunLoopFoundation
@_exported public import XCTest

/// This package's queue of notifications, in the place of Foundation's.
public typealias NotificationQueue = CoreRunLoopFoundation::NotificationQueue

extension Notification.Name {
    /// Posted by a thread that is about to end: see `CoreRunLoopFoundation`.
    public static var NSThreadWillExit: Notification.Name { .threadWillExit }
}

extension Process {
    /// Runs the calling thread's loop until the process has ended: see `CoreRunLoopFoundation`.
    public func waitUntilExit() { waitUntilEnd() }
}

/// By their type the calls are this package's.
private let usualModes: [CoreRunLoop::RunLoop.Mode] = [.default]

extension FileHandle {
    /// Waits for data in this package's loop: see `CoreRunLoopFoundation`.
    public func waitForDataInBackgroundAndNotify() { waitForDataInBackgroundAndNotify(forModes: usualModes) }
    /// Reads in this package's loop: see `CoreRunLoopFoundation`.
    public func readInBackgroundAndNotify() { readInBackgroundAndNotify(forModes: usualModes) }
    /// Reads to the end in this package's loop: see `CoreRunLoopFoundation`.
    public func readToEndOfFileInBackgroundAndNotify() { readToEndOfFileInBackgroundAndNotify(forModes: usualModes) }
    /// Accepts a connection in this package's loop: see `CoreRunLoopFoundation`.
    public func acceptConnectionInBackgroundAndNotify() { acceptConnectionInBackgroundAndNotify(forModes: usualModes) }
}
