// SPDX-License-Identifier: Apache-2.0
//
// The listeners: rules 1814 and 1815 of docs/rules.md.

import CoreRunLoop
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite(.timeLimit(.minutes(10))) struct `A listener of byte streams` {
    @Test func `tells its port, and the addresses of its connections`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop)
            #expect(listener.port > 0 && listener.address == "127.0.0.1:\(listener.port)")
            async let accepted = listener.accept()
            let stream = try await ByteStream.connect(to: "localhost", port: listener.port, on: loop)
            #expect(stream.peer == "localhost:\(listener.port)")
            #expect(try await accepted.peer?.hasPrefix("127.0.0.1:") == true)
        }
    }

    @Test func `keeps a connection for the next one when a wait is given up`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop)
            #expect(try await reason { _ = try await listener.accept(timeout: .milliseconds(1)) } == .timedOut)
            let waiting = Task { try await listener.accept() }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            let stream = try await ByteStream.connect(to: "127.0.0.1", port: listener.port, on: loop)
            let accepted = try await listener.accept()
            try await stream.write("x")
            #expect(try await accepted.read() == Array("x".utf8))
        }
    }

    @Test func `tells its handler of each connection`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop)
            let (streams, continuation) = AsyncStream.makeStream(of: ByteStream.self)
            listener.onConnection = { result in if case .success(let stream) = result { continuation.yield(stream) } }
            var iterator = streams.makeAsyncIterator()
            for text in ["a", "b"] {
                let stream = try await ByteStream.connect(to: "127.0.0.1", port: listener.port, on: loop)
                try await stream.write(text)
                #expect(try await iterator.next()?.read() == Array(text.utf8))
            }
        }
    }

    @Test func `closed ends its connections' sequence, and waits with an error`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop)
            let sequence = Task { for try await _ in listener.connections() {} }
            let waiting = Task { try await listener.accept() }
            listener.close()
            try await sequence.value
            #expect(try await reason { _ = try await waiting.value } == .closed)
            #expect(try await reason { _ = try await listener.accept() } == .closed)
        }
    }

    @Test func `says why it cannot listen, and removes only its own file`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop)
            #expect(throws: ByteStreamError(.system(EADDRINUSE), peer: "127.0.0.1:\(listener.port)")) {
                try ByteStreamListener(port: listener.port, on: loop)
            }
            #expect(throws: ByteStreamError(.system(EINVAL), peer: "no.number:1")) {
                try ByteStreamListener(port: 1, host: "no.number", on: loop)
            }
            let path = "/tmp/corerunloop-listener-\(getpid())-\(UInt64.random(in: 0 ... .max))"
            let local = try ByteStreamListener(path: path, on: loop)
            #expect(throws: ByteStreamError(.system(EADDRINUSE), peer: path)) { try ByteStreamListener(path: path, on: loop) }
            #expect(access(path, F_OK) == 0)
            local.close()
            #expect(access(path, F_OK) != 0)
        }
    }

    @Test func `accepts connections with TLS only where there is the library for it`() async throws {
        try await withLoop { loop in
            let listener = try ByteStreamListener(port: 0, on: loop, withTLS: .server(certificates: []))
            let waiting = Task { try await listener.accept() }
            _ = try await ByteStream.connect(to: "127.0.0.1", port: listener.port, on: loop)
            #expect(try await reason { _ = try await waiting.value } == .needsNetworkLibrary)
        }
    }
}
