// SPDX-License-Identifier: Apache-2.0
//
// Threads, and the requests that they perform, with Foundation's qualities and TimeInterval.

public import CoreRunLoop
public import Foundation
import Synchronization

/// A thread's values as Foundation has them. As on Darwin they are for the code that runs on the thread; nothing else makes them safe.
final class ThreadValues: @unchecked Sendable {
    let dictionary = NSMutableDictionary()
    lazy var queue = NotificationQueue(notificationCenter: .default)
}

extension CoreRunLoop::Thread {
    var values: ThreadValues { companion(or: ThreadValues()) }

    /// Values that belong to the thread, for whichever code runs on it; gone when it ends. For use on the thread itself.
    ///
    /// The overlay's own property of this name is a value of Swift's, which any thread may use, and has other contents.
    public var threadDictionary: NSMutableDictionary { values.dictionary }

    /// How important the thread's work is, as Foundation says it. Set it before the start; later it has no effect.
    public var qualityOfService: Foundation::QualityOfService {
        get { Foundation::QualityOfService(self.CoreRunLoop::qualityOfService) }
        set { self.CoreRunLoop::qualityOfService = CoreRunLoop::QualityOfService(newValue) }
    }

    /// The return addresses of the functions that the calling thread is in, innermost first; for diagnosis.
    public static var callStackReturnAddresses: [NSNumber] {
        CoreRunLoop::Thread.CoreRunLoop::callStackReturnAddresses.map { NSNumber(value: $0) }
    }

    /// Sleeps until `date`; a date in the past returns at once.
    @available(*, noasync)
    @_disfavoredOverload
    public static func sleep(until date: Date) { sleep(until: WallTime(date)) }

    /// Sleeps for `interval` seconds; zero and less return at once.
    @available(*, noasync)
    public static func sleep(forTimeInterval interval: TimeInterval) { sleep(for: Duration(clampedSeconds: interval)) }
}

/// Keeps the handler that posts threads' ends for as long as the process lives.
private final class Exits: Sendable {
    func start(_ handler: @escaping @Sendable (CoreRunLoop::Thread) -> Void) {
        registration.withLock { $0 = CoreRunLoop::Thread.onWillExit(handler) }
    }
    private let registration = Mutex<CoreRunLoop::Thread.ExitRegistration?>(nil)
}
private let exits = Exits()

extension Notification.Name {
    /// Posted by a thread that is about to end, on that thread, with the thread as its object; see `Thread.onWillExit(_:)`.
    ///
    /// The default notification center gets it from the first use of this name on.
    public static var NSThreadWillExit: Notification.Name { threadWillExit }

    /// The same by a name that Foundation does not have.
    package static let threadWillExit: Notification.Name = {
        let name = Notification.Name("NSThreadWillExitNotification")
        exits.start { NotificationCenter.default.post(name: name, object: $0) }
        return name
    }()
}

extension Foundation::QualityOfService {
    fileprivate init(_ quality: CoreRunLoop::QualityOfService) {
        self =
            switch quality {
            case .userInteractive: .userInteractive
            case .userInitiated: .userInitiated
            case .default: .default
            case .utility: .utility
            case .background: .background
            }
    }
}

extension CoreRunLoop::QualityOfService {
    fileprivate init(_ quality: Foundation::QualityOfService) {
        self =
            switch quality {
            case .userInteractive: .userInteractive
            case .userInitiated: .userInitiated
            case .utility: .utility
            case .background: .background
            default: .default
            }
    }
}

extension Performing {
    /// Performs a method after a delay in seconds; see `perform(_:with:afterDelay:inModes:)` with a `Duration`.
    ///
    /// As on Darwin an asynchronous function may call this and the next two: the main actor's, or that of an actor of a loop's
    /// (``RunLoopActor``). The thread of any other task runs no loop, and nothing is performed there.
    public func perform<Argument>(
        _ method: @escaping (Self) -> @isolated(any) (Argument) -> Void, with argument: Argument, afterDelay delay: TimeInterval,
        inModes modes: [CoreRunLoop::RunLoop.Mode] = [.default]
    ) {
        perform(method, with: argument, afterDelay: Duration(clampedSeconds: delay), inModes: modes)
    }

    /// Performs a method without a parameter after a delay in seconds.
    public func perform(
        _ method: @escaping (Self) -> @isolated(any) () -> Void, with object: Never? = nil, afterDelay delay: TimeInterval,
        inModes modes: [CoreRunLoop::RunLoop.Mode] = [.default]
    ) {
        perform(method, afterDelay: Duration(clampedSeconds: delay), inModes: modes)
    }

    /// Performs a named method after a delay in seconds, so that it can be cancelled by its name.
    public func perform<Argument>(
        _ action: CoreRunLoop::RunLoop.Action<Self, Argument>, with argument: Argument, afterDelay delay: TimeInterval,
        inModes modes: [CoreRunLoop::RunLoop.Mode] = [.default]
    ) {
        perform(action, with: argument, afterDelay: Duration(clampedSeconds: delay), inModes: modes)
    }

    /// Performs a named method without a parameter after a delay in seconds.
    public func perform(
        _ action: CoreRunLoop::RunLoop.Action<Self, Void>, with object: Never? = nil, afterDelay delay: TimeInterval,
        inModes modes: [CoreRunLoop::RunLoop.Mode] = [.default]
    ) {
        perform(action, afterDelay: Duration(clampedSeconds: delay), inModes: modes)
    }
}

/// Darwin's class method of every object, by the name of the class that programs call it with. Targets need not be `NSObject`s.
extension NSObject {
    /// Cancels the requests of the calling thread that are to be performed on `target` after a delay.
    public static func cancelPreviousPerformRequests(withTarget target: AnyObject) {
        Canceller.cancelPreviousPerformRequests(withTarget: target)
    }

    /// Cancels the requests with the same method and an equal argument.
    public static func cancelPreviousPerformRequests<Target: AnyObject, Argument: Equatable>(
        withTarget target: Target, selector action: CoreRunLoop::RunLoop.Action<Target, Argument>, object argument: Argument
    ) {
        Canceller.cancelPreviousPerformRequests(withTarget: target, selector: action, object: argument)
    }

    /// Cancels the requests with the same method without a parameter.
    public static func cancelPreviousPerformRequests<Target: AnyObject>(
        withTarget target: Target, selector action: CoreRunLoop::RunLoop.Action<Target, Void>, object: Never? = nil
    ) {
        Canceller.cancelPreviousPerformRequests(withTarget: target, selector: action)
    }
}

/// The object whose methods call those of the protocol.
private final class Canceller: Performing {}
