// SPDX-License-Identifier: Apache-2.0

import CoreRunLoopShims

extension ByteStream {
    /// Writes bytes, and waits until the system, or the other end in memory, has taken all of them.
    ///
    /// So a peer that does not read makes the program wait. Writes of several tasks go out one after the other, each as a whole.
    ///
    /// - Parameters:
    ///   - bytes: What to write.
    ///   - timeout: How long it may take; `nil` is for ever.
    /// - Throws: ``ByteStreamError``; `CancellationError` when the task is cancelled. A write that was given up when a part of its bytes
    ///   had gone out ends the writing: every later one throws ``ByteStreamError/Reason/writeCutShort``.
    public nonisolated(nonsending) func write(_ bytes: [UInt8], timeout: Duration? = nil) async throws {
        try await write(WriteWant(bytes: bytes), timeout)
    }

    /// Writes a text as UTF-8; see the `write` of bytes.
    public nonisolated(nonsending) func write(_ text: String, timeout: Duration? = nil) async throws {
        try await write(WriteWant(bytes: Array(text.utf8)), timeout)
    }

    /// Writes bytes in the background, behind what waits to be written. Any thread.
    ///
    /// Nothing makes the program wait: ``unsentCount`` says how much a slow peer has not taken.
    ///
    /// - Parameters:
    ///   - bytes: What to write.
    ///   - completion: Told once, on the loop's thread or the one that closes the stream: `nil` when all bytes were taken.
    public func send(_ bytes: [UInt8], completion: (@Sendable (ByteStreamError?) -> Void)? = nil) {
        let end: WaitEnd<Void> =
            completion.map { completion in
                .closure { result in
                    switch result {
                    case .success: completion(nil)
                    case .failure(let error): completion(error as? ByteStreamError)
                    }
                }
            } ?? .nobody
        pair.write(WriteWant(bytes: bytes), number: newWaitNumber(), timeout: nil, end)
    }

    /// How many bytes wait to be written. Any thread.
    public var unsentCount: Int { pair.unsentCount }

    /// Tells the peer that no more bytes come, behind what waits to be written. Reading goes on.
    ///
    /// - Throws: As `write`; the error `EOPNOTSUPP` with TLS, where only ``close()`` says farewell.
    public nonisolated(nonsending) func finishWriting(timeout: Duration? = nil) async throws {
        try await write(WriteWant(bytes: [], finishes: true), timeout)
    }

    /// Begins TLS on an open connection where it stands, as STARTTLS asks for, and waits for the handshake.
    ///
    /// What waits to be written goes out before it, in the clear. Whoever waits for bytes gets those that come under TLS.
    ///
    /// - Parameters:
    ///   - settings: Whom to trust, or what to show. A stream that was made of a socket needs the name of its peer.
    ///   - timeout: How long to wait; `nil` is for ever. The writing ends when a handshake is given up.
    /// - Throws: ``ByteStreamError``; `CancellationError` when the task is cancelled. Settings that cannot be followed, or the lack of the
    ///   library `corerunloop-net`, leave the stream as it was. A stream that has TLS already throws `EOPNOTSUPP`. When bytes that came in
    ///   the clear have not been read, the stream ends: a stranger may have put them there, to be read as if they had come under TLS.
    ///
    /// The corresponding C property is `kCFStreamPropertySSLSettings`.
    public nonisolated(nonsending) func startTLS(_ settings: TLSSettings, timeout: Duration? = .seconds(30)) async throws {
        try await write(WriteWant(bytes: [], tls: settings), timeout)
    }

    private nonisolated(nonsending) func write(_ want: WriteWant, _ timeout: Duration?) async throws {
        try await waitInTask { [pair] number, end in
            pair.write(want, number: number, timeout: timeout, end)
        } giveUp: { [pair] number in
            pair.giveUpWriting(number, nil)
        }
    }
}
