// SPDX-License-Identifier: Apache-2.0
//
// Echoes of byte streams beside bare epoll, Dispatch and, where it is given, SwiftNIO: `make bench-swift`, or `bench-swift streams` for
// these alone. All threads run on one processor. What counts is the processor time of the process without that of the thread of clients.
// Rounds are interleaved, and the medians printed.
//
// `bench-swift echo task 1 1000` does 1,000 echoes of one connection in one way, for tools that count instructions.
// `bench-swift allocations` prints the blocks that an echo and other operations allocate, for `make bench-check`.

import Allocations
import CoreRunLoop
import Dispatch
import Glibc

private let size = 64

/// Begins to serve sockets, and returns what ends that once the clients have gone.
struct EchoWay: Sendable {
    let word: String
    let name: String
    let serve: @Sendable ([Int32]) throws -> @Sendable () -> Void
}

private let ways = waysOfThePackage + waysOfNIO

private let waysOfThePackage = [
    EchoWay(word: "epoll", name: "bare epoll") { sockets in
        let server = try Thread.joinable(name: "bench, epoll") { echo_serve(sockets, Int32(sockets.count)) }
        return {
            _ = server.join()
            echo_close(sockets, Int32(sockets.count))
        }
    },
    EchoWay(word: "dispatch", name: "Dispatch, read sources") { sockets in
        let queue = DispatchQueue(label: "bench")
        let all = DispatchGroup()
        for socket in sockets {
            let source = DispatchSource.makeReadSource(fileDescriptor: socket, queue: queue)
            all.enter()
            source.setEventHandler { if !echo_once(socket) { source.cancel() } }
            source.setCancelHandler {
                close(socket)
                all.leave()
            }
            source.resume()
        }
        return { all.wait() }
    },
    EchoWay(word: "event", name: "`ByteStream`, `onEvent`") { sockets in
        let (loop, stop) = try loopAndStop()
        let streams = try sockets.map { try ByteStream(socket: $0, on: loop) }
        for stream in streams {
            stream.onEvent = { [unowned stream] event in if case .bytes(let bytes) = event { stream.send(bytes) } }
        }
        return {
            for stream in streams { stream.close() }
            stop()
        }
    },
    EchoWay(word: "loop-task", name: "`ByteStream`, a task that prefers the loop") { sockets in
        let (loop, stop) = try loopAndStop()
        return try tasks(sockets, on: loop, preferring: loop, stop)
    },
    EchoWay(word: "task", name: "`ByteStream`, a plain task") { sockets in
        let (loop, stop) = try loopAndStop()
        return try tasks(sockets, on: loop, preferring: nil, stop)
    },
]

private func loopAndStop() throws -> (RunLoop, @Sendable () -> Void) {
    let stop = RunLoop.StopToken()
    return (try Thread.runningLoop(name: "bench, streams", until: stop), { stop.requestStop() })
}

private func tasks(
    _ sockets: [Int32], on loop: RunLoop, preferring executor: (any TaskExecutor)?, _ stop: @escaping @Sendable () -> Void
) throws -> @Sendable () -> Void {
    let all = DispatchGroup()
    for socket in sockets {
        let stream = try ByteStream(socket: socket, on: loop)
        all.enter()
        Task(executorPreference: executor) {
            while let bytes = try await stream.read() { try await stream.write(bytes) }
            all.leave()
        }
    }
    return {
        all.wait()
        stop()
    }
}

/// Nanoseconds and allocations of an echo, on the server's side.
private func measure(_ way: EchoWay, _ connections: Int, _ echoes: Int) throws -> (time: Double, allocations: Double) {
    var (clients, servers) = ([Int32](repeating: -1, count: connections), [Int32](repeating: -1, count: connections))
    if !echo_connect(&clients, &servers, Int32(connections)) { fatalError("no connections could be made") }
    let end = try way.serve(servers)
    _ = echo_run_clients(clients, Int32(connections), Int32(size), Int32(max(2, 100 / connections)))
    let (start, before) = (process_time_ns(), allocations_so_far())
    let ofClients = echo_run_clients(clients, Int32(connections), Int32(size), Int32(echoes))
    let (time, allocations) = (process_time_ns() - start, allocations_so_far() - before)
    if ofClients == 0 { fatalError("a connection has failed") }
    echo_close(clients, Int32(connections))
    end()
    let count = Double(connections * echoes)
    return (Double(time - ofClients) / count, Double(allocations) / count)
}

/// Nanoseconds of a byte of `bytes()`, from a file.
private func measureBytes(_ count: Int = 4 << 20) throws -> Double {
    let path = "/tmp/bench-swift.\(getpid())"
    let file = open(path, O_CREAT | O_WRONLY, 0o600)
    if write(file, [UInt8](repeating: 7, count: count), count) != count { fatalError("the file could not be written") }
    close(file)
    defer { unlink(path) }
    let (loop, stop) = try loopAndStop()
    let stream = try ByteStream(reading: path, on: loop)
    let done = DispatchSemaphore(value: 0)
    let start = process_time_ns()
    Task.detached {
        var sum = 0
        for try await byte in stream.bytes() { sum += Int(byte) }
        if sum != 7 * count { fatalError("bytes have been lost") }
        done.signal()
    }
    done.wait()
    defer { stop() }
    return Double(process_time_ns() - start) / Double(count)
}

func measureStreams(rounds: Int = 5) throws {
    if !echo_prepare(4096) { print("the threads could not be kept on one processor") }
    let connections = [1, 100, 1000]
    var times = [[[Double]]](repeating: [[Double]](repeating: [], count: ways.count), count: connections.count)
    var allocations = [Double](repeating: 0, count: ways.count)
    var perByte: [Double] = []
    for _ in 0..<rounds {
        for (row, count) in connections.enumerated() {
            for (index, way) in ways.enumerated() {
                let (time, blocks) = try measure(way, count, 10_000 / count)
                times[row][index].append(time)
                if count == 1 { allocations[index] = blocks }
            }
        }
        perByte.append(try measureBytes())
    }
    let heads = connections.map { "\($0) connections |" }.joined(separator: " ")
    print("\n| an echo of \(size) bytes, the server's share | \(heads) allocations |")
    print("|---|--:|--:|--:|--:|")
    for (index, way) in ways.enumerated() {
        let cells = connections.indices.map { row in
            let (own, bare) = (median(times[row][index]), median(times[row][0]))
            return "\(text(own / 1000)) us (\(text(own / bare, 2))) |"
        }
        print("| \(way.name) | \(cells.joined(separator: " ")) \(text(allocations[index], 2)) |")
    }
    print("\n`bytes()`: \(text(median(perByte))) ns a byte")
}

/// Blocks of a request that a task makes, those of its answer and of the two wake-ups of the pool included.
private func measureRequest(_ count: Int = 1000) -> Double {
    let done = DispatchSemaphore(value: 0)
    let blocks = Counter()
    Task.detached {
        for index in 0..<2 * count {
            if index == count { blocks.value = Int(allocations_so_far()) }
            check(try await otherPorts.remote.requestBytes(number: 1, message).count == message.count)
        }
        blocks.value = Int(allocations_so_far()) - blocks.value
        done.signal()
    }
    done.wait()
    return Double(blocks.value) / Double(count)
}

/// Blocks that are allocated, as lines of a table for `make bench-check`.
func printAllocations() throws {
    _ = echo_prepare(256)
    for way in waysOfThePackage.dropFirst(2) {
        print("echo-\(way.word)\t1\tallocations\t\(text(try measure(way, 1, 5000).allocations, 0))")
    }
    print("request-task\t1\tallocations\t\(text(measureRequest(), 0))")
    let makeTimer = { _ = Timer(timeInterval: .seconds(1), repeats: true) { _ in } }
    _ = measure(10, thread_time_ns, makeTimer)
    print("timer\t1\tallocations\t\(text(measure(100, thread_time_ns, makeTimer).allocations, 0))")
}

/// What `words` ask for, if that is about streams.
func runStreams(_ words: [String]) throws -> Bool {
    switch words.first {
    case "streams": try measureStreams(rounds: words.dropFirst().first.flatMap { Int($0) } ?? 5)
    case "allocations": try printAllocations()
    case "bytes": print("\(text(try measureBytes(Int(words.dropFirst().first ?? "") ?? 4 << 20))) ns")
    case "echo":
        guard words.count == 4, let way = ways.first(where: { $0.word == words[1] }), let connections = Int(words[2]),
            let count = Int(words[3])
        else { fatalError("usage: bench-swift echo [\(ways.map(\.word).joined(separator: "|"))] connections echoes") }
        _ = echo_prepare(4096)
        let (time, allocations) = try measure(way, connections, count)
        print("\(way.name): \(text(time)) ns, \(text(allocations, 2)) allocations")
    default: return false
    }
    return true
}
