// SPDX-License-Identifier: Apache-2.0
//
// Writing of a byte stream. Writes go out whole and in their order. One that is given up halfway ends the writing, because the peer would
// take the next one for its rest. The beginning of TLS has its place among them.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

extension StreamPair {
    /// Writes at once what there is room for, if nobody else writes. Begins to wait until the other bytes have been taken. Any thread.
    func write(_ want: WriteWant, number: Int, timeout: Duration?, _ end: WaitEnd<Void>) {
        let limit = timeout.map { loop.limit($0) { [weak self] in self?.giveUpWriting(number, self?.error(.timedOut)) } }
        let wait = Wait(number, want, limit, end)
        let isHere = !end.isClosure || loop.isCurrent  // a closure is told on the loop's thread
        let (why, isNeeded, writer) = state.withLock { state -> ((any Error)?, Bool, HeldWriter?) in
            if state.isClosed { return (state.writeEnd?.error, false, nil) }
            state.writes.append(wait)
            if isHere, let writer = state.beginWritingHere() { return (nil, false, writer) }
            return (nil, state.mayWrite || state.writeEnd != nil || want.bytes.isEmpty, nil)
        }
        if let why { return wait.finish(.failure(why)) }
        if let limit { loop.add(limit, forMode: mode) }
        if let writer { write(want.bytes, 0, number, to: writer, mayWait: false) }
        if isNeeded { serveSoon() }
    }

    /// How many bytes wait to be written. Any thread.
    var unsentCount: Int { state.withLock { $0.writes.waits.reduce(0) { $0 + $1.want.bytes.count - $1.want.sent } } }

    /// Ends a wait, unless it has ended. Any thread.
    func giveUpWriting(_ number: Int, _ why: (any Error)?) {
        let outcomes = state.withLock { state -> [WaitOutcome] in
            guard let wait = state.writes.remove(number) else { return [] }
            let outcome: WaitOutcome = {
                // The end of the sending needs no room, if it is next.
                self.loop.perform(inModes: [self.mode]) { self.serveWrites() }
                wait.finish(.failure(why ?? CancellationError()))
            }
            // The loop's thread looks by itself at a write that it is at.
            return [outcome] + ((wait.want.sent > 0 || wait.want.hasBegun) && state.writing != number ? state.cutShort(self) : [])
        }
        for outcome in outcomes { outcome() }
    }

    /// On the loop's thread.
    func serveWrites() {
        while true {
            let turn = state.withLock { $0.nextWrite(self) }
            switch turn {
            case nil: return
            case .told(let outcomes): for outcome in outcomes { outcome() }
            case .write(let writer, let number, let want): write(want.bytes, want.sent, number, to: writer, mayWait: true)
            case .finish(let writer, let wait): finish(writer, wait)
            case .secure(let writer, let settings): secure(writer, settings)
            case .refuseTLS: end(.tls(Int32(errSSLProtocol)))
            }
        }
    }

    /// Writes what is left of a write whose turn it is. `mayWait`: on the loop's thread, which goes on with the next turn.
    private func write(_ bytes: [UInt8], _ sent: Int, _ number: Int, to writer: HeldWriter, mayWait: Bool) {
        let (written, isTold) = written(bytes, sent, to: writer, mayWait: mayWait)
        let failure = written == -1 ? failure(of: writer.stream) : nil
        let (whole, outcomes, isNeeded) = state.withLock { state in
            state.writing = 0
            if isTold && !state.isClosed { state.mayWrite = true }
            if written == -Int(SHIM_EBUSY) { state.writesAnywhere = false }
            if let failure, !state.isClosed { state.writeEnd = .failed(failure) }  // the next turn tells it
            let (whole, outcomes) = written < 0 ? (nil, []) : state.sent(sent + written, of: bytes.count, number, self)
            return (whole, outcomes, !mayWait && !state.writes.isEmpty && (state.mayWrite || state.writeEnd != nil))
        }
        whole?.finish(.success(()))
        for outcome in outcomes { outcome() }
        if isNeeded { serveSoon() }
    }

    /// Returns how many bytes were taken, -EAGAIN for no room, -EBUSY if it cannot be done without waiting, or -1; and whether there is
    /// room as before, of which the C stream does not tell again.
    private func written(_ bytes: [UInt8], _ sent: Int, to writer: HeldWriter, mayWait: Bool) -> (count: Int, isTold: Bool) {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress, bytes.count > sent else { return (0, false) }
            let count = unsafe shim_stream_write_now(writer.stream, base + sent, bytes.count - sent)
            if count != -Int(SHIM_EBUSY) { return (count, count == bytes.count - sent) }
            return mayWait ? (unsafe CFWriteStreamWrite(writer.stream, base + sent, bytes.count - sent), false) : (count, true)
        }
    }

    private func finish(_ writer: HeldWriter, _ wait: Wait<WriteWant, Void>) {
        var status: Int32 = 0
        if let handle = unsafe CFWriteStreamCopyProperty(writer.stream, kCFStreamPropertySocketNativeHandle) {
            status = shim_connection_end_sending(unsafe takeDescriptor(handle))
        }
        CFWriteStreamClose(writer.stream)
        wait.finish(status < 0 ? .failure(error(.system(-status))) : .success(()))
    }

    /// Begins TLS, whose handshake the C streams go through. They tell of bytes and room again after it.
    private func secure(_ writer: HeldWriter, _ settings: TLSSettings) {
        let settings = settings.cfDictionary
        let isSet = withExtendedLifetime(settings) {
            unsafe CFWriteStreamSetProperty(writer.stream, kCFStreamPropertySSLSettings, unsafeBitCast(settings, to: CFTypeRef?.self))
        }
        let outcome = state.withLock { state -> WaitOutcome? in
            if isSet {
                (state.mayRead, state.mayWrite) = (false, false)
                return nil
            }
            state.usesTLS = false
            guard state.writes.first?.want.hasBegun == true else { return nil }  // it was given up meanwhile
            let wait = state.writes.removeFirst()
            return { wait.finish(.failure(self.error(Self.refusalOfTLS))) }
        }
        outcome?()
    }

    /// Why an open stream has refused to begin TLS: nobody can, or the settings are to blame.
    private static var refusalOfTLS: ByteStreamError.Reason {
        var reader: CFReadStream?
        unsafe CFStreamCreatePairWithSocketToHost(nil, "127.0.0.1".cfString, 0, &reader, nil)
        guard let reader else { return .system(Int32(SHIM_ENOMEM)) }
        let level = unsafe unsafeBitCast(kCFStreamSocketSecurityLevelNegotiatedSSL, to: CFTypeRef?.self)
        let canBeHad = unsafe CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, level)
        return canBeHad ? .tls(Int32(errSSLBadConfiguration)) : .needsNetworkLibrary
    }

    /// The descriptor in a property's value, which is released.
    private func takeDescriptor(_ value: CFTypeRef) -> Int32 {
        let data = unsafe unsafeBitCast(value, to: CFData.self)
        var descriptor: Int32 = -1
        unsafe withUnsafeMutableBytes(of: &descriptor) { unsafe $0.copyBytes(from: [UInt8](data).prefix($0.count)) }
        unsafe CFRelease(value)
        return descriptor
    }
}

/// What the loop's thread has to do next for those who write.
enum WriteTurn {
    case told([WaitOutcome])
    case write(HeldWriter, Int, WriteWant)
    case finish(HeldWriter, Wait<WriteWant, Void>)
    case secure(HeldWriter, TLSSettings)
    case refuseTLS
}

extension StreamPair.State {
    /// The last write that was asked for may be done by the thread that asks: it has room, and nobody writes or waits to.
    mutating func beginWritingHere() -> HeldWriter? {
        guard writing == 0, mayWrite, writesAnywhere, !usesTLS, writeEnd == nil, let writer, writes.count == 1, let first = writes.first,
            !first.want.bytes.isEmpty
        else { return nil }
        (mayWrite, writing) = (false, first.number)
        return writer
    }

    mutating func nextWrite(_ pair: StreamPair) -> WriteTurn? {
        guard writing == 0, let first = writes.first else { return nil }
        if case .failed(let error) = writeEnd { return .told(failWrites(error)) }
        guard let writer else { return nil }
        if let settings = first.want.tls { return isOpen ? turnToTLS(writer, settings, first.want.hasBegun, pair) : nil }
        if first.want.finishes {
            guard isOpen else { return nil }
            if usesTLS {
                let wait = writes.removeFirst()
                return .told([{ wait.finish(.failure(pair.error(.system(Int32(SHIM_EOPNOTSUPP))))) }])
            }
            self.writer = nil
            writeEnd = .failed(pair.error(.notWritable))
            return .finish(writer, writes.removeFirst())
        }
        guard mayWrite || first.want.bytes.isEmpty else { return nil }
        if !first.want.bytes.isEmpty { mayWrite = false }
        writing = first.number
        return .write(writer, first.number, first.want)
    }

    /// Bytes that came in the clear and were not taken must not be read as if they had come under TLS: they end the stream.
    private mutating func turnToTLS(_ writer: HeldWriter, _ settings: TLSSettings, _ hasBegun: Bool, _ pair: StreamPair) -> WriteTurn? {
        if hasBegun && !mayWrite { return nil }
        if !hasBegun && !usesTLS {
            if isReading { return nil }  // what it brings came in the clear; whoever reads has this looked at again
            takeLoanBack()
            if !unread.isEmpty { return .refuseTLS }
            writes.changeFirst { $0.hasBegun = true }
            usesTLS = true
            return .secure(writer, settings)
        }
        let wait = writes.removeFirst()
        return .told([{ wait.finish(hasBegun ? .success(()) : .failure(pair.error(.system(Int32(SHIM_EOPNOTSUPP))))) }])
    }

    /// So many bytes of a write have gone out. Returns its wait if these were all.
    mutating func sent(_ count: Int, of all: Int, _ number: Int, _ pair: StreamPair) -> (whole: Wait<WriteWant, Void>?, [WaitOutcome]) {
        guard let first = writes.first, first.number == number else {  // it was given up meanwhile
            return (nil, count == all || count == 0 ? [] : cutShort(pair))
        }
        if count == all { return (writes.removeFirst(), []) }
        writes.changeFirst { $0.sent = count }
        return (nil, [])
    }

    mutating func cutShort(_ pair: StreamPair) -> [WaitOutcome] {
        if writeEnd != nil { return [] }
        let why = pair.error(.writeCutShort)
        writeEnd = .failed(why)
        return failWrites(why)
    }
}
