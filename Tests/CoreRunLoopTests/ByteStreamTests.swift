// SPDX-License-Identifier: Apache-2.0
//
// The byte streams, rules 1800 to 1813 of docs/rules.md: reading, writing, ends, limits and cancellations.

import CoreRunLoop
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite(.timeLimit(.minutes(10))) struct `A byte stream` {
    @Test func `reads what is there, waits for the first byte, and tells the end`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            put("hello", into: socket)
            #expect(try await stream.read(upTo: 2) == Array("he".utf8))
            #expect(try await stream.read() == Array("llo".utf8))
            async let later = stream.read()
            put("more", into: socket)
            #expect(try await later == Array("more".utf8))
            close(socket)
            #expect(try await stream.read() == nil)
            #expect(try await stream.read() == nil)
        }
    }

    @Test func `reads as many bytes as are asked for, however they come`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            async let five = stream.read(exactly: 5)
            for letter in "abcde" { put(String(letter), into: socket) }
            #expect(try await five == Array("abcde".utf8))
            #expect(try await stream.read(exactly: 0) == [])
            put("xy", into: socket)
            close(socket)
            #expect(try await reason { _ = try await stream.read(exactly: 3) } == .endedEarly(received: 2, wanted: 3))
            #expect(try await stream.read() == Array("xy".utf8))
        }
    }

    @Test func `splits lines, however they come, and keeps what follows the last one that was taken`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            async let first = stream.readLine()
            for piece in ["he", "llo", "\r", "\n", "\nsecond\nbo", "dy"] { put(piece, into: socket) }
            #expect(try await first == Array("hello".utf8))
            var lines: [String] = []
            for try await line in stream.lines() {
                lines.append(line)
                if lines.count == 2 { break }
            }
            #expect(lines == ["", "second"])
            #expect(try await stream.read(exactly: 4) == Array("body".utf8))
            put("a\rb\nlast", into: socket)
            close(socket)
            #expect(try await stream.readLine() == Array("a\rb".utf8))
            #expect(try await stream.readLine() == Array("last".utf8))
            #expect(try await stream.readLine() == nil)
        }
    }

    @Test func `refuses a line that is too long, and loses none of it`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            put("12345\r\n123456\n", into: socket)
            #expect(try await stream.readLine(maxLength: 5) == Array("12345".utf8))
            #expect(try await reason { _ = try await stream.readLine(maxLength: 5) } == .lineTooLong(limit: 5))
            #expect(try await stream.readLine(maxLength: 6) == Array("123456".utf8))
            put("no newline at all", into: socket)
            #expect(try await reason { _ = try await stream.readLine(maxLength: 5) } == .lineTooLong(limit: 5))
            #expect(try await stream.read(exactly: 17) == Array("no newline at all".utf8))
        }
    }

    @Test func `keeps about as much memory as what it has read`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            func read(_ count: Int, _ call: () async throws -> [UInt8]?) async throws {
                put(String(repeating: "a", count: count - 1) + "\n", into: socket)
                let bytes = try await call()
                #expect(bytes.map { $0.capacity <= $0.count + $0.count / 8 + 80 } == true)
            }
            for count in [1, 64, 1000, 8000] {
                try await read(count) { try await stream.read() }
                try await read(count) { try await stream.readLine() }
                try await read(count) { try await stream.read(exactly: count) }
                try await read(2 * count) {  // the rest is in memory that was made for more
                    _ = try await stream.readLine(maxLength: 100_000)
                    put("rest", into: socket)
                    return try await stream.read()
                }
            }
        }
    }

    @Test func `gives its bytes one by one, or as they come`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            put("abcdef", into: socket)
            var letters: [UInt8] = []
            for try await byte in stream.bytes() {
                letters.append(byte)
                if letters.count == 2 { break }
            }
            close(socket)
            var chunks: [[UInt8]] = []
            for try await chunk in stream.chunks(upTo: 3) { chunks.append(chunk) }
            #expect(letters == Array("ab".utf8))
            #expect(chunks.allSatisfy { (1...3).contains($0.count) })
            #expect(chunks.flatMap { $0 } == Array("cdef".utf8))
        }
    }

    @Test func `writes more than the peer has room for when the peer reads, in order`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            async let first: Void = stream.write(bytes)
            let read = try Thread.joinable(name: "peer") { readAll(from: socket, bytes.count + 3) }
            try await first
            try await stream.write("end")
            #expect(try await read.value == bytes + Array("end".utf8))
            close(socket)
        }
    }

    @Test func `makes a writer wait for a peer that does not read, and a peer wait for a program that does not`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            #expect(
                try await reason { try await stream.write([UInt8](repeating: 7, count: 1 << 20), timeout: .milliseconds(10)) } == .timedOut)
            #expect(stream.unsentCount == 0)
            // The program reads nothing, so that the system's buffers fill up, and no memory of the program's.
            var room = 0
            let chunk = [UInt8](repeating: 1, count: 65536)
            while room < 64 << 20 {
                let sent = send(socket, chunk, chunk.count, dontWait)
                if sent < 0 { break }
                room += sent
            }
            for _ in 0..<20 { try await pass(loop) }
            #expect(send(socket, chunk, chunk.count, dontWait) < 0)
            #expect(room > 0 && room < 64 << 20)
            #expect(try await stream.read(upTo: 1) == [1])
            var rest = room - 1
            while rest > 0 { rest -= try await stream.read()?.count ?? rest + 1 }
            #expect(rest == 0)
            close(socket)
        }
    }

    @Test func `lets no write follow one that was given up halfway`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let large = Task { try await stream.write([UInt8](repeating: 7, count: 1 << 22)) }
            var byte: UInt8 = 0
            _ = await Task.detached { recv(socket, &byte, 1, 0) }.value  // a part has gone out
            let next = Task { try await stream.write("next") }
            large.cancel()
            await #expect(throws: CancellationError.self) { try await large.value }
            drain(socket)  // there is room now
            #expect(try await reason { try await next.value } == .writeCutShort)
            #expect(try await reason { try await stream.write("later") } == .writeCutShort)
            put("still here", into: socket)
            #expect(try await stream.read() == Array("still here".utf8))
            close(socket)
        }
    }

    @Test func `ends a wait at once when its task is cancelled or its time is over, and loses no bytes`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let waiting = Task { try await stream.read(exactly: 4) }
            put("ab", into: socket)
            #expect(try await reason { _ = try await stream.readLine(timeout: .milliseconds(1)) } == .timedOut)
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            await #expect(throws: CancellationError.self) {
                try await Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    _ = try await stream.read()
                }.value
            }
            put("cd", into: socket)
            #expect(try await stream.read(exactly: 4) == Array("abcd".utf8))
            close(socket)
        }
    }

    @Test func `can be cancelled although its loop does not run`() async throws {
        let held = makePipe()
        let (loops, continuation) = AsyncStream.makeStream(of: RunLoop.self)
        let thread = try Thread.joinable(name: "does not run") {
            continuation.yield(.current)
            drainPipe(held.reading)
        }
        var iterator = loops.makeAsyncIterator()
        let loop = try #require(await iterator.next())
        let (stream, socket) = try streamAndSocket(on: loop)
        let waiting = Task { try await stream.read() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        writePipe(held.writing)
        try await thread.value
        #expect(try await reason { _ = try await stream.read() } == .loopEnded)
        close(socket)
        for end in [held.reading, held.writing] { closePipe(end) }
    }

    @Test func `serves an actor of its loop without leaving the loop's thread`() async throws {
        actor Server: RunLoopActor {
            nonisolated let runLoop: RunLoop
            init(_ loop: RunLoop) { runLoop = loop }
            func echo(_ stream: ByteStream) async throws {
                for try await line in stream.lines() { try await stream.write("\(runLoop.isCurrent) \(line)\n") }
            }
        }
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let server = Server(loop)
            async let served: Void = server.echo(stream)
            put("one\ntwo\n", into: socket)
            let text = try await Thread.joinable(name: "peer") { readAll(from: socket, 18) }.value
            #expect(String(decoding: text, as: UTF8.self) == "true one\ntrue two\n")
            close(socket)
            try await served
        }
    }

    @Test func `tells those who wait that the thread of its loop has ended`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "ends", until: stop)
        let (stream, socket) = try streamAndSocket(on: loop)
        let waiting = Task { try await stream.read() }
        put("x", into: socket)
        #expect(try await waiting.value == Array("x".utf8))
        let next = Task { try await stream.read() }
        stop.requestStop()
        await #expect(throws: ByteStreamError.self) { try await next.value }
        close(socket)
    }

    @Test func `finishes its writing behind what waits, and reads on`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            try await stream.write("question")
            try await stream.finishWriting()
            #expect(try await Thread.joinable(name: "peer") { readAll(from: socket, .max) }.value == Array("question".utf8))
            #expect(try await reason { try await stream.write("more") } == .notWritable)
            put("answer", into: socket)
            close(socket)
            #expect(try await stream.read(exactly: 6) == Array("answer".utf8))
            #expect(try await stream.read() == nil)
        }
    }

    @Test func `tells a connection that was torn off as an error`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop)
            async let accepted = listener.accept()
            let stream = try await ByteStream.connect(to: "127.0.0.1", port: listener.port, on: loop)
            let peer = try await accepted
            try await stream.write("unread")
            let reading = Task { try await stream.read() }
            #expect(try await peer.read(upTo: 1) == Array("u".utf8))
            // A socket that is closed with bytes unread resets the connection.
            try await stream.write([UInt8](repeating: 1, count: 100_000))
            peer.close()
            #expect(try await reason { _ = try await reading.value } == .system(ECONNRESET))
            #expect(try await reason { while true { try await stream.write("x") } } != nil)
        }
    }

    @Test func `reads and writes the ends of a pipe`() async throws {
        try await withLoop { loop in
            let pipe = makePipe()
            let (reader, writer) = (try ByteStream(descriptor: pipe.reading, on: loop), try ByteStream(descriptor: pipe.writing, on: loop))
            let much = [UInt8](repeating: 120, count: 300_000) + [10]  // more than a pipe holds
            async let first = reader.readLine(maxLength: much.count)
            try await writer.write(much)
            #expect(try await first == much.dropLast())
            try await writer.write("one\ntwo")
            try await writer.finishWriting()
            var lines: [String] = []
            for try await line in reader.lines() { lines.append(line) }
            #expect(lines == ["one", "two"])
            #expect(try await reason { try await reader.write("x") } == .notWritable)
            #expect(try await reason { _ = try await writer.read() } == .notReadable)
        }
    }

    @Test func `of a pipe leaves the descriptor to the program, and says that nobody reads`() async throws {
        try await withLoop { loop in
            let pipe = makePipe()
            defer { closePipe(pipe.writing) }
            let writer = try ByteStream(descriptor: pipe.writing, closing: false, on: loop)
            try await writer.write("a")
            writer.close()
            #expect(fileIdentity(pipe.writing) != nil)
            let other = try ByteStream(descriptor: pipe.writing, closing: false, on: loop)
            closePipe(pipe.reading)
            #expect(try await reason { try await other.write("b") } == .system(EPIPE))
            #expect(throws: ByteStreamError(.system(EBADF), peer: nil)) { try ByteStream(descriptor: -1, on: loop) }
        }
    }

    @Test func `of a descriptor that is open for both goes both ways`() async throws {
        try await withLoop { loop in
            let path = "/tmp/crl-descriptor-\(getpid())"
            try #require(mkfifo(path, 0o600) == 0)
            defer { unlink(path) }
            let descriptor = open(path, O_RDWR | O_CLOEXEC)  // it reads what it has written
            let stream = try ByteStream(descriptor: descriptor, on: loop)
            try await stream.write("echo\nmore")
            #expect(try await stream.readLine() == Array("echo".utf8))
            try await stream.finishWriting()
            #expect(try await stream.read() == Array("more".utf8))
            let identity = try #require(fileIdentity(descriptor))
            stream.close()
            #expect(fileIdentity(descriptor) != identity)
        }
    }

    @Test func `has words for every error`() {
        #expect("\(ByteStreamError(.system(ENOENT), peer: "a"))" == "a: No such file or directory")
        #expect("\(ByteStreamError(.name(EAI_NONAME), peer: "host:1"))" == "host:1: There is no host of this name")
        #expect("\(ByteStreamError(.tls(-9814)))" == "The certificate of the peer, or of an authority, has expired")
        #expect("\(ByteStreamError(.tls(-1)))" == "TLS failed, error -1")
    }

    @Test func `says what is wrong with a descriptor, a host, a file`() async throws {
        try await withLoop { loop in
            #expect(throws: ByteStreamError(.system(EBADF), peer: nil)) { try ByteStream(socket: -1, on: loop) }
            let pipe = makePipe()
            defer { closePipe(pipe.writing) }
            #expect(throws: ByteStreamError(.system(ENOTSOCK), peer: nil)) { try ByteStream(socket: pipe.reading, on: loop) }
            // Nobody listens at port 1, and the system never picks it, unlike a port that was just closed.
            let error = await #expect(throws: ByteStreamError.self) {
                _ = try await ByteStream.connect(to: "127.0.0.1", port: 1, on: loop)
            }
            #expect(error?.reason == .system(ECONNREFUSED))
            #expect(error?.peer == "127.0.0.1:1")
            #expect(error?.description == "127.0.0.1:1: Connection refused")
            #expect(throws: ByteStreamError(.system(ENOENT), peer: "/no/such/file")) { try ByteStream(reading: "/no/such/file", on: loop) }
            #expect(throws: ByteStreamError.self) { try ByteStream(reading: "a\0b", on: loop) }
        }
    }

    @Test func `says that a name and TLS need the library for networks`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop)
            let port = listener.port
            for settings in [nil, TLSSettings.client] {
                let host = settings == nil ? "host.invalid" : "127.0.0.1"
                #expect(
                    try await reason { _ = try await ByteStream.connect(to: host, port: port, on: loop, withTLS: settings) }
                        == .needsNetworkLibrary)
            }
        }
    }

    @Test func `has settings of TLS by CFNetwork's names, and none for what is not changed`() {
        func text(_ settings: TLSSettings) -> String { String(reflecting: settings.cfDictionary) }
        #expect(CFDictionaryGetCount(TLSSettings.client.cfDictionary) == 0)
        var settings = TLSSettings.server(certificates: [[1, 2]])
        settings.verification = .name("peer.example")
        settings.authorities = [[3]]
        settings.applicationProtocols = ["h2", "http/1.1"]
        let names = [
            "kCFStreamSSLIsServer", "kCFStreamSSLCertificates", "kCFStreamSSLPeerName", "peer.example", "kCRLStreamSSLAnchorCertificates",
            "kCRLStreamSSLProtocols", "http/1.1",
        ]
        for name in names { #expect(text(settings).contains(name)) }
        #expect(CFDictionaryGetCount(settings.cfDictionary) == 5)
        settings.verification = .none
        #expect(text(settings).contains("kCFStreamSSLValidatesCertificateChain"))
    }

    @Test func `opens in its time, or is given up`() async throws {
        try await withLoop { loop in
            // Nobody accepts, and the queue of connections is full.
            let listener = Task { try await ByteStream.connect(to: "127.0.0.1", port: 1, on: loop, timeout: .zero) }
            await #expect(throws: ByteStreamError.self) { try await listener.value }
            let cancelled = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await ByteStream.connect(to: "127.0.0.1", port: 1, on: loop)
            }
            await #expect(throws: CancellationError.self) { try await cancelled.value }
        }
    }

    @Test func `closed with somebody waiting tells it, and is closed for good`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let reading = Task { try await stream.read() }
            let writing = Task { try await stream.write([UInt8](repeating: 0, count: 1 << 22)) }
            var byte: UInt8 = 0
            _ = await Task.detached { recv(socket, &byte, 1, 0) }.value
            stream.close()
            stream.close()
            #expect(try await reason { _ = try await reading.value } == .closed)
            #expect(try await reason { try await writing.value } == .closed)
            #expect(try await reason { _ = try await stream.read() } == .closed)
            #expect(try await reason { try await stream.write("x") } == .closed)
            #expect(try await reason { try await stream.finishWriting() } == .closed)
            // What was written before may be read, and then the end.
            _ = try await Thread.joinable(name: "peer") { readAll(from: socket, .max) }.value
            close(socket)
        }
    }

    @Test func `that nobody holds is closed, with its socket`() async throws {
        try await withLoop { loop in
            let (one, other) = socketPair()
            do {
                let stream = try ByteStream(socket: one, on: loop)
                put("x", into: other)
                #expect(try await stream.read() == Array("x".utf8))
            }
            var byte: UInt8 = 0
            #expect(await Task.detached { recv(other, &byte, 1, 0) }.value == 0)
            close(other)
        }
    }

    @Test func `tells its handler of bytes and of the end, on the loop, and of nothing after a close in it`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let (events, continuation) = AsyncStream.makeStream(of: String.self)
            stream.onEvent = { event in
                switch event {
                case .bytes(let bytes): continuation.yield("\(loop.isCurrent) \(String(decoding: bytes, as: UTF8.self))")
                case .ended: continuation.finish()
                case .failed(let error): continuation.yield("\(error)")
                }
            }
            var iterator = events.makeAsyncIterator()
            put("one", into: socket)
            #expect(await iterator.next() == "true one")
            put("two", into: socket)
            #expect(await iterator.next() == "true two")
            close(socket)
            #expect(await iterator.next() == nil)

            let (closing, peer) = try streamAndSocket(on: loop)
            let told = Trace()
            put("bytes", into: peer)
            close(peer)
            closing.onEvent = { [weak closing] event in
                told.add("\(event)")
                closing?.close()
            }
            await #expect(throws: ByteStreamError.self) { while true { _ = try await closing.read(exactly: 1000) } }
            try await pass(loop)
            try await pass(loop)
            #expect(told.events.count <= 1)
        }
    }

    @Test func `sends in the background, in order, and tells when a slow peer has taken it`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let (done, continuation) = AsyncStream.makeStream(of: Int.self)
            for number in 0..<3 {
                stream.send([UInt8](repeating: UInt8(number), count: 300_000)) { error in
                    #expect(error == nil)
                    continuation.yield(number)
                }
            }
            #expect(stream.unsentCount <= 900_000)
            let read = try await Thread.joinable(name: "peer") { readAll(from: socket, 900_000) }.value
            #expect(read == (0..<3).flatMap { [UInt8](repeating: UInt8($0), count: 300_000) })
            var iterator = done.makeAsyncIterator()
            for number in 0..<3 { #expect(await iterator.next() == number) }
            #expect(stream.unsentCount == 0)
            close(socket)
        }
    }

    @Test func `serves those who read in their order, and those who write`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let trace = Trace()
            let tasks = (0..<4).map { _ in Task { trace.add(String(decoding: try await stream.read(exactly: 2), as: UTF8.self)) } }
            put("aabbccdd", into: socket)
            for task in tasks { try await task.value }
            #expect(Set(trace.events) == ["aa", "bb", "cc", "dd"])
            close(socket)
        }
    }

    @Test func `lets the next one have the bytes of a read that was given up`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            put("ab", into: socket)
            #expect(try await stream.read(upTo: 1) == [97])
            let large = Task { try await stream.read(exactly: 10) }
            while stream.waitingReads == 0 { await Task.yield() }
            let small = Task { try await stream.read(exactly: 1, timeout: .seconds(60)) }
            while stream.waitingReads == 1 { await Task.yield() }
            large.cancel()
            #expect(try await small.value == [98])
            close(socket)
        }
    }

    @Test func `reads and writes files`() async throws {
        let path = "/tmp/corerunloop-stream-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        defer { unlink(path) }
        try await withLoop { loop in
            for (text, appends) in [("one\n", false), ("two\n", true)] {
                let writer = try ByteStream(writing: path, appending: appends, on: loop)
                try await writer.write(text)
                #expect(try await reason { _ = try await writer.read() } == .notReadable)
                try await writer.finishWriting()
            }
            let reader = try ByteStream(reading: path, on: loop)
            var lines: [String] = []
            for try await line in reader.lines() { lines.append(line) }
            #expect(lines == ["one", "two"])
            #expect(try await reason { try await reader.write("x") } == .notWritable)
        }
    }

    @Test func `is bound to another in memory, with room for so many bytes`() async throws {
        try await withLoop { loop in
            try await withLoop { other in
                let (one, two) = try ByteStream.bound(capacity: 100, on: loop, and: other)
                async let written: Void = one.write([UInt8](0..<250))
                #expect(try await two.read(exactly: 250) == [UInt8](0..<250))
                try await written
                try await two.write("back")
                #expect(try await one.read() == Array("back".utf8))
                try await one.finishWriting()
                #expect(try await two.read() == nil)
                two.close()
                #expect(try await one.read() == nil)
            }
        }
    }

    @Test func `is one of 200 that are served at the same time`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop)
            let port = listener.port
            let server = Task {
                try await withThrowingDiscardingTaskGroup { group in
                    for try await stream in listener.connections() {
                        group.addTask { for try await line in stream.lines() { try await stream.write(line + "!\n") } }
                    }
                }
            }
            try await withThrowingDiscardingTaskGroup { group in
                for number in 0..<200 {
                    group.addTask {
                        let stream = try await ByteStream.connect(to: "127.0.0.1", port: port, on: loop)
                        for round in 0..<3 {
                            try await stream.write("\(number) \(round)\n")
                            #expect(try await stream.readLine() == Array("\(number) \(round)!".utf8))
                        }
                    }
                }
            }
            listener.close()
            try await server.value
        }
    }
}
