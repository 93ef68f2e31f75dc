// SPDX-License-Identifier: Apache-2.0
//
// A version-0 source with a queue of commands. The C source's info is the core. The core holds the queue and the closures, and knows the
// loops that the source is in. The Swift object holds the C source.

public import CCoreRunLoop
import Synchronization

/// The object of the C source's context. It holds everything but the commands, because C functions cannot know their type.
private class InputSourceCore {
    typealias Change = @Sendable (RunLoop, RunLoop.Mode) -> Void
    private struct Membership {
        var loops: [CFRunLoop] = []
        var schedule: Change?
        var cancel: Change?
    }
    private let membership: Mutex<Membership>

    init(_ schedule: Change?, _ cancel: Change?) { membership = Mutex(Membership(schedule: schedule, cancel: cancel)) }

    /// The loops that the source is in, once for each mode.
    final var loops: [CFRunLoop] { membership.withLock { $0.loops } }

    /// Drops the closures: the source is invalid.
    func clear() {
        let dropped = membership.withLock { membership in
            defer { (membership.schedule, membership.cancel) = (nil, nil) }
            return (membership.schedule, membership.cancel)
        }
        _ = dropped  // freed here, outside the lock
    }

    /// The source has joined a mode.
    final func join(_ loop: CFRunLoop, _ mode: CFRunLoopMode) {
        let schedule = membership.withLock { membership in
            membership.loops.append(loop)
            return membership.schedule
        }
        schedule?(RunLoop.of(loop), RunLoop.Mode(mode))
    }

    /// The source has left a mode.
    final func leave(_ loop: CFRunLoop, _ mode: CFRunLoopMode) {
        let cancel = membership.withLock { membership in
            let index = membership.loops.firstIndex { address(of: $0) == address(of: loop) }
            if let index { membership.loops.remove(at: index) }
            return membership.cancel
        }
        cancel?(RunLoop.of(loop), RunLoop.Mode(mode))
    }

    /// The source is performed.
    func performAll() {}

    final func makeSource(order: Int) -> CFRunLoopSource {
        var context = unsafe CFRunLoopSourceContext()
        unsafe context.info = retainedInfo(self)
        unsafe context.release = { info in unsafe releaseConstantInfo(info) }
        unsafe context.schedule = { info, loop, mode in
            if let loop, let mode { unsafe object(InputSourceCore.self, from: info).join(loop, mode) }
        }
        unsafe context.cancel = { info, loop, mode in
            if let loop, let mode { unsafe object(InputSourceCore.self, from: info).leave(loop, mode) }
        }
        unsafe context.perform = { info in unsafe withBorrowed(InputSourceCore.self, from: info) { $0.performAll() } }
        return unsafe require(CFRunLoopSourceCreate(nil, order, &context), "InputSource")
    }
}

/// The queue.
@safe private final class CommandCore<Command: Sendable>: InputSourceCore {
    private final class Closure {
        let perform: @Sendable ([Command]) -> Void
        init(_ perform: @escaping @Sendable ([Command]) -> Void) { self.perform = perform }
    }

    private let closure: Unmanaged<Closure>
    private let calls = CallCount()
    /// Guards the three properties below. They are not the lock's value: a value that is generic only here would be handled by way of its
    /// type's description.
    private let lock = Mutex(())
    @exclusivity(unchecked) private var commands: [Command] = []
    @exclusivity(unchecked) private var isCleared = false
    /// Written under the lock; a signal without commands takes no lock.
    private let hasCommands = Atomic(false)
    private let none: [Command] = []

    init(_ schedule: Change?, _ cancel: Change?, _ perform: @escaping @Sendable ([Command]) -> Void) {
        unsafe closure = .passRetained(Closure(perform))
        super.init(schedule, cancel)
    }

    deinit { dropClosure() }

    func append(_ command: Command) {
        lock.withLock { _ in
            if unsafe isCleared { return }
            unsafe commands.append(command)
            hasCommands.store(true, ordering: .releasing)
        }
    }

    var count: Int { lock.withLock { _ in unsafe commands.count } }

    private func takeAll() -> [Command] {
        lock.withLock { _ in
            let taken = unsafe commands
            unsafe commands = none
            hasCommands.store(false, ordering: .relaxed)
            return taken
        }
    }

    override func performAll() {
        guard calls.begin() else { return }
        unsafe closure._withUnsafeGuaranteedRef { closure in
            closure.perform(hasCommands.load(ordering: .acquiring) ? takeAll() : none)
        }
        if calls.end() { unsafe closure.release() }
    }

    private func dropClosure() {
        if calls.giveUp() { unsafe closure.release() }
    }

    override func clear() {
        super.clear()
        dropClosure()
        lock.withLock { _ in unsafe isCleared = true }
        _ = takeAll()  // freed here, outside the lock
    }
}

/// A source of a program's own: other threads send it commands, and the loop's thread performs them.
///
/// ```swift
/// let source = InputSource<String> { commands in for command in commands { print(command) } }
/// loop.add(source, forMode: .default)
/// source.send("redraw")        // from any thread
/// ```
///
/// Commands that are sent before the loop comes to them are performed together, in the order of sending.
public final class InputSource<Command: Sendable>: RunLoopSource {
    /// The C object of this source.
    public let cfRunLoopSource: CFRunLoopSource
    /// Any thread may use the core: a lock, or an atomic value, guards each of its fields. A class with subclasses cannot say so.
    @safe nonisolated(unsafe) private let core: CommandCore<Command>

    /// Makes a source that is in no loop yet.
    ///
    /// - Parameters:
    ///   - order: Among sources that are ready in one pass, those with a lower order are performed first.
    ///   - schedule: Called once for each mode that the source joins, on the thread that adds it.
    ///   - cancel: Called once for each mode that it leaves, on the thread that removes or invalidates it. If it or `schedule` is an
    ///     actor's, and that thread is not the actor's, it is sent to the actor.
    ///   - perform: Called on the loop's thread with the commands sent since the last call; with none after a plain ``signal()``.
    ///
    /// The corresponding C function is `CFRunLoopSourceCreate`.
    public init(
        order: Int = 0, schedule: (@isolated(any) @Sendable (RunLoop, RunLoop.Mode) -> Void)? = nil,
        cancel: (@isolated(any) @Sendable (RunLoop, RunLoop.Mode) -> Void)? = nil,
        perform: @escaping @isolated(any) @Sendable ([Command]) -> Void
    ) {
        core = CommandCore(schedule.map { onActorOf($0) }, cancel.map { onActorOf($0) }, onActorOf(perform))
        cfRunLoopSource = core.makeSource(order: order)
    }

    /// Queues `command`, marks the source and wakes the loops that it is in. Has no effect once the source is invalid. Any thread.
    public func send(_ command: Command) {
        enqueue(command)
        signal()
    }

    /// Queues `command` without telling anyone: ``fireAllCommands(on:)`` or ``signal()`` does that. Any thread.
    ///
    /// An invalid source takes none.
    public func enqueue(_ command: Command) { core.append(command) }

    /// How many commands wait to be performed. Any thread.
    public var pendingCount: Int { core.count }

    /// Marks the source and wakes the loops that it is in. Any thread.
    ///
    /// The corresponding C functions are `CFRunLoopSourceSignal` and `CFRunLoopWakeUp`.
    public func signal() {
        CFRunLoopSourceSignal(cfRunLoopSource)
        for loop in core.loops { CFRunLoopWakeUp(loop) }
    }

    /// Marks the source without waking a loop: it is performed in the next pass that is made for another reason. Any thread.
    public func signalWithoutWaking() { CFRunLoopSourceSignal(cfRunLoopSource) }

    /// Marks the source and wakes one loop. Any thread.
    public func fireAllCommands(on loop: RunLoop) {
        CFRunLoopSourceSignal(cfRunLoopSource)
        loop.wake()
    }

    /// The loops that the source is in, each once. Any thread.
    public var loops: [RunLoop] {
        var seen = Set<RunLoop>()
        return core.loops.map({ RunLoop.of($0) }).filter { seen.insert($0).inserted }
    }

    /// Takes the source out of every mode of every loop for good, and drops its closures and commands. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopSourceInvalidate`.
    public func invalidate() {
        CFRunLoopSourceInvalidate(cfRunLoopSource)
        core.clear()
    }
}
