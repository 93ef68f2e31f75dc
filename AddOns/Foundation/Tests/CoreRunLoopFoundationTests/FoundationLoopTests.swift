// SPDX-License-Identifier: Apache-2.0
//
// Foundation's own users of loops, in a run of this package's loop.

import CoreFoundation
import CoreRunLoopFoundation
import Testing

private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await Thread.joinable(name: "test", body).value
}

/// What the callbacks of one thread have seen.
private final class Seen: @unchecked Sendable {
    var text = ""
    var count = 0
    var last: RunLoop?
}

/// A closure of one thread, for a timer that asks for one of any.
private final class Box: @unchecked Sendable {
    let tick: (String) -> Void
    init(_ tick: @escaping (String) -> Void) { self.tick = tick }
}

@Suite(.timeLimit(.minutes(10))) struct `A run with Foundation` {
    @Test func `performs what was asked of Foundation's loop`() async throws {
        try await onThread {
            let seen = Seen()
            let loop = RunLoop.current
            Foundation::RunLoop.current.perform {
                seen.last = .current
                loop.stop()
            }
            #expect(loop.run(in: .default, for: .seconds(1000)) == .stopped)
            #expect(seen.last == loop)
        }
    }

    @Test func `posts what Foundation's notification queue keeps for an idle loop`() async throws {
        try await onThread {
            let name = Notification.Name("idle")
            let seen = Seen()
            let loop = RunLoop.current
            let observer = NotificationCenter.default.addObserver(forName: name, object: seen, queue: nil) { _ in
                seen.count += 1
                loop.stop()
            }
            defer { NotificationCenter.default.removeObserver(observer) }
            Foundation::NotificationQueue.default.enqueue(Notification(name: name, object: seen), postingStyle: .whenIdle)
            #expect(seen.count == 0)
            loop.add(Timer(timeInterval: 1000, repeats: false) { _ in }, forMode: .default)  // an observer keeps no run
            #expect(loop.run(in: .default, for: .seconds(1000)) == .stopped)
            #expect(seen.count == 1)
        }
    }

    @Test func `serves the timers of both`() async throws {
        try await onThread {
            let seen = Seen()
            let loop = RunLoop.current
            let tick: (String) -> Void = { name in
                seen.text += name
                if ["o", "t"].allSatisfy({ name in seen.text.filter { String($0) == name }.count >= 5 }) { loop.stop() }
            }
            let ours = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { _ in tick("o") }
            let box = Box(tick)
            let theirs = Foundation::Timer(timeInterval: 0.001, repeats: true) { _ in box.tick("t") }
            Foundation::RunLoop.current.add(theirs, forMode: .default)
            #expect(loop.run(in: .default, for: .seconds(1000)) == .stopped)
            ours.invalidate()
            theirs.invalidate()
        }
    }

    @Test func `is woken by requests of other threads, one after the other`() async throws {
        let token = AsyncStream<RunLoop>.makeStream()
        let thread = try Thread.joinable(name: "test") {
            token.continuation.yield(.current)
            let alive = RunLoop.current.keepAlive()
            let result = RunLoop.current.run(in: .default)
            alive.cancel()
            return result
        }
        var loops = token.stream.makeAsyncIterator()
        let loop = try #require(await loops.next())
        for number in 0..<1000 {
            let answer = try await loop.run { number }
            #expect(answer == number)
        }
        loop.stop()
        let result = try await thread.value
        #expect(result == .stopped)
    }

    @Test func `handles all that is ready, not what became so last`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let seen = Seen()
            let sources = (0..<10).map { _ in
                InputSource<Void> { _ in
                    seen.count += 1
                    if seen.count == 10 { loop.stop() }
                }
            }
            let pipes = (0..<10).map { _ in Pipe() }
            let descriptors = try pipes.map { pipe in
                pipe.fileHandleForWriting.write(Data([1]))
                return try DescriptorSource(descriptor: pipe.fileHandleForReading.fileDescriptor) { _ in
                    seen.text += "d"
                    _ = pipe.fileHandleForReading.readData(ofLength: 1)
                    if seen.text.count == 10 { for source in sources { source.signal() } }
                }
            }
            for source in descriptors { loop.add(source, forMode: .default) }
            for source in sources { loop.add(source, forMode: .default) }
            #expect(loop.run(in: .default, for: .seconds(1000)) == .stopped)
            #expect(seen.text == String(repeating: "d", count: 10))
            #expect(seen.count == 10)
            for source in descriptors { source.invalidate() }
            for source in sources { source.invalidate() }
        }
    }

    @Test func `ends at its limit, and when Foundation's loop is stopped`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let keep = Timer(timeInterval: 1000, repeats: false) { _ in }
            loop.add(keep, forMode: .default)
            #expect(loop.run(in: .default, for: .zero) == .timedOut)
            let start = SuspendingClock.now
            #expect(loop.run(in: .default, for: .milliseconds(20)) == .timedOut)
            #expect(SuspendingClock.now - start >= .milliseconds(20))
            let stop = Foundation::Timer(timeInterval: 0.001, repeats: false) { _ in
                CoreFoundation::CFRunLoopStop(CoreFoundation::CFRunLoopGetCurrent())
            }
            Foundation::RunLoop.current.add(stop, forMode: .default)
            #expect(loop.run(in: .default, for: .seconds(1000)) == .stopped)
            #expect(!loop.isWaiting)
        }
    }
}
