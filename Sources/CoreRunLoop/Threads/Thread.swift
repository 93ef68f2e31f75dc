// SPDX-License-Identifier: Apache-2.0
//
// A thread's Swift object: its stored properties, its initializers, and the members that subclasses may override. Swift wants such members
// in the class itself. The other members are in these files:
//
//   Thread+Start.swift       starting a thread, and the loop that others may ask for before that
//   Thread+Current.swift     the calling thread, and questions about all threads
//   Thread+Properties.swift  the name, the stack size and the thread's own values
//   Thread+Priority.swift    the nice value and the quality of service
//   Thread+End.swift         exit, waiting for the end, and the handlers that it calls
//   Thread+Joinable.swift    a thread whose body returns a value
//
// `state` guards everything that more than one thread uses. The kernel's thread is always detached: a thread that waits for its end waits
// for `finish`, which runs on the thread itself.

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
open class Thread: @unchecked Sendable, CustomStringConvertible {  // an open class cannot be checked
    enum Phase { case new, running, finished }

    struct State {
        var phase = Phase.new
        var isCancelled = false
        var name: String?
        var stackSize = 0
        var priority: Double?
        var qualityOfService = QualityOfService.default
        var threadID: Int32 = 0
        var loop: RunLoop?
        /// Whether callers that ask for the loop get it at once. Until then their closures wait in `early`.
        var isOpen = false
        var early: [@Sendable (RunLoop?) -> Void] = []
        var failure: (any Error)?
        var waiting = WaitList<Void, Void>()
        var dictionary: [String: any Sendable] = [:]
        var dictionaryVersion = 0
        /// Values that another module keeps as long as the dictionary.
        var companion: (any AnyObject & Sendable)?
        var willExit: [@Sendable () -> Void] = []
        /// Whether the `willExit` handlers have been called, or are being called.
        var isEndTold = false
        /// The closure that ``main()`` calls; kept until the end.
        var body: Body?
    }

    /// An object: an exit in it leaves nothing else behind.
    final class Body: Sendable {
        let call: @Sendable () throws -> Void
        init(_ call: @escaping @Sendable () throws -> Void) { self.call = call }
    }

    let state: Mutex<State>
    let end = Gate()
    let isForeign: Bool

    // MARK: Creation

    /// Makes a thread that does nothing, for subclasses that override ``main()``.
    public init() {
        isForeign = false
        state = Mutex(State())
    }

    /// Makes a thread that runs `block` when it is started. An error that the block throws comes out of ``value``.
    @preconcurrency
    public init(block: @escaping @Sendable () throws -> Void) {
        isForeign = false
        state = Mutex(State(body: Body(block)))
    }

    /// The object of a thread that something else has started.
    init(foreignWithID threadID: Int32, hasEnded: Bool = false) {
        isForeign = true
        state = Mutex(State(phase: hasEnded ? .finished : .running, threadID: threadID))
        if hasEnded { end.open() }
    }

    // MARK: What subclasses may replace

    /// Does the thread's work: calls the block or method that it was made with. Subclasses may override it.
    open func main() throws {
        // On the thread itself the state alone keeps the body, until `finish`, which frees it also where the body exits and never returns.
        if ThreadState.existing?.thread === self {
            let body = unsafe state.withLock { state in unsafe state.body.map { unsafe Unmanaged.passUnretained($0) } }
            try unsafe body?._withUnsafeGuaranteedRef { try $0.call() }
        } else {
            try state.withLock { $0.body }?.call()
        }
    }

    /// Starts the thread, as ``launch()`` does; a failure is reported on the standard error output and by ``value``. A subclass's override
    /// calls `super`'s.
    open func start() {
        do throws(ThreadError) { try launch() } catch { report("Thread.start: \(error)") }
    }

    /// Asks the thread to end: sets ``isCancelled``, which ``main()`` has to look at, and wakes its loop. Any thread.
    ///
    /// A loop that is woken makes another pass, in which observers may look at the flag; the run goes on. To end a run, use a request,
    /// `thread.perform {}`, for ``RunLoop/run(mode:before:)``, or a ``RunLoop/StopToken`` for ``RunLoop/run(in:until:)``. Neither is lost
    /// if it comes before the run. A thread that is cancelled before its start ends without running ``main()``. A subclass's override calls
    /// `super`'s.
    open func cancel() {
        let loop = state.withLock { state in
            state.isCancelled = true
            return state.loop
        }
        loop?.wake()
    }

    /// The class, the object, the number that the kernel knows the thread by, 0 before its start, and its name. Any thread.
    open var description: String {
        let (number, name) = state.withLock { ($0.threadID, $0.name) }
        return "<\(type(of: self)): 0x\(String(UInt(bitPattern: ObjectIdentifier(self)), radix: 16))>"
            + "{number = \(number), name = \(name ?? "(null)")}"
    }

    // MARK: State

    /// Whether ``cancel()`` was called. Any thread.
    open var isCancelled: Bool { state.withLock { $0.isCancelled } }
    /// Whether the thread has been started and has not ended. Any thread.
    open var isExecuting: Bool { state.withLock { $0.phase == .running } }
    /// Whether the thread has ended. Any thread.
    open var isFinished: Bool { state.withLock { $0.phase == .finished } }

    /// The thread's name; the kernel shows its first 15 bytes. Any thread, before and after the start.
    open var name: String? {
        get { state.withLock { $0.name } }
        set {
            state.withLock { state in
                state.name = newValue
                Self.showName(state)
            }
        }
    }

    /// The size of the thread's stack in bytes; before the start, unless it was set, the size that the system gives.
    ///
    /// The size may be set before the start, to a multiple of 4096 that the system allows. Any other value makes the start fail.
    open var stackSize: Int {
        get {
            let known = state.withLock { $0.stackSize }
            if known != 0 { return known }
            return Int(ThreadState.existing?.thread === self ? shim_stack_size() : shim_default_stack_size())
        }
        set { state.withLock { if $0.phase == .new { $0.stackSize = newValue } } }
    }

    /// The value of `isFinished`, whatever a subclass overrides.
    var hasEnded: Bool { state.withLock { $0.phase == .finished } }

    var ownLoop: RunLoop? { state.withLock { $0.loop } }
}

/// Members of threads that subclasses may declare differently: a subclass that declares such a member replaces it without a conflict.
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
