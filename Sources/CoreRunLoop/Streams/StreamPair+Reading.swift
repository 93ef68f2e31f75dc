// SPDX-License-Identifier: Apache-2.0
//
// Reading of a byte stream: what was asked for, and the reads that fetch it.

import CCoreRunLoop
import Synchronization

extension StreamPair {
    /// Begins to wait, unless the outcome is known. Any thread.
    func read(_ want: ReadWant, number: Int, timeout: Duration?, _ end: @escaping Wait<ReadWant, [UInt8]?>.End) {
        let limit = loop.limit(timeout) { [weak self] in self?.giveUpReading(number, self?.error(.timedOut)) }
        let wait = Wait(number, want, limit, end)
        let (why, isNeeded) = state.withLock { state -> ((any Error)?, Bool) in
            if state.isClosed { return (state.readEnd?.error, false) }
            state.reads.append(wait)
            return (nil, state.mayRead || state.knowsOutcomeOfFirstRead)
        }
        if let why { return wait.finish(.failure(why)) }
        if let limit { loop.add(limit, forMode: mode) }
        if isNeeded { serveSoon() }
    }

    /// The outcome, if nobody has to wait for it. Any thread.
    func readNow(_ want: ReadWant) throws(ByteStreamError) -> ReadOutcome? {
        guard let result = state.withLock({ $0.reads.isEmpty ? $0.outcome(of: want, self) : nil }) else { return nil }
        return ReadOutcome(bytes: try result.get())
    }

    /// The next byte, if it has been read. Any thread.
    func readByteNow() -> UInt8? {
        state.withLock { $0.reads.isEmpty && !$0.unread.isEmpty ? $0.unread.takeFirst() : nil }
    }

    /// Ends a wait, unless it has ended. No bytes are lost: the next one may have them. Any thread.
    func giveUpReading(_ number: Int, _ why: (any Error)?) {
        let (wait, hasNext) = state.withLock { state in
            let wait = state.reads.remove(number)
            return (wait, wait != nil && !state.unread.isEmpty && !state.reads.isEmpty)
        }
        if hasNext { loop.perform(inModes: [mode]) { self.serveReads() } }
        wait?.finish(.failure(why ?? CancellationError()))
    }

    func set(_ handler: ByteStream.EventHandler?) {
        let old = state.withLock { state in
            let old = state.handler
            state.handler = state.isClosed ? nil : handler
            return old
        }
        _ = old  // freed here, outside the lock
        if handler != nil { loop.perform(inModes: [mode]) { self.serveReads() } }
    }

    /// On the loop's thread.
    func serveReads() {
        repeat {
            while let outcome = state.withLock({ $0.nextReadOutcome(self) }) { outcome() }
        } while readOnce()
    }

    /// Reads what is there, if somebody waits for it. On the loop's thread.
    private func readOnce() -> Bool {
        let turn = state.withLock { state -> (HeldReader, Int)? in
            guard state.mayRead, state.readEnd == nil, let reader = state.reader, let size = state.sizeOfRead else { return nil }
            state.mayRead = false
            return (reader, size)
        }
        guard let (reader, size) = turn else { return false }
        var result = -1
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            result = unsafe CFReadStreamRead(reader.stream, buffer.baseAddress, size)
            count = max(0, result)
        }
        let failure = failure(of: reader.stream)
        state.withLock { state in
            if state.isClosed { return }
            if result > 0 { state.unread.append(bytes) }
            if result == 0 { state.readEnd = .ended }
            // Without an error another thread has closed the stream.
            if result < 0, let failure { state.readEnd = .failed(failure) }
        }
        return true
    }
}

/// What a read that did not wait has brought.
struct ReadOutcome {
    /// `nil` at the end.
    let bytes: [UInt8]?
}

extension StreamPair.State {
    private static let largestRead = 65536
    private static let usualRead = 8192

    /// `nil` if nobody waits for bytes.
    var sizeOfRead: Int? {
        guard let want = reads.first?.want else { return handler == nil ? nil : Self.largestRead }
        return switch want {
        case .some(let most): min(most, Self.largestRead)
        case .exactly(let count): max(1, min(count - unread.count, Self.largestRead))
        case .byte, .line: Self.usualRead
        case .opening: nil
        }
    }

    /// Whether the first who waits may be told something without another read.
    var knowsOutcomeOfFirstRead: Bool {
        if case .opening = reads.first?.want, isOpen { return true }
        return readEnd != nil || !unread.isEmpty
    }

    /// What the loop's thread has to tell next.
    mutating func nextReadOutcome(_ pair: StreamPair) -> WaitOutcome? {
        guard let wait = reads.first else { return nextEvent() }
        guard let result = outcome(of: wait.want, pair) else { return nil }
        _ = reads.removeFirst()
        return { wait.finish(result.mapError { $0 }) }
    }

    private mutating func nextEvent() -> WaitOutcome? {
        guard let handler else { return nil }
        if !unread.isEmpty {
            let bytes = unread.take(.max)
            return { handler.call(.bytes(bytes)) }
        }
        guard let readEnd, !handlerKnowsEnd else { return nil }
        handlerKnowsEnd = true
        switch readEnd {
        case .ended: return { handler.call(.ended) }
        case .failed(let error): return { handler.call(.failed(error)) }
        }
    }

    /// Takes what is wanted; `nil` if more bytes have to come first.
    mutating func outcome(of want: ReadWant, _ pair: StreamPair) -> Result<[UInt8]?, ByteStreamError>? {
        switch want {
        case .opening:
            if isOpen { return .success([]) }
            return outcomeAtEnd(.success([]))
        case .some(let most):
            return unread.isEmpty ? outcomeAtEnd(.success(nil)) : .success(unread.take(most))
        case .byte:
            return unread.isEmpty ? outcomeAtEnd(.success(nil)) : .success([unread.takeFirst()])
        case .exactly(let wanted):
            if unread.count >= wanted { return .success(unread.take(wanted)) }
            return outcomeAtEnd(.failure(pair.error(.endedEarly(received: unread.count, wanted: wanted))))
        case .line(let limit):
            return outcomeOfLine(limit, pair)
        }
    }

    /// A line's end is no part of it: a newline, or a carriage return with a newline. The last line may have none.
    private mutating func outcomeOfLine(_ limit: Int, _ pair: StreamPair) -> Result<[UInt8]?, ByteStreamError>? {
        let newline = unread.newline()
        if newline == nil, unread.count <= limit + 1 {  // the byte after the limit may be a carriage return
            guard let readEnd else { return nil }
            if case .failed(let error) = readEnd { return .failure(error) }
            if unread.isEmpty { return .success(nil) }
        }
        let length = newline ?? unread.count
        let isReturned = newline != nil && length > 0 && unread[length - 1] == 13
        if length - (isReturned ? 1 : 0) > limit { return .failure(pair.error(.lineTooLong(limit: limit))) }
        var line = unread.take(length + (newline == nil ? 0 : 1))
        line.removeLast(line.count - length + (isReturned ? 1 : 0))
        return .success(line)
    }

    private func outcomeAtEnd(_ atEnd: Result<[UInt8]?, ByteStreamError>) -> Result<[UInt8]?, ByteStreamError>? {
        switch readEnd {
        case nil: nil
        case .ended: atEnd
        case .failed(let error): .failure(error)
        }
    }
}
