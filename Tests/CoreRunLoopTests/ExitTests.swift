// SPDX-License-Identifier: Apache-2.0
//
// Ends of threads that unwind nothing: what their frames hold is left, so `make asan-swift` runs these tests without looking for leaks.

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A reference that keeps nothing.
final class WeakThread: @unchecked Sendable {
    private struct Reference: @unchecked Sendable { weak var thread: Thread? }
    private let reference = Mutex(Reference())
    var thread: Thread? {
        get { reference.withLock { $0.thread } }
        set { reference.withLock { $0.thread = newValue } }
    }
}

/// How a thread ends.
private enum End: CaseIterable, Sendable {
    case byReturn, byExit, byExitOfTheSystem, ofAnother, ofAnotherByExit

    func thread(_ body: @escaping @Sendable () -> Void) async throws {
        switch self {
        case .byReturn: Thread.detachNewThread(body)
        case .byExit:
            Thread.detachNewThread {
                body()
                Thread.exit()
            }
        case .byExitOfTheSystem:
            Thread.detachNewThread {
                body()
                pthread_exit(nil)
            }
        case .ofAnother: try await onForeignThread(body)
        case .ofAnotherByExit:
            try await onForeignThread {
                body()
                Thread.exit()
            }
        }
    }
}

/// A thread that runs its loop until a request ends it: what its frames hold is left.
private func loopingToAnExit() -> Thread {
    let thread = Thread { RunLoop.current.run(in: .default, until: RunLoop.StopToken()) }
    thread.start()
    return thread
}

/// A C loop, and how many references to it there are, this one among them.
private final class KeptLoop: @unchecked Sendable {
    private let loop: CFRunLoop = CFRunLoopGetCurrent()
    var count: Int { Int(CFGetRetainCount(unsafeBitCast(loop, to: CFTypeRef.self))) }
}

/// What a task may call.
private func exitThread() { Thread.exit() }

@Suite(.timeLimit(.minutes(10))) struct Exits {
    @Test func `out of a request is an error of the request`() async throws {
        let (first, second) = (loopingToAnExit(), loopingToAnExit())
        await #expect(throws: PerformError.threadFinished) { try await first.run { () -> Void in Thread.exit() } }
        let waiting = try Thread.joinable { () -> PerformError? in
            do { try second.performAndWait { () -> Void in Thread.exit() } } catch { return error as? PerformError }
            return nil
        }
        #expect(try await waiting.value == .threadFinished)
    }

    @Test func `of a thread of which only its loop is known is an error of the request`() async throws {
        let loops = AsyncStream.makeStream(of: RunLoop.self)
        let caller = Task {
            for await loop in loops.stream {
                do { try await loop.run { () -> Void in pthread_exit(nil) } } catch { return error as? PerformError }
            }
            return nil
        }
        try await onForeignThread {
            loops.continuation.yield(RunLoop.of(CFRunLoopGetCurrent()))
            while true { _ = CFRunLoopRunInMode(.defaultMode, 0.001, true) }
        }
        #expect(await caller.value == .threadFinished)
    }

    @Test func `out of a request is an error of those behind it`() async throws {
        let thread = loopingToAnExit()
        let begun = Count()
        thread.perform { while begun.value < 2 { Thread.sleep(for: .microseconds(100)) } }
        thread.perform(in: [.default]) { Thread.exit() }
        let waiting = try Thread.joinable { () -> PerformError? in
            begun.next()
            do { try thread.performAndWait { _ = Issue.record("performed") } } catch { return error as? PerformError }
            return nil
        }
        let suspended = Task {
            begun.next()
            try await thread.run(in: [.default]) { _ = Issue.record("performed") }
        }
        #expect(try await waiting.value == .threadFinished)
        await #expect(throws: PerformError.threadFinished) { try await suspended.value }
    }

    @Test func `out of a request frees those behind it`() async throws {
        let (thread, held, freed) = (loopingToAnExit(), Count(), Count())
        thread.perform { while held.value == 0 { Thread.sleep(for: .microseconds(100)) } }
        func request() {
            let witness = Witness { freed.next() }
            thread.perform { Thread.exit() }
            thread.perform { witness.touch() }
            thread.perform(in: [.default]) { witness.touch() }
        }
        request()
        held.next()
        while freed.value == 0 { await Task.yield() }
    }

    @Test func `out of a job leaves those behind it to another thread`() async throws {
        let (queued, performed) = (Count(), Count())
        let loop = try Thread.runningLoop(until: RunLoop.StopToken())
        loop.perform { while queued.value == 0 { Thread.sleep(for: .microseconds(100)) } }
        // The loop's thread ends in the first of these, the thread that takes its place in the third.
        for number in 0..<4 {
            Task(executorPreference: loop) { if number % 2 == 0 { exitThread() } else { performed.next() } }
        }
        queued.next()
        while performed.value < 2 { await Task.yield() }
        #expect(await Task(executorPreference: loop) { loop.isIsolatingCurrentContext() }.value == true)
    }

    @Test(arguments: End.allCases) private func `or whatever ends a thread has its object freed`(end: End) async throws {
        let ended = Count()
        let seen = WeakThread()
        try await end.thread {
            seen.thread = Thread.current
            Thread.current.threadDictionary["itself"] = Thread.current
            Thread.current.onExit { ended.next() }
        }
        while ended.value == 0 || seen.thread != nil { await Task.yield() }
        #expect(ended.value == 1)
    }

    @Test(arguments: [false, true]) func `out of a run with a token leave nothing of the loop, in the token or elsewhere`(
        isOfTheSystem: Bool
    ) async throws {
        let token = RunLoop.StopToken()
        let outer = try Thread.runningLoop(until: token)
        let kept = try await outer.run { KeptLoop() }
        outer.perform {
            // The inner run's token ends with it, too.
            RunLoop.current.perform { if isOfTheSystem { pthread_exit(nil) } else { Thread.exit() } }
            Unmanaged.passUnretained(RunLoop.current)._withUnsafeGuaranteedRef { $0.run(in: .default, until: token) }
        }
        _ = consume outer
        while kept.count > 1 { await Task.yield() }
        token.requestStop()
    }

    #if !DEBUG  // without optimization Swift itself holds a closure that it calls
        @Test(arguments: [false, true]) func `out of a thread's block free what the block holds`(isOfTheSystem: Bool) async throws {
            let freed = Count()
            func start() {
                let witness = Witness { freed.next() }
                Thread.detachNewThread {
                    witness.touch()
                    if isOfTheSystem { pthread_exit(nil) } else { Thread.exit() }
                }
            }
            start()
            while freed.value == 0 { await Task.yield() }
        }
    #endif

    @Test func `out of an exit's own handler is told once`() async throws {
        let trace = Trace()
        let thread = Thread {
            Thread.current.onExit {
                trace.add("exit")
                Thread.exit()
            }
        }
        thread.start()
        await #expect(throws: ThreadError.exited) { try await thread.value }
        #expect(trace.events == ["exit"])
    }
}
