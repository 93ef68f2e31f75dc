// SPDX-License-Identifier: Apache-2.0
//
// Events of Foundation's streams, on both loops of a thread.
//
// A stream of the toolchain's has a stream of its Core Foundation behind it, which knows when to tell which event, as Darwin's does. What
// the toolchain leaves out is the client that passes the events to the delegate. Setting the delegate makes that client here. The
// toolchain's loop then tells the events, and runs of this package's loop serve it. So a stream that Foundation has made works as well as
// one that the program made. Subclasses are called as on Darwin: `schedule(in:forMode:)` of this package calls that of Foundation, which a
// subclass may override. The toolchain has no streams of sockets and no pairs in memory; LoopStreams.swift has.

public import CoreRunLoop
import CoreRunLoopFoundationShims
public import Foundation

/// What the client of a stream refers to. The stream may end while its loop is about to tell an event.
final class StreamTeller: @unchecked Sendable {
    private weak var stream: Foundation::Stream?
    init(_ stream: Foundation::Stream) { self.stream = stream }

    func tell(_ event: UInt) {
        // The toolchain tells all events of one moment, also those behind one whose delegate closes the stream.
        guard let stream, stream.streamStatus != .closed else { return }
        stream.Foundation::delegate?.stream(stream, handle: Foundation::Stream.Event(rawValue: event))
    }
}

/// A stream on its way to the thread of its loop.
struct MovedStream<Stream: Foundation::Stream>: @unchecked Sendable { let stream: Stream }

extension Foundation::Stream {
    /// Told of the stream's events, in the loops and modes where the stream is scheduled; not kept.
    ///
    /// This property hides Foundation's, whose delegates on Linux are told nothing. Events come as on Darwin: what happens once is told
    /// once, and bytes or room are told again only after a read or write.
    public var delegate: (any StreamDelegate)? {
        get { self.Foundation::delegate }
        set {
            self.Foundation::delegate = newValue
            if let stream = self as? any LoopStream { return stream.setTells(newValue != nil) }
            setClient(newValue != nil)
        }
    }

    /// Gives the toolchain's stream a client, or takes it away.
    private func setClient(_ isTold: Bool) {
        guard let storage else {
            if isTold { reportOnce() }
            return
        }
        let info = isTold ? unsafe Unmanaged.passRetained(StreamTeller(self)).toOpaque() : nil
        let isSet = unsafe foundation_stream_set_client(
            Unmanaged.passUnretained(storage).toOpaque(), self is Foundation::InputStream,
            { _, event, info in
                if let info = unsafe info { unsafe Unmanaged<StreamTeller>.fromOpaque(info).takeUnretainedValue().tell(UInt(event)) }
            }, info,
            { info in if let info = unsafe info { unsafe Unmanaged<StreamTeller>.fromOpaque(info).release() } })
        if !isSet, let info = unsafe info { unsafe Unmanaged<StreamTeller>.fromOpaque(info).release() }
    }

    /// The stream of the toolchain's Core Foundation that is behind this one; `nil` where there is none.
    private var storage: AnyObject? {
        var mirror: Mirror? = Mirror(reflecting: self)
        while let current = mirror {
            if let child = current.children.first(where: { $0.label == "_streamStorage" }) {
                return Mirror(reflecting: child.value).children.first.map { $0.value as AnyObject }  // an optional's
            }
            mirror = current.superclassMirror
        }
        return nil
    }

    private func reportOnce() { _ = Self.complaint }
    private static let complaint: Void = FileHandle.standardError.write(
        Data("CoreRunLoopFoundation: the streams of this version of Foundation cannot tell events to their delegates\n".utf8))

    /// Adds the stream to `mode` of `loop`, where its delegate is then told of its events. Any thread.
    ///
    /// A subclass that schedules itself overrides Foundation's method of this name, which is called on the loop's thread: at once there,
    /// and otherwise as soon as the loop runs in `mode`.
    @_disfavoredOverload
    public func schedule(in loop: CoreRunLoop::RunLoop, forMode mode: CoreRunLoop::RunLoop.Mode) {
        if let stream = self as? any LoopStream { return stream.schedule(on: loop, mode) }
        onThread(of: loop, mode) { stream, mode in stream.schedule(in: Foundation::RunLoop.current, forMode: mode) }
    }

    /// Takes the stream out of `mode` of `loop`. Any thread; on another one than the loop's that happens when the loop runs in `mode`.
    @_disfavoredOverload
    public func remove(from loop: CoreRunLoop::RunLoop, forMode mode: CoreRunLoop::RunLoop.Mode) {
        if let stream = self as? any LoopStream { return stream.remove(off: loop, mode) }
        onThread(of: loop, mode) { stream, mode in stream.remove(from: Foundation::RunLoop.current, forMode: mode) }
    }

    private func onThread(
        of loop: CoreRunLoop::RunLoop, _ mode: CoreRunLoop::RunLoop.Mode,
        _ call: @escaping @Sendable (Foundation::Stream, Foundation::RunLoop.Mode) -> Void
    ) {
        let foundationMode = Foundation::RunLoop.Mode(rawValue: mode.rawValue)
        if loop.isCurrent { return call(self, foundationMode) }
        let moved = MovedStream(stream: self)
        loop.perform(inModes: [mode]) { call(moved.stream, foundationMode) }
    }

    /// Makes two streams that connect to `port` of a host when one of them is opened. A name needs the library `corerunloop-net`.
    ///
    /// The low 16 bits of `port` count. A `nil` pointer asks for no stream of that kind.
    public class func getStreamsToHost(
        withName hostname: String, port: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        unsafe makePair(inputStream, outputStream) { reader, writer in
            unsafe CFStreamCreatePairWithSocketToHost(nil, hostname.cfString, UInt32(truncatingIfNeeded: port), reader, writer)
        }
    }

    /// Makes two streams in memory: what is written to the one is read from the other, through `bufferSize` bytes.
    public class func getBoundStreams(
        withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>?, outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        unsafe makePair(inputStream, outputStream) { reader, writer in
            unsafe CFStreamCreateBoundPair(nil, reader, writer, bufferSize)
        }
    }

    private static func makePair(
        _ inputStream: UnsafeMutablePointer<InputStream?>?, _ outputStream: UnsafeMutablePointer<OutputStream?>?,
        _ make: (UnsafeMutablePointer<CFReadStream?>?, UnsafeMutablePointer<CFWriteStream?>?) -> Void
    ) {
        var reader: CFReadStream?
        var writer: CFWriteStream?
        unsafe withUnsafeMutablePointer(to: &reader) { reader in
            unsafe withUnsafeMutablePointer(to: &writer) { writer in
                unsafe make(inputStream == nil ? nil : reader, outputStream == nil ? nil : writer)
            }
        }
        unsafe inputStream?.pointee = reader.map { LoopInputStream($0) }
        unsafe outputStream?.pointee = writer.map { LoopOutputStream($0) }
    }
}

extension ByteStreamError: LocalizedError {
    /// The same as `description`, for `localizedDescription`.
    public var errorDescription: String? { description }
}
