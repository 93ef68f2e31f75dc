// SPDX-License-Identifier: Apache-2.0
//
// The overlay's state of each thread: its `RunLoop` and its `Thread`, so that `current` is the same object every time. It is in one word of
// thread-local storage, and is freed when the thread ends, after the handlers of that end have run. Only its own thread uses it.

import CoreRunLoopShims

package final class ThreadState {
    var loop: RunLoop?
    var thread: Thread?
    /// The loop whose executor jobs the thread is running.
    var drained: RunLoop?
    /// The thread's current runs with a token, the innermost last.
    var tokenRuns: [RunLoop.TokenRun] = []
    /// The thread's loop serves the requests of its tasks.
    var servesOwnRequests = false
    var requests: RequestService?

    /// The calling thread's state. After the thread's end it is a new one each time, which nothing keeps.
    static var current: ThreadState {
        if let word = unsafe shim_thread_word() { return unsafe Unmanaged<ThreadState>.fromOpaque(word).takeUnretainedValue() }
        let state = ThreadState()
        // A state kept now would be freed in the last round of destructors, when sanitizers are gone, or never.
        if shim_thread_has_ended() { return state }
        unsafe shim_set_thread_word(retainedInfo(state)) { word in
            unsafe withBorrowed(ThreadState.self, from: word) { $0.end() }
            shim_forget_thread_word()
            unsafe releaseInfo(word)
        }
        return state
    }

    /// Runs at the thread's end, however it ends.
    private func end() {
        thread?.finishUnlessFinished()
        loop?.refuseRequests()
        requests?.end()
        for run in tokenRuns { run.end() }
        drained?.endDrain()
    }

    /// Has the calling thread's loop serve the requests of the tasks that run on it, for a test by seed.
    package static func serveOwnRequests() { current.servesOwnRequests = true }

    /// The calling thread's state, if it has one.
    static var existing: ThreadState? {
        guard let word = unsafe shim_thread_word() else { return nil }
        return unsafe Unmanaged<ThreadState>.fromOpaque(word).takeUnretainedValue()
    }
}

/// A gate that is closed at first and opened once. Everyone who waits at it then goes through.
@safe final class Gate: Sendable {
    /// Any thread may use it: it is the C library's own means to wait.
    @safe nonisolated(unsafe) private let gate: OpaquePointer = unsafe shim_gate_create()

    deinit { unsafe shim_gate_destroy(gate) }

    func open() { unsafe shim_gate_open(gate) }

    /// Waits until the gate is open; `nil` means no limit. Returns whether the gate is open.
    @discardableResult
    func wait(for limit: Duration? = nil) -> Bool { unsafe shim_gate_wait(gate, limit.map { max(0, $0.inNanoseconds) } ?? -1) }
}
