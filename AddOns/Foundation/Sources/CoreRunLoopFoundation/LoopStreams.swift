// SPDX-License-Identifier: Apache-2.0
//
// Foundation's streams over the C library's: pairs to a host and pairs in memory. They are subclasses, so that everything that takes
// Foundation's streams takes them. Their base class has an empty stream of the toolchain's, which is never opened.

import CoreRunLoop
import Foundation

/// A stream of this package's C library, as Foundation's.
protocol LoopStream: Foundation::Stream {
    func setTells(_ tells: Bool)
    func schedule(on loop: CoreRunLoop::RunLoop, _ mode: CoreRunLoop::RunLoop.Mode)
    func remove(off loop: CoreRunLoop::RunLoop, _ mode: CoreRunLoop::RunLoop.Mode)
}

private let allEvents = CFOptionFlags(31)

/// The context of a client that tells the delegate of `stream`.
private func context(_ stream: Foundation::Stream) -> CFStreamClientContext {
    var context = unsafe CFStreamClientContext()
    unsafe context.info = Unmanaged.passRetained(StreamTeller(stream)).toOpaque()
    unsafe context.release = { info in if let info = unsafe info { unsafe Unmanaged<StreamTeller>.fromOpaque(info).release() } }
    return unsafe context
}

private func tell(_ event: CFStreamEventType, _ info: UnsafeMutableRawPointer?) {
    if let info = unsafe info { unsafe Unmanaged<StreamTeller>.fromOpaque(info).takeUnretainedValue().tell(UInt(event.rawValue)) }
}

/// Calls `call` with this package's loop of the thread that a loop of Foundation's has, on that thread if it is not the main thread's.
private func withLoop<Stream: LoopStream>(
    of loop: Foundation::RunLoop, _ mode: Foundation::RunLoop.Mode, _ stream: Stream,
    _ call: @escaping @Sendable (Stream, CoreRunLoop::RunLoop, CoreRunLoop::RunLoop.Mode) -> Void
) {
    let ours = CoreRunLoop::RunLoop.Mode(mode.rawValue)
    if loop === Foundation::RunLoop.main { return call(stream, .main, ours) }
    if loop === Foundation::RunLoop.current { return call(stream, .current, ours) }
    let moved = MovedStream(stream: stream)
    loop.perform(inModes: [mode]) { call(moved.stream, .current, ours) }
}

/// The error of a C stream, as Foundation has it.
private func nsError(_ error: CFError?) -> NSError? {
    guard let error else { return nil }
    let text = CFErrorCopyDescription(error).map { String($0) }
    return NSError(
        domain: String(CFErrorGetDomain(error)), code: CFErrorGetCode(error), userInfo: text.map { [NSLocalizedDescriptionKey: $0] } ?? [:])
}

final class LoopInputStream: Foundation::InputStream, LoopStream {
    private let reader: CFReadStream

    init(_ reader: CFReadStream) {
        self.reader = reader
        super.init(data: Data())
    }

    func setTells(_ tells: Bool) {
        var context = unsafe context(self)
        let isSet = unsafe CFReadStreamSetClient(reader, tells ? allEvents : 0, { _, event, info in unsafe tell(event, info) }, &context)
        if !isSet || !tells { unsafe context.release(context.info) }
    }

    func schedule(on loop: CoreRunLoop::RunLoop, _ mode: CoreRunLoop::RunLoop.Mode) {
        CFReadStreamScheduleWithRunLoop(reader, loop.getCFRunLoop(), CFRunLoopMode(mode.rawValue.cfString))
    }
    func remove(off loop: CoreRunLoop::RunLoop, _ mode: CoreRunLoop::RunLoop.Mode) {
        CFReadStreamUnscheduleFromRunLoop(reader, loop.getCFRunLoop(), CFRunLoopMode(mode.rawValue.cfString))
    }
    override func schedule(in loop: Foundation::RunLoop, forMode mode: Foundation::RunLoop.Mode) {
        withLoop(of: loop, mode, self) { $0.schedule(on: $1, $2) }
    }
    override func remove(from loop: Foundation::RunLoop, forMode mode: Foundation::RunLoop.Mode) {
        withLoop(of: loop, mode, self) { $0.remove(off: $1, $2) }
    }

    override func open() { _ = CFReadStreamOpen(reader) }
    override func close() { CFReadStreamClose(reader) }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        unsafe CFReadStreamRead(reader, buffer, length)
    }
    override func getBuffer(_ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>) -> Bool {
        let bytes = unsafe CFReadStreamGetBuffer(reader, 0, length)
        unsafe buffer.pointee = UnsafeMutablePointer(mutating: bytes)
        return unsafe bytes != nil
    }
    override var hasBytesAvailable: Bool { CFReadStreamHasBytesAvailable(reader) }
    override var streamStatus: Foundation::Stream.Status { .init(rawValue: UInt(CFReadStreamGetStatus(reader).rawValue)) ?? .error }
    override var streamError: (any Error)? { nsError(CFReadStreamCopyError(reader)) }
    override func property(forKey key: Foundation::Stream.PropertyKey) -> AnyObject? {
        unsafe foundationObject(taking: CFReadStreamCopyProperty(reader, key.rawValue.cfString))
    }
    override func setProperty(_ property: AnyObject?, forKey key: Foundation::Stream.PropertyKey) -> Bool {
        unsafe withCFObject(property) { unsafe CFReadStreamSetProperty(reader, key.rawValue.cfString, $0) }
    }
}

final class LoopOutputStream: Foundation::OutputStream, LoopStream {
    private let writer: CFWriteStream!

    init(_ writer: CFWriteStream) {
        self.writer = writer
        super.init(toMemory: ())
    }

    /// Required by the base class, for `OutputStream.toMemory()`, which nobody calls on this class.
    required init(toMemory: ()) {
        writer = CFWriteStreamCreateWithAllocatedBuffers(nil, nil)
        super.init(toMemory: ())
    }

    func setTells(_ tells: Bool) {
        var context = unsafe context(self)
        let isSet = unsafe CFWriteStreamSetClient(writer, tells ? allEvents : 0, { _, event, info in unsafe tell(event, info) }, &context)
        if !isSet || !tells { unsafe context.release(context.info) }
    }

    func schedule(on loop: CoreRunLoop::RunLoop, _ mode: CoreRunLoop::RunLoop.Mode) {
        CFWriteStreamScheduleWithRunLoop(writer, loop.getCFRunLoop(), CFRunLoopMode(mode.rawValue.cfString))
    }
    func remove(off loop: CoreRunLoop::RunLoop, _ mode: CoreRunLoop::RunLoop.Mode) {
        CFWriteStreamUnscheduleFromRunLoop(writer, loop.getCFRunLoop(), CFRunLoopMode(mode.rawValue.cfString))
    }
    override func schedule(in loop: Foundation::RunLoop, forMode mode: Foundation::RunLoop.Mode) {
        withLoop(of: loop, mode, self) { $0.schedule(on: $1, $2) }
    }
    override func remove(from loop: Foundation::RunLoop, forMode mode: Foundation::RunLoop.Mode) {
        withLoop(of: loop, mode, self) { $0.remove(off: $1, $2) }
    }

    override func open() { _ = CFWriteStreamOpen(writer) }
    override func close() { CFWriteStreamClose(writer) }
    override func write(_ buffer: UnsafePointer<UInt8>, maxLength length: Int) -> Int { unsafe CFWriteStreamWrite(writer, buffer, length) }
    override var hasSpaceAvailable: Bool { CFWriteStreamCanAcceptBytes(writer) }
    override var streamStatus: Foundation::Stream.Status { .init(rawValue: UInt(CFWriteStreamGetStatus(writer).rawValue)) ?? .error }
    override var streamError: (any Error)? { nsError(CFWriteStreamCopyError(writer)) }
    override func property(forKey key: Foundation::Stream.PropertyKey) -> AnyObject? {
        unsafe foundationObject(taking: CFWriteStreamCopyProperty(writer, key.rawValue.cfString))
    }
    override func setProperty(_ property: AnyObject?, forKey key: Foundation::Stream.PropertyKey) -> Bool {
        unsafe withCFObject(property) { unsafe CFWriteStreamSetProperty(writer, key.rawValue.cfString, $0) }
    }
}
