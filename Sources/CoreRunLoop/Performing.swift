// SPDX-License-Identifier: Apache-2.0
//
// Requests to other threads: closures with an end that somebody may be waiting for, and on top of them Cocoa's perform family.
//
// A loop has one queue, whose order is that of the requests. A batch is what waits in it for one set of modes, and has a version-0 source
// in those modes: made by its first request, and gone when the batch is performed; so a loop's modes are not kept alive by an empty queue.
// The first source of a pass to be performed performs all that the current mode serves, of whichever batch. When the loop is taken down the
// source's `cancel` refuses what is left.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// Something to do on another thread. It comes to exactly one end: performed, refused, withdrawn, or abandoned.
final class Request: @unchecked Sendable {
    private enum Phase: UInt8, AtomicRepresentable { case waiting, underWay, performed, refused }
    private let phase = Atomic(Phase.waiting)
    /// Whoever takes the request out of its first phase has these two alone, and drops them with it.
    private var work: (@Sendable () -> Void)?
    private var refusal: (@Sendable (PerformError) -> Void)?

    init(work: @escaping @Sendable () -> Void, refusal: @escaping @Sendable (PerformError) -> Void) {
        self.work = work
        self.refusal = refusal
    }

    /// Whether it was in that phase, and so is the caller's.
    private func take(from current: Phase = .waiting, for next: Phase) -> Bool {
        phase.compareExchange(expected: current, desired: next, ordering: .acquiringAndReleasing).exchanged
    }

    private func end(_ error: PerformError?) {
        let refusal = refusal
        (self.work, self.refusal) = (nil, nil)
        if let error { refusal?(error) }
    }

    func perform() {
        guard take(for: .underWay) else { return }
        work?()
        if take(from: .underWay, for: .performed) { end(nil) }
    }
    func refuse(_ error: PerformError) { if take(for: .refused) { end(error) } }
    /// Has it not be performed, if it has not begun.
    func withdraw() { if take(for: .refused) { end(nil) } }
    /// Refuses it though it may have begun: its thread ends, called by that thread.
    func abandon(_ error: PerformError) { if take(for: .refused) || take(from: .underWay, for: .refused) { end(error) } }

    /// Whether it was given up. Nothing is left of it then but this object.
    var isRefused: Bool { phase.load(ordering: .acquiring) == .refused }
}

/// What the source of a list of modes stands for, by its identity: the requests are in the loop's queue.
final class Batch: Sendable {
    let loop: RunLoop
    let modes: [RunLoop.Mode]

    init(_ loop: RunLoop, _ modes: [RunLoop.Mode]) {
        self.loop = loop
        self.modes = modes
    }
}

struct RequestQueue: Sendable {
    struct Numbered: Sendable {
        let number: Int
        let request: Request
    }
    /// What waits in a batch that nobody has taken yet; then whoever has taken it has it alone.
    final class Open: @unchecked Sendable {
        let batch: Batch
        let source: CFRunLoopSource
        private(set) var waiting: [Numbered]
        /// At how many those that were given up are looked for: where nothing is performed, room is taken only by those that wait.
        private var limit = 64

        init(_ batch: Batch, _ source: CFRunLoopSource, _ first: Numbered) {
            self.batch = batch
            self.source = source
            waiting = [first]
        }

        func append(_ numbered: Numbered) {
            if waiting.count == limit {
                waiting.removeAll { $0.request.isRefused }
                limit = max(limit, 2 * waiting.count)
            }
            waiting.append(numbered)
        }
    }
    private(set) var open: [[RunLoop.Mode]: Open] = [:]
    /// One of them: most requests are for the modes of the one before.
    private var latest: Open?
    private var lastNumber = 0
    var isEnded = false
    /// `perform(_:target:argument:order:modes:)`.
    var ordered = TimedRequests()
    /// `perform(_:with:afterDelay:inModes:)`.
    var delayed = TimedRequests()

    mutating func number(_ request: Request) -> Numbered {
        lastNumber += 1
        return Numbered(number: lastNumber, request: request)
    }

    /// What is open for the modes.
    mutating func open(for modes: [RunLoop.Mode]) -> Open? {
        if latest?.batch.modes != modes { latest = open[modes] }
        return latest
    }

    mutating func add(_ open: Open) {
        self.open[open.batch.modes] = open
        latest = open
    }

    /// Takes a batch out, if it has not been taken.
    mutating func take(_ batch: Batch) -> Open? {
        guard let found = open[batch.modes], found.batch === batch else { return nil }
        open[batch.modes] = nil
        if latest === found { latest = nil }
        return found
    }
}

/// What the passes that are under way perform, the innermost last; not on their functions' stacks, which an exit out of a request leaves.
/// Only the loop's thread touches it.
final class RequestPasses: @unchecked Sendable {
    private struct Pass {
        var current: Request?
        /// The next one last.
        var rest: [Request]
    }
    private var passes: [Pass] = []

    func begin(_ backwards: [Request]) { passes.append(Pass(rest: backwards)) }

    /// Goes on in the innermost pass, which is over when there is no next one.
    func next() -> Request? {
        guard let innermost = passes.indices.last else { return nil }
        let done = passes[innermost].current
        let next = passes[innermost].rest.popLast()
        passes[innermost].current = next
        if next == nil { passes.removeLast() }
        withExtendedLifetime(done) {}  // freed when nothing is being changed
        return next
    }

    /// Ends all passes; what was to be performed in them.
    func endAll() -> [Request] {
        defer { passes = [] }
        return passes.flatMap { ($0.current.map { [$0] } ?? []) + $0.rest.reversed() }
    }
}

extension RunLoop {
    /// Queues a request; it is refused if the loop's thread has ended.
    func submit(_ request: Request, modes: [Mode]) {
        enum Next {
            case nothing
            case add(RequestQueue.Open)
            case refuse
        }
        let next = requests.withLock { queue -> Next in
            if queue.isEnded { return .refuse }
            let numbered = queue.number(request)
            if let open = queue.open(for: modes) {
                open.append(numbered)
                return .nothing
            }
            let batch = Batch(self, modes)
            let open = RequestQueue.Open(batch, Self.source(of: batch), numbered)
            queue.add(open)
            return .add(open)
        }
        switch next {
        case .nothing: break
        case .refuse: request.refuse(.threadFinished)
        case .add(let open):
            CFRunLoopSourceSignal(open.source)
            var isAdded = false
            for mode in modes {
                CFRunLoopAddSource(loop, open.source, mode.name)
                isAdded = isAdded || CFRunLoopContainsSource(loop, open.source, mode.name) || !CFRunLoopSourceIsValid(open.source)
            }
            if isAdded { CFRunLoopWakeUp(loop) } else { refuse(open.batch) }
        }
    }

    private static func source(of batch: Batch) -> CFRunLoopSource {
        var context = unsafe CFRunLoopSourceContext()
        unsafe context.info = retainedInfo(batch)
        unsafe context.release = { info in unsafe releaseConstantInfo(info) }
        unsafe context.cancel = { info, _, _ in
            let batch = unsafe object(Batch.self, from: info)
            batch.loop.refuse(batch)
        }
        unsafe context.perform = { info in
            let batch = unsafe object(Batch.self, from: info)
            batch.loop.perform(batch)
        }
        return unsafe require(CFRunLoopSourceCreate(nil, 0, &context), "RunLoop.perform")
    }

    /// On the loop's thread, in a pass: performs what waits for the current mode. Requests that are made meanwhile wait for another pass.
    private func perform(_ batch: Batch) {
        beginPass(with: batch)
        while let request = passes.next() { request.perform() }
    }

    private func beginPass(with batch: Batch) {
        let taken = takeServed(with: batch)
        for open in taken { CFRunLoopSourceInvalidate(open.source) }
        ThreadState.current.loop = self  // so that the thread's end finds what is under way
        passes.begin(backwards(taken))
    }

    /// The requests of batches, each of which has its own in order, the latest first.
    private func backwards(_ batches: [RequestQueue.Open]) -> [Request] {
        if batches.count == 1 { return batches[0].waiting.reversed().map(\.request) }
        return batches.flatMap(\.waiting).sorted { $0.number > $1.number }.map(\.request)
    }

    /// Takes a batch, and all others that the current mode serves.
    private func takeServed(with batch: Batch) -> [RequestQueue.Open] {
        let (own, isAlone) = requests.withLock { queue in (queue.take(batch), queue.open.isEmpty) }
        guard let own else { return [] }
        guard !isAlone, let mode = currentMode else { return [own] }
        let isCommon = shim_mode_is_common(loop, mode.name)
        let others = requests.withLock { queue in
            queue.open.values.filter { $0.batch.modes.serve(mode, isCommon) }.compactMap { queue.take($0.batch) }
        }
        return [own] + others
    }

    /// The batch's source cannot be performed any more.
    private func refuse(_ batch: Batch) {
        guard let open = requests.withLock({ $0.take(batch) }) else { return }
        CFRunLoopSourceInvalidate(open.source)
        for waiting in open.waiting { waiting.request.refuse(.threadFinished) }
    }

    /// The loop's thread, which calls this, is about to end, perhaps out of a request.
    func refuseRequests() {
        let (batches, timed) = requests.withLock { queue in
            queue.isEnded = true
            defer { (queue.ordered, queue.delayed) = (TimedRequests(), TimedRequests()) }
            return (queue.open.values.map(\.batch), queue.ordered.all + queue.delayed.all)
        }
        for request in timed { request.timer?.invalidate() }
        for request in passes.endAll() { request.abandon(.threadFinished) }
        for batch in batches { refuse(batch) }
    }

    // MARK: Closures with a result

    /// Performs `work` on the loop's thread and waits for its result.
    ///
    /// On the loop's own thread `work` is called at once. Elsewhere it is performed in the next pass over one of `modes`, together with
    /// everything else that was requested before, and ends ``run(mode:before:)`` as an input source does.
    ///
    /// - Parameters:
    ///   - modes: Where the loop may perform it; without any, nothing is performed and the error is ``PerformError/cancelled``.
    ///   - timeout: How long to wait at most; `nil` is without limit. Work that has begun by then goes on.
    ///   - work: What is performed.
    /// - Throws: What `work` throws; ``PerformError/threadFinished`` when the loop's thread has ended or ends before;
    ///   ``PerformError/wouldDeadlock`` when that thread waits for this one; ``PerformError/timedOut``;
    ///   ``RunLoopError/invalidDuration(_:)`` for a negative time limit.
    @available(*, noasync, message: "waiting would block the task's thread; use run(modes:_:)")
    public func performAndWait<Result: Sendable>(
        inModes modes: [Mode] = [.common], timeout: Duration? = nil, _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) throws -> Result {
        if let timeout, timeout < .zero { throw RunLoopError.invalidDuration(timeout) }
        if modes.isEmpty { throw PerformError.cancelled }
        let work = checked(work)
        if isCurrent { return try work() }
        let outcome = Outcome<Result>()
        let request = Request(
            work: { outcome.fulfil(Swift.Result(catching: work)) }, refusal: { outcome.fulfil(.failure($0)) })
        let isInTime = WaitGraph.shared.waiting(for: .turn(of: self), isLimited: timeout != nil) {
            submit(request, modes: modes)
            return outcome.gate.wait(for: timeout)
        }
        guard let isInTime else { throw PerformError.wouldDeadlock }
        if !isInTime {
            request.withdraw()
            throw PerformError.timedOut
        }
        return try outcome.get()
    }

    /// Performs `work` on the loop's thread, and suspends the task until it is done.
    ///
    /// `work` is no part of the task: it does not see the task's local values, nor its cancellation once it has begun. What is to see them
    /// is a task that prefers the loop, `Task(executorPreference: loop)`, or an actor's method.
    ///
    /// - Parameters:
    ///   - modes: Where the loop may perform it.
    ///   - work: What is performed.
    /// - Throws: What `work` throws; ``PerformError/threadFinished``; ``PerformError/cancelled`` when the task is cancelled before the loop
    ///   comes to it.
    public func run<Result: Sendable>(
        modes: [Mode] = [.common], _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) async throws -> Result {
        try await outcome(of: checked(work), modes) { submit($0, modes: modes) }
    }
}

/// Suspends the task until a request that `submit` gets has come to its end.
private func outcome<Result: Sendable>(
    of work: @escaping @Sendable () throws -> Result, _ modes: [RunLoop.Mode], _ submit: (Request) -> Void
) async throws -> Result {
    if modes.isEmpty { throw PerformError.cancelled }
    let slot = Mutex<Request?>(nil)
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Result, any Error>) in
            let request = Request(
                work: { continuation.resume(with: Swift.Result(catching: work)) }, refusal: { continuation.resume(throwing: $0) })
            slot.withLock { $0 = request }
            if Task.isCancelled { request.refuse(.cancelled) } else { submit(request) }
        }
    } onCancel: {
        slot.withLock { $0 }?.refuse(.cancelled)
    }
}

/// The result of a request that a thread waits for.
private final class Outcome<Value: Sendable>: Sendable {
    let gate = Gate()
    private let result = Mutex<Result<Value, any Error>?>(nil)

    func fulfil(_ result: Result<Value, any Error>) {
        self.result.withLock { $0 = result }
        gate.open()
    }

    func get() throws -> Value {
        guard let result = result.withLock({ $0 }) else { throw PerformError.cancelled }
        return try result.get()
    }
}

extension Thread {
    /// Performs `work` on this thread and waits for its result: ``RunLoop/performAndWait(inModes:timeout:_:)`` of the thread's loop.
    ///
    /// A thread that has not been started performs it once it runs its loop.
    @available(*, noasync, message: "waiting would block the task's thread; use run(modes:_:)")
    public func performAndWait<Result: Sendable>(
        inModes modes: [RunLoop.Mode] = [.common], timeout: Duration? = nil, _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) throws -> Result {
        if let timeout, timeout < .zero { throw RunLoopError.invalidDuration(timeout) }
        let start = shim_monotonic_ns()
        let loop = try loopOnceStarted(timeout)
        let left = timeout.map { max(.zero, $0 - .nanoseconds(shim_monotonic_ns() - start)) }
        return try loop.performAndWait(inModes: modes, timeout: left, work)
    }

    /// Queues `work` for this thread: ``RunLoop/perform(inModes:block:)``, as an input source.
    ///
    /// A thread that has not been started performs it once it runs its loop. Without any mode nothing is performed.
    ///
    /// - Returns: `true` when `work` is queued: it is performed when the thread runs its loop in one of `modes`, and dropped if the thread
    ///   never does before it ends. `false` when the thread has ended; then `work` is never called.
    @discardableResult
    public func perform(inModes modes: [RunLoop.Mode] = [.common], _ work: @escaping @isolated(any) @Sendable () -> Void) -> Bool {
        guard !modes.isEmpty else { return !hasEnded }
        let request = Request(work: checked(work), refusal: { _ in })
        submit(request, modes)
        return !request.isRefused
    }

    /// Queues a request, as soon as the thread has begun; it is refused if the thread has ended.
    private func submit(_ request: Request, _ modes: [RunLoop.Mode]) {
        withLoop { loop in if let loop { loop.submit(request, modes: modes) } else { request.refuse(.threadFinished) } }
    }

    /// Performs `work` on this thread's loop, and suspends the task until it is done.
    ///
    /// - Throws: What `work` throws; ``PerformError/threadFinished``; ``PerformError/cancelled`` when the task is cancelled before the
    ///   thread, which may not have been started yet, comes to it.
    public func run<Result: Sendable>(
        modes: [RunLoop.Mode] = [.common], _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) async throws -> Result {
        try await outcome(of: checked(work), modes) { submit($0, modes) }
    }

    private func loopOnceStarted(_ timeout: Duration?) throws(PerformError) -> RunLoop {
        if hasEnded { throw .threadFinished }
        if let loop = runLoop { return loop }
        let gate = Gate()
        withLoop { _ in gate.open() }
        if !gate.wait(for: timeout) { throw .timedOut }
        guard let loop = runLoop, !hasEnded else { throw .threadFinished }
        return loop
    }
}

extension [RunLoop.Mode] {
    /// Whether what waits for these modes may be done in `mode`.
    func serve(_ mode: RunLoop.Mode, _ isCommon: Bool) -> Bool { contains(mode) || (isCommon && contains(.common)) }
}
