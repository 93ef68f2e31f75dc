// SPDX-License-Identifier: Apache-2.0
//
// The main executor: jobs of the main actor. Until the main thread runs the main loop for the runtime, they go through the main dispatch
// queue, so that whoever serves that serves them: Foundation's loop, `dispatchMain`, a test runner. Afterwards they go to the loop itself.
//
// Invariants: jobs run in the order in which they came. While the main dispatch queue holds any, later ones go there as well.

private import CoreRunLoop
private import CoreRunLoopExecutorsShims
private import CoreRunLoopSwiftRuntime
private import Dispatch  // links the library, which the shims call
private import Synchronization

final class MainLoopExecutor: Sendable {
    static let shared = MainLoopExecutor()

    private struct State {
        var loopRuns = false
        var inMainQueue = 0
    }

    private let state = Mutex(State())

    /// From now on the main thread runs the main loop, and no more than that.
    func mainLoopRuns() { state.withLock { $0.loopRuns = true } }

    func queue(_ job: UnownedJob) {
        let goesToLoop = state.withLock { state in
            if state.loopRuns && state.inMainQueue == 0 { return true }
            state.inMainQueue += 1
            return false
        }
        if goesToLoop { return RunLoop.main.enqueue(ExecutorJob(job)) }
        unsafe executors_queue_on_main(unsafeBitCast(job, to: UnsafeMutableRawPointer.self)) { job in
            MainLoopExecutor.shared.run(unsafe unsafeBitCast(job!, to: UnownedJob.self))
        }
    }

    private func run(_ job: UnownedJob) {
        state.withLock { $0.inMainQueue -= 1 }
        job.runOnMainExecutor()
    }
}
