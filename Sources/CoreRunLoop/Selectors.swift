// SPDX-License-Identifier: Apache-2.0
//
// Cocoa's perform family with methods in the place of selectors: `Worker.refresh` is a value of type `(Worker) -> (Argument) -> Void`.
// Such values cannot be compared, so that what is to be cancelled by its method is named by an `Action`.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

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
    /// The name, by which two actions of one target type are told apart.
    public let name: String
    let method: @Sendable (Target) -> (Argument) -> Void

    /// Names a method with one parameter.
    public init(_ name: String, _ method: @escaping @Sendable (Target) -> (Argument) -> Void) {
        self.name = name
        self.method = method
    }

    /// Whether the names are equal.
    public static func == (first: Action, second: Action) -> Bool { first.name == second.name }
    /// Feeds the name.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension Action where Argument == Void {
    /// Names a method without a parameter.
    public init(_ name: String, _ method: @escaping @Sendable (Target) -> () -> Void) {
        self.init(name) { target in { _ in method(target)() } }
    }
}

/// A request of `perform(_:target:argument:order:modes:)`.
struct OrderedPerform: @unchecked Sendable {
    let target: AnyObject
    let name: String?
    let argument: Any
    let order: Int
    let modes: [RunLoop.Mode]
    let timer: Timer
    let work: () -> Void
}

/// A request of `perform(_:with:afterDelay:inModes:)`.
struct DelayedPerform: @unchecked Sendable {
    let target: AnyObject
    let name: String?
    let argument: Any
    let timer: Timer
}

/// A class whose methods can be performed on other threads, later, or in order. Conforming costs nothing.
public protocol Performing: AnyObject {}

/// What became of a request: an error is also reported on the standard error output.
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
    public func perform<Argument>(_ method: (Self) -> (Argument) -> Void, with argument: Argument) { method(self)(argument) }

    /// Calls a method without a parameter now.
    public func perform(_ method: (Self) -> () -> Void) { method(self)() }
}

extension Performing where Self: Sendable {
    // MARK: On a thread

    /// Performs a method on `thread`, in the next pass of its loop over one of `modes`.
    ///
    /// - Parameters:
    ///   - method: As `Class.method`, with one parameter.
    ///   - thread: A thread that runs its loop. With `waitUntilDone` on the thread itself the method is called at once.
    ///   - argument: What the method gets.
    ///   - waitUntilDone: Whether to wait until the method has returned.
    ///   - modes: Without any, nothing happens.
    /// - Returns: An error in the place of a deadlock: ``PerformError/threadFinished``, ``PerformError/wouldDeadlock``.
    @available(*, noasync)
    @discardableResult
    public func perform<Argument: Sendable>(
        _ method: @escaping @Sendable (Self) -> (Argument) -> Void, on thread: Thread, with argument: Argument, waitUntilDone: Bool,
        modes: [RunLoop.Mode] = [.common]
    ) -> PerformOutcome {
        request(on: thread, waitUntilDone, modes) { method(self)(argument) }
    }

    /// Performs a method without a parameter on `thread`.
    @available(*, noasync)
    @discardableResult
    public func perform(
        _ method: @escaping @Sendable (Self) -> () -> Void, on thread: Thread, waitUntilDone: Bool, modes: [RunLoop.Mode] = [.common]
    ) -> PerformOutcome {
        request(on: thread, waitUntilDone, modes) { method(self)() }
    }

    private func request(
        on thread: Thread, _ waitUntilDone: Bool, _ modes: [RunLoop.Mode], _ work: @escaping @Sendable () -> Void
    ) -> PerformOutcome {
        if modes.isEmpty { return .success(()) }
        return outcome {
            if waitUntilDone {
                try thread.performAndWait(inModes: modes, work)
            } else if !thread.perform(inModes: modes, work) {
                throw PerformError.threadFinished
            }
        }
    }

    /// Performs a method on the main thread.
    @available(*, noasync)
    @discardableResult
    public func performSelector<Argument: Sendable>(
        onMainThread method: @escaping @Sendable (Self) -> (Argument) -> Void, with argument: Argument, waitUntilDone: Bool,
        modes: [RunLoop.Mode] = [.common]
    ) -> PerformOutcome {
        perform(method, on: .main, with: argument, waitUntilDone: waitUntilDone, modes: modes)
    }

    /// Performs a method without a parameter on the main thread.
    @available(*, noasync)
    @discardableResult
    public func performSelector(
        onMainThread method: @escaping @Sendable (Self) -> () -> Void, waitUntilDone: Bool, modes: [RunLoop.Mode] = [.common]
    ) -> PerformOutcome {
        perform(method, on: .main, waitUntilDone: waitUntilDone, modes: modes)
    }

    /// Performs a method on a new thread.
    public func performSelector<Argument: Sendable>(
        inBackground method: @escaping @Sendable (Self) -> (Argument) -> Void, with argument: Argument
    ) {
        Thread.detachNewThread { method(self)(argument) }
    }

    /// Performs a method without a parameter on a new thread.
    public func performSelector(inBackground method: @escaping @Sendable (Self) -> () -> Void) {
        Thread.detachNewThread { method(self)() }
    }
}

extension Performing {
    // MARK: After a delay

    /// Performs a method after a delay, on the calling thread, while its loop runs in one of `modes`.
    ///
    /// - Parameters:
    ///   - method: As `Class.method`, with one parameter.
    ///   - argument: What the method gets.
    ///   - delay: How long at least. Zero is the next pass; equal dates keep their order.
    ///   - modes: Without any, nothing happens.
    @available(*, noasync, message: "a task has no thread of its own")
    public func perform<Argument>(
        _ method: @escaping (Self) -> (Argument) -> Void, with argument: Argument, afterDelay delay: Duration,
        inModes modes: [RunLoop.Mode] = [.default]
    ) {
        later(nil, argument, delay, modes) { method(self)(argument) }
    }

    /// Performs a method without a parameter after a delay.
    @available(*, noasync, message: "a task has no thread of its own")
    public func perform(
        _ method: @escaping (Self) -> () -> Void, afterDelay delay: Duration, inModes modes: [RunLoop.Mode] = [.default]
    ) {
        later(nil, (), delay, modes) { method(self)() }
    }

    /// Performs a named method after a delay, so that it can be cancelled by its name.
    @available(*, noasync, message: "a task has no thread of its own")
    public func perform<Argument>(
        _ action: Action<Self, Argument>, with argument: Argument, afterDelay delay: Duration, inModes modes: [RunLoop.Mode] = [.default]
    ) {
        later(action.name, argument, delay, modes) { action.method(self)(argument) }
    }

    private func later(_ name: String?, _ argument: Any, _ delay: Duration, _ modes: [RunLoop.Mode], _ work: @escaping () -> Void) {
        if modes.isEmpty { return }
        let loop = RunLoop.current
        let own = OwnThread(work)
        let timer = Timer(fire: .now + max(delay, .zero), interval: .zero, repeats: false) { [weak loop] timer in
            _ = loop?.takeDelayed { $0.timer === timer }
            own.closure()
        }
        let request = DelayedPerform(target: self, name: name, argument: argument, timer: timer)
        loop.requests.withLock { $0.delayed.append(request) }
        for mode in modes { loop.add(timer, forMode: mode) }
    }

    /// Cancels the requests of the calling thread that are to be performed on `target` after a delay.
    @available(*, noasync, message: "a task has no thread of its own")
    public static func cancelPreviousPerformRequests(withTarget target: AnyObject) {
        for request in RunLoop.current.takeDelayed(where: { $0.target === target }) { request.timer.invalidate() }
    }

    /// Cancels those requests whose method and argument are the same: equal by `==`.
    @available(*, noasync, message: "a task has no thread of its own")
    public static func cancelPreviousPerformRequests<Target: AnyObject, Argument: Equatable>(
        withTarget target: Target, selector action: Action<Target, Argument>, object argument: Argument
    ) {
        let taken = RunLoop.current.takeDelayed { request in
            request.target === target && request.name == action.name && request.argument as? Argument == argument
        }
        for request in taken { request.timer.invalidate() }
    }

    /// Cancels those requests whose method, without a parameter, is the same.
    @available(*, noasync, message: "a task has no thread of its own")
    public static func cancelPreviousPerformRequests<Target: AnyObject>(withTarget target: Target, selector action: Action<Target, Void>) {
        for request in RunLoop.current.takeDelayed(where: { $0.target === target && $0.name == action.name }) { request.timer.invalidate() }
    }
}

extension RunLoop {
    fileprivate func takeDelayed(where matches: (DelayedPerform) -> Bool) -> [DelayedPerform] {
        requests.withLock { queue in
            let taken = queue.delayed.filter(matches)
            queue.delayed.removeAll(where: matches)
            return taken
        }
    }

    // MARK: In order

    /// Performs a method at the start of the loop's next pass over one of `modes`, among others in their order.
    ///
    /// Lower orders come first, equal ones in the order of the requests. A request that is made while one is performed waits for the pass
    /// after. It is performed once, and, being a timer, does not end ``run(mode:before:)``.
    ///
    /// - Parameters:
    ///   - action: The method, with the name by which it can be cancelled.
    ///   - target: Kept until it is performed or cancelled.
    ///   - argument: What the method gets.
    ///   - order: Lower ones first.
    ///   - modes: Without any, nothing happens.
    public func perform<Target: AnyObject & Sendable, Argument: Sendable>(
        _ action: Action<Target, Argument>, target: Target, argument: Argument, order: Int = 0, modes: [Mode] = [.default]
    ) {
        if modes.isEmpty { return }
        let timer = Timer(fire: .now, interval: .zero, repeats: false) { [weak self] _ in self?.performOrdered() }
        let request = OrderedPerform(
            target: target, name: action.name, argument: argument, order: order, modes: modes, timer: timer
        ) { action.method(target)(argument) }
        requests.withLock { queue in
            let index = queue.ordered.firstIndex { $0.order > order } ?? queue.ordered.endIndex
            queue.ordered.insert(request, at: index)
        }
        for mode in modes { add(timer, forMode: mode) }
    }

    /// All that may be performed in the current mode, lowest order first.
    private func performOrdered() {
        guard let mode = currentMode else { return }
        let isCommon = shim_mode_is_common(loop, mode.name)
        for request in takeOrdered(where: { $0.modes.serve(mode, isCommon) }) {
            request.timer.invalidate()
            request.work()
        }
    }

    private func takeOrdered(where matches: (OrderedPerform) -> Bool) -> [OrderedPerform] {
        requests.withLock { queue in
            let taken = queue.ordered.filter(matches)
            queue.ordered.removeAll(where: matches)
            return taken
        }
    }

    /// Cancels the requests of this loop for `target` whose method and argument are the same. Any thread.
    public func cancelPerform<Target: AnyObject, Argument: Equatable>(
        _ action: Action<Target, Argument>, target: Target, argument: Argument
    ) {
        let taken = takeOrdered { $0.target === target && $0.name == action.name && $0.argument as? Argument == argument }
        for request in taken { request.timer.invalidate() }
    }

    /// Cancels the requests of this loop for `target`. Any thread.
    public func cancelPerforms(withTarget target: AnyObject) {
        for request in takeOrdered(where: { $0.target === target }) { request.timer.invalidate() }
    }
}
