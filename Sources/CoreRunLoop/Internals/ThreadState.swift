// SPDX-License-Identifier: Apache-2.0
//
// What the overlay keeps for each thread: its `RunLoop` and its `Thread`, so that `current` is the same object every time. One word of
// thread-local storage, freed when the thread ends, after whatever has been asked to hear of that end. Only its own thread touches it.

import CoreRunLoopShims

final class ThreadState {
    var loop: RunLoop?
    var thread: Thread?
    /// The loop whose jobs the thread runs now.
    var drained: RunLoop?
    /// The runs with a token that the thread is in, the innermost last.
    var tokenRuns: [RunLoop.TokenRun] = []

    /// The calling thread's; when that has ended a new one, which nothing keeps.
    static var current: ThreadState {
        if let word = unsafe shim_thread_word() { return unsafe Unmanaged<ThreadState>.fromOpaque(word).takeUnretainedValue() }
        let state = ThreadState()
        // Kept now it would be freed in the last round of destructors, in which sanitizers have gone, or never.
        if shim_thread_has_ended() { return state }
        unsafe shim_set_thread_word(retainedInfo(state)) { word in
            unsafe lend(ThreadState.self, from: word) { $0.end() }
            shim_forget_thread_word()
            unsafe releaseInfo(word)
        }
        return state
    }

    /// The thread ends, by whatever means.
    private func end() {
        thread?.finishUnlessFinished()
        loop?.refuseRequests()
        for run in tokenRuns { run.end() }
        drained?.endDrain()
    }

    /// The calling thread's, if it has one.
    static var existing: ThreadState? {
        guard let word = unsafe shim_thread_word() else { return nil }
        return unsafe Unmanaged<ThreadState>.fromOpaque(word).takeUnretainedValue()
    }
}

/// Closed at first and opened once; whoever waits at it goes through.
@safe final class Gate: @unchecked Sendable {
    private let gate: OpaquePointer = unsafe shim_gate_create()

    deinit { unsafe shim_gate_destroy(gate) }

    func open() { unsafe shim_gate_open(gate) }

    /// Waits until it is open; `nil` is without limit. Says whether it is.
    @discardableResult
    func wait(for limit: Duration? = nil) -> Bool { unsafe shim_gate_wait(gate, limit.map { max(0, $0.inNanoseconds) } ?? -1) }
}
