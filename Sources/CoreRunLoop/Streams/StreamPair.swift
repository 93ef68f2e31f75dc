// SPDX-License-Identifier: Apache-2.0
//
// The C streams of a byte stream, and those who wait for them.
//
// Any thread asks, gives up and closes. A C stream serves one thread at a time: `isReading` and `writing` say that one is at it. Only the
// loop's thread makes a call that may wait, tells the program's closures, and does what is left; a thread that asks may read what was told
// of, and write what there is room for. `state` guards the fields. C streams, continuations and closures are called without it.
//
// Always true: nothing is read unless somebody waits for bytes. So the bytes in memory are those of one read, and of what the longest wait
// has asked for. An end of a direction is final: `readEnd` and `writeEnd` never change back, and only closing replaces them.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// How a direction of a stream has ended.
enum StreamEnd: Sendable {
    case ended
    case failed(ByteStreamError)

    var error: ByteStreamError? { if case .failed(let error) = self { error } else { nil } }
}

/// What somebody waits for who reads.
enum ReadWant: Sendable {
    case opening
    /// One byte, with as many read as are there.
    case byte
    case some(Int)
    case exactly(Int)
    case line(limit: Int)
}

/// What somebody waits for who writes.
struct WriteWant: Sendable {
    let bytes: [UInt8]
    var sent = 0
    /// Ends the sending, and has no bytes.
    var finishes = false
    /// Begins TLS, and has no bytes.
    var tls: TLSSettings?
    /// The loop's thread has come to it. What it began cannot be given up alone.
    var hasBegun = false
}

/// A C read stream in an object of Swift. In an optional tuple or enumeration the compiler (6.3) takes `nil` for a bare one.
final class HeldReader: Sendable {
    let stream: CFReadStream
    init(_ stream: CFReadStream) { self.stream = stream }
}

/// The same of a C write stream.
final class HeldWriter: Sendable {
    let stream: CFWriteStream
    init(_ stream: CFWriteStream) { self.stream = stream }
}

final class StreamPair: Sendable {
    struct State {
        var reader: HeldReader?
        var writer: HeldWriter?
        var isOpen = false
        var usesTLS = false
        /// Reading, or writing, would not wait, as the C stream has told. It tells again only after a read or write.
        var mayRead = false
        var mayWrite = false
        var unread = ByteQueue()
        /// Bytes before those, which an iteration has borrowed.
        var loan: ByteLoan?
        var reads = WaitList<ReadWant, [UInt8]?>()
        var writes = WaitList<WriteWant, Void>()
        /// The write that some thread is at; 0 if none is. Nobody else uses the C stream then.
        var writing = 0
        /// Another thread than the loop's may write: nothing has said yet that the C stream may have to wait.
        var writesAnywhere = true
        /// Some thread reads, and then goes on with those who wait. Nobody else uses the C stream then, or tells anybody anything.
        var isReading = false
        /// How many bytes the latest read has brought.
        var latestCount = 0
        var readEnd: StreamEnd?
        var writeEnd: StreamEnd?
        var handler: ByteStream.EventHandler?
        var handlerKnowsEnd = false
        var isClosed = false
        /// Of the handler of the loop's end.
        var endNumber = 0
    }
    let loop: RunLoop
    let mode: RunLoop.Mode
    let peer: String?
    let state = Mutex(State())

    init(_ loop: RunLoop, _ mode: RunLoop.Mode, peer: String?, usesTLS: Bool = false) {
        self.loop = loop
        self.mode = mode
        self.peer = peer
        state.withLock { $0.usesTLS = usesTLS }
    }

    func error(_ reason: ByteStreamError.Reason) -> ByteStreamError { ByteStreamError(reason, peer: peer) }

    /// Why a C stream has failed; `nil` if it has not.
    func failure(of reader: CFReadStream) -> ByteStreamError? {
        let error = CFReadStreamGetError(reader)
        return error.domain == 0 ? nil : ByteStreamError(error, CFReadStreamCopyError(reader), peer: peer)
    }

    /// The same of a C write stream.
    func failure(of writer: CFWriteStream) -> ByteStreamError? {
        let error = CFWriteStreamGetError(writer)
        return error.domain == 0 ? nil : ByteStreamError(error, CFWriteStreamCopyError(writer), peer: peer)
    }

    private var failureOfReader: ByteStreamError? { state.withLock { $0.reader }.flatMap { failure(of: $0.stream) } }
    private var failureOfWriter: ByteStreamError? { state.withLock { $0.writer }.flatMap { failure(of: $0.stream) } }

    // MARK: The C streams

    /// Opens the streams and has the loop serve them. Called once.
    func open(_ reader: CFReadStream?, _ writer: CFWriteStream?) throws(ByteStreamError) {
        state.withLock { state in
            if let reader { state.reader = HeldReader(reader) }
            if let writer { state.writer = HeldWriter(writer) }
            if reader == nil { state.readEnd = .failed(error(.notReadable)) }
            if writer == nil { state.writeEnd = .failed(error(.notWritable)) }
        }
        if let reader { try open(reader) }
        if let writer { try open(writer) }
        // Only now may the loop's thread use the streams.
        if let reader { CFReadStreamScheduleWithRunLoop(reader, loop.loop, mode.name) }
        if let writer { CFWriteStreamScheduleWithRunLoop(writer, loop.loop, mode.name) }
        let number = loop.end.add(on: loop.loop) { [weak self] in self?.end(.loopEnded) }
        let isClosed = state.withLock { state in
            state.endNumber = number
            return state.isClosed
        }
        if isClosed { loop.end.remove(number) }
    }

    private func context() -> CFStreamClientContext {
        var context = unsafe CFStreamClientContext()
        unsafe context.info = retainedInfo(self)
        unsafe context.release = { info in unsafe releaseInfo(info) }
        return unsafe context
    }

    private static let events: CFStreamEventType = [.openCompleted, .hasBytesAvailable, .canAcceptBytes, .errorOccurred, .endEncountered]

    private func open(_ reader: CFReadStream) throws(ByteStreamError) {
        var context = unsafe context()
        let hasClient = unsafe CFReadStreamSetClient(
            reader, Self.events.rawValue, { _, event, info in unsafe object(StreamPair.self, from: info).readerTells(event) }, &context)
        if !hasClient { unsafe releaseInfo(context.info) }
        if !hasClient || !CFReadStreamOpen(reader) { throw (hasClient ? failure(of: reader) : nil) ?? error(.system(Int32(SHIM_ENOMEM))) }
    }

    private func open(_ writer: CFWriteStream) throws(ByteStreamError) {
        var context = unsafe context()
        let hasClient = unsafe CFWriteStreamSetClient(
            writer, Self.events.rawValue, { _, event, info in unsafe object(StreamPair.self, from: info).writerTells(event) }, &context)
        if !hasClient { unsafe releaseInfo(context.info) }
        if !hasClient || !CFWriteStreamOpen(writer) { throw (hasClient ? failure(of: writer) : nil) ?? error(.system(Int32(SHIM_ENOMEM))) }
    }

    /// On the loop's thread.
    private func readerTells(_ event: CFStreamEventType) {
        let failure = event == .errorOccurred ? failureOfReader : nil
        serveReads { state in
            if state.isClosed { return }
            switch event {
            case .openCompleted: state.isOpen = true
            case .hasBytesAvailable: state.mayRead = true
            case .endEncountered: state.readEnd = state.readEnd ?? .ended
            case .errorOccurred: state.readEnd = state.readEnd ?? failure.map { .failed($0) }
            default: break
            }
        }
    }

    /// On the loop's thread.
    private func writerTells(_ event: CFStreamEventType) {
        let failure = event == .errorOccurred ? failureOfWriter : nil
        state.withLock { state in
            if state.writer == nil { return }
            switch event {
            case .openCompleted: state.isOpen = true
            case .canAcceptBytes: state.mayWrite = true
            case .errorOccurred: state.writeEnd = state.writeEnd ?? failure.map { .failed($0) }
            case .endEncountered: state.writeEnd = state.writeEnd ?? .failed(error(.notWritable))
            default: break
            }
        }
        serveWrites()
    }

    // MARK: The end

    /// Closes the streams. Everybody who waits is told why. Any thread, any number of times.
    func end(_ reason: ByteStreamError.Reason) {
        let why = error(reason)
        let (reader, writer, number, dropped, outcomes) = state.withLock { state in
            defer { state.close(why) }
            return (state.reader, state.writer, state.endNumber, state.handler, state.failReads(why) + state.failWrites(why))
        }
        if let reader { CFReadStreamClose(reader.stream) }
        if let writer { CFWriteStreamClose(writer.stream) }
        loop.end.remove(number)
        for outcome in outcomes { outcome() }
        _ = dropped  // freed here, outside the lock
    }

    /// Has the loop's thread look for something to do.
    func serveSoon() {
        if loop.isCurrent {
            serve()
        } else {
            loop.perform(inModes: [mode]) { self.serve() }
        }
    }

    private func serve() {
        serveReads()
        serveWrites()
    }
}

extension StreamPair.State {
    mutating func close(_ why: ByteStreamError) {
        if isClosed { return }
        (isClosed, reader, writer, handler) = (true, nil, nil, nil)
        (mayRead, mayWrite) = (false, false)
        (readEnd, writeEnd) = (.failed(why), .failed(why))
        _ = loan?.takeBack()
        (unread, loan) = (ByteQueue(), nil)
    }

    mutating func failReads(_ why: any Error) -> [WaitOutcome] {
        reads.takeAll().map { wait in { wait.finish(.failure(why)) } }
    }

    mutating func failWrites(_ why: any Error) -> [WaitOutcome] {
        writes.takeAll().map { wait in { wait.finish(.failure(why)) } }
    }
}
