// SPDX-License-Identifier: Apache-2.0
//
// Cocoa's shapes of a timer: with a target or an invocation, and scheduled in the calling thread's loop as it is made.

extension Timer {
    /// Makes a timer that calls a closure without parameters, in the place of Cocoa's invocation. The timer is in no loop yet.
    public convenience init(timeInterval interval: Duration, invocation: @escaping @isolated(any) @Sendable () -> Void, repeats: Bool) {
        let invocation = onActorOf(invocation)
        self.init(timeInterval: interval, repeats: repeats) { _ in invocation() }
    }

    /// Makes a timer that first fires at `date` and calls a method of `target`; it is in no loop yet.
    ///
    /// - Parameters:
    ///   - date: A date in the past is due as soon as a loop watches the timer.
    ///   - interval: Zero or less becomes 0.1 ms.
    ///   - target: Kept until the timer is invalidated.
    ///   - action: A method as `Class.method`, with the timer as its parameter.
    ///   - userInfo: Anything; see ``userInfo``.
    ///   - repeats: `false` makes a timer that is invalid after it has fired once.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        fireAt date: WallTime, interval: Duration, target: Target,
        selector action: @escaping @Sendable (Target) -> @isolated(any) (Timer) -> Void,
        userInfo: (any Sendable)? = nil, repeats: Bool
    ) {
        self.init(fire: date, interval: interval, repeats: repeats, userInfo: userInfo) { callOrSend(action, of: target, with: $0) }
    }

    /// Makes a timer that first fires at `date` and calls a method of `target` without a parameter. The timer is in no loop
    /// yet.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        fireAt date: WallTime, interval: Duration, target: Target,
        selector action: @escaping @Sendable (Target) -> @isolated(any) () -> Void, userInfo: (any Sendable)? = nil, repeats: Bool
    ) {
        self.init(fire: date, interval: interval, repeats: repeats, userInfo: userInfo) { _ in callOrSend(action, of: target) }
    }

    /// Makes a timer that calls a method of `target` after `interval`; it is in no loop yet.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        timeInterval interval: Duration, target: Target, selector action: @escaping @Sendable (Target) -> @isolated(any) (Timer) -> Void,
        userInfo: (any Sendable)? = nil, repeats: Bool
    ) {
        self.init(timeInterval: interval, repeats: repeats, userInfo: userInfo) { callOrSend(action, of: target, with: $0) }
    }

    /// Makes a timer that calls a method of `target` that has no parameter, after `interval`; it is in no loop yet.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        timeInterval interval: Duration, target: Target, selector action: @escaping @Sendable (Target) -> @isolated(any) () -> Void,
        userInfo: (any Sendable)? = nil, repeats: Bool
    ) {
        self.init(timeInterval: interval, repeats: repeats, userInfo: userInfo) { _ in callOrSend(action, of: target) }
    }

    /// Makes a timer and adds it to the calling thread's loop in the default mode.
    ///
    /// The closure stays on this thread, so it may use the state of this thread alone; on the main thread, also the main actor's. In an
    /// actor's code the closure is that actor's, and each call checks the thread. On another thread, ``fire()`` stops the process with a
    /// message instead of calling the closure. A loop of another thread that the timer is moved to does the same.
    ///
    /// As on Darwin an asynchronous function may call this. Its actor must have a thread that runs a loop: the main actor, or an actor of a
    /// loop (``RunLoopActor``). The thread of any other task runs no loop. The timer does not fire there, and a line on the standard error
    /// output says so.
    ///
    /// - Parameters:
    ///   - interval: Zero or less becomes 0.1 ms.
    ///   - repeats: `false` makes a timer that is invalid after it has fired once.
    ///   - userInfo: Anything; see ``userInfo``.
    ///   - block: Called on this thread, while its loop runs.
    @discardableResult
    public static func scheduledTimer(
        withTimeInterval interval: Duration, repeats: Bool, userInfo: (any Sendable)? = nil, block: @escaping @isolated(any) (Timer) -> Void
    ) -> Timer {
        let own = OwnThread(onActorOfThreadBound(block))
        let timer = Timer(timeInterval: interval, repeats: repeats, userInfo: userInfo) { own.closure($0) }
        RunLoop.current(for: "a scheduled timer").add(timer, forMode: .default)
        return timer
    }

    /// Makes a timer that calls a closure without parameters, in the place of Cocoa's invocation, and adds it to the calling thread's loop
    /// in the default mode.
    @discardableResult
    public static func scheduledTimer(
        timeInterval interval: Duration, invocation: @escaping @isolated(any) () -> Void, repeats: Bool
    ) -> Timer {
        scheduledTimer(withTimeInterval: interval, repeats: repeats) { _ in call(invocation) }
    }

    /// Makes a timer that calls a method of `target`, and adds it to the calling thread's loop in the default mode.
    ///
    /// - Parameters:
    ///   - interval: Zero or less becomes 0.1 ms.
    ///   - target: Kept until the timer is invalidated.
    ///   - action: A method as `Class.method`, with the timer as its parameter.
    ///   - userInfo: Anything; see ``userInfo``.
    ///   - repeats: `false` makes a timer that is invalid after it has fired once.
    @discardableResult
    public static func scheduledTimer<Target: AnyObject>(
        timeInterval interval: Duration, target: Target, selector action: @escaping (Target) -> @isolated(any) (Timer) -> Void,
        userInfo: (any Sendable)? = nil, repeats: Bool
    ) -> Timer {
        scheduledTimer(withTimeInterval: interval, repeats: repeats, userInfo: userInfo) { call(action(target), with: $0) }
    }

    /// Makes a timer that calls a method of `target` that has no parameter, and adds it to the calling thread's loop in the default mode.
    @discardableResult
    public static func scheduledTimer<Target: AnyObject>(
        timeInterval interval: Duration, target: Target, selector action: @escaping (Target) -> @isolated(any) () -> Void,
        userInfo: (any Sendable)? = nil, repeats: Bool
    ) -> Timer {
        scheduledTimer(withTimeInterval: interval, repeats: repeats, userInfo: userInfo) { _ in call(action(target)) }
    }
}
