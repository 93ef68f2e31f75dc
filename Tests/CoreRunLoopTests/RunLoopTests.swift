// SPDX-License-Identifier: Apache-2.0
//
// The loop itself, its runs, and the table of what ends, wakes and keeps alive a run: rules 1400 to 1412 of docs/rules.md.

import CoreRunLoop
import CoreRunLoopTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct `A run loop` {
    @Test func `is one object a thread`() async throws {
        let (first, second) = try await onThread { (RunLoop.current, RunLoop.current) }
        #expect(first === second)
        let other = try await onThread { RunLoop.current }
        #expect(first !== other)
        #expect(first != other)
    }

    // That the main thread's is current there is shown by the programs: the test runner's main thread has ended.
    @Test func `of the main thread is one object everywhere`() async throws {
        #expect(RunLoop.main === RunLoop.of(CFRunLoopGetMain()))
        #expect(try await onThread { !RunLoop.main.isCurrent && RunLoop.current !== RunLoop.main })
    }

    @Test func `shares its object with the C interface`() async throws {
        try await onThread {
            let loop = RunLoop.current
            #expect(RunLoop.of(CFRunLoopGetCurrent()) === loop)
            let count = Count()
            let timer = Timer(fire: .now, interval: .zero, repeats: false) { _ in count.next() }
            CFRunLoopAddTimer(loop.getCFRunLoop(), timer.cfRunLoopTimer, kCFRunLoopDefaultMode)
            #expect(loop.contains(timer, in: .default))
            #expect(CFRunLoopRunInMode(.defaultMode, 1000, false) == .finished)
            #expect(count.value == 1)
        }
    }

    @Test func `is freed with its last holder`() async throws {
        let weakly = try await onThread { () -> WeakLoop in WeakLoop(RunLoop.current) }
        while weakly.loop != nil { await Task.yield() }
    }

    @Test func `of a C loop is made and freed by several threads at once`() async throws {
        let ended = Count()
        // A thread that Swift has not heard of: nobody keeps an object of its loop.
        try await onForeignThread {
            let loop: CFRunLoop = CFRunLoopGetCurrent()
            let threads = (0..<4).map { _ in Thread { for _ in 0..<50_000 { _ = RunLoop.of(loop) } } }
            for thread in threads { thread.start() }
            for thread in threads where thread.join() { ended.next() }
        }
        #expect(ended.value == 4)
    }

    @Test func `knows its mode while it runs, the inner one of nested runs`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            #expect(loop.currentMode == nil)
            loop.perform {
                trace.add(loop.currentMode?.rawValue ?? "none")
                loop.perform(inModes: ["inner"]) { trace.add(loop.currentMode?.rawValue ?? "none") }
                _ = loop.run(mode: "inner", before: .distantPast)
                trace.add(loop.currentMode?.rawValue ?? "none")
            }
            #expect(loop.run(in: .default, for: .zero) == .timedOut)
            #expect(trace.events == ["kCFRunLoopDefaultMode", "inner", "kCFRunLoopDefaultMode"])
            #expect(loop.currentMode == nil)
        }
    }

    @Test func `lists the modes that were named`() async throws {
        try await onThread {
            let loop = RunLoop.current
            #expect(!loop.allModes.contains("extra"))
            loop.perform(inModes: ["extra"]) {}
            #expect(loop.allModes.contains("extra"))
            #expect(!loop.allModes.contains(.common))
        }
    }

    @Test func `names modes by their text`() {
        #expect(RunLoop.Mode("kCFRunLoopDefaultMode") == .default)
        #expect(RunLoop.Mode.common.rawValue == "kCFRunLoopCommonModes")
        #expect(RunLoop.Mode.modalPanel.rawValue == "NSModalPanelRunLoopMode")
        #expect(RunLoop.Mode.eventTracking.rawValue == "NSEventTrackingRunLoopMode")
        #expect(RunLoop.Mode.connectionReply.rawValue == "NSConnectionReplyMode")
        #expect(RunLoop.Mode(RunLoop.Mode("ü mode 漢").name).rawValue == "ü mode 漢")
        #expect(RunLoop.Mode.cocoaCommon == [.default, .modalPanel, .eventTracking])
        #expect(RunLoop.Mode("m\u{E9}") == RunLoop.Mode("m\u{E9}") && RunLoop.Mode("m\u{E9}") != RunLoop.Mode("me\u{301}"))
    }

    @Test func `has two modes where two names differ in their characters, though they look alike`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            let (short, long) = (RunLoop.Mode("m\u{E9}"), RunLoop.Mode("me\u{301}"))
            let port = MachPort()
            loop.add(port, forMode: short)
            loop.add(port, forMode: long)
            Thread.current.perform(in: [short]) { trace.add("short") }
            Thread.current.perform(in: [long]) { trace.add("long") }
            _ = loop.run(in: short, for: .zero)
            #expect(trace.events == ["short"])
            _ = loop.run(in: long, for: .zero)
            #expect(trace.events == ["short", "long"])
            #expect(loop.run(in: long, for: .zero) == .timedOut)  // for the port
            port.invalidate()
        }
    }

    @Test func `adds items of the common modes to modes that become common later`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let timer = Timer(timeInterval: .seconds(100), repeats: false) { _ in }
            loop.add(timer, forMode: .common)
            #expect(loop.contains(timer, in: .default))
            #expect(!loop.contains(timer, in: .eventTracking))
            loop.addCommonMode(.eventTracking)
            #expect(loop.contains(timer, in: .eventTracking))
            timer.invalidate()
        }
    }
}

final class WeakLoop: @unchecked Sendable {
    weak var loop: RunLoop?
    init(_ loop: RunLoop) { self.loop = loop }
}

@Suite(.timeLimit(.minutes(10))) struct `Running` {
    @Test(.manualTime, arguments: [Duration.seconds(-3600), .seconds(3600)])
    func `for a duration takes as long whoever sets the wall clock`(step: Duration) {
        let loop = RunLoop.current
        let start = loop.clock.now
        let source = InputSource<Void> { _ in }
        let passes = Count()
        let observer = RunLoop.Observer(activities: .beforeWaiting) { _, _ in
            ManualTime.advance(by: .milliseconds(1))
            loop.wake()
            if passes.next() == 5 {
                ManualTime.stepWallClock(by: step)
                source.signal()
            }
            if passes.value == 50 { ManualTime.stepWallClock(by: .seconds(7200)) }  // for a run that would not end
        }
        loop.add(source, forMode: .default)
        loop.add(observer, forMode: .default)
        loop.run(for: .milliseconds(10))
        #expect(start.duration(to: loop.clock.now) == .milliseconds(10))
        observer.invalidate()
        source.invalidate()
    }

    @Test func `the common modes until a stop is requested returns at once`() async throws {
        let (stop, hasEnded) = (RunLoop.StopToken(), Count())
        Thread.detachNewThread {
            RunLoop.current.run(in: .common, until: stop)
            hasEnded.next()
        }
        try await onThread { #expect(RunLoop.current.pump(until: { hasEnded.value == 1 })) }
        stop.requestStop()
    }

    @Test(arguments: [RunLoop.Mode.default, "never heard of", .common])
    func `an empty mode returns at once, without a call to an observer`(mode: RunLoop.Mode) async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            loop.add(RunLoop.Observer(activities: .allActivities) { _, activity in trace.add(activity.short) }, forMode: .default)
            #expect(!loop.run(mode: mode, before: .distantFuture))
            #expect(loop.run(in: mode) == .finished)
            loop.run()
            loop.run(until: .distantFuture)
            loop.acceptInput(forMode: mode, before: .distantFuture)
            #expect(trace.events == [])
        }
    }

    @Test func `with a date in the past is one look`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            let alive = loop.keepAlive()
            loop.add(RunLoop.Observer(activities: .allActivities) { _, activity in trace.add(activity.short) }, forMode: .default)
            loop.add(Timer(fire: .distantPast, interval: .zero, repeats: false) { _ in trace.add("T") }, forMode: .default)
            #expect(loop.run(mode: .default, before: .now))
            #expect(trace.text == "E BT BS T X")
            alive.cancel()
        }
    }

    @Test func `until a date fires the timers that are due even if the date is past`() async throws {
        try await onThread {
            let count = Count()
            RunLoop.current.add(Timer(fire: .distantPast, interval: .zero, repeats: false) { _ in count.next() }, forMode: .default)
            RunLoop.current.run(until: .distantPast)
            #expect(count.value == 1)
        }
    }

    @Test func `until a date begins anew after an input source and after a stop`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let count = Count()
            let source = InputSource<Void> { _ in count.next() }
            loop.add(source, forMode: .default)
            var left = 3
            Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
                if left == 0 {
                    timer.invalidate()
                    source.invalidate()
                } else {
                    left -= 1
                    source.signal()
                    loop.stop()
                }
            }
            loop.run(until: .now + .seconds(50))
            #expect(count.value == 3)
        }
    }

    @Test func `for ever is not ended by a stop`() async throws {
        try await onThread {
            let loop = RunLoop.current
            var stops = 0
            Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
                stops += 1
                loop.stop()
                if stops == 5 { timer.invalidate() }
            }
            loop.run()
            #expect(stops == 5)
        }
    }

    @Test func `is told by the limit date what is next`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let count = Count()
            #expect(loop.limitDate(forMode: .default) == nil)
            let alive = loop.keepAlive()
            #expect(loop.limitDate(forMode: .default) == .distantFuture)
            loop.add(Timer(fire: .now, interval: .zero, repeats: false) { _ in count.next() }, forMode: .default)
            let date = WallTime.now + .seconds(1000)
            let timer = Timer(fire: date, interval: .zero, repeats: false) { _ in }
            loop.add(timer, forMode: .default)
            let limit = try #require(loop.limitDate(forMode: .default))
            #expect(abs((limit - date).components.seconds) < 1)
            #expect(count.value == 1)
            #expect(loop.nextTimerFireDate(in: .default) != nil)
            alive.cancel()
            timer.invalidate()
            #expect(loop.limitDate(forMode: .default) == nil)
        }
    }

    @Test func `with a token ends although the stop came before`() async throws {
        try await onThread {
            let token = RunLoop.StopToken()
            token.requestStop()
            RunLoop.current.run(in: .default, until: token)
            #expect(token.isRequested)
        }
    }

    @Test func `with a token sleeps in an empty mode, and is not ended by a plain stop`() async throws {
        let token = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "empty", until: token)
        loop.stop()
        #expect(try await loop.run { loop.isCurrent })
        loop.stop()
        #expect(try await loop.run { 7 } == 7)
        token.requestStop()
    }

    @Test func `with a token ends the outer run too when a nested one runs`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let token = RunLoop.StopToken()
            loop.perform {
                let alive = loop.keepAlive(in: "nested")
                loop.perform(inModes: ["nested"]) { token.requestStop() }
                #expect(loop.run(in: "nested") == .stopped)
                alive.cancel()
            }
            loop.run(in: .default, until: token)
        }
    }

    @Test func `with a token ends though the stop came in a run inside its last observer before the sleep`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let token = RunLoop.StopToken()
            loop.observe(.beforeWaiting, in: .default) { observer, _ in
                observer.invalidate()
                let alive = loop.keepAlive(in: "nested")
                let asker = Thread {
                    while !loop.isWaiting { Thread.sleep(for: .microseconds(100)) }
                    token.requestStop()
                }
                asker.start()
                #expect(loop.run(in: "nested") == .stopped)
                alive.cancel()
            }
            let late = Timer(timeInterval: .seconds(500), repeats: false) { _ in Issue.record("slept with the request") }
            loop.add(late, forMode: .default)
            loop.run(in: .default, until: token)
            late.invalidate()
        }
    }

    /// Runs the loop so many times inside itself, and says so in the innermost run.
    private static func nest(_ depth: Int, until token: RunLoop.StopToken, _ innermost: @escaping @Sendable () -> Void) {
        let mode = RunLoop.Mode("nested \(depth)")
        RunLoop.current.perform(inModes: [mode]) {
            if depth == 1 { innermost() } else { nest(depth - 1, until: token, innermost) }
        }
        RunLoop.current.run(in: mode, until: token)
    }

    @Test func `around one with a token is not ended by a stop of that one`() async throws {
        for _ in 0..<8 {
            let (token, ready) = (RunLoop.StopToken(), Count())
            // Whoever asks has all of these to stop before the last.
            let before = try Thread.joinable { Self.nest(200, until: token) { ready.next() } }
            while ready.value == 0 { await Task.yield() }
            let result = try Thread.joinable { () -> RunLoop.RunResult in
                let loop = RunLoop.current
                // The run with the token notices by itself, as it never sleeps.
                let source = InputSource<Void> { _ in }
                loop.observe(.beforeTimers, in: "inner") { _, _ in source.signal() }
                loop.add(source, forMode: "inner")
                loop.perform {
                    loop.perform(inModes: ["inner"]) { ready.next() }
                    loop.run(in: "inner", until: token)
                    ready.next()
                }
                let alive = loop.keepAlive()
                let result = loop.run(in: .default, for: .milliseconds(100))
                alive.cancel()
                source.invalidate()
                return result
            }
            while ready.value < 2 { await Task.yield() }
            token.requestStop()
            #expect(try await result.value == .timedOut)
            try await before.value
        }
    }

    @Test func `of hosted passes sends what a run sends`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            #expect(loop.pollableDescriptor != nil)
            loop.add(RunLoop.Observer(activities: .allActivities) { _, activity in trace.add(activity.short) }, forMode: .default)
            loop.add(Timer(fire: .distantPast, interval: .zero, repeats: false) { _ in trace.add("T") }, forMode: .default)
            #expect(loop.prepareHosted())
            #expect(loop.hostedTimeout == .zero)
            #expect(loop.dispatchHosted() == .finished)
            loop.leaveHosted()
            let hosted = trace.text
            trace.clear()
            loop.add(Timer(fire: .distantPast, interval: .zero, repeats: false) { _ in trace.add("T") }, forMode: .default)
            #expect(loop.run(in: .default) == .finished)
            #expect(trace.text == hosted)
        }
    }

    @Test func `tells of a stall while its thread is stuck, and when it is over`() async throws {
        let reports = Mutex<[RunLoop.Stall]>([])
        let mode = RunLoop.Mode("stuck")
        try await onThread {
            let loop = RunLoop.current
            #expect(loop.onStall(longerThan: .milliseconds(1)) { stall in reports.withLock { $0.append(stall) } })
            let timer = Timer(fire: .distantPast, interval: .zero, repeats: false) { _ in
                while reports.withLock({ $0.isEmpty }) { Thread.sleep(for: .milliseconds(1)) }
            }
            loop.add(timer, forMode: mode)
            _ = loop.run(in: mode, for: .zero)
        }
        while reports.withLock({ $0.count }) < 2 { try await Task.sleep(for: .milliseconds(1)) }
        let (stuck, over) = reports.withLock { ($0[0], $0[1]) }
        #expect(stuck.mode == mode && !stuck.isOver && over.isOver && stuck.callouts == 1)
        #expect(stuck.duration >= .milliseconds(1) && over.duration >= stuck.duration)
        #expect(!stuck.frames.isEmpty && stuck.description.contains("in mode stuck\n  in callout for "))
        #expect(over.description.contains("goes on after") && stuck.loop == over.loop)
    }

    @Test func `frees the handler of stalls when another takes its place, and with the thread`() async throws {
        let freed = Count()
        final class Told: Sendable {
            let freed: Count
            init(_ freed: Count) { self.freed = freed }
            deinit { freed.next() }
        }
        @Sendable func watch(_ loop: RunLoop) {
            let told = Told(freed)
            loop.onStall(longerThan: .seconds(1000)) { _ in withExtendedLifetime(told) {} }
        }
        try await onThread {
            watch(.current)
            watch(.current)
            #expect(freed.value == 1)
            RunLoop.current.ignoreStalls()
            #expect(freed.value == 2)
            watch(.current)
        }
        while freed.value < 3 { try await Task.sleep(for: .milliseconds(1)) }  // the loop ends with the thread, after its value is given
    }

    /// In a process of its own: others would be counted, too.
    @Test func `is counted once the program wants it, until its thread ends`() async {
        await #expect(processExitsWith: .success) {
            let token = RunLoop.StopToken()
            let loop = try Thread.runningLoop(name: "counted", until: token)
            let before = loop.statistics
            RunLoop.startStatistics()
            for number in 0..<100 { _ = try await loop.run { number } }
            let counted = try #require(loop.statistics)
            #expect(before == nil && counted.passes > 0 && counted.callouts > 0 && counted.busy > .zero)
            #expect(counted.longestCallout <= counted.busy && counted.timers == 0 && counted.lateness == .zero)
            for number in 0..<100 { _ = try await loop.run { number } }
            let later = try #require(loop.statistics)
            #expect(later.passes > counted.passes && later.busy >= counted.busy)
            token.requestStop()
            while loop.statistics != nil { try await Task.sleep(for: .milliseconds(1)) }
        }
    }

    @Test func `waits awake when it is told to, and hears other threads meanwhile`() async throws {
        let token = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "awake", until: token)
        #expect(loop.busyWait == .zero)
        loop.busyWait = .milliseconds(500)
        #expect(loop.busyWait == .milliseconds(500))
        for number in 0..<100 { #expect(try await loop.run { number } == number) }
        loop.busyWait = .seconds(-1)
        #expect(loop.busyWait == .zero)
        loop.busyWait = .seconds(Int64.max)
        #expect(loop.busyWait > .seconds(16 * 365 * 86400))
        token.requestStop()
    }

    @Test func `accepts input once, and fires timers meanwhile`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            let source = InputSource<Void> { _ in trace.add("S") }
            loop.add(source, forMode: .default)
            let timer = Timer(fire: .now, interval: .milliseconds(1), repeats: true) { timer in
                trace.add("T")
                if trace.events.count == 3 {
                    timer.invalidate()
                    source.signal()
                }
            }
            loop.add(timer, forMode: .default)
            loop.acceptInput(forMode: .default, before: .distantFuture)
            #expect(trace.text == "T T T S")
            source.invalidate()
        }
    }

    @Test func `a mode leaves what is ready in another one to a run of that`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            let source = InputSource<Void> { _ in trace.add("source") }
            let (reading, writing) = makePipe()
            let descriptor = try DescriptorSource(descriptor: reading, closeOnInvalidate: true) { event in
                trace.add("descriptor")
                event.invalidate()
            }
            let port = MachPort()
            port.onMessage = { _ in trace.add("port") }
            loop.add(source, forMode: "other")
            loop.add(descriptor, forMode: "other")
            loop.add(port, forMode: "other")
            loop.add(Timer(fire: .now, interval: .zero, repeats: false) { _ in trace.add("timer") }, forMode: "other")
            source.signal()
            writePipe(writing)
            #expect(port.send(before: .now, components: nil, from: nil))
            let alive = loop.keepAlive()
            for _ in 0..<3 { #expect(loop.run(in: .default, for: .zero) == .timedOut) }
            #expect(trace.events.isEmpty)
            while trace.events.count < 4 { #expect(loop.run(mode: "other", before: .distantFuture)) }
            #expect(trace.events.sorted() == ["descriptor", "port", "source", "timer"])
            alive.cancel()
            source.invalidate()
            port.invalidate()
            closePipe(writing)
        }
    }
}

/// What a kind of item does to a run: one row of the matrix.
struct Cause: CustomTestStringConvertible, Sendable {
    let name: String
    /// Ends `run(mode:before:)`.
    let ends: Bool
    /// Wakes a loop that sleeps, by itself.
    let wakes: Bool
    /// Keeps a mode from being empty.
    let keepsAlive: Bool
    /// Adds the item, so that it is in place before the run.
    let add: @Sendable (RunLoop, @escaping @Sendable () -> Void) -> @Sendable () -> Void
    var testDescription: String { name }

    // `add` returns what makes the item ready.
    static let all: [Cause] = [
        Cause(name: "version-0 source", ends: true, wakes: false, keepsAlive: true) { loop, happened in
            let source = InputSource<Void> { _ in happened() }
            loop.add(source, forMode: .default)
            return { source.signalWithoutWaking() }
        },
        Cause(name: "input source that is sent a command", ends: true, wakes: true, keepsAlive: true) { loop, happened in
            let source = InputSource<Int> { _ in happened() }
            loop.add(source, forMode: .default)
            return { source.send(1) }
        },
        Cause(name: "descriptor", ends: true, wakes: true, keepsAlive: true) { loop, happened in
            let (reading, writing) = makePipe()
            let source = try! DescriptorSource(descriptor: reading, closeOnInvalidate: true) { event in
                drainPipe(event.descriptor)
                happened()
            }
            loop.add(source, forMode: .default)
            return { writePipe(writing) }
        },
        Cause(name: "timer", ends: false, wakes: true, keepsAlive: true) { loop, happened in
            let timer = Timer(fire: .distantFuture, interval: .seconds(1000), repeats: true) { _ in happened() }
            loop.add(timer, forMode: .default)
            return { timer.fireDate = .now }
        },
        Cause(name: "queued block", ends: false, wakes: true, keepsAlive: false) { loop, happened in
            { loop.perform { happened() } }
        },
        Cause(name: "C's queued function", ends: false, wakes: false, keepsAlive: false) { loop, happened in
            { CFRunLoopPerformBlock(loop.getCFRunLoop(), CFRunLoopMode.defaultMode) { happened() } }
        },
        Cause(name: "perform on a thread", ends: true, wakes: true, keepsAlive: false) { loop, happened in
            { Task.detached { try await loop.run { happened() } } }
        },
        Cause(name: "perform in order", ends: false, wakes: true, keepsAlive: false) { loop, happened in
            { loop.perform(Target.action, target: Target(happened), argument: 0) }
        },
        Cause(name: "job of an actor", ends: false, wakes: true, keepsAlive: false) { loop, happened in
            { Task.detached { await Worker(on: loop).perform(happened) } }
        },
    ]
}

final class Target: Sendable {
    let closure: @Sendable () -> Void
    init(_ closure: @escaping @Sendable () -> Void) { self.closure = closure }
    func call(_ argument: Int) { closure() }
    static let action = RunLoop.Action("call", Target.call)
}

actor Worker: RunLoopActor {
    nonisolated let runLoop: RunLoop
    var state = 0
    init(on runLoop: RunLoop) { self.runLoop = runLoop }
    func perform(_ closure: @Sendable () -> Void) { closure() }
    func increment() -> Int {
        state += 1
        return state
    }
    var isOnLoop: Bool { runLoop.isCurrent }
}

@Suite(.timeLimit(.minutes(10))) struct `What a run returns for` {
    @Test(arguments: Cause.all) func `keeping a mode alive`(cause: Cause) async throws {
        try await onThread {
            let loop = RunLoop.current
            let makeReady = cause.add(loop) {}
            #expect(loop.run(mode: .default, before: .distantPast) == cause.keepsAlive)
            withExtendedLifetime(makeReady) {}
        }
    }

    @Test(arguments: Cause.all) func `ending a run`(cause: Cause) async throws {
        try await onThread {
            let loop = RunLoop.current
            let alive = loop.keepAlive()
            let count = Count()
            let makeReady = cause.add(loop) {
                count.next()
                // Whatever does not end the run leaves this to end it with another result.
                if !cause.ends { loop.stop() }
            }
            makeReady()
            let result = CFRunLoopRunInMode(.defaultMode, 1000, true)
            #expect(result == (cause.ends ? .handledSource : .stopped))
            #expect(count.value == 1)
            alive.cancel()
        }
    }

    @Test(arguments: Cause.all) func `waking a loop that sleeps`(cause: Cause) async throws {
        let count = Count()
        let token = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: token)
        let makeReady = cause.add(loop) { count.next() }
        while !loop.isWaiting { await Task.yield() }
        makeReady()
        if cause.wakes {
            while count.value == 0 { await Task.yield() }
        } else {
            #expect(count.value == 0)
            loop.wake()
            while count.value == 0 { await Task.yield() }
        }
        token.requestStop()
    }

    @Test func `observers, which do none of the three`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            loop.observe(.allActivities, in: .default) { _, activity in trace.add(activity.short) }
            #expect(!loop.run(mode: .default, before: .distantFuture))
            #expect(trace.events.isEmpty)
        }
    }
}
