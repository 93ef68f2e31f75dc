// SPDX-License-Identifier: Apache-2.0
//
// The elements of a stream between the task that makes them and the requests that take them. Both sides wait: the one for room, the other
// for elements. `state` guards everything; continuations are resumed without it.

import CoreRunLoop
import Synchronization

final class StreamBuffer: Sendable {
    /// What one request takes.
    struct Batch {
        var elements: [ArraySlice<UInt8>] = []
        /// Nothing comes after it.
        var isLast = false
    }
    private struct State {
        var elements: [ArraySlice<UInt8>] = []
        var size = 0
        /// How the sequence has ended.
        var end: Result<Void, any Error>?
        /// Nobody reads any more, or the reader has been told of the end.
        var isClosed = false
        var producer: CheckedContinuation<Void, Never>?
        var consumer: CheckedContinuation<Void, Never>?

        var isFull: Bool { elements.count >= StreamBuffer.mostElements || size >= StreamBuffer.mostBytes }
        var isEmpty: Bool { elements.isEmpty && end == nil }
    }
    private static let mostElements = 256
    private static let mostBytes = 65_536
    private let state = Mutex(State())

    /// Waits for room, and adds an element.
    func put(_ bytes: [UInt8]) async throws {
        while true {
            try await wait(\.producer) { $0.isFull }
            let (isIn, consumer) = try state.withLock { state in
                if state.isClosed { throw CancellationError() }
                if state.isFull { return (false, nil as CheckedContinuation<Void, Never>?) }
                state.elements.append(bytes[...])
                state.size += bytes.count
                return (true, state.consumer.take())
            }
            consumer?.resume()
            if isIn { return }
        }
    }

    /// Says how the sequence has ended, and waits until the reader knows.
    func finish(_ end: Result<Void, any Error>) async {
        let consumer = state.withLock { state in
            state.end = end
            return state.consumer.take()
        }
        consumer?.resume()
        _ = try? await wait(\.producer) { _ in true }
    }

    /// Waits for elements, and takes them all. Throws the sequence's error after its last element.
    func take() async throws -> Batch {
        try await wait(\.consumer) { $0.isEmpty }
        let (batch, error, producer) = try state.withLock { state in
            if state.isClosed || state.isEmpty { throw CancellationError() }
            var batch = Batch(elements: state.elements)
            (state.elements, state.size) = ([], 0)
            guard let end = state.end else { return (batch, nil as (any Error)?, state.producer.take()) }
            switch end {
            case .failure(let error) where batch.elements.isEmpty:
                state.isClosed = true
                return (batch, error, state.producer.take())
            case .failure: return (batch, nil, nil)  // the next call throws it
            case .success:
                batch.isLast = true
                state.isClosed = true
                return (batch, nil, state.producer.take())
            }
        }
        producer?.resume()
        if let error { throw error }
        return batch
    }

    /// Lets both sides go on, and get nothing any more. Any thread.
    func close() {
        let (producer, consumer) = state.withLock { state in
            state.isClosed = true
            state.elements = []
            return (state.producer.take(), state.consumer.take())
        }
        producer?.resume()
        consumer?.resume()
    }

    /// Waits until the other side has done something, if it has to. A cancelled task closes the buffer.
    private func wait(
        _ place: any WritableKeyPath<State, CheckedContinuation<Void, Never>?> & Sendable, _ isBlocked: @Sendable (State) -> Bool
    ) async throws {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    if state.isClosed || !isBlocked(state) || state[keyPath: place] != nil { return true }
                    state[keyPath: place] = continuation
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            close()
        }
        try Task.checkCancellation()
    }
}

/// A stream that another process may hold and pull: what makes its elements, and where they wait.
final class StreamOffer: Sendable {
    let buffer = StreamBuffer()
    private let make: @Sendable (StreamBuffer) async throws -> Void
    private let isHeld = Mutex(false)
    private let expiry = Mutex<Task<Void, any Error>?>(nil)

    /// `make` puts the elements into the buffer.
    init(_ make: @escaping @Sendable (StreamBuffer) async throws -> Void) { self.make = make }

    /// False if somebody holds it already, or nobody did for too long.
    func beginHold() -> Bool {
        let wasHeld = isHeld.withLock { isHeld in
            defer { isHeld = true }
            return isHeld
        }
        if !wasHeld { expiry.withLock { $0.take() }?.cancel() }
        return !wasHeld
    }

    /// Calls `expired` if nobody has held it in time.
    func expire(after time: Duration, _ expired: @escaping @Sendable () -> Void) {
        let task = Task.detached {
            try await Task.sleep(for: time)
            if self.beginHold() {
                self.buffer.close()
                expired()
            }
        }
        expiry.withLock { $0 = task }
    }

    /// Makes the elements, until the reader knows of their end. Cancelled when the reader leaves.
    func run() async {
        let end: Result<Void, any Error>
        do {
            try await make(buffer)
            end = .success(())
        } catch { end = .failure(error) }
        await buffer.finish(end)
        buffer.close()
    }
}
