// SPDX-License-Identifier: Apache-2.0
//
// Streams as results and arguments: their elements, the pace of their reader, and their ends.

import CoreRunLoop
import CoreRunLoopDistributed
import Distributed
import Synchronization
import Testing

/// Numbers from 0, which counts how many were asked for, and knows when its reader has left.
final class Numbers: AsyncSequence, Sendable {
    private let state = Mutex((made: 0, wasLeft: false))
    private let count: Int
    private let failure: (any Error)?
    init(_ count: Int, _ failure: (any Error)? = nil) {
        self.count = count
        self.failure = failure
    }
    var made: Int { state.withLock { $0.made } }
    var wasLeft: Bool { state.withLock { $0.wasLeft } }

    final class Iterator: AsyncIteratorProtocol {
        private let numbers: Numbers
        fileprivate init(_ numbers: Numbers) { self.numbers = numbers }
        deinit { numbers.state.withLock { $0.wasLeft = true } }

        func next() async throws -> Int? {
            let number = numbers.state.withLock { state in
                defer { state.made += 1 }
                return state.made
            }
            if number < numbers.count { return number }
            if let failure = numbers.failure { throw failure }
            return nil
        }
    }
    func makeAsyncIterator() -> Iterator { Iterator(self) }
}

/// Never has an element, and knows when its reader has left.
private final class Silence: AsyncSequence, AsyncIteratorProtocol, @unchecked Sendable {
    private let state = Mutex((isAsked: false, wasCancelled: false))
    var isAsked: Bool { state.withLock { $0.isAsked } }
    var wasCancelled: Bool { state.withLock { $0.wasCancelled } }

    func makeAsyncIterator() -> Silence { self }
    func next() async throws -> Int? {
        state.withLock { $0.isAsked = true }
        do { try await Task.sleep(for: .seconds(100_000)) } catch {
            state.withLock { $0.wasCancelled = true }
            throw error
        }
        return nil
    }
}

/// Decodes if it is even.
struct Even: Codable, Sendable {
    let number: Int
    init(_ number: Int) { self.number = number }
    init(from decoder: any Decoder) throws {
        number = try Int(from: decoder)
        if number % 2 != 0 { throw Refusal(reason: "\(number) is odd") }
    }
    func encode(to encoder: any Encoder) throws { try number.encode(to: encoder) }
}

distributed actor Source {
    typealias ActorSystem = MessagePortActorSystem
    private let numbers: Numbers
    private let silence: ActorStream<Int>
    init(_ numbers: Numbers, _ silence: some AsyncSequence<Int, any Error> & Sendable, actorSystem: MessagePortActorSystem) {
        self.numbers = numbers
        self.silence = ActorStream(silence)
        self.actorSystem = actorSystem
    }
    distributed func stream() -> ActorStream<Int> { ActorStream(numbers) }
    distributed func evens() -> ActorStream<Even> { ActorStream(numbers.map { Even($0) }) }
    distributed func nothing() -> ActorStream<Int> { silence }
    distributed func sum(_ numbers: ActorStream<Int>) async throws -> Int { try await numbers.reduce(0, +) }
}

@Suite(.timeLimit(.minutes(5))) struct `A stream of a distributed function` {
    private func withSource(
        _ numbers: Numbers, _ body: (_ source: Source, _ there: MessagePortActorSystem) async throws -> Void
    ) async throws {
        try await withTwo { here, there, name in
            try await there.host(name) { Source(numbers, Silence(), actorSystem: there) }
            try await body(try here.actor(name, as: Source.self), there)
        }
    }

    @Test func `has all elements, in order, and an end`() async throws {
        try await withSource(Numbers(10_000)) { source, _ in
            var next = 0
            for try await number in try await source.stream() {
                #expect(number == next)
                next += 1
            }
            #expect(next == 10_000)
            #expect(try await source.sum(ActorStream(Numbers(1000))) == 499_500)
        }
    }

    @Test func `has its error after its last element`() async throws {
        try await withSource(Numbers(3, Refusal(reason: "worn out"))) { source, _ in
            source.actorSystem.allowErrors(Refusal.self)
            var iterator = try await source.stream().makeAsyncIterator()
            for number in 0..<3 { #expect(try await iterator.next() == number) }
            await #expect(throws: Refusal(reason: "worn out")) { try await iterator.next() }
            #expect(try await iterator.next() == nil)
        }
    }

    @Test func `is made no faster than it is read`() async throws {
        let numbers = Numbers(.max)
        try await withSource(numbers) { source, _ in
            var iterator = try await source.stream().makeAsyncIterator()
            #expect(try await iterator.next() == 0)
            // Some wait with the maker, and some came with the first.
            for read in 1...2000 {
                #expect(try await iterator.next() == read)
                #expect(numbers.made <= read + 2 * 256 + 1)
            }
        }
    }

    @Test func `ends on the other side when its reader lets go of it, or is cancelled`() async throws {
        let numbers = Numbers(.max)
        try await withSource(numbers) { source, _ in
            do {
                let stream = try await source.stream()
                for try await number in stream where number == 10 { break }
            }
            try await eventually { numbers.wasLeft }
            #expect(numbers.made < 2000)
        }
        try await withTwo { here, there, name in
            let silence = Silence()
            try await there.host(name) { Source(numbers, silence, actorSystem: there) }
            let source = try here.actor(name, as: Source.self)
            let task = Task { for try await _ in try await source.nothing() {} }
            try await eventually { silence.isAsked }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await eventually { silence.wasCancelled }
        }
    }

    @Test func `ends on both sides at an element that does not decode`() async throws {
        let numbers = Numbers(.max)
        try await withSource(numbers) { source, _ in
            let stream = try await source.evens()
            var iterator = stream.makeAsyncIterator()
            #expect(try await iterator.next()?.number == 0)
            await #expect(throws: Refusal(reason: "1 is odd")) { try await iterator.next() }
            #expect(try await iterator.next()?.number == nil)
            try await eventually { numbers.wasLeft }
            withExtendedLifetime(stream) {}
        }
    }

    @Test func `ends with an error when the other side has gone`() async throws {
        try await withTwo { here, there, name in
            let (numbers, continuation) = AsyncThrowingStream.makeStream(of: Int.self)
            try await there.host(name) { Source(Numbers(3), numbers, actorSystem: there) }
            let stream = try await here.actor(name, as: Source.self).nothing()
            let (read, reader) = AsyncStream.makeStream(of: Int.self)
            let task = Task { for try await number in stream { reader.yield(number) } }
            continuation.yield(7)
            #expect(await read.first { _ in true } == 7)
            there.close()
            await #expect(throws: MessagePortActorError.self) { try await task.value }
        }
    }
}
