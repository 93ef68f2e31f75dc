// SPDX-License-Identifier: Apache-2.0
//
// Article 003's samples that differ from the guide's: its source tells its client without waiting, and its timer is in the default mode
// alone. Its ports are the guide's.

import CoreRunLoop
import Synchronization
import Testing

/// The object that wraps the C source: its info, unretained, as printed.
private final class RunLoopSource: Sendable {
    private let runLoopSource = Mutex<CFRunLoopSource?>(nil)
    private let commands = Mutex<[Int]>([])
    let client: Client
    let fired = Events()

    init(client: Client) {
        self.client = client
        var context = CFRunLoopSourceContext()
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.schedule = { info, loop, _ in
            let source = Unmanaged<RunLoopSource>.fromOpaque(info!).takeUnretainedValue()
            let context = RunLoopContext(source: source, loop: RunLoop.of(loop!))
            source.client.perform(Client.registerSource, on: source.client.thread, with: context, waitUntilDone: false)
        }
        context.perform = { info in Unmanaged<RunLoopSource>.fromOpaque(info!).takeUnretainedValue().sourceFired() }
        context.cancel = { info, loop, _ in
            let source = Unmanaged<RunLoopSource>.fromOpaque(info!).takeUnretainedValue()
            let context = RunLoopContext(source: source, loop: RunLoop.of(loop!))
            source.client.perform(Client.removeSource, on: source.client.thread, with: context, waitUntilDone: false)
        }
        runLoopSource.withLock { $0 = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context) }
    }

    private var source: CFRunLoopSource? { runLoopSource.withLock { $0 } }

    func addToCurrentRunloop() { CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode) }

    func invalidate() { CFRunLoopSourceInvalidate(source) }

    var isValid: Bool { CFRunLoopSourceIsValid(source) }

    func sourceFired() {
        let taken = commands.withLock { commands in
            defer { commands = [] }
            return commands
        }
        for command in taken { fired.add("\(command)") }
    }

    func addCommand(_ command: Int) { commands.withLock { $0.append(command) } }

    func fireAllCommands(on runloop: RunLoop) {
        CFRunLoopSourceSignal(source)
        CFRunLoopWakeUp(runloop.getCFRunLoop())
    }
}

private struct RunLoopContext: Sendable {
    let source: RunLoopSource
    let loop: RunLoop
}

/// In the place of the application's delegate; its thread stands for the main one.
private final class Client: Performing, Sendable {
    let thread: Thread
    let sourcesToPing = Mutex<[RunLoopContext]>([])
    let heard = Events()
    init(thread: Thread) { self.thread = thread }

    func registerSource(_ sourceInfo: RunLoopContext) {
        heard.add("registered")
        sourcesToPing.withLock { $0.append(sourceInfo) }
    }

    func removeSource(_ sourceInfo: RunLoopContext) {
        heard.add("removed")
        sourcesToPing.withLock { contexts in contexts.removeAll { $0.source === sourceInfo.source && $0.loop == sourceInfo.loop } }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `Article 003` {
    @Test func `its source's client hears of the end later, and nobody waits`() async throws {
        let stop = RunLoop.StopToken()
        let main = Thread { RunLoop.current.run(in: .default, until: stop) }
        main.start()
        let client = Client(thread: main)
        let source = RunLoopSource(client: client)
        let worker = Thread {
            source.addToCurrentRunloop()
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            source.invalidate()
            source.addToCurrentRunloop()  // no more: an invalid source cannot be added
            #expect(!RunLoop.current.run(mode: .default, before: .now))
        }
        worker.start()
        while client.sourcesToPing.withLock({ $0.isEmpty }) { await Task.yield() }
        for command in 1...3 { source.addCommand(command) }
        source.fireAllCommands(on: client.sourcesToPing.withLock { $0[0].loop })
        try await worker.value
        while client.heard.all.count < 2 { await Task.yield() }
        #expect(source.fired.all == ["1", "2", "3"])
        #expect(client.heard.all == ["registered", "removed"])
        #expect(client.sourcesToPing.withLock { $0.isEmpty } && !source.isValid)
        stop.requestStop()
        try await main.value
    }

    @Test func `its timer waits for the default mode, and what it missed is one firing`() async throws {
        let fired = try await Thread.joinable { () -> Int in
            let events = Events()
            var context = CFRunLoopTimerContext(
                version: 0, info: Unmanaged.passUnretained(events).toOpaque(), retain: nil, release: nil, copyDescription: nil)
            let timer = CFRunLoopTimerCreate(
                kCFAllocatorDefault, 0.1, 0.003, 0, 0,
                { _, info in
                    if let info { Unmanaged<Events>.fromOpaque(info).takeUnretainedValue().add("fired") }
                }, &context)
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
            let alive = RunLoop.current.keepAlive(in: "other")
            #expect(CFRunLoopRunInMode(RunLoop.Mode("other").name, 0.02, false) == .timedOut)
            #expect(events.all.isEmpty)
            alive.cancel()
            _ = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
            CFRunLoopTimerInvalidate(timer)
            return withExtendedLifetime(events) { events.all.count }
        }.value
        #expect(fired == 1)
    }
}
