// SPDX-License-Identifier: Apache-2.0
//
// TLS that begins on open streams: this package's on both ends.

import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A client and a server that have agreed to begin TLS, and what the server has sent.
private func agree(on loop: RunLoop, answer: String) async throws -> (client: ByteStream, server: ByteStream) {
    let listener = try ByteStreamListener(port: 0, on: loop)
    let client = try await ByteStream.connect(to: "127.0.0.1", port: listener.port, on: loop)
    let server = try await listener.accept()
    client.send(Array("STARTTLS\n".utf8))
    expect(try await server.readLine() == Array("STARTTLS".utf8), "the client asks for TLS in the clear")
    try await server.write(answer)
    expect(try await client.readLine() == Array("go".utf8), "the server agrees in the clear")
    return (client, server)
}

private func reason(_ call: () async throws -> Void) async -> ByteStreamError.Reason? {
    do { try await call() } catch { return (error as? ByteStreamError)?.reason }
    return nil
}

private func settings(of peer: Server) -> (client: TLSSettings, server: TLSSettings) {
    var client = TLSSettings.client
    (client.authorities, client.verification) = ([peer.certificate], .name(peer.name))
    return (client, .server(certificates: [peer.certificate, peer.key]))
}

func beginLate(_ peer: Server, on loop: RunLoop) async throws {
    let (client, server) = try await agree(on: loop, answer: "go\n")
    let (asClient, asServer) = settings(of: peer)
    var unfit = asClient
    unfit.verification = .name("no name")
    expect(await reason { try await client.startTLS(unfit) } == .tls(-9848), "settings that cannot be followed are refused")
    // A read that waits meanwhile gets the first bytes under TLS.
    let reading = Task { try await client.readLine() }
    while client.waitingReads == 0 { await Task.yield() }
    async let accepted: Void = server.startTLS(asServer)
    try await client.startTLS(asClient)
    try await accepted
    try await server.write("secret\n")
    expect(try await reading.value == Array("secret".utf8), "bytes come under TLS after it was begun")
    try await client.write("thanks\n")
    expect(try await server.readLine() == Array("thanks".utf8), "and in the other direction")
    expect(await reason { try await client.startTLS(asClient) } == .system(EOPNOTSUPP), "TLS begins once")
    expect(await reason { try await client.finishWriting() } == .system(EOPNOTSUPP), "TLS cannot end one direction alone")
    client.close()
    expect(try await server.readLine() == nil, "the farewell is the end")
}

/// Bytes in the clear that the server, or somebody between, has sent before TLS began. The client's library has read them ahead.
func meetAnInjection(_ peer: Server, on loop: RunLoop) async throws {
    let (client, server) = try await agree(on: loop, answer: "go\neverything is allowed\n")
    expect(await reason { try await client.startTLS(settings(of: peer).client) } == .tls(-9800), "what came before TLS ends the stream")
    expect(await reason { _ = try await client.readLine() } == .tls(-9800), "and is not read")
    expect(try await server.read() == nil, "nothing is sent then")
}
