// SPDX-License-Identifier: Apache-2.0
// A server of lines and its client, both on the main loop.
import CoreRunLoop

func serve(_ listener: ByteStreamListener) async throws {
    for try await stream in listener.connections() {
        for try await line in stream.lines(maxLength: 100) { try await stream.write(line.uppercased() + "\n") }
        try await stream.finishWriting()
    }
}

try RunLoop.runMain {
    let listener = try ByteStreamListener(port: 0, on: .main)
    async let served: Void = serve(listener)
    let stream = try await ByteStream.connect(to: "127.0.0.1", port: listener.port, on: .main)
    try await stream.write("one\ntwo\n")
    print(String(decoding: try await stream.readLine() ?? [], as: UTF8.self))
    try await stream.finishWriting()
    for try await line in stream.lines() { print(line) }
    listener.close()
    try await served
    do { _ = try await ByteStream.connect(to: "127.0.0.1", port: listener.port, on: .main) } catch let error as ByteStreamError {
        print(error.reason == .system(111))
    }
}
// prints: ONE
// prints: TWO
// prints: true
