// SPDX-License-Identifier: Apache-2.0
//
// Requests to other threads: closures with an end that somebody may be waiting for, and on top of them Cocoa's perform family.
//
// A loop has one queue of requests, in the order they were made. A batch holds the requests that wait in it for one set of modes. It has a
// version-0 source in those modes. The first request makes the source, and performing the batch removes it. So an empty queue does not keep
// a loop's modes alive. The first such source in a pass performs the requests of every batch that the current mode serves. When the loop is
// taken down, the source's `cancel` refuses the requests that are left.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// Work for another thread. A request comes to exactly one end: performed, refused, withdrawn, or abandoned.
final class Request: Sendable {
    private enum Phase: UInt8, AtomicRepresentable { case waiting, underWay, performed, refused }
    private let phase = Atomic(Phase.waiting)
    /// The thread that takes the request out of its first phase owns `work` and `refusal`, and drops both at the end.
    @safe nonisolated(unsafe) private var work: (@Sendable () -> Void)?
    @safe nonisolated(unsafe) private var refusal: (@Sendable (PerformError) -> Void)?

    init(work: @escaping @Sendable () -> Void, refusal: @escaping @Sendable (PerformError) -> Void) {
        self.work = work
        self.refusal = refusal
    }

    /// Moves the request from `current` to `next`. Returns whether it was in `current`; then the request belongs to the caller.
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
    /// Prevents the request from being performed, unless it has begun.
    func withdraw() { if take(for: .refused) { end(nil) } }
    /// Refuses the request even if it has begun. The performing thread calls this when it ends.
    func abandon(_ error: PerformError) { if take(for: .refused) || take(from: .underWay, for: .refused) { end(error) } }

    /// Whether the request was given up. Its closures are gone then, and only this object is left.
    var isRefused: Bool { phase.load(ordering: .acquiring) == .refused }
}

/// Identifies the source for a list of modes. The requests themselves are in the loop's queue.
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
    /// The requests of a batch that nobody has taken yet: the queue's lock guards them. The thread that takes the batch then owns it.
    final class Open: Sendable {
        let batch: Batch
        let source: CFRunLoopSource
        @safe nonisolated(unsafe) private(set) var waiting: [Numbered]
        /// The count at which refused requests are looked for and removed. In a loop that performs nothing, only requests that still wait
        /// take room.
        @safe nonisolated(unsafe) private var limit = 64

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
    /// The open batch that was used last. Most requests are for the same modes as the one before.
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

    /// Returns the open batch for the modes, or nil if there is none.
    mutating func open(for modes: [RunLoop.Mode]) -> Open? {
        if latest?.batch.modes != modes { latest = open[modes] }
        return latest
    }

    mutating func add(_ open: Open) {
        self.open[open.batch.modes] = open
        latest = open
    }

    /// Takes a batch out of the queue. Returns nil if it has been taken already.
    mutating func take(_ batch: Batch) -> Open? {
        guard let found = open[batch.modes], found.batch === batch else { return nil }
        open[batch.modes] = nil
        if latest === found { latest = nil }
        return found
    }
}

/// The requests that the running passes perform, the innermost pass last. They are not on the stack, because an exit in a request abandons
/// the stack. Only the loop's thread touches this object.
final class RequestPasses {
    private struct Pass {
        var current: Request?
        /// The next one last.
        var rest: [Request]
    }
    private var passes: [Pass] = []

    func begin(_ backwards: [Request]) { passes.append(Pass(rest: backwards)) }

    /// Returns the next request of the innermost pass. If there is none, returns nil and ends that pass.
    func next() -> Request? {
        guard let innermost = passes.indices.last else { return nil }
        let done = passes[innermost].current
        let next = passes[innermost].rest.popLast()
        passes[innermost].current = next
        if next == nil { passes.removeLast() }
        withExtendedLifetime(done) {}  // freed when nothing is being changed
        return next
    }

    /// Ends all passes, and returns the requests that they have not finished.
    func endAll() -> [Request] {
        defer { passes = [] }
        return passes.flatMap { ($0.current.map { [$0] } ?? []) + $0.rest.reversed() }
    }
}

extension RunLoop {
    /// Queues a request, or refuses it if the loop's thread has ended.
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

    /// Performs the requests that wait for the current mode. Called on the loop's thread, in a pass. Requests that are made meanwhile wait
    /// for another pass.
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

    /// Returns the requests of all the batches, the latest first. Each batch holds its own requests in order.
    private func backwards(_ batches: [RequestQueue.Open]) -> [Request] {
        if batches.count == 1 { return batches[0].waiting.reversed().map(\.request) }
        return batches.flatMap(\.waiting).sorted { $0.number > $1.number }.map(\.request)
    }

    /// Takes a batch out of the queue, and with it every other batch that the current mode serves.
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

    /// Refuses a batch whose source can no longer be performed.
    private func refuse(_ batch: Batch) {
        guard let open = requests.withLock({ $0.take(batch) }) else { return }
        CFRunLoopSourceInvalidate(open.source)
        for waiting in open.waiting { waiting.request.refuse(.threadFinished) }
    }

    /// Refuses all requests. The loop's thread calls this when it is about to end, perhaps from inside a request.
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
    /// On the loop's own thread `work` is called at once. On any other thread, `work` is performed in the next pass over one of `modes`,
    /// together with all earlier requests. It then ends ``run(mode:before:)`` as an input source does.
    ///
    /// - Parameters:
    ///   - modes: The modes in which the loop may perform `work`. If empty, nothing is performed and the error is
    ///     ``PerformError/cancelled``.
    ///   - timeout: The longest time to wait; `nil` means no limit. Work that has begun by then goes on.
    ///   - work: The closure to perform.
    /// - Throws: Any error that `work` throws; ``PerformError/threadFinished`` when the loop's thread has ended, or ends before `work` is
    ///   done; ``PerformError/wouldDeadlock`` when that thread waits for this one, or when `work` is of an actor that this thread is in;
    ///   ``PerformError/timedOut``; ``RunLoopError/invalidDuration(_:)`` for a negative time limit.
    @available(*, noasync, message: "waiting would block the task's thread; use run(in:_:)")
    public func performAndWait<Result: Sendable>(
        in modes: [Mode] = [.common], timeout: Duration? = nil, _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) throws -> Result {
        if let timeout, timeout < .zero { throw RunLoopError.invalidDuration(timeout) }
        if modes.isEmpty { throw PerformError.cancelled }
        // This thread has the closure's actor and keeps it while it waits, so that no other thread could call the closure.
        if !isCurrent, Home(work.isolation)?.isHere == true { throw PerformError.wouldDeadlock }
        let outcome = Outcome<Result>()
        let work = finishingOnActorOf(work) { outcome.fulfil($0) }
        if isCurrent {
            work()
            if !outcome.gate.wait(for: timeout) { throw PerformError.timedOut }
            return try outcome.get()
        }
        let request = Request(work: work, refusal: { outcome.fulfil(.failure($0)) })
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
    /// `work` is not part of the task. It does not see the task's local values, nor its cancellation. That ends the wait at once, and keeps
    /// `work` from being performed unless it has begun. Use a task that prefers the loop, `Task(executorPreference: loop)`, or an actor's
    /// method for code that must see them.
    ///
    /// - Parameters:
    ///   - modes: The modes in which the loop may perform `work`.
    ///   - work: The closure to perform.
    /// - Throws: Any error that `work` throws;
    ///   ``PerformError/threadFinished``; `CancellationError` when the task is cancelled; ``PerformError/cancelled`` without any mode.
    public func run<Result: Sendable>(
        in modes: [Mode] = [.common], _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) async throws -> Result {
        try await outcome(of: work, modes) { submit($0, modes: modes) }
    }
}

/// Submits a request for `work` with `submit`, and suspends the task until the request has come to its end.
private func outcome<Result: Sendable>(
    of work: @escaping @isolated(any) @Sendable () throws -> Result, _ modes: [RunLoop.Mode], _ submit: (Request) -> Void
) async throws -> Result {
    if modes.isEmpty { throw PerformError.cancelled }
    let wait = RequestWait<Result>()
    return try await waitInTask { _, end in
        let request = Request(work: finishingOnActorOf(work) { wait.finish($0) }, refusal: { wait.finish(.failure($0)) })
        wait.begin(request, end)
        submit(request)
    } giveUp: { _ in
        wait.giveUp()
    }
}

/// A task's wait for a request. It ends once: by the request's end or by the task's cancellation.
private final class RequestWait<Value: Sendable>: Sendable {
    private let state = Mutex<(request: Request, end: WaitEnd<Value>)?>(nil)

    func begin(_ request: Request, _ end: WaitEnd<Value>) { state.withLock { $0 = (request, end) } }

    func finish(_ result: Result<Value, any Error>) { state.withLock { $0.take() }?.end(result) }

    /// Work that has begun goes on.
    func giveUp() {
        guard let (request, end) = state.withLock({ $0.take() }) else { return }
        request.withdraw()
        end(.failure(CancellationError()))
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
    /// Performs `work` on this thread and waits for its result: ``RunLoop/performAndWait(in:timeout:_:)`` of the thread's loop.
    ///
    /// A thread that has not been started performs it once it runs its loop.
    @available(*, noasync, message: "waiting would block the task's thread; use run(in:_:)")
    public func performAndWait<Result: Sendable>(
        in modes: [RunLoop.Mode] = [.common], timeout: Duration? = nil, _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) throws -> Result {
        if let timeout, timeout < .zero { throw RunLoopError.invalidDuration(timeout) }
        let start = shim_monotonic_ns()
        let loop = try loopOnceStarted(timeout)
        let left = timeout.map { max(.zero, $0 - .nanoseconds(shim_monotonic_ns() - start)) }
        return try loop.performAndWait(in: modes, timeout: left, work)
    }

    /// Queues `work` for this thread: ``RunLoop/perform(inModes:block:)``, as an input source.
    ///
    /// A thread that has not been started performs it once it runs its loop. Without any mode nothing is performed.
    ///
    /// - Returns: `true` when `work` is queued. It is performed when the thread runs its loop in one of `modes`, and dropped if the thread
    ///   ends before that. `false` when the thread has ended; then `work` is never called.
    @discardableResult
    public func perform(in modes: [RunLoop.Mode] = [.common], _ work: @escaping @isolated(any) @Sendable () -> Void) -> Bool {
        guard !modes.isEmpty else { return !hasEnded }
        let request = Request(work: onActorOf(work), refusal: { _ in })
        submit(request, modes)
        return !request.isRefused
    }

    /// Queues a request as soon as the thread has begun, or refuses it if the thread has ended.
    private func submit(_ request: Request, _ modes: [RunLoop.Mode]) {
        withLoop { loop in if let loop { loop.submit(request, modes: modes) } else { request.refuse(.threadFinished) } }
    }

    /// Performs `work` on this thread's loop, and suspends the task until it is done.
    ///
    /// - Throws: Any error that `work` throws;
    ///   ``PerformError/threadFinished``; `CancellationError` when the task is cancelled, as ``RunLoop/run(in:_:)`` does. The thread may
    ///   not have been started yet.
    public func run<Result: Sendable>(
        in modes: [RunLoop.Mode] = [.common], _ work: @escaping @isolated(any) @Sendable () throws -> Result
    ) async throws -> Result {
        try await outcome(of: work, modes) { submit($0, modes) }
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
    /// Whether a request for these modes may be performed in `mode`.
    func serve(_ mode: RunLoop.Mode, _ isCommon: Bool) -> Bool { contains(mode) || (isCommon && contains(.common)) }
}
