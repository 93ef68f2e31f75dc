// SPDX-License-Identifier: Apache-2.0
//
// What needs a process's first thread, which test runners do not give: the main loop, the main queue and actor in it, and how programs end.
// Prints one line a check, and exits with the number of those that failed. With an argument it is one of the programs that are tried.

import CoreRunLoop
import Dispatch

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

private struct Failure: Error {}

/// Ends with status 1 and its error.
private struct Throwing: RunLoopProgram {
    func run() async throws { throw Failure() }
}

/// Ends with status 0 though something is left in the loop, and not before its time though the loop is stopped.
private struct Stopped: RunLoopProgram {
    func run() async throws {
        RunLoop.main.add(Timer(timeInterval: .seconds(1000), repeats: true) { _ in }, forMode: .common)
        for _ in 0..<3 {
            RunLoop.main.stop()
            try await Task.sleep(for: .milliseconds(2), clock: RunLoop.main.clock)
        }
        print("still here")
    }
}

/// Threads that were there before anybody thought of signals, and do not block them.
private func startUnawareThreads() {
    for _ in 0..<3 { Thread.detachNewThread { while true { Thread.sleep(for: .seconds(1000)) } } }
}

/// Ends by SIGTERM, cleanly.
private struct Signalled: RunLoopProgram {
    init() { startUnawareThreads() }
    func run() async throws {
        let signals = try RunLoop.main.signals([SIGTERM])
        kill(getpid(), SIGTERM)
        for await _ in signals { break }
    }
}

/// Is asked to end while it waits, and ends with status 0.
private struct Graceful: RunLoopProgram {
    static let shutdownSignals = [SIGINT, SIGTERM]
    init() { startUnawareThreads() }
    func run() async throws {
        kill(getpid(), SIGTERM)
        try await Task.sleep(for: .seconds(1000))
    }
}

/// Ends what it does when it is asked to, and then as it likes.
private struct Failing: RunLoopProgram {
    static let shutdownSignals = [SIGTERM]
    func run() async throws {
        kill(getpid(), SIGTERM)
        do { try await Task.sleep(for: .seconds(1000)) } catch { throw Failure() }
    }
}

/// Does not hear that it is asked to end, as its main thread is busy. The second signal ends it.
private struct Busy: RunLoopProgram {
    static let shutdownSignals = [SIGINT, SIGTERM]
    func run() async throws {
        while true {
            kill(getpid(), SIGTERM)
            usleep(1000)  // until the first one is taken, further ones are the same
        }
    }
}

/// Uses the main loop without ever having asked for the thread's current one.
private func useMainLoopUnasked() -> Never {
    let isAtOnce = RunLoop.main.isCurrent && (try? RunLoop.main.performAndWait(timeout: .seconds(1000)) { true }) == true
    RunLoop.main.run(until: .now + .milliseconds(1))
    exit(isAtOnce ? 0 : 1)
}

/// Its first thread ends while others ask it for something.
private func endMainThread() -> Never {
    _ = RunLoop.current
    Thread.detachNewThread {
        // The object of a thread that does not know of it is not told of its end; its loop is.
        while Thread.main.perform({}) {}
        exit(0)
    }
    pthread_exit(nil)
}

/// Ends with a timer in the main loop, which nobody has run; or has, in a host's loop; or with nothing in it any more.
private func endUnserved(_ how: String) -> Never {
    let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1000), repeats: true) { _ in }
    if how == "hosted" {
        _ = RunLoop.main.prepareHosted()
        RunLoop.main.leaveHosted()
    }
    if how == "cancelled" { timer.invalidate() }
    exit(0)
}

switch CommandLine.arguments.dropFirst().first {
case "throwing": Throwing.main()
case "stopped": Stopped.main()
case "signalled": Signalled.main()
case "graceful": Graceful.main()
case "failing": Failing.main()
case "busy": Busy.main()
case "unasked": useMainLoopUnasked()
case "without its first thread": endMainThread()
case let how? where ["unserved", "hosted", "cancelled"].contains(how): endUnserved(how)
default: break
}

var failures: Int32 = 0
@MainActor func check(_ name: String, _ holds: Bool) {
    print("\(holds ? "ok" : "not ok") - \(name)")
    if !holds { failures += 1 }
}

let loop = RunLoop.current
check("the main thread's loop is the main loop", loop === RunLoop.main && loop.isCurrent && Thread.isMainThread)
check("its thread is the main thread", Thread.current === Thread.main)

// The main queue is a source of the main loop: it keeps the common modes alive, where the loop of another thread would return at once.
let start = WallTime.now
check("a run with nothing but the main queue lasts until its date", loop.run(mode: .default, before: start + .milliseconds(20)))
check("and not less", WallTime.now - start >= .milliseconds(20))
check("a mode that is not common has no main queue", !loop.run(mode: "private", before: .distantFuture))

var order: [String] = []
DispatchQueue.main.async { order.append("queue") }
check("a block of the main queue ends a run", CFRunLoopRunInMode(.defaultMode, 1000, true) == .handledSource && order == ["queue"])

let onMain: Bool = try RunLoop.runMain {
    await Task { @MainActor in Thread.isMainThread }.value
}
check("a task of the main actor runs on the main thread", onMain)

var state = 0
let timer = Timer(fire: .now, interval: .zero, repeats: false) { _ in MainActor.assumeIsolated { state += 1 } }
loop.add(timer, forMode: .common)
loop.run(until: .now + .milliseconds(5))
check("a timer's closure is in the main actor's isolation", state == 1)

// Closures and methods of the main actor's, as they are.
@MainActor final class Model: Performing {
    var events: [String] = []
    func note(_ event: String) { events.append(event) }
    func tick(_ timer: Timer) { events.append("method") }
}
let model = Model()
let marked = Timer(timeInterval: .zero, repeats: false) { @MainActor _ in model.note("timer") }
loop.add(marked, forMode: .common)
while marked.isValid { _ = loop.run(mode: .default, before: .now + .seconds(20)) }
let method = Timer(timeInterval: .zero, target: model, selector: Model.tick, repeats: false)
loop.add(method, forMode: .common)
while method.isValid { _ = loop.run(mode: .default, before: .now + .seconds(20)) }
loop.perform { @MainActor in model.note("block") }
let asker = Thread {
    try loop.performAndWait { @MainActor in model.note("waited") }
    model.performSelector(onMainThread: Model.note, with: "selector", waitUntilDone: false)
}
asker.start()
while model.events.count < 5 { _ = loop.run(mode: .default, before: .now + .seconds(20)) }
check(
    "closures and methods of the main actor's are called in its isolation",
    model.events == ["timer", "method", "block", "waited", "selector"])

private final class Receiver: Performing, Sendable {
    func note(_ text: String) { MainActor.assumeIsolated { order.append("\(text) \(Thread.isMainThread)") } }
}
private let receiver = Receiver()
order = []
let requester = Thread {
    receiver.performSelector(onMainThread: Receiver.note, with: "waited", waitUntilDone: true)
    receiver.performSelector(onMainThread: Receiver.note, with: "queued", waitUntilDone: false)
}
requester.start()
while order.count < 2 { _ = loop.run(mode: .default, before: .now + .seconds(1000)) }
check("other threads perform on the main thread", order == ["waited true", "queued true"])

// A job of the main actor runs the loop: timers have their turn, other jobs of the actor have not.
order = []
try RunLoop.runMain {
    let other = Task { @MainActor in order.append("other") }
    let timer = Timer(fire: .now, interval: .zero, repeats: false) { _ in MainActor.assumeIsolated { order.append("timer") } }
    RunLoop.main.add(timer, forMode: .default)
    runNested()
    order.append("end")
    await other.value
}
@MainActor func runNested() { _ = RunLoop.main.run(in: .default, for: .milliseconds(10)) }
check("a run inside a job of the main actor begins no other", order == ["timer", "end", "other"])

do {
    try RunLoop.runMain { throw Failure() }
    check("runMain throws what its body throws", false)
} catch { check("runMain throws what its body throws", error is Failure) }

let programs: [(String, ChildProcessSource.Status)] = [
    ("throwing", .exited(1)), ("stopped", .exited(0)), ("signalled", .exited(0)), ("unasked", .exited(0)), ("graceful", .exited(0)),
    ("failing", .exited(1)), ("busy", .signalled(SIGTERM)),
    ("without its first thread", .exited(0)), ("unserved", .exited(0)), ("hosted", .exited(0)), ("cancelled", .exited(0)),
]
for (program, status) in programs {
    var process: pid_t = 0
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(CommandLine.arguments[0]), strdup(program), nil]
    var errors: [Int32] = [-1, -1]
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    check("a pipe can be had", pipe(&errors) == 0 && posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO) == 0)
    posix_spawn(&process, "/proc/self/exe", &actions, nil, &arguments, environ)
    posix_spawn_file_actions_destroy(&actions)
    arguments.forEach { free($0) }
    close(errors[1])
    var ended: ChildProcessSource.Status?
    let child = try ChildProcessSource(processID: process) { _, status in MainActor.assumeIsolated { ended = status } }
    loop.add(child, forMode: .default)
    while ended == nil { _ = loop.run(mode: .default, before: .now + .seconds(1000)) }
    check("the program that is \(program) ends as it should", ended == status)
    var bytes = [UInt8](repeating: 0, count: 4096)
    let said = String(decoding: bytes[..<max(0, read(errors[0], &bytes, bytes.count))], as: UTF8.self)
    close(errors[0])
    let names = "the program ends with something in the main loop, which nobody has run; link CoreRunLoopMain"
    check("the program that is \(program) says so if it has not run its main loop", said.contains(names) == (program == "unserved"))
}
exit(failures)
