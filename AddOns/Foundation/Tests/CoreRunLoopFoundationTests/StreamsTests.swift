// SPDX-License-Identifier: Apache-2.0
//
// Foundation's streams in this package's loops: events, pairs, subclasses.

import CoreRunLoopFoundation
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#endif

private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await Thread.joinable(name: "test", body).value
}

/// Notes the events of streams, and does something at each.
private final class Delegate: NSObject, StreamDelegate {
    var text: [String] = []
    var bytes: [UInt8] = []
    let at: (Delegate, Stream, Stream.Event) -> Void

    init(at: @escaping (Delegate, Stream, Stream.Event) -> Void = { _, _, _ in }) { self.at = at }

    func stream(_ stream: Stream, handle event: Stream.Event) {
        switch event {
        case .openCompleted: text.append("opened")
        case .hasBytesAvailable: text.append("bytes")
        case .hasSpaceAvailable: text.append("space")
        case .endEncountered: text.append("end")
        case .errorOccurred: text.append("error")
        default: text.append("\(event.rawValue)")
        }
        at(self, stream, event)
    }

    /// Runs the calling thread's loop until an event of this name was told.
    func wait(for name: String) {
        while !text.contains(name) && RunLoop.current.run(mode: .default, before: Date.distantFuture) {}
    }

    /// Reads what is there, up to `most` bytes at a time.
    static func reader(_ most: Int = 16) -> Delegate {
        Delegate { delegate, stream, event in
            if event == .hasBytesAvailable { delegate.read(stream, most) }
        }
    }

    @discardableResult
    func read(_ stream: Stream, _ most: Int) -> Int {
        var buffer = [UInt8](repeating: 0, count: most)
        let count = (stream as! InputStream).read(&buffer, maxLength: most)
        bytes += buffer.prefix(max(0, count))
        return count
    }
}

/// Gives whatever is queued in the default mode its turn.
private func passes(_ count: Int = 3) { for _ in 0..<count { RunLoop.current.run(mode: .default, before: Date()) } }

private func begin(_ stream: Stream, _ delegate: Delegate) {
    stream.delegate = delegate
    stream.schedule(in: RunLoop.current, forMode: .default)
    stream.open()
}

private func temporaryPath() -> String { "/tmp/corerunloop-streams-\(getpid())-\(UInt64.random(in: 0 ... .max))" }

@Suite(.timeLimit(.minutes(10))) struct `Foundation's streams` {
    @Test func `of data tell that they are open, of their bytes, and of their end`() async throws {
        try await onThread {
            let stream = InputStream(data: Data("hello".utf8))
            let delegate = Delegate.reader()
            stream.delegate = delegate
            #expect(stream.delegate === delegate)
            stream.schedule(in: .current, forMode: .default)  // as a program writes it that knows one kind of loops only
            stream.open()
            delegate.wait(for: "end")
            passes()
            #expect(delegate.text == ["opened", "bytes", "end"])
            #expect(delegate.bytes == Array("hello".utf8))
        }
    }

    @Test func `tell of bytes again only after a read`() async throws {
        try await onThread {
            let stream = InputStream(data: Data("hello".utf8))
            let delegate = Delegate()
            begin(stream, delegate)
            delegate.wait(for: "bytes")
            passes()
            #expect(delegate.text == ["opened", "bytes"])
            #expect(delegate.read(stream, 2) == 2)
            passes()
            #expect(delegate.text == ["opened", "bytes", "bytes"])
        }
    }

    @Test func `of files are read and written, and say what is wrong with a file`() async throws {
        try await onThread {
            let path = temporaryPath()
            defer { unlink(path) }
            let writer = try #require(OutputStream(toFileAtPath: path, append: false))
            let writes = Delegate { delegate, stream, event in
                guard event == .hasSpaceAvailable else { return }
                #expect((stream as! OutputStream).write(Array("text".utf8), maxLength: 4) == 4)
                if delegate.text.count == 4 { stream.close() }
            }
            begin(writer, writes)
            while writer.streamStatus != .closed { passes(1) }
            passes()
            #expect(writes.text == ["opened", "space", "space", "space"])

            let reads = Delegate.reader(5)
            let reader = try #require(InputStream(fileAtPath: path))
            begin(reader, reads)
            reads.wait(for: "end")
            #expect(reader.streamStatus == .atEnd)
            #expect(reads.bytes == Array("texttexttext".utf8))

            let missing = try #require(InputStream(fileAtPath: path + "/none"))
            let told = Delegate()
            begin(missing, told)
            told.wait(for: "error")
            #expect(told.text == ["error"])
            #expect((missing.streamError as? NSError)?.code == Int(ENOTDIR))
        }
    }

    @Test func `into memory and into a buffer tell of room, and of a buffer that is full`() async throws {
        try await onThread {
            let memory = OutputStream(toMemory: ())
            let delegate = Delegate { delegate, stream, event in
                if event == .hasSpaceAvailable && delegate.text.count < 4 { _ = (stream as! OutputStream).write([1, 2, 3], maxLength: 3) }
            }
            begin(memory, delegate)
            passes(6)
            #expect(delegate.text == ["opened", "space", "space", "space"])
            #expect(memory.property(forKey: .dataWrittenToMemoryStreamKey) as? Data == Data([1, 2, 3, 1, 2, 3]))

            let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: 4)
            defer { buffer.deallocate() }
            let small = OutputStream(toBuffer: buffer, capacity: 4)
            let full = Delegate { _, stream, event in
                if event == .hasSpaceAvailable { _ = (stream as! OutputStream).write([1, 2, 3], maxLength: 3) }
            }
            begin(small, full)
            full.wait(for: "error")
            #expect(full.text == ["opened", "space", "space", "error"])
        }
    }

    @Test func `are told in the modes that they are scheduled in, and no more when they are removed`() async throws {
        try await onThread {
            let mode = RunLoop.Mode("other")
            let stream = InputStream(data: Data("hello".utf8))
            let delegate = Delegate()
            stream.delegate = delegate
            stream.schedule(in: RunLoop.current, forMode: mode)
            stream.open()
            RunLoop.current.perform {}  // else the default mode were empty
            passes()
            #expect(delegate.text == [])
            while delegate.text.isEmpty { RunLoop.current.run(mode: mode, before: Date()) }
            #expect(delegate.text.first == "opened")
            stream.remove(from: RunLoop.current, forMode: mode)
            delegate.text = []
            delegate.read(stream, 1)
            for _ in 0..<3 { RunLoop.current.run(mode: mode, before: Date()) }
            #expect(delegate.text == [])
        }
    }

    @Test func `may be scheduled in the loop of another thread, which tells their events`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "other", until: stop)
        let (events, continuation) = AsyncStream.makeStream(of: Bool.self)
        let held = try await Thread.joinable(name: "test") {
            let stream = InputStream(data: Data("hello".utf8))
            let delegate = Delegate { delegate, stream, event in
                if event == .hasBytesAvailable { delegate.read(stream, 16) }
                continuation.yield(loop.isCurrent)
                if event == .endEncountered { continuation.finish() }
            }
            stream.delegate = delegate
            stream.schedule(in: loop, forMode: .common)
            stream.open()
            return Held(stream, delegate)
        }.value
        var seen: [Bool] = []
        for await isThere in events { seen.append(isThere) }
        #expect(seen.allSatisfy { $0 } && seen.count >= 2)
        stop.requestStop()
        held.keep()
    }

    @Test func `are told in the common modes`() async throws {
        try await onThread {
            let mode = RunLoop.Mode("tracking")
            RunLoop.current.addCommonMode(mode)
            for makes in [{ InputStream(data: Data("hello".utf8)) }, { boundPair(of: "hello") }] {
                let stream = makes()
                let delegate = Delegate { delegate, stream, event in
                    if event == .hasBytesAvailable { delegate.read(stream, 3) }
                }
                stream.delegate = delegate
                stream.schedule(in: .current, forMode: .common)
                stream.open()
                while delegate.bytes.count < 3 { RunLoop.current.run(mode: mode, before: Date.distantFuture) }
                while delegate.bytes.count < 5 { RunLoop.current.run(mode: .default, before: Date.distantFuture) }
                #expect(delegate.bytes == Array("hello".utf8))
                stream.remove(from: .current, forMode: .common)
                let count = delegate.text.count
                for mode in [mode, .default] { RunLoop.current.run(mode: mode, before: Date()) }
                #expect(delegate.text.count == count)
            }
        }
    }

    @Test func `without a delegate tell nothing`() async throws {
        try await onThread {
            for makes in [{ InputStream(data: Data("hello".utf8)) }, { boundPair(of: "hello") }] {
                let stream = makes()
                let delegate = Delegate()
                begin(stream, delegate)
                delegate.wait(for: "bytes")
                stream.delegate = nil
                delegate.read(stream, 1)
                passes()
                #expect(delegate.text == ["opened", "bytes"])
                let later = Delegate()
                stream.delegate = later
                delegate.read(stream, 1)
                later.wait(for: "bytes")
                #expect(delegate.text == ["opened", "bytes"])
                stream.close()
            }
        }
    }

    @Test func `do not keep their delegates, and are freed while they are scheduled`() async throws {
        try await onThread {
            for makes in [{ InputStream(data: Data("hello".utf8)) }, { boundPair(of: "hello") }] {
                weak var gone: Stream?
                do {
                    let stream = makes()
                    do {
                        let delegate = Delegate()
                        begin(stream, delegate)
                    }
                    #expect(stream.delegate == nil)
                    passes()
                    gone = stream
                }
                passes()
                #expect(gone == nil)
            }
        }
    }

    @Test func `may be closed in their callbacks, and tell nothing afterwards`() async throws {
        try await onThread {
            for makes in [{ InputStream(data: Data("hello".utf8)) }, { boundPair(of: "hello") }] {
                let stream = makes()
                let delegate = Delegate { _, stream, event in if event == .openCompleted { stream.close() } }
                begin(stream, delegate)
                delegate.wait(for: "opened")
                passes()
                #expect(delegate.text == ["opened"])
                #expect(stream.streamStatus == .closed)
            }
        }
    }

    @Test func `of a subclass are told of under its name, and scheduled by it`() async throws {
        final class Counting: InputStream {
            var scheduled = 0
            var reads = 0
            override func schedule(in loop: Foundation::RunLoop, forMode mode: Foundation::RunLoop.Mode) {
                scheduled += 1
                super.schedule(in: loop, forMode: mode)
            }
            override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
                reads += 1
                return super.read(buffer, maxLength: length)
            }
        }
        /// A stream of the program's own, which tells its delegate itself.
        final class Ticking: InputStream {
            private var isOpen = false
            private var timer: Timer?
            override func open() { isOpen = true }
            override func schedule(in loop: Foundation::RunLoop, forMode mode: Foundation::RunLoop.Mode) {
                timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { [unowned self] _ in
                    delegate?.stream(self, handle: .hasBytesAvailable)
                    RunLoop.current.stop()  // a timer ends no run
                }
            }
            override var hasBytesAvailable: Bool { true }
            override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
                buffer.pointee = 42
                return 1
            }
        }
        try await onThread {
            let counting = Counting(data: Data("hello".utf8))
            let delegate = Delegate { delegate, stream, event in
                #expect(stream === counting)
                if event == .hasBytesAvailable { delegate.read(stream, 3) }
            }
            begin(counting, delegate)
            delegate.wait(for: "end")
            #expect(delegate.bytes == Array("hello".utf8))
            #expect(counting.scheduled == 1 && counting.reads == 2)

            let ticking = Ticking(data: Data())
            let ticks = Delegate.reader()
            begin(ticking, ticks)
            ticks.wait(for: "bytes")
            #expect(ticks.bytes == [42] && ticking.hasBytesAvailable)
        }
    }

    @Test func `bound in memory carry what is written, with room for so many bytes`() async throws {
        try await onThread {
            var (input, output): (InputStream?, OutputStream?) = (nil, nil)
            Stream.getBoundStreams(withBufferSize: 4, inputStream: &input, outputStream: &output)
            let reader = try #require(input)
            let writer = try #require(output)
            var rest = Array("0123456789".utf8)[...]
            let writes = Delegate { _, stream, event in
                guard event == .hasSpaceAvailable else { return }
                let count = Array(rest).withUnsafeBufferPointer { (stream as! OutputStream).write($0.baseAddress!, maxLength: $0.count) }
                #expect((1...4).contains(count))
                rest = rest.dropFirst(count)
                if rest.isEmpty { stream.close() }
            }
            let reads = Delegate.reader()
            begin(writer, writes)
            begin(reader, reads)
            reads.wait(for: "end")
            #expect(reads.bytes == Array("0123456789".utf8))
            #expect(reads.text.first == "opened" && reads.text.last == "end")
            #expect(reader.streamStatus == .atEnd && writer.streamStatus == .closed)
        }
    }

    @Test func `connect to a host, and have its socket, its errors and its end`() async throws {
        try await onThread {
            let listener = try SocketServer()
            var (input, output): (InputStream?, OutputStream?) = (nil, nil)
            Stream.getStreamsToHost(withName: "127.0.0.1", port: listener.port, inputStream: &input, outputStream: &output)
            let reader = try #require(input)
            let writer = try #require(output)
            let reads = Delegate.reader()
            let writes = Delegate { _, stream, event in
                if event == .hasSpaceAvailable { _ = (stream as! OutputStream).write(Array("hi".utf8), maxLength: 2) }
            }
            begin(reader, reads)
            writer.delegate = writes
            writer.schedule(in: .current, forMode: .default)
            writer.open()
            reads.wait(for: "opened")
            writes.wait(for: "space")
            let peer = listener.acceptOne()
            #expect(Foundation::write(peer, "answer", 6) == 6)
            while reads.bytes.count < 6 { RunLoop.current.run(mode: .default, before: Date.distantFuture) }
            #expect((reader.property(forKey: Stream.PropertyKey("kCFStreamPropertySocketNativeHandle")) as? Data)?.count == 4)
            #expect(reader.property(forKey: Stream.PropertyKey("kCFStreamPropertySocketRemoteHostName")) as? String == "127.0.0.1")
            #expect(reader.property(forKey: Stream.PropertyKey("kCFStreamPropertySocketRemotePortNumber")) as? Int == listener.port)
            close(peer)
            while !reads.text.contains("end") && !reads.text.contains("error") {
                RunLoop.current.run(mode: .default, before: Date.distantFuture)
            }
            writer.close()
            reader.close()

            listener.end()
            // Nobody listens at port 1, and the system never picks it, unlike a port that was just closed.
            Stream.getStreamsToHost(withName: "127.0.0.1", port: 1, inputStream: &input, outputStream: nil)
            let refused = try #require(input)
            let told = Delegate()
            begin(refused, told)
            told.wait(for: "error")
            #expect(told.text == ["error"])
            let error = try #require(refused.streamError as? NSError)
            #expect(error.domain == NSPOSIXErrorDomain && error.code == Int(ECONNREFUSED))
            Stream.getStreamsToHost(withName: "127.0.0.1", port: -1, inputStream: &input, outputStream: &output)
            #expect(input != nil && output != nil)
        }
    }

    @Test func `refuse a proxy and security that cannot be had`() async throws {
        try await onThread {
            var (input, output): (InputStream?, OutputStream?) = (nil, nil)
            for (key, value) in [
                (
                    Stream.PropertyKey.socksProxyConfigurationKey,
                    ["SOCKSProxy": "127.0.0.1", "SOCKSPort": 1080] as NSDictionary as AnyObject
                ),
                (.socketSecurityLevelKey, StreamSocketSecurityLevel.negotiatedSSL.rawValue as NSString),
            ] {
                Stream.getStreamsToHost(withName: "127.0.0.1", port: 9, inputStream: &input, outputStream: &output)
                let stream = try #require(input)
                #expect(!stream.setProperty(value, forKey: key))
                stream.open()
                #expect((stream.streamError as? NSError)?.code == Int(EOPNOTSUPP))
            }
        }
    }

    /// What a program may give as a value of a property, and whether it is of a form that C has. Nothing of it ends the process.
    @Test func `take values as Darwin's take them`() async throws {
        try await onThread {
            let key = Stream.PropertyKey("kCRLStreamPropertyOpeningTimeout")
            let settings = Stream.PropertyKey("kCFStreamPropertySSLSettings")
            let none = StreamSocketSecurityLevel.none
            let proxy = [StreamSOCKSProxyConfiguration.hostKey: "127.0.0.1", .versionKey: StreamSOCKSProxyVersion.version5] as [_: Any]
            let values: [(AnyObject?, Stream.PropertyKey, Bool)] = [
                (none as AnyObject, .socketSecurityLevelKey, true), (none.rawValue as AnyObject, .socketSecurityLevelKey, true),
                (none.rawValue as NSString, .socketSecurityLevelKey, true), (NSNull(), .socketSecurityLevelKey, false),
                (true as AnyObject, .socketSecurityLevelKey, false), (nil, .socketSecurityLevelKey, false),
                (Date() as AnyObject, .socketSecurityLevelKey, false), (["list"] as NSArray, .socketSecurityLevelKey, false),
                ([Date()] as NSArray, settings, false), (NSNull(), settings, false), (["a": Date()] as NSDictionary, settings, false),
                ([1: "one"] as AnyObject, settings, false), (proxy as AnyObject, .socksProxyConfigurationKey, false),
                (NSNumber(value: 0.5), key, true), (0.25 as AnyObject, key, true), (3 as AnyObject, key, true), (NSNull(), key, false),
                (true as AnyObject, Stream.PropertyKey("kCFStreamPropertyShouldCloseNativeSocket"), true),
                (NSNumber(value: false), Stream.PropertyKey("kCFStreamPropertyShouldCloseNativeSocket"), true),
                ("value" as AnyObject, Stream.PropertyKey("no property"), false),
            ]
            for (number, (value, key, isTaken)) in values.enumerated() {
                var (input, output): (InputStream?, OutputStream?) = (nil, nil)
                Stream.getStreamsToHost(withName: "127.0.0.1", port: 1, inputStream: &input, outputStream: &output)
                let taken = (input?.setProperty(value, forKey: key), output?.setProperty(value, forKey: key))
                #expect(taken == (isTaken, isTaken), "value \(number)")
            }
            var (input, output): (InputStream?, OutputStream?) = (nil, nil)
            Stream.getStreamsToHost(withName: "127.0.0.1", port: 1, inputStream: &input, outputStream: &output)
            #expect(input?.setProperty(NSNumber(value: 0.5), forKey: key) == true)
            let told = try #require(output?.property(forKey: key) as? Double)
            #expect(abs(told - 0.5) < 0.01)
        }
    }

    @Test func `of this package may be scheduled in Foundation's loops, their own thread's or another's`() async throws {
        try await onThread {
            let stream = boundPair(of: "hello")
            let delegate = Delegate.reader()
            stream.delegate = delegate
            stream.schedule(in: Foundation::RunLoop.current, forMode: .default)
            stream.open()
            delegate.wait(for: "bytes")
            #expect(delegate.bytes == Array("hello".utf8))
            stream.remove(from: Foundation::RunLoop.current, forMode: .default)
        }
    }
}

/// Keeps objects that are no more used by their thread.
private final class Held: @unchecked Sendable {
    private let objects: [AnyObject]
    init(_ objects: AnyObject...) { self.objects = objects }
    func keep() { withExtendedLifetime(objects) {} }
}

/// A pair's reading end, with bytes in it; the other end stays open as long as this one.
private func boundPair(of text: String) -> InputStream {
    var (input, output): (InputStream?, OutputStream?) = (nil, nil)
    Stream.getBoundStreams(withBufferSize: 64, inputStream: &input, outputStream: &output)
    output!.open()
    _ = output!.write(Array(text.utf8), maxLength: text.utf8.count)
    Writers.keep(output!)
    return input!
}

/// Writing ends that nobody closes. Any thread.
private enum Writers {
    private static let lock = NSLock()
    private static nonisolated(unsafe) var streams: [OutputStream] = []
    static func keep(_ stream: OutputStream) { lock.withLock { streams.append(stream) } }
}

/// A listening socket.
private struct SocketServer {
    private let socket: Int32
    let port: Int

    init() throws {
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        socket = Foundation::socket(AF_INET, kind, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        let number = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> Bool in
                bind(socket, pointer, length) == 0 && listen(socket, 8) == 0 && getsockname(socket, pointer, &length) == 0
            }
        }
        try #require(number)
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    func acceptOne() -> Int32 { accept(socket, nil, nil) }
    func end() { close(socket) }
}

@Suite struct `An error of a byte stream` {
    @Test func `has its words where Foundation asks for them`() {
        let error: any Error = ByteStreamError(.system(ECONNREFUSED), peer: "host:1")
        #expect(error.localizedDescription == "host:1: Connection refused")
    }
}
