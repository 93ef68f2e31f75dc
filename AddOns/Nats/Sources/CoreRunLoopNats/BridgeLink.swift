// SPDX-License-Identifier: Apache-2.0

import CCoreRunLoop
import CoreRunLoop
import CoreRunLoopShims
import Synchronization

/// The C bridge, its handler and its streams of events. The C callback has a reference to it as long as the C bridge lives.
///
/// The bridge's thread uses all of it, except that a stream may end on any thread.
@safe final class BridgeLink: @unchecked Sendable {
    typealias Event = NatsBridge.Event

    private let runLoop: RunLoop
    private var bridge: OpaquePointer?
    private var handler: ((Event) -> Void)?
    /// How many calls of the handler are under way, one inside another. The C bridge must not end in one.
    private var handlers = 0
    private var isOver = false
    /// Why the C call that is under way was refused.
    private var refusal: String?
    private var isCalling = false
    private let streams = Mutex(Streams())

    private struct Streams {
        var continuations: [Int: AsyncStream<Event>.Continuation] = [:]
        var count = 0
    }

    init(_ runLoop: RunLoop, _ handler: ((Event) -> Void)?) {
        self.runLoop = runLoop
        self.handler = handler
    }

    // MARK: Calls

    func open(_ configuration: NatsBridge.Configuration) throws(NatsBridgeError) {
        let texts: [String?] = [
            configuration.servers.joined(separator: ","), configuration.user, configuration.password, configuration.credentials,
            configuration.authorities, configuration.certificate, configuration.key, configuration.machine,
        ]
        if texts.contains(where: { $0?.utf8.contains(0) == true }) {
            report("bridge: a setting has a zero byte in it")
            throw .invalidConfiguration
        }
        let info = unsafe Unmanaged.passRetained(self)
        unsafe bridge = withCStrings(texts[...]) { texts in
            var settings = unsafe CRLNatsConfiguration()
            unsafe (settings.servers, settings.user, settings.password, settings.credentials) = (texts[0], texts[1], texts[2], texts[3])
            unsafe (settings.authorities, settings.certificate, settings.key, settings.machine) = (texts[4], texts[5], texts[6], texts[7])
            unsafe settings.durable = configuration.isDurable
            unsafe settings.info = info.toOpaque()
            unsafe settings.callback = { _, event, name, text, info in
                guard let info = unsafe info, let text = unsafe text else { return }
                let link = unsafe Unmanaged<BridgeLink>.fromOpaque(info).takeUnretainedValue()
                unsafe link.take(event.rawValue, name.map { unsafe String(cString: $0) }, String(cString: text))
            }
            return unsafe CRLNatsBridgeCreate(&settings)
        }
        if unsafe bridge == nil {
            unsafe info.release()
            throw .invalidConfiguration
        }
    }

    func export(_ name: String, shares: Bool) throws(NatsBridgeError) {
        try unsafe call([name]) { bridge, names in unsafe CRLNatsBridgeExport(bridge, names[0], shares) }
    }

    func `import`(_ name: String, from machine: String?, as localName: String?) throws(NatsBridgeError) {
        try unsafe call([name, machine, localName]) { bridge, names in unsafe CRLNatsBridgeImport(bridge, names[0], names[1], names[2]) }
    }

    /// Makes a call that may be refused. The C library tells the reason before the call returns.
    private func call(
        _ names: [String?], _ body: (OpaquePointer, [UnsafePointer<CChar>?]) -> Bool
    ) throws(NatsBridgeError) {
        for case let name? in names where name.utf8.contains(0) { throw .invalidName("the name '\(name)' has a zero byte in it") }
        guard let bridge = unsafe bridge, !isOver else { throw .invalidated }
        let outer = (isCalling, refusal)  // of a call in whose handler this one is made
        (isCalling, refusal) = (true, nil)
        let isDone = unsafe withCStrings(names[...]) { names in unsafe body(bridge, names) }
        let reason = refusal
        (isCalling, refusal) = outer
        if !isDone { throw reason.map { .invalidName($0) } ?? .noMemory }
    }

    // MARK: Events

    func events() -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(256))
        if isOver {
            continuation.finish()
            return stream
        }
        let number = streams.withLock { streams in
            streams.count += 1
            streams.continuations[streams.count] = continuation
            return streams.count
        }
        runLoop.feed(continuation) { [self] in
            let ended = streams.withLock { $0.continuations.removeValue(forKey: number) }
            _ = ended  // freed here, outside the lock
        }
        return stream
    }

    private func take(_ number: Int32, _ name: String?, _ text: String) {
        guard let kind = Event.Kind(rawValue: number) else { return }
        if isCalling && kind == .nameUnusable {
            refusal = text
            return
        }
        let event = Event(kind: kind, name: name, text: text)
        let continuations = Array(streams.withLock { $0.continuations.values })
        for continuation in continuations { continuation.yield(event) }
        if let handler {
            handlers += 1
            handler(event)
            handlers -= 1
            if isOver && handlers == 0 { runLoop.perform { [self] in close() } }
        } else if continuations.isEmpty && kind.isError {
            report("bridge: \(text)")
        }
    }

    // MARK: The end

    /// Ends the bridge; in a handler, once the handler has returned.
    func end() {
        isOver = true
        close()
    }

    private func close() {
        guard handlers == 0, let ended = unsafe bridge else { return }
        unsafe bridge = nil
        unsafe CRLNatsBridgeInvalidate(ended)  // its callback may tell of messages that were not sent
        handler = nil
        let continuations = streams.withLock { Array($0.continuations.values) }
        for continuation in continuations { continuation.finish() }
        unsafe Unmanaged.passUnretained(self).release()  // the C callback's
    }
}

/// One line on the standard error output.
private func report(_ text: String) {
    var line = "CoreRunLoop: \(text)\n"
    line.withUTF8 { bytes in
        if let base = bytes.baseAddress { unsafe shim_report(base, bytes.count) }
    }
}

/// Calls `body` with the texts as C has them, which are valid until it returns.
private func withCStrings<Result>(_ texts: ArraySlice<String?>, _ body: ([UnsafePointer<CChar>?]) -> Result) -> Result {
    guard let last = texts.last else { return unsafe body([]) }
    guard let last else { return unsafe withCStrings(texts.dropLast()) { unsafe body($0 + [nil]) } }
    return unsafe last.withCString { last in unsafe withCStrings(texts.dropLast()) { unsafe body($0 + [last]) } }
}
