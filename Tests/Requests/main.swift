// SPDX-License-Identifier: Apache-2.0
//
// Requests with random deadlines, cancellations and deaths of either side: `requests [COUNT]`.
//
// This process has a service of its own, and asks it and a service in another process. It kills that one, and the clients of its own
// service, again and again. Each request ends once, each handler ends, there are at most 8 threads, and the memory in use stays what it
// was.

import CoreRunLoop
import CoreRunLoopShims
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

private let threadsMost = max(8, 6 + sysconf(Int32(_SC_NPROCESSORS_ONLN)))  // tasks have a thread for each processor
private let growthMost = 4 << 20  // bytes: what an allocator may keep

/// A number that threads change.
private final class Count: Sendable {
    private let number = Mutex(0)
    func add(_ change: Int = 1) { number.withLock { $0 += change } }
    var value: Int { number.withLock { $0 } }
}

private func fail(_ sentence: String) -> Never {
    print("requests: \(sentence)")
    exit(1)
}

// MARK: The service

private struct Refusal: Error {}

private let began = Count()
private let ended = Count()
private let held = Count()  // handlers that wait until they are cancelled

/// Answers after up to 3 ms, or throws, or takes far too long.
private func serve(name: String) throws -> MessagePort {
    let port = try MessagePort(name: name)
    port.handle(.bytes(number: 1), concurrently: 12) { bytes in
        began.add()
        defer { ended.add() }
        let choice = UInt8.random(in: 0..<64)
        if choice == 0 { throw Refusal() }
        try await Task.sleep(for: choice == 1 ? .seconds(1000) : .microseconds(Int.random(in: 0..<3000)))
        return bytes
    }
    port.handle(.bytes(number: 2)) { $0 }
    port.handle(.bytes(number: 4), concurrently: 1000) { bytes in
        began.add()
        held.add()
        defer { ended.add() }
        try await Task.sleep(for: .seconds(1000))
        return bytes
    }
    return port
}

// MARK: The client

private let outcomes = Mutex<[String: Int]>([:])
private func note(_ outcome: String) { outcomes.withLock { $0[outcome, default: 0] += 1 } }

/// Makes one request, and checks that what comes of it is possible.
private func ask(_ name: String, _ number: Int) async {
    let size = Int.random(in: 0..<40) == 0 ? 100_000 : number % 300
    let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)
    let kind = Int32.random(in: 1...16)
    let limit = Duration.microseconds(Int.random(in: 0..<9000))
    let ends = Count()
    let task = Task {
        defer { ends.add() }
        let port = try MessagePort(remote: name)
        return try await port.requestBytes(number: kind == 16 ? 3 : kind == 15 ? 2 : 1, bytes, timeout: limit)
    }
    if Int.random(in: 0..<4) == 0 {
        try? await Task.sleep(for: .microseconds(Int.random(in: 0..<4000)))
        task.cancel()
    }
    do {
        if try await task.value != bytes { fail("request \(number) got another one's answer") }
        if kind == 16 { fail("a number that nobody handles was answered") }
        note("answered")
    } catch is CancellationError { note("cancelled") } catch PortError.unhandled(3) { note("unhandled") } catch PortError.failed {
        note("failed")
    } catch PortError.receiveTimeout { note("no answer in time") } catch PortError.sendTimeout { note("no room in time") } catch PortError
        .invalid
    { note("the service has gone") } catch PortError.notFound { note("no service") } catch { fail("request \(number): \(error)") }
    if ends.value != 1 { fail("request \(number) has ended \(ends.value) times") }
}

private func askMany(_ name: String, _ numbers: Range<Int>, other: String? = nil, between: @Sendable @escaping () -> Void = {}) async {
    await withTaskGroup(of: Void.self) { group in
        for number in numbers {
            if number - numbers.lowerBound >= 40 { await group.next() }
            if number % 16 == 0 { between() }
            let target = other.map { Bool.random() ? $0 : name } ?? name
            group.addTask { await ask(target, number) }
        }
    }
}

// MARK: Other processes

private func start(_ arguments: [String]) -> pid_t {
    var pid: pid_t = 0
    let words = (["requests"] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    guard posix_spawn(&pid, "/proc/self/exe", nil, nil, words, environ) == 0 else { fail("a process cannot be started") }
    return pid
}

private func end(_ pid: pid_t) {
    var status: Int32 = 0
    kill(pid, SIGKILL)
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
}

// MARK: What is measured

private func threadCount() -> Int {
    guard let directory = opendir("/proc/self/task") else { fail("there is no /proc") }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) { count += entry.pointee.d_name.0 == CChar(UInt8(ascii: ".")) ? 0 : 1 }
    return count
}

private func residentBytes() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { fail("there is no /proc") }
    defer { fclose(file) }
    var pages = 0
    var resident = 0
    let found = withUnsafeMutablePointer(to: &pages) { pages in
        withUnsafeMutablePointer(to: &resident) { resident in withVaList([pages, resident]) { vfscanf(file, "%ld %ld", $0) } }
    }
    if found != 2 { fail("there is no /proc") }
    return resident * Int(getpagesize())
}

private let threadsSeen = Mutex(0)
private func lookAtThreads() {
    var count = threadCount()
    for _ in 0..<1000 where count > threadsMost {  // a thread that is ending counts for a while on a busy machine
        usleep(2000)
        count = min(count, threadCount())
    }
    threadsSeen.withLock { [count] in $0 = max($0, count) }
}

// MARK: The program

private let arguments = Array(CommandLine.arguments.dropFirst())

/// The process that has started this one, and ends it.
private let parent = getppid()

if arguments.first == "serve" {
    let stop = RunLoop.StopToken()
    let port = try serve(name: arguments[1])
    try Thread.runningLoop(name: "service", until: stop).add(port, forMode: .common)
    while getppid() == parent { try await Task.sleep(for: .milliseconds(100)) }
} else if arguments.first == "ask" {
    var round = 0
    while getppid() == parent {
        await askMany(arguments[1], round..<round + 100)
        round += 100
    }
} else {
    let count = arguments.first.flatMap { Int($0) } ?? 600
    let ownName = "crl.requests.\(getpid())"
    let otherName = "crl.requests.\(getpid()).other"
    let stop = RunLoop.StopToken()
    let loop = try Thread.runningLoop(name: "service", until: stop)
    let service = try serve(name: ownName)
    loop.add(service, forMode: .common)

    let processes = Mutex((server: start(["serve", otherName]), client: start(["ask", ownName])))
    let kill: @Sendable () -> Void = {
        lookAtThreads()
        processes.withLock { processes in
            switch Int.random(in: 0..<40) {
            case 0:
                end(processes.server)
                processes.server = start(["serve", otherName])
            case 1:
                end(processes.client)
                processes.client = start(["ask", ownName])
            default: break
            }
        }
    }
    // Many in flight at once, most of them with a channel, and all cancelled.
    let tasks = (0..<200).map { _ in
        Task { try await MessagePort(remote: ownName).requestBytes(number: 4, [], timeout: .seconds(1000)) }
    }
    while held.value < 60 { try await Task.sleep(for: .milliseconds(1)) }
    lookAtThreads()
    for task in tasks { task.cancel() }
    for task in tasks {
        do {
            _ = try await task.value
            fail("a request was answered that should wait")
        } catch is CancellationError {}
    }
    lookAtThreads()

    let quarter = count / 4
    await askMany(ownName, 0..<quarter, other: otherName, between: kill)
    let before = residentBytes()
    await askMany(ownName, quarter..<count, other: otherName, between: kill)
    let after = residentBytes()
    processes.withLock { processes in
        end(processes.server)
        end(processes.client)
    }
    // Each handler hears that nobody waits for it, whoever has died.
    for _ in 0..<10_000 where began.value != ended.value { try await Task.sleep(for: .milliseconds(1)) }
    if began.value != ended.value { fail("\(began.value) handlers have begun, and \(ended.value) have ended") }
    lookAtThreads()
    service.invalidate()
    stop.requestStop()

    let seen = outcomes.withLock { $0 }
    let total = seen.values.reduce(0, +)
    let threads = threadsSeen.withLock { $0 }
    let list = seen.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    print("requests: \(total) ended (\(list)); \(began.value) handled here; \(threads) threads at most;")
    print("requests: \(before >> 10) KiB in use after a quarter, \(after >> 10) KiB at the end")
    if total != count { fail("\(count) were made, and \(total) have ended") }
    if threads > threadsMost { fail("more than \(threadsMost) threads") }
    if after > before + growthMost { fail("the memory in use grows") }
}
