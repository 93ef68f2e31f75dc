// SPDX-License-Identifier: Apache-2.0
//
// A run of Foundation's loop serves this package's items, and the other way round. Rules: 800 801 802 803 804 807 808 809

import CoreFoundation
import CoreRunLoop
import CoreRunLoopFoundation
import Testing

#if canImport(Glibc)
    import Glibc
#endif

private typealias TheirLoop = Foundation::RunLoop
private typealias TheirTimer = Foundation::Timer

/// Runs `body` on a thread of its own, whose loops nobody has used before.
private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await Thread.joinable(name: "test", body).value
}

/// What the callbacks of one thread have seen.
private final class Seen: @unchecked Sendable {
    var ours = 0
    var theirs = 0
    var text = ""
    var isDone = false

    /// Notes a callback in `text`, and calls `then` at the second.
    func note(_ name: String, thenIfTwo then: () -> Void) {
        text += name
        if text.count == 2 { then() }
    }
}

private let soon = 0.002
private let far = Date(timeIntervalSinceNow: 1000)

/// A timer of Foundation's in `mode` of the calling thread's loop.
@discardableResult
private func theirTimer(
    _ seconds: Double, repeats: Bool = false, in mode: TheirLoop.Mode = .default, _ body: @escaping @Sendable () -> Void
) -> TheirTimer {
    let timer = TheirTimer(timeInterval: seconds, repeats: repeats) { _ in body() }
    TheirLoop.current.add(timer, forMode: mode)
    return timer
}

@discardableResult
private func ourTimer(
    _ seconds: Double, repeats: Bool = false, in mode: RunLoop.Mode = .default, _ body: @escaping @Sendable () -> Void
) -> Timer {
    let timer = Timer(timeInterval: seconds, repeats: repeats) { _ in body() }
    RunLoop.current.add(timer, forMode: mode)
    return timer
}

private func stopTheirs() {
    CoreFoundation::CFRunLoopStop(CoreFoundation::CFRunLoopGetCurrent())
}

/// Calls `body` once, as the last thing before the calling thread's loop of Foundation's sleeps.
private func whenTheirLoopSleeps(_ body: @escaping () -> Void) {
    final class Box {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }
    var context = CoreFoundation::CFRunLoopObserverContext()
    context.info = Unmanaged.passRetained(Box(body)).toOpaque()
    let beforeWaiting: CFOptionFlags = 1 << 5
    let observer = CoreFoundation::CFRunLoopObserverCreate(
        nil, beforeWaiting, false, CFIndex.max, { _, _, info in Unmanaged<Box>.fromOpaque(info!).takeRetainedValue().body() }, &context)
    CoreFoundation::CFRunLoopAddObserver(
        CoreFoundation::CFRunLoopGetCurrent(), observer, CoreFoundation::kCFRunLoopDefaultMode)
}

/// How many descriptors the process has.
private func descriptorCount() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
}

@Suite(.timeLimit(.minutes(10))) struct `Either loop serves both` {
    // MARK: Timers, blocks, sources

    @Test func `a run of Foundation's loop fires this package's timers`() async throws {
        try await onThread {
            let seen = Seen()
            let timer = ourTimer(soon, repeats: true) {
                seen.ours += 1
                if seen.ours == 3 { stopTheirs() }
            }
            #expect(TheirLoop.current.run(mode: .default, before: far))
            #expect(seen.ours == 3)
            timer.invalidate()
        }
    }

    @Test func `a run of this package's loop fires Foundation's timers`() async throws {
        try await onThread {
            let seen = Seen()
            let loop = RunLoop.current
            let timer = theirTimer(soon, repeats: true) {
                seen.theirs += 1
                if seen.theirs == 3 { loop.stop() }
            }
            #expect(loop.run(in: .default, for: .seconds(1000), returnAfterSourceHandled: false) == .stopped)
            timer.invalidate()
        }
    }

    @Test func `blocks of either loop are run by the other`() async throws {
        try await onThread {
            let seen = Seen()
            RunLoop.current.perform { seen.ours += 1 }
            theirTimer(soon) { stopTheirs() }
            _ = TheirLoop.current.run(mode: .default, before: far)
            #expect(seen.ours == 1)
            TheirLoop.current.perform {
                seen.theirs += 1
                RunLoop.current.stop()
            }
            #expect(RunLoop.current.run(in: .default, for: .seconds(1000), returnAfterSourceHandled: false) == .stopped)
            #expect(seen.theirs == 1)
        }
    }

    @Test func `a callback that asks whether the mode is empty leaves the sleep around it awake to this package's loop`() async throws {
        try await onThread {
            let seen = Seen()
            let loop = RunLoop.current
            let source = InputSource<Void> { _ in }
            loop.add(source, forMode: .default)
            TheirLoop.current.perform {
                loop.remove(source, forMode: .default)
                #expect(!TheirLoop.current.run(mode: .default, before: .distantPast))  // the mode is empty
                whenTheirLoopSleeps {
                    Thread {
                        loop.perform {
                            seen.isDone = true
                            stopTheirs()
                        }
                    }.start()
                }
            }
            let limit = Date(timeIntervalSinceNow: 5)
            while !seen.isDone && Date() < limit { _ = TheirLoop.current.run(mode: .default, before: limit) }
            #expect(seen.isDone && Date() < limit)
            source.invalidate()
        }
    }

    @Test func `a source that another thread signals ends a run of Foundation's that returns after one`() async throws {
        try await onThread {
            let seen = Seen()
            let source = InputSource<Void> { _ in seen.ours += 1 }
            RunLoop.current.add(source, forMode: .default)
            let helper = Thread { source.signal() }
            helper.start()
            while seen.ours == 0 { try #require(TheirLoop.current.run(mode: .default, before: far)) }
            source.invalidate()
        }
    }

    @Test func `a source of Foundation's ends a run of this package's that returns after one`() async throws {
        try await onThread {
            let received = Seen()
            var context = CoreFoundation::CFRunLoopSourceContext()
            context.info = Unmanaged.passUnretained(received).toOpaque()
            context.perform = { Unmanaged<Seen>.fromOpaque($0!).takeUnretainedValue().theirs += 1 }
            let source = CoreFoundation::CFRunLoopSourceCreate(nil, 0, &context)
            CoreFoundation::CFRunLoopAddSource(CoreFoundation::CFRunLoopGetCurrent(), source, CoreFoundation::kCFRunLoopDefaultMode)
            CoreFoundation::CFRunLoopSourceSignal(source)
            #expect(RunLoop.current.run(in: .default, for: .seconds(1000), returnAfterSourceHandled: true) == .handledSource)
            #expect(received.theirs == 1)
            CoreFoundation::CFRunLoopSourceInvalidate(source)
        }
    }

    @Test func `a run of this package's finishes after the last source of Foundation's`() async throws {
        try await onThread {
            final class Info { var source: CoreFoundation::CFRunLoopSource? }
            let info = Info()
            _ = RunLoop.current
            var context = CoreFoundation::CFRunLoopSourceContext()
            context.info = Unmanaged.passUnretained(info).toOpaque()
            context.perform = { CoreFoundation::CFRunLoopSourceInvalidate(Unmanaged<Info>.fromOpaque($0!).takeUnretainedValue().source) }
            info.source = CoreFoundation::CFRunLoopSourceCreate(nil, 0, &context)
            CoreFoundation::CFRunLoopAddSource(
                CoreFoundation::CFRunLoopGetCurrent(), info.source, CoreFoundation::kCFRunLoopDefaultMode)
            CoreFoundation::CFRunLoopSourceSignal(info.source)
            #expect(RunLoop.current.run(in: .default, for: .seconds(20), returnAfterSourceHandled: false) == .finished)
        }
    }

    @Test func `a run of this package's that returns after a source goes on after timers of either loop`() async throws {
        try await onThread {
            let seen = Seen()
            ourTimer(soon) { seen.note("o", thenIfTwo: RunLoop.current.stop) }
            theirTimer(2 * soon) { seen.note("t", thenIfTwo: RunLoop.current.stop) }
            let keep = ourTimer(1000) {}
            defer { keep.invalidate() }
            #expect(RunLoop.current.run(in: .default, for: .seconds(1000), returnAfterSourceHandled: true) == .stopped)
            #expect(seen.text.sorted() == ["o", "t"])
        }
    }

    @Test func `requests of other threads are served in a run of Foundation's`() async throws {
        let token = AsyncStream<RunLoop>.makeStream()
        let thread = try Thread.joinable(name: "test") {
            token.continuation.yield(.current)
            let seen = Seen()
            RunLoop.current.perform {}
            while !Thread.current.isCancelled { _ = TheirLoop.current.run(mode: .default, before: far) }
            return seen.ours
        }
        var loops = token.stream.makeAsyncIterator()
        let loop = try #require(await loops.next())
        for number in 0..<1000 {
            let answer = try await loop.run { number }
            #expect(answer == number)
        }
        try await loop.run { Thread.current.cancel() }
        _ = try await thread.value
    }

    // MARK: Modes

    @Test func `modes correspond by name, with common items`() async throws {
        try await onThread {
            let seen = Seen()
            ourTimer(soon, in: RunLoop.Mode("mine")) { seen.note("o", thenIfTwo: stopTheirs) }
            theirTimer(3 * soon, in: TheirLoop.Mode("mine")) { seen.note("t", thenIfTwo: stopTheirs) }
            ourTimer(soon) { seen.note("x", thenIfTwo: RunLoop.current.stop) }
            let keep = ourTimer(1000, in: RunLoop.Mode("mine")) {}
            _ = TheirLoop.current.run(mode: TheirLoop.Mode("mine"), before: far)
            #expect(seen.text.sorted() == ["o", "t"])
            keep.invalidate()
            seen.text = ""
            theirTimer(soon, in: .common) { seen.note("c", thenIfTwo: RunLoop.current.stop) }
            #expect(RunLoop.current.run(in: .default, for: .seconds(1000), returnAfterSourceHandled: false) == .stopped)
            #expect(seen.text.sorted() == ["c", "x"])
        }
    }

    @Test func `a mode that only one loop knows is served by the other`() async throws {
        try await onThread {
            let seen = Seen()
            theirTimer(soon, in: TheirLoop.Mode("theirs")) { seen.theirs += 1 }
            ourTimer(soon, in: RunLoop.Mode("ours")) { seen.ours += 1 }
            #expect(RunLoop.current.run(in: RunLoop.Mode("theirs"), for: .seconds(1000)) == .finished)
            _ = TheirLoop.current.run(mode: TheirLoop.Mode("ours"), before: far)
            #expect(seen.theirs == 1 && seen.ours == 1)
            #expect(RunLoop.current.run(in: RunLoop.Mode("nobody's")) == .finished)
            #expect(!TheirLoop.current.run(mode: TheirLoop.Mode("nobody's"), before: far))
        }
    }

    // MARK: Beginning and end of runs

    @Test func `a run finishes when neither loop has anything left`() async throws {
        try await onThread {
            let seen = Seen()
            _ = RunLoop.current
            theirTimer(soon) { seen.theirs += 1 }
            TheirLoop.current.run()  // would not return if this package's empty loop kept it
            ourTimer(soon) { seen.ours += 1 }
            TheirLoop.current.run()
            #expect(seen.theirs == 1 && seen.ours == 1)
            #expect(!TheirLoop.current.run(mode: .default, before: far))
            theirTimer(soon) { seen.theirs += 1 }
            RunLoop.current.run()
            #expect(seen.theirs == 2)
        }
    }

    @Test func `a stop of either loop ends a run of either`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let keep = [ourTimer(1000) {}, ourTimer(2000) {}]
            for _ in 0..<10 {
                ourTimer(soon) { stopTheirs() }
                #expect(loop.run(in: .default, for: .seconds(1000), returnAfterSourceHandled: false) == .stopped)
                theirTimer(soon) { loop.stop() }
                #expect(loop.run(in: .default, for: .seconds(1000), returnAfterSourceHandled: false) == .stopped)
                ourTimer(soon) { stopTheirs() }
                #expect(CoreFoundation::CFRunLoopRunInMode(CoreFoundation::kCFRunLoopDefaultMode, 1000, false) == .stopped)
                ourTimer(soon) { loop.stop() }
                #expect(CoreFoundation::CFRunLoopRunInMode(CoreFoundation::kCFRunLoopDefaultMode, 1000, false) == .stopped)
            }
            for timer in keep { timer.invalidate() }
        }
    }

    @Test func `another thread stops Foundation's loop while this package's runs`() async throws {
        try await onThread {
            let keep = ourTimer(1000) {}
            _ = TheirLoop.current
            #expect(RunLoop.current.run(in: .default, for: .zero) == .timedOut)
            let theirs = CoreFoundation::CFRunLoopGetCurrent()!
            nonisolated(unsafe) let target = theirs
            ourTimer(soon) { Thread { CoreFoundation::CFRunLoopStop(target) }.start() }
            #expect(RunLoop.current.run(in: .default, for: .seconds(1000), returnAfterSourceHandled: false) == .stopped)
            keep.invalidate()
        }
    }

    @Test func `a loop that is made inside a run of Foundation's joins that run`() async throws {
        try await onThread {
            let seen = Seen()
            theirTimer(soon) {
                ourTimer(soon) { seen.ours += 1 }
            }
            theirTimer(1000) {}
            while seen.ours == 0 { try #require(TheirLoop.current.run(mode: .default, before: far)) }
            let start = SuspendingClock.now
            theirTimer(soon) { ourTimer(soon) { stopTheirs() } }
            #expect(CoreFoundation::CFRunLoopRunInMode(CoreFoundation::kCFRunLoopDefaultMode, 1000, false) == .stopped)
            #expect(SuspendingClock.now - start < .seconds(900))
        }
    }

    @Test func `a limit in the past is one look at both`() async throws {
        try await onThread {
            let seen = Seen()
            ourTimer(0) { seen.ours += 1 }
            theirTimer(0) { seen.theirs += 1 }
            let keep = theirTimer(1000) {}
            usleep(2000)
            _ = TheirLoop.current.run(mode: .default, before: .distantPast)
            #expect(seen.ours == 1 && seen.theirs == 1)
            keep.invalidate()
        }
    }

    @Test(arguments: [true, false]) func `a thread may end in a callback of the other loop`(isOurs: Bool) async {
        let end = AsyncStream<Void>.makeStream()
        let thread = Thread {
            Thread.current.onExit { end.continuation.finish() }
            ourTimer(1000) {}
            theirTimer(1000) {}
            if isOurs {
                ourTimer(soon) { Thread.exit() }
                TheirLoop.current.run()
            } else {
                theirTimer(soon) { Thread.exit() }
                RunLoop.current.run()
            }
            Issue.record("the thread has not ended")
        }
        thread.start()
        for await _ in end.stream {}
    }

    // MARK: Nesting

    @Test func `runs of both nest sixty deep, and no timer is called inside itself`() async throws {
        try await onThread {
            let seen = Seen()
            let loop = RunLoop.current
            let depth = Depth()
            let ticks = [
                ourTimer(0.0001, repeats: true) { depth.note("o") },
                ourTimer(1000) {},
            ]
            let theirs = theirTimer(0.0001, repeats: true) { depth.note("t") }
            @Sendable func descend(_ level: Int) {
                if level == 60 {
                    seen.isDone = true
                } else if level % 2 == 0 {
                    ourTimer(0) { descend(level + 1) }
                    while !seen.isDone { TheirLoop.current.run(until: Date(timeIntervalSinceNow: 0.001)) }
                } else {
                    theirTimer(0) { descend(level + 1) }
                    while !seen.isDone { loop.run(for: .milliseconds(1)) }
                }
            }
            descend(0)
            #expect(seen.isDone)
            #expect(depth.deepest == 1)
            for timer in ticks { timer.invalidate() }
            theirs.invalidate()
        }
    }

    // MARK: What it costs whom

    @Test func `threads with both loops leave no descriptor`() async {
        // In a process of its own, for other tests open and close descriptors meanwhile.
        await #expect(processExitsWith: .success) {
            let before = try descriptorCount()
            for _ in 0..<50 {
                try await onThread {
                    ourTimer(soon) {}
                    theirTimer(soon) {}
                    TheirLoop.current.run()
                }
            }
            // What the process opens once, and a last thread that still ends. On a busy machine several still end for a while.
            let limit = SuspendingClock.now + .seconds(60)
            while try descriptorCount() > before + 10 && SuspendingClock.now < limit { usleep(1000) }
            #expect(try descriptorCount() <= before + 10)
        }
    }
}

/// How deep a timer is called inside itself.
private final class Depth: @unchecked Sendable {
    private var depths: [String: Int] = [:]
    var deepest = 0

    func note(_ name: String) {
        depths[name, default: 0] += 1
        deepest = max(deepest, depths[name]!)
        _ = TheirLoop.current.run(mode: .default, before: .distantPast)
        RunLoop.current.run(for: .zero)
        depths[name]! -= 1
    }
}
