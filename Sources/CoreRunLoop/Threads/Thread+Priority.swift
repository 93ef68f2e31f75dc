// SPDX-License-Identifier: Apache-2.0
//
// A thread's priority, which is a nice value on Linux, and the quality of service, which maps to one.

import CoreRunLoopShims
import Synchronization

/// How important a thread's work is to the program's user.
public enum QualityOfService: Hashable, Sendable, CaseIterable {
    /// Work on what the user is looking at.
    case userInteractive
    /// Work whose result the user waits for.
    case userInitiated
    /// Nothing is known of the work.
    case `default`
    /// Work that may take its time: a ``Thread/threadPriority`` of 0.35.
    case utility
    /// Work that nobody waits for: a ``Thread/threadPriority`` of 0.1.
    case background
}

extension Thread {
    /// The thread's priority, from 0 to 1, usually 0.5. The getter returns the kernel's value, rounded to one of 40 steps.
    ///
    /// Linux lets any process lower its priority, and few raise it. A value that is not allowed has no effect here, and is an error in
    /// ``setThreadPriority(_:)->()``.
    public var threadPriority: Double {
        get {
            state.withLock { state in
                guard let threadID = Self.runningID(state) else { return state.priority ?? 0.5 }
                return Self.priority(nice: shim_get_thread_nice(threadID))
            }
        }
        set { try? setThreadPriority(newValue) }
    }

    /// Sets the thread's priority, 0 to 1. Any thread, before and after the start.
    ///
    /// - Throws: ``ThreadError/invalidPriority(_:)`` outside that range, ``ThreadError/priorityDenied(_:)`` when the system does not allow
    ///   it.
    public func setThreadPriority(_ priority: Double) throws(ThreadError) {
        if !(0...1).contains(priority) { throw .invalidPriority(priority) }
        let isDenied = state.withLock { state in
            state.priority = priority
            return Self.runningID(state).map { shim_thread_nice($0, Self.nice(priority: priority)) != 0 } ?? false
        }
        if isDenied { throw .priorityDenied(priority) }
    }

    /// The calling thread's priority.
    @available(*, noasync) public static func threadPriority() -> Double { current.threadPriority }

    /// Sets the calling thread's priority; `false` when it is not allowed.
    @available(*, noasync)
    @discardableResult
    public static func setThreadPriority(_ priority: Double) -> Bool { (try? current.setThreadPriority(priority)) != nil }

    private static func nice(priority: Double) -> Int32 {
        Int32(((0.5 - priority) * (priority < 0.5 ? 38 : 40)).rounded())
    }

    private static func priority(nice: Int32) -> Double { 0.5 - Double(nice) / (nice > 0 ? 38 : 40) }

    /// How important the thread's work is; at first ``QualityOfService/default``. Set it before the start; later it has no effect.
    ///
    /// Linux lets a program lower a thread's priority and not raise it, so that the upper three are the same.
    @_disfavoredOverload
    public var qualityOfService: QualityOfService {
        get { state.withLock { $0.qualityOfService } }
        set {
            state.withLock { state in
                guard state.phase == .new else { return }
                state.qualityOfService = newValue
                state.priority =
                    switch newValue {
                    case .utility: 0.35
                    case .background: 0.1
                    case .userInteractive, .userInitiated, .default: nil
                    }
            }
        }
    }
}
