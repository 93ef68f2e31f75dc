// SPDX-License-Identifier: Apache-2.0

import CoreRunLoopShims
import Synchronization

/// A program whose main thread runs the main loop while its own code runs.
///
/// ```swift
/// @main struct Server: RunLoopProgram {
///     func run() async throws { ... }
/// }
/// ```
///
/// The process ends when ``run()`` has returned, with status 0. If ``run()`` throws, the process reports the error on the standard error
/// output and ends with status 1. Stopping the loop does not end the process earlier, and items that are still in the loop do not delay the
/// end. For the main actor, the loop needs the dispatch library in the process, which Swift programs on Linux have.
public protocol RunLoopProgram {
    /// Makes the program.
    init()
    /// Runs the program's work, on the main actor and so on the main thread.
    @MainActor func run() async throws
}

extension RunLoopProgram {
    /// Runs the program. Swift calls it for the type that is marked `@main`.
    public static func main() {
        do {
            try RunLoop.runMain { try await Self().run() }
        } catch {
            report("\(Self.self): \(error)")
            shim_process_exit(1)
        }
        shim_process_exit(0)
    }
}

extension RunLoop {
    /// Runs the main loop until `body` has ended, and returns its result. Only on the main thread.
    ///
    /// - Parameter body: Runs on the main actor; a stop of the loop does not end it.
    /// - Throws: Any error that `body` throws.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public static func runMain<Value: Sendable>(_ body: @escaping @MainActor @Sendable () async throws -> Value) throws -> Value {
        if !shim_is_main_thread() { fault("RunLoop.runMain: only the main thread may call this") }
        let done = StopToken()
        let slot = ResultSlot<Value>()
        let task = Task { @MainActor in
            let result: Result<Value, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            slot.result.withLock { $0 = result }
            done.requestStop()
        }
        current.run(in: .default, until: done)
        withExtendedLifetime(task) {}
        guard let result = slot.result.withLock({ $0 }) else { fault("RunLoop.runMain: the loop ended before its body") }
        return try result.get()
    }
}

private final class ResultSlot<Value: Sendable>: Sendable {
    let result = Mutex<Result<Value, any Error>?>(nil)
}
