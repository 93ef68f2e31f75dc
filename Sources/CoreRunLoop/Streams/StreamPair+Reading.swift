// SPDX-License-Identifier: Apache-2.0
//
// Reading of a byte stream: what was asked for, and the reads that fetch it.

import CCoreRunLoop
import Synchronization

extension StreamPair {
    /// Begins to wait, unless the outcome is known. Any thread.
    func read(_ want: ReadWant, number: Int, timeout: Duration?, _ end: WaitEnd<[UInt8]?>) {
        let limit = timeout.map { loop.limit($0) { [weak self] in self?.giveUpReading(number, self?.error(.timedOut)) } }
        let wait = Wait(number, want, limit, end)
        let (why, isNeeded, isHere) = state.withLock { state -> ((any Error)?, Bool, Bool) in
            if state.isClosed { return (state.readEnd?.error, false, false) }
            state.takeLoanBack()
            state.reads.append(wait)
            return (nil, state.mayRead || state.knowsOutcomeOfFirstRead, state.handler == nil && !state.usesTLS)
        }
        if let why { return wait.finish(.failure(why)) }
        if let limit { loop.add(limit, forMode: mode) }
        if !isNeeded { return }
        if !isHere { return serveSoon() }
        serveReads()
        if state.withLock({ $0.handler != nil || $0.writes.first?.want.tls != nil }) { serveSoon() }  // it may have waited for this read
    }

    /// The outcome, if nobody has to wait for it. Any thread.
    func readNow(_ want: ReadWant) throws(ByteStreamError) -> ReadOutcome? {
        let outcome = state.withLock { state in
            state.takeLoanBack()
            return state.reads.isEmpty && !state.isReading ? state.outcome(of: want, self) : nil
        }
        guard let result = outcome else { return nil }
        return ReadOutcome(bytes: try result.get())
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
            state.takeLoanBack()
            state.handler = state.isClosed ? nil : handler
            return old
        }
        _ = old  // freed here, outside the lock
        if handler != nil { loop.perform(inModes: [mode]) { self.serveReads() } }
    }

    /// Tells those who wait what is known, and reads what is there if somebody waits for it, after a change of the state. Any thread; only
    /// the loop's tells the event handler.
    func serveReads(after change: (inout State) -> Void = { _ in }) {
        let isOnLoop = loop.isCurrent
        var turn = state.withLock { state in
            change(&state)
            return state.nextRead(self, isOnLoop)
        }
        while let now = turn {
            switch now {
            case .told(let wait, let result):
                wait.finish(result.mapError { $0 })
                turn = state.withLock { $0.nextRead(self, isOnLoop) }
            case .bytes(let handler):
                tellOfBytes(handler)
                turn = state.withLock { $0.nextRead(self, isOnLoop) }
            case .end(let handler, let event):
                handler.call(event)
                turn = state.withLock { $0.nextRead(self, isOnLoop) }
            case .read(let reader, let size, let latestCount):
                let (bytes, result) = read(reader, size, into: isOnLoop && latestCount <= size / 4 ? loop.readBuffer : nil)
                let failure = result < 0 ? failure(of: reader.stream) : nil
                turn = state.withLock { state in
                    state.endRead(bytes, result, failure)
                    return state.nextRead(self, isOnLoop)
                }
            }
        }
    }

    /// Reads once, by way of the loop's buffer, so that the array has the size of what came, or into an array of the size asked for.
    private func read(_ reader: HeldReader, _ size: Int, into buffer: ReadBuffer?) -> (bytes: [UInt8], result: Int) {
        if let buffer {
            let result = unsafe CFReadStreamRead(reader.stream, buffer.start, min(size, ReadBuffer.size))
            return (buffer.copy(max(0, result)), result)
        }
        var result = -1
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            result = unsafe CFReadStreamRead(reader.stream, buffer.baseAddress, size)
            count = max(0, result)
        }
        return (bytes, result)
    }

    /// On the loop's thread. Another thread may have begun to wait for the bytes meanwhile, and have taken them.
    private func tellOfBytes(_ handler: ByteStream.EventHandler) {
        var bytes = state.withLock { $0.unread.take(.max) }
        if bytes.isEmpty { return }
        handler.call(.bytes(bytes))
        loop.readBuffer.reuse(&bytes)
    }
}

/// What has to be done next for those who read.
enum ReadTurn {
    case told(Wait<ReadWant, [UInt8]?>, Result<[UInt8]?, ByteStreamError>)
    case bytes(ByteStream.EventHandler)
    case end(ByteStream.EventHandler, ByteStream.Event)
    /// So many bytes at the most; and how many came the last time.
    case read(HeldReader, Int, latestCount: Int)
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

    /// What the calling thread has to do next.
    mutating func nextRead(_ pair: StreamPair, _ isOnLoop: Bool) -> ReadTurn? {
        if isReading { return nil }
        if let wait = reads.first {
            if let result = outcome(of: wait.want, pair) { return .told(reads.removeFirst(), result) }
        } else {
            guard isOnLoop, let handler else { return nil }
            if !unread.isEmpty { return .bytes(handler) }
            if let event = endEvent() { return .end(handler, event) }
        }
        guard mayRead, readEnd == nil, let reader, let size = sizeOfRead else { return nil }
        (mayRead, isReading) = (false, true)
        return .read(reader, size, latestCount: latestCount)
    }

    mutating func endRead(_ bytes: [UInt8], _ result: Int, _ failure: ByteStreamError?) {
        isReading = false
        if isClosed { return }
        latestCount = bytes.count
        if result > 0 { unread.append(bytes) }
        if result == 0 { readEnd = readEnd ?? .ended }
        // Without an error another thread has closed the stream.
        if let failure { readEnd = readEnd ?? .failed(failure) }
    }

    private mutating func endEvent() -> ByteStream.Event? {
        guard let readEnd, !handlerKnowsEnd else { return nil }
        handlerKnowsEnd = true
        return switch readEnd {
        case .ended: .ended
        case .failed(let error): .failed(error)
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
