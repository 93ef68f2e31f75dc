// SPDX-License-Identifier: Apache-2.0
//
// The pool of loops, as the program has set it: one thread with a name, on which the priorities of tasks and what they leave are seen.

import Checks
import CoreRunLoop
import CoreRunLoopExecutors
import Glibc
import Synchronization

final class Order<Item: Sendable>: Sendable {
    private let list = Mutex<[Item]>([])
    var items: [Item] { list.withLock { $0 } }
    func append(_ item: Item) { list.withLock { $0.append(item) } }
}

final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

func threadName() -> String { Thread.current.name ?? "" }

@main struct Program {
    static func main() async throws {
        var loops = TaskLoops()
        loops.count = 0
        check("no thread at all is refused", !loops.use())
        loops.count = 1
        loops.name = "worker"
        loops.processors = [100_000]  // the process may not use it, so it counts for nothing
        check("one thread is enough", loops.use())
        check("there is no loop before the first task", TaskLoops.loops.isEmpty)
        let name = await Task.detached { threadName() }.value
        check("a task is on the thread that was named", name == "worker 1")
        check("the loops are known", TaskLoops.loops.count == 1)
        check("it is too late to change them", !TaskLoops().use())
        await checkPriorities()
        await checkLoop()
        try await checkSleeps()
        endProgram()
    }

    /// Tasks that are queued while the only thread is at work, the lowest first.
    static func checkPriorities() async {
        let order = Order<TaskPriority>()
        let isFree = Flag()
        let holder = Task.detached { while !isFree.isSet { sched_yield() } }
        let priorities: [TaskPriority] = [.background, .utility, .medium, .high]
        let tasks = priorities.flatMap { priority in
            (0..<100).map { _ in Task.detached(priority: priority) { order.append(priority) } }
        }
        isFree.set()
        await holder.value
        for task in tasks { await task.value }
        let first = order.items
        check("each of 400 tasks ran", first.count == 400)
        check("high ones run first", first.prefix(30).allSatisfy { $0 == .high })
        check("but low ones do not starve", first.prefix(200).contains(.background))
        check("and most high ones are before most low ones", (first.lastIndex(of: .high) ?? 400) < (first.lastIndex(of: .background) ?? 0))
    }

    /// The thread's loop has its turn although tasks never end.
    static func checkLoop() async {
        let isOver = Flag()
        let busy = Task.detached { while !isOver.isSet { await Task.yield() } }
        let onPool = await withCheckedContinuation { done in
            TaskLoops.loops[0].perform { done.resume(returning: threadName() == "worker 1") }
        }
        check("the loop runs between tasks", onPool)
        isOver.set()
        await busy.value
        let result = await Task.detached { runLoop() }.value
        check("a task that runs its thread's loop has nothing to wait for", result == .finished)
    }

    static func runLoop() -> RunLoop.RunResult { RunLoop.current.run(in: .default, for: .seconds(1000)) }

    /// Sleeps of both clocks end in their order, and not too early, though the only thread is busy.
    static func checkSleeps() async throws {
        let begin = ContinuousClock.now
        try await Task.sleep(for: .milliseconds(3), tolerance: .milliseconds(1))
        check("a sleep is long enough", ContinuousClock.now - begin >= .milliseconds(3))
        let beginAwake = SuspendingClock.now
        try await Task.sleep(for: .milliseconds(3), clock: .suspending)
        check("one of the other clock too", SuspendingClock.now - beginAwake >= .milliseconds(3))
        try await Task.sleep(nanoseconds: 1000)
        try await Task.sleep(for: .milliseconds(1), clock: RunLoop.main.clock)
        let order = Order<Int>()
        await withDiscardingTaskGroup { group in
            for number in [3, 1, 2] {
                group.addTask {
                    try? await Task.sleep(until: begin + .milliseconds(100 * number), clock: .continuous)
                    order.append(number)
                }
            }
        }
        check("sleeps end in the order of their ends", order.items == [1, 2, 3])
    }
}
