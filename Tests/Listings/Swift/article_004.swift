// SPDX-License-Identifier: Apache-2.0
//
// Article 004's samples: a source before and while the loop runs, a timer that moves its own date, with a context and with a closure, one
// that stops the loop, one in several modes, and a port that keeps a loop alive and is sent what cannot be sent. Seconds are
// hundredths here. Its prepareToAdd experiment is in guide_loops.swift.

import CoreRunLoop
import Testing

/// What the samples' C functions do: they log.
private func makeSource(_ log: Events) -> CFRunLoopSource {
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passRetained(log).toOpaque()
    context.release = { info in Unmanaged<Events>.fromOpaque(info!).release() }
    context.schedule = { info, _, _ in Unmanaged<Events>.fromOpaque(info!).takeUnretainedValue().add("schedule") }
    context.cancel = { info, _, _ in Unmanaged<Events>.fromOpaque(info!).takeUnretainedValue().add("cancel") }
    context.perform = { info in Unmanaged<Events>.fromOpaque(info!).takeUnretainedValue().add("perform") }
    return CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context)
}

/// The sample's log and counter.
private final class Info {
    let log = Events()
    var i = 1
}

private final class ZPZWorkerClass: NSPortDelegate {
    let heard = Events()
    func handle(_ message: PortMessage) { heard.add("\(message.msgid)") }

    /// Strings are no components: NSMachPort carries data and ports.
    func sendPortMessage(_ remotePort: Port, _ selfPort: Port) -> Bool {
        var array: [any Sendable] = []
        array.append("pengzu")
        array.append("zhou")
        selfPort.delegate = self
        return remotePort.send(before: .now, components: array, from: selfPort, reserved: 0)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Article 004, the samples` {
    @Test func `1.2 a source that is added before the run`() async throws {
        let log = Events()
        try await Thread.joinable {
            #expect(!RunLoop.current.run(mode: .default, before: .distantFuture))  // with nothing in it, it is not entered
            let source = makeSource(log)
            let loop = CFRunLoopGetCurrent()
            #expect(CFRunLoopSourceIsValid(source))
            CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
            CFRunLoopSourceSignal(source)
            CFRunLoopWakeUp(loop)
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            // Unlike the article says, the source stays until it is removed or the thread ends.
            #expect(CFRunLoopContainsSource(loop, source, kCFRunLoopDefaultMode))
            log.add("end")
        }.value
        while log.all.count < 4 { await Task.yield() }
        #expect(log.all == ["schedule", "perform", "end", "cancel"])
    }

    @Test func `1.2 note 1: a source that is added while the loop runs`() async throws {
        let log = Events()
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        while !loop.isWaiting { await Task.yield() }
        let source = makeSource(log)
        CFRunLoopAddSource(loop.getCFRunLoop(), source, kCFRunLoopDefaultMode)
        CFRunLoopSourceSignal(source)
        #expect(log.all == ["schedule"])
        CFRunLoopWakeUp(loop.getCFRunLoop())
        while log.all.count < 2 { await Task.yield() }
        CFRunLoopSourceInvalidate(source)
        #expect(log.all == ["schedule", "perform", "cancel"])
        stop.requestStop()
    }

    @Test func `2.2 a timer with a context moves its next date`() async throws {
        try await Thread.joinable {
            let info = Info()
            var context = CFRunLoopTimerContext(
                version: 0, info: Unmanaged.passUnretained(info).toOpaque(), retain: nil, release: nil, copyDescription: nil)
            let start = CFAbsoluteTimeGetCurrent()
            let timer = CFRunLoopTimerCreate(
                kCFAllocatorDefault, start, 0.02, 0, 0,
                { timer, info in
                    let info = Unmanaged<Info>.fromOpaque(info!).takeUnretainedValue()
                    info.log.add("timer call back")
                    if info.i == 1 { CFRunLoopTimerSetNextFireDate(timer, CFAbsoluteTimeGetCurrent() + 0.05) }
                    info.i += 1
                    if info.i == 4 { CFRunLoopTimerInvalidate(timer) }
                }, &context)
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))  // a timer does not end it; its last firing does
            #expect(info.log.all.count == 3)
            #expect(CFAbsoluteTimeGetCurrent() - start >= 0.069)  // at once, 0.05 later, 0.02 after that
            #expect(CFRunLoopTimerGetInterval(timer) == 0.02)
        }.value
    }

    @Test func `2.2 a timer with a closure moves its next date`() async throws {
        try await Thread.joinable {
            let info = Info()
            let start = WallTime.now
            let timer = Timer(fire: start, interval: .milliseconds(20), repeats: true) { [info = UncheckedInfo(info)] blockTimer in
                info.value.log.add("timer call back")
                if info.value.i == 1 { blockTimer.fireDate = .now + .milliseconds(50) }
                info.value.i += 1
                if info.value.i == 4 { blockTimer.invalidate() }
            }
            RunLoop.current.add(timer, forMode: .default)
            CFRunLoopRun()
            #expect(info.log.all.count == 3)
            #expect(WallTime.now - start >= .milliseconds(69))
        }.value
    }

    @Test func `2.2 a timer that stops the loop stays valid`() async throws {
        try await Thread.joinable {
            let fired = Events()
            let timer = Timer(fire: .now, interval: .milliseconds(2), repeats: true) { _ in
                fired.add("fired")
                CFRunLoopStop(CFRunLoopGetCurrent())
            }
            RunLoop.current.add(timer, forMode: .default)
            for number in 1...2 {
                #expect(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1000, false) == .stopped)
                #expect(fired.all.count == number && timer.isValid)
            }
            timer.invalidate()
        }.value
    }

    @Test func `2, the end: a timer is in one loop, in several of its modes`() async throws {
        let timer = Timer(timeInterval: .seconds(1000), repeats: true) { _ in }
        try await Thread.joinable {
            for mode in [RunLoop.Mode.default, .default, "second"] { RunLoop.current.add(timer, forMode: mode) }
            let inBoth = RunLoop.current.contains(timer, in: .default) && RunLoop.current.contains(timer, in: "second")
            #expect(inBoth)
            Thread.detachNewThread { RunLoop.current.add(timer, forMode: .default) }
            timer.invalidate()
        }.value
    }

    @Test func `3 a port keeps the loop alive, and strings are refused`() async throws {
        let worker = ZPZWorkerClass()
        let (remotePort, selfPort) = (NSMachPort(), NSMachPort())
        let thread = Thread {
            let loop = RunLoop.current
            #expect(!worker.sendPortMessage(remotePort, selfPort))
            loop.add(selfPort, forMode: .default)
            repeat { #expect(loop.run(mode: .default, before: .distantFuture)) } while worker.heard.all.isEmpty
        }
        thread.start()
        #expect(selfPort.send(before: .now + .seconds(1000), msgid: 7, components: nil, from: nil))
        try await thread.value
        #expect(worker.heard.all == ["7"])
        selfPort.invalidate()
    }
}

/// Only the loop's thread uses it.
private struct UncheckedInfo: @unchecked Sendable {
    let value: Info
    init(_ value: Info) { self.value = value }
}
