// SPDX-License-Identifier: Apache-2.0
//
// Known races of Swift's concurrency, each as a small program that is wrong and one that is right. They fail by an error, or by a wait that
// does not end.

import CoreRunLoop
import Synchronization

struct Broken: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

func require(_ condition: Bool, _ description: String) throws { if !condition { throw Broken(description) } }

/// A race, with and without its mistake.
struct Race: Sendable, CustomStringConvertible {
    let description: String
    let wrong: @Sendable () async throws -> Void
    let right: @Sendable () async throws -> Void

    init(_ description: String, _ body: @escaping @Sendable (_ isRight: Bool) async throws -> Void) {
        self.description = description
        wrong = { try await body(false) }
        right = { try await body(true) }
    }

    static let all = [
        lostWakeUp, reentrancy, cancellationBeforeWait, tickAfterStop, checkThenAct, completedTwice, unorderedTasks, finishBeforeYield,
        lostByFirstWins, filledTwice, staleAnswer, lockOrder,
    ]
}

// MARK: 1. A lost wake-up: the gate opens between the look and the wait.

private actor Opening {
    private(set) var isOpen = false
    private var waiter: CheckedContinuation<Void, Never>?

    func open() {
        isOpen = true
        waiter?.resume()
        waiter = nil
    }

    func wait(looksAgain: Bool) async {
        if looksAgain && isOpen { return }
        await withCheckedContinuation { waiter = $0 }
    }
}

private let lostWakeUp = Race("a lost wake-up") { isRight in
    let opening = Opening()
    let waits = Atomic(0)
    async let waited: Void = {
        if await opening.isOpen { return }
        waits.add(1, ordering: .relaxed)  // outside of the actor: without it, the compiler makes one visit of the two
        await opening.wait(looksAgain: isRight)
    }()
    async let opened: Void = opening.open()
    _ = await (waited, opened)
}

// MARK: 2. Reentrancy: the actor is entered again while a method waits.

private actor Account {
    private(set) var balance = 100
    private var lines: [String] = []

    private func approve(_ amount: Int) async { await Task { amount > 0 }.value ? lines.append("\(amount)") : () }

    func withdraw(_ amount: Int, asksFirst: Bool) async {
        if asksFirst { await approve(amount) }
        guard balance >= amount else { return }
        if !asksFirst { await approve(amount) }
        balance -= amount
    }
}

private let reentrancy = Race("reentrancy of an actor") { isRight in
    let account = Account()
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<2 { group.addTask { await account.withdraw(80, asksFirst: isRight) } }
    }
    try await require(account.balance >= 0, "overdrawn")
}

// MARK: 3. Cancellation against the beginning of a wait, and against completion.

private actor Requests {
    private var waiting: [Int: CheckedContinuation<Int, any Error>] = [:]

    nonisolated func answer(_ number: Int, noticesCancellation: Bool) async throws -> Int {
        try await withTaskCancellationHandler {
            try await wait(number, noticesCancellation)
        } onCancel: {
            Task { await self.cancel(number) }
        }
    }

    private func wait(_ number: Int, _ noticesCancellation: Bool) async throws -> Int {
        try await withCheckedThrowingContinuation { continuation in
            if noticesCancellation && Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
            waiting[number] = continuation
        }
    }

    func cancel(_ number: Int) { waiting.removeValue(forKey: number)?.resume(throwing: CancellationError()) }
}

private let cancellationBeforeWait = Race("cancellation before the wait that it is to end") { isRight in
    let requests = Requests()
    let request = Task { try await requests.answer(1, noticesCancellation: isRight) }
    async let cancelled: Void = { request.cancel() }()
    await cancelled
    _ = await request.result
}

// MARK: 4. A timer against a stop.

private actor Meter {
    private var isStopped = false
    private(set) var ticksAfterStop = 0
    private let looks: Bool
    init(looks: Bool) { self.looks = looks }

    func tick() {
        if looks && isStopped { return }
        if isStopped { ticksAfterStop += 1 }
    }

    func stop() { isStopped = true }
}

/// The loop of the thread: for a timer that is made in a task.
func currentLoop() -> RunLoop { RunLoop.current }

private let tickAfterStop = Race("a timer against a stop") { isRight in
    let meter = Meter(looks: isRight)
    let timer = Timer(timeInterval: .milliseconds(10), repeats: true) { _ in Task { await meter.tick() } }
    currentLoop().add(timer, forMode: .common)
    try await Task.sleep(for: .milliseconds(50))
    timer.invalidate()
    await meter.stop()
    try await Task.sleep(for: .milliseconds(50))
    try await require(meter.ticksAfterStop == 0, "a tick after the stop")
}

// MARK: 5. Check, then act: another task acts in between.

private actor Names {
    private var names: [String] = []
    private(set) var doubles = 0
    func contains(_ name: String) -> Bool { names.contains(name) }
    func insert(_ name: String) {
        if names.contains(name) { doubles += 1 }
        names.append(name)
    }
    func insertIfMissing(_ name: String) { if !contains(name) { insert(name) } }
}

private let checkThenAct = Race("check, then act, over an await") { isRight in
    let names = Names()
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<2 {
            group.addTask {
                if isRight { await names.insertIfMissing("a") } else if await !names.contains("a") { await names.insert("a") }
            }
        }
    }
    try await require(names.doubles == 0, "inserted twice")
}

// MARK: 6. A completion that is guarded badly, and called twice.

private actor Completion {
    private var isDone = false
    private(set) var calls = 0
    private func prepare() async { await Task.yield() }

    func complete(setsFirst: Bool) async {
        if isDone { return }
        if setsFirst { isDone = true }
        await prepare()
        isDone = true
        calls += 1
    }
}

private let completedTwice = Race("a completion guarded badly") { isRight in
    let completion = Completion()
    async let answer: Void = completion.complete(setsFirst: isRight)
    async let timeout: Void = {
        try? await Task.sleep(for: .seconds(30))
        await completion.complete(setsFirst: isRight)
    }()
    async let failure: Void = completion.complete(setsFirst: isRight)
    _ = await (answer, timeout, failure)
    try await require(completion.calls == 1, "completed twice")
}

// MARK: 7. Unstructured tasks run in no order.

private actor Lines {
    private(set) var lines: [Int] = []
    func append(_ line: Int) { lines.append(line) }
}

private let unorderedTasks = Race("the order of unstructured tasks") { isRight in
    let lines = Lines()
    if isRight {
        await Task { for line in 0..<3 { await lines.append(line) } }.value
    } else {
        let tasks = (0..<3).map { line in Task { await lines.append(line) } }
        for task in tasks { await task.value }
    }
    try await require(lines.lines == [0, 1, 2], "out of order")
}

// MARK: 8. The end of a stream against what another one yields.

private let finishBeforeYield = Race("the end of a stream against a yield") { isRight in
    let (stream, continuation) = AsyncStream<Int>.makeStream()
    let producers = Task {
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<2 {
                group.addTask {
                    continuation.yield(number)
                    await Task.yield()
                    continuation.yield(number)
                    if !isRight && number == 0 { continuation.finish() }
                }
            }
        }
        continuation.finish()
    }
    var count = 0
    for await _ in stream { count += 1 }
    await producers.value
    try require(count == 4, "lost elements")
}

// MARK: 9. The first answer wins, and the other one's resource is lost.

private actor Connections {
    private(set) var open = 0
    func connect() -> Int {
        open += 1
        return open
    }
    func close() { open -= 1 }
}

private let lostByFirstWins = Race("what loses in a group keeps its resource") { isRight in
    let connections = Connections()
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<2 {
            group.addTask {
                _ = await connections.connect()
                if !isRight && Task.isCancelled { return }  // closed by the user of the answer, who does not come
                await connections.close()
            }
        }
        await group.next()
        group.cancelAll()
    }
    try await require(connections.open == 0, "a connection is left")
}

// MARK: 10. A cache that is filled twice.

private actor Cache {
    private var values: [String: Int] = [:]
    private var loading: [String: Task<Int, Never>] = [:]
    private(set) var loads = 0

    private func load() async -> Int {
        loads += 1
        try? await Task.sleep(for: .seconds(1))
        return 7
    }

    func value(_ key: String, sharesLoads: Bool) async -> Int {
        if let value = values[key] { return value }
        if sharesLoads {
            let task = loading[key] ?? Task { await load() }
            loading[key] = task
            return await task.value
        }
        let value = await load()
        values[key] = value
        return value
    }
}

private let filledTwice = Race("a cache filled twice") { isRight in
    let cache = Cache()
    async let first = cache.value("a", sharesLoads: isRight)
    async let second = cache.value("a", sharesLoads: isRight)
    _ = await (first, second)
    try await require(cache.loads == 1, "loaded twice")
}

// MARK: 11. An older answer comes after a newer one.

@MainActor private final class Search {
    private(set) var shown = ""
    private var latest = 0

    func search(_ text: String, dropsStale: Bool) async {
        latest += 1
        let number = latest
        let answer = await Task.detached { text.uppercased() }.value
        if !dropsStale || number == latest { shown = answer }
    }
}

private let staleAnswer = Race("an older answer after a newer one") { isRight in
    let search = Search()
    let first = Task { @MainActor in await search.search("a", dropsStale: isRight) }
    let second = Task { @MainActor in await search.search("ab", dropsStale: isRight) }
    _ = await (first.value, second.value)
    try await require(search.shown == "AB", "a stale answer is shown")
}

// MARK: 12. Two locks in two orders.

private actor TurnLock {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func take() async {
        if isTaken { await withCheckedContinuation { waiting.append($0) } } else { isTaken = true }
    }

    func give() { if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() } }
}

private let lockOrder = Race("two locks in two orders") { isRight in
    let (a, b) = (TurnLock(), TurnLock())
    @Sendable func work(_ first: TurnLock, _ second: TurnLock) async {
        await first.take()
        await second.take()
        await second.give()
        await first.give()
    }
    async let one: Void = work(a, b)
    async let other: Void = isRight ? work(a, b) : work(b, a)
    _ = await (one, other)
}
