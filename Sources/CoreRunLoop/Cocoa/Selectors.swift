// SPDX-License-Identifier: Apache-2.0
//
// Cocoa's perform family, with methods in the place of selectors: `Worker.refresh` is a value of type `(Worker) -> (Argument) -> Void`.
// Such values cannot be compared. So a request that is to be cancelled by its method is named by an `Action`.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

extension RunLoop {
    /// A method with a name, for requests that can be cancelled by it.
    ///
    /// ```swift
    /// extension Search {
    ///     static let begin = Action("begin", Search.begin(text:))
    /// }
    /// search.perform(Search.begin, with: text, afterDelay: .milliseconds(300))
    /// Search.cancelPreviousPerformRequests(withTarget: search, selector: Search.begin, object: text)
    /// ```
    public struct Action<Target: AnyObject, Argument>: Hashable, Sendable {
        /// The name. Two actions of one target type are equal if their names are.
        public let name: String
        let method: @Sendable (Target) -> @isolated(any) (Argument) -> Void

        /// Names a method with one parameter.
        @preconcurrency
        public init(_ name: String, _ method: @escaping @Sendable (Target) -> @isolated(any) (Argument) -> Void) {
            self.name = name
            self.method = method
        }

        /// Whether the names are equal.
        public static func == (first: Action, second: Action) -> Bool { first.name == second.name }
        /// Feeds the name.
        public func hash(into hasher: inout Hasher) { hasher.combine(name) }
    }
}

extension RunLoop.Action where Argument == Void {
    /// Names a method without a parameter.
    @preconcurrency
    public init(_ name: String, _ method: @escaping @Sendable (Target) -> @isolated(any) () -> Void) {
        self.init(name) { target in { _ in call(method(target)) } }
    }
}

/// A request that waits for a timer of its own: to be performed in order, or after a delay. A request in its loop's queue is still to be
/// performed. Only the code that takes it out of the queue may perform or cancel it. What the target, the argument and the work are is the
/// program's affair, as in Cocoa: they stay on the thread that makes the request, or are `Sendable` in the public calls.
final class TimedRequest: @unchecked Sendable {
    let target: AnyObject
    let name: String?
    let argument: Any
    let order: Int
    let modes: [RunLoop.Mode]
    let work: () -> Void
    /// Set once, before the request is in a queue.
    fileprivate(set) var number = 0
    /// Weak, so that all of them go with the C loop: the C loop keeps the timer, whose closure keeps this request and the loop's object.
    fileprivate(set) weak var timer: Timer?

    init(_ target: AnyObject, _ name: String?, _ argument: Any, order: Int = 0, _ modes: [RunLoop.Mode], work: @escaping () -> Void) {
        self.target = target
        self.name = name
        self.argument = argument
        self.order = order
        self.modes = modes
        self.work = work
    }
}

/// Timed requests, found by their targets. Nothing here calls a program's code: the callers compare the arguments of the requests they get.
struct TimedRequests: Sendable {
    private var byTarget: [ObjectIdentifier: [Int: TimedRequest]] = [:]
    private var lastNumber = 0

    var all: [TimedRequest] { byTarget.values.flatMap(\.values) }

    func requests(for target: AnyObject) -> [TimedRequest] { byTarget[ObjectIdentifier(target)].map { Array($0.values) } ?? [] }

    mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    mutating func add(_ request: TimedRequest) { byTarget[ObjectIdentifier(request.target), default: [:]][request.number] = request }

    /// Removes a request. Returns whether it was there.
    mutating func remove(_ request: TimedRequest) -> Bool {
        let key = ObjectIdentifier(request.target)
        guard let index = byTarget.index(forKey: key), byTarget.values[index].removeValue(forKey: request.number) != nil else {
            return false
        }
        if byTarget.values[index].isEmpty { byTarget.remove(at: index) }
        return true
    }
}

/// A class whose methods can be performed on other threads, later, or in order. Conforming costs nothing.
public protocol Performing: AnyObject {}

extension Performing {
    /// A method of this class with a name; see ``RunLoop/Action``.
    public typealias Action<Argument> = RunLoop.Action<Self, Argument>
}

/// The outcome of a request: an error is also reported on the standard error output.
public typealias PerformOutcome = Result<Void, PerformError>

private func outcome(_ work: () throws -> Void) -> PerformOutcome {
    do {
        try work()
        return .success(())
    } catch {
        let error = error as? PerformError ?? .cancelled
        report("a perform request failed: \(error)")
        return .failure(error)
    }
}

extension Performing {
    /// Calls a method now.
    public func perform<Argument>(_ method: (Self) -> @isolated(any) (Argument) -> Void, with argument: Argument) {
        call(method(self), with: argument)
    }

    /// Calls a method without a parameter now.
    ///
    /// In this family, every call for a method without a parameter takes `nil` as `object`, and `object` may be left out.
    public func perform(_ method: (Self) -> @isolated(any) () -> Void, with object: Never? = nil) { call(method(self)) }
}

extension Performing where Self: Sendable {
    // MARK: On a thread

    /// Performs a method on `thread`, in the next pass of its loop over one of `modes`.
    ///
    /// - Parameters:
    ///   - method: As `Class.method`, with one parameter.
    ///   - thread: A thread that runs its loop. With `waitUntilDone` on the thread itself the method is called at once.
    ///   - argument: The argument for the method.
    ///   - waitUntilDone: Whether to wait until the method has returned. An actor's method for which the thread is not in the actor's
    ///     isolation has only been sent to the actor by then.
    ///   - modes: Without any, nothing happens.
    /// - Returns: An error in the place of a deadlock: ``PerformError/threadFinished``, ``PerformError/wouldDeadlock``.
    @available(*, noasync)
    @discardableResult
    @preconcurrency
    public func perform<Argument: Sendable>(
        _ method: @escaping @Sendable (Self) -> @isolated(any) (Argument) -> Void, on thread: Thread, with argument: Argument,
        waitUntilDone: Bool, modes: [RunLoop.Mode] = [.common]
    ) -> PerformOutcome {
        request(on: thread, waitUntilDone, modes) { callOrSend(method, of: self, with: argument) }
    }

    /// Performs a method without a parameter on `thread`.
    @available(*, noasync)
    @discardableResult
    @preconcurrency
    public func perform(
        _ method: @escaping @Sendable (Self) -> @isolated(any) () -> Void, on thread: Thread, with object: Never? = nil,
        waitUntilDone: Bool, modes: [RunLoop.Mode] = [.common]
    ) -> PerformOutcome {
        request(on: thread, waitUntilDone, modes) { callOrSend(method, of: self) }
    }

    private func request(
        on thread: Thread, _ waitUntilDone: Bool, _ modes: [RunLoop.Mode], _ work: @escaping @Sendable () -> Void
    ) -> PerformOutcome {
        if modes.isEmpty { return .success(()) }
        return outcome {
            if waitUntilDone {
                try thread.performAndWait(in: modes, work)
            } else if !thread.perform(in: modes, work) {
                throw PerformError.threadFinished
            }
        }
    }

    /// Performs a method on the main thread.
    @available(*, noasync)
    @discardableResult
    @preconcurrency
    public func performSelector<Argument: Sendable>(
        onMainThread method: @escaping @Sendable (Self) -> @isolated(any) (Argument) -> Void, with argument: Argument, waitUntilDone: Bool,
        modes: [RunLoop.Mode] = [.common]
    ) -> PerformOutcome {
        perform(method, on: .main, with: argument, waitUntilDone: waitUntilDone, modes: modes)
    }

    /// Performs a method without a parameter on the main thread.
    @available(*, noasync)
    @discardableResult
    @preconcurrency
    public func performSelector(
        onMainThread method: @escaping @Sendable (Self) -> @isolated(any) () -> Void, with object: Never? = nil, waitUntilDone: Bool,
        modes: [RunLoop.Mode] = [.common]
    ) -> PerformOutcome {
        perform(method, on: .main, waitUntilDone: waitUntilDone, modes: modes)
    }

    /// Performs a method on a new thread.
    @preconcurrency
    public func performSelector<Argument: Sendable>(
        inBackground method: @escaping @Sendable (Self) -> @isolated(any) (Argument) -> Void, with argument: Argument
    ) {
        Thread.detachNewThread { callOrSend(method, of: self, with: argument) }
    }

    /// Performs a method without a parameter on a new thread.
    @preconcurrency
    public func performSelector(inBackground method: @escaping @Sendable (Self) -> @isolated(any) () -> Void, with object: Never? = nil) {
        Thread.detachNewThread { callOrSend(method, of: self) }
    }
}

extension Performing {
    // MARK: After a delay

    /// Performs a method after a delay, on the calling thread, while its loop runs in one of `modes`.
    ///
    /// As on Darwin an asynchronous function may call this: the main actor's, or that of an actor of a loop (``RunLoopActor``). The thread
    /// of any other task runs no loop. Nothing is performed there, and a line on the standard error output says so.
    ///
    /// - Parameters:
    ///   - method: As `Class.method`, with one parameter.
    ///   - argument: The argument for the method.
    ///   - delay: The shortest delay, by ``RunLoop/clock``. Zero means the next pass; requests that are due at once keep their order.
    ///   - modes: Without any, nothing happens.
    public func perform<Argument>(
        _ method: @escaping (Self) -> @isolated(any) (Argument) -> Void, with argument: Argument, afterDelay delay: Duration,
        inModes modes: [RunLoop.Mode] = [.default]
    ) {
        later(nil, argument, delay, modes) { call(method(self), with: argument) }
    }

    /// Performs a method without a parameter after a delay.
    public func perform(
        _ method: @escaping (Self) -> @isolated(any) () -> Void, with object: Never? = nil, afterDelay delay: Duration,
        inModes modes: [RunLoop.Mode] = [.default]
    ) {
        later(nil, (), delay, modes) { call(method(self)) }
    }

    /// Performs a named method after a delay, so that it can be cancelled by its name.
    public func perform<Argument>(
        _ action: RunLoop.Action<Self, Argument>, with argument: Argument, afterDelay delay: Duration,
        inModes modes: [RunLoop.Mode] = [.default]
    ) {
        later(action.name, argument, delay, modes) { call(action.method(self), with: argument) }
    }

    /// Performs a named method without a parameter after a delay.
    public func perform(
        _ action: RunLoop.Action<Self, Void>, with object: Never? = nil, afterDelay delay: Duration,
        inModes modes: [RunLoop.Mode] = [.default]
    ) {
        later(action.name, (), delay, modes) { call(action.method(self), with: ()) }
    }

    private func later(_ name: String?, _ argument: Any, _ delay: Duration, _ modes: [RunLoop.Mode], _ work: @escaping () -> Void) {
        let request = TimedRequest(self, name, argument, modes, work: work)
        RunLoop.current(for: "a method that is to be performed after a delay").add(
            request, to: \.delayed, at: .now.advanced(by: max(delay, .zero))
        ) { loop in
            if loop.take(request, from: \.delayed) { request.work() }
        }
    }

    /// Cancels the requests of the calling thread that are to be performed on `target` after a delay.
    public static func cancelPreviousPerformRequests(withTarget target: AnyObject) {
        RunLoop.current.cancel(in: \.delayed, for: target) { _ in true }
    }

    /// Cancels those requests whose method and argument are the same: equal by `==`, which is called while no lock is held.
    public static func cancelPreviousPerformRequests<Target: AnyObject, Argument: Equatable>(
        withTarget target: Target, selector action: RunLoop.Action<Target, Argument>, object argument: Argument
    ) {
        RunLoop.current.cancel(in: \.delayed, for: target) { $0.name == action.name && $0.argument as? Argument == argument }
    }

    /// Cancels those requests whose method, without a parameter, is the same.
    public static func cancelPreviousPerformRequests<Target: AnyObject>(
        withTarget target: Target, selector action: RunLoop.Action<Target, Void>, object: Never? = nil
    ) {
        RunLoop.current.cancel(in: \.delayed, for: target) { $0.name == action.name }
    }
}

extension RunLoop {
    /// Selects among a queue's requests with timers.
    fileprivate typealias Timed = WritableKeyPath<RequestQueue, TimedRequests>

    /// Adds a request, whose timer calls `fire` with this loop. If the loop's thread has ended, the request is dropped.
    fileprivate func add(
        _ request: TimedRequest, to timed: Timed, at instant: RunLoop.Clock.Instant, _ fire: @escaping @Sendable (RunLoop) -> Void
    ) {
        if request.modes.isEmpty { return }
        let timer = Timer(due: instant) { [self] _ in fire(self) }
        request.timer = timer
        let isEnded = requests.withLock { queue in
            if queue.isEnded { return true }
            request.number = queue[keyPath: timed].nextNumber()
            queue[keyPath: timed].add(request)
            return false
        }
        if isEnded { return timer.invalidate() }
        for mode in request.modes { add(timer, forMode: mode) }
        if !isIn(timer, request.modes) { cancel(request, in: timed) }
    }

    /// Whether the timer is in the loop, or has done its work there.
    private func isIn(_ timer: Timer, _ modes: [Mode]) -> Bool {
        !timer.isValid || modes.contains { CFRunLoopContainsTimer(loop, timer.cfRunLoopTimer, $0.name) }
    }

    /// Whether the request is the caller's, who is to perform it.
    fileprivate func take(_ request: TimedRequest, from timed: Timed) -> Bool {
        requests.withLock { $0[keyPath: timed].remove(request) }
    }

    fileprivate func cancel(_ request: TimedRequest, in timed: Timed) {
        if take(request, from: timed) { request.timer?.invalidate() }
    }

    /// Cancels the target's requests that match; `matches`, which may be a program's code, is called while no lock is held.
    fileprivate func cancel(in timed: Timed, for target: AnyObject, where matches: (TimedRequest) -> Bool) {
        let requests = requests.withLock { $0[keyPath: timed].requests(for: target) }
        for request in requests where matches(request) { cancel(request, in: timed) }
    }

    // MARK: In order

    /// Performs a method at the start of the loop's next pass over one of `modes`, among others in their order.
    ///
    /// Lower orders come first, equal ones in the order of the requests. A request that is made while one is performed waits for the pass
    /// after. It is performed once, and, being a timer, does not end ``run(mode:before:)``. A run inside one that is performed performs
    /// those that are still to come.
    ///
    /// - Parameters:
    ///   - action: The method, with the name by which it can be cancelled.
    ///   - target: Kept until it is performed or cancelled, or the loop's thread ends, which drops the request.
    ///   - argument: What the method gets.
    ///   - order: Lower ones first.
    ///   - modes: Without any, nothing happens.
    @preconcurrency
    public func perform<Target: AnyObject & Sendable, Argument: Sendable>(
        _ action: RunLoop.Action<Target, Argument>, target: Target, argument: Argument, order: Int = 0, modes: [Mode] = [.default]
    ) {
        let request = TimedRequest(target, action.name, argument, order: order, modes) {
            callOrSend(action.method, of: target, with: argument)
        }
        add(request, to: \.ordered, at: .now) { $0.performOrdered() }
    }

    /// Performs a method without a parameter in the same order.
    @preconcurrency
    public func perform<Target: AnyObject & Sendable>(
        _ action: RunLoop.Action<Target, Void>, target: Target, argument: Never? = nil, order: Int = 0, modes: [Mode] = [.default]
    ) {
        perform(action, target: target, argument: (), order: order, modes: modes)
    }

    /// Performs a method that has no name, and so can be cancelled by its target alone, in the same order.
    @preconcurrency
    public func perform<Target: AnyObject & Sendable, Argument: Sendable>(
        _ method: @escaping @Sendable (Target) -> @isolated(any) (Argument) -> Void, target: Target, argument: Argument, order: Int = 0,
        modes: [Mode] = [.default]
    ) {
        let request = TimedRequest(target, nil, argument, order: order, modes) { callOrSend(method, of: target, with: argument) }
        add(request, to: \.ordered, at: .now) { $0.performOrdered() }
    }

    /// Performs a method without a name and without a parameter in the same order.
    @preconcurrency
    public func perform<Target: AnyObject & Sendable>(
        _ method: @escaping @Sendable (Target) -> @isolated(any) () -> Void, target: Target, argument: Never? = nil, order: Int = 0,
        modes: [Mode] = [.default]
    ) {
        let request = TimedRequest(target, nil, (), order: order, modes) { callOrSend(method, of: target) }
        add(request, to: \.ordered, at: .now) { $0.performOrdered() }
    }

    /// All that may be performed in the current mode, lowest order first, but for what one of them cancels.
    private func performOrdered() {
        guard let mode = currentMode else { return }
        let isCommon = shim_mode_is_common(loop, mode.name)
        let waiting = requests.withLock { $0.ordered.all }
        let served = waiting.filter { $0.modes.serve(mode, isCommon) }.sorted { ($0.order, $0.number) < ($1.order, $1.number) }
        for request in served where take(request, from: \.ordered) {
            request.timer?.invalidate()
            request.work()
        }
    }

    /// Cancels this loop's requests for `target` with the same method and an equal argument. Arguments are compared by `==`, which is
    /// called while no lock is held. Any thread.
    ///
    /// A request that waits behind others of the same pass can still be cancelled by one of these.
    public func cancelPerform<Target: AnyObject, Argument: Equatable>(
        _ action: RunLoop.Action<Target, Argument>, target: Target, argument: Argument
    ) {
        cancel(in: \.ordered, for: target) { $0.name == action.name && $0.argument as? Argument == argument }
    }

    /// Cancels the requests of this loop for `target` whose method, without a parameter, is the same. Any thread.
    public func cancelPerform<Target: AnyObject>(_ action: RunLoop.Action<Target, Void>, target: Target, argument: Never? = nil) {
        cancel(in: \.ordered, for: target) { $0.name == action.name }
    }

    /// Cancels the requests of this loop for `target`. Any thread.
    public func cancelPerformSelectors(withTarget target: AnyObject) { cancel(in: \.ordered, for: target) { _ in true } }
}
