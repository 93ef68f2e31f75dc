// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension ByteStream {
    /// Reads bytes as they come, and waits for the first.
    ///
    /// - Parameters:
    ///   - most: How many bytes to take at the most, at least 1.
    ///   - timeout: How long to wait; `nil` is for ever.
    /// - Returns: At least one byte; `nil` at the end.
    /// - Throws: ``ByteStreamError``; `CancellationError` when the task is cancelled. No bytes are lost by either.
    public nonisolated(nonsending) func read(upTo most: Int = 65536, timeout: Duration? = nil) async throws -> [UInt8]? {
        if most < 1 { fault("ByteStream.read: at least one byte must be asked for, not \(most)") }
        return try await read(.some(most), timeout)
    }

    /// Reads as many bytes as are asked for.
    ///
    /// - Throws: ``ByteStreamError/Reason/endedEarly(received:wanted:)``, and as ``read(upTo:timeout:)``.
    public nonisolated(nonsending) func read(exactly count: Int, timeout: Duration? = nil) async throws -> [UInt8] {
        if count < 0 { fault("ByteStream.read: \(count) bytes cannot be read") }
        return try await read(.exactly(count), timeout) ?? []
    }

    /// Reads a line as bytes, without its end, which is a newline, or a carriage return with a newline.
    ///
    /// - Parameters:
    ///   - maxLength: How many bytes the line may have.
    ///   - timeout: How long to wait; `nil` is for ever.
    /// - Returns: The line, which may be empty; `nil` at the end. What follows the last newline is a line as well.
    /// - Throws: ``ByteStreamError/Reason/lineTooLong(limit:)``, and as ``read(upTo:timeout:)``.
    public nonisolated(nonsending) func readLine(maxLength: Int = 8192, timeout: Duration? = nil) async throws -> [UInt8]? {
        if maxLength < 0 { fault("ByteStream.readLine: a line cannot have \(maxLength) bytes") }
        return try await read(.line(limit: maxLength), timeout)
    }

    fileprivate nonisolated(nonsending) func read(_ want: ReadWant, _ timeout: Duration?) async throws -> [UInt8]? {
        try Task.checkCancellation()
        if let outcome = try pair.readNow(want) { return outcome.bytes }
        return try await waitInTask { [pair] number, end in
            pair.read(want, number: number, timeout: timeout, end)
        } giveUp: { [pair] number in
            pair.giveUpReading(number, nil)
        }
    }

    /// How many reads wait, for tests.
    package var waitingReads: Int { pair.state.withLock { $0.reads.count } }

    // MARK: Sequences

    /// The bytes of a stream, one by one.
    public struct Bytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8
        fileprivate let stream: ByteStream
        fileprivate let timeout: Duration?
        /// Begins with the next byte of the stream.
        public func makeAsyncIterator() -> Iterator { Iterator(ByteSource(stream, timeout)) }

        /// One iteration. What it has not given can be read otherwise.
        public struct Iterator: AsyncIteratorProtocol {
            @usableFromInline let source: ByteSource
            @usableFromInline let borrowed: BorrowedBytes

            fileprivate init(_ source: ByteSource) {
                self.source = source
                borrowed = source.loan.borrowed
            }

            /// The next byte; `nil` at the end.
            @inlinable public mutating func next() async throws -> UInt8? {
                if let byte = withExtendedLifetime(source, { borrowed.next() }) { return byte }
                return try await source.nextInTask()
            }
            /// The next byte; `nil` at the end.
            @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> UInt8? {
                if let byte = withExtendedLifetime(source, { borrowed.next() }) { return byte }
                return try await source.nextInTask()
            }
        }
    }

    /// Where the bytes of an iteration come from. Its end gives the rest back.
    @usableFromInline final class ByteSource: Sendable {
        private let stream: ByteStream
        private let timeout: Duration?
        fileprivate let loan = ByteLoan()

        init(_ stream: ByteStream, _ timeout: Duration?) {
            self.stream = stream
            self.timeout = timeout
        }

        deinit { stream.pair.giveBack(loan) }

        @usableFromInline nonisolated(nonsending) func nextInTask() async throws -> UInt8? {
            if let byte = stream.pair.claimedByte(loan) { return byte }
            try Task.checkCancellation()
            if let byte = stream.pair.borrow(loan) { return byte }
            // Asking for one byte would read one; the others are for the calls that follow.
            return try await stream.read(.byte, timeout)?.first
        }
    }

    /// The bytes of a stream, as they come.
    public struct Chunks: AsyncSequence, Sendable {
        /// At least one byte.
        public typealias Element = [UInt8]
        fileprivate let stream: ByteStream
        fileprivate let most: Int
        fileprivate let timeout: Duration?
        /// Begins with the next byte of the stream.
        public func makeAsyncIterator() -> Iterator { Iterator(chunks: self) }

        /// One iteration.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let chunks: Chunks
            /// The next bytes; `nil` at the end.
            public mutating func next() async throws -> [UInt8]? { try await next(isolation: nil) }
            /// The next bytes; `nil` at the end.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
                try await chunks.stream.read(upTo: chunks.most, timeout: chunks.timeout)
            }
        }
    }

    /// The lines of a stream.
    public struct Lines: AsyncSequence, Sendable {
        /// A line without its end. What is no UTF-8 is replaced by U+FFFD.
        public typealias Element = String
        fileprivate let stream: ByteStream
        fileprivate let maxLength: Int
        fileprivate let timeout: Duration?
        /// Begins with the next byte of the stream.
        public func makeAsyncIterator() -> Iterator { Iterator(lines: self) }

        /// One iteration. It keeps no bytes: what follows its last line can be read otherwise.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let lines: Lines
            /// The next line; `nil` at the end.
            public mutating func next() async throws -> String? { try await next(isolation: nil) }
            /// The next line; `nil` at the end.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> String? {
                let line = try await lines.stream.readLine(maxLength: lines.maxLength, timeout: lines.timeout)
                return line.map { String(decoding: $0, as: UTF8.self) }
            }
        }
    }

    /// The bytes that come, one by one, until the end.
    ///
    /// A cancellation ends the wait for bytes, not those that have been read.
    ///
    /// - Parameter timeout: How long to wait for each byte; `nil` is for ever.
    public func bytes(timeout: Duration? = nil) -> Bytes { Bytes(stream: self, timeout: timeout) }

    /// The bytes that come, as many at a time as are there, until the end.
    ///
    /// - Parameters:
    ///   - most: How many bytes an element has at the most, at least 1.
    ///   - timeout: How long to wait for each element; `nil` is for ever.
    public func chunks(upTo most: Int = 65536, timeout: Duration? = nil) -> Chunks { Chunks(stream: self, most: most, timeout: timeout) }

    /// The lines that come, until the end. Empty lines count.
    ///
    /// - Parameters:
    ///   - maxLength: How many bytes a line may have. A longer one ends the sequence with ``ByteStreamError/Reason/lineTooLong(limit:)``.
    ///   - timeout: How long to wait for each line; `nil` is for ever.
    public func lines(maxLength: Int = 8192, timeout: Duration? = nil) -> Lines {
        Lines(stream: self, maxLength: maxLength, timeout: timeout)
    }

    // MARK: Events

    /// Something that a stream tells its event handler.
    public enum Event: Sendable {
        /// Bytes have come, at least one.
        case bytes([UInt8])
        /// No more bytes will come. Told once.
        case ended
        /// The stream has failed. Told once, and nothing comes after it.
        case failed(ByteStreamError)
    }

    struct EventHandler: Sendable {
        let closure: @isolated(any) @Sendable (Event) -> Void
        let call: @Sendable (Event) -> Void
    }

    /// Told on the loop's thread of what comes. `nil`, at first, reads nothing, so that the peer has to wait. Any thread.
    ///
    /// ```swift
    /// stream.onEvent = { event in if case .bytes(let bytes) = event { print(bytes.count) } }
    /// ```
    ///
    /// Reads of tasks come first. The closure of an actor that is not on the loop is sent to the actor; then nothing makes the peer wait.
    /// It is dropped when the stream is closed.
    public var onEvent: (@isolated(any) @Sendable (Event) -> Void)? {
        get { pair.state.withLock { $0.handler?.closure } }
        set { pair.set(newValue.map { EventHandler(closure: $0, call: onActorOf($0)) }) }
    }
}
