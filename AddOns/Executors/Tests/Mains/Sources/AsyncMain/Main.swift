// SPDX-License-Identifier: Apache-2.0
//
// An asynchronous main. Without an argument: what the main thread, the main actor, the main queue and the main loop do while it is
// suspended. With one: the ways in which such a program ends.

import Checks
import CoreRunLoop
import CoreRunLoopMain
import Dispatch
import Glibc

struct Failure: Error {}

@main struct Program {
    static func main() async throws {
        let argument = CommandLine.arguments.dropFirst().first
        let away = argument == "stood-back"
        check("main thread at first", isOnFirstThread())
        check("the property", RunLoop.mainThreadRunsLoop != away)
        try await Task.sleep(for: .milliseconds(1))  // an await of a task that has ended would not suspend
        check("main thread after an await", isOnFirstThread() != away)
        switch argument {
        case "return": return
        case "throw": throw Failure()
        case "exit":
            keepBusy()
            try await Task.sleep(for: .milliseconds(5))
            exit(7)
        case "host": try await runInHost()
        case "stood-back": break
        default:
            try await checkSleeps()
            await checkTasks()
            try await checkNestedRuns()
            await checkOrder()
        }
        endProgram()
    }

    /// Endless work, which does not keep the program from ending.
    static func keepBusy() {
        RunLoop.main.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in }, forMode: .common)
        Task { @MainActor in while true { await Task.yield() } }
        Task.detached { while true { await Task.yield() } }
    }
}

/// What callbacks have told.
@MainActor final class Record<Item> {
    var items: [Item] = []
    nonisolated init() {}
}

@MainActor extension Program {
    /// The loop is alive while main sleeps.
    static func checkSleeps() async throws {
        let ticks = Record<Void>()
        let timer = Timer(timeInterval: .milliseconds(1), repeats: true) { _ in
            MainActor.assumeIsolated { ticks.items.append(()) }
        }
        RunLoop.main.add(timer, forMode: .common)
        while ticks.items.count < 20 { try await Task.sleep(for: .milliseconds(1)) }
        timer.invalidate()
        check("timers fire while main sleeps, in the main actor", isOnFirstThread())
        RunLoop.main.stop()
        let onFirst = await withCheckedContinuation { done in DispatchQueue.main.async { done.resume(returning: isOnFirstThread()) } }
        check("the main queue is served on the first thread, after a stop of the loop too", onFirst)
        let performed = await withCheckedContinuation { done in RunLoop.main.perform { done.resume(returning: isOnFirstThread()) } }
        check("blocks of the loop run on the first thread", performed)
        let sleeping = Task { try await Task.sleep(for: .seconds(1000)) }
        sleeping.cancel()
        check("a cancelled sleep ends", await sleeping.result.isFailure)
        check("main thread after sleeps", isOnFirstThread())
    }

    /// No task is lost between the main actor and the pool; executors of actors keep their jobs.
    static func checkTasks() async {
        let count = 100_000
        var onFirst = 0
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count { group.addTask { await MainActor.run { isOnFirstThread() } } }
            for await isOnFirst in group where isOnFirst { onFirst += 1 }
        }
        check("\(count) tasks came to the main actor on the first thread", onFirst == count)
        let queue = Elsewhere(on: try! Thread.runningLoop(until: RunLoop.StopToken()))
        check("an actor with an executor of its own is not on the first thread", await !queue.isOnFirst())
        check("main thread after that", isOnFirstThread())
        dispatchPrecondition(condition: .onQueue(.main))
    }

    /// What runs inside a nested run of the main loop, which is Apple's rule.
    static func checkNestedRuns() async throws {
        let heard = Record<String>()
        DispatchQueue.main.async { MainActor.assumeIsolated { heard.items.append("block") } }
        RunLoop.main.perform { MainActor.assumeIsolated { heard.items.append("perform") } }
        runNested { heard.items.contains("perform") }
        #if JOBS_ON_LOOP
            check("in a job of the main actor a nested run serves the loop", heard.items.contains("perform"))
        #else
            check("in a job of the main actor a nested run serves the loop and not the main queue", heard.items == ["perform"])
        #endif
        let inTimer = await withCheckedContinuation { done in
            let timer = Timer(timeInterval: .zero, repeats: false) { _ in
                MainActor.assumeIsolated {
                    let blocks = Record<Void>()
                    DispatchQueue.main.async { MainActor.assumeIsolated { blocks.items.append(()) } }
                    runNested { !blocks.items.isEmpty }
                    done.resume(returning: blocks.items.count)
                }
            }
            RunLoop.main.add(timer, forMode: .common)
        }
        check("in a timer's callback a nested run serves the main queue", inTimer == 1)
    }

    static func runNested(until isDone: () -> Bool) {
        for _ in 0..<1000 where !isDone() { _ = RunLoop.main.run(in: .default, for: .milliseconds(10), returnAfterSourceHandled: true) }
    }

    /// The main queue is first in, first out, whatever the priorities.
    static func checkOrder() async {
        let order = Record<TaskPriority>()
        let priorities: [TaskPriority] = [.background, .utility, .medium, .high]
        let tasks = priorities.map { priority in Task(priority: priority) { @MainActor in order.items.append(priority) } }
        for task in tasks { await task.value }
        check("jobs of the main actor run in their order", order.items == priorities)
    }

    /// A host's loop runs in place of the main loop, until it ends.
    static func runInHost() async throws {
        // The first suspension of this program was before: another program has to be told earlier.
        check("too late for a host", !RunLoop.mainThreadRuns {})
    }
}

extension Result {
    var isFailure: Bool { if case .failure = self { true } else { false } }
}

actor Elsewhere: RunLoopActor {
    nonisolated let runLoop: RunLoop
    init(on loop: RunLoop) { runLoop = loop }
    func isOnFirst() -> Bool { isOnFirstThread() }
}
