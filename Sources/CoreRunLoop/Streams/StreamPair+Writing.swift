// SPDX-License-Identifier: Apache-2.0
//
// Writing of a byte stream. Writes go out whole and in their order. One that is given up halfway ends the writing, because the peer would
// take the next one for its rest. The beginning of TLS has its place among them.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

extension StreamPair {
    /// Begins to wait until the bytes have been taken. Any thread.
    func write(_ want: WriteWant, number: Int, timeout: Duration?, _ end: @escaping Wait<WriteWant, Void>.End) {
        let limit = loop.limit(timeout) { [weak self] in self?.giveUpWriting(number, self?.error(.timedOut)) }
        let wait = Wait(number, want, limit, end)
        let (why, isNeeded) = state.withLock { state -> ((any Error)?, Bool) in
            if state.isClosed { return (state.writeEnd?.error, false) }
            state.writes.append(wait)
            return (nil, state.mayWrite || state.writeEnd != nil || want.bytes.isEmpty)
        }
        if let why { return wait.finish(.failure(why)) }
        if let limit { loop.add(limit, forMode: mode) }
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
            case .write(let writer, let number, let want): write(want, number, to: writer)
            case .finish(let writer, let wait): finish(writer, wait)
            case .secure(let writer, let settings): secure(writer, settings)
            case .refuseTLS: end(.tls(Int32(errSSLProtocol)))
            }
        }
    }

    private func write(_ want: WriteWant, _ number: Int, to writer: HeldWriter) {
        let written = unsafe want.bytes.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress, bytes.count > want.sent else { return 0 }
            return unsafe CFWriteStreamWrite(writer.stream, base + want.sent, bytes.count - want.sent)
        }
        let failure = failure(of: writer.stream)
        let outcomes = state.withLock { state in
            state.writing = 0
            if written < 0, let failure, !state.isClosed { state.writeEnd = .failed(failure) }  // the next turn tells it
            return written < 0 ? [] : state.sent(want.sent + written, of: want, number, self)
        }
        for outcome in outcomes { outcome() }
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
            if !unread.isEmpty { return .refuseTLS }
            writes.changeFirst { $0.hasBegun = true }
            usesTLS = true
            return .secure(writer, settings)
        }
        let wait = writes.removeFirst()
        return .told([{ wait.finish(hasBegun ? .success(()) : .failure(pair.error(.system(Int32(SHIM_EOPNOTSUPP))))) }])
    }

    /// So many bytes of a write have gone out.
    mutating func sent(_ count: Int, of want: WriteWant, _ number: Int, _ pair: StreamPair) -> [WaitOutcome] {
        let isWhole = count == want.bytes.count
        guard let first = writes.first, first.number == number else {  // it was given up meanwhile
            return isWhole || count == 0 ? [] : cutShort(pair)
        }
        if isWhole {
            let wait = writes.removeFirst()
            return [{ wait.finish(.success(())) }]
        }
        writes.changeFirst { $0.sent = count }
        return []
    }

    mutating func cutShort(_ pair: StreamPair) -> [WaitOutcome] {
        if writeEnd != nil { return [] }
        let why = pair.error(.writeCutShort)
        writeEnd = .failed(why)
        return failWrites(why)
    }
}
