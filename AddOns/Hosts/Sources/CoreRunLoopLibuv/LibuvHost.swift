// SPDX-License-Identifier: Apache-2.0
//
// A loop inside libuv's. The object belongs to the loop's thread.

private import CoreRunLoopLibuvShims
public import CoreRunLoop

/// A loop that libuv's loop, as of Node, waits for.
@safe public final class LibuvHost {
    private let poll: UnsafeMutableRawPointer
    private let stopped: Unmanaged<Closure>
    private var isAttached = true

    fileprivate init(_ poll: UnsafeMutableRawPointer, _ stopped: Unmanaged<Closure>) {
        unsafe self.poll = unsafe poll
        unsafe self.stopped = unsafe stopped
    }

    /// Takes the loop out of libuv's, in a callback too. Once more has no effect.
    public func detach() {
        guard isAttached else { return }
        isAttached = false
        unsafe libuv_detach(poll)
        unsafe stopped.release()
    }
}

private final class Closure {
    let call: () -> Void
    init(_ call: @escaping () -> Void) { self.call = call }
}

extension RunLoop {
    /// Puts this loop into the loop of libuv that this thread runs by `uv_run`, or Node does.
    ///
    /// With the main loop, the main actor, the main dispatch queue, timers and ports are served on this thread from then on. A program
    /// whose main is asynchronous calls it in `RunLoop.mainThreadRuns`:
    ///
    /// ```text
    /// RunLoop.mainThreadRuns {
    ///     RunLoop.main.attachToLibuv()
    ///     uv_run(uv_default_loop(), UV_RUN_DEFAULT)
    /// }
    /// ```
    ///
    /// The program is linked with libuv, and an add-on of Node finds Node's; this package is not.
    ///
    /// - Parameters:
    ///   - loop: The `uv_loop_t`; `nil` is the default one. In Node it comes from `napi_get_uv_event_loop`.
    ///   - keepsRunning: Whether `uv_run` goes on as long as this loop is in it. `false` is for Node, which ends when nothing else is left.
    ///   - onStop: Called after each ``stop()``, which ends one run; the next one has begun by then.
    /// - Returns: What takes it out again; the loop stays in its host without it. `nil`, with a line on the standard error output, when the
    ///   loop is running already, and when there is no memory or no descriptor.
    ///
    /// The corresponding C function is `CRLHostLibuvAttach`.
    @available(*, noasync)
    @discardableResult public func attachToLibuv(
        loop: UnsafeMutableRawPointer? = nil, keepsRunning: Bool = true, onStop: @escaping () -> Void = {}
    ) -> LibuvHost? {
        preconditionIsCurrent()
        let closure = unsafe Unmanaged.passRetained(Closure(onStop))
        let poll = unsafe libuv_attach(
            loop, keepsRunning, { unsafe Unmanaged<Closure>.fromOpaque($0!).takeUnretainedValue().call() }, closure.toOpaque())
        guard let poll = unsafe poll else {
            unsafe closure.release()
            return nil
        }
        return unsafe LibuvHost(poll, closure)
    }
}
