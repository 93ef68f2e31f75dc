// SPDX-License-Identifier: Apache-2.0
//
// The threads: rules 2000 to 2015 of docs/rules.md.

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

private struct Failure: Error, Equatable {}

private final class Subclass: Thread, @unchecked Sendable {
    let trace: Trace
    init(_ trace: Trace) {
        self.trace = trace
        super.init()
    }
    override func main() { trace.add("main of a subclass") }
}

private final class Target2: Sendable {
    let trace = Trace()
    func plain() { trace.add("plain") }
    func with(_ text: String) { trace.add(text) }
}

/// A reference that one thread leaves for another.
private final class Held: Sendable {
    private let thread = Mutex<Thread?>(nil)
    func set(_ new: Thread) { thread.withLock { $0 = new } }
    func take() -> Thread? {
        thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
    }
}

/// Threads that know each other.
private final class Ring: Sendable {
    private let threads = Mutex<[Thread]>([])
    func set(_ new: [Thread]) { threads.withLock { $0 = new } }
    func thread(_ number: Int) -> Thread { threads.withLock { $0[number % $0.count] } }
}

private final class Asked: Sendable {
    let witness: Witness
    init(_ witness: Witness) { self.witness = witness }
    func with(_ argument: Witness) { argument.touch() }
}

/// A thread-specific value whose destructor looks at the thread in the first round of destructors, and in the last but one.
private final class Rounds: @unchecked Sendable {
    let trace = Trace()
    private var number = 0
    private var key = pthread_key_t()

    func begin() {
        pthread_key_create(&key) { value in
            guard let value else { return }
            Unmanaged<Rounds>.fromOpaque(value).takeUnretainedValue().look()
        }
        pthread_setspecific(key, Unmanaged.passUnretained(self).toOpaque())
    }

    private func look() {
        number += 1
        if number == 1 {
            trace.add(Thread.current.threadDictionary["mark"] as? Int == 7 && Thread.current.isExecuting ? "same running" : "other")
        }
        if number == 3 { trace.add(Thread.current.isFinished && !Thread.current.isExecuting ? "ended" : "running") }
        if number < 3 { pthread_setspecific(key, Unmanaged.passUnretained(self).toOpaque()) }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A thread` {
    @Test func `has one object`() async throws {
        let same = try await onThread { Thread.current === Thread.current }
        #expect(same)
        #expect(Thread.main.isMainThread)
        #expect(try await onThread { !Thread.isMainThread && Thread.current !== Thread.main })
        #expect(Thread.isMultiThreaded())
    }

    @Test func `that something else started gets an object`() async throws {
        let names = Trace()
        try await onForeignThread {
            names.add("\(Thread.current === Thread.current) \(Thread.current.isExecuting) \(Thread.current.runLoop === RunLoop.current)")
        }
        #expect(names.events == ["true true true"])
    }

    @Test func `runs its block, its subclass or a target's method`() async throws {
        let trace = Trace()
        let target = Target2()
        let threads = [
            Thread { trace.add("block") }, Subclass(trace), Thread(target: target, selector: Target2.with, object: "argument"),
            Thread(target: target, selector: Target2.plain),
        ]
        for thread in threads {
            #expect(!thread.isExecuting && !thread.isFinished)
            thread.start()
            try await thread.value
            #expect(thread.isFinished && !thread.isExecuting)
        }
        #expect(trace.events == ["block", "main of a subclass"])
        #expect(target.trace.events == ["argument", "plain"])
        Thread.detachNewThreadSelector(Target2.plain, toTarget: target)
        Thread.detachNewThreadSelector(Target2.with, toTarget: target, with: "again")
        Thread.detachNewThread { trace.add("detached") }
        while target.trace.events.count < 4 || trace.events.count < 3 { await Task.yield() }
    }

    @Test func `is waited for by a task until that is cancelled`() async throws {
        let mayEnd = Count()
        let thread = try Thread.joinable { () -> Int in
            while mayEnd.value == 0 { Thread.sleep(for: .milliseconds(1)) }
            return 1
        }
        let waits = [Task { _ = try await thread.value }, Task { try await thread.thread.value }]
        await Task.yield()
        for wait in waits { wait.cancel() }
        for wait in waits { await #expect(throws: CancellationError.self) { try await wait.value } }
        mayEnd.next()
        #expect(try await thread.value == 1)
    }

    @Test func `gives its error to whoever waits`() async throws {
        let thread = Thread { throw Failure() }
        thread.start()
        await #expect(throws: Failure()) { try await thread.value }
        await #expect(throws: Failure()) { try await Thread.joinable { () -> Int in throw Failure() }.value }
        #expect(try await Thread.joinable { 42 }.value == 42)
    }

    @Test func `started twice is an error that names it`() async throws {
        let thread = Thread {}
        thread.name = "twice"
        try thread.launch()
        #expect(throws: ThreadError.alreadyStarted("twice")) { try thread.launch() }
        thread.start()
        try await thread.value
        #expect(throws: ThreadError.alreadyStarted("main")) { try Thread.main.launch() }
    }

    @Test(arguments: [1, 4096, 100_001, -4096]) func `refuses a stack that is too small or no multiple of 4096`(size: Int) async {
        let thread = Thread {}
        #expect(throws: ThreadError.invalidStackSize(size)) { try thread.setStackSize(size) }
        thread.stackSize = size
        #expect(throws: ThreadError.invalidStackSize(size)) { try thread.launch() }
        await #expect(throws: ThreadError.invalidStackSize(size)) { try await thread.value }
    }

    @Test func `has the stack that it was given`() async throws {
        let thread = Thread { #expect(Thread.current.stackSize >= 1 << 20) }
        try thread.setStackSize(1 << 20)
        #expect(thread.stackSize == 1 << 20)
        try thread.launch()
        try await thread.value
        #expect(throws: ThreadError.alreadyStarted("")) { try thread.setStackSize(1 << 20) }
    }

    @Test func `has a stack also where nobody has chosen its size`() async throws {
        let usual = Thread {}.stackSize
        #expect(usual >= 1 << 16)
        let thread = Thread { #expect((usual - (1 << 16)...usual + (1 << 16)).contains(Thread.current.stackSize)) }
        try thread.launch()
        try await thread.value
        try await onForeignThread { #expect(Thread.current.stackSize >= 1 << 14) }
        #expect(Thread.main.stackSize >= 1 << 16)
    }

    @Test func `keeps its name, of which the kernel shows 15 bytes`() async throws {
        let thread = Thread {
            #expect(kernelName() == "a name of more ")
            Thread.current.name = "ünüsuäl nämeß"
            #expect(kernelName() == "ünüsuäl näm")
        }
        thread.name = "a name of more than 15 bytes"
        thread.start()
        try await thread.value
        #expect(thread.name == "ünüsuäl nämeß")
        #expect(throws: ThreadError.invalidName("a name of more than 15")) { try thread.setName("a name of more than 15") }
        try thread.setName("fifteen bytes..")
    }

    @Test func `has a name that the kernel shows, whoever gives it`() async throws {
        let hasBegun = Count()
        let thread = Thread {
            hasBegun.next()
            while kernelName() != "of another" && !Thread.current.isCancelled { Thread.sleep(for: .milliseconds(1)) }
            #expect(kernelName() == "of another")
        }
        thread.start()
        while hasBegun.value == 0 { await Task.yield() }
        thread.name = "of another"
        #expect(try await onThread { thread.join(timeout: .seconds(1000)) })
        thread.cancel()
        try await thread.value
    }

    @Test func `is cancelled by a flag that it looks at`() async throws {
        let before = Thread { Issue.record("ran though cancelled") }
        before.cancel()
        before.start()
        try await before.value
        #expect(before.isCancelled && before.isFinished)
        let polls = Thread { while !Thread.current.isCancelled { RunLoop.current.run(for: .milliseconds(1)) } }
        polls.start()
        #expect(try await onThread { !polls.join(timeout: .milliseconds(1)) })
        polls.cancel()
        try await polls.value
    }

    @Test func `with a long task is asked through its loop to end`() async throws {
        let asked = Count()
        let started = Count()
        let source = InputSource<Void> { _ in asked.next() }
        let thread = Thread {
            RunLoop.current.add(source, forMode: .default)
            while asked.value == 0 {
                started.next()  // a piece of the work
                RunLoop.current.run(until: .now)
            }
            source.invalidate()
        }
        thread.start()
        while started.value == 0 { await Task.yield() }
        source.signal()
        try await thread.value
    }

    @Test func `ends by exit without unwinding`() async throws {
        let trace = Trace()
        let thread = Thread {
            Thread.current.onExit { trace.add("exit") }
            Thread.exit()
        }
        thread.start()
        await #expect(throws: ThreadError.exited) { try await thread.value }
        #expect(trace.events == ["exit"])
    }

    @Test func `tells of its end on itself, while its dictionary is there`() async throws {
        let trace = Trace()
        let registration = Thread.onWillExit { thread in
            guard thread.name == "notified" else { return }
            trace.add("\(thread === Thread.current) \(thread.threadDictionary["key"] as? Int ?? 0)")
        }
        let thread = Thread {
            Thread.current.threadDictionary["key"] = 17
            #expect(Thread.current.withThreadDictionary { $0["key"] as? Int } == 17)
        }
        thread.name = "notified"
        thread.start()
        try await thread.value
        #expect(trace.events == ["true 17"])
        #expect(thread.threadDictionary.isEmpty)
        registration.cancel()
    }

    @Test func `that something else started ends, too`() async throws {
        let trace = Trace()
        let seen = WeakThread()
        let registration = Thread.onWillExit { thread in if thread === seen.thread { trace.add("all") } }
        let (thread, dropped) = (Held(), Count())
        try await onForeignThread {
            seen.thread = Thread.current
            thread.set(Thread.current)
            let witness = Witness { dropped.next() }
            Thread.current.threadDictionary["key"] = witness
            Thread.current.onExit {
                trace.add("own \(Thread.current === seen.thread) \(Thread.current.isExecuting) \(Thread.current.threadDictionary.count)")
            }
        }
        let held = try #require(thread.take())
        try await held.value
        #expect(trace.events == ["own true true 1", "all"])
        #expect(held.isFinished && !held.isExecuting && held.threadDictionary.isEmpty)
        #expect(dropped.value == 1)
        #expect(try await onThread { held.join() })
        registration.cancel()
    }

    @Test func `keeps its block and target until it ends`() async throws {
        let (freed, target) = (Count(), Count())
        func makeThreads() -> [Thread] {
            let witness = Witness { freed.next() }
            let owner = Asked(Witness { target.next() })
            return [Thread { witness.touch() }, Thread(target: owner, selector: Asked.with, object: Witness { freed.next() })]
        }
        let threads = makeThreads()
        #expect(freed.value == 0 && target.value == 0)
        for thread in threads {
            thread.start()
            try await thread.value
        }
        while freed.value < 2 || target.value < 1 { await Task.yield() }
        withExtendedLifetime(threads) {}
    }

    @Test func `is the same in destructors of a program's own, and one that has ended in the last ones`() async throws {
        let round = Rounds()
        try await onForeignThread {
            Thread.current.threadDictionary["mark"] = 7
            round.begin()
        }
        #expect(round.trace.events == ["same running", "ended"])
    }

    @Test func `forgets a handler of ends whose own end looks after another one`() async {
        let freed = Count()
        func register() -> Thread.ExitRegistration {
            let witness = Witness {
                Thread.onWillExit { _ in }.cancel()
                freed.next()
            }
            return Thread.onWillExit { _ in witness.touch() }
        }
        register().cancel()
        while freed.value == 0 { await Task.yield() }  // a thread that ends just now may have it
    }

    @Test func `has released its block before whoever joins it is told`() async throws {
        try await onThread {
            for _ in 0..<200 {
                final class Held: Sendable {}
                weak var held: Held?
                let thread = {
                    let object = Held()
                    held = object
                    return Thread { withExtendedLifetime(object) {} }
                }()
                thread.start()
                #expect(thread.join())
                #expect(held == nil)
            }
        }
    }

    @Test func `may be joined, but not by itself`() async throws {
        try await onThread {
            #expect(!Thread.current.join())
            let other = try Thread.joinable(name: "joined", stackSize: 1 << 18) { "value" }
            #expect(other.join() == "value")
            #expect(other.thread.join())
        }
    }

    @Test(arguments: 2...4) func `is not joined where those that join each other would wait for ever`(count: Int) async throws {
        let ring = Ring()
        let joined = Trace()
        let threads = (0..<count).map { number in Thread { joined.add("\(ring.thread(number + 1).join())") } }
        ring.set(threads)
        for thread in threads { thread.start() }
        for thread in threads { try await thread.value }
        #expect(joined.events.sorted() == ["false"] + [String](repeating: "true", count: count - 1))
    }

    @Test func `may join one that joins it for a limited time`() async throws {
        let ring = Ring()
        let joined = Trace()
        let threads = [
            Thread { joined.add("limited \(ring.thread(1).join(timeout: .milliseconds(20)))") },
            Thread { joined.add("endless \(ring.thread(0).join())") },
        ]
        ring.set(threads)
        for thread in threads { thread.start() }
        for thread in threads { try await thread.value }
        #expect(joined.events == ["limited false", "endless true"])
    }

    @Test func `asks nothing of one that joins it`() async throws {
        let ring = Ring()
        let outcomes = Trace()
        let threads = [
            Thread { #expect(ring.thread(1).join()) },
            Thread {
                while true {
                    do throws(any Error) {
                        // Until the other one waits it may be asked, and does not come to it.
                        try ring.thread(0).performAndWait(timeout: .milliseconds(1)) { _ = Issue.record("performed") }
                    } catch PerformError.timedOut {
                        continue
                    } catch { return outcomes.add("\(error)") }
                }
            },
        ]
        ring.set(threads)
        for thread in threads { thread.start() }
        for thread in threads { try await thread.value }
        #expect(outcomes.events == ["wouldDeadlock"])
    }

    @Test func `says why it cannot be joined`() async {
        let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardErrorContent]) {
            alarm(600)
            try await onThread { if Thread.current.join() { exit(1) } }
            let ring = Ring()
            let threads = (0..<2).map { number in Thread { ring.thread(number + 1).join() } }
            for thread in threads { thread.name = "ring" }
            ring.set(threads)
            for thread in threads { thread.start() }
            for thread in threads { try await thread.value }
            exit(3)
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("CoreRunLoop: Thread.join: the thread \"test\" would wait for its own end"))
        #expect(said.contains("CoreRunLoop: Thread.join: the thread \"ring\" waits for the end of the one that would wait for it"))
    }

    @Test func `sleeps until a date or for a time`() async throws {
        try await onThread {
            let start = WallTime.now
            Thread.sleep(until: .distantPast)
            Thread.sleep(for: .seconds(-1000))
            #expect(WallTime.now - start < .seconds(500))
            Thread.sleep(for: .milliseconds(5))
            Thread.sleep(until: .now + .milliseconds(5))
            #expect(WallTime.now - start >= .milliseconds(10))
        }
    }

    @Test func `is told once before the first of its kind starts`() async {
        await #expect(processExitsWith: .exitCode(3)) {
            let calls = Count()
            Thread.onWillBecomeMultiThreaded {
                if !Thread.isMultiThreaded() { exit(1) }
                calls.next()
            }
            for _ in 0..<2 {
                let thread = Thread {}
                thread.start()
                try await thread.value
            }
            Thread.onWillBecomeMultiThreaded { exit(1) }
            exit(calls.value == 1 ? 3 : 2)
        }
    }

    @Test func `changes its dictionary without losing what others change`() async throws {
        let thread = Thread {}
        let changers = (0..<4).map { number in
            Thread {
                for _ in 0..<200 {
                    thread.withThreadDictionary { dictionary in
                        _ = thread.name  // no lock is held
                        dictionary["\(number)"] = (dictionary["\(number)"] as? Int ?? 0) + 1
                        dictionary["all"] = (dictionary["all"] as? Int ?? 0) + 1
                    }
                }
            }
        }
        for changer in changers { changer.start() }
        for changer in changers { try await changer.value }
        #expect(thread.threadDictionary["all"] as? Int == 800)
        #expect((0..<4).allSatisfy { thread.threadDictionary["\($0)"] as? Int == 200 })
    }

    @Test func `knows where it is`() async throws {
        let addresses = try await onThread { Thread.callStackReturnAddresses }
        #expect(addresses.count > 3)
        let symbols = try await onThread { Thread.callStackSymbols }
        #expect(symbols.count > 3 && symbols.allSatisfy { $0.hasPrefix("0x") })
    }

    @Test(arguments: QualityOfService.allCases) func `has a quality that is a priority`(quality: QualityOfService)
        async throws
    {
        let thread = Thread {
            let priority = Thread.current.threadPriority
            #expect(quality == .background ? priority < 0.15 : quality == .utility ? priority < 0.4 : priority >= 0.45)
        }
        thread.qualityOfService = quality
        thread.start()
        try await thread.value
        thread.qualityOfService = .default
        #expect(thread.qualityOfService == quality)
    }

    @Test func `can be given a lower priority, and is told when a higher one is denied`() async throws {
        let thread = Thread {
            #expect(Thread.current.threadPriority < 0.3)
            #expect(Thread.setThreadPriority(0.1))
            #expect(abs(Thread.threadPriority() - 0.1) < 0.02)
        }
        thread.threadPriority = 0.25
        #expect(thread.threadPriority == 0.25)
        thread.start()
        try await thread.value
        #expect(throws: ThreadError.invalidPriority(1.5)) { try thread.setThreadPriority(1.5) }
        #expect(throws: ThreadError.self) { try thread.setThreadPriority(.nan) }
    }
}

private func kernelName() -> String {
    guard let file = fopen("/proc/thread-self/comm", "r") else { return "" }
    defer { fclose(file) }
    var name = [UInt8](repeating: 0, count: 64)
    let length = fread(&name, 1, name.count, file)
    return String(decoding: name.prefix(max(0, length - 1)), as: UTF8.self)
}
