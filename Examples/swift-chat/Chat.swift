// SPDX-License-Identifier: Apache-2.0
//
// A chat server: each line that a user sends goes to all others, with the user's name before it.
//
//   swift run swift-chat PORT     serves until SIGINT or SIGTERM; try it with two of `nc 127.0.0.1 PORT`
//   swift run swift-chat          talks to itself as two users, and ends
//
// One loop, that of the main thread, serves all. A user is a task, which waits for the user's next line.

import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@MainActor final class Room {
    private static let mostUnsent = 65536
    private var users: [String: ByteStream] = [:]

    /// Serves a connection until its user goes.
    func serve(_ stream: ByteStream) async {
        do {
            guard let name = try await enter(stream) else { return }
            defer { leave(name) }
            for try await line in stream.lines(maxLength: 1000) { tell("\(name): \(line)", but: name) }
        } catch {
            print("a connection has ended:", error)
        }
    }

    /// Asks for a name that nobody has; `nil` if the user goes without one.
    private func enter(_ stream: ByteStream) async throws -> String? {
        try await stream.write("Your name?\n")
        while let line = try await stream.readLine(maxLength: 32, timeout: .seconds(60)) {
            let name = String(decoding: line, as: UTF8.self)
            if !name.isEmpty && users[name] == nil {
                users[name] = stream
                tell("\(name) has come, \(users.count) are here")
                return name
            }
            try await stream.write("Another name?\n")
        }
        return nil
    }

    private func leave(_ name: String) {
        users[name] = nil
        tell("\(name) has gone")
    }

    /// Nobody waits for a slow user: one who takes nothing is sent away.
    private func tell(_ text: String, but name: String? = nil) {
        for (user, stream) in users where user != name {
            if stream.unsentCount > Self.mostUnsent { stream.close() } else { stream.send(Array("\(text)\n".utf8)) }
        }
    }
}

@main struct Chat: RunLoopProgram {
    static let shutdownSignals = [SIGTERM, SIGINT]

    func run() async throws {
        let port = CommandLine.arguments.dropFirst().first.flatMap { UInt16($0) }
        let listener = try ByteStreamListener(port: port ?? 0, on: .main)
        async let served: Void = serve(listener)
        if port == nil {
            try await talk(listener.port)
            listener.close()
        } else {
            print("listening on \(listener.address)")
        }
        try await served
    }

    private func serve(_ listener: ByteStreamListener) async throws {
        let room = Room()
        try await withThrowingDiscardingTaskGroup { group in
            for try await stream in listener.connections() { group.addTask { await room.serve(stream) } }
        }
    }

    /// Two users, of whom each gets what the other says.
    private func talk(_ port: UInt16) async throws {
        let anna = try await enter("Anna", port)
        let bert = try await enter("Bert", port)
        try await expect("Bert has come, 2 are here", anna)
        try await anna.write("Hello\n")
        try await expect("Anna: Hello", bert)
        try await bert.write("Good bye\n")
        try await expect("Bert: Good bye", anna)
        bert.close()
        try await expect("Bert has gone", anna)
        anna.close()
    }

    private func enter(_ name: String, _ port: UInt16) async throws -> ByteStream {
        let stream = try await ByteStream.connect(to: "127.0.0.1", port: port, on: .main)
        try await expect("Your name?", stream)
        try await stream.write("\(name)\n")
        _ = try await stream.readLine()
        return stream
    }

    private func expect(_ text: String, _ stream: ByteStream) async throws {
        let line = try await stream.readLine(timeout: .seconds(60)).map { String(decoding: $0, as: UTF8.self) }
        print(line ?? "the end")
        if line != text { throw Unexpected(line: line) }
    }
}

struct Unexpected: Error { let line: String? }
