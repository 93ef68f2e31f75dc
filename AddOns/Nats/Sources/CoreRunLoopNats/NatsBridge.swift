// SPDX-License-Identifier: Apache-2.0
//
// A bridge belongs to the thread that made it. `BridgeLink` is what the class and the C callback share, and does the work.

public import CoreRunLoop
import CoreRunLoopShims

/// Connects message ports of this machine with those of others, through a NATS server.
///
/// On the machine that has a port, a bridge exports its name. On the others a bridge imports the name: there it owns a local port of that
/// name, as long as somebody exports it. Programs that know nothing of the network send to that one, and distributed actors are called.
///
/// ```swift
/// let bridge = try NatsBridge(.init(servers: ["nats://hub:4222"])) { event in print(event.text) }
/// try bridge.export("jobs", shares: true)
/// try bridge.import("log", from: "archive")
/// RunLoop.current.run()
/// ```
///
/// The bridge works while the loop of its thread runs in the default mode; no pass of the loop waits for the network. What a name across
/// machines promises, and what it does not, is in `AddOns/Nats/bridge.md`.
///
/// A bridge is used on the thread that made it. A call on another one stops the process with a message. ``invalidate()`` has to be called
/// before that thread ends, or the last reference given up: otherwise its connection stays open for as long as the process lives.
///
/// The corresponding C type is `CRLNatsBridgeRef`.
public final class NatsBridge {
    /// The loop of the thread that made the bridge.
    public let runLoop: RunLoop
    private let thread = shim_thread_number()
    private let link: BridgeLink

    /// Makes a bridge in the calling thread's loop, and begins to connect. It connects again and again, with waits of 50 ms to 5 s.
    ///
    /// - Parameters:
    ///   - configuration: How to reach the server, and by which name this machine goes.
    ///   - handler: Is called with each event on this thread: in a pass of the loop, or inside a call of the bridge. It may run the loop,
    ///     and use the bridge in any way. Without a handler, and while nobody takes ``events()``, errors are lines on standard error.
    /// - Throws: ``NatsBridgeError/invalidConfiguration`` if it cannot be followed. A line on standard error says why.
    ///
    /// The corresponding C function is `CRLNatsBridgeCreate`.
    public init(_ configuration: Configuration, handler: ((Event) -> Void)? = nil) throws(NatsBridgeError) {
        runLoop = .current
        link = BridgeLink(runLoop, handler)
        try link.open(configuration)
    }

    deinit {
        if shim_thread_number() == thread { link.end() } else { runLoop.perform { [link] in link.end() } }
    }

    /// Exports a name: other machines reach the local port that has it on this one, now or later, in whatever process of this user.
    ///
    /// - Parameters:
    ///   - name: The port's name.
    ///   - shares: Several machines may export the name, and each message goes to one of them. Otherwise the one that came first has it.
    /// - Throws: ``NatsBridgeError/invalidName(_:)`` for a name that cannot be one, or that the bridge exports or imports already, and
    ///   ``NatsBridgeError/invalidated``.
    ///
    /// The corresponding C function is `CRLNatsBridgeExport`.
    public func export(_ name: String, shares: Bool = false) throws(NatsBridgeError) {
        requireThread()
        try link.export(name, shares: shares)
    }

    /// Imports a name: as long as a machine exports it, the bridge owns a local port for it here.
    ///
    /// - Parameters:
    ///   - name: The name on the machine that exports it.
    ///   - machine: The one machine that is meant; without it, any.
    ///   - localName: The name here. Without it the name is the same, or with a machine `NAME@MACHINE`.
    /// - Throws: ``NatsBridgeError/invalidName(_:)`` for a name that cannot be one, or a local name that the bridge exports or imports
    ///   already, and ``NatsBridgeError/invalidated``. A local name that another program has is an event,
    ///   ``NatsBridge/Event/Kind/nameUnusable``, once the name is exported.
    ///
    /// The corresponding C function is `CRLNatsBridgeImport`.
    public func `import`(_ name: String, from machine: String? = nil, as localName: String? = nil) throws(NatsBridgeError) {
        requireThread()
        try link.import(name, from: machine, as: localName)
    }

    /// What happens from now on, for a task. The newest 256 events that nobody has taken are kept.
    ///
    /// The sequence ends with the bridge, with its thread, or when the task that takes the events is cancelled.
    public func events() -> AsyncStream<Event> {
        requireThread()
        return link.events()
    }

    /// Ends the bridge: it says goodbye to the others, its local ports become invalid, and its connection is closed.
    ///
    /// In a handler this takes place once the handler has returned. Ending it again does nothing.
    ///
    /// The corresponding C function is `CRLNatsBridgeInvalidate`.
    public func invalidate() {
        requireThread()
        link.end()
    }

    private func requireThread() {
        guard shim_thread_number() == thread else {
            fatalError("CoreRunLoopNats: a bridge was used on another thread than the one that made it")
        }
    }
}
