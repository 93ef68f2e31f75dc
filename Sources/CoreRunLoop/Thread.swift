// SPDX-License-Identifier: Apache-2.0
//
// A thread's Swift object. `state` guards everything that more than one thread uses; the kernel's thread is always detached, and whoever
// waits for its end waits for `finish`, which runs on the thread itself.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A thread, with a run loop of its own.
///
/// ```swift
/// let worker = Thread { RunLoop.current.run(in: .default, until: stop) }
/// worker.name = "worker"
/// worker.start()
/// ```
///
/// A thread runs its ``main()`` once, and then ends. Subclasses may override ``main()``. Threads are detached: nobody has to wait for one;
/// ``join(timeout:)`` and ``value`` do.
open class Thread: @unchecked Sendable, CustomStringConvertible {
    private enum Phase { case new, running, finished }

    private struct State {
        var phase = Phase.new
        var isCancelled = false
        var name: String?
        var stackSize = 0
        var priority: Double?
        var qualityOfService = QualityOfService.default
        var threadID: Int32 = 0
        var loop: RunLoop?
        /// Whether the loop may be given to those who ask; until then they wait in `early`.
        var isOpen = false
        var early: [@Sendable (RunLoop?) -> Void] = []
        var failure: (any Error)?
        var waiting: [CheckedContinuation<Void, any Error>] = []
        var dictionary: [String: any Sendable] = [:]
        var dictionaryVersion = 0
        var willExit: [@Sendable () -> Void] = []
        /// Whether those who asked have been told of the end, or are being told.
        var isEndTold = false
        /// What ``main()`` calls; until the end.
        var body: Body?
    }

    /// An object: an exit in it leaves nothing else behind.
    private final class Body: Sendable {
        let call: @Sendable () throws -> Void
        init(_ call: @escaping @Sendable () throws -> Void) { self.call = call }
    }

    private let state: Mutex<State>
    private let end = Gate()
    private let isForeign: Bool

    // MARK: Creation

    /// Makes a thread that does nothing, for subclasses that override ``main()``.
    public init() {
        isForeign = false
        state = Mutex(State())
    }

    /// Makes a thread that runs `block` when it is started. An error that the block throws comes out of ``value``.
    public init(block: @escaping @Sendable () throws -> Void) {
        isForeign = false
        state = Mutex(State(body: Body(block)))
    }

    /// Makes a thread that calls a method of `target` when it is started.
    ///
    /// - Parameters:
    ///   - target: Kept until the thread ends.
    ///   - action: A method as `Class.method`, with one parameter.
    ///   - argument: What the method gets.
    public convenience init<Target: AnyObject & Sendable, Argument: Sendable>(
        target: Target, selector action: @escaping @Sendable (Target) -> @isolated(any) (Argument) -> Void, object argument: Argument
    ) {
        self.init { call(action(target), with: argument) }
    }

    /// Makes a thread that calls a method of `target` that has no parameter.
    ///
    /// - Parameters:
    ///   - target: Kept until the thread ends.
    ///   - action: A method as `Class.method`.
    ///   - object: Without a meaning; `nil`.
    public convenience init<Target: AnyObject & Sendable>(
        target: Target, selector action: @escaping @Sendable (Target) -> @isolated(any) () -> Void, object: Never? = nil
    ) {
        self.init { call(action(target)) }
    }

    /// The object of a thread that something else has started.
    private init(foreignWithID threadID: Int32, hasEnded: Bool = false) {
        isForeign = true
        state = Mutex(State(phase: hasEnded ? .finished : .running, threadID: threadID))
        if hasEnded { end.open() }
    }

    /// Starts a thread that runs `block`.
    public static func detachNewThread(_ block: @escaping @Sendable () throws -> Void) { Thread(block: block).start() }

    /// Starts a thread that calls a method of `target` with `argument`.
    public static func detachNewThreadSelector<Target: AnyObject & Sendable, Argument: Sendable>(
        _ action: @escaping @Sendable (Target) -> @isolated(any) (Argument) -> Void, toTarget target: Target, with argument: Argument
    ) {
        Thread(target: target, selector: action, object: argument).start()
    }

    /// Starts a thread that calls a method of `target` that has no parameter.
    public static func detachNewThreadSelector<Target: AnyObject & Sendable>(
        _ action: @escaping @Sendable (Target) -> @isolated(any) () -> Void, toTarget target: Target, with object: Never? = nil
    ) {
        Thread(target: target, selector: action).start()
    }

    // MARK: The calling thread

    /// The calling thread's object; of a thread that something else has started it is made now, and ends with the thread as others do.
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

    private static let multiThreaded = Atomic(false)

    /// Whether a `Thread` has ever been started.
    public static func isMultiThreaded() -> Bool { multiThreaded.load(ordering: .relaxed) }

    private static let beforeFirstStart = Mutex<[@Sendable () -> Void]>([])

    /// Has `handler` called once, by whoever starts the process's first `Thread`, before it starts: what Cocoa posts as
    /// `NSWillBecomeMultiThreaded`. Not called any more when a thread has been started. Any thread.
    ///
    /// No actor's closure, as it may be any thread that does so.
    public static func onWillBecomeMultiThreaded(_ handler: @escaping @Sendable () -> Void) {
        beforeFirstStart.withLock { if !isMultiThreaded() { $0.append(handler) } }
    }

    private static func announceFirstStart() {
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

    /// The same as text: an address, and what the dynamic linker knows of it.
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

    /// Ends the calling thread now.
    ///
    /// What Swift has on the stack is not unwound: objects and locks that its functions hold stay held, such as the loop in a call of
    /// `RunLoop.current.run()`, or the closure of a timer that is firing. This package's own functions keep nothing there of a run, of its
    /// token, of what was queued, and, built with optimization, of the thread's block. Return from ``main()`` where that is possible. Who
    /// waits for ``value`` gets ``ThreadError/exited``.
    @available(*, noasync, message: "a task has no thread to end")
    public static func exit() -> Never {
        current.finish(ThreadError.exited)
        shim_thread_exit()
    }

    // MARK: Properties

    /// The thread's name; the kernel shows its first 15 bytes. Any thread, before and after the start.
    public var name: String? {
        get { state.withLock { $0.name } }
        set {
            state.withLock { state in
                state.name = newValue
                Self.showName(state)
            }
        }
    }

    /// With the lock held, so that the kernel gets names in their order.
    private static func showName(_ state: State) {
        if let threadID = runningID(state) { unsafe shim_set_thread_name(threadID, state.name ?? "") }
    }

    /// The class, the object, the number that the kernel knows the thread by, 0 before its start, and its name. Any thread.
    open var description: String {
        let (number, name) = state.withLock { ($0.threadID, $0.name) }
        return "<\(type(of: self)): 0x\(String(UInt(bitPattern: ObjectIdentifier(self)), radix: 16))>"
            + "{number = \(number), name = \(name ?? "(null)")}"
    }

    /// Names the thread with a name that the kernel keeps whole.
    ///
    /// - Throws: ``ThreadError/invalidName(_:)`` for more than 15 bytes, and for a zero byte.
    public func setName(_ name: String) throws(ThreadError) {
        if name.utf8.count > 15 || name.utf8.contains(0) { throw .invalidName(name) }
        self.name = name
    }

    /// The size of the thread's stack in bytes; zero before the start unless it was set: then the system chooses.
    ///
    /// It may be set before the start, to a multiple of 4096 that the system allows; any other value makes the start fail.
    public var stackSize: Int {
        get { state.withLock { $0.stackSize } }
        set { state.withLock { if $0.phase == .new { $0.stackSize = newValue } } }
    }

    /// Sets the size of the stack that the thread will have.
    ///
    /// - Throws: ``ThreadError/invalidStackSize(_:)`` for a size that is too small or no multiple of 4096,
    ///   ``ThreadError/alreadyStarted(_:)`` after the start.
    public func setStackSize(_ bytes: Int) throws(ThreadError) {
        try Self.check(stackSize: bytes)
        if state.withLock({ $0.phase != .new }) { throw .alreadyStarted(name ?? "") }
        stackSize = bytes
    }

    private static func check(stackSize: Int) throws(ThreadError) {
        if stackSize < Int(shim_smallest_stack()) || stackSize % 4096 != 0 { throw .invalidStackSize(stackSize) }
    }

    /// The thread's priority, 0 to 1, usually 0.5; the getter tells what the kernel has, as far as 40 steps can say it.
    ///
    /// Linux lets any process lower it, and few raise it: a value that is not allowed has no effect here, and is an error in
    /// ``setThreadPriority(_:)->()``.
    public var threadPriority: Double {
        get {
            state.withLock { state in
                guard let threadID = Self.runningID(state) else { return state.priority ?? 0.5 }
                return Self.priority(nice: shim_get_thread_nice(threadID))
            }
        }
        set { try? setThreadPriority(newValue) }
    }

    /// Sets the thread's priority, 0 to 1. Any thread, before and after the start.
    ///
    /// - Throws: ``ThreadError/invalidPriority(_:)`` outside that range, ``ThreadError/priorityDenied(_:)`` when the system does not allow
    ///   it.
    public func setThreadPriority(_ priority: Double) throws(ThreadError) {
        if !(0...1).contains(priority) { throw .invalidPriority(priority) }
        let isDenied = state.withLock { state in
            state.priority = priority
            return Self.runningID(state).map { shim_thread_nice($0, Self.nice(priority: priority)) != 0 } ?? false
        }
        if isDenied { throw .priorityDenied(priority) }
    }

    /// The kernel's number of a thread that runs: its own until the lock is given back, as a thread takes the lock at its end.
    private static func runningID(_ state: State) -> Int32? { state.phase == .running && state.threadID != 0 ? state.threadID : nil }

    /// The calling thread's priority.
    @available(*, noasync) public static func threadPriority() -> Double { current.threadPriority }

    /// Sets the calling thread's priority; `false` when it is not allowed.
    @available(*, noasync)
    @discardableResult
    public static func setThreadPriority(_ priority: Double) -> Bool { (try? current.setThreadPriority(priority)) != nil }

    private static func nice(priority: Double) -> Int32 {
        Int32(((0.5 - priority) * (priority < 0.5 ? 38 : 40)).rounded())
    }

    private static func priority(nice: Int32) -> Double { 0.5 - Double(nice) / (nice > 0 ? 38 : 40) }

    /// How important a thread's work is to whoever uses the program.
    public enum QualityOfService: Hashable, Sendable, CaseIterable {
        /// What the user looks at now.
        case userInteractive
        /// What the user waits for.
        case userInitiated
        /// Nothing is known of it.
        case `default`
        /// Work that may take its time: a ``Thread/threadPriority`` of 0.35.
        case utility
        /// Work that nobody waits for: a ``Thread/threadPriority`` of 0.1.
        case background
    }

    /// How important the thread's work is; at first ``QualityOfService/default``. Set it before the start; later it has no effect.
    ///
    /// Linux lets a program lower a thread's priority and not raise it, so that the upper three are the same.
    @_disfavoredOverload
    public var qualityOfService: QualityOfService {
        get { state.withLock { $0.qualityOfService } }
        set {
            state.withLock { state in
                guard state.phase == .new else { return }
                state.qualityOfService = newValue
                state.priority =
                    switch newValue {
                    case .utility: 0.35
                    case .background: 0.1
                    case .userInteractive, .userInitiated, .default: nil
                    }
            }
        }
    }

    /// Values that belong to the thread, for whichever code runs on it; gone when it ends. Any thread.
    public var threadDictionary: [String: any Sendable] {
        get { state.withLock { $0.dictionary } }
        set {
            let old = state.withLock { state in
                defer { state.dictionary = newValue }
                state.dictionaryVersion += 1
                return state.dictionary
            }
            _ = old  // freed here, outside the lock
        }
    }

    /// Changes ``threadDictionary`` without losing another thread's change: `body` is called again if there was one meanwhile.
    public func withThreadDictionary<Result>(_ body: (inout [String: any Sendable]) -> Result) -> Result {
        while true {
            var (dictionary, version) = state.withLock { ($0.dictionary, $0.dictionaryVersion) }
            let result = body(&dictionary)
            let isUnchanged = state.withLock { state in
                if state.dictionaryVersion != version { return false }
                state.dictionaryVersion += 1
                swap(&state.dictionary, &dictionary)  // the old one is freed outside the lock
                return true
            }
            if isUnchanged { return result }
        }
    }

    var ownLoop: RunLoop? { state.withLock { $0.loop } }

    // MARK: Life

    /// Whether ``cancel()`` was called. Any thread.
    public var isCancelled: Bool { state.withLock { $0.isCancelled } }
    /// Whether it has been started and has not ended. Any thread.
    public var isExecuting: Bool { state.withLock { $0.phase == .running } }
    /// Whether it has ended. Any thread.
    public var isFinished: Bool { state.withLock { $0.phase == .finished } }

    /// Asks the thread to end: sets ``isCancelled``, which ``main()`` has to look at, and wakes its loop. Any thread.
    ///
    /// A thread that is cancelled before its start ends without running ``main()``. A subclass's override calls `super`'s.
    open func cancel() {
        let loop = state.withLock { state in
            state.isCancelled = true
            return state.loop
        }
        loop?.wake()
    }

    /// What the thread does: calls the block or method that it was made with. Subclasses may override it.
    open func main() throws {
        // On the thread itself the state alone keeps the body, until `finish`, which frees it also where the body exits and never returns.
        if ThreadState.existing?.thread === self {
            let body = unsafe state.withLock { state in unsafe state.body.map { unsafe Unmanaged.passUnretained($0) } }
            try unsafe body?._withUnsafeGuaranteedRef { try $0.call() }
        } else {
            try state.withLock { $0.body }?.call()
        }
    }

    /// Starts the thread.
    ///
    /// - Throws: ``ThreadError/alreadyStarted(_:)``, ``ThreadError/invalidStackSize(_:)``, or ``ThreadError/system(_:)`` when the system
    ///   has no thread left. A thread that could not be started has ended.
    public func launch() throws(ThreadError) {
        let stackSize = self.stackSize
        if isForeign
            || !state.withLock({ state in
                defer { if state.phase == .new { state.phase = .running } }
                return state.phase == .new
            })
        {
            throw .alreadyStarted(name ?? "")
        }
        do throws(ThreadError) {
            if stackSize != 0 { try Self.check(stackSize: stackSize) }
            Self.announceFirstStart()
            let info = unsafe retainedInfo(self)
            let error = unsafe shim_thread_start(
                UInt(stackSize),
                { info in
                    unsafe lend(Thread.self, from: info) { $0.prepare() }
                    unsafe releaseInfo(info)  // now the thread's own state keeps it
                    unsafe lend(Thread.self, from: info) { $0.begin() }
                }, info)
            if error != 0 {
                unsafe releaseInfo(info)
                throw .system(error)
            }
        } catch {
            finish(error)
            throw error
        }
    }

    /// Starts the thread, as ``launch()`` does; a failure is reported on the standard error output and by ``value``. A subclass's override
    /// calls `super`'s.
    open func start() {
        do throws(ThreadError) { try launch() } catch { report("Thread.start: \(error)") }
    }

    /// On the new thread.
    private func begin() {
        var failure: (any Error)?
        if !isCancelled {
            do { try main() } catch { failure = error }
        }
        finish(failure)
    }

    /// What it holds is not on the stack while ``main()`` runs, which may end by ``exit()``.
    private func prepare() {
        ThreadState.current.thread = self
        let priority = state.withLock { state in
            state.threadID = shim_thread_id()
            state.stackSize = Int(shim_stack_size())
            if state.name != nil { Self.showName(state) }
            return state.priority
        }
        if let priority { try? setThreadPriority(priority) }
        open(RunLoop.current)
    }

    /// Gives the loop to those who asked for it early. With the lock held, so that who asks from now on comes behind them: what they do
    /// with it calls nothing of a program's.
    private func open(_ loop: RunLoop) {
        let early = state.withLock { state in
            state.loop = loop
            state.isOpen = true
            for request in state.early { request(loop) }
            defer { state.early = [] }
            return state.early
        }
        _ = early  // freed here, outside the lock
    }

    /// For a thread that something else has started, or has ended.
    func finishUnlessFinished() { if !isFinished { finish(isForeign ? nil : ThreadError.exited) } }

    /// On the thread itself, or where it could not be started. Once, or once more out of a handler that ends the thread.
    private func finish(_ failure: (any Error)?) {
        tellEnd()
        let last = state.withLock { state in
            state.phase = .finished
            state.failure = failure
            defer { (state.early, state.waiting, state.dictionary, state.body) = ([], [], [:], nil) }
            return (loop: state.loop, early: state.early, waiting: state.waiting, freed: (state.dictionary, state.body))
        }
        for request in last.early { request(nil) }
        last.loop?.refuseRequests()
        end.open()
        for continuation in last.waiting { continuation.resume(with: failure.map { .failure($0) } ?? .success(())) }
    }

    private func tellEnd() {
        let (isTold, handlers) = state.withLock { state in
            defer { (state.isEndTold, state.willExit) = (true, []) }
            return (state.isEndTold, state.willExit)
        }
        if isTold { return }
        for handler in handlers { handler() }
        Self.announceExit(of: self)
    }

    /// Gives the thread's loop to `body`: now, at the start of a thread that is to be started, or `nil` when the thread has ended. At the
    /// start `body` may neither call a program's code nor ask for anything of the thread.
    func withLoop(_ body: @escaping @Sendable (RunLoop?) -> Void) {
        let (isReady, loop) = state.withLock { state -> (Bool, RunLoop?) in
            if state.phase == .finished { return (true, nil) }
            if state.isOpen { return (true, state.loop) }
            state.early.append(body)
            return (false, nil)
        }
        if isReady { body(loop) }
    }

    // MARK: The end

    /// Waits until the thread has ended. Any number of threads may, any number of times.
    ///
    /// What would never come is not waited for, but reported on the standard error output: a thread's own end, and, without a limit, the
    /// end of one that waits for this thread without one, here or in ``performAndWait(inModes:timeout:_:)``, directly or by way of others.
    ///
    /// - Parameter timeout: How long at most; `nil` is without limit.
    /// - Returns: Whether it has ended.
    @available(*, noasync, message: "waiting would block the task's thread; use value")
    @discardableResult
    public func join(timeout: Duration? = nil) -> Bool {
        if end.wait(for: .zero) { return true }
        if ThreadState.existing?.thread === self {
            report("Thread.join: the thread \"\(name ?? "")\" would wait for its own end")
            return false
        }
        if let hasEnded = WaitGraph.shared.waiting(for: .end(of: self), isLimited: timeout != nil, { end.wait(for: timeout) }) {
            return hasEnded
        }
        report("Thread.join: the thread \"\(name ?? "")\" waits for the end of the one that would wait for it")
        return false
    }

    /// Waits until the thread has ended, and throws what its ``main()`` threw.
    ///
    /// - Throws: The error of ``main()``; ``ThreadError/exited`` after ``exit()``; why it could not be started.
    public var value: Void {
        get async throws {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let outcome = state.withLock { state -> Result<Void, any Error>? in
                    if state.phase == .finished { return state.failure.map { .failure($0) } ?? .success(()) }
                    state.waiting.append(continuation)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        }
    }

    /// Has `handler` called on the thread when it is about to end, while its dictionary and its loop are still there; not any more when
    /// those who asked are being told. Any thread.
    ///
    /// It may be a closure of an actor whose thread this is: of one that conforms to ``RunLoopActor`` with this thread's loop, or the main
    /// actor's on the main thread. It is called at once, without a task, and on another thread it stops the process. Of a thread that could
    /// not be started it is called on the one that tried.
    public func onExit(_ handler: @escaping @isolated(any) @Sendable () -> Void) {
        let handler = checked(handler)
        state.withLock { if !$0.isEndTold { $0.willExit.append(handler) } }
    }

    /// A handler that is called when threads end, as long as the registration lives.
    public struct ExitRegistration: ~Copyable, Sendable {
        fileprivate let number: Int
        /// Ends it now.
        public consuming func cancel() {}
        deinit {
            let dropped = Thread.exitHandlers.withLock { $0.handlers.removeValue(forKey: number) }
            _ = dropped  // freed here, outside the lock
        }
    }

    private struct ExitHandlers {
        var last = 0
        var handlers: [Int: @Sendable (Thread) -> Void] = [:]
    }
    private static let exitHandlers = Mutex(ExitHandlers())

    /// Has `handler` called whenever a thread that has an object is about to end, on that thread: what Cocoa posts as `NSThreadWillExit`.
    ///
    /// A thread that something else has started has one if it asked for ``current``. No actor's closure, as threads that end are nobody's
    /// in common: ``onExit(_:)`` takes one's for its own thread.
    public static func onWillExit(_ handler: @escaping @Sendable (Thread) -> Void) -> ExitRegistration {
        let number = exitHandlers.withLock { state in
            state.last += 1
            state.handlers[state.last] = handler
            return state.last
        }
        return ExitRegistration(number: number)
    }

    private static func announceExit(of thread: Thread) {
        for (_, handler) in exitHandlers.withLock({ $0.handlers }).sorted(by: { $0.key < $1.key }) { handler(thread) }
    }
}

/// One line on the standard error output.
func report(_ text: String) {
    var line = "CoreRunLoop: \(text)\n"
    line.withUTF8 { bytes in
        if let base = bytes.baseAddress { unsafe shim_report(base, bytes.count) }
    }
}

/// What threads have, and their subclasses may have otherwise: a subclass that declares such a member replaces it without a conflict.
public protocol ThreadMembers: AnyObject {}

extension Thread: ThreadMembers {}

extension ThreadMembers where Self: Thread {
    /// The thread's loop; `nil` before the start. Any thread.
    public var runLoop: RunLoop? { ownLoop }
}

extension Thread: Hashable {
    /// Whether both are the same object.
    public static func == (first: Thread, second: Thread) -> Bool { first === second }
    /// Feeds the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
