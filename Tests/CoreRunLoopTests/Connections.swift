// SPDX-License-Identifier: Apache-2.0
//
// What tests of byte streams need: connected sockets, and what comes out of them.

import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Two connected sockets: one is a stream, and the other stays with the test.
func streamAndSocket(on loop: RunLoop) throws -> (stream: ByteStream, socket: Int32) {
    let sockets = socketPair()
    return (try ByteStream(socket: sockets.0, on: loop), sockets.1)
}

#if canImport(Glibc)
    let dontWait = Int32(MSG_DONTWAIT)
    let outOfBand = Int32(MSG_OOB)
#else
    let dontWait = MSG_DONTWAIT
    let outOfBand = MSG_OOB
#endif

func socketPair() -> (Int32, Int32) {
    _ = descriptorLimit
    var ends: [Int32] = [0, 0]
    #if canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue)
    #else
        let kind = SOCK_STREAM
    #endif
    precondition(socketpair(AF_UNIX, kind, 0, &ends) == 0)
    return (ends[0], ends[1])
}

/// The two ends of a connection on this machine.
func tcpPair() -> (Int32, Int32) {
    #if canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue)
    #else
        let kind = SOCK_STREAM
    #endif
    let listening = socket(AF_INET, kind, 0)
    let near = socket(AF_INET, kind, 0)
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { end in
            precondition(bind(listening, end, size) == 0 && listen(listening, 1) == 0)
            precondition(getsockname(listening, end, &size) == 0)
            precondition(connect(near, end, size) == 0)
        }
    }
    let far = accept(listening, nil, nil)
    precondition(far >= 0)
    close(listening)
    return (near, far)
}

func put(_ text: String, into socket: Int32) {
    let bytes = Array(text.utf8)
    precondition(write(socket, bytes, bytes.count) == bytes.count)
}

func reason(_ body: () async throws -> Void) async throws -> ByteStreamError.Reason? {
    do { try await body() } catch let error as ByteStreamError { return error.reason }
    return nil
}

/// Waits until the loop has come to the end of what is queued now.
func pass(_ loop: RunLoop) async throws {
    await withCheckedContinuation { continuation in loop.perform { continuation.resume() } }
}

/// Reads up to `count` bytes, or to the end.
func readAll(from socket: Int32, _ count: Int) -> [UInt8] {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while all.count < count {
        let got = recv(socket, &buffer, min(buffer.count, count - all.count), 0)
        if got <= 0 { break }
        all += buffer[..<got]
    }
    return all
}

/// Reads what is there, without waiting.
func drain(_ socket: Int32) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while recv(socket, &buffer, buffer.count, dontWait) > 0 {}
}
