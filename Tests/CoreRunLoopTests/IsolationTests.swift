// SPDX-License-Identifier: Apache-2.0
//
// Closures and methods of a global actor's as a loop's callbacks: here an actor whose code a loop's thread runs. The main actor's are in
// Tests/MainThread, which has a main thread; what compiles, in which language mode, in Tests/Snippets.

import CoreRunLoop
import CoreRunLoopTesting
import Testing

@globalActor actor Own: RunLoopActor {
    static let stop = RunLoop.StopToken()
    static let loop: RunLoop = {
        guard let loop = try? Thread.runningLoop(name: "own", until: stop) else { fatalError("no thread") }
        return loop
    }()
    static let shared = Own()
    nonisolated let runLoop = Own.loop
}

/// What only the actor's code may touch.
@Own final class Model: Performing {
    private(set) var events: [String] = []
    nonisolated init() {}
    func note(_ event: String) { events.append(event) }
    func noteTimer(_ timer: Timer) { events.append("timer") }
    func noteNothing() { events.append("nothing") }
    /// Returns when so many events have come.
    func waitForEvents(_ count: Int) async { while events.count < count { await Task.yield() } }
    nonisolated static let action = Action("note", Model.note)
}

/// An actor's delegate of a port.
@Own private final class Inbox: @preconcurrency PortDelegate {
    private let model: Model
    nonisolated init(_ model: Model) { self.model = model }
    func handle(_ message: PortMessage) { model.note("message \(message.msgid)") }
}

/// An actor whose loop's thread ends: only one test uses it.
@globalActor private actor Ending: RunLoopActor {
    static let stop = RunLoop.StopToken()
    static let loop: RunLoop = {
        guard let loop = try? Thread.runningLoop(name: "ending", until: stop) else { fatalError("no thread") }
        return loop
    }()
    static let shared = Ending()
    @Ending static var trace: [String] = []
    nonisolated let runLoop = Ending.loop
}

/// An actor without a thread of its own: of its jobs each runs on its task's, which may be a loop's.
private actor Homeless {
    private var count = 0
    func schedule() { Timer.scheduledTimer(withTimeInterval: .zero, repeats: true) { _ in self.count += 1 } }
    func observe() { RunLoop.current.observe(.allActivities) { _, _ in self.count += 1 } }
    /// Returns when the loop has called the closure, in a run inside this very job.
    func countInside() -> Int {
        let timer = Timer.scheduledTimer(withTimeInterval: .zero, repeats: true) { _ in self.count += 1 }
        while count == 0 { _ = RunLoop.current.run(mode: .default, before: .now + .milliseconds(1)) }
        timer.invalidate()
        return count
    }
}

@Suite(.timeLimit(.minutes(10))) struct `What belongs to an actor` {
    private let loop = Own.loop

    @Test func `may be a timer's closure on the actor's loop`() async throws {
        let model = Model()
        loop.add(Timer(timeInterval: .microseconds(1), repeats: false) { @Own _ in model.note("interval") }, forMode: .common)
        await model.waitForEvents(1)
        loop.add(Timer(fire: .now, interval: .zero, repeats: false) { @Own timer in model.noteTimer(timer) }, forMode: .common)
        await model.waitForEvents(2)
        loop.add(Timer(timeInterval: .zero, invocation: { @Own in model.note("invocation") }, repeats: false), forMode: .common)
        await model.waitForEvents(3)
        let ticking = loop.schedule(every: .milliseconds(1), repeats: false) { @Own _ in model.note("schedule") }
        await model.waitForEvents(4)
        ticking.cancel()
        #expect(await model.events == ["interval", "timer", "invocation", "schedule"])
    }

    @Test func `may be performed by the actor's loop`() async throws {
        let model = Model()
        loop.perform { @Own in model.note("block") }
        loop.perform(inModes: [.default]) { @Own in model.note("block in a mode") }
        await model.waitForEvents(2)
        let count = try await loop.run { @Own in
            model.note("run")
            return model.events.count
        }
        #expect(count == 3)
        try await onThread { [loop] in
            try loop.performAndWait { @Own in model.note("waited for") }
            #expect(throws: PerformError.timedOut) { try loop.performAndWait { @Own in throw PerformError.timedOut } }
        }
        #expect(await model.events == ["block", "block in a mode", "run", "waited for"])
    }

    @Test func `may be an observer's or a source's closure on the actor's loop`() async throws {
        let model = Model()
        let source = InputSource<String> { @Own commands in for command in commands { model.note(command) } }
        loop.add(source, forMode: .common)
        source.send("command")
        await model.waitForEvents(1)
        source.invalidate()
        let (reading, writing) = makePipe()
        let descriptor = try DescriptorSource(descriptor: writing, interest: .writable) { @Own event in
            model.note("descriptor")
            event.invalidate()
        }
        loop.add(descriptor, forMode: .common)
        await model.waitForEvents(2)
        closePipe(reading)
        closePipe(writing)
        let observer = RunLoop.Observer(activities: .beforeTimers, repeats: false) { @Own _, _ in model.note("observer") }
        loop.add(observer, forMode: .common)
        loop.wake()
        await model.waitForEvents(3)
        #expect(await model.events == ["command", "descriptor", "observer"])
    }

    @Test func `answers requests on the actor's loop`() async throws {
        let model = Model()
        let port = try MessagePort(name: nil)
        port.handle(.text(number: 1)) { @Own text in
            model.note(text)
            return "\(model.events.count)"
        }
        loop.add(port, forMode: .common)
        #expect(try await port.request(.text(number: 1), "asked") == "1")
        port.onRequest = { @Own number, bytes in
            model.note("array")
            return [UInt8(number)] + bytes
        }
        #expect(try await port.requestBytes(number: 2, [3]) == [2, 3])
        port.onRequestBytes = { @Own number, bytes, reply in
            model.note("span")
            reply.set(bytes)
        }
        #expect(try await port.requestBytes(number: 2, [3, 4, 5]) == [3, 4, 5])
        #expect(await model.events == ["asked", "array", "span"])
        port.invalidate()
    }

    @Test func `gets messages on the actor's loop, and is told there of a port's end`() async throws {
        let model = Model()
        let port = MachPort()
        port.onMessage = { @Own message in model.note("message \(message.msgid)") }
        port.onInvalidate { @Own in model.note("end") }
        loop.add(port, forMode: .common)
        #expect(port.send(before: .now, msgid: 7, components: nil, from: nil))
        await model.waitForEvents(1)
        loop.perform { port.invalidate() }
        await model.waitForEvents(2)
        #expect(await model.events == ["message 7", "end"])
    }

    @Test func `may be a port's delegate on the actor's loop`() async throws {
        let model = Model()
        let inbox = Inbox(model)
        let port = MachPort()
        port.delegate = inbox
        loop.add(port, forMode: .common)
        #expect(port.send(before: .now, msgid: 7, components: nil, from: nil))
        await model.waitForEvents(1)
        #expect(await model.events == ["message 7"])
        port.invalidate()
        withExtendedLifetime(inbox) {}
    }

    @Test func `stops the process as a port's delegate on another loop`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = Own.loop
            try await onThread {
                let (inbox, port) = (Inbox(Model()), MachPort())
                port.delegate = inbox
                RunLoop.current.add(port, forMode: .default)
                _ = port.send(before: .now, components: nil, from: nil)
                RunLoop.current.run(for: .seconds(10))
                withExtendedLifetime(inbox) {}
            }
        }
        let sentence = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(sentence.contains("was not called on the same actor"))
    }

    @Test func `is told on the actor's loop where its source comes and goes`() async throws {
        let model = Model()
        let source = InputSource<Int>(
            schedule: { @Own _, _ in model.note("joined") }, cancel: { @Own _, _ in model.note("left") }, perform: { _ in })
        loop.perform { [loop] in
            loop.add(source, forMode: .default)
            source.invalidate()
        }
        await model.waitForEvents(2)
        #expect(await model.events == ["joined", "left"])
    }

    @Test func `is told of its thread's end, on it, before what the actor does when it has ended`() async throws {
        let thread = try await Ending.loop.run { Thread.current }
        thread.onExit { @Ending in Ending.trace.append(Thread.current === thread ? "end" : "end elsewhere") }
        Task { @Ending in Ending.trace.append("job") }
        while await Ending.trace.isEmpty { await Task.yield() }
        Ending.stop.requestStop()
        try await thread.value
        Task { @Ending in Ending.trace.append("late job") }
        while await Ending.trace.count < 3 { await Task.yield() }
        #expect(await Ending.trace == ["job", "end", "late job"])
    }

    @Test func `may be a method in the place of a selector, on the actor's loop`() async throws {
        let model = Model()
        loop.add(Timer(timeInterval: .zero, target: model, selector: Model.noteTimer, repeats: false), forMode: .common)
        await model.waitForEvents(1)
        loop.add(Timer(timeInterval: .zero, target: model, selector: Model.noteNothing, repeats: false), forMode: .common)
        await model.waitForEvents(2)
        loop.perform(Model.action, target: model, argument: "ordered")
        await model.waitForEvents(3)
        loop.perform {
            model.perform(Model.note, with: "delayed", afterDelay: .zero)
            model.perform(Model.noteNothing)
        }
        await model.waitForEvents(5)
        #expect(await model.events == ["timer", "nothing", "ordered", "nothing", "delayed"])
    }

    /// Calls from a thread that is not the actor's, of what may be sent to the actor.
    enum Stray: String, CaseIterable, Codable, Sendable {
        case closure, block, work, observer, method, fire, performed, detached, action, message, end, exit

        /// Makes the call. What has to be kept until it has come is the result.
        func call(_ model: Model) throws -> Any? {
            let loop = RunLoop.current
            switch self {
            case .closure: loop.add(Timer(timeInterval: .zero, repeats: false) { @Own _ in model.note("") }, forMode: .default)
            case .block: loop.perform { @Own in model.note("") }
            case .work: try loop.performAndWait { @Own in model.note("") }
            case .observer:
                loop.add(RunLoop.Observer(activities: .entry, repeats: false) { @Own _, _ in model.note("") }, forMode: .default)
            case .method: loop.add(Timer(timeInterval: .zero, target: model, selector: Model.noteTimer, repeats: false), forMode: .default)
            case .fire: Timer(timeInterval: .seconds(1), repeats: false) { @Own _ in model.note("") }.fire()
            case .performed: model.perform(Model.note, on: .current, with: "", waitUntilDone: true)
            case .detached: try Thread(target: model, selector: Model.noteNothing).launch()
            case .action: loop.perform(Model.action, target: model, argument: "")
            case .message:
                let port = MachPort()
                port.onMessage = { @Own _ in model.note("") }
                loop.add(port, forMode: .default)
                _ = port.send(before: .now, components: nil, from: nil)
                return port
            case .end:
                let port = Port()
                port.onInvalidate { @Own in model.note("") }
                port.invalidate()
            case .exit:
                Thread.current.onExit { @Own in model.note("") }
                Thread.exit()
            }
            return nil
        }
    }

    @Test(arguments: Stray.allCases) func `is sent to the actor where another thread is to call it`(stray: Stray) async throws {
        let model = Model()
        let stop = RunLoop.StopToken()
        let thread = Thread {
            let kept = try stray.call(model)
            let alive = RunLoop.current.keepAlive()
            RunLoop.current.run(in: .default, until: stop)
            alive.cancel()
            withExtendedLifetime(kept) {}
        }
        try thread.launch()
        await model.waitForEvents(1)
        stop.requestStop()
        _ = try? await thread.value
        #expect(await model.events.count == 1)
    }

    @Test func `is sent in the order of the calls, whichever of its closures they are of`() async throws {
        let model = Model()
        try await onThread {
            for number in 0..<100 {
                RunLoop.current.perform { @Own in model.note("\(number)") }
                RunLoop.current.add(
                    Timer(timeInterval: .microseconds(1), repeats: false) { @Own _ in model.note("timer") }, forMode: .default)
            }
            RunLoop.current.run(for: .milliseconds(100))
        }
        await model.waitForEvents(200)
        #expect(await model.events.filter { $0 != "timer" } == (0..<100).map { "\($0)" })
    }

    @Test func `gives its result or error when it was sent to its actor`() async throws {
        let stop = RunLoop.StopToken()
        let other = try Thread.runningLoop(name: "another", until: stop)
        #expect(try await other.run { @Own in Own.loop.isCurrent })
        await #expect(throws: PerformError.timedOut) { try await other.run { @Own in throw PerformError.timedOut } }
        try await onThread {
            let isThere = try other.performAndWait { @Own in Own.loop.isCurrent }
            #expect(isThere)
        }
        stop.requestStop()
    }

    /// Calls from a thread that is not the actor's, of what must stay on its thread, or answer at once.
    enum Bound: String, CaseIterable, Codable, Sendable {
        case method, delayed, request

        func call() throws {
            let model = Model()
            switch self {
            case .method: Timer.scheduledTimer(timeInterval: .zero, target: model, selector: Model.noteTimer, repeats: false)
            case .delayed: model.perform(Model.noteNothing, afterDelay: .zero)
            case .request:
                let port = try MessagePort(name: nil)
                port.onRequestBytes = { @Own _, _, _ in model.note("") }
                RunLoop.current.add(port, forMode: .default)
                Task { try await port.requestBytes(number: 1, []) }
            }
            RunLoop.current.run(for: .seconds(10))
        }
    }

    @Test(arguments: Bound.allCases) func `stops the process where it cannot be sent to the actor`(bound: Bound) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [bound = bound as Bound] in
            _ = Own.loop
            let thread = Thread { try bound.call() }
            try thread.setName("stray")
            try thread.launch()
            try await thread.value
        }
        let sentence = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let whatCannot = bound == .request ? "a closure for requests" : "a method"
        #expect(sentence.contains("CoreRunLoop: \(whatCannot) of the actor Own was called on thread "))
        #expect(sentence.contains("\"stray\", which is not the actor's, and cannot be sent there"))
    }

    @Test(arguments: [false, true]) func `stops the process where a loop is to call it on its thread, which was the actor's only for a job`(
        isTimer: Bool
    ) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [isTimer = isTimer as Bool] in
            let actor = Homeless()
            try await Task(executorPreference: Own.loop) { [loop = Own.loop] in
                if isTimer { await actor.schedule() } else { await actor.observe() }
                for _ in 0..<100 { try await Task.sleep(for: .milliseconds(1), clock: loop.clock) }
            }.value
        }
        let sentence = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(sentence.contains("that stays on its thread, of the actor Homeless was called on thread "))
    }

    @Test func `may be scheduled by its actor, and is called in its jobs or on its thread`() async throws {
        #expect(await Task(executorPreference: loop) { await Homeless().countInside() >= 1 }.value)
        let model = Model()
        await Self.schedule(model)
        await model.waitForEvents(2)
        #expect(await Set(model.events) == ["scheduled", "observed"])
    }

    @Own private static func schedule(_ model: Model) {
        Timer.scheduledTimer(withTimeInterval: .zero, repeats: false) { _ in model.note("scheduled") }
        RunLoop.current.observe(.beforeTimers) { observer, _ in
            observer.invalidate()
            model.note("observed")
        }
        RunLoop.current.wake()
    }

    @Test func `is sent to the main actor, too`() async throws {
        let count = Count()
        try await onThread {
            Timer(timeInterval: .zero, invocation: { @MainActor in count.next() }, repeats: false).fire()
        }
        while count.value == 0 { await Task.yield() }
    }

    @Test func `is not what is merely written in an actor's code: that is called on any loop's thread`() async throws {
        let count = Count()
        try await Self.useAnotherLoop(count)
        #expect(count.value == 3)
    }

    @MainActor private static func useAnotherLoop(_ count: Count) async throws {
        let stop = RunLoop.StopToken()
        let other = try Thread.runningLoop(until: stop)
        other.add(Timer(timeInterval: .zero, repeats: false) { _ in count.next() }, forMode: .common)
        other.perform { count.next() }
        try await other.run { _ = count.next() }
        while count.value < 3 { await Task.yield() }
        stop.requestStop()
    }
}
