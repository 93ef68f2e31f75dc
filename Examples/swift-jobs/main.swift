// SPDX-License-Identifier: Apache-2.0
//
// A job queue whose workers are processes that come and go.
//
//   swift-jobs             the queue: starts three workers, ends one of them by force when 20 of 60 jobs are done, and starts another
//   swift-jobs queue       the queue alone: somebody else starts four workers, such as the script `machines` on three machines
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

/// Hands out the jobs. Calls `partIsDone` in between, and then waits for a fourth worker.
func run(partIsDone: () -> Void) async throws {
    let system = try MessagePortActorSystem()
    let queue = JobQueue()
    let changes = try system.changes(of: $Worker.self)
    let watch = Task {
        for await change in changes {
            switch change {
            case .appeared(let name, let worker):
                tell("\(name) has come")
                Task { try await queue.serve(worker, name) }
            case .gone(let name): tell("\(name) has gone")
            }
        }
    }
    await queue.waitForWorkers(3)
    var primes = await queue.primes(of: 0..<20)
    tell("20 jobs are done")
    partIsDone()
    await queue.waitForWorkers(4)
    primes += await queue.primes(of: 20..<60)
    watch.cancel()
    await queue.close()
    let shares = await queue.doneBy.sorted { $0.key < $1.key }.map { "\($0.value) by \($0.key)" }
    tell("60 jobs are done: \(shares.joined(separator: ", ")); \(await queue.givenBack) were given to another worker")
    tell("there are \(primes) prime numbers below \(60 * Job.size)")
    if primes != 11_301 || shares.count != 4 { exit(1) }
}

func runWithWorkers() async throws {
    var workers = (1...3).map { start("worker \($0)") }
    defer {
        for worker in workers {
            kill(worker, SIGKILL)
            waitpid(worker, nil, 0)
        }
    }
    try await run {
        kill(workers[0], SIGKILL)
        workers.append(start("worker 4"))
    }
}

/// Prints a line at once, also if a program reads it.
func tell(_ line: String) {
    print(line)
    fflush(nil)
}

switch CommandLine.arguments.dropFirst() {
case []: try await runWithWorkers()
case ["queue"]: try await run {}
case let words where words.count == 2 && words.first == "work": try await work(words.last!)
default:
    print("usage: swift-jobs [queue | work NAME]")
    exit(2)
}
