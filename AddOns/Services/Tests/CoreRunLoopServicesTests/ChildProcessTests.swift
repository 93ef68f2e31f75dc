// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop
import CoreRunLoopServices
import Testing

/// A thread of its own with a loop that runs until the test is over.
func withLoop<Value: Sendable>(_ body: @Sendable (RunLoop) async throws -> Value) async throws -> Value {
    let (loops, found) = AsyncStream<RunLoop>.makeStream()
    let stop = RunLoop.StopToken()
    let thread = Thread {
        let keep = RunLoop.current.keepAlive()
        found.yield(RunLoop.current)
        RunLoop.current.run(until: stop)
        keep.cancel()
    }
    thread.start()
    defer { stop.requestStop() }
    guard let loop = await loops.first(where: { _ in true }) else { throw CancellationError() }
    return try await body(loop)
}

@Suite struct ChildProcessTests {
    @Test func `A child's output, error and end are collected`() async throws {
        try await withLoop { loop in
            let result = try await ChildProcess.run(
                .name("sh"), arguments: ["-c", "pwd; echo $ONE; cat; echo problem >&2; exit 3"],
                environment: .custom(["ONE": "1", "PATH": "/usr/bin:/bin"]), workingDirectory: "/usr", input: .string("read"),
                output: .string(limit: 100), error: .bytes(limit: 100), on: loop)
            #expect(result.standardOutput == "/usr\n1\nread")
            #expect(result.standardError == Array("problem\n".utf8))
            #expect(result.status == .exited(3))
            #expect(result.processorTime > .zero)
        }
    }

    @Test func `A megabyte goes both ways`() async throws {
        let bytes = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 251) }
        try await withLoop { loop in
            let result = try await ChildProcess.run(.name("cat"), input: .bytes(bytes), output: .bytes(limit: 1 << 20), on: loop)
            #expect(result.standardOutput == bytes)
        }
    }

    @Test func `A closure reads lines as they come and answers`() async throws {
        try await withLoop { loop in
            let (lines, status, problem) = try await ChildProcess.run(
                .name("sh"), arguments: ["-c", "echo ready; read word; echo got $word; echo problem >&2"], error: .string(limit: 100),
                on: loop
            ) { _, output, input in
                var lines: [String] = []
                for try await line in output.lines() {
                    lines.append(line)
                    if line == "ready" { try await input.write("this\n") }
                }
                return lines
            }
            #expect(lines == ["ready", "got this"])
            #expect(status == .exited(0))
            #expect(problem == "problem\n")
        }
    }

    @Test func `A closure reads the lines that come of an input`() async throws {
        try await withLoop { loop in
            let (lines, status, _) = try await ChildProcess.run(.name("sort"), input: .string("b\na\n"), on: loop) { _, output in
                var lines: [String] = []
                for try await line in output.lines() { lines.append(line) }
                return lines
            }
            #expect(lines == ["a", "b"])
            #expect(status == .exited(0))
        }
    }

    @Test(.timeLimit(.minutes(1))) func `Too much in one output ends the child also if the other says nothing`() async throws {
        try await withLoop { loop in
            await #expect(throws: ChildProcessError.self) {
                _ = try await ChildProcess.run(
                    .name("sh"), arguments: ["-c", "yes >&2"], output: .bytes(limit: 10), error: .bytes(limit: 10), on: loop)
            }
            do {
                _ = try await ChildProcess.run(.name("sh"), arguments: ["-c", "yes >&2"], error: .bytes(limit: 10), on: loop) { _, output in
                    for try await _ in output.lines() {}
                }
                Issue.record("yes has ended")
            } catch let error as ChildProcessError {
                #expect(error.reason == .tooMuchOutput(limit: 10))
                #expect("\(error)" == "sh: has written more than 10 bytes, and was ended")
            }
        }
    }

    @Test(.timeLimit(.minutes(1))) func `A time limit and a cancellation hold where nobody runs the loop`() async throws {
        let (loops, found) = AsyncStream<RunLoop>.makeStream()
        let mayEnd = RunLoop.StopToken()
        Thread.detachNewThread {
            found.yield(.current)
            while !mayEnd.isRequested { Thread.sleep(for: .milliseconds(1)) }  // its loop does not run
        }
        defer { mayEnd.requestStop() }
        let loop = try #require(await loops.first { _ in true })
        let (script, grace) = ("trap '' TERM; while :; do sleep 1000; done", Duration.milliseconds(20))
        do {
            _ = try await ChildProcess.run(
                .name("sh"), arguments: ["-c", script], input: .string("read"), output: .bytes(limit: 10), timeLimit: .milliseconds(50),
                grace: grace, on: loop)
            Issue.record("it has ended by itself")
        } catch let error as ChildProcessError {
            #expect(error.reason == .timedOut)
        }
        let (started, tell) = AsyncStream<Void>.makeStream()
        let task = Task {
            try await ChildProcess.run(.name("sh"), arguments: ["-c", script], grace: grace, on: loop) { _, output in
                tell.yield()
                for try await _ in output.lines() {}
            }
        }
        _ = await started.first { _ in true }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }

    @Test func `A loop that has ended is said to have`() async throws {
        let loop = try await Thread.joinable { RunLoop.current }.value
        await #expect(throws: PerformError.threadFinished) {
            _ = try await ChildProcess.run(.name("true"), output: .discarded, on: loop)
        }
    }

    @Test func `What cannot be started says why`() async throws {
        try await withLoop { loop in
            do {
                _ = try await ChildProcess.run(.path("/nowhere"), output: .discarded, on: loop)
                Issue.record("it was started")
            } catch let error as ChildProcessError {
                #expect(error.reason == .execute(2))
                #expect("\(error)" == "/nowhere: cannot be executed: No such file or directory")
            }
            do {
                _ = try await ChildProcess.run(.name("true"), workingDirectory: "/nowhere", output: .discarded, on: loop)
                Issue.record("it was started")
            } catch let error as ChildProcessError {
                #expect(error.reason == .folder(2))
                #expect("\(error)" == "true: the folder /nowhere cannot be entered: No such file or directory")
            }
            do {
                _ = try await ChildProcess.run(.name("true"), arguments: ["a\0b"], output: .discarded, on: loop)
                Issue.record("it was started")
            } catch let error as ChildProcessError {
                #expect(error.reason == .invalid(22))
            }
        }
    }

    @Test func `Too much output ends the child`() async throws {
        try await withLoop { loop in
            do {
                _ = try await ChildProcess.run(.name("yes"), output: .bytes(limit: 100_000), on: loop)
                Issue.record("yes has ended")
            } catch let error as ChildProcessError {
                #expect(error.reason == .tooMuchOutput(limit: 100_000))
            }
        }
    }

    @Test(.timeLimit(.minutes(1))) func `A child that is late is ended, by force if need be`() async throws {
        try await withLoop { loop in
            do {
                _ = try await ChildProcess.run(
                    .name("sh"), arguments: ["-c", "trap '' TERM; sleep 1000 & while :; do wait; done"], output: .bytes(limit: 10),
                    timeLimit: .milliseconds(50), grace: .milliseconds(20), on: loop)
                Issue.record("it has ended by itself")
            } catch let error as ChildProcessError {
                #expect(error.reason == .timedOut)
            }
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func `A task that is cancelled ends its child`(ignoresErrors: Bool) async throws {
        try await withLoop { loop in
            let (started, tell) = AsyncStream<Int32>.makeStream()
            let task = Task {
                try await ChildProcess.run(.name("sh"), arguments: ["-c", "echo ready; exec sleep 1000"], on: loop) { child, output, _ in
                    do {
                        for try await _ in output.lines() { tell.yield(child.processID) }
                    } catch {
                        if !ignoresErrors { throw error }
                    }
                }
            }
            _ = await started.first { _ in true }
            task.cancel()
            await #expect(throws: CancellationError.self) { _ = try await task.value }
        }
    }
}
