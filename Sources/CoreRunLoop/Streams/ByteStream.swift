// SPDX-License-Identifier: Apache-2.0
//
// Streams of bytes for Swift: the C library's read and write streams, with waits of tasks in the place of events.

package import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A connection, a file, or one end of a pair in memory, that bytes are read from and written to.
///
/// ```swift
/// let stream = try await ByteStream.connect(to: "127.0.0.1", port: 7000, on: loop, timeout: .seconds(5))
/// try await stream.write("hello\n")
/// for try await line in stream.lines(maxLength: 1024) { print(line) }
/// ```
///
/// A stream belongs to a loop, which waits for it together with everything else that the loop has; no thread waits for a stream. The loop
/// has to run in the stream's mode. All calls may be made on any thread. Tasks wait without a thread, and a cancellation ends a wait at
/// once.
///
/// Bytes are read only when somebody wants them, so that a peer that sends faster than the program reads has to wait. Reads are served in
/// their order, and so are writes. Several tasks may wait at the same time.
///
/// The last release of a stream closes it, as ``close()`` does.
public final class ByteStream: Sendable {
    let pair: StreamPair

    /// The other end as the program named it, or its numeric address: `host:port`, or the path of a file. `nil` in memory.
    public var peer: String? { pair.peer }
    /// The loop that serves the stream.
    public var loop: RunLoop { pair.loop }

    init(_ pair: StreamPair) { self.pair = pair }

    deinit { pair.end(.closed) }

    // MARK: Connections

    /// Connects to a host, and waits until that has succeeded.
    ///
    /// - Parameters:
    ///   - host: A numeric address, or `localhost`. A name needs the library `corerunloop-net` in the process.
    ///   - port: The port's number.
    ///   - loop: The loop that serves the stream.
    ///   - mode: The mode of the loop in which that happens.
    ///   - tls: Settings with which the connection is protected by TLS, which needs that library, too; `nil` for one in the clear.
    ///   - timeout: How long it may take; `nil` is as long as the system tries.
    /// - Throws: ``ByteStreamError``; `CancellationError` when the task is cancelled.
    ///
    /// The corresponding C function is `CFStreamCreatePairWithSocketToHost`.
    public nonisolated(nonsending) static func connect(
        to host: String, port: UInt16, on loop: RunLoop, mode: RunLoop.Mode = .common, withTLS tls: TLSSettings? = nil,
        timeout: Duration? = .seconds(30)
    ) async throws -> ByteStream {
        try Task.checkCancellation()
        var (reader, writer): (CFReadStream?, CFWriteStream?) = (nil, nil)
        unsafe CFStreamCreatePairWithSocketToHost(nil, host.cfString, UInt32(port), &reader, &writer)
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
        let stream = ByteStream(StreamPair(loop, mode, peer: name, usesTLS: tls != nil))
        try stream.open(reader, writer, tls)
        let _: [UInt8]? = try await waitInTask { [pair = stream.pair] number, end in
            pair.read(.opening, number: number, timeout: timeout, end)
        } giveUp: { [pair = stream.pair] number in
            pair.giveUpReading(number, nil)
        }
        return stream
    }

    /// Makes a stream of a connected socket, which it takes over and closes, also if it throws.
    ///
    /// - Parameters:
    ///   - socket: The descriptor of a connection.
    ///   - loop: The loop that serves the stream.
    ///   - mode: The mode of the loop in which that happens.
    ///   - tls: Settings with which the connection is protected by TLS; `nil` for one in the clear. The first read or write tells whether
    ///     TLS could be had.
    /// - Throws: ``ByteStreamError``, for a descriptor that is closed or no socket.
    ///
    /// The corresponding C function is `CFStreamCreatePairWithSocket`.
    public convenience init(
        socket: Int32, on loop: RunLoop, mode: RunLoop.Mode = .common, withTLS tls: TLSSettings? = nil
    ) throws(ByteStreamError) {
        var (reader, writer): (CFReadStream?, CFWriteStream?) = (nil, nil)
        unsafe CFStreamCreatePairWithSocket(nil, socket, &reader, &writer)
        if reader == nil { shim_socket_close(socket) }
        let peer = SocketAddress.ofPeer(socket)?.description
        self.init(StreamPair(loop, mode, peer: peer?.isEmpty == true ? nil : peer, usesTLS: tls != nil))
        if let reader { _ = unsafe CFReadStreamSetProperty(reader, kCFStreamPropertyShouldCloseNativeSocket, truth(kCFBooleanTrue)) }
        try open(reader, writer, tls)
    }

    private func open(_ reader: CFReadStream?, _ writer: CFWriteStream?, _ tls: TLSSettings?) throws(ByteStreamError) {
        guard let reader, let writer else { throw pair.error(.system(Int32(SHIM_ENOMEM))) }
        if let tls {
            let settings = tls.cfDictionary
            let isSet = withExtendedLifetime(settings) {
                unsafe CFReadStreamSetProperty(reader, kCFStreamPropertySSLSettings, unsafeBitCast(settings, to: CFTypeRef?.self))
            }
            if !isSet { throw pair.error(.needsNetworkLibrary) }
        }
        try pair.open(reader, writer)
    }

    // MARK: Descriptors, files and memory

    /// Makes a stream of a descriptor: the end of a pipe, such as a child's output, a terminal, or what else is read and written.
    ///
    /// It is read, or written, or both, as it is open. Its mode is left alone, as other processes may have it too. The bytes end when
    /// nobody can write to it any more; closing the stream of a pipe ends them for the reader. Nobody who reads is `EPIPE`.
    ///
    /// - Parameters:
    ///   - descriptor: Any but a socket, for which there is ``init(socket:on:mode:withTLS:)``.
    ///   - closing: Whether the stream takes the descriptor over and closes it, also if it throws. Otherwise it has to stay open until the
    ///     stream is closed.
    ///   - loop: The loop that serves the stream.
    ///   - mode: The mode of the loop in which that happens.
    /// - Throws: ``ByteStreamError``, for a descriptor that is closed.
    ///
    /// The corresponding C functions are `CRLReadStreamCreateWithDescriptor` and `CRLWriteStreamCreateWithDescriptor`.
    public convenience init(
        descriptor: Int32, closing: Bool = true, on loop: RunLoop, mode: RunLoop.Mode = .common
    ) throws(ByteStreamError) {
        let access = shim_descriptor_access(descriptor)
        self.init(StreamPair(loop, mode, peer: nil))
        if access < 0 { throw pair.error(.system(-access)) }
        let (reads, writes) = (access != SHIM_O_WRONLY, access != SHIM_O_RDONLY)
        // Each direction may end before the other, so the second one has a descriptor of its own.
        let second = reads && writes ? shim_descriptor_copy(descriptor) : descriptor
        let reader: CFReadStream? = reads ? CRLReadStreamCreateWithDescriptor(nil, descriptor, closing) : nil
        let writer: CFWriteStream? = writes ? CRLWriteStreamCreateWithDescriptor(nil, second, closing || reads) : nil
        if reads, reader == nil, closing { shim_socket_close(descriptor) }
        if writes, writer == nil, closing || reads { shim_socket_close(second) }
        if second < 0 { throw pair.error(.system(-second)) }
        if reads == (reader == nil) || writes == (writer == nil) { throw pair.error(.system(Int32(SHIM_ENOMEM))) }
        try pair.open(reader, writer)
    }

    /// Makes a stream that reads a file from its start. A pipe or a terminal is waited for.
    ///
    /// Opening a named pipe blocks the thread until the other end is there.
    ///
    /// - Throws: ``ByteStreamError`` when the file cannot be opened.
    public convenience init(reading path: String, on loop: RunLoop, mode: RunLoop.Mode = .common) throws(ByteStreamError) {
        try self.init(reading: path, on: loop, mode: mode) { CFReadStreamCreateWithFile(nil, $0) }
    }

    /// The same by a C stream that `create` makes.
    package convenience init(
        reading path: String, on loop: RunLoop, mode: RunLoop.Mode, by create: (CFURL) -> CFReadStream?
    ) throws(ByteStreamError) {
        self.init(StreamPair(loop, mode, peer: path))
        try pair.open(create(try pair.url(of: path)), nil)
    }

    /// Makes a stream that writes a file, which it makes or empties.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - appending: Whether what the file has stays, and what is written follows it.
    ///   - loop: The loop that serves the stream.
    ///   - mode: The mode of the loop in which that happens.
    /// - Throws: ``ByteStreamError`` when the file cannot be opened.
    public convenience init(
        writing path: String, appending: Bool = false, on loop: RunLoop, mode: RunLoop.Mode = .common
    ) throws(ByteStreamError) {
        self.init(StreamPair(loop, mode, peer: path))
        let writer: CFWriteStream? = CFWriteStreamCreateWithFile(nil, try pair.url(of: path))
        if appending, let writer { _ = unsafe CFWriteStreamSetProperty(writer, kCFStreamPropertyAppendToFile, truth(kCFBooleanTrue)) }
        try pair.open(nil, writer)
    }

    /// Makes two streams in memory: what is written to the one is read from the other.
    ///
    /// - Parameters:
    ///   - capacity: How many bytes lie between the two, in either direction, before a write has to wait.
    ///   - loop: The loop that serves the first stream.
    ///   - other: The loop that serves the second; `nil` is the same.
    ///   - mode: The mode of the loops in which that happens.
    ///
    /// The corresponding C function is `CFStreamCreateBoundPair`.
    public static func bound(
        capacity: Int = 4096, on loop: RunLoop, and other: RunLoop? = nil, mode: RunLoop.Mode = .common
    ) throws(ByteStreamError) -> (ByteStream, ByteStream) {
        var (readers, writers): ([CFReadStream?], [CFWriteStream?]) = ([nil, nil], [nil, nil])
        for index in 0..<2 { unsafe CFStreamCreateBoundPair(nil, &readers[index], &writers[index], capacity) }
        let ends = (ByteStream(StreamPair(loop, mode, peer: nil)), ByteStream(StreamPair(other ?? loop, mode, peer: nil)))
        try ends.0.open(readers[0], writers[1], nil)
        try ends.1.open(readers[1], writers[0], nil)
        return ends
    }

    // MARK: The end

    /// Closes the stream for good. Any thread, also in its own event handler.
    ///
    /// Whoever waits gets ``ByteStreamError/Reason/closed``. What waits to be written is lost, and so is what was not read. No event comes
    /// afterwards. An event that another thread is being told just now goes on.
    public func close() { pair.end(.closed) }

    /// Whether the stream has been closed, by the program or with its loop's thread.
    public var isClosed: Bool { pair.state.withLock { $0.isClosed } }
}

extension StreamPair {
    fileprivate func url(of path: String) throws(ByteStreamError) -> CFURL {
        var path = path
        let url: CFURL? =
            path.utf8.contains(0)
            ? nil
            : path.withUTF8 { bytes in
                unsafe CFURLCreateFromFileSystemRepresentation(nil, bytes.baseAddress, bytes.count, false)
            }
        guard let url else { throw error(.system(Int32(SHIM_EINVAL))) }
        return url
    }
}

private func truth(_ value: CFBoolean?) -> CFTypeRef? { unsafe unsafeBitCast(value, to: CFTypeRef?.self) }
