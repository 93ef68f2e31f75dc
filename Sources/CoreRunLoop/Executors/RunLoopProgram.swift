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
/// end.
///
/// A program that names ``shutdownSignals`` ends gracefully: the first of these signals cancels the task of ``run()``, and a second one
/// ends the process at once, also if the main thread is busy.
///
/// ```swift
/// @main struct Server: RunLoopProgram {
///     static let shutdownSignals = [SIGTERM, SIGINT]
///     func run() async throws { try await Task.sleep(for: .seconds(3600)) }  // throws CancellationError when it is cancelled
/// }
/// ```
///
/// For the main actor, the loop needs the dispatch library in the process, which Swift programs on Linux have.
public protocol RunLoopProgram {
    /// The signals that ask the program to end; none unless the program says so.
    static var shutdownSignals: [Int32] { get }
    /// Makes the program.
    init()
    /// Runs the program's work, on the main actor and so on the main thread.
    @MainActor func run() async throws
}

extension RunLoopProgram {
    /// None.
    public static var shutdownSignals: [Int32] { [] }

    /// Runs the program. Swift calls it for the type that is marked `@main`.
    public static func main() {
        let shutdown = RunLoop.StopToken()
        do {
            try RunLoop.runMain(shutdownOn: shutdownSignals, shutdown) { try await Self().run() }
        } catch is CancellationError where shutdown.isRequested {
            // The program has ended as it was asked to.
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
    /// - Parameters:
    ///   - signals: The signals of which the first cancels the task of `body`. The next one ends the process at once, by the signal's
    ///     default action, also if the main thread is busy.
    ///   - body: Runs on the main actor; a stop of the loop does not end it.
    /// - Throws: Any error that `body` throws; ``RunLoopError/invalidSignal(_:)``.
    @available(*, noasync, message: "running a loop would block the task's thread")
    public static func runMain<Value: Sendable>(
        shutdownOn signals: [Int32] = [], _ body: @escaping @MainActor @Sendable () async throws -> Value
    ) throws -> Value { try runMain(shutdownOn: signals, StopToken(), body) }

    /// Requests a stop of `shutdown` when one of the signals has come.
    fileprivate static func runMain<Value: Sendable>(
        shutdownOn signals: [Int32], _ shutdown: StopToken, _ body: @escaping @MainActor @Sendable () async throws -> Value
    ) throws -> Value {
        if !shim_is_main_thread() { fault("RunLoop.runMain: only the main thread may call this") }
        let running = Mutex<Task<Void, Never>?>(nil)
        let sources = try shutdownSources(signals) {
            shutdown.requestStop()
            main.perform { running.withLock { $0 }?.cancel() }
        }
        defer { for source in sources { source.invalidate() } }
        let done = StopToken()
        let slot = ResultSlot<Value>()
        let task = Task { @MainActor in
            let result: Result<Value, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            slot.result.withLock { $0 = result }
            done.requestStop()
        }
        running.withLock { $0 = task }  // before the loop runs, which cancels it
        current.run(in: .default, until: done)
        guard let result = slot.result.withLock({ $0 }) else { fault("RunLoop.runMain: the loop ended before its body") }
        return try result.get()
    }
}

extension RunLoop {
    /// Calls `shutDown` once, on the thread that serves the process, when the first of the signals comes. From then on they act by default.
    private static func shutdownSources(_ signals: [Int32], _ shutDown: @escaping @Sendable () -> Void) throws -> [SignalSource] {
        if signals.isEmpty { return [] }
        let isFirst = Mutex(true)
        let sources = try signals.map { number in
            try SignalSource(signal: number) { _ in
                let isFirst = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                for number in signals { shim_signal_acts_by_default(number) }
                if isFirst { shutDown() }
            }
        }
        // A thread of its own hears them although the main thread may be busy; without one the main loop does.
        for source in sources { if let service = RequestService.shared { service.add(source) } else { main.add(source, forMode: .common) } }
        return sources
    }
}

private final class ResultSlot<Value: Sendable>: Sendable {
    let result = Mutex<Result<Value, any Error>?>(nil)
}
