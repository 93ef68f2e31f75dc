// SPDX-License-Identifier: Apache-2.0
//
// The calling thread, and questions about all threads.

import CoreRunLoopShims
import Synchronization

extension Thread {
    /// The calling thread's object. If something else has started the thread, the object is made now; it ends with the thread as others do.
    ///
    /// The last thread-specific destructors of a thread, those of the third round on, get objects that have ended, a new one at each call.
    @available(*, noasync, message: "a task's thread changes at every await")
    public static var current: Thread {
        let state = ThreadState.current
        if let thread = state.thread { return thread }
        let thread = shim_is_main_thread() ? main : Thread(foreignWithID: shim_thread_id(), hasEnded: shim_thread_has_ended())
        if thread !== main { thread.open(RunLoop.current) }
        state.thread = thread
        return thread
    }

    /// The main thread's object. Any thread.
    public static let main: Thread = {
        let thread = Thread(foreignWithID: shim_process_id())
        thread.state.withLock { $0.name = "main" }
        thread.open(RunLoop.main)
        return thread
    }()

    /// Whether the calling thread is the main thread.
    public static var isMainThread: Bool { shim_is_main_thread() }

    /// Whether this is the main thread. Any thread.
    public var isMainThread: Bool { self === Thread.main }

    // MARK: The first thread

    private static let multiThreaded = Atomic(false)

    /// Whether a `Thread` has ever been started.
    public static func isMultiThreaded() -> Bool { multiThreaded.load(ordering: .relaxed) }

    private static let beforeFirstStart = Mutex<[@Sendable () -> Void]>([])

    /// Registers `handler` to be called once, before the process's first `Thread` starts, by the thread that starts it. Cocoa posts
    /// `NSWillBecomeMultiThreaded` then. After a thread has been started, the handler is never called. Any thread.
    ///
    /// The closure cannot be an actor's, because any thread may start the first `Thread`.
    public static func onWillBecomeMultiThreaded(_ handler: @escaping @Sendable () -> Void) {
        beforeFirstStart.withLock { if !isMultiThreaded() { $0.append(handler) } }
    }

    static func announceFirstStart() {
        if isMultiThreaded() { return }
        let handlers = beforeFirstStart.withLock { handlers in
            multiThreaded.store(true, ordering: .relaxed)
            defer { handlers = [] }
            return handlers
        }
        for handler in handlers { handler() }
    }

    // MARK: Where it is

    /// The return addresses of the functions that the calling thread is in, innermost first; for diagnosis.
    public static var callStackReturnAddresses: [UInt] {
        unsafe [UInt](unsafeUninitializedCapacity: 128) { buffer, count in
            if let base = buffer.baseAddress { count = unsafe Int(shim_call_stack(base, UInt(buffer.count))) }
        }
    }

    /// The call stack as text: each address with the symbol and file that the dynamic linker knows for it.
    public static var callStackSymbols: [String] {
        callStackReturnAddresses.map { address in
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
                guard let base = text.baseAddress else { return "" }
                unsafe shim_describe_address(address, base, UInt(text.count))
                return unsafe String(cString: base)
            }
        }
    }

    /// Sleeps until `date`; a date in the past returns at once.
    @available(*, noasync, message: "sleeping would block the task's thread; use Task.sleep")
    public static func sleep(until date: WallTime) { shim_sleep_ns((date - .now).inNanoseconds) }

    /// Sleeps for `duration`; zero and less return at once.
    @available(*, noasync, message: "sleeping would block the task's thread; use Task.sleep")
    public static func sleep(for duration: Duration) { shim_sleep_ns(duration.inNanoseconds) }
}
