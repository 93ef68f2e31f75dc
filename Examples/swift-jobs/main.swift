// SPDX-License-Identifier: Apache-2.0
//
// A job queue whose workers are processes that come and go.
//
//   swift-jobs [JOBS]      the queue: starts three workers, ends one of them by force, and starts another
//   swift-jobs work NAME   one more worker, for as long as the process that has started it
//
// While the queue runs, `messageport list` shows the workers, and further ones may be started by hand.

import CoreRunLoopDistributed

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

func start(_ name: String) -> pid_t {
    var pid: pid_t = 0
    let words = (["swift-jobs", "work", name] as [String]).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    guard posix_spawn(&pid, "/proc/self/exe", nil, nil, words, environ) == 0 else { fatalError("a process cannot be started") }
    return pid
}

func work(_ name: String) async throws {
    let parent = getppid()
    let system = try MessagePortActorSystem()
    try await system.host(name, as: $Worker.self, callsAtOnce: 1) { PrimeWorker(actorSystem: system) }
    while getppid() == parent { try await Task.sleep(for: .milliseconds(50)) }
}

func run(_ count: Int) async throws {
    let system = try MessagePortActorSystem()
    let queue = JobQueue()
    let changes = try system.changes(of: $Worker.self)
    let watch = Task {
        for await change in changes {
            switch change {
            case .appeared(let name, let worker):
                print("\(name) has come")
                Task { try await queue.serve(worker, name) }
            case .gone(let name): print("\(name) has gone")
            }
        }
    }
    var workers = (1...3).map { start("worker \($0)") }
    let size = 2000
    let primes = await withTaskGroup(of: Int.self) { group in
        for number in 0..<count { group.addTask { await queue.add(Job(number: number, from: number * size, to: (number + 1) * size)) } }
        var primes = 0
        var done = 0
        for await result in group {
            primes += result
            done += 1
            if done == count / 3 {
                kill(workers[0], SIGKILL)
                workers.append(start("worker 4"))
            }
        }
        return primes
    }
    watch.cancel()
    await queue.close()
    for worker in workers {
        kill(worker, SIGKILL)
        waitpid(worker, nil, 0)
    }
    let shares = await queue.doneBy.sorted { $0.key < $1.key }.map { "\($0.value) by \($0.key)" }
    print("\(count) jobs are done: \(shares.joined(separator: ", ")); \(await queue.givenBack) were given to another worker")
    print("there are \(primes) prime numbers below \(count * size)")
    if count == 60 && primes != 11_301 { exit(1) }
}

if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "work" {
    try await work(CommandLine.arguments[2])
} else {
    try await run(CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 60)
}
