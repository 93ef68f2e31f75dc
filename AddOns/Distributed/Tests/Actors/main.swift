// SPDX-License-Identifier: Apache-2.0
//
// Distributed actors of several processes: `actors [PROCESSES]`.
//
// This process starts others, which host a worker each, and calls them. It kills them while calls are under way.

import CoreRunLoop
import CoreRunLoopDistributed
import Distributed

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

private func fail(_ sentence: String) -> Never {
    print("actors: \(sentence)")
    exit(1)
}

private func expect(_ isTrue: Bool, _ sentence: @autoclosure () -> String) { if !isTrue { fail(sentence()) } }

// MARK: Processes

private func start(_ arguments: [String]) -> pid_t {
    var pid: pid_t = 0
    let words = (["actors"] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    guard posix_spawn(&pid, "/proc/self/exe", nil, nil, words, environ) == 0 else { fail("a process cannot be started") }
    return pid
}

private func end(_ pid: pid_t) {
    var status: Int32 = 0
    kill(pid, SIGKILL)
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
}

/// The process that has started this one, and ends it.
private let parent = getppid()
private let system = try MessagePortActorSystem()
system.allowErrors(Refusal.self)
private let base = "crl.actors.\(getpid())"

/// The worker of a process that was started.
private func worker(_ name: String) async throws -> $Worker {
    while true {
        do { return try system.actor(name, as: $Worker.self) } catch MessagePortActorError.notFound {
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}

private func wait(_ worker: $Worker, until isTrue: ([Int]) -> Bool) async throws {
    while !isTrue(try await worker.sleepers()) { try await Task.sleep(for: .milliseconds(1)) }
}

// MARK: What is tested

private func testCalls(_ name: String, _ process: pid_t) async throws {
    let worker = try await worker(name)
    expect(try await worker.process() == process, "the call was carried out elsewhere")
    expect(try await worker.add(2, 3) == 5, "2 and 3 are not 5")
    do {
        try await worker.refuse("no")
        fail("an error was lost")
    } catch let error as Refusal { expect(error == Refusal(reason: "no"), "another error has come: \(error)") }
    let left = try await MessagePortActorSystem.withTimeLimit(.seconds(50)) { try await worker.secondsLeft() }
    expect((0...50).contains(left), "the worker was told that there are \(left) of 50 seconds")
    do {
        try await system.host(name, as: $Worker.self) { SimpleWorker(actorSystem: system) }
        fail("two processes host actors under one name")
    } catch MessagePortActorError.nameTaken(name) {}
}

/// Waits until the watch has told of all names, and of the end of one that is killed.
private func testWatch(_ names: [String], _ process: pid_t, _ killed: String) async throws {
    var left = Set(names)
    for await change in try system.changes(of: $Worker.self) {
        switch change {
        case .appeared(let name, let worker):
            guard left.remove(name) != nil else { continue }
            _ = try await worker.add(1, 1)
            if left.isEmpty { end(process) }
        case .gone(killed):
            expect(left.isEmpty, "a worker that lives has gone")
            return
        case .gone: continue
        }
    }
    fail("the watch has ended")
}

private func testEnds(_ name: String) async throws {
    let worker = try await worker(name)
    let task = Task { try await MessagePortActorSystem.withTimeLimit(.seconds(1000)) { try await worker.sleep() } }
    try await wait(worker) { $0[0] == 1 }
    task.cancel()
    do {
        try await task.value
        fail("a cancelled call has ended well")
    } catch is CancellationError {}
    try await wait(worker) { $0 == [1, 1] }
    do {
        try await MessagePortActorSystem.withTimeLimit(.milliseconds(20)) { try await worker.sleep() }
        fail("a call has no deadline")
    } catch MessagePortActorError.deadlinePassed {}
    try await wait(worker) { $0[0] == $0[1] }
}

/// Kills a process with many calls under way. Returns the process that has taken its place.
private func testDeath(_ name: String, _ process: pid_t) async throws -> pid_t {
    let worker = try await worker(name)
    let before = try await worker.sleepers()[0]
    let tasks = (0..<50).map { _ in
        Task { try await MessagePortActorSystem.withTimeLimit(.seconds(1000)) { try await worker.sleep() } }
    }
    try await wait(worker) { $0[0] >= before + 50 }  // one of before may have come late
    var numbers = try await worker.numbers().makeAsyncIterator()
    for number in 0..<1000 { expect(try await numbers.next() == number, "the stream has lost a number") }
    let clock = ContinuousClock()
    let killed = clock.now
    end(process)
    for task in tasks {
        do {
            try await task.value
            fail("a call of a dead process has ended well")
        } catch MessagePortActorError.gone(worker.id) {}
    }
    do {
        while let _ = try await numbers.next() {}
        fail("a stream of a dead process has ended well")
    } catch MessagePortActorError.gone {}
    print("actors: 50 calls have ended \(killed.duration(to: clock.now)) after the death of their process")
    let next = start(["serve", name])
    while true {  // the same reference, for whoever has the name now
        do {
            expect(try await worker.process() == next, "the call was carried out elsewhere")
            return next
        } catch MessagePortActorError.notFound(name) { try await Task.sleep(for: .milliseconds(1)) }
    }
}

// MARK: The program

private let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "serve" {
    try await system.host(arguments[1], as: $Worker.self) { SimpleWorker(actorSystem: system) }
    while getppid() == parent { try await Task.sleep(for: .milliseconds(100)) }
} else {
    let count = arguments.first.flatMap { Int($0) } ?? 4
    let names = (0..<count).map { "\(base).\($0)" }
    var processes = names.map { start(["serve", $0]) }
    try await testCalls(names[0], processes[0])
    try await testEnds(names[0])
    processes[0] = try await testDeath(names[0], processes[0])
    try await withThrowingTaskGroup(of: Void.self) { group in
        for (name, process) in zip(names, processes) {
            group.addTask {
                let worker = try await worker(name)
                for number in 0..<20 { expect(try await worker.add(number, 1) == number + 1, "a call got another one's result") }
                expect(try await worker.process() == process, "the call was carried out elsewhere")
            }
        }
        try await group.waitForAll()
    }
    try await testWatch(names, processes[count - 1], names[count - 1])
    processes.dropLast().forEach(end)
    print("actors: \(count) processes were called, and each was seen to come")
}
