// SPDX-License-Identifier: Apache-2.0
//
// A loop inside GLib's, and GLib's context inside a loop. The objects belong to the loop's thread.

private import CoreRunLoopGLibShims
public import CCoreRunLoop
public import CoreRunLoop

/// A loop that GLib's main loop, as of GTK, waits for.
@safe public final class GLibHost {
    private let source: UnsafeMutableRawPointer
    private let stopped: Unmanaged<Closure>
    private var isAttached = true

    fileprivate init(_ source: UnsafeMutableRawPointer, _ stopped: Unmanaged<Closure>) {
        unsafe self.source = unsafe source
        unsafe self.stopped = unsafe stopped
    }

    deinit { unsafe glib_release(source) }

    /// Takes the loop out of GLib's, in a callback too. Once more has no effect.
    public func detach() {
        guard isAttached else { return }
        isAttached = false
        unsafe glib_detach(source)
        unsafe stopped.release()
    }
}

private final class Closure {
    let call: () -> Void
    init(_ call: @escaping () -> Void) { self.call = call }
}

extension RunLoop {
    /// Puts this loop into the main loop of GLib that this thread runs, as `g_main_loop_run`, `g_application_run` and GTK do.
    ///
    /// With the main loop, the main actor, the main dispatch queue, timers and ports are served on this thread from then on. A program
    /// whose main is asynchronous calls it in `RunLoop.mainThreadRuns`:
    ///
    /// ```text
    /// RunLoop.mainThreadRuns {
    ///     RunLoop.main.attachToGLib()
    ///     g_main_loop_run(loop)
    /// }
    /// ```
    ///
    /// A job of the main actor that runs GLib's loop, as a modal dialog does, keeps the main actor waiting until that returns. The program
    /// is linked with GLib; this package is not.
    ///
    /// - Parameters:
    ///   - context: The `GMainContext`; `nil` is the default one.
    ///   - priority: Of GLib. A main actor that never rests leaves GTK its redrawing with `GDK_PRIORITY_REDRAW`, 120.
    ///   - onStop: Called after each ``stop()``, which ends one run; the next one has begun by then.
    /// - Returns: What takes it out again; the loop stays in its host without it. `nil`, with a line on the standard error output, when the
    ///   loop is running already, and when there is no memory or no descriptor.
    ///
    /// The corresponding C function is `CRLHostGLibAttach`.
    @available(*, noasync)
    @discardableResult public func attachToGLib(
        context: OpaquePointer? = nil, priority: Int32 = 0, onStop: @escaping () -> Void = {}
    ) -> GLibHost? {
        preconditionIsCurrent()
        let closure = unsafe Unmanaged.passRetained(Closure(onStop))
        let source = unsafe glib_attach(
            context.map { unsafe UnsafeMutableRawPointer($0) }, priority,
            { unsafe Unmanaged<Closure>.fromOpaque($0!).takeUnretainedValue().call() }, closure.toOpaque())
        guard let source = unsafe source else {
            unsafe closure.release()
            return nil
        }
        return unsafe GLibHost(source, closure)
    }
}

/// A source that serves a `GMainContext`: the loop runs GLib's timeouts, idle functions, sockets and buses, without a `GMainLoop`.
///
/// ```text
/// RunLoop.main.add(GLibContextSource()!, forMode: .common)
/// ```
///
/// It is for one loop. Adding, removing and invalidating it are for that loop's thread. The context belongs to that thread, as to one in
/// `g_main_loop_run`. One that another thread runs when the source is added is not served.
///
/// The corresponding C function is `CRLGLibSourceCreate`.
public final class GLibContextSource: RunLoopSource {
    public let cfRunLoopSource: CFRunLoopSource

    /// Creates a source for `context`; `nil` is the default one. Fails when there is no memory or no descriptor.
    public init?(context: OpaquePointer? = nil) {
        guard let source = unsafe glib_source_create(context.map { unsafe UnsafeMutableRawPointer($0) }) else { return nil }
        cfRunLoopSource = unsafe Unmanaged<CFRunLoopSource>.fromOpaque(source).takeRetainedValue()
    }
}
