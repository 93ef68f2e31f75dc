// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Runs a test's body on a thread of its own, whose loop nothing else has used.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    _ = descriptorLimit
    return try await Thread.joinable(name: "test", body).value
}

/// Runs a body on a thread that no `Thread` has started, and waits for its end, on a thread of its own: tasks' threads may be few.
func onForeignThread(_ body: @escaping @Sendable () -> Void) async throws {
    final class Body: Sendable {
        let call: @Sendable () -> Void
        init(_ call: @escaping @Sendable () -> Void) { self.call = call }
    }
    _ = descriptorLimit
    let status = try await Thread.joinable(name: "waits") {
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { info in
                Unmanaged<Body>.fromOpaque(info!).takeRetainedValue().call()
                return nil
            }, Unmanaged.passRetained(Body(body)).toOpaque())
        return status == 0 ? pthread_join(thread, nil) : status
    }.value
    #expect(status == 0)
}

/// Runs a body with a loop on a thread of its own.
func withLoop<Value: Sendable>(_ body: (RunLoop) async throws -> Value) async throws -> Value {
    _ = descriptorLimit
    let stop = RunLoop.StopToken()
    let loop = try Thread.runningLoop(name: "loop", until: stop)
    defer { stop.requestStop() }
    return try await body(loop)
}

/// What happened, in order. Any thread.
final class Trace: Sendable {
    private let list = Mutex<[String]>([])
    func add(_ event: String) { list.withLock { $0.append(event) } }
    var events: [String] { list.withLock { $0 } }
    var text: String { events.joined(separator: " ") }
    func clear() { list.withLock { $0 = [] } }
}

/// A number that closures change.
final class Count: Sendable {
    private let number = Mutex(0)
    @discardableResult
    func next() -> Int {
        number.withLock { number in
            number += 1
            return number
        }
    }
    var value: Int { number.withLock { $0 } }
}

/// Tells when it is freed.
final class Witness: Sendable {
    let onDeinit: @Sendable () -> Void
    init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }
    deinit { onDeinit() }
    func touch() {}
}

/// Knows whether it still is what it was; tells when it is freed.
final class Canary: @unchecked Sendable {
    private var word: UInt64 = 0x5AFE_5AFE_5AFE_5AFE
    private let onDeinit: @Sendable () -> Void
    init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }
    deinit {
        word = 0
        onDeinit()
    }
    var isWhole: Bool { word == 0x5AFE_5AFE_5AFE_5AFE }
}

extension RunLoop.Activity {
    /// The names used in traces: E BT BS BW AW X.
    var short: String {
        switch self {
        case .entry: "E"
        case .beforeTimers: "BT"
        case .beforeSources: "BS"
        case .beforeWaiting: "BW"
        case .afterWaiting: "AW"
        case .exit: "X"
        default: "?"
        }
    }
}
