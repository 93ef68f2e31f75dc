// SPDX-License-Identifier: Apache-2.0

public import CCoreRunLoop
import CoreRunLoopShims

/// A source that handles a signal in a loop, where the closure may do anything.
///
/// ```swift
/// let source = try SignalSource(signal: SIGTERM) { _ in RunLoop.main.stop() }
/// RunLoop.main.add(source, forMode: .common)
/// ```
///
/// The source receives the signal wherever it arrives. Making the source blocks the signal in the calling thread, and threads that start
/// later inherit that. A thread that does not block it, as one that was there before, is interrupted once: it blocks the signal from then
/// on, and sends it to the process again, with its sender. A handler that the program has installed by `sigaction` is left alone: threads
/// that do not block the signal call it, and the source does not hear of that. The same holds for signals that say what the thread itself
/// has done wrong, such as `SIGSEGV`.
public final class SignalSource: RunLoopSource {
    /// One signal, as the kernel reports it. Equal signals that wait are one.
    public struct Signal: Hashable, Sendable {
        /// The signal's number.
        public let number: Int32
        /// The sender's process.
        public let processID: Int32
        /// The sender's user.
        public let userID: UInt32
        /// The value sent with it, by `sigqueue`.
        public let value: Int32
    }

    /// The C object of this source.
    public let cfRunLoopSource: CFRunLoopSource

    private let body: Callback<Signal>

    /// Makes a source for a signal, and blocks the signal in the calling thread. The source is in no loop yet.
    ///
    /// - Throws: ``RunLoopError/invalidSignal(_:)`` for a number that is no signal, and for one that cannot be blocked.
    ///
    /// The corresponding C function is `CRLSignalSourceCreate`.
    public init(
        signal number: Int32, order: Int = 0, callback: @escaping @isolated(any) @Sendable (Signal) -> Void
    ) throws(RunLoopError) {
        body = Callback(onActorOf(callback))
        var context = unsafe CRLSourceContext()
        unsafe context.info = retainedInfo(body)
        unsafe context.release = { info in unsafe releaseConstantInfo(info) }
        let source: CFRunLoopSource? = unsafe CRLSignalSourceCreate(
            nil, number, order,
            { _, signal, info in
                guard let signal = unsafe signal?.pointee else { return }
                let body = unsafe object(Callback<Signal>.self, from: info)
                body(
                    Signal(
                        number: Int32(bitPattern: signal.ssi_signo), processID: Int32(bitPattern: signal.ssi_pid), userID: signal.ssi_uid,
                        value: signal.ssi_int))
            }, &context)
        guard let source else {
            unsafe releaseInfo(context.info)
            throw .invalidSignal(number)
        }
        cfRunLoopSource = source
    }

    /// Blocks a signal in the calling thread and in those that it starts from now on. Where each thread counts that is interrupted by a
    /// signal, call it before the first thread starts.
    ///
    /// - Throws: ``RunLoopError/invalidSignal(_:)`` for a number that is no signal.
    public static func block(_ number: Int32) throws(RunLoopError) {
        if shim_block_signal(number) != 0 { throw .invalidSignal(number) }
    }

    /// Ends the source for good and drops its closure. Any thread. The signal stays blocked.
    public func invalidate() {
        CFRunLoopSourceInvalidate(cfRunLoopSource)
        body.drop()
    }
}
