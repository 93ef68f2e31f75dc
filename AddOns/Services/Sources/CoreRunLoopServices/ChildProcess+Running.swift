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
    ///   - loop: The loop that serves it.
    /// - Throws: ``ChildProcessError``; `CancellationError` when the task is cancelled. The child has ended then.
    ///
    /// The corresponding C function is `CRLChildCreate`.
    public static func run<Text: Sendable, Problem: Sendable>(
        _ executable: Executable, arguments: [String] = [], environment: Environment = .inherit, workingDirectory: String? = nil,
        input: Input = .none, output: Output<Text>, error: Output<Problem> = .discarded, timeLimit: Duration? = nil,
        grace: Duration = .seconds(2), on loop: RunLoop
    ) async throws -> Result<Text, Problem> {
        try Task.checkCancellation()
        let kinds = [input == .none ? .nothing : CRLChildDescriptorKind.reads, output.kind, error.kind]
        let child = try start(executable, arguments, environment, workingDirectory, kinds, on: loop)
        let streams = try child.streams(kinds, on: loop)
        return try await child.ending(grace: grace, after: timeLimit, streams) {
            async let written: Void = child.write(input, to: streams[0])
            async let text = child.collect(streams[1], limit: output.limit)
            async let problem = child.collect(streams[2], limit: error.limit)
            let (bytes, errorBytes) = try await (text, problem)
            let told = await child.end.wait()
            await written
            return Result(
                processID: child.processID, status: told.status, processorTime: told.processorTime, standardOutput: output.make(bytes),
                standardError: error.make(errorBytes))
        }
    }

    /// Runs a program, and a closure that reads what it writes as it comes, and writes what it reads.
    ///
    /// What remains when the closure returns is closed, so that a child that reads to the end of its input ends. One that a thrown error
    /// leaves behind is ended.
    ///
    /// The closure gets the child, its standard output, such as `ByteStream.lines`, and its standard input. The other parameters are
    /// those of `run` with an output.
    ///
    /// - Returns: What the closure returned, and how the child ended.
    public static func run<Value: Sendable>(
        _ executable: Executable, arguments: [String] = [], environment: Environment = .inherit, workingDirectory: String? = nil,
        timeLimit: Duration? = nil, grace: Duration = .seconds(2), on loop: RunLoop,
        body: @escaping @Sendable (ChildProcess, _ output: ByteStream, _ input: ByteStream) async throws -> Value
    ) async throws -> (value: Value, status: ChildProcessSource.Status) {
        try Task.checkCancellation()
        let kinds: [CRLChildDescriptorKind] = [.reads, .writes, .nothing]
        let child = try start(executable, arguments, environment, workingDirectory, kinds, on: loop)
        let streams = try child.streams(kinds, on: loop)
        guard let input = streams[0], let output = streams[1] else { throw ChildProcessError(.resources(Int32(SHIM_ENOMEM))) }
        return try await child.ending(grace: grace, after: timeLimit, streams) {
            let value = try await body(child, output, input)
            input.close()
            output.close()
            return (value, await child.end.wait().status)
        }
    }

    // MARK: Ending

    /// Has the child end when the task is cancelled, when the time is over, and when the closure throws; waits for it in any case.
    private func ending<Value: Sendable>(
        grace: Duration, after limit: Duration?, _ streams: [ByteStream?], _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        do {
            return try await withThrowingTaskGroup(of: Value.self) { group in
                group.addTask { try await work() }
                if let limit {
                    group.addTask {
                        try await Task.sleep(for: limit)
                        throw ChildProcessError(.timedOut)
                    }
                }
                defer { group.cancelAll() }
                return try await withTaskCancellationHandler {
                    do {
                        guard let value = try await group.next() else { throw CancellationError() }
                        try Task.checkCancellation()  // a closure may have taken the closed streams for their ends
                        return value
                    } catch {
                        stop(grace, streams)
                        throw error
                    }
                } onCancel: {
                    stop(grace, streams)
                }
            }
        } catch {
            _ = await end.wait()
            if Task.isCancelled, !(error is ChildProcessError) { throw CancellationError() }
            throw error
        }
    }

    /// Closing the streams ends all waits for them, also for those that a child of the child keeps open.
    private func stop(_ grace: Duration, _ streams: [ByteStream?]) {
        terminate(grace: grace)
        for stream in streams { stream?.close() }
    }

    // MARK: Bytes

    private func streams(_ kinds: [CRLChildDescriptorKind], on loop: RunLoop) throws -> [ByteStream?] {
        do {
            return try kinds.enumerated().map { number, kind in
                kind == .reads || kind == .writes
                    ? try ByteStream(descriptor: CRLChildTakeDescriptor(child, Int32(number)), on: loop) : nil
            }
        } catch {
            terminate(grace: .zero)
            throw error
        }
    }

    /// A child that reads no more is no error.
    private func write(_ input: Input, to stream: ByteStream?) async {
        if case .bytes(let bytes) = input { try? await stream?.write(bytes) }
        stream?.close()
    }

    private func collect(_ stream: ByteStream?, limit: Int) async throws -> [UInt8] {
        var collected: [UInt8] = []
        guard let stream else { return collected }
        for try await chunk in stream.chunks() {
            if chunk.count > limit - collected.count { throw ChildProcessError(.tooMuchOutput(limit: limit)) }
            collected += chunk
        }
        stream.close()
        return collected
    }

    // MARK: Starting

    private static func start(
        _ executable: Executable, _ arguments: [String], _ environment: Environment, _ folder: String?, _ kinds: [CRLChildDescriptorKind],
        on loop: RunLoop
    ) throws(ChildProcessError) -> ChildProcess {
        var variables: [String]?
        if case .custom(let values) = environment { variables = values.map { "\($0)=\($1)" } }
        let texts = [executable.file] + arguments + (variables ?? []) + (folder.map { [$0] } ?? [])
        if texts.contains(where: { $0.utf8.contains(0) }) { throw ChildProcessError(.invalid(Int32(SHIM_EINVAL))) }
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
        guard let made else { throw ChildProcessError(failure) }
        if !CRLChildScheduleWithRunLoop(made, loop.getCFRunLoop(), kCFRunLoopCommonModes) {
            _ = CRLChildKill(made, 9, true)
            throw ChildProcessError(.resources(Int32(SHIM_ENOMEM)))
        }
        return ChildProcess(child: made, end: end)
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
