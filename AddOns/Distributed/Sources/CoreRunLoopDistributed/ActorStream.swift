// SPDX-License-Identifier: Apache-2.0
//
// A sequence as the result or argument of a distributed function. At the side that encodes it, it is offered under a number
// (MessagePortActorSystem+Streams). The side that decodes it holds it by a request that lasts as long as the stream, and so notices the end
// of the other side, and is noticed when it ends itself. It pulls elements by further requests, so many at a time.

import CoreRunLoop
import Distributed
import Synchronization

/// A sequence of values that travels between processes: a result, or an argument, of a distributed function.
///
/// ```swift
/// distributed actor Clock {
///     typealias ActorSystem = MessagePortActorSystem
///     distributed func ticks() -> ActorStream<Int> {
///         ActorStream(
///             AsyncStream { continuation in
///                 for number in 1...3 { continuation.yield(number) }
///                 continuation.finish()
///             })
///     }
/// }
/// ```
///
/// The reader pulls: the sequence is asked for an element only if at most 256 of them, or 64 KiB, wait for the reader. An error of the
/// sequence reaches the reader as the error of a call does. The sequence's task is cancelled when the reader lets go of the stream, is
/// cancelled or dies, or gets an element that does not decode, whose error ends the stream. If the other side dies, the reader gets
/// ``MessagePortActorError/gone(_:)``. A stream has one reader, and nobody reads it twice.
public struct ActorStream<Element: Codable & Sendable>: AsyncSequence, Sendable {
    /// A stream may end with an error.
    public typealias Failure = any Error
    private typealias Next = () async throws -> Element?

    private enum Source: Sendable {
        case here(@Sendable () -> Next)
        case elsewhere(RemoteStream)
    }
    private let source: Source

    /// A stream of a sequence's elements.
    public init<Elements: AsyncSequence & Sendable>(_ elements: Elements) where Elements.Element == Element {
        source = .here {
            var iterator = elements.makeAsyncIterator()
            return { try await iterator.next(isolation: nil) }
        }
    }

    /// Reads a stream.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let nextElement: () async throws -> Element?

        /// Returns the next element, or `nil` at the end.
        ///
        /// - Throws: The sequence's error, as that of a call; that of an element that does not decode;
        ///   ``MessagePortActorError/gone(_:)``; `CancellationError`. The stream has ended then.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? { try await nextElement() }
        /// Returns the next element, or `nil` at the end. Throws as ``next(isolation:)``.
        public mutating func next() async throws -> Element? { try await nextElement() }
    }

    /// Begins to read.
    public func makeAsyncIterator() -> AsyncIterator {
        switch source {
        case .here(let begin): AsyncIterator(nextElement: begin())
        case .elsewhere(let stream): AsyncIterator(nextElement: { try await stream.next(Element.self) })
        }
    }
}

extension ActorStream: Codable {
    /// Takes a stream that another process offers.
    ///
    /// - Throws: `DecodingError` outside of a call, and what a wrong ID throws.
    public init(from decoder: any Decoder) throws {
        guard let system = decoder.userInfo[.actorSystemKey] as? MessagePortActorSystem else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "a stream comes only with a call of a MessagePortActorSystem"))
        }
        source = .elsewhere(RemoteStream(system, try MessagePortActorID(from: decoder)))
    }

    /// Offers the stream to whoever decodes this.
    ///
    /// - Throws: `EncodingError` outside of a call; ``MessagePortActorError/transport(_:)`` when 16,384 streams are open.
    public func encode(to encoder: any Encoder) throws {
        guard let system = encoder.userInfo[.actorSystemKey] as? MessagePortActorSystem else {
            throw EncodingError.invalidValue(
                self, .init(codingPath: encoder.codingPath, debugDescription: "a stream goes only with a call of a MessagePortActorSystem"))
        }
        let offer = StreamOffer { buffer in
            for try await element in self {
                var bytes: [UInt8] = []
                try system.coding.encode(element, into: &bytes, userInfo: system.userInfo)
                try await buffer.put(bytes)
            }
        }
        try system.offer(offer, encoder.userInfo[.portKey] as? String).encode(to: encoder)
    }
}

/// The reader's side of a stream. The hold ends with this object.
final class RemoteStream: Sendable {
    private struct State {
        var elements: [ArraySlice<UInt8>] = []
        /// Those before `next` have been read.
        var next = 0
        var isOver = false

        mutating func takeNext() -> ArraySlice<UInt8>? {
            guard next < elements.count else { return nil }
            defer { next += 1 }
            return elements[next]
        }
    }
    private let system: MessagePortActorSystem
    private let id: MessagePortActorID
    private let hold: Task<Void, Never>
    private let state = Mutex(State())

    init(_ system: MessagePortActorSystem, _ id: MessagePortActorID) {
        self.system = system
        self.id = id
        hold = Task.detached { _ = try? await system.hold(id) }
    }

    deinit { hold.cancel() }

    /// Ends the stream with the error that it throws.
    func next<Element: Codable>(_ type: Element.Type) async throws -> Element? {
        do {
            while true {
                if let bytes = state.withLock({ $0.takeNext() }) {
                    return try system.coding.decode(type, from: bytes, userInfo: system.userInfo)
                }
                if state.withLock({ $0.isOver }) { return nil }
                let batch = try await system.pull(id)
                state.withLock { $0 = State(elements: batch.elements, isOver: batch.isLast) }
            }
        } catch {
            state.withLock { $0 = State(isOver: true) }
            hold.cancel()
            throw error
        }
    }
}
