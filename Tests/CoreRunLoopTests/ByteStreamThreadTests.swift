// SPDX-License-Identifier: Apache-2.0
//
// Byte streams that many threads use at once, rules 1803, 1804 and 1806 of docs/rules.md: the order of bytes, and that none is lost or
// given twice, whoever writes, reads, iterates and is cancelled meanwhile.

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Who has got which bytes, by their values.
private final class Histogram: Sendable {
    private let counts = Mutex([Int](repeating: 0, count: 256))
    func add(_ bytes: [UInt8]) { counts.withLock { for byte in bytes { $0[Int(byte)] += 1 } } }
    var value: [Int] { counts.withLock { $0 } }
}

/// A record of a writer: its number, and how many came before it from there.
private func record(_ writer: Int, _ number: Int) -> [UInt8] {
    let filling = [UInt8](repeating: UInt8(writer), count: 40 + number % 100)
    return [UInt8(writer)] + (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } + filling
}

@Suite(.timeLimit(.minutes(10))) struct `A byte stream of many threads` {
    /// Checks that the records are whole, and those of each writer in order. Returns how many there are.
    private func check(_ bytes: [UInt8], _ writers: Int) -> Int {
        var (next, at, count) = ([Int](repeating: 0, count: writers), 0, 0)
        while at + 5 <= bytes.count {
            let writer = Int(bytes[at])
            guard writer < writers else { break }
            let expected = record(writer, next[writer])
            guard at + expected.count <= bytes.count, Array(bytes[at..<at + expected.count]) == expected else { break }
            (next[writer], at, count) = (next[writer] + 1, at + expected.count, count + 1)
        }
        #expect(at == bytes.count)
        return count
    }

    @Test func `keeps writes whole, and those of each writer in their order`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let (writers, each) = (8, 1500)
            let size = (0..<each).reduce(0) { $0 + record(0, $1).count }
            let received = Task.detached { try await Thread.joinable { readAll(from: socket, writers * size) }.value }
            let threads = try (0..<4).map { writer in
                try Thread.joinable {
                    for number in 0..<each { stream.send(record(writer, number)) }
                    return true
                }
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 4..<writers {
                    group.addTask(executorPreference: writer == 4 ? loop : nil) {
                        for number in 0..<each { try await stream.write(record(writer, number)) }
                    }
                }
                try await group.waitForAll()
            }
            for thread in threads { #expect(try await thread.value) }
            #expect(check(try await received.value, writers) == writers * each)
            #expect(stream.unsentCount == 0)
            close(socket)
        }
    }

    @Test func `tells the completions of what is sent on the loop's thread, in order`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let told = Mutex<[Int]>([])
            for number in 0..<300 {
                stream.send([UInt8](repeating: 1, count: 100)) { error in
                    #expect(error == nil && loop.isCurrent)
                    told.withLock { $0.append(number) }
                }
            }
            #expect(readAll(from: socket, 30_000).count == 30_000)
            try await stream.write("x")
            try await pass(loop)
            #expect(told.withLock { $0 } == Array(0..<300))
            close(socket)
        }
    }

    @Test func `gives each byte once, to those who read, iterate and are cancelled`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let (sent, got) = (Histogram(), Histogram())
            let bytes = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 167 >> 2) }
            sent.add(bytes)
            let writer = try Thread.joinable {
                var at = 0
                while at < bytes.count {
                    let count = min(1 + at % 3000, bytes.count - at)
                    at += bytes.withUnsafeBufferPointer { write(socket, $0.baseAddress! + at, count) }
                }
                close(socket)
                return true
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for reader in 0..<2 {
                    group.addTask(executorPreference: reader == 0 ? loop : nil) {
                        while let more = try await stream.read(upTo: 700) { got.add(more) }
                    }
                }
                for _ in 0..<2 { group.addTask { for try await byte in stream.bytes() { got.add([byte]) } } }
                group.addTask {
                    var isEnded = false
                    while !isEnded {
                        let reading = Task<Bool, any Error> {
                            do {
                                for try await byte in stream.bytes() { got.add([byte]) }
                                return true
                            } catch is CancellationError { return false }
                        }
                        await Task.yield()
                        reading.cancel()
                        isEnded = try await reading.value
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await writer.value)
            #expect(got.value == sent.value)
        }
    }

    @Test func `lends an iteration bytes that any other read takes back, in order`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            put("ab\ncd\nefghijkl", into: socket)
            var iteration = stream.bytes().makeAsyncIterator()
            #expect(try await iteration.next() == UInt8(ascii: "a"))
            #expect(try await stream.readLine() == Array("b".utf8))
            #expect(try await iteration.next() == UInt8(ascii: "c"))
            #expect(try await iteration.next() == UInt8(ascii: "d"))
            #expect(try await stream.readLine() == [])
            #expect(try await iteration.next() == UInt8(ascii: "e"))
            var other = stream.bytes().makeAsyncIterator()
            #expect(try await other.next() == UInt8(ascii: "f"))
            #expect(try await iteration.next() == UInt8(ascii: "g"))
            let told = Trace()
            stream.onEvent = { event in if case .bytes(let bytes) = event { told.add(String(decoding: bytes, as: UTF8.self)) } }
            try await pass(loop)
            #expect(told.text == "hijkl")
            stream.close()
            #expect(try await reason { _ = try await iteration.next() } == .closed)
            close(socket)
        }
    }

    @Test func `gives a handler arrays that are its own, of about the size of what came`() async throws {
        try await withLoop { loop in
            let (stream, socket) = try streamAndSocket(on: loop)
            let kept = Mutex<[[UInt8]]>([])
            stream.onEvent = { event in
                guard case .bytes(let bytes) = event else { return }
                #expect(bytes.capacity <= bytes.count + bytes.count / 8 + 80)
                if bytes.first != UInt8(ascii: "d") { kept.withLock { $0.append(bytes) } }
            }
            for number in 0..<200 {
                put(String(repeating: number % 3 == 0 ? "d" : number % 3 == 1 ? "k" : "l", count: 50 + number % 7), into: socket)
                try await pass(loop)
                try await pass(loop)
            }
            close(socket)
            try await pass(loop)
            kept.withLock { kept in
                let all = kept.flatMap { $0 }
                #expect(!kept.isEmpty)
                #expect(kept.allSatisfy { bytes in bytes.first != UInt8(ascii: "d") })
                for letter in ["k", "l"] {
                    let expected = (0..<200).filter { $0 % 3 == (letter == "k" ? 1 : 2) }.reduce(0) { $0 + 50 + $1 % 7 }
                    #expect(all.count { $0 == letter.utf8.first! } <= expected)
                }
            }
        }
    }

    @Test func `loses nothing that was read when a task is cancelled at any await of an echo`() async throws {
        try await withLoop { loop in
            for round in 0..<200 {
                let (stream, socket) = try streamAndSocket(on: loop)
                let echo = Task(executorPreference: round % 2 == 0 ? loop : nil) {
                    var taken: [UInt8] = []
                    do {
                        while let bytes = try await stream.read(upTo: 3) {
                            taken += bytes
                            try await stream.write(bytes)
                        }
                    } catch is CancellationError {}
                    return taken
                }
                put("0123456789", into: socket)
                for _ in 0..<round % 8 { await Task.yield() }
                echo.cancel()
                let taken = try await echo.value
                let rest = try await stream.read(exactly: 10 - taken.count)
                #expect(taken + rest == Array("0123456789".utf8))
                try await stream.write("!")
                let back = readAll(from: socket, 1)
                #expect(back == Array("0".utf8) || back == Array("!".utf8))
                close(socket)
            }
        }
    }
}
