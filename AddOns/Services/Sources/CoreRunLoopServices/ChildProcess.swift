// SPDX-License-Identifier: Apache-2.0
//
// Child processes for tasks. What the closure and the C callback share is the box `ChildEnd`; the C object keeps the rest.

import CCoreRunLoop
public import CoreRunLoop
import CoreRunLoopShims
import Synchronization

/// A program that runs as a child of this one.
///
/// ```swift
/// let listed = try await ChildProcess.run(.name("ls"), arguments: ["-l"], output: .string(limit: 65536), on: loop)
/// if listed.status == .exited(0) { print(listed.standardOutput) }
/// ```
///
/// The child has the arguments, the environment, the folder and the descriptors that are given, no signal that is blocked or ignored, and
/// a group of its own. The loop tells its end and moves its bytes, and somebody has to run it in its common modes: `RunLoop.main` in an
/// asynchronous main needs `CoreRunLoopMain`. A task that is cancelled, or whose time is over, has the group end, whether or not the loop
/// runs: by SIGTERM, and after the grace by SIGKILL.
///
/// The corresponding C type is `CRLChildRef`.
public struct ChildProcess: Sendable {
    /// Which file is executed.
    public struct Executable: Sendable, Hashable {
        let file: String
        /// A name that is looked for in the PATH of this program.
        public static func name(_ name: String) -> Self { Self(file: name) }
        /// A path; a relative one begins in the child's folder.
        public static func path(_ path: String) -> Self { Self(file: path.utf8.contains(UInt8(ascii: "/")) ? path : "./" + path) }
    }

    /// What the child has for its environment.
    public enum Environment: Sendable, Hashable {
        /// This program's.
        case inherit
        /// These and no others.
        case custom([String: String])
    }

    /// What the child reads.
    public enum Input: Sendable, Hashable {
        /// Nothing: `/dev/null`.
        case none
        /// These bytes. A child that does not read all of them is no error.
        case bytes([UInt8])
        /// A text, as UTF-8.
        public static func string(_ text: String) -> Self { .bytes(Array(text.utf8)) }

        var kind: CRLChildDescriptorKind { self == .none ? .nothing : .reads }
    }

    /// Where one of the child's outputs goes.
    public struct Output<Value: Sendable>: Sendable {
        let kind: CRLChildDescriptorKind
        let limit: Int
        let make: @Sendable ([UInt8]) -> Value
    }

    /// How the child ended, and what it wrote.
    public struct Result<Output: Sendable, ErrorOutput: Sendable>: Sendable {
        /// The number that the process had.
        public let processID: Int32
        /// How it ended.
        public let status: ChildProcessSource.Status
        /// The time that it computed, in its own code and in the kernel.
        public let processorTime: Duration
        /// What it wrote to its standard output.
        public let standardOutput: Output
        /// What it wrote to its standard error.
        public let standardError: ErrorOutput
    }

    let child: CRLChild
    let end: ChildEnd
    let program: String
    let loop: RunLoop

    /// The number of the process.
    public var processID: Int32 { CRLChildGetProcessIdentifier(child) }

    /// Sends a signal to the child; `false` when it has ended.
    public func send(signal: Int32) -> Bool { CRLChildKill(child, signal, false) }

    /// Has the child and its group end: by SIGTERM, and `grace` later by SIGKILL. Any thread.
    public func terminate(grace: Duration = .seconds(2)) {
        let parts = grace.components
        _ = CRLChildTerminate(child, CFTimeInterval(parts.seconds) + CFTimeInterval(parts.attoseconds) / 1e18, true)
    }
}

extension ChildProcess.Output where Value == [UInt8] {
    /// Its bytes. More than `limit` end the child.
    public static func bytes(limit: Int) -> Self { Self(kind: .writes, limit: limit) { $0 } }
}

extension ChildProcess.Output where Value == String {
    /// Its text; what is no UTF-8 is replaced. More bytes than `limit` end the child.
    public static func string(limit: Int) -> Self { Self(kind: .writes, limit: limit) { String(decoding: $0, as: UTF8.self) } }
}

extension ChildProcess.Output where Value == Void {
    /// Nowhere: `/dev/null`.
    public static var discarded: Self { Self(kind: .nothing, limit: 0) { _ in } }
    /// Where this program's own goes.
    public static var inherited: Self { Self(kind: .given, limit: 0) { _ in } }
}

/// Why a child could not be started, or did not do.
public struct ChildProcessError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong.
    public enum Reason: Hashable, Sendable {
        /// The program could not be executed. The number is `errno`'s, as in all that follow.
        case execute(Int32)
        /// The folder cannot be entered.
        case folder(Int32)
        /// A text with a zero in it, or something that the child cannot have.
        case invalid(Int32)
        /// No memory, descriptors or processes are left.
        case resources(Int32)
        /// It wrote more than the limit, and was ended.
        case tooMuchOutput(limit: Int)
        /// The time was over, and it was ended.
        case timedOut
    }
    /// What went wrong.
    public let reason: Reason
    /// The file that was to be executed.
    public let program: String
    /// Where the child was to begin.
    private let folder: String?

    /// The program, and what went wrong in words.
    public var description: String { "\(program): \(text)" }

    init(_ reason: Reason, program: String, folder: String? = nil) {
        (self.reason, self.program, self.folder) = (reason, program, folder)
    }

    init(_ error: CRLChildError, program: String, folder: String?) {
        let reason: Reason =
            switch error.step {
            case .execute: .execute(error.error)
            case .folder: .folder(error.error)
            case .process: .resources(error.error)
            default: .invalid(error.error)
            }
        self.init(reason, program: program, folder: folder)
    }

    private var text: String {
        switch reason {
        case .execute(let number): "cannot be executed: \(systemText(number))"
        case .folder(let number): "the folder \(folder ?? "") cannot be entered: \(systemText(number))"
        case .invalid(let number): "cannot be started like this: \(systemText(number))"
        case .resources(let number): "cannot be started: \(systemText(number))"
        case .tooMuchOutput(let limit): "has written more than \(limit) bytes, and was ended"
        case .timedOut: "was not done when its time was over, and was ended"
        }
    }
}

/// How a child ended, and who waits for that.
final class ChildEnd: Sendable {
    struct Told: Sendable {
        let status: ChildProcessSource.Status
        let processorTime: Duration
    }
    private struct State {
        var told: Told?
        var failure: ChildProcessError?
        var waiters: [CheckedContinuation<Told, Never>] = []
    }
    private let state = Mutex(State())

    func tell(_ told: Told) {
        let waiters = state.withLock { state in
            state.told = told
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: told) }
    }

    /// Why the child is ended; the first call counts.
    func fail(_ failure: ChildProcessError) { state.withLock { $0.failure = $0.failure ?? failure } }

    var failure: ChildProcessError? { state.withLock { $0.failure } }

    /// Also in a task that was cancelled: the child is being ended then.
    func wait() async -> Told {
        await withCheckedContinuation { continuation in
            let told = state.withLock { state in
                if state.told == nil { state.waiters.append(continuation) }
                return state.told
            }
            if let told { continuation.resume(returning: told) }
        }
    }
}
