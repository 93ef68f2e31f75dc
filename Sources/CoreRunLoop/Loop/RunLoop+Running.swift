// SPDX-License-Identifier: Apache-2.0
//
// Running a loop, in Cocoa's forms (boxes A to E of the rules) and in the C interface's. All on the loop's own thread.

public import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

extension RunLoop {
    /// Runs in the default mode until the mode has nothing left to wait for.
    ///
    /// On the main thread this does not return. Where libdispatch is in the process, as in Swift programs, the main loop always waits for
    /// the main dispatch queue.
    ///
    /// This call repeats single runs. ``stop()`` ends only one of them, and the next begins. Use ``run(in:for:returnAfterSourceHandled:)``
    /// or ``run(in:until:)`` for a loop that can be stopped.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public func run() { while run(mode: .default, before: .distantFuture) {} }

    /// Runs in the default mode until `limit`; returns earlier when the mode is empty. A limit in the past is one look, without sleeping.
    ///
    /// The limit is a date of the wall clock, so setting that clock meanwhile may move the end. ``run(for:)`` counts time that passes.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public func run(until limit: WallTime) {
        while run(mode: .default, before: limit) && limit > .now {}
    }

    /// Runs in the default mode for `duration`; returns earlier when the mode is empty. Zero or less is one look, without sleeping.
    ///
    /// The duration is measured by the monotonic clock, so setting the wall clock meanwhile does not change it.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public func run(for duration: Duration) {
        preconditionIsCurrent()
        let deadline = Deadline(after: duration)
        while !shim_mode_is_empty(loop, Mode.default.name) {
            _ = run(in: .default, until: deadline, returnAfterSourceHandled: true)
            if deadline.hasPassed { return }
        }
    }

    /// Runs once in `mode`: until an input source was handled, or until `limit`.
    ///
    /// Timers are no input: they fire, any number of times, without ending the run. A limit in the past is one look without sleeping.
    ///
    /// - Returns: `false`, at once, when the mode is ``Mode/common`` or has no source, no timer and no queued block. Otherwise `true`, also
    ///   when ``stop()`` or the limit ended the run.
    @available(*, noasync, message: "running a loop would block the task's thread")
    @_disfavoredOverload  // Foundation's dates come first where they are known, as in `.distantFuture`
    public func run(mode: Mode, before limit: WallTime) -> Bool {
        preconditionIsCurrent()
        if shim_mode_is_empty(loop, mode.name) { return false }
        _ = run(in: mode, until: Deadline(at: limit), returnAfterSourceHandled: true)
        return true
    }

    /// Runs in `mode` and says why the run ended.
    ///
    /// - Parameters:
    ///   - mode: Any mode but ``Mode/common``.
    ///   - duration: How long at most; `nil` is without limit, zero one pass without sleeping.
    ///   - returnAfterSourceHandled: Whether the first source that was handled ends the run.
    /// - Returns: `.finished` when nothing is left to wait for, at once if that is so at the beginning.
    ///
    /// The corresponding C function is `CFRunLoopRunInMode`.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public func run(in mode: Mode = .default, for duration: Duration? = nil, returnAfterSourceHandled: Bool = false) -> RunResult {
        preconditionIsCurrent()
        return run(in: mode, until: duration.map { Deadline(after: $0) } ?? .never, returnAfterSourceHandled: returnAfterSourceHandled)
    }

    /// When a run ends at the latest.
    private struct Deadline {
        static let never = Deadline(nanoseconds: .max)
        private static let longest = 504_911_232.0  // seconds
        private static let past = Deadline(nanoseconds: 0)

        /// By the clock that stands still while the system is suspended.
        let nanoseconds: Int64

        private init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

        init(at limit: WallTime) {
            let seconds = limit.timeIntervalSinceNow
            if seconds <= 0 {
                self = .past
            } else if seconds > Self.longest {
                self = .never
            } else {
                nanoseconds = shim_monotonic_ns() + Int64((seconds * 1e9).rounded())
            }
        }

        init(after duration: Duration) {
            let (sum, overflow) = shim_monotonic_ns().addingReportingOverflow(duration.inNanoseconds)
            self = duration > .zero ? overflow ? .never : Deadline(nanoseconds: sum) : .past
        }

        var hasPassed: Bool { nanoseconds <= shim_monotonic_ns() }
    }

    /// Nothing here holds the loop: an exit out of a callback would leave it.
    private func run(in mode: Mode, until deadline: Deadline, returnAfterSourceHandled: Bool) -> RunResult {
        shim_run_current_until(mode.name, deadline.nanoseconds, returnAfterSourceHandled)
    }

    /// Runs in `mode` as ``run(in:for:returnAfterSourceHandled:)`` does, but throws for arguments that can only be mistakes.
    ///
    /// - Parameters:
    ///   - mode: A mode to which something has been added.
    ///   - duration: How long at most; `nil` is without limit, zero one pass without sleeping.
    ///   - returnAfterSourceHandled: Whether the first source that was handled ends the run.
    /// - Throws: ``RunLoopError/invalidMode(_:)`` for ``Mode/common`` and for a name that the loop has never heard, perhaps a misspelt one;
    ///   ``RunLoopError/invalidDuration(_:)`` for a negative duration.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public func runChecked(
        in mode: Mode, for duration: Duration? = nil, returnAfterSourceHandled: Bool = false
    ) throws(RunLoopError) -> RunResult {
        if mode == .common || !allModes.contains(mode) { throw .invalidMode(mode) }
        if let duration, duration < .zero { throw .invalidDuration(duration) }
        return run(in: mode, for: duration, returnAfterSourceHandled: returnAfterSourceHandled)
    }

    /// Makes one pass without sleeping, in which due timers fire, and tells when the mode's next timer fires.
    ///
    /// - Returns: `nil` when the mode is empty, ``WallTime/distantFuture`` when it has sources but no timer.
    @available(*, noasync, message: "running a loop would block the task's thread")
    @_disfavoredOverload
    public func limitDate(forMode mode: Mode) -> WallTime? {
        preconditionIsCurrent()
        _ = CFRunLoopRunInMode(mode.name, 0, false)
        if shim_mode_is_empty(loop, mode.name) { return nil }
        return nextTimerFireDate(in: mode) ?? .distantFuture
    }

    /// When the next timer of `mode` fires; `nil` without timers. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopGetNextTimerFireDate`.
    public func nextTimerFireDate(in mode: Mode) -> WallTime? { WallTime(shim_next_timer_date(loop, mode.name)) }

    // MARK: Stops that are not lost

    /// A request to end runs that holds from the moment it is made, also for a run that has not begun.
    public final class StopToken: Sendable {
        private struct State {
            var isRequested = false
            var running: [ObjectIdentifier: CFRunLoop] = [:]
        }
        private let state = Mutex(State())

        /// Makes a token whose stop has not been requested.
        public init() {}

        /// Whether ``requestStop()`` has been called. Any thread.
        public var isRequested: Bool { state.withLock { $0.isRequested } }

        /// Ends every run that was given this token, now and later. Any thread, but not a signal handler.
        ///
        /// A run inside one of these, in a callback, is stopped first; runs around them go on.
        public func requestStop() {
            state.withLock { state in
                state.isRequested = true
                // The lock stays held, so that no run leaves meanwhile: otherwise the run around it would be stopped in its place.
                for loop in state.running.values { CFRunLoopStop(loop) }
            }
        }

        /// False if it is too late to run.
        fileprivate func enter(_ run: TokenRun) -> Bool {
            state.withLock { state in
                if !state.isRequested { state.running[ObjectIdentifier(run)] = run.loop }
                return !state.isRequested
            }
        }

        fileprivate func leave(_ run: TokenRun) { state.withLock { _ = $0.running.removeValue(forKey: ObjectIdentifier(run)) } }
    }

    /// A run with a token. The token knows the run while stopping the loop stops this run, or a run that it waits for. This lasts from the
    /// first observer at its beginning to the last at its end. Only the loop's thread changes this object. The thread keeps it in its own
    /// state and not on its stack, because an exit out of a callback ends it.
    final class TokenRun: Sendable {
        fileprivate let loop: CFRunLoop
        fileprivate let token: StopToken
        private let alive: KeepAlive
        @safe nonisolated(unsafe) private var observers: [Observer] = []
        /// How many runs in the mode have begun and not ended: this one, and those in its callbacks.
        @safe nonisolated(unsafe) private var depth = 0

        fileprivate init(_ loop: CFRunLoop, _ mode: Mode, _ token: StopToken) {
            (self.loop, self.token) = (loop, token)
            alive = KeepAlive(loop, mode)
        }

        /// Watches the run that follows.
        fileprivate func watch(_ mode: Mode) {
            observers = [
                Observer(activities: .entry, order: .min) { _, _ in self.begin() },
                Observer(activities: [.beforeTimers, .beforeWaiting, .exit], order: .max) { _, activity in self.pass(activity) },
            ]
            for observer in observers { CFRunLoopAddObserver(loop, observer.cfRunLoopObserver, mode.name) }
        }

        /// The first observer of a beginning.
        private func begin() {
            depth += 1
            if depth > 1 ? token.isRequested : !token.enter(self) { CFRunLoopStop(loop) }
        }

        /// The last observer: before a sleep, a request that stopped a run in another observer is not overlooked.
        private func pass(_ activity: Activity) {
            if activity != .exit {
                if token.isRequested { CFRunLoopStop(loop) }
                return
            }
            depth -= 1
            if depth == 0 { token.leave(self) }
        }

        /// The run is over, or its thread ends in it.
        func end() {
            for observer in observers { observer.invalidate() }
            observers = []
            depth = 0
            token.leave(self)  // where a callback has left runs of its own without their end
        }
    }

    /// Runs in `mode` until `token` is asked to stop, sleeping also while the mode is empty.
    ///
    /// A stop that was requested before the run began ends it at once; a plain ``stop()`` does not end it. In ``Mode/common``, which is a
    /// set of modes and cannot be run, it returns at once.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public func run(in mode: Mode = .default, until token: StopToken) {
        preconditionIsCurrent()
        ThreadState.current.tokenRuns.append(TokenRun(loop, mode, token))
        while beginTokenRun(mode) {
            let result = run(in: mode, until: .never, returnAfterSourceHandled: false)
            endTokenRun()
            if result == .finished { break }  // as something keeps the mode alive, it cannot be run
        }
        _ = ThreadState.current.tokenRuns.popLast()
    }

    /// Runs the calling thread's loop in the default mode until `token` is asked to stop. Only the thread keeps the loop; the caller's
    /// frame does not.
    static func runCurrent(until token: StopToken) {
        unsafe Unmanaged.passUnretained(current)._withUnsafeGuaranteedRef { $0.run(in: .default, until: token) }
    }

    /// False if the token has been asked to stop.
    private func beginTokenRun(_ mode: Mode) -> Bool {
        guard let run = ThreadState.current.tokenRuns.last, !run.token.isRequested else { return false }
        run.watch(mode)
        return true
    }

    private func endTokenRun() { ThreadState.current.tokenRuns.last?.end() }

    // MARK: Keep-alive

    /// Keeps a mode from being empty, so that a run waits although nothing has been added to it yet; ends with its last owner.
    public struct KeepAlive: ~Copyable, Sendable {
        private let source: CFRunLoopSource

        fileprivate init(_ loop: CFRunLoop, _ mode: Mode) {
            var context = unsafe CFRunLoopSourceContext()
            unsafe context.info = retainedInfo(Nothing())
            unsafe context.release = { info in unsafe releaseConstantInfo(info) }
            source = unsafe require(CFRunLoopSourceCreate(nil, 0, &context), "RunLoop.keepAlive")
            CFRunLoopAddSource(loop, source, mode.name)
        }

        /// Ends it now; the token may stay where it is, as in a property. Once more has no effect. Any thread.
        public func cancel() { CFRunLoopSourceInvalidate(source) }

        deinit { cancel() }

        private final class Nothing {}
    }

    /// Keeps `mode` from being empty for as long as the token lives. Any thread.
    ///
    /// Use this where Cocoa programs add a port without messages.
    public func keepAlive(in mode: Mode = .default) -> KeepAlive { KeepAlive(loop, mode) }

    // MARK: Waiting awake

    /// How long each wait of the loop stays awake, looking for something to do, before it sleeps. Zero, the initial value, means not at
    /// all. A negative duration counts as zero, and one of more than sixteen years as sixteen.
    ///
    /// Waking a thread takes the kernel microseconds, and on virtual machines often tens. A program may set this to save that time at the
    /// cost of a processor. While the loop is awake, other threads wake it without a system call. Between its looks, the loop gives the
    /// processor to other threads that want it. Timers, limits, and the events that end a wait are not affected. May be set and read from
    /// any thread; a new value counts from the loop's next wait on.
    ///
    /// A loop that is an executor sets this by itself, unless the program has set it. It chooses a tenth of a millisecond while the jobs of
    /// one task come that quickly, on several processors, and zero otherwise. The corresponding C functions are `CRLRunLoopSetBusyWait` and
    /// `CRLRunLoopGetBusyWait`.
    public var busyWait: Duration {
        get { .seconds(CRLRunLoopGetBusyWait(loop)) }
        set {
            jobs.withLock { $0.hasChosenWait = true }
            CRLRunLoopSetBusyWait(loop, newValue.inSeconds)
        }
    }

    // MARK: In another loop

    /// A descriptor that becomes readable when ``dispatchHosted()`` has something to do; `nil` when none can be made.
    ///
    /// For a host loop (GLib, libuv, a game's) that does the waiting. It must poll level-triggered and must not read it.
    ///
    /// The corresponding C function is `CRLRunLoopGetDescriptor`.
    @available(*, noasync)
    public var pollableDescriptor: Int32? {
        preconditionIsCurrent()
        let descriptor = CRLRunLoopGetDescriptor(loop)
        return descriptor >= 0 ? descriptor : nil
    }

    /// Does the part of a pass that comes before the sleep; `false` when there is nothing to wait for or the run was stopped.
    ///
    /// The corresponding C function is `CRLRunLoopPrepare`.
    @available(*, noasync)
    public func prepareHosted(mode: Mode = .default) -> Bool {
        preconditionIsCurrent()
        return CRLRunLoopPrepare(loop, mode.name)
    }

    /// How long the host may wait at most; `nil` without limit.
    ///
    /// The corresponding C function is `CRLRunLoopGetTimeout`.
    @available(*, noasync)
    public var hostedTimeout: Duration? {
        preconditionIsCurrent()
        let limit = CRLRunLoopGetTimeout(loop)
        return limit < 0 ? nil : .nanoseconds(limit)
    }

    /// Does the part of a pass that comes after the sleep; `nil` when the run goes on, otherwise why it is over.
    ///
    /// The corresponding C function is `CRLRunLoopDispatch`.
    @available(*, noasync)
    public func dispatchHosted() -> RunResult? {
        preconditionIsCurrent()
        let result = CRLRunLoopDispatch(loop)
        return result.rawValue == 0 ? nil : result
    }

    /// Ends the hosted run.
    ///
    /// The corresponding C function is `CRLRunLoopLeave`.
    @available(*, noasync)
    public func leaveHosted() {
        preconditionIsCurrent()
        CRLRunLoopLeave(loop)
    }
}
