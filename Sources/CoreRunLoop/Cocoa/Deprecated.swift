// SPDX-License-Identifier: Apache-2.0
//
// Names of the last release, which go with the next one. The compiler offers the new ones.

public import CCoreRunLoop

/// The older name of `RunLoop/Action`.
@available(*, deprecated, renamed: "RunLoop.Action")
public typealias Action<Target: AnyObject, Argument> = RunLoop.Action<Target, Argument>

/// The older name of `MessagePort.Exchange`.
@available(*, deprecated, renamed: "MessagePort.Exchange")
public typealias Exchange<Request: Sendable, Reply: Sendable> = MessagePort.Exchange<Request, Reply>

extension DarwinBoolean {
    /// The value itself: on Linux `DarwinBoolean` is `Bool`.
    @available(*, deprecated, message: "on Linux DarwinBoolean is Bool")
    public var boolValue: Bool { self }
}

extension RunLoop {
    /// The older form of `init(_:)`.
    @available(*, deprecated, renamed: "RunLoop.init(_:)")
    public static func of(_ loop: CFRunLoop) -> RunLoop { RunLoop(loop) }

    /// The older form of `contains(_:in:)`.
    @available(*, deprecated, renamed: "contains(_:in:)")
    public func contains(_ timer: Timer, inMode mode: Mode) -> Bool { contains(timer, in: mode) }

    /// The older form of `contains(_:in:)`.
    @available(*, deprecated, renamed: "contains(_:in:)")
    public func contains(_ observer: Observer, inMode mode: Mode) -> Bool { contains(observer, in: mode) }

    /// The older form of `contains(_:in:)`.
    @available(*, deprecated, renamed: "contains(_:in:)")
    public func contains(_ source: some RunLoopSource, inMode mode: Mode) -> Bool { contains(source, in: mode) }

    /// The older form of `register(_:in:)`.
    @available(*, deprecated, renamed: "register(_:in:)")
    public func register(_ timer: Timer, inMode mode: Mode) -> Registration { register(timer, in: mode) }

    /// The older form of `register(_:in:)`.
    @available(*, deprecated, renamed: "register(_:in:)")
    public func register(_ observer: Observer, inMode mode: Mode) -> Registration { register(observer, in: mode) }

    /// The older form of `register(_:in:)`.
    @available(*, deprecated, renamed: "register(_:in:)")
    public func register(_ source: some RunLoopSource, inMode mode: Mode) -> Registration { register(source, in: mode) }

    /// The older form of `nextTimerFireDate(in:)`.
    @available(*, deprecated, renamed: "nextTimerFireDate(in:)")
    public func nextTimerFireDate(inMode mode: Mode) -> WallTime? { nextTimerFireDate(in: mode) }

    /// The older form of `schedule(every:repeats:tolerance:in:_:)`.
    @available(*, deprecated, renamed: "schedule(every:repeats:tolerance:in:_:)")
    public func schedule(
        every interval: Duration, repeats: Bool = true, tolerance: Duration = .zero, inMode mode: Mode,
        _ block: @escaping @isolated(any) @Sendable (Timer) -> Void
    ) -> Timer.Scheduled {
        schedule(every: interval, repeats: repeats, tolerance: tolerance, in: mode, block)
    }

    /// The older form of `observe(_:in:order:callback:)`.
    @available(*, deprecated, renamed: "observe(_:in:order:callback:)")
    @discardableResult
    public func observe(
        _ activities: Activity, inMode mode: Mode, order: Int = 0, callback: @escaping @isolated(any) (Observer, Activity) -> Void
    ) -> Observer {
        observe(activities, in: mode, order: order, callback: callback)
    }

    /// The older form of `ticks(every:tolerance:policy:in:)`.
    @available(*, deprecated, renamed: "ticks(every:tolerance:policy:in:)")
    public func ticks(
        every interval: Duration, tolerance: Duration = .zero, policy: MissedTickPolicy = .collapse, inMode mode: Mode
    ) throws(RunLoopError) -> Ticks {
        try ticks(every: interval, tolerance: tolerance, policy: policy, in: mode)
    }

    /// The older form of `activities(_:in:)`.
    @available(*, deprecated, renamed: "activities(_:in:)")
    public func activities(_ activities: Activity, inMode mode: Mode) -> AsyncStream<Activity> { self.activities(activities, in: mode) }

    /// The older form of `signals(_:in:)`.
    @available(*, deprecated, renamed: "signals(_:in:)")
    public func signals(_ numbers: [Int32], inMode mode: Mode) throws(RunLoopError) -> AsyncStream<SignalSource.Signal> {
        try signals(numbers, in: mode)
    }

    /// The older form of `readiness(of:for:in:)`.
    @available(*, deprecated, renamed: "readiness(of:for:in:)")
    public func readiness(
        of descriptor: Int32, for interest: DescriptorSource.Readiness = .readable, inMode mode: Mode
    ) throws(RunLoopError) -> DescriptorReadiness {
        try readiness(of: descriptor, for: interest, in: mode)
    }

    /// The older form of `performAndWait(in:timeout:_:)`.
    @available(*, deprecated, renamed: "performAndWait(in:timeout:_:)")
    @available(*, noasync)
    public func performAndWait<Result: Sendable>(
        inModes modes: [Mode], timeout: Duration? = nil, _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) throws -> Result {
        try performAndWait(in: modes, timeout: timeout, work)
    }

    /// The older form of `run(in:_:)`.
    @available(*, deprecated, renamed: "run(in:_:)")
    public func run<Result: Sendable>(
        modes: [Mode], _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) async throws -> Result {
        try await run(in: modes, work)
    }
}

extension Thread {
    /// The older form of `performAndWait(in:timeout:_:)`.
    @available(*, deprecated, renamed: "performAndWait(in:timeout:_:)")
    @available(*, noasync)
    public func performAndWait<Result: Sendable>(
        inModes modes: [RunLoop.Mode], timeout: Duration? = nil, _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) throws -> Result {
        try performAndWait(in: modes, timeout: timeout, work)
    }

    /// The older form of `perform(in:_:)`.
    @available(*, deprecated, renamed: "perform(in:_:)")
    @discardableResult
    public func perform(inModes modes: [RunLoop.Mode], _ work: @escaping @isolated(any) @Sendable () -> Void) -> Bool {
        perform(in: modes, work)
    }

    /// The older form of `run(in:_:)`.
    @available(*, deprecated, renamed: "run(in:_:)")
    public func run<Result: Sendable>(
        modes: [RunLoop.Mode], _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) async throws -> Result {
        try await run(in: modes, work)
    }
}

extension MachPort {
    /// The older form of `init(machPort:)`.
    @available(*, deprecated, renamed: "MachPort.init(machPort:)")
    public static func withMachPort(_ number: UInt32) -> MachPort { MachPort(machPort: number) }
}

extension MessagePort {
    /// The older name of `requestAndWait(number:_:timeout:)`.
    @available(*, noasync, message: "waiting would block the task's thread; use requestBytes(number:_:timeout:)")
    @available(*, deprecated, renamed: "requestAndWait(number:_:timeout:)")
    public func requestNow(number: Int32, _ bytes: [UInt8], timeout: Duration = .seconds(30)) throws(PortError) -> [UInt8] {
        try requestAndWait(number: number, bytes, timeout: timeout)
    }

    /// The older name of `requestAndWait(number:_:timeout:read:)`.
    @available(*, noasync, message: "waiting would block the task's thread; use requestBytes(number:_:timeout:)")
    @available(*, deprecated, renamed: "requestAndWait(number:_:timeout:read:)")
    public func requestNow<Result>(
        number: Int32, _ bytes: RawSpan, timeout: Duration = .seconds(30), read: (RawSpan) -> Result
    ) throws(PortError) -> Result { try requestAndWait(number: number, bytes, timeout: timeout, read: read) }

    /// The older name of `sendAndWait(number:_:timeout:)`.
    @available(*, noasync, message: "waiting for room would block the task's thread")
    @available(*, deprecated, renamed: "sendAndWait(number:_:timeout:)")
    public func sendNow(number: Int32, _ bytes: RawSpan, timeout: Duration = .seconds(30)) throws(PortError) {
        try sendAndWait(number: number, bytes, timeout: timeout)
    }

    /// The older form of `init(name:)` with `nil`.
    @available(*, deprecated, message: "use init(name:) with nil")
    public convenience init(anonymous: Void = ()) throws(PortError) { try self.init(name: nil) }
}
