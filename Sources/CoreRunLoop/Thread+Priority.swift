// SPDX-License-Identifier: Apache-2.0
//
// A thread's priority, which Linux has as a nice value, and the quality of service that stands for one.

import CoreRunLoopShims
import Synchronization

/// How important a thread's work is to whoever uses the program.
public enum QualityOfService: Hashable, Sendable, CaseIterable {
    /// What the user looks at now.
    case userInteractive
    /// What the user waits for.
    case userInitiated
    /// Nothing is known of it.
    case `default`
    /// Work that may take its time: a ``Thread/threadPriority`` of 0.35.
    case utility
    /// Work that nobody waits for: a ``Thread/threadPriority`` of 0.1.
    case background
}

extension Thread {
    /// The thread's priority, 0 to 1, usually 0.5; the getter tells what the kernel has, as far as 40 steps can say it.
    ///
    /// Linux lets any process lower it, and few raise it: a value that is not allowed has no effect here, and is an error in
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
