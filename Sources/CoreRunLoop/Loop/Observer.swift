// SPDX-License-Identifier: Apache-2.0
//
// The C observer and the Swift object are joined: a reference to either keeps both alive. The C observer's info is the body, which knows
// the Swift object, uncounted.

public import CCoreRunLoop
import Synchronization

extension RunLoop {
    /// A closure that is called at chosen points of each pass.
    ///
    /// ```swift
    /// let observer = RunLoop.Observer(activities: [.beforeWaiting, .afterWaiting]) { _, activity in print(activity) }
    /// RunLoop.current.add(observer, forMode: .default)
    /// ```
    ///
    /// An observer keeps no mode alive, is in one loop at most, and is kept by its loop until it is removed or invalidated.
    public final class Observer: Sendable {
        /// The C object of this observer.
        public let cfRunLoopObserver: CFRunLoopObserver
        private let joined: JoinedObjects

        /// The closure, and the way back to the Swift object, which lives longer. Both are written before the observer is in a loop.
        /// Afterwards they are written by the loop's thread, or when no call is under way or can come: the C observer does not release its
        /// info earlier.
        private final class Body {
            private var callback: (@Sendable (Observer, Activity) -> Void)?
            unowned(unsafe) var observer: Observer?

            init(_ callback: @escaping @Sendable (Observer, Activity) -> Void) { self.callback = callback }

            func call(_ activity: Activity) {
                if let callback, let observer = unsafe observer { callback(observer, activity) }
            }

            func clear() { callback = nil }
        }

        private init(_ observer: CFRunLoopObserver, _ body: Body) {
            cfRunLoopObserver = observer
            joined = JoinedObjects(of: observer)
            unsafe body.observer = self
            joined.join(self)
        }

        deinit { joined.part() }

        /// Makes an observer that is in no loop yet.
        ///
        /// - Parameters:
        ///   - activities: The points of a pass.
        ///   - repeats: `false` invalidates the observer after its first call.
        ///   - order: Lower ones are called first, equal ones in the order of adding.
        ///   - callback: Called on the loop's thread with exactly one activity.
        ///
        /// The corresponding C function is `CFRunLoopObserverCreate`.
        public convenience init(
            activities: Activity, repeats: Bool = true, order: Int = 0,
            callback: @escaping @isolated(any) @Sendable (Observer, Activity) -> Void
        ) {
            let body = Body(onActorOf(callback))
            let observer = unsafe CRLRunLoopObserverCreateWithFunction(
                nil, activities.rawValue, repeats, order,
                { _, activity, info in unsafe withBorrowed(Body.self, from: info) { $0.call(activity) } }, retainedInfo(body),
                { info in
                    unsafe object(Body.self, from: info).clear()
                    unsafe releaseInfo(info)
                })
            self.init(require(observer, "RunLoop.Observer"), body)
        }

        /// The points of a pass at which it is called. Any thread.
        public var activities: Activity { Activity(rawValue: CFRunLoopObserverGetActivities(cfRunLoopObserver)) }
        /// Whether the observer is called more than once. Any thread.
        public var repeats: Bool { CFRunLoopObserverDoesRepeat(cfRunLoopObserver) }
        /// The observer's place in a mode: observers with a lower order are called first. Any thread.
        public var order: Int { CFRunLoopObserverGetOrder(cfRunLoopObserver) }
        /// Whether the observer is still valid: also true in the closure of one that is called once. Any thread.
        public var isValid: Bool { CFRunLoopObserverIsValid(cfRunLoopObserver) }

        /// Takes it out of its loop for good and drops its closure. Any thread, also in the closure.
        ///
        /// The corresponding C function is `CFRunLoopObserverInvalidate`.
        public func invalidate() { CFRunLoopObserverInvalidate(cfRunLoopObserver) }
    }

    /// Adds `observer` to `mode`. Nothing happens when it is there, is in another loop, or is invalid. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopAddObserver`.
    public func add(_ observer: Observer, forMode mode: Mode) { CFRunLoopAddObserver(loop, observer.cfRunLoopObserver, mode.name) }

    /// Takes `observer` out of `mode`. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopRemoveObserver`.
    public func remove(_ observer: Observer, forMode mode: Mode) { CFRunLoopRemoveObserver(loop, observer.cfRunLoopObserver, mode.name) }

    /// Whether `observer` is in `mode`. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopContainsObserver`.
    public func contains(_ observer: Observer, in mode: Mode) -> Bool {
        CFRunLoopContainsObserver(loop, observer.cfRunLoopObserver, mode.name)
    }

    /// Calls `callback` at the given points of each pass, on this thread, until the observer is invalidated.
    ///
    /// The closure stays on the loop's thread, so it may use the state of that thread alone. If the observer is added to a loop of another
    /// thread, that loop stops the process with a message instead of calling the closure.
    @available(*, noasync, message: "a task has no thread of its own; use an Observer with a @Sendable closure")
    @discardableResult
    public func observe(
        _ activities: Activity, in mode: Mode = .common, order: Int = 0,
        callback: @escaping @isolated(any) (Observer, Activity) -> Void
    ) -> Observer {
        preconditionIsCurrent()
        let own = OwnThread(onActorOfThreadBound(callback))
        let observer = Observer(activities: activities, order: order) { own.closure($0, $1) }
        add(observer, forMode: mode)
        return observer
    }
}
