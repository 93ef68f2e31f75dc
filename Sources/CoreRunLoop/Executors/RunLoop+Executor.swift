// SPDX-License-Identifier: Apache-2.0
//
// A loop as an executor of Swift's concurrency. Jobs wait in a queue of the loop's object. One queued function of the C loop stands for all
// of them. So a burst of jobs costs one wake-up, and the loop's modes stay empty when there are no jobs.
//
// Invariants: while `isPosted`, a queued function will call `drain`. Only the loop's thread takes jobs. Once that thread has ended, the one
// thread that stands in for it takes them. Nobody takes jobs inside a job: a run that is nested in a job leaves them to the drain that is
// under way. A thread that ends inside a job gives back the jobs that it has taken.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

struct JobQueue: Sendable {
    var waiting: [UnownedJob] = []
    var isPosted = false
    /// A job is on the stack of the loop's thread.
    var isRunning = false
    /// The number of the thread that has taken the place of the loop's own, which has ended.
    var standIn: UInt64 = 0
    /// The program has set how the loop waits.
    var hasChosenWait = false
    /// The executor has the loop stay awake between jobs.
    var staysAwake = false
    /// When the last drain ended, by the loop's clock.
    var drainEnd: Int64 = 0
    /// The task whose job was all that the last drain ran, by its address, which may be another one's by now; 0 if there was more.
    var lastAlone: UInt = 0
}

/// The jobs that a drain has taken: not on its stack, which an exit out of a job leaves. Only the thread that drains touches it, and then
/// the one that takes its place.
final class TakenJobs {
    fileprivate var batch: [UnownedJob] = []
    private var position = 0

    /// The task of the only job, which is the job, by its address; 0 if there are more.
    fileprivate var alone: UInt { batch.count == 1 ? address(of: batch[0]) : 0 }

    fileprivate func next() -> UnownedJob? {
        guard position < batch.count else { return nil }
        defer { position += 1 }
        return batch[position]
    }

    /// Nobody waits behind those that `next` has given.
    fileprivate var isEmpty: Bool { position == batch.count }

    /// Forgets those that `next` has given.
    fileprivate func dropGiven() {
        if position == batch.count { batch.removeAll(keepingCapacity: true) } else { batch.removeFirst(position) }
        position = 0
    }
}

extension RunLoop: SerialExecutor, TaskExecutor {
    /// How many jobs one pass runs before timers and sources have their turn.
    private static let budget = 256

    /// How long a loop stays awake between jobs that come quickly. A task that hops to the loop and back comes again after about as long as
    /// it takes to wake a thread twice.
    private static let busyWaitBetweenJobs = Duration.microseconds(100)

    private static let hasProcessors = shim_has_processors()

    /// Queues a job of a task; it runs on the loop's thread, while the loop runs in a common mode. Called by Swift.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // A queued job may run at once and hold the last reference to this object. Then only the ticket keeps it.
        let ticket = unsafe jobs.withLock { jobs in
            jobs.waiting.append(job)
            defer { jobs.isPosted = true }
            return unsafe !jobs.isPosted && !jobs.isRunning ? retainedInfo(JobTicket(self)) : nil
        }
        if let ticket = unsafe ticket { unsafe post(ticket) }
    }

    /// Whether jobs wait for the one that runs.
    package var hasJobs: Bool { !taken.isEmpty || jobs.withLock { !$0.waiting.isEmpty } }

    /// A reference for an actor's `unownedExecutor`.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

    /// A reference for a task's executor preference.
    public func asUnownedTaskExecutor() -> UnownedTaskExecutor { unsafe UnownedTaskExecutor(ordinary: self) }

    /// Whether the calling thread is this loop's, so that an actor of this loop may be used at once. Called by Swift.
    public func isIsolatingCurrentContext() -> Bool? {
        isCurrent || jobs.withLock { $0.standIn == shim_thread_number() }
    }

    /// Stops the process when the calling thread is not this loop's. Called by Swift.
    public func checkIsolated() {
        if isIsolatingCurrentContext() != true { fault("RunLoop: expected to be on the loop's own thread") }
    }

    /// Has the loop call `drain` once, perhaps before this returns: the last that may be done with this object.
    private func post(_ ticket: UnsafeMutableRawPointer) {
        unsafe shim_perform_and_wake(
            loop, { info in unsafe object(JobTicket.self, from: info).redeem() }, ticket, { info in unsafe releaseInfo(info) })
    }

    /// Runs the queued jobs, on the loop's thread.
    fileprivate func drain() {
        // Inside a job there is nothing to begin: the drain that runs it goes on with these.
        guard beginDrain() else { return }
        let thread = ThreadState.current
        thread.drained = self
        var left = Self.budget
        let alone = taken.alone
        while left > 0 && !taken.batch.isEmpty {
            left -= taken.batch.count
            while let job = taken.next() {
                unsafe job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
            }
            taken.dropGiven()
            if left > 0 { jobs.withLock { swap(&$0.waiting, &taken.batch) } }
        }
        thread.drained = nil
        jobs.withLock { $0.lastAlone = left == Self.budget - 1 ? alone : 0 }
        endDrain()
    }

    /// False when a drain is under way.
    private func beginDrain() -> Bool {
        jobs.withLock { jobs in
            if jobs.isRunning { return false }
            jobs.isRunning = true
            swap(&jobs.waiting, &taken.batch)
            chooseWait(&jobs)
            return true
        }
    }

    /// Stays awake between the jobs of one task that come quickly, unless the program has chosen how to wait. Many tasks gain more if their
    /// jobs gather while the loop is woken.
    private func chooseWait(_ jobs: inout JobQueue) {
        if jobs.hasChosenWait { return }
        if CRLRunLoopGetBusyWait(loop) != (jobs.staysAwake ? Self.busyWaitBetweenJobs.inSeconds : 0) {
            jobs.hasChosenWait = true  // by the C function
            return
        }
        // A clock that a test moves by hand may stand still. A loop that stays awake by it would never sleep.
        let pause = shim_monotonic_ns() - jobs.drainEnd
        let isSame = taken.alone != 0 && taken.alone == jobs.lastAlone
        let comesQuickly =
            isSame && pause <= Self.busyWaitBetweenJobs.inNanoseconds && Self.hasProcessors && !shim_clock_is_by_hand()
        if comesQuickly != jobs.staysAwake {
            jobs.staysAwake = comesQuickly
            CRLRunLoopSetBusyWait(loop, comesQuickly ? Self.busyWaitBetweenJobs.inSeconds : 0)
        }
    }

    /// The thread that drains, which calls this, has done its share, or ends inside a job.
    func endDrain() {
        taken.dropGiven()
        let mustPost = jobs.withLock { jobs in
            if !taken.batch.isEmpty { jobs.waiting.insert(contentsOf: taken.batch, at: 0) }
            taken.batch.removeAll(keepingCapacity: true)
            jobs.isRunning = false  // from now on what was taken may be another thread's
            jobs.isPosted = !jobs.waiting.isEmpty
            jobs.drainEnd = shim_monotonic_ns()
            return jobs.isPosted
        }
        if mustPost { unsafe post(retainedInfo(JobTicket(self))) }
    }

    /// Called when the queued function was dropped because the loop's thread has ended. The jobs must still run, or their tasks would hang
    /// for ever.
    fileprivate func abandon() {
        let info = unsafe retainedInfo(self)
        let error = unsafe shim_thread_start(
            0,
            { info in
                unsafe withBorrowed(RunLoop.self, from: info) { loop in
                    loop.jobs.withLock { $0.standIn = shim_thread_number() }
                    loop.drain()
                }
                unsafe releaseInfo(info)
            }, info)
        if error != 0 { fault("RunLoop: there is no thread to run an actor's jobs on, whose own loop has ended") }
    }
}

/// Stands for the queued jobs in the C loop's queue; tells whether it was called or dropped.
private final class JobTicket: Sendable {
    let loop: RunLoop
    let isRedeemed = Atomic(false)
    init(_ loop: RunLoop) { self.loop = loop }

    func redeem() {
        isRedeemed.store(true, ordering: .relaxed)
        loop.drain()
    }

    deinit { if !isRedeemed.load(ordering: .relaxed) { loop.abandon() } }
}

/// An actor whose code runs on a loop's thread.
///
/// ```swift
/// actor Worker: RunLoopActor {
///     nonisolated let runLoop: RunLoop
///     init(on runLoop: RunLoop) { self.runLoop = runLoop }
/// }
/// ```
///
/// The loop's callbacks on that thread are in the actor's isolation: `assumeIsolated` gives them the actor's state without waiting. Jobs
/// run while the loop runs in a common mode; a run that a job itself makes runs no further jobs.
public protocol RunLoopActor: Actor {
    /// The loop that runs this actor's code; always the same.
    nonisolated var runLoop: RunLoop { get }
}

extension RunLoopActor {
    /// The loop, as Swift asks for it.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe runLoop.asUnownedSerialExecutor() }
}
