// SPDX-License-Identifier: Apache-2.0
//
// Who runs the jobs that come to the executors of this package.
//
// Invariants: `runner` and `isInstalled` are set before the runtime has the executors, and not changed afterwards. Whoever has been given a
// job runs it, or keeps it for ever.

private import Synchronization

/// What runs all jobs, in the place of the runtime's own executors.
package protocol JobRunner: Sendable {
    func enqueueMain(_ job: UnownedJob)
    func enqueue(_ job: UnownedJob, _ priority: JobPriority)
    /// With `isSuspending` the time of a suspended system does not count.
    func enqueue(_ job: UnownedJob, _ priority: JobPriority, after delay: Duration, tolerance: Duration?, isSuspending: Bool)
    /// Gives the main thread to the main executor.
    func runMain() -> Never
    func runMain(until condition: () -> Bool)
    func stopMain()
    /// Whether the calling thread is the main executor's.
    var isMain: Bool { get }
}

/// Takes some jobs before they come to where they would run: the run of a seeded test.
package protocol JobTaker: Sendable {
    /// Whether the job is one of its own, which it then has. Any thread.
    func take(_ job: UnownedJob, isMain: Bool) -> Bool
    /// The same for a job that is to wait first.
    func take(_ job: UnownedJob, after delay: Duration) -> Bool
    /// Whether the calling thread is in the main actor's isolation; `nil` on the threads of others.
    var isMainActor: Bool? { get }
}

package enum JobRouting {
    /// Whether jobs come here at all: another library may have been first, or the runtime be unknown.
    @safe package nonisolated(unsafe) static var isInstalled = false
    @safe package nonisolated(unsafe) static var runner: (any JobRunner)?

    private static let takers = Mutex<(any JobTaker)?>(nil)
    /// Whether there is a taker, for all who come by.
    private static let hasTaker = Atomic(false)

    package static var taker: (any JobTaker)? {
        get { hasTaker.load(ordering: .acquiring) ? takers.withLock { $0 } : nil }
        set {
            takers.withLock { $0 = newValue }
            hasTaker.store(newValue != nil, ordering: .releasing)
        }
    }

    static func isTaken(_ job: UnownedJob, isMain: Bool) -> Bool { taker?.take(job, isMain: isMain) ?? false }
    static func isTaken(_ job: UnownedJob, after delay: Duration) -> Bool { taker?.take(job, after: delay) ?? false }
    static var isMainActor: Bool? { taker?.isMainActor ?? nil }
}
