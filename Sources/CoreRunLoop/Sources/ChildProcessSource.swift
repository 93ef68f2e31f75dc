// SPDX-License-Identifier: Apache-2.0

public import CCoreRunLoop
import CoreRunLoopShims

/// A source that waits for the end of a child process, takes its status from the system, and calls a closure once.
///
/// The source waits on a process descriptor, not on SIGCHLD. Other parts of the program may handle that signal, but must not ignore it.
/// They must not wait for this child themselves.
public final class ChildProcessSource: RunLoopSource {
    /// How a process ended.
    public enum Status: Hashable, Sendable {
        /// By itself, with this code.
        case exited(Int32)
        /// By this signal.
        case signalled(Int32)
        /// Unknown: someone else has taken the status.
        case unknown
    }

    /// The C object of this source.
    public let cfRunLoopSource: CFRunLoopSource
    /// The child's number.
    public let processID: Int32

    private let body: Callback<(process: Int32, status: Status)>

    /// Makes a source for a child process; it is in no loop yet.
    ///
    /// - Parameters:
    ///   - processID: A child that nobody has waited for; one that has ended already counts.
    ///   - order: Among sources that are ready, those with a lower order are handled first.
    ///   - callback: Called once, on the loop's thread, with the child's number and how it ended.
    /// - Throws: ``RunLoopError/notAChild(_:)``.
    ///
    /// The corresponding C function is `CRLChildSourceCreate`.
    public init(
        processID: Int32, order: Int = 0, callback: @escaping @isolated(any) @Sendable (Int32, Status) -> Void
    ) throws(RunLoopError) {
        let callback = onActorOf(callback)
        self.processID = processID
        body = Callback { callback($0.process, $0.status) }
        var context = unsafe CRLSourceContext()
        unsafe context.info = retainedInfo(body)
        unsafe context.release = { info in unsafe releaseConstantInfo(info) }
        let source: CFRunLoopSource? = unsafe CRLChildSourceCreate(
            nil, processID, order,
            { _, process, status, info in
                let code = shim_exit_code(status)
                let signal = shim_exit_signal(status)
                let body = unsafe object(Callback<(process: Int32, status: Status)>.self, from: info)
                body((process, status == -1 ? .unknown : code >= 0 ? .exited(code) : .signalled(signal)))
            }, &context)
        guard let source else {
            unsafe releaseInfo(context.info)
            throw .notAChild(processID)
        }
        cfRunLoopSource = source
    }

    /// Ends the source for good, drops its closure, and leaves the child to the program. Any thread.
    public func invalidate() {
        CFRunLoopSourceInvalidate(cfRunLoopSource)
        body.drop()
    }
}
