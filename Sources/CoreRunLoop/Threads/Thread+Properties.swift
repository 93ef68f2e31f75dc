// SPDX-License-Identifier: Apache-2.0
//
// The settable properties of a thread: its name, its stack size, and its own values.

import CoreRunLoopShims
import Synchronization

extension Thread {
    /// With the lock held, so that the kernel gets names in their order.
    static func showName(_ state: State) {
        if let threadID = runningID(state) { unsafe shim_set_thread_name(threadID, state.name ?? "") }
    }

    /// Names the thread with a name that the kernel keeps whole.
    ///
    /// - Throws: ``ThreadError/invalidName(_:)`` for more than 15 bytes, and for a zero byte.
    public func setName(_ name: String) throws(ThreadError) {
        if name.utf8.count > 15 || name.utf8.contains(0) { throw .invalidName(name) }
        self.name = name
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

    static func check(stackSize: Int) throws(ThreadError) {
        if stackSize < Int(shim_smallest_stack()) || stackSize % 4096 != 0 { throw .invalidStackSize(stackSize) }
    }

    /// The kernel's number of a thread that runs. It stays the thread's own while the lock is held, as a thread takes the lock at its end.
    static func runningID(_ state: State) -> Int32? { state.phase == .running && state.threadID != 0 ? state.threadID : nil }

    /// Values that belong to the thread, for whichever code runs on it. They are gone when the thread ends. Any thread.
    ///
    /// `CoreRunLoopFoundation` has a mutable object of Foundation's by the same name, with values of its own.
    @_disfavoredOverload
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

    /// Returns an object that is kept as long as the values of ``threadDictionary``. That is the present object, or else `new`, which is
    /// made without the lock. Any thread.
    package func companion<Companion: AnyObject & Sendable>(or new: @autoclosure () -> Companion) -> Companion {
        if let companion = state.withLock({ $0.companion as? Companion }) { return companion }
        let new = new()
        return state.withLock { state in
            if let companion = state.companion as? Companion { return companion }
            state.companion = new
            return new
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
}
