// SPDX-License-Identifier: Apache-2.0
//
// A loop's Swift object. One object a loop: the registry below holds it weakly by the C loop's address, and the loop's own thread strongly.
// All state is in the C loop but for the queues of jobs and requests, which have their own locks.

public import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A thread's run loop. It sleeps until a source, timer or port needs attention, and then calls the handler.
///
/// Every thread has one, made when ``current`` is first asked for. The program runs it, for as long and in the mode it chooses:
///
/// ```swift
/// let loop = RunLoop.current
/// _ = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in print("tick") }
/// loop.run(until: .now + .seconds(10))
/// ```
///
/// Calls that run the loop or look at its current state belong to the loop's own thread. On another thread they stop the process with a
/// message. ``wake()``, ``stop()``, ``perform(_:)`` and everything that adds, signals or invalidates may be called on any thread.
///
/// The C interface uses this same loop. ``getCFRunLoop()`` returns the C object, and calls through it and through this class may be mixed.
public final class RunLoop: Sendable {
    let loop: CFRunLoop
    let jobs = Mutex(JobQueue())
    /// Only the thread that drains uses it.
    @safe nonisolated(unsafe) let taken = TakenJobs()
    /// Only the loop's thread uses it.
    @safe nonisolated(unsafe) let readBuffer = ReadBuffer()
    let requests = Mutex(RequestQueue())
    /// Only the loop's thread uses it.
    @safe nonisolated(unsafe) let passes = RequestPasses()
    package let end = EndHandlers()

    private init(wrapping loop: CFRunLoop) { self.loop = loop }

    deinit { Self.registry.remove(self, for: address(of: loop)) }

    // MARK: One object a loop

    private static let registry = WeakTable<UInt, RunLoop>()

    /// Gets the object of a C loop: the same every time, as long as someone holds it. The loop's own thread does once it has asked for
    /// ``current``. Any thread.
    ///
    /// - Parameter loop: Any loop; the object keeps it alive.
    public static func of(_ loop: CFRunLoop) -> RunLoop { registry.object(for: address(of: loop)) { RunLoop(wrapping: loop) } }

    /// The calling thread's loop, made when the thread has none yet.
    ///
    /// A task's thread changes at every `await`, so this cannot be asked for in an asynchronous function.
    ///
    /// The corresponding C function is `CFRunLoopGetCurrent`.
    @available(*, noasync, message: "a task has no thread of its own; keep the RunLoop that you mean")
    public static var current: RunLoop {
        let state = ThreadState.current
        if let loop = state.loop { return loop }
        if shim_is_main_thread() { _ = main }  // for what it says at the exit
        let loop = of(CFRunLoopGetCurrent())
        state.loop = loop
        return loop
    }

    /// The calling thread's loop, for something that waits until that loop runs. Reports a task's call on a thread whose loop is not
    /// running: such threads belong to Swift's pool, and nobody runs their loops. The main thread's loop may run later.
    static func current(for what: StaticString) -> RunLoop {
        let loop = current
        if unsafe withUnsafeCurrentTask(body: { unsafe $0 != nil }), loop.currentMode == nil, loop != .main {
            report(
                "a task asked for \(what) on thread \(shim_thread_id()), which runs no loop, so that it does not come; "
                    + "add it to the RunLoop that you mean, or call from the main actor or an actor of a loop")
        }
        return loop
    }

    /// The main thread's loop. Any thread.
    ///
    /// A program that ends with something in this loop, and has never run it, says so on the standard error output.
    ///
    /// The corresponding C function is `CFRunLoopGetMain`.
    public static let main: RunLoop = {
        _ = process
        shim_at_exit {
            if shim_process_id() == RunLoop.process, shim_loop_waits_for_first_run(RunLoop.main.loop) {
                report(
                    "the program ends with something in the main loop, which nobody has run; "
                        + "link CoreRunLoopMain, which runs it while an asynchronous main waits, or run it")
            }
        }
        return of(CFRunLoopGetMain())
    }()

    /// The one that asked for the main loop first, and not a child of its.
    private static let process = shim_process_id()

    /// The C object of this loop, for calls of Apple's C interface. Any thread.
    public func getCFRunLoop() -> CFRunLoop { loop }

    /// Whether the calling thread is this loop's. Any thread.
    public var isCurrent: Bool { shim_loop_is_current(loop) }

    /// Stops the process with a sentence when the calling thread is not this loop's.
    @inline(__always)
    public func preconditionIsCurrent(_ function: StaticString = #function) {
        if !isCurrent { fault("RunLoop.\(function): only the loop's own thread may call this") }
    }

    // MARK: State

    /// The mode in which the loop runs: of nested runs the innermost; `nil` when it is not running.
    ///
    /// Any thread; from another one the answer may be out of date when it arrives.
    ///
    /// The corresponding C function is `CFRunLoopCopyCurrentMode`.
    public var currentMode: Mode? { CFRunLoopCopyCurrentMode(loop).map(Mode.init) }

    /// Whether the loop's thread sleeps in it. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopIsWaiting`.
    public var isWaiting: Bool { CFRunLoopIsWaiting(loop) }

    /// All modes that the loop has heard of, in no particular order. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopCopyAllModes`.
    public var allModes: [Mode] {
        guard let names = CFRunLoopCopyAllModes(loop) else { return [] }
        return (0..<CFArrayGetCount(names)).map { unsafe Mode(unsafeBitCast(CFArrayGetValueAtIndex(names, $0), to: CFString.self)) }
    }

    /// Makes `mode` one of the loop's common modes for good, and adds to it whatever was added to ``Mode/common``. Any thread.
    ///
    /// The corresponding C function is `CFRunLoopAddCommonMode`.
    public func addCommonMode(_ mode: Mode) { CFRunLoopAddCommonMode(loop, mode.name) }

    /// Makes the loop do another pass; a sleeping loop wakes. Any thread, signal handlers included.
    ///
    /// The corresponding C function is `CFRunLoopWakeUp`.
    public func wake() { CFRunLoopWakeUp(loop) }

    /// Ends the innermost run of the loop at the end of its current pass. Any thread, signal handlers included.
    ///
    /// A loop that is not running takes no notice: a request that must not be lost is a ``StopToken``. ``run()`` and ``run(until:)``
    /// begin anew after a stop, as Cocoa's do; ``run(in:for:returnAfterSourceHandled:)`` returns `.stopped`.
    ///
    /// The corresponding C function is `CFRunLoopStop`.
    public func stop() { CFRunLoopStop(loop) }
}

extension RunLoop: Hashable {
    /// Whether both are the same loop.
    public static func == (first: RunLoop, second: RunLoop) -> Bool { address(of: first.loop) == address(of: second.loop) }
    /// Feeds the loop's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(address(of: loop)) }
}
