// SPDX-License-Identifier: Apache-2.0
//
// The guide's listings 3-1 to 3-11 in Swift: the same steps, in the overlay's terms. Times are shorter than the guide's.

import CoreRunLoop
import Synchronization
import Testing

/// Events of several threads.
final class Events: Sendable {
    private let list = Mutex<[String]>([])
    func add(_ event: String) { list.withLock { $0.append(event) } }
    var all: [String] { list.withLock { $0 } }
}

@Suite struct `Guide's listings, loops` {
    @Test func `3-1 adding a run loop observer`() async throws {
        let fired = Events()
        let seen = Events()
        try await Thread.joinable {
            autoreleasepool {
                let myRunLoop = RunLoop.current
                let observer = RunLoop.Observer(activities: .allActivities, repeats: true) { _, activity in seen.add("\(activity.rawValue)")
                }
                CFRunLoopAddObserver(myRunLoop.getCFRunLoop(), observer.cfRunLoopObserver, kCFRunLoopDefaultMode)
                Timer.scheduledTimer(withTimeInterval: .milliseconds(5), repeats: true) { _ in fired.add("fired") }
                var loopCount = 3
                repeat {
                    myRunLoop.run(until: .now + .milliseconds(20))
                    loopCount -= 1
                } while loopCount > 0
            }
        }.value
        #expect(fired.all.count >= 3)
        #expect(seen.all.filter { $0 == "\(CFRunLoopActivity.entry.rawValue)" }.count == 3)
    }

    @Test func `3-2 running a run loop`() async throws {
        let passes = try await Thread.joinable { () -> Int in
            var done = false
            var passes = 0
            let source = InputSource<Void> { _ in CFRunLoopStop(CFRunLoopGetCurrent()) }
            RunLoop.current.add(source, forMode: .default)
            source.signal()
            repeat {
                let result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, true)
                passes += 1
                if result == .stopped || result == .finished { done = true }
                if result == .handledSource { source.invalidate() }
            } while !done
            return passes
        }.value
        #expect(passes >= 1 && passes <= 2)
    }

    // 3-3: the object that wraps the source. The overlay's InputSource is most of it.
    private final class RunLoopSource: Sendable {
        let commands: InputSource<Int>
        init(delegate: AppDelegate3, performed: Events) {
            commands = InputSource(
                // 3-4: the source tells the delegate that it has joined a loop
                schedule: { loop, _ in delegate.registerSource(on: loop) },
                // 3-6: and that it has left
                cancel: { loop, _ in delegate.removeSource(from: loop) },
                // 3-5: the commands' turn
                perform: { performed.add("\($0)") })
        }
        // 3-7
        func addToCurrentRunLoop() { RunLoop.current.add(commands, forMode: .default) }
        func invalidate() { commands.invalidate() }
        // 3-9
        func fireAllCommands(on runLoop: RunLoop) { commands.fireAllCommands(on: runLoop) }
    }

    // 3-8: registering and removing with the application's delegate
    private final class AppDelegate3: Sendable {
        let sourcesToPing = Mutex<[RunLoop]>([])
        func registerSource(on loop: RunLoop) { sourcesToPing.withLock { $0.append(loop) } }
        func removeSource(from loop: RunLoop) { sourcesToPing.withLock { $0.removeAll { $0 == loop } } }
    }

    @Test func `3-3 to 3-9 a custom input source`() async throws {
        let delegate = AppDelegate3()
        let performed = Events()
        let source = RunLoopSource(delegate: delegate, performed: performed)
        let worker = Thread {
            source.addToCurrentRunLoop()
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            source.invalidate()
        }
        worker.start()
        while delegate.sourcesToPing.withLock({ $0.isEmpty }) { await Task.yield() }
        source.commands.enqueue(1)
        source.commands.enqueue(2)
        source.fireAllCommands(on: delegate.sourcesToPing.withLock { $0[0] })
        try await worker.value
        #expect(performed.all == ["[1, 2]"])
        #expect(delegate.sourcesToPing.withLock { $0.isEmpty })
    }

    private final class Owner: Sendable {
        let fired = Events()
        func myDoFireTimer1(_ timer: Timer) { fired.add("1") }
        func myDoFireTimer2(_ timer: Timer) { fired.add("2") }
    }

    @Test func `3-10 creating and scheduling timers`() async throws {
        let owner = Owner()
        try await Thread.joinable {
            let myRunLoop = RunLoop.current
            let futureDate = WallTime(timeIntervalSinceNow: 0.01)
            let myTimer = Timer(
                fireAt: futureDate, interval: .milliseconds(5), target: owner, selector: Owner.myDoFireTimer1, repeats: true)
            myRunLoop.add(myTimer, forMode: .default)
            Timer.scheduledTimer(timeInterval: .milliseconds(10), target: owner, selector: Owner.myDoFireTimer2, repeats: true)
            myRunLoop.run(until: .now + .milliseconds(40))
        }.value
        #expect(owner.fired.all.contains("1") && owner.fired.all.contains("2"))
    }

    @Test func `3-11 creating and scheduling a timer with Core Foundation`() async throws {
        let count = try await Thread.joinable { () -> Int in
            let runLoop = CFRunLoopGetCurrent()
            let events = Events()
            var context = CFRunLoopTimerContext(
                version: 0, info: Unmanaged.passUnretained(events).toOpaque(), retain: nil, release: nil, copyDescription: nil)
            let timer = CFRunLoopTimerCreate(
                kCFAllocatorDefault, 0.1, 0.3, 0, 0,
                { _, info in
                    if let info { Unmanaged<Events>.fromOpaque(info).takeUnretainedValue().add("fired") }
                }, &context)
            CFRunLoopAddTimer(runLoop, timer, kCFRunLoopCommonModes)
            _ = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
            CFRunLoopTimerInvalidate(timer)
            return withExtendedLifetime(events) { events.all.count }
        }.value
        #expect(count == 1)
    }
}

/// Article 004: a request on the thread adds a timer. Whether the timer fires depends on how the thread runs its loop.
@Suite struct `Article 004` {
    enum Way: CaseIterable, Sendable {
        case runModeOnce, runModeRepeatedly, run, runUntil, cfRunLoopRun, runInMode
    }

    @Test(arguments: Way.allCases) func `its timer fires unless runMode returns with the request`(way: Way) async throws {
        let fired = Events()
        let port = MachPort()
        let thread = Thread {
            let loop = RunLoop.current
            loop.add(port, forMode: .default)  // the port keeps the loop alive
            switch way {
            case .runModeOnce: #expect(loop.run(mode: .default, before: .distantFuture))
            case .runModeRepeatedly: while port.isValid { _ = loop.run(mode: .default, before: .distantFuture) }
            case .run: loop.run()
            case .runUntil: loop.run(until: .now + .seconds(1000))
            case .cfRunLoopRun: CFRunLoopRun()
            case .runInMode: _ = CFRunLoopRunInMode(.defaultMode, 1000, false)
            }
        }
        thread.start()
        // prepareToAdd: on the thread, adds the timer.
        thread.perform {
            // Where the run returns first the timer is not due then, however long the return takes.
            let timer = Timer(timeInterval: way == .runModeOnce ? .seconds(1000) : .milliseconds(5), repeats: false) { _ in
                fired.add("fired")
                port.invalidate()
                RunLoop.current.stop()
            }
            RunLoop.current.add(timer, forMode: .default)
        }
        try await thread.value
        #expect(fired.all.count == (way == .runModeOnce ? 0 : 1))
    }
}
