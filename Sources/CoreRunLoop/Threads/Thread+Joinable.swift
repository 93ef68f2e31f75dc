// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension Thread {
    /// Starts a thread whose body returns a value.
    ///
    /// ```swift
    /// let sum = try Thread.joinable { (1...1000).reduce(0, +) }
    /// print(try await sum.value)
    /// ```
    ///
    /// - Throws: Any error that ``launch()`` throws.
    public static func joinable<Value: Sendable>(
        name: String? = nil, stackSize: Int = 0, _ body: @escaping @Sendable () throws -> Value
    ) throws(ThreadError) -> Joinable<Value> {
        let result = Joinable<Value>(body)
        result.thread.name = name
        result.thread.stackSize = stackSize
        try result.thread.launch()
        return result
    }

    /// A thread that ends with a value.
    public final class Joinable<Value: Sendable>: Sendable {
        private final class Slot: Sendable { let value = Mutex<Value?>(nil) }
        private let slot = Slot()
        /// The thread.
        public let thread: Thread

        fileprivate init(_ body: @escaping @Sendable () throws -> Value) {
            thread = Thread { [slot] in
                let value = try body()
                slot.value.withLock { $0 = value }
            }
        }

        /// Waits for the thread's end.
        ///
        /// - Throws: The error that the body threw; `CancellationError` when the task is cancelled meanwhile. The thread goes on then.
        public var value: Value {
            get async throws {
                try await thread.value
                guard let value = slot.value.withLock({ $0 }) else { throw ThreadError.exited }
                return value
            }
        }

        /// Waits for the thread's end, blocking the calling thread; `nil` when the time is over or there is no value.
        @available(*, noasync, message: "waiting would block the task's thread; use value")
        public func join(timeout: Duration? = nil) -> Value? {
            thread.join(timeout: timeout) ? slot.value.withLock { $0 } : nil
        }

        /// Asks the thread to end.
        public func cancel() { thread.cancel() }
    }

    /// Starts a thread that does nothing but run its loop, until ``RunLoop/StopToken/requestStop()``.
    ///
    /// - Parameters:
    ///   - name: The thread's name.
    ///   - stop: The token that ends the thread.
    /// - Returns: The loop of the new thread; actors, timers and sources may be given to it at once.
    /// - Throws: Any error that ``launch()`` throws.
    public static func runningLoop(name: String? = nil, until stop: RunLoop.StopToken) throws(ThreadError) -> RunLoop {
        let started = Gate()
        let thread = Thread {
            started.open()
            RunLoop.runCurrent(until: stop)
        }
        thread.name = name
        try thread.launch()
        started.wait()
        guard let loop = thread.runLoop else { fault("a thread that runs has a loop") }
        return loop
    }
}
