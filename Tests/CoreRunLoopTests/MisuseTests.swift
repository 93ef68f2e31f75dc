// SPDX-License-Identifier: Apache-2.0
//
// What only the loop's own thread may do stops the process with a sentence that names the call, also in optimized programs; what cannot be
// meant is an error with the value. What asynchronous functions may not call at all is in Tests/Snippets.

import CoreRunLoop
import CoreRunLoopTesting
import Testing

/// Calls that belong to the loop's own thread, here of a loop that is another's.
enum OwnersCall: String, CaseIterable, Codable, Sendable {
    case run = "run(mode:before:)"
    case runInMode = "run(in:for:returnAfterSourceHandled:)"
    case runUntilToken = "run(in:until:)"
    case limitDate = "limitDate(forMode:)"
    case pollableDescriptor
    case prepareHosted = "prepareHosted(mode:)"
    case hostedTimeout
    case dispatchHosted = "dispatchHosted()"
    case leaveHosted = "leaveHosted()"

    func call(_ loop: RunLoop) {
        switch self {
        case .run: _ = loop.run(mode: .default, before: .now)
        case .runInMode: _ = loop.run(in: .default, for: .zero)
        case .runUntilToken: loop.run(in: .default, until: RunLoop.StopToken())
        case .limitDate: _ = loop.limitDate(forMode: .default)
        case .pollableDescriptor: _ = loop.pollableDescriptor
        case .prepareHosted: _ = loop.prepareHosted()
        case .hostedTimeout: _ = loop.hostedTimeout
        case .dispatchHosted: _ = loop.dispatchHosted()
        case .leaveHosted: loop.leaveHosted()
        }
    }
}

private final class Performer: Performing {
    func work() {}
}

private actor Scheduler: RunLoopActor {
    let runLoop: RunLoop

    init(on loop: RunLoop) { runLoop = loop }

    func waitForTimer() async {
        await withCheckedContinuation { continuation in
            Timer.scheduledTimer(withTimeInterval: .zero, repeats: false) { _ in continuation.resume() }
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Misuse` {
    /// The last line that matters of what a process wrote before it stopped.
    private func sentence(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }

    @Test(arguments: OwnersCall.allCases) func `of another thread's loop stops the process with a sentence`(call: OwnersCall) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [call = call as OwnersCall] in
            try await onThread { call.call(RunLoop.main) }
        }
        #expect(sentence(result).contains("CoreRunLoop: RunLoop.\(call.rawValue): only the loop's own thread may call this"))
    }

    @Test func `of the main program's loop stops the process with a sentence`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await onThread { try RunLoop.runMain {} }
        }
        #expect(sentence(result).contains("CoreRunLoop: RunLoop.runMain: only the main thread may call this"))
    }

    @Test func `a timer that a task asks for on a thread without a running loop is told`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            _ = await Task.detached { Timer.scheduledTimer(withTimeInterval: .zero, repeats: false) { _ in } }.value
            _ = await Task.detached { Performer().perform(Performer.work, afterDelay: .zero) }.value
        }
        #expect(sentence(result).contains("CoreRunLoop: a task asked for a scheduled timer on thread "))
        #expect(sentence(result).contains("CoreRunLoop: a task asked for a method that is to be performed after a delay on thread "))
    }

    @Test func `a timer that an actor of a loop schedules fires, and nothing is told`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let stop = RunLoop.StopToken()
            let scheduler = Scheduler(on: try Thread.runningLoop(until: stop))
            await scheduler.waitForTimer()
            stop.requestStop()
        }
        #expect(!sentence(result).contains("CoreRunLoop:"))
    }

    @Test func `of an actor's isolation stops the process`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let worker = Worker(on: RunLoop.main)
            try await onThread { worker.assumeIsolated { $0.state = 1 } }
        }
        #expect(sentence(result).contains("ncorrect actor executor assumption") || sentence(result).contains("own thread"))
    }

    @Test func `of a scheduled timer, fired on another thread, stops the process with a sentence`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let timer = try await onThread { Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in } }
            timer.fire()
        }
        #expect(sentence(result).contains("CoreRunLoop: a closure that is bound to its thread was called on another one"))
    }

    @Test func `of an observer of a closure, moved to another thread's loop, stops the process with a sentence`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let observer = try await onThread {
                let observer = RunLoop.current.observe(.entry, in: .default) { _, _ in }
                RunLoop.current.remove(observer, forMode: .default)
                return observer
            }
            try await onThread {
                RunLoop.current.add(observer, forMode: .default)
                let alive = RunLoop.current.keepAlive()
                _ = RunLoop.current.run(in: .default, for: .zero)
                alive.cancel()
            }
        }
        #expect(sentence(result).contains("CoreRunLoop: a closure that is bound to its thread was called on another one"))
    }

    @Test func `of a clock that is not moved by hand stops the process with a sentence`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await onThread { ManualTime.advance(by: .seconds(1)) }
        }
        #expect(sentence(result).contains("ManualTime.advance: this thread's clocks are not moved by hand"))
    }

    @Test func `of C's calls stops the process with a sentence`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = unsafe CFRunLoopCopyCurrentMode(unsafeBitCast(0, to: CFRunLoop?.self) as CFRunLoop?)
        }
        #expect(sentence(result).contains("CFRunLoopCopyCurrentMode: the loop is NULL"))
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Bad input` {
    @Test(arguments: [RunLoop.Mode.common, "a mode that nobody has heard of"])
    func `an unknown mode is an error that names it`(mode: RunLoop.Mode) async throws {
        try await onThread {
            _ = #expect(throws: RunLoopError.invalidMode(mode)) { try RunLoop.current.runChecked(in: mode) }
        }
    }

    @Test func `a negative duration is an error that names it`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let negative = Duration.milliseconds(-1)
            loop.perform(inModes: ["own"]) {}
            #expect(throws: RunLoopError.invalidDuration(negative)) { try loop.runChecked(in: "own", for: negative) }
            let first = try loop.runChecked(in: "own", for: .zero)
            let second = try loop.runChecked(in: "own", for: .seconds(1000))
            #expect(first == .timedOut && second == .finished)
            #expect(throws: RunLoopError.invalidDuration(negative)) { try loop.performAndWait(timeout: negative) {} }
            #expect(throws: RunLoopError.invalidDuration(negative)) { try Thread.current.performAndWait(timeout: negative) {} }
            #expect(throws: RunLoopError.invalidDuration(negative)) { try loop.ticks(every: .seconds(1), tolerance: negative) }
        }
    }

    @Test func `a negative duration is nothing to wait for where there is no error`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let alive = loop.keepAlive()
            let start = WallTime.now
            loop.run(for: .seconds(-1000))
            #expect(loop.run(in: .default, for: .seconds(-1000)) == .timedOut)
            #expect(!loop.pump(until: { false }, limit: .seconds(-1000)))
            let tried = Count()
            let sleeper = Thread { while tried.value == 0 { Thread.sleep(for: .milliseconds(1)) } }
            sleeper.start()
            #expect(!sleeper.join(timeout: .seconds(-1000)))
            tried.next()
            #expect(WallTime.now - start < .seconds(500))
            alive.cancel()
        }
    }

    @Test func `a closed descriptor is an error that names it`() {
        let (reading, writing) = makePipe()
        let number = highNumber(for: reading)
        closePipe(reading)
        closePipe(writing)
        closePipe(number)
        #expect(throws: RunLoopError.invalidDescriptor(number)) { try DescriptorSource(descriptor: number) { _ in } }
    }
}
