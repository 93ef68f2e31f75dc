// SPDX-License-Identifier: Apache-2.0
//
// Tasks and closures that wait for an event of a loop: one number each, by which a wait is given up. Whoever takes a wait out of its list
// ends it, so that it ends once.

import Synchronization

// The thread sanitizer sees what an unsafe continuation's resumption reads, and not that the task goes on only after it. It does not look
// into a checked one, which allocates.
#if CRL_TSAN
    typealias WaitContinuation<Value> = CheckedContinuation<Value, any Error>
#else
    typealias WaitContinuation<Value> = UnsafeContinuation<Value, any Error>
#endif

/// Who is told the outcome of a wait. A task is no closure, which would have to be allocated.
@safe enum WaitEnd<Value: Sendable>: Sendable {
    case task(WaitContinuation<Value>)
    case closure(@Sendable (Result<Value, any Error>) -> Void)
    case nobody

    var isClosure: Bool { if case .closure = self { true } else { false } }

    func callAsFunction(_ result: Result<Value, any Error>) {
        switch self {
        case .task(let continuation): unsafe continuation.resume(with: result)
        case .closure(let call): call(result)
        case .nobody: break
        }
    }
}

/// One who waits, for something that `want` describes.
struct Wait<Want: Sendable, Value: Sendable>: Sendable {
    typealias End = WaitEnd<Value>
    let number: Int
    var want: Want
    let limit: Timer?
    private let end: End

    init(_ number: Int, _ want: Want, _ limit: Timer?, _ end: End) {
        self.number = number
        self.want = want
        self.limit = limit
        self.end = end
    }

    /// Tells the outcome. Called once, without a lock.
    func finish(_ result: Result<Value, any Error>) {
        limit?.invalidate()
        end(result)
    }
}

/// Those who wait for one thing, in their order. The lock of the state that holds this guards it.
struct WaitList<Want: Sendable, Value: Sendable>: Sendable {
    private(set) var waits: [Wait<Want, Value>] = []

    var isEmpty: Bool { waits.isEmpty }
    var count: Int { waits.count }
    var first: Wait<Want, Value>? { waits.first }

    mutating func append(_ wait: Wait<Want, Value>) { waits.append(wait) }
    mutating func changeFirst(_ change: (inout Want) -> Void) { change(&waits[0].want) }
    mutating func removeFirst() -> Wait<Want, Value> { waits.removeFirst() }
    /// Returns the wait if it has not ended.
    mutating func remove(_ number: Int) -> Wait<Want, Value>? {
        waits.firstIndex { $0.number == number }.map { waits.remove(at: $0) }
    }
    mutating func takeAll() -> [Wait<Want, Value>] {
        defer { waits = [] }
        return waits
    }
}

/// What became of waits under a lock: told without it.
typealias WaitOutcome = @Sendable () -> Void

private let lastWaitNumber = Atomic<Int>(0)

/// A number that no other wait of the process has.
func newWaitNumber() -> Int { lastWaitNumber.add(1, ordering: .relaxed).newValue }

/// Suspends the task until the wait that `begin` begins has ended. A cancellation gives the wait up.
nonisolated(nonsending) func waitInTask<Value: Sendable>(
    _ begin: (Int, WaitEnd<Value>) -> Void,
    giveUp: @Sendable (Int) -> Void
) async throws -> Value {
    try Task.checkCancellation()
    let number = newWaitNumber()
    func wait(by continuation: WaitContinuation<Value>) {
        begin(number, unsafe .task(continuation))
        if Task.isCancelled { giveUp(number) }  // a cancellation that came before the wait has found none
    }
    return try await withTaskCancellationHandler {
        #if CRL_TSAN
            try await withCheckedThrowingContinuation(wait)
        #else
            unsafe try await withUnsafeThrowingContinuation(wait)
        #endif
    } onCancel: {
        giveUp(number)
    }
}

extension RunLoop {
    /// A timer that calls `giveUp` when `timeout` has passed, in no mode yet.
    func limit(_ timeout: Duration, _ giveUp: @escaping @Sendable () -> Void) -> Timer {
        Timer(due: .now.advanced(by: max(.zero, timeout))) { _ in giveUp() }
    }
}
