// SPDX-License-Identifier: Apache-2.0
//
// A client of HTTP/1.1: prints the body of what is at a URL.
//
//   swift run swift-fetch http://127.0.0.1:8000/     a name in the place of the address, and https, need the library corerunloop-net
//   swift run swift-fetch                            fetches twice from a server of its own, and ends
//
// The head of an answer is read as lines, and its body by its length, in chunks, or to the end. All come from the same stream.

import CoreRunLoop

enum FetchError: Error {
    case badURL(String)
    case badAnswer(String)
}

struct Location {
    var host: String
    var port: UInt16
    var path: String
    var isSecure: Bool

    init(_ text: String) throws {
        guard let separator = text.firstRange(of: "://"), ["http", "https"].contains(text[..<separator.lowerBound]) else {
            throw FetchError.badURL(text)
        }
        isSecure = text.hasPrefix("https")
        let rest = text[separator.upperBound...]
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        path = slash == rest.endIndex ? "/" : String(rest[slash...])
        let parts = rest[..<slash].split(separator: ":", maxSplits: 1)
        guard let name = parts.first, let number = parts.count == 1 ? (isSecure ? 443 : 80) : UInt16(parts[1]) else {
            throw FetchError.badURL(text)
        }
        (host, port) = (String(name), number)
    }
}

struct Answer {
    private(set) var status = 0
    private(set) var fields: [String: String] = [:]
    private(set) var body: [UInt8] = []

    init(from stream: ByteStream) async throws {
        let words = try await Self.line(stream).split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let number = Int(words[1]) else {
            throw FetchError.badAnswer(words.joined(separator: " "))
        }
        status = number
        try await readFields(stream)
        try await readBody(stream)
    }

    /// The lines up to the empty one.
    private mutating func readFields(_ stream: ByteStream) async throws {
        while case let line = try await Self.line(stream), !line.isEmpty {
            guard let colon = line.firstIndex(of: ":") else { throw FetchError.badAnswer(line) }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            fields[line[..<colon].lowercased()] = String(value)
        }
    }

    private mutating func readBody(_ stream: ByteStream) async throws {
        if fields["transfer-encoding"]?.lowercased() == "chunked" {
            while case let size = try await Self.chunkSize(stream), size > 0 {
                body += try await stream.read(exactly: size, timeout: .seconds(30))
                _ = try await Self.line(stream)
            }
        } else if let text = fields["content-length"] {
            guard let length = Int(text), length >= 0 else { throw FetchError.badAnswer(text) }
            body = try await stream.read(exactly: length, timeout: .seconds(30))
        } else {
            for try await bytes in stream.chunks(timeout: .seconds(30)) { body += bytes }
        }
    }

    private static func chunkSize(_ stream: ByteStream) async throws -> Int {
        let text = try await line(stream)
        guard let size = Int(text.prefix { $0 != ";" }, radix: 16), size >= 0 else { throw FetchError.badAnswer(text) }
        return size
    }

    private static func line(_ stream: ByteStream) async throws -> String {
        guard let line = try await stream.readLine(timeout: .seconds(30)) else { throw FetchError.badAnswer("nothing") }
        return String(decoding: line, as: UTF8.self)
    }
}

func fetch(_ location: Location) async throws -> Answer {
    let stream = try await ByteStream.connect(
        to: location.host, port: location.port, on: .main, withTLS: location.isSecure ? .client : nil, timeout: .seconds(10))
    try await stream.write(
        "GET \(location.path) HTTP/1.1\r\nHost: \(location.host)\r\nUser-Agent: swift-fetch\r\nConnection: close\r\n\r\n")
    return try await Answer(from: stream)
}

@main struct Fetch: RunLoopProgram {
    func run() async throws {
        if let text = CommandLine.arguments.dropFirst().first {
            let answer = try await fetch(Location(text))
            print(String(decoding: answer.body, as: UTF8.self))
            if answer.status >= 400 { throw FetchError.badAnswer("status \(answer.status)") }
        } else {
            try await fetchFromItself()
        }
    }

    /// A server that answers once by length and once in chunks.
    private func fetchFromItself() async throws {
        let bodies = ["Content-Length: 6\r\n\r\nhello\n", "Transfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n2;last\r\no\n\r\n0\r\n\r\n"]
        let listener = try ByteStreamListener(port: 0, on: .main)
        async let served: Void = {
            for body in bodies {
                let stream = try await listener.accept(timeout: .seconds(60))
                while try await stream.readLine()?.isEmpty == false {}
                try await stream.write("HTTP/1.1 200 OK\r\n\(body)")
            }
        }()
        for _ in bodies {
            let answer = try await fetch(Location("http://127.0.0.1:\(listener.port)/"))
            print(answer.status, String(decoding: answer.body, as: UTF8.self), terminator: "")
            if answer.body != Array("hello\n".utf8) { throw FetchError.badAnswer("\(answer.body)") }
        }
        try await served
    }
}
