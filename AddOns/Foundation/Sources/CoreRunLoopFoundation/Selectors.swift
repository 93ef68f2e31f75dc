// SPDX-License-Identifier: Apache-2.0
//
// Darwin's calls with selectors, which need Objective-C. Each is declared so that the compiler says what takes its place.

public import CoreRunLoop
public import Foundation

/// The name of a method in Objective-C, which Linux has not.
@available(*, unavailable, message: "Linux has no selectors; name the method in its place, as Worker.refresh, or an Action")
public struct Selector: Sendable {
    /// Makes nothing: it is unavailable.
    public init(_ name: String) {}
}

extension NSObject {
    /// Performs a method on a thread: a class that conforms to `Performing` has this call.
    @available(*, unavailable, message: "make the class conform to Performing and Sendable, and name the method, as Worker.refresh")
    public func perform<Method>(
        _ method: Method, on thread: CoreRunLoop::Thread, with argument: Any?, waitUntilDone: Bool,
        modes: [CoreRunLoop::RunLoop.Mode] = [.common]
    ) {}

    /// Performs a method on the main thread: a class that conforms to `Performing` has this call.
    @available(*, unavailable, message: "make the class conform to Performing and Sendable, and name the method, as Worker.refresh")
    public func performSelector<Method>(
        onMainThread method: Method, with argument: Any?, waitUntilDone: Bool, modes: [CoreRunLoop::RunLoop.Mode] = [.common]
    ) {}

    /// Performs a method on a new thread: a class that conforms to `Performing` has this call.
    @available(*, unavailable, message: "make the class conform to Performing and Sendable, and name the method, as Worker.refresh")
    public func performSelector<Method>(inBackground method: Method, with argument: Any?) {}

    /// Performs a method after a delay: a class that conforms to `Performing` has this call.
    @available(*, unavailable, message: "make the class conform to Performing, and name the method, as Worker.refresh")
    public func perform<Method>(
        _ method: Method, with argument: Any?, afterDelay delay: TimeInterval, inModes modes: [CoreRunLoop::RunLoop.Mode] = [.default]
    ) {}

    /// Cancels requests that are named by a selector.
    @available(*, unavailable, message: "name the method by an Action, and perform it by that name")
    public static func cancelPreviousPerformRequests<Method>(withTarget target: Any, selector method: Method, object argument: Any?) {}
}

extension NotificationCenter {
    /// Has a method called at each notification.
    @available(*, unavailable, message: "use addObserver(forName:object:queue:using:), and keep the observer that it returns")
    public func addObserver<Method>(_ observer: Any, selector method: Method, name: NSNotification.Name?, object: Any?) {}
}
