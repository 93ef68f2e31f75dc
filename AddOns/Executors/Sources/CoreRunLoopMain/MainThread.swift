// SPDX-License-Identifier: Apache-2.0
//
// What the main thread does from the first suspension of an asynchronous main on: it runs the main loop, which serves the main actor.

private import CoreRunLoopMainHook
public import CoreRunLoop
private import Synchronization

extension RunLoop {
    /// Whether the main thread of this program runs the main loop, or a host's, while an asynchronous main is suspended.
    ///
    /// A test that needs the main loop asks this. It is `false` where ``CoreRunLoopMain`` stands back: with `CORERUNLOOP_MAIN=0` in the
    /// environment, where another library has set what the main thread does, where the program has a main executor of its own, and with a
    /// Swift runtime that this package does not know. A line on the standard error output says which. A program whose main is synchronous
    /// runs the loop itself, by `run()`, `runMain` or a host's loop; that does not count here.
    public static var mainThreadRunsLoop: Bool {
        (mainThread.withLock { $0.isDraining } || main_hook_is_set()) && mainLoopServesMainActor
    }

    /// Has the main thread run a host's loop, such as GLib's or Qt's, in place of the main loop.
    ///
    /// ```text
    /// @main struct Program {
    ///     static func main() async {
    ///         RunLoop.mainThreadRuns { g_main_loop_run(loop) }
    ///         await work()
    ///     }
    /// }
    /// ```
    ///
    /// - Parameter body: Runs on the main thread, once, at the first suspension of the asynchronous main. When it returns, the main loop
    ///   runs. It has to let the main loop have its passes (`attachToGLib()`, ``RunLoop/prepareHosted(mode:)``), as the main actor is
    ///   served by them: a line on the standard error output says so if there is none for five seconds.
    /// - Returns: Whether it will run: `false` where ``mainThreadRunsLoop`` is, and after the first suspension.
    @discardableResult public static func mainThreadRuns(_ body: @escaping @MainActor @Sendable () -> Void) -> Bool {
        mainThreadRunsLoop
            && mainThread.withLock { state in
                if state.isDraining { return false }
                state.body = body
                return true
            }
    }
}

extension RunLoop {
    /// Called on the main thread before it runs the loop for the runtime; set by the executor that brings its jobs to the loop itself.
    package static var mainThreadWillRunLoop: (@Sendable () -> Void)? {
        get { mainThread.withLock { $0.willRun } }
        set { mainThread.withLock { $0.willRun = newValue } }
    }

    /// Gives the main thread to the host, if there is one, and then to the main loop. Only on the main thread, once.
    package static func runMainThread() -> Never {
        let (body, willRun) = mainThread.withLock { state in
            state.isDraining = true
            defer { state.body = nil }
            return (state.body, state.willRun)
        }
        willRun?()
        main_hook_tasks_have_threads()
        let executor = mainExecutorIdentity
        let replaced = RunLoop.StopToken()
        let observer = RunLoop.Observer(activities: [.entry, .beforeWaiting, .exit]) { _, activity in
            let depth = mainThread.withLock { state in
                state.depth += activity == .entry ? 1 : activity == .exit ? -1 : 0
                return state.depth
            }
            // Not in a run within a job: in the child of a fork, that is the child's own.
            if activity == .beforeWaiting && depth == 1 { main_hook_end_stranded_child() }
            if mainExecutorIdentity != executor { replaced.requestStop() }
        }
        RunLoop.main.add(observer, forMode: .common)
        if let body {
            expectPasses(within: .seconds(5))
            MainActor.assumeIsolated { body() }
        }
        // A stop of the loop does not end the program.
        while mainExecutorIdentity == executor { RunLoop.main.run(in: .default, until: replaced) }
        observer.invalidate()
        unsafe main_hook_report("CoreRunLoopMain", "the program's main executor is \(mainExecutorName) now")
        Task { @MainActor in
            // Functions that had been suspended before send their jobs to the old executor, whom nobody else serves.
            while true {
                passMainLoop()
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
        main_hook_drain_by_runtime()
    }

    private static func passMainLoop() { _ = RunLoop.main.run(in: .default, for: .zero) }

    /// Says so if the host does not let the main loop have a pass.
    private static func expectPasses(within patience: Duration) {
        let pass = Pass()
        // A timer, as blocks run already when the host takes the loop in.
        RunLoop.main.add(Timer(timeInterval: .zero, repeats: false) { _ in pass.hasBeen.withLock { $0 = true } }, forMode: .common)
        Thread.detachNewThread {
            Thread.sleep(for: patience)
            if pass.hasBeen.withLock({ $0 }) { return }
            unsafe main_hook_tell("CoreRunLoopMain: the host's loop asks for no pass of the main loop, and the main actor waits")
        }
    }
}

private final class Pass: Sendable {
    let hasBeen = Mutex(false)
}

private struct MainThread {
    var body: (@MainActor @Sendable () -> Void)?
    var willRun: (@Sendable () -> Void)?
    var isDraining = false
    /// How many runs of the main loop are within one another.
    var depth = 0
}

private let mainThread = Mutex(MainThread())

/// Whether jobs of the main actor go to the main dispatch queue, which the main loop serves, or to the loop itself.
private var mainLoopServesMainActor: Bool {
    let name = mainExecutorName
    return name.hasSuffix(".DispatchMainExecutor") || name == "CoreRunLoopSwiftRuntime.MainJobExecutor"
}

/// The address of the runtime's main executor; 0 for one that is no object.
private var mainExecutorIdentity: UInt { unsafe unsafeBitCast(MainActor.sharedUnownedExecutor, to: (UInt, UInt).self).0 }

/// The class of the runtime's main executor; empty for one that is no object.
private var mainExecutorName: String {
    let identity = mainExecutorIdentity
    return identity == 0 ? "" : _typeName(type(of: unsafe unsafeBitCast(identity, to: AnyObject.self)))
}

/// Tells the hook's file that this one is linked.
@c func corerunloop_main_is_linked() {}

#if compiler(<6.6)
    /// Called on the main thread, once, when an asynchronous main has suspended for the first time.
    @c func corerunloop_main_thread_drain() -> Never {
        if mainLoopServesMainActor { RunLoop.runMainThread() }
        unsafe main_hook_report("CoreRunLoopMain", "the program's main executor is \(mainExecutorName)")
        main_hook_drain_by_runtime()
    }
#endif
