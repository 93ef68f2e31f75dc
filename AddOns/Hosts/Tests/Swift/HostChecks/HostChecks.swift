// SPDX-License-Identifier: Apache-2.0
//
// What has to hold in every host: the checks, and the ways in which a program with an asynchronous main ends.

import CoreRunLoop
import CoreRunLoopMain
import Dispatch
import Glibc
import HostInterface
import Synchronization

private let first = pthread_self()
private let failures = Atomic(0)
private let hostTicks = Atomic(0)
private let stops = Atomic(0)

public func check(_ name: String, _ holds: Bool) {
    print(holds ? "ok   \(name)" : "FAIL \(name)")
    if !holds { failures.add(1, ordering: .relaxed) }
}

public func endProgram() -> Never { exit(Int32(failures.load(ordering: .relaxed))) }

public func isOnFirstThread() -> Bool { pthread_equal(pthread_self(), first) != 0 }

/// Counts a stop of the loop: what a program gives its host.
public func countStop() {
    check("a stop is told on the first thread", isOnFirstThread())
    stops.add(1, ordering: .relaxed)
}

/// The host has to be made before the first suspension, on the first thread.
@MainActor public func makeHost() {
    _ = isOnFirstThread()
    host_make()
    host_every(1) {
        MainActor.assumeIsolated {
            hostTicks.add(1, ordering: .relaxed)
            if !isOnFirstThread() { check("the host's timers fire on the first thread", false) }
        }
    }
}

@MainActor private func wait(until isDone: () -> Bool) async throws {
    while !isDone() { try await Task.sleep(for: .milliseconds(1)) }
}

/// Everything that lives in the host's loop.
@MainActor public func checkHost() async throws {
    try await Task.sleep(for: .milliseconds(1))
    check("the main actor is on the first thread after a sleep", isOnFirstThread())
    try await checkTicks()
    let onFirst = await withCheckedContinuation { done in DispatchQueue.main.async { done.resume(returning: isOnFirstThread()) } }
    check("blocks of the main queue run on the first thread", onFirst)
    let performed = await withCheckedContinuation { done in RunLoop.main.perform { done.resume(returning: isOnFirstThread()) } }
    check("blocks of the loop run on the first thread", performed)
    var count = 0
    await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<10_000 { group.addTask { await MainActor.run { isOnFirstThread() } } }
        for await isOnFirst in group where isOnFirst { count += 1 }
    }
    check("10000 hops come to the first thread", count == 10_000)
    let before = stops.load(ordering: .relaxed)
    Thread.detachNewThread { RunLoop.main.stop() }
    try await wait { stops.load(ordering: .relaxed) == before + 1 }
    check("the loop goes on after a stop", isOnFirstThread())
    try await checkPort()
    if host_can_nest { host_run_nested() }
    try await checkTicks()
    check("the main actor is on the first thread at the end", isOnFirstThread())
}

@MainActor private func checkTicks() async throws {
    hostTicks.store(0, ordering: .relaxed)
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
        let counted = Counter()
        let timer = Timer(timeInterval: .milliseconds(1), repeats: true) { timer in
            MainActor.assumeIsolated { counted.count += 1 }
            if MainActor.assumeIsolated({ counted.count }) >= 20, hostTicks.load(ordering: .relaxed) >= 20 {
                timer.invalidate()
                done.resume()
            }
        }
        RunLoop.main.add(timer, forMode: .common)
    }
    check("timers of both loops fire while main is suspended", isOnFirstThread())
}

@MainActor private final class Counter {
    var count = 0
}

@MainActor private func checkPort() async throws {
    let name = "org.corerunloop.hosts.\(getpid())"
    let port = try MessagePort(name: name)
    port.handle(.text(number: 1)) { name in
        if !isOnFirstThread() { check("a port is served on the first thread", false) }
        return "hello, \(name)"
    }
    RunLoop.main.add(port, forMode: .common)
    let reply = try await MessagePort(remote: name).request(.text(number: 1), "you")
    check("a port of the main loop answers", reply == "hello, you")
    port.invalidate()
}

/// A program with an asynchronous main: `attach` is what it does to have its loop in the host.
@MainActor public func runAsynchronousMain(attach: @escaping @MainActor @Sendable () -> Bool) async throws {
    makeHost()
    let way = CommandLine.arguments.dropFirst().first ?? ""
    if way == "late" {
        try await Task.sleep(for: .milliseconds(1))
        check("a loop that runs already is refused", !attach())
        check("and goes on", isOnFirstThread())
        endProgram()
    }
    check(
        "the host is accepted",
        RunLoop.mainThreadRuns {
            check("attached on the first thread", isOnFirstThread() && attach())
            if way == "never" { blockUntilTold() }
            host_run()
        })
    try await Task.sleep(for: .milliseconds(1))
    switch way {
    case "return": return
    case "throw": throw CancellationError()
    case "exit": exit(7)
    case "quit":
        try await checkTicks()
        host_quit()
        for _ in 0..<1000 { await Task.detached {}.value }
        try await Task.sleep(for: .milliseconds(10))
        check("the main loop runs when the host's has ended", isOnFirstThread())
    default: try await checkHost()
    }
    endProgram()
}

/// A host that blocks the first thread and never asks for the loop: the line that says so ends the program.
private func blockUntilTold() {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    dup2(ends[1], 2)
    let reader = ends[0]
    var bytes = [UInt8](repeating: 0, count: 1000)
    let count = read(reader, &bytes, bytes.count)
    print(String(decoding: bytes[..<max(0, count)], as: UTF8.self))
    endProgram()
}
