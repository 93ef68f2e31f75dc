// SPDX-License-Identifier: Apache-2.0
//
// The perform family: rules 2100 to 2109 of docs/rules.md, and requests in order, rules 1409 to 1411.

import CoreRunLoop
import CoreRunLoopTesting
import Synchronization
import Testing

private final class Receiver: Performing, Sendable {
    let trace = Trace()
    func plain() { trace.add("plain") }
    func number(_ number: Int) { trace.add("\(number)") }
    func unnamed() { trace.add("unnamed") }
    func unnamedNumber(_ number: Int) { trace.add("unnamed \(number)") }
    func thread(_ expected: Thread) { trace.add("\(Thread.current === expected)") }
    static let number = Action("number", Receiver.number)
    static let plain = Action("plain", Receiver.plain)
}

/// An argument whose comparison is a program's own code, which may call what it likes.
private struct Curious: Equatable, Sendable {
    let number: Int
    let onCompare: @Sendable () -> Void
    static func == (one: Curious, other: Curious) -> Bool {
        one.onCompare()
        return one.number == other.number
    }
}

extension Receiver {
    func curious(_ argument: Curious) { trace.add("\(argument.number)") }
    static let curious = Action("curious", Receiver.curious)
}

/// Gives up what it has requested when it is freed.
private final class Tidy: Performing, Sendable {
    let freed: Count
    init(_ freed: Count) { self.freed = freed }
    deinit {
        Tidy.cancelPreviousPerformRequests(withTarget: self)
        RunLoop.current.cancelPerformSelectors(withTarget: self)
        freed.next()
    }
    func plain() {}
    static let plain = Action("plain", Tidy.plain)
}

/// A thread that runs its loop until it is told to stop.
private func looping(_ stop: RunLoop.StopToken) -> Thread {
    let thread = Thread { RunLoop.current.run(in: .default, until: stop) }
    thread.start()
    return thread
}

@Suite(.timeLimit(.minutes(10))) struct `Performing on a thread` {
    @Test func `runs requests in order, in one pass`() async throws {
        let receiver = Receiver()
        try await onThread {
            let thread = Thread.current
            let requester = Thread {
                for number in 1...5 { receiver.perform(Receiver.number, on: thread, with: number, waitUntilDone: false) }
                receiver.perform(Receiver.plain, on: thread, waitUntilDone: false)
            }
            requester.start()
            requester.join()
            let alive = RunLoop.current.keepAlive()
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(receiver.trace.text == "1 2 3 4 5 plain")
            alive.cancel()
            #expect(!RunLoop.current.run(mode: .default, before: .distantFuture))
        }
    }

    @Test func `runs requests of different modes in order, in one pass of a mode that they share`() async throws {
        let receiver = Receiver()
        try await onThread {
            RunLoop.current.addCommonMode("third")
            let modes: [[RunLoop.Mode]] = [
                [.default], ["other", .default], ["other"], [.common], [.default], ["other", "third"], [.common],
            ]
            for (number, modes) in modes.enumerated() {
                receiver.perform(Receiver.number, on: .current, with: number, waitUntilDone: false, modes: modes)
            }
            #expect(RunLoop.current.run(mode: .default, before: .now))
            #expect(receiver.trace.text == "0 1 3 4 6")
            #expect(!RunLoop.current.run(mode: .default, before: .now))
            #expect(RunLoop.current.run(mode: "third", before: .now))
            #expect(receiver.trace.text == "0 1 3 4 6 5")
            #expect(RunLoop.current.run(mode: "other", before: .now))
            #expect(receiver.trace.text == "0 1 3 4 6 5 2")
        }
    }

    @Test func `leaves requests that are made meanwhile to the next pass`() async throws {
        let receiver = Receiver()
        try await onThread {
            let loop = RunLoop.current
            Thread.current.perform {
                receiver.trace.add("first")
                Thread.current.perform { receiver.trace.add("second") }
            }
            #expect(loop.run(mode: .default, before: .distantFuture))
            #expect(receiver.trace.text == "first")
            #expect(loop.run(mode: .default, before: .distantFuture))
            #expect(receiver.trace.text == "first second")
        }
    }

    @Test func `waits for the method to return`() async throws {
        let stop = RunLoop.StopToken()
        let thread = looping(stop)
        let receiver = Receiver()
        try await onThread {
            try receiver.perform(Receiver.thread, on: thread, with: thread, waitUntilDone: true).get()
            #expect(receiver.trace.text == "true")
            #expect(try thread.performAndWait { 7 } == 7)
            #expect(throws: RunLoopError.loopEnded) { try thread.performAndWait { throw RunLoopError.loopEnded } }
        }
        #expect(try await thread.run { Thread.current === thread })
        stop.requestStop()
        try await thread.value
    }

    @Test func `on the calling thread calls at once, before what is queued`() async throws {
        let receiver = Receiver()
        try await onThread {
            receiver.perform(Receiver.number, on: .current, with: 2, waitUntilDone: false)
            receiver.perform(Receiver.number, on: .current, with: 1, waitUntilDone: true)
            _ = RunLoop.current.run(mode: .default, before: .distantFuture)
            #expect(receiver.trace.text == "1 2")
        }
    }

    @Test func `in the common modes happens in whichever runs`() async throws {
        let receiver = Receiver()
        try await onThread {
            RunLoop.current.addCommonMode("mine")
            receiver.perform(Receiver.number, on: .current, with: 1, waitUntilDone: false)
            #expect(RunLoop.current.run(mode: "mine", before: .distantFuture))
            receiver.perform(Receiver.number, on: .current, with: 2, waitUntilDone: false)
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(receiver.trace.text == "1 2")
        }
    }

    @Test func `without modes does nothing`() async throws {
        let receiver = Receiver()
        try await onThread {
            try receiver.perform(Receiver.plain, on: .current, waitUntilDone: true, modes: []).get()
            receiver.perform(Receiver.plain, afterDelay: .zero, inModes: [])
            RunLoop.current.perform(Receiver.plain, target: receiver, argument: (), modes: [])
            RunLoop.current.perform(inModes: []) { receiver.trace.add("block") }
            #expect(!RunLoop.current.run(mode: .default, before: .now))
            #expect(throws: PerformError.cancelled) { try RunLoop.current.performAndWait(in: []) { receiver.plain() } }
            #expect(receiver.trace.events.isEmpty)
        }
    }

    @Test func `waits for one of its modes`() async throws {
        let receiver = Receiver()
        try await onThread {
            receiver.perform(Receiver.plain, on: .current, waitUntilDone: false, modes: ["one", "other"])
            #expect(!RunLoop.current.run(mode: .default, before: .now))
            #expect(RunLoop.current.run(mode: "other", before: .distantFuture))
            #expect(receiver.trace.text == "plain")
            #expect(!RunLoop.current.run(mode: "one", before: .now))
        }
    }

    @Test func `on a thread that has ended is an error`() async throws {
        let thread = Thread {}
        thread.start()
        try await thread.value
        try await onThread {
            let receiver = Receiver()
            #expect(throws: PerformError.threadFinished) {
                try receiver.perform(Receiver.plain, on: thread, waitUntilDone: true).get()
            }
            #expect(throws: PerformError.threadFinished) {
                try receiver.perform(Receiver.plain, on: thread, waitUntilDone: false).get()
            }
            #expect(!thread.perform {})
        }
        await #expect(throws: PerformError.threadFinished) { try await thread.run {} }
    }

    @Test func `on a thread that ends before it comes to the request is an error`() async throws {
        let gate = Count()
        let thread = Thread { while gate.value == 0 { Thread.sleep(for: .milliseconds(1)) } }
        thread.start()
        while thread.runLoop == nil { await Task.yield() }
        let waiting = try Thread.joinable { () -> PerformError? in
            do { try thread.performAndWait {} } catch { return error as? PerformError }
            return nil
        }
        let suspended = Task { try await thread.run {} }
        while thread.runLoop?.allModes.isEmpty == true { await Task.yield() }
        gate.next()
        #expect(try await waiting.value == .threadFinished)
        await #expect(throws: PerformError.threadFinished) { try await suspended.value }
    }

    @Test func `of threads that wait for each other is an error`() async throws {
        let stop = RunLoop.StopToken()
        let (first, second) = (looping(stop), looping(stop))
        while first.runLoop == nil || second.runLoop == nil { await Task.yield() }
        let result = try await first.run { () -> PerformError? in
            try second.performAndWait { () -> PerformError? in
                do { try first.performAndWait {} } catch { return error as? PerformError }
                return nil
            }
        }
        #expect(result == .wouldDeadlock)
        stop.requestStop()
    }

    @Test @MainActor func `for an actor that the caller is in is an error`() {
        let stop = RunLoop.StopToken()
        let thread = looping(stop)
        #expect(throws: PerformError.wouldDeadlock) { try thread.performAndWait { @MainActor in } }
        stop.requestStop()
    }

    @Test func `gives up after a time limit`() async throws {
        let stop = RunLoop.StopToken()
        try await onThread {
            let busy = try Thread.joinable { while !stop.isRequested { Thread.sleep(for: .milliseconds(1)) } }
            while busy.thread.runLoop == nil { Thread.sleep(for: .microseconds(100)) }
            #expect(throws: PerformError.timedOut) {
                try busy.thread.performAndWait(timeout: .milliseconds(1)) { Issue.record("performed") }
            }
            stop.requestStop()
            _ = busy.join()
        }
    }

    @Test func `is given up when the task is cancelled`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let task = Task { try await loop.run(in: ["never"]) { Issue.record("performed") } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        stop.requestStop()
    }

    @Test func `ends for a task that is cancelled at once, also when it has begun`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let (begun, mayEnd, ended) = (Count(), Count(), Count())
        let task = Task {
            try await loop.run {
                begun.next()
                while mayEnd.value == 0 { Thread.sleep(for: .milliseconds(1)) }
                ended.next()
            }
        }
        while begun.value == 0 { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        mayEnd.next()
        try await loop.run {}
        #expect(ended.value == 1)
        stop.requestStop()
    }

    @Test func `keeps nothing when it is given up`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let freed = Count()
        func request() -> Task<Void, any Error> {
            let witness = Witness { freed.next() }
            return Task { try await loop.run(in: ["never"]) { witness.touch() } }
        }
        let task = request()
        while !loop.allModes.contains("never") { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await onThread {
            let witness = Witness { freed.next() }
            #expect(throws: PerformError.timedOut) {
                try loop.performAndWait(in: ["never"], timeout: .milliseconds(1)) { witness.touch() }
            }
        }
        while freed.value < 2 { await Task.yield() }
        stop.requestStop()
    }

    @Test func `is given up when the task is cancelled, also by a thread that has not been started`() async throws {
        let thread = Thread {}
        let task = Task { try await thread.run { _ = Issue.record("performed") } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        thread.start()
        try await thread.value
        await #expect(throws: PerformError.threadFinished) { try await thread.run {} }
        await #expect(throws: PerformError.cancelled) { try await Thread {}.run(in: []) {} }
    }

    @Test func `gives up after a time limit that a late start is part of`() async throws {
        try await onThread {
            var took = Duration.seconds(1000)
            for _ in 0..<4 where took >= .milliseconds(1900) {  // the start and the limit once more; a busy machine may be late
                let stop = RunLoop.StopToken()
                let late = Thread { while !stop.isRequested { Thread.sleep(for: .milliseconds(1)) } }
                let starter = Thread {
                    Thread.sleep(for: .milliseconds(900))
                    late.start()
                }
                let start = SuspendingClock.now
                starter.start()
                #expect(throws: PerformError.timedOut) {
                    try late.performAndWait(timeout: .seconds(1)) { _ = Issue.record("performed") }
                }
                took = SuspendingClock.now - start
                stop.requestStop()
                starter.join()
                late.join()
            }
            #expect(took < .milliseconds(1900))
        }
    }

    @Test func `before the thread's start happens after it`() async throws {
        let receiver = Receiver()
        let stop = RunLoop.StopToken()
        let thread = Thread { RunLoop.current.run(in: .default, until: stop) }
        thread.perform { receiver.trace.add("early") }
        thread.start()
        #expect(try await thread.run { receiver.trace.text } == "early")
        stop.requestStop()
    }

    @Test func `while the thread starts keeps the order`() async throws {
        let stop = RunLoop.StopToken()
        let numbers = Mutex<[Int]>([])
        let thread = Thread { RunLoop.current.run(in: .default, until: stop) }
        let count = 20_000
        for number in 0..<count {
            if number == count / 2 { thread.start() }
            thread.perform { numbers.withLock { $0.append(number) } }
        }
        try await thread.run {}
        #expect(numbers.withLock { $0 } == Array(0..<count))
        stop.requestStop()
    }

    @Test func `in the background is on a new thread`() async throws {
        let receiver = Receiver()
        receiver.performSelector(inBackground: Receiver.number, with: 5)
        receiver.performSelector(inBackground: Receiver.plain)
        while receiver.trace.events.count < 2 { await Task.yield() }
        #expect(Set(receiver.trace.events) == ["5", "plain"])
    }

    @Test func `from many threads loses nothing`() async throws {
        let stop = RunLoop.StopToken()
        let thread = looping(stop)
        let count = Count()
        let requesters = (0..<4).map { _ in Thread { for _ in 0..<500 { thread.perform { count.next() } } } }
        for requester in requesters { requester.start() }
        for requester in requesters { try await requester.value }
        try await thread.run {}
        #expect(count.value == 2000)
        stop.requestStop()
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Performing after a delay` {
    @Test func `keeps the order of equal dates, and never happens at once`() async throws {
        try await onThread {
            let receiver = Receiver()
            for number in 1...3 { receiver.perform(Receiver.number, with: number, afterDelay: .zero) }
            receiver.perform(Receiver.plain, afterDelay: .milliseconds(2))
            #expect(receiver.trace.events.isEmpty)
            RunLoop.current.run()
            #expect(receiver.trace.text == "1 2 3 plain")
        }
    }

    @Test(.manualTime) func `happens when as much time has passed as its delay, not a nanosecond before or after`() {
        let receiver = Receiver()
        for number in 1...200 {
            let delay = Duration.milliseconds(number) + .nanoseconds(number)
            receiver.perform(Receiver.number, with: number, afterDelay: delay)
            ManualTime.stepWallClock(by: .seconds(number % 2 == 0 ? -100 : 100))
            ManualTime.advance(by: delay - .nanoseconds(1))
            RunLoop.current.pump()
            #expect(receiver.trace.events.isEmpty)
            ManualTime.advance(by: .nanoseconds(1))
            RunLoop.current.pump()
            #expect(receiver.trace.text == "\(number)")
            receiver.trace.clear()
        }
    }

    @Test func `is the calling thread's own affair, and needs its loop to run in one of the modes`() async throws {
        let receiver = Receiver()
        try await onThread {
            receiver.perform(Receiver.number, with: 1, afterDelay: .zero)
            receiver.perform(Receiver.number, with: 2, afterDelay: .zero, inModes: ["other"])
            let other = Thread { Receiver.cancelPreviousPerformRequests(withTarget: receiver) }
            other.start()
            other.join()
            RunLoop.current.run()
            #expect(receiver.trace.text == "1")
            _ = RunLoop.current.run(in: "other", for: .milliseconds(50))
            #expect(receiver.trace.text == "1 2")
        }
    }

    @Test func `ends no run`() async throws {
        try await onThread {
            let receiver = Receiver()
            let alive = RunLoop.current.keepAlive()
            receiver.perform(Receiver.plain, afterDelay: .zero)
            #expect(CFRunLoopRunInMode(.defaultMode, 0.01, true) == .timedOut)
            #expect(receiver.trace.text == "plain")
            alive.cancel()
        }
    }

    @Test func `of many requests takes no longer for each`() async throws {
        try await onThread {
            let (receiver, count) = (Receiver(), 40_000)
            let others = (0..<count).map { _ in Receiver() }
            let tally = Count()
            let next = Receiver.Action<Int>("next") { _ in { _ in tally.next() } }
            for number in 0..<count { receiver.perform(next, with: number, afterDelay: .zero) }
            for other in others { other.perform(next, with: 0, afterDelay: .seconds(1000)) }
            for other in others { Receiver.cancelPreviousPerformRequests(withTarget: other) }
            RunLoop.current.run()
            #expect(tally.value == count)
        }
    }

    @Test func `is cancelled by an earlier one of the same pass, and in its target's end nothing is left of it`() async throws {
        try await onThread {
            let (receiver, freed) = (Receiver(), Count())
            let cancel = Receiver.Action<Int>("cancel") { receiver in
                { Receiver.cancelPreviousPerformRequests(withTarget: receiver, selector: Receiver.number, object: $0) }
            }
            receiver.perform(cancel, with: 2, afterDelay: .zero)
            for number in 1...3 { receiver.perform(Receiver.number, with: number, afterDelay: .zero) }
            Tidy(freed).perform(Tidy.plain, afterDelay: .zero)
            RunLoop.current.perform(Tidy.plain, target: Tidy(freed), argument: ())
            RunLoop.current.run()
            #expect(receiver.trace.text == "1 3")
            #expect(freed.value == 2)
        }
    }

    @Test(.manualTime) func `is cancelled by an argument whose comparison makes and cancels requests`() {
        let (receiver, other) = (Receiver(), Receiver())
        let onCompare: @Sendable () -> Void = {
            receiver.perform(Receiver.plain, afterDelay: .seconds(1000))
            Receiver.cancelPreviousPerformRequests(withTarget: other)
        }
        for number in 1...3 {
            receiver.perform(Receiver.curious, with: Curious(number: number, onCompare: onCompare), afterDelay: .zero)
        }
        other.perform(Receiver.plain, afterDelay: .zero)
        Receiver.cancelPreviousPerformRequests(
            withTarget: receiver, selector: Receiver.curious, object: Curious(number: 2, onCompare: onCompare))
        ManualTime.advance(by: .seconds(1))
        RunLoop.current.pump()
        Receiver.cancelPreviousPerformRequests(withTarget: receiver)
        #expect(receiver.trace.text == "1 3")
        #expect(other.trace.events.isEmpty)
    }

    @Test func `is cancelled by target, method and argument`() async throws {
        try await onThread {
            let (receiver, other) = (Receiver(), Receiver())
            for number in 1...3 { receiver.perform(Receiver.number, with: number, afterDelay: .milliseconds(1)) }
            receiver.perform(Receiver.plain, with: (), afterDelay: .milliseconds(1))
            other.perform(Receiver.number, with: 2, afterDelay: .milliseconds(1))
            Receiver.cancelPreviousPerformRequests(withTarget: receiver, selector: Receiver.number, object: 2)
            Receiver.cancelPreviousPerformRequests(withTarget: receiver, selector: Receiver.plain)
            Receiver.cancelPreviousPerformRequests(withTarget: receiver, selector: Receiver.number, object: 99)
            RunLoop.current.run()
            #expect(receiver.trace.text == "1 3")
            #expect(other.trace.text == "2")
            receiver.perform(Receiver.plain, with: nil, afterDelay: .milliseconds(1))
            Receiver.cancelPreviousPerformRequests(withTarget: receiver, selector: Receiver.plain, object: nil)
            RunLoop.current.run()
            receiver.perform(Receiver.plain, afterDelay: .milliseconds(1))
            Receiver.cancelPreviousPerformRequests(withTarget: receiver)
            RunLoop.current.run()
            #expect(receiver.trace.text == "1 3")
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Performing in order` {
    @Test func `takes lower orders first, equal ones as they came`() async throws {
        try await onThread {
            let (receiver, loop) = (Receiver(), RunLoop.current)
            for (number, order) in [(3, 5), (1, -2), (4, 5), (2, 0)] {
                loop.perform(Receiver.number, target: receiver, argument: number, order: order)
            }
            #expect(receiver.trace.events.isEmpty)
            _ = loop.run(mode: .default, before: .now)
            #expect(receiver.trace.text == "1 2 3 4")
            #expect(!loop.run(mode: .default, before: .now))
        }
    }

    @Test func `ends no run, and leaves what is requested meanwhile to the next pass`() async throws {
        try await onThread {
            let (receiver, loop) = (Receiver(), RunLoop.current)
            let again = Receiver.Action<Int>("again") { receiver in
                { number in
                    receiver.number(number)
                    RunLoop.current.perform(Receiver.number, target: receiver, argument: number + 1, order: -5)
                }
            }
            loop.perform(again, target: receiver, argument: 1)
            loop.perform(Receiver.number, target: receiver, argument: 10, order: 1)
            let alive = loop.keepAlive()
            #expect(CFRunLoopRunInMode(.defaultMode, 0, true) == .timedOut)
            #expect(receiver.trace.text == "1 10")
            #expect(CFRunLoopRunInMode(.defaultMode, 0, true) == .timedOut)
            #expect(receiver.trace.text == "1 10 2")
            alive.cancel()
        }
    }

    @Test func `is cancelled by an earlier one of the same pass`() async throws {
        try await onThread {
            let (receiver, other, loop) = (Receiver(), Receiver(), RunLoop.current)
            let cancel = Receiver.Action<Int>("cancel") { receiver in
                { RunLoop.current.cancelPerform(Receiver.number, target: receiver, argument: $0) }
            }
            let cancelAll = Receiver.Action<Receiver>("cancel all") { _ in { RunLoop.current.cancelPerformSelectors(withTarget: $0) } }
            loop.perform(cancel, target: receiver, argument: 2, order: -1)
            loop.perform(cancelAll, target: receiver, argument: other, order: -1)
            for number in 1...3 {
                loop.perform(Receiver.number, target: receiver, argument: number)
                loop.perform(Receiver.number, target: other, argument: number)
            }
            _ = loop.run(mode: .default, before: .now)
            #expect(receiver.trace.text == "1 3")
            #expect(other.trace.events.isEmpty)
            #expect(!loop.run(mode: .default, before: .now))
        }
    }

    @Test func `is cancelled by a method that has no parameter`() async throws {
        try await onThread {
            let (receiver, loop) = (Receiver(), RunLoop.current)
            loop.perform(Receiver.plain, target: receiver, argument: nil, order: 0, modes: [.default])
            loop.perform(Receiver.number, target: receiver, argument: 1)
            loop.cancelPerform(Receiver.plain, target: receiver, argument: nil)
            loop.run()
            #expect(receiver.trace.text == "1")
            loop.perform(Receiver.plain, target: receiver)
            loop.run()
            #expect(receiver.trace.text == "1 plain")
        }
    }

    @Test func `takes methods without a name, which their target cancels`() async throws {
        try await onThread {
            let (receiver, loop) = (Receiver(), RunLoop.current)
            loop.perform(Receiver.number, target: receiver, argument: 3, order: 2)
            loop.perform(Receiver.unnamedNumber, target: receiver, argument: 2, order: 1)
            loop.perform(Receiver.unnamed, target: receiver, argument: nil, order: 0, modes: [.default])
            loop.run()
            #expect(receiver.trace.text == "unnamed unnamed 2 3")
            loop.perform(Receiver.unnamed, target: receiver)
            loop.perform(Receiver.unnamedNumber, target: receiver, argument: 4)
            loop.cancelPerformSelectors(withTarget: receiver)
            #expect(!loop.run(mode: .default, before: .now))
            #expect(receiver.trace.text == "unnamed unnamed 2 3")
        }
    }

    @Test func `is cancelled by an argument whose comparison makes and cancels requests`() async throws {
        try await onThread {
            let (receiver, other, loop) = (Receiver(), Receiver(), RunLoop.current)
            let onCompare: @Sendable () -> Void = {
                loop.perform(Receiver.plain, target: receiver, argument: (), modes: ["other"])
                loop.cancelPerformSelectors(withTarget: other)
            }
            for number in 1...3 {
                loop.perform(Receiver.curious, target: receiver, argument: Curious(number: number, onCompare: onCompare))
            }
            loop.perform(Receiver.plain, target: other, argument: ())
            loop.cancelPerform(Receiver.curious, target: receiver, argument: Curious(number: 2, onCompare: onCompare))
            _ = loop.run(mode: .default, before: .now)
            #expect(receiver.trace.text == "1 3")
            #expect(other.trace.events.isEmpty)
        }
    }

    @Test func `happens in a run inside another, if it is still to come`() async throws {
        try await onThread {
            let (receiver, loop) = (Receiver(), RunLoop.current)
            let nested = Receiver.Action<Int>("nested") { receiver in
                { number in
                    loop.perform(Receiver.number, target: receiver, argument: number + 1)
                    _ = loop.run(mode: .default, before: .now)
                    receiver.number(number + 2)
                }
            }
            loop.perform(nested, target: receiver, argument: 10)
            loop.perform(Receiver.number, target: receiver, argument: 1, order: 1)
            _ = loop.run(mode: .default, before: .now)
            #expect(receiver.trace.text == "11 1 12")
        }
    }

    @Test func `of many requests takes no longer for each`() async throws {
        try await onThread {
            let (receiver, loop, count) = (Receiver(), RunLoop.current, 40_000)
            for number in 0..<count { loop.perform(Receiver.number, target: receiver, argument: number, order: number) }
            _ = loop.run(mode: .default, before: .now)
            #expect(receiver.trace.events == (0..<count).map { "\($0)" })
        }
    }

    @Test func `of a loop that nobody keeps is performed nevertheless`() async throws {
        let receiver = Receiver()
        try await onForeignThread {
            RunLoop.of(CFRunLoopGetCurrent()).perform(Receiver.plain, target: receiver, argument: ())
            _ = CFRunLoopRunInMode(.defaultMode, 0, false)
        }
        #expect(receiver.trace.text == "plain")
    }

    @Test func `in the common modes happens in whichever runs, after a delay or in order`() async throws {
        try await onThread {
            let (receiver, loop) = (Receiver(), RunLoop.current)
            loop.addCommonMode("mine")
            for mode in [RunLoop.Mode.default, "mine"] {
                receiver.perform(Receiver.number, with: 2, afterDelay: .zero, inModes: [.common])
                loop.perform(Receiver.number, target: receiver, argument: 1, modes: [.common, "other"])
                _ = loop.run(in: "other", for: .zero)
                #expect(receiver.trace.text == "1")
                loop.perform(Receiver.number, target: receiver, argument: 3, modes: [.common])
                while receiver.trace.events.count < 3 { _ = loop.run(mode: mode, before: .now) }
                #expect(receiver.trace.text == "1 2 3")
                #expect(!loop.run(mode: mode, before: .now))
                receiver.trace.clear()
            }
        }
    }

    @Test func `happens once though in several modes, and not when it was cancelled`() async throws {
        try await onThread {
            let (receiver, loop) = (Receiver(), RunLoop.current)
            loop.perform(Receiver.number, target: receiver, argument: 1, modes: [.default, "second"])
            loop.perform(Receiver.number, target: receiver, argument: 2, modes: [.default])
            loop.cancelPerform(Receiver.number, target: receiver, argument: 2)
            _ = loop.run(mode: "second", before: .now)
            _ = loop.run(mode: .default, before: .now)
            #expect(receiver.trace.text == "1")
            loop.perform(Receiver.plain, target: receiver, argument: ())
            loop.cancelPerformSelectors(withTarget: receiver)
            _ = loop.run(mode: .default, before: .now)
            #expect(receiver.trace.text == "1")
        }
    }
}
