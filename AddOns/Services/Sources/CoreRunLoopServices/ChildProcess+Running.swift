// SPDX-License-Identifier: Apache-2.0

import CCoreRunLoop
public import CoreRunLoop
import CoreRunLoopShims

extension ChildProcess {
    /// Runs a program to its end, and returns what it wrote.
    ///
    /// The output is complete: it is read until nobody can write to it any more, which may be a child of the child that lives longer.
    ///
    /// - Parameters:
    ///   - executable: The file.
    ///   - arguments: Those behind the name.
    ///   - environment: What the child has for its environment.
    ///   - workingDirectory: Where it begins; `nil` is where this program is.
    ///   - input: What it reads.
    ///   - output: Where its standard output goes.
    ///   - error: Where its standard error goes.
    ///   - timeLimit: How long all that may take; `nil` is for ever.
    ///   - grace: The time between SIGTERM and SIGKILL when it has to end early.
    ///   - loop: The loop that serves it. Somebody has to run it: the call waits for it. Only a time limit, and the cancellation of the
    ///     task, hold without.
    /// - Throws: ``ChildProcessError``; `CancellationError` when the task is cancelled; `PerformError.threadFinished` when the loop's
    ///   thread has ended before. The child has ended then.
    ///
    /// The corresponding C function is `CRLChildCreate`.
    public static func run<Text: Sendable, Problem: Sendable>(
        _ executable: Executable, arguments: [String] = [], environment: Environment = .inherit, workingDirectory: String? = nil,
        input: Input = .none, output: Output<Text>, error: Output<Problem> = .discarded, timeLimit: Duration? = nil,
        grace: Duration = .seconds(2), on loop: RunLoop
    ) async throws -> Result<Text, Problem> {
        try Task.checkCancellation()
        let child = try start(executable, arguments, environment, workingDirectory, [input.kind, output.kind, error.kind], on: loop)
        let run = try ChildRun(child, grace)
        return try await run.end(after: timeLimit) {
            async let written: Void = run.write(input)
            async let text = run.collect(1, output)
            async let problem = run.collect(2, error)
            let (standardOutput, standardError) = try await (text, problem)
            let told = await child.end.wait()
            await written
            return Result(
                processID: child.processID, status: told.status, processorTime: told.processorTime, standardOutput: standardOutput,
                standardError: standardError)
        }
    }

    /// Runs a program, and a closure that reads what it writes as it comes.
    ///
    /// ```swift
    /// let (count, status, _) = try await ChildProcess.run(.name("sort"), input: .string("b\na\n"), on: loop) { _, output in
    ///     var count = 0
    ///     for try await line in output.lines() { print(line); count += 1 }
    ///     return count
    /// }
    /// ```
    ///
    /// The closure gets the child and its standard output. What remains of that when the closure returns is closed. A child that a thrown
    /// error leaves behind is ended. The other parameters are those of the form with an `output`.
    ///
    /// - Returns: What the closure returned, how the child ended, and what it wrote to its standard error.
    public static func run<Value: Sendable, Problem: Sendable>(
        _ executable: Executable, arguments: [String] = [], environment: Environment = .inherit, workingDirectory: String? = nil,
        input: Input = .none, error: Output<Problem> = .discarded, timeLimit: Duration? = nil, grace: Duration = .seconds(2),
        on loop: RunLoop, body: @escaping @Sendable (ChildProcess, _ output: ByteStream) async throws -> Value
    ) async throws -> (value: Value, status: ChildProcessSource.Status, standardError: Problem) {
        try Task.checkCancellation()
        let child = try start(executable, arguments, environment, workingDirectory, [input.kind, .writes, error.kind], on: loop)
        let run = try ChildRun(child, grace)
        return try await run.end(after: timeLimit) {
            async let written: Void = run.write(input)
            let result = try await run.stream(error) { output in try await body(child, output) }
            await written
            return result
        }
    }

    /// Runs a program, and a closure that reads what it writes as it comes, and writes what it reads.
    ///
    /// The closure gets the child, its standard output, and its standard input. Both are closed when it returns, so that a child that reads
    /// to the end of its input ends; it may close the input earlier. The rest is as in the form with an `input`.
    ///
    /// - Returns: What the closure returned, how the child ended, and what it wrote to its standard error.
    public static func run<Value: Sendable, Problem: Sendable>(
        _ executable: Executable, arguments: [String] = [], environment: Environment = .inherit, workingDirectory: String? = nil,
        error: Output<Problem> = .discarded, timeLimit: Duration? = nil, grace: Duration = .seconds(2), on loop: RunLoop,
        body: @escaping @Sendable (ChildProcess, _ output: ByteStream, _ input: ByteStream) async throws -> Value
    ) async throws -> (value: Value, status: ChildProcessSource.Status, standardError: Problem) {
        try Task.checkCancellation()
        let child = try start(executable, arguments, environment, workingDirectory, [.reads, .writes, error.kind], on: loop)
        let run = try ChildRun(child, grace)
        guard let input = run.streams[0] else { throw child.error(.resources(Int32(SHIM_ENOMEM))) }
        return try await run.end(after: timeLimit) { try await run.stream(error) { output in try await body(child, output, input) } }
    }

    // MARK: Starting

    private static func start(
        _ executable: Executable, _ arguments: [String], _ environment: Environment, _ folder: String?, _ kinds: [CRLChildDescriptorKind],
        on loop: RunLoop
    ) throws -> ChildProcess {
        var variables: [String]?
        if case .custom(let values) = environment { variables = values.map { "\($0)=\($1)" } }
        let texts = [executable.file] + arguments + (variables ?? []) + (folder.map { [$0] } ?? [])
        if texts.contains(where: { $0.utf8.contains(0) }) {
            throw ChildProcessError(.invalid(Int32(SHIM_EINVAL)), program: executable.file)
        }
        let descriptors = kinds.enumerated().map { number, kind in
            CRLChildDescriptor(number: Int32(number), kind: kind, descriptor: Int32(number))
        }
        let end = ChildEnd()
        var failure = CRLChildError()
        let made = unsafe withTexts([executable.file] + arguments) { arguments in
            unsafe withTexts(variables) { variables in
                unsafe withTexts(folder.map { [$0] }) { folder in
                    unsafe descriptors.withUnsafeBufferPointer { descriptors in
                        var specification = unsafe CRLChildSpecification()
                        unsafe specification.arguments = arguments
                        unsafe specification.environment = variables
                        unsafe specification.folder = folder?.pointee
                        unsafe specification.descriptors = descriptors.baseAddress
                        unsafe specification.descriptorCount = descriptors.count
                        unsafe specification.group = -1
                        return unsafe create(&specification, end, &failure)
                    }
                }
            }
        }
        guard let made else { throw ChildProcessError(failure, program: executable.file, folder: folder) }
        let child = ChildProcess(child: made, end: end, program: executable.file, loop: loop)
        if !CRLChildScheduleWithRunLoop(made, loop.getCFRunLoop(), kCFRunLoopCommonModes) {
            _ = CRLChildKill(made, 9, true)
            throw loop.hasEnded ? PerformError.threadFinished : child.error(.resources(Int32(SHIM_ENOMEM)))
        }
        return child
    }

    private static func create(
        _ specification: UnsafePointer<CRLChildSpecification>, _ end: ChildEnd, _ failure: UnsafeMutablePointer<CRLChildError>
    ) -> CRLChild? {
        var context = unsafe CRLSourceContext()
        unsafe context.info = Unmanaged.passRetained(end).toOpaque()
        unsafe context.release = { info in if let info = unsafe info { unsafe Unmanaged<ChildEnd>.fromOpaque(info).release() } }
        let made = unsafe CRLChildCreate(
            nil, specification,
            { _, end, info in
                guard let end = unsafe end?.pointee, let info = unsafe info else { return }
                let code = shim_exit_code(end.waitStatus)
                let signal = shim_exit_signal(end.waitStatus)
                let time = [end.usage.ru_utime, end.usage.ru_stime].reduce(Duration.zero) { sum, part in
                    sum + .seconds(part.tv_sec) + .microseconds(part.tv_usec)
                }
                unsafe Unmanaged<ChildEnd>.fromOpaque(info).takeUnretainedValue().tell(
                    .init(status: end.waitStatus == -1 ? .unknown : code >= 0 ? .exited(code) : .signalled(signal), processorTime: time))
            }, &context, failure)
        if made == nil { unsafe Unmanaged<ChildEnd>.fromOpaque(context.info).release() }
        return made
    }
}

/// A child with its pipes, for which a task waits.
private struct ChildRun: Sendable {
    let child: ChildProcess
    /// Of the descriptors 0 to 2, where there is a pipe.
    let streams: [ByteStream?]
    /// Between SIGTERM and SIGKILL.
    let grace: Duration

    init(_ child: ChildProcess, _ grace: Duration) throws {
        do {
            streams = try (0...2).map { number in
                let descriptor = CRLChildTakeDescriptor(child.child, Int32(number))
                return descriptor >= 0 ? try ByteStream(descriptor: descriptor, on: child.loop) : nil
            }
        } catch {
            child.terminate(grace: .zero)
            throw error
        }
        self.child = child
        self.grace = grace
    }

    // MARK: Ending

    /// Has the child end when the task is cancelled, when the time is over, and when the closure throws; waits for it in any case.
    func end<Value: Sendable>(after limit: Duration?, _ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        do {
            return try await withThrowingTaskGroup(of: Value.self) { group in
                group.addTask { try await work() }
                if let limit {
                    group.addTask {
                        try await Task.sleep(for: limit)
                        throw child.error(.timedOut)
                    }
                }
                defer { group.cancelAll() }
                return try await withTaskCancellationHandler {
                    do {
                        guard let value = try await group.next() else { throw CancellationError() }
                        try Task.checkCancellation()  // a closure may have taken the closed streams for their ends
                        return value
                    } catch {
                        stop()
                        throw error
                    }
                } onCancel: {
                    stop()
                }
            }
        } catch {
            _ = await child.end.wait()
            if let failure = child.end.failure { throw failure }
            if Task.isCancelled, !(error is ChildProcessError) { throw CancellationError() }
            throw error
        }
    }

    /// Closing the streams ends all waits for them, also for those that a child of the child keeps open. From here on the loop need not
    /// run: another one brings SIGKILL, and tells the end.
    private func stop() {
        child.leaveLoop()
        child.terminate(grace: grace)
        for stream in streams { stream?.close() }
    }

    // MARK: Bytes

    /// A child that reads no more is no error.
    func write(_ input: ChildProcess.Input) async {
        if case .bytes(let bytes) = input { try? await streams[0]?.write(bytes) }
        streams[0]?.close()
    }

    func collect<Value>(_ number: Int, _ output: ChildProcess.Output<Value>) async throws -> Value {
        var collected: [UInt8] = []
        if let stream = streams[number] {
            for try await chunk in stream.chunks() {
                if chunk.count > output.limit - collected.count {
                    // The child may wait for somebody to read, and the other output for the child.
                    let failure = child.error(.tooMuchOutput(limit: output.limit))
                    child.end.fail(failure)
                    stop()
                    throw failure
                }
                collected += chunk
            }
            stream.close()
        }
        return output.make(collected)
    }

    /// Has the closure read the child's output.
    func stream<Value: Sendable, Problem: Sendable>(
        _ error: ChildProcess.Output<Problem>, _ body: @escaping @Sendable (ByteStream) async throws -> Value
    ) async throws -> (value: Value, status: ChildProcessSource.Status, standardError: Problem) {
        guard let output = streams[1] else { throw child.error(.resources(Int32(SHIM_ENOMEM))) }
        async let problem = collect(2, error)
        let value = try await body(output)
        output.close()
        streams[0]?.close()
        return (value, await child.end.wait().status, try await problem)
    }
}

extension ChildProcess {
    fileprivate func error(_ reason: ChildProcessError.Reason) -> ChildProcessError { ChildProcessError(reason, program: program) }

    /// Has a loop tell the end that runs at any rate, in the place of the program's, if there is such a one.
    fileprivate func leaveLoop() {
        guard let service = RunLoop.serving else { return }
        CRLChildUnscheduleFromRunLoop(child, loop.getCFRunLoop(), kCFRunLoopCommonModes)
        if CRLChildScheduleWithRunLoop(child, service, kCFRunLoopCommonModes) { return }
        _ = CRLChildKill(child, 9, true)
        if !CRLChildScheduleWithRunLoop(child, loop.getCFRunLoop(), kCFRunLoopCommonModes) {
            end.tell(ChildEnd.Told(status: .unknown, processorTime: .zero))  // without memory
        }
    }
}

/// Texts without zeros as a C list that ends with NULL; no list for `nil`.
private func withTexts<Value>(_ texts: [String]?, _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Value) -> Value {
    guard let texts else { return body(nil) }
    let bytes = texts.flatMap { $0.utf8CString }
    return unsafe bytes.withUnsafeBufferPointer { bytes in
        var list: [UnsafePointer<CChar>?] = unsafe []
        var place = 0
        for text in texts {
            unsafe list.append(bytes.baseAddress.map { unsafe $0 + place })
            place += text.utf8.count + 1
        }
        unsafe list.append(nil)
        return unsafe list.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
}
