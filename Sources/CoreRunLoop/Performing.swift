// SPDX-License-Identifier: Apache-2.0
//
// Requests to other threads: closures with an end that somebody may be waiting for, and on top of them Cocoa's perform family.
//
// A batch is one version-0 source that carries the requests of one set of modes, queued since the last such source was performed. It is
// made by the first request, performed with all of them in one pass, and gone after that; so a loop's modes are not kept alive by an empty
// queue. When the loop is taken down the source's `cancel` refuses what is left.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// Something to do on another thread. Performed, refused or withdrawn: exactly one of them happens.
final class Request: Sendable {
    private let isTaken = Atomic(false)
    private let work: @Sendable () -> Void
    private let refusal: @Sendable (PerformError) -> Void

    init(work: @escaping @Sendable () -> Void, refusal: @escaping @Sendable (PerformError) -> Void) {
        self.work = work
        self.refusal = refusal
    }

    private func take() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }

    func perform() { if take() { work() } }
    func refuse(_ error: PerformError) { if take() { refusal(error) } }
    /// Whether it will not be performed.
    func withdraw() -> Bool { take() }
}

/// The requests that wait for one source.
final class Batch: Sendable {
    let requests = Mutex<[Request]>([])
    let loop: RunLoop
    let modes: [RunLoop.Mode]

    init(_ loop: RunLoop, _ modes: [RunLoop.Mode]) {
        self.loop = loop
        self.modes = modes
    }

    /// On the loop's thread: requests that are made meanwhile begin another batch.
    func performAll() { for request in loop.close(self) { request.perform() } }
    func refuseAll() { for request in loop.close(self) { request.refuse(.threadFinished) } }
}

struct RequestQueue: Sendable {
    struct Open: Sendable {
        let batch: Batch
        let source: CFRunLoopSource
    }
    var open: [[RunLoop.Mode]: Open] = [:]
    var isEnded = false
    /// Performs in order (`perform(_:target:argument:order:modes:)`), lowest first.
    var ordered: [OrderedPerform] = []
    /// Performs after a delay, oldest first.
    var delayed: [DelayedPerform] = []
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
            if let open = queue.open[modes] {
                open.batch.requests.withLock { $0.append(request) }
                return .nothing
            }
            let batch = Batch(self, modes)
            batch.requests.withLock { $0.append(request) }
            let open = RequestQueue.Open(batch: batch, source: Self.source(of: batch))
            queue.open[modes] = open
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
            if isAdded { CFRunLoopWakeUp(loop) } else { open.batch.refuseAll() }
        }
    }

    private static func source(of batch: Batch) -> CFRunLoopSource {
        var context = unsafe CFRunLoopSourceContext()
        unsafe context.info = retainedInfo(batch)
        unsafe context.release = { info in unsafe releaseConstantInfo(info) }
        unsafe context.cancel = { info, _, _ in unsafe object(Batch.self, from: info).refuseAll() }
        unsafe context.perform = { info in unsafe object(Batch.self, from: info).performAll() }
        return unsafe require(CFRunLoopSourceCreate(nil, 0, &context), "RunLoop.perform")
    }

    /// Takes a batch's requests, and its source out of the loop.
    fileprivate func close(_ batch: Batch) -> [Request] {
        let source = requests.withLock { queue -> CFRunLoopSource? in
            guard let open = queue.open[batch.modes], open.batch === batch else { return nil }
            queue.open[batch.modes] = nil
            return open.source
        }
        let taken = batch.requests.withLock { requests in
            defer { requests = [] }
            return requests
        }
        if let source { CFRunLoopSourceInvalidate(source) }
        return taken
    }

    /// The loop's thread is about to end.
    func refuseRequests() {
        let batches = requests.withLock { queue in
            queue.isEnded = true
            return queue.open.values.map(\.batch)
        }
        for batch in batches { batch.refuseAll() }
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
        inModes modes: [Mode] = [.common], timeout: Duration? = nil, _ work: @escaping @Sendable () throws -> Result
    ) throws -> Result {
        if let timeout, timeout < .zero { throw RunLoopError.invalidDuration(timeout) }
        if isCurrent { return try work() }
        if modes.isEmpty { throw PerformError.cancelled }
        let outcome = Outcome<Result>()
        let request = Request(
            work: { outcome.fulfil(Swift.Result(catching: work)) }, refusal: { outcome.fulfil(.failure($0)) })
        let waiter = address(of: CFRunLoopGetCurrent() as CFRunLoop)
        try WaitGraph.shared.begin(waiter, for: address(of: loop))
        defer { WaitGraph.shared.end(waiter) }
        submit(request, modes: modes)
        if !outcome.gate.wait(for: timeout) {
            _ = request.withdraw()
            throw PerformError.timedOut
        }
        return try outcome.get()
    }

    /// Performs `work` on the loop's thread, and suspends the task until it is done.
    ///
    /// - Parameters:
    ///   - modes: Where the loop may perform it.
    ///   - work: What is performed.
    /// - Throws: What `work` throws; ``PerformError/threadFinished``; ``PerformError/cancelled`` when the task is cancelled before the loop
    ///   comes to it.
    public func run<Result: Sendable>(
        modes: [Mode] = [.common], _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        if modes.isEmpty { throw PerformError.cancelled }
        let slot = Mutex<Request?>(nil)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Result, any Error>) in
                let request = Request(
                    work: { continuation.resume(with: Swift.Result(catching: work)) }, refusal: { continuation.resume(throwing: $0) })
                slot.withLock { $0 = request }
                if Task.isCancelled { request.refuse(.cancelled) } else { submit(request, modes: modes) }
            }
        } onCancel: {
            slot.withLock { $0 }?.refuse(.cancelled)
        }
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

/// Which loop's thread waits for which other one, so that a circle is an error and not the end of the program.
private final class WaitGraph: Sendable {
    static let shared = WaitGraph()
    private let waits = Mutex<[UInt: UInt]>([:])

    func begin(_ waiter: UInt, for target: UInt) throws(PerformError) {
        let isCircle = waits.withLock { waits in
            var next = target
            while let further = waits[next] {
                if further == waiter { return true }
                next = further
            }
            waits[waiter] = target
            return false
        }
        if isCircle { throw .wouldDeadlock }
    }

    func end(_ waiter: UInt) { waits.withLock { _ = $0.removeValue(forKey: waiter) } }
}

extension Thread {
    /// Performs `work` on this thread and waits for its result: ``RunLoop/performAndWait(inModes:timeout:_:)`` of the thread's loop.
    ///
    /// A thread that has not been started performs it once it runs its loop.
    @available(*, noasync, message: "waiting would block the task's thread; use run(modes:_:)")
    public func performAndWait<Result: Sendable>(
        inModes modes: [RunLoop.Mode] = [.common], timeout: Duration? = nil, _ work: @escaping @Sendable () throws -> Result
    ) throws -> Result {
        if let timeout, timeout < .zero { throw RunLoopError.invalidDuration(timeout) }
        return try loopOnceStarted(timeout).performAndWait(inModes: modes, timeout: timeout, work)
    }

    /// Queues `work` for this thread: ``RunLoop/perform(inModes:block:)``, as an input source.
    ///
    /// - Returns: `false` when the thread has ended.
    @discardableResult
    public func perform(inModes modes: [RunLoop.Mode] = [.common], _ work: @escaping @Sendable () -> Void) -> Bool {
        guard !isFinished else { return false }
        guard !modes.isEmpty else { return true }
        withLoop { loop in loop?.submit(Request(work: work, refusal: { _ in }), modes: modes) }
        return true
    }

    /// Performs `work` on this thread's loop, and suspends the task until it is done.
    ///
    /// - Throws: What `work` throws; ``PerformError/threadFinished``; ``PerformError/cancelled``.
    public func run<Result: Sendable>(
        modes: [RunLoop.Mode] = [.common], _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        let loop: RunLoop? = await withCheckedContinuation { continuation in withLoop { continuation.resume(returning: $0) } }
        guard let loop else { throw PerformError.threadFinished }
        return try await loop.run(modes: modes, work)
    }

    private func loopOnceStarted(_ timeout: Duration?) throws(PerformError) -> RunLoop {
        if isFinished { throw .threadFinished }
        if let loop = runLoop { return loop }
        let gate = Gate()
        withLoop { _ in gate.open() }
        if !gate.wait(for: timeout) { throw .timedOut }
        guard let loop = runLoop, !isFinished else { throw .threadFinished }
        return loop
    }
}
