// SPDX-License-Identifier: Apache-2.0
//
// The ports: rules 1600 to 1612 of docs/rules.md.

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

private final class Delegate: PortDelegate {
    let messages = Mutex<[PortMessage]>([])
    let onMessage: @Sendable (PortMessage) -> Void
    init(_ onMessage: @escaping @Sendable (PortMessage) -> Void = { _ in }) { self.onMessage = onMessage }
    func handle(_ message: PortMessage) {
        messages.withLock { $0.append(message) }
        onMessage(message)
    }
    var count: Int { messages.withLock { $0.count } }
    var last: PortMessage? { messages.withLock { $0.last } }
}

/// The classes of ports.
private enum Kind: CaseIterable, Sendable {
    case mach, message, socket
    func make() throws -> Port {
        switch self {
        case .mach: MachPort()
        case .message: try MessagePort(name: nil)
        case .socket: try SocketPort(tcpPort: 0)
        }
    }
}

private func name(_ function: String = #function) -> String { "crl.tests.\(getpid()).\(UInt32.random(in: 0 ... .max))" }

@Suite(.timeLimit(.minutes(10))) struct `A port` {
    @Test(arguments: Kind.allCases) private func `carries a number, bytes, empty components and ports`(kind: Kind) async throws {
        try await onThread {
            let (port, answer, other) = (try kind.make(), try kind.make(), try kind.make())
            let delegate = Delegate()
            port.setDelegate(delegate)
            RunLoop.current.add(port, forMode: .default)
            let message = PortMessage(sendPort: port, receivePort: answer, components: [[1, 2, 3] as [UInt8], [] as [UInt8], other])
            message.msgid = 0xFFFF_FFFF
            #expect(message.send(before: .now))
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            let got = try #require(delegate.last)
            #expect(got.msgid == 0xFFFF_FFFF)
            #expect(got.receivePort === port)
            #expect(got.components.count == 3)
            #expect(got.components[0] as? [UInt8] == [1, 2, 3])
            #expect(got.components[1] as? [UInt8] == [])
            if kind != .message {
                #expect(got.sendPort === answer)
                #expect(got.components[2] as? Port === other)
            } else {
                #expect((got.sendPort as? MessagePort)?.name == (answer as? MessagePort)?.name)
                #expect((got.components[2] as? MessagePort)?.name == (other as? MessagePort)?.name)
            }
            port.invalidate()
        }
    }

    @Test(arguments: Kind.allCases) private func `sends without components`(kind: Kind) async throws {
        try await onThread {
            let port = try kind.make()
            let delegate = Delegate()
            port.delegate = delegate
            RunLoop.current.add(port, forMode: .default)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(before: .now, msgid: 100, components: nil, from: nil))
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            #expect(delegate.count == 1)
            #expect(delegate.last?.components.isEmpty == true)
            #expect(delegate.last?.sendPort == nil)
            RunLoop.current.remove(port, forMode: .default)
            #expect(!RunLoop.current.run(mode: .default, before: .now))
        }
    }

    @Test func `refuses components and answers' ports of a wrong type`() throws {
        let (mach, message) = (MachPort(), try MessagePort(name: nil))
        #expect(!mach.send(before: .now, components: ["text"], from: nil))
        #expect(!mach.send(before: .now, components: [17], from: nil))
        #expect(!mach.send(before: .now, components: [message], from: nil))
        #expect(!mach.send(before: .now, components: nil, from: message))
        #expect(!PortMessage(sendPort: nil, receivePort: mach, components: nil).send(before: .now))
    }

    @Test(arguments: [Kind.mach, .message]) private func `is full after five messages`(kind: Kind) async throws {
        try await onThread {
            let port = try kind.make()
            for _ in 0..<5 { #expect(port.send(before: .now, components: nil, from: nil)) }
            #expect(!port.send(before: .now, components: nil, from: nil))
            #expect(!port.send(before: .now + .milliseconds(2), components: nil, from: nil))
            let count = Count()
            port.onMessage = { _ in count.next() }
            RunLoop.current.add(port, forMode: .default)
            for _ in 0..<5 { #expect(RunLoop.current.run(mode: .default, before: .distantFuture)) }
            #expect(count.value == 5)
            port.invalidate()
        }
    }

    @Test(arguments: Kind.allCases) private func `says why a message cannot be sent`(kind: Kind) throws {
        let port = try kind.make()
        let other = kind == .mach ? try MessagePort(name: nil) : MachPort()
        #expect(throws: PortError.unsupportedComponent("String")) { try port.post(components: ["text"], before: .now) }
        #expect(throws: PortError.unsupportedComponent("\(type(of: other))")) { try port.post(components: [other], before: .now) }
        #expect(throws: PortError.unsupportedComponent("\(type(of: other))")) { try port.post(from: other, before: .now) }
        #expect(throws: kind == .socket ? .transport : PortError.sendTimeout) {
            let tooMuch = kind == .socket ? [UInt8](repeating: 0, count: 17 << 20) : []
            for _ in 0..<6 { try port.post(components: [tooMuch], before: .now) }
        }
        let name =
            switch port {
            case let port as MachPort: "Mach port \(port.machPort)"
            case let port as MessagePort: port.name
            default: "127.0.0.1:\((port as? SocketPort)?.tcpPort ?? 0)"
            }
        port.invalidate()
        #expect(throws: PortError.invalid(name)) { try port.post(before: .now) }
    }

    @Test(arguments: Kind.allCases) private func `tells once that it has become invalid, and leaves its loops`(kind: Kind) async throws {
        try await onThread {
            let port = try kind.make()
            let (own, all) = (Count(), Count())
            port.onInvalidate { own.next() }
            let registration = Port.onDidBecomeInvalid { if $0 === port { all.next() } }
            RunLoop.current.add(port, forMode: .default)
            #expect(port.isValid)
            port.invalidate()
            port.invalidate()
            #expect(!port.isValid)
            #expect(own.value == 1 && all.value == 1)
            #expect(!RunLoop.current.run(mode: .default, before: .now))
            #expect(!port.send(before: .now, components: nil, from: nil))
            port.onInvalidate { own.next() }
            #expect(own.value == 2)
            registration.cancel()
        }
    }

    @Test(arguments: Kind.allCases) private func `keeps a loop alive, which keeps it`(kind: Kind) async throws {
        let freed = Count()
        try await onThread {
            func add() throws {
                let port = try kind.make()
                let witness = Witness { freed.next() }
                port.onMessage = { _ in witness.touch() }
                RunLoop.current.add(port, forMode: .default)
            }
            try add()
            #expect(freed.value == 0)
            #expect(RunLoop.current.run(in: .default, for: .zero) == .timedOut)
        }
        while freed.value == 0 { await Task.yield() }
    }

    @Test(arguments: Kind.allCases) private func `drops its closure, and what that holds, when it becomes invalid`(kind: Kind) throws {
        let freed = Count()
        func make() throws {
            let port = try kind.make()
            let witness = Witness { freed.next() }
            port.onMessage = { _ in
                port.invalidate()  // a closure that holds its own port
                witness.touch()
            }
            port.invalidate()
            port.onMessage = { _ in witness.touch() }
            #expect(port.onMessage == nil && port.delegate == nil)
        }
        try make()
        #expect(freed.value == 1)
    }

    @Test func `without a delegate drops its messages`() async throws {
        try await onThread {
            let port = Port.port()
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(before: .now, components: nil, from: nil))
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            port.invalidate()
        }
    }

    @Test(arguments: Kind.allCases) private func `is once in each mode, and leaves one at a time`(kind: Kind) async throws {
        try await onThread {
            let (port, loop) = (try kind.make(), RunLoop.current)
            let count = Count()
            port.onMessage = { _ in count.next() }
            for mode in [RunLoop.Mode.default, .default, "second"] { loop.add(port, forMode: mode) }
            loop.remove(port, forMode: "third")
            loop.remove(port, forMode: .default)
            #expect(port.send(before: .now, components: nil, from: nil))
            #expect(!loop.run(mode: .default, before: .now))
            while count.value == 0 { #expect(loop.run(mode: "second", before: .distantFuture)) }
            loop.remove(port, forMode: "second")
            #expect(!loop.run(mode: "second", before: .now) && count.value == 1)
            port.invalidate()
        }
    }

    @Test(arguments: Kind.allCases) private func `that nobody holds is invalidated`(kind: Kind) throws {
        let address = try { () -> @Sendable () -> Bool in
            let port = try kind.make()
            switch port {
            case let port as MachPort:
                let number = port.machPort
                return { MachPort.port(withMachPort: number).send(before: .now, components: nil, from: nil) }
            case let port as MessagePort:
                let name = port.name
                return { MessagePortNameServer.shared.port(forName: name) != nil }
            default:
                let remote = try SocketPort(remoteWithTCPPort: (port as? SocketPort)?.tcpPort ?? 0, host: nil)
                return { remote.send(before: .now, components: nil, from: nil) }
            }
        }()
        #expect(!address())
    }

    @Test(arguments: Kind.allCases) private func `that nobody holds tells that it has become invalid, and ends its sequence`(kind: Kind)
        async throws
    {
        let told = Count()
        func drop() throws -> AsyncStream<PortMessage> {
            let port = try kind.make()
            port.onInvalidate { told.next() }
            return port.messages()
        }
        let messages = try drop()
        #expect(told.value == 1)
        for await _ in messages {}
    }

    @Test func `gives its messages to the last sequence that was asked for, also after the end of another`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let port = MachPort()
        loop.add(port, forMode: .common)
        let (first, second) = (port.messages(), port.messages())
        for await _ in first {}  // the second has its place
        let cancelled = Task { for await _ in first {} }
        cancelled.cancel()
        await cancelled.value
        #expect(port.send(before: .now, msgid: 1, components: nil, from: nil))
        for await message in second {
            #expect(message.msgid == 1)
            break
        }
        port.invalidate()
        for await _ in port.messages() {}
        stop.requestStop()
    }

    @Test func `keeps as many messages as its reader has asked for, and all where nothing was said`() async throws {
        func numbers(_ messages: @escaping @Sendable (MachPort) -> AsyncStream<PortMessage>) async throws -> [UInt32] {
            let unread = try await onThread {
                let port = MachPort()
                let messages = messages(port)
                RunLoop.current.add(port, forMode: .default)
                for number in UInt32(1)...20 {
                    #expect(port.send(before: .now, msgid: number, components: nil, from: nil))
                    #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
                }
                port.invalidate()
                return messages
            }
            return await unread.reduce(into: []) { $0.append($1.msgid) }
        }
        #expect(try await numbers { $0.messages() } == Array(1...20))
        #expect(try await numbers { $0.messages(keeping: .bufferingNewest(3)) } == [18, 19, 20])
        #expect(try await numbers { $0.messages(keeping: .bufferingOldest(2)) } == [1, 2])
    }

    @Test func `keeps nothing of a sequence that has ended`() {
        let port = MachPort()
        func use() { _ = port.messages() }
        use()
        #expect(port.onMessage == nil)
        port.invalidate()
    }

    @Test func `of no subclass is itself to who gets it in a message`() async throws {
        try await onThread {
            let got = Mutex<PortMessage?>(nil)
            let (port, own) = (MachPort(), Port())
            port.onMessage = { message in got.withLock { $0 = message } }
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(before: .now, components: [own], from: own))
            #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
            let message = try #require(got.withLock { $0 })
            #expect(message.sendPort === own && message.components.first as? Port === own)
            port.invalidate()
            own.invalidate()
        }
    }

    @Test func `of no subclass tells everybody of its own end, and not of what it stands on`() async throws {
        try await onThread {
            let own = UInt(pthread_self())
            let ended = Mutex<[ObjectIdentifier]>([])  // on this thread: other tests end ports on theirs
            let registration = Port.onDidBecomeInvalid { port in
                if UInt(pthread_self()) == own { ended.withLock { $0.append(ObjectIdentifier(port)) } }
            }
            let port = Port()
            port.invalidate()
            func drop() { _ = Port() }
            drop()
            #expect(ended.withLock { $0 } == [ObjectIdentifier(port)])
            registration.cancel()
        }
    }

    @Test func `of a number that is gone becomes invalid when something is sent`() {
        func number() -> UInt32 { MachPort().machPort }
        let port = MachPort.port(withMachPort: number())
        let told = Count()
        port.onInvalidate { told.next() }
        #expect(throws: PortError.invalid("Mach port \(port.machPort)")) { try port.post(before: .now) }
        #expect(!port.isValid && told.value == 1)
    }

    @Test func `tells of its peer's end though nothing is sent, on the loop where that was asked for`() async throws {
        try await onThread {
            let name = name()
            let peer = try MessagePort(name: name)
            let (remote, sibling) = (try MessagePort(remote: name), try MessagePort(remote: name))
            let told = Trace()
            let own = pthread_self()
            for port in [remote, sibling] {
                port.onInvalidate { told.add(pthread_equal(pthread_self(), own) != 0 ? "here" : "elsewhere") }
            }
            Thread { peer.invalidate() }.start()
            let keeper = try MessagePort(name: nil)  // keeps the mode alive
            RunLoop.current.add(keeper, forMode: .default)
            while told.events.count < 2 { _ = RunLoop.current.run(mode: .default, before: .now + .seconds(60)) }
            #expect(told.text == "here here")
            keeper.invalidate()
            #expect(!remote.isValid && !sibling.isValid)
        }
    }

    @Test func `gives its messages as a sequence`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        let port = MachPort()
        loop.add(port, forMode: .common)
        let messages = port.messages()
        for number in 1...3 { #expect(port.send(before: .now, msgid: UInt32(number), components: nil, from: nil)) }
        var numbers: [UInt32] = []
        for await message in messages {
            numbers.append(message.msgid)
            if numbers.count == 3 { port.invalidate() }
        }
        #expect(numbers == [1, 2, 3])
        stop.requestStop()
    }
}

/// Listings 3-12 to 3-15 in outline; Tests/Listings has them as printed.
@Suite(.timeLimit(.minutes(10))) struct `A request of a task` {
    @Test func `ends once, though its answer, its limit, its cancellation and the server's end come together`() async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        for round in 0..<10 {
            let server = try MessagePort(name: nil)
            server.onRequest = { _, _ in
                Thread.sleep(for: .microseconds(300))
                return [1]
            }
            loop.add(server, forMode: .default)
            let remote = try MessagePort(remote: server.name)
            let asked = Count()
            let requests = (0..<12).map { number in
                Task {
                    asked.next()
                    return try await remote.requestBytes(number: 1, [], timeout: .milliseconds(1 + number / 2))
                }
            }
            while asked.value < round { await Task.yield() }
            for request in requests[8...] { request.cancel() }
            if round % 2 == 0 { server.invalidate() }
            for request in requests {
                do { #expect(try await request.value == [1]) } catch {
                    #expect(error is CancellationError || error is PortError)
                }
            }
            server.invalidate()
        }
        stop.requestStop()
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A component of more bytes than a message can say` {
    @Test func `is an error`() throws {
        // Memory that nobody touches.
        let component = [UInt8](unsafeUninitializedCapacity: 1 << 32) { _, count in count = 1 << 32 }
        let ports: [Port] = [MachPort(), try MessagePort(name: nil), try SocketPort(tcpPort: 0)]
        for port in ports {
            #expect(throws: PortError.transport) { try port.post(components: [component], before: .distantPast) }
            #expect(!port.send(before: .distantPast, components: [component], from: nil))
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `The check-in protocol` {
    @Test(arguments: [Kind.mach, .socket]) private func `works between two threads, with nothing but a number`(kind: Kind) async throws {
        let trace = Trace()
        try await onThread {
            let loop = RunLoop.current
            let main = try kind.make()
            let worker = Mutex<Port?>(nil)
            let delegate = Delegate { message in
                trace.add("check-in \(message.msgid)")
                worker.withLock { $0 = message.sendPort }
                message.sendPort?.onInvalidate { trace.add("gone") }
                #expect(message.sendPort?.send(before: .now + .seconds(1000), msgid: 7, components: nil, from: main) == true)
            }
            main.setDelegate(delegate)
            loop.add(main, forMode: .default)
            let own = try kind.make()
            let thread = Thread {
                var shouldExit = false
                let commands = Count()
                own.onMessage = { message in
                    #expect(message.receivePort === own && message.sendPort === main)
                    trace.add("command \(message.msgid)")
                    commands.next()
                }
                RunLoop.current.add(own, forMode: .default)
                let message = PortMessage(sendPort: main, receivePort: own, components: nil)
                message.msgid = 100
                #expect(message.send(before: .now))
                while !shouldExit {
                    #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
                    shouldExit = commands.value > 0
                }
                own.invalidate()
            }
            thread.start()
            while trace.events.isEmpty { #expect(loop.run(mode: .default, before: .distantFuture)) }
            thread.join()
            main.invalidate()
        }
        #expect(trace.events == ["check-in 100", "command 7", "gone"])
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A message port` {
    private func withServer<Value: Sendable>(_ body: (MessagePort, String) async throws -> Value) async throws -> Value {
        let stop = RunLoop.StopToken()
        defer { stop.requestStop() }
        let loop = try Thread.runningLoop(until: stop)
        let name = name()
        let server = try MessagePort(name: name)
        loop.add(server, forMode: .common)
        let value = try await body(server, name)
        server.invalidate()
        return value
    }

    @Test func `answers typed requests`() async throws {
        try await withServer { server, name in
            server.handle(.text(number: 1)) { "hello, \($0)" }
            server.handle(.bytes(number: 2)) { $0.reversed() }
            let client = try MessagePort(remote: name)
            #expect(client.isRemote && !server.isRemote && server.name == name)
            #expect(try await client.request(.text(number: 1), "wörld") == "hello, wörld")
            #expect(try await client.request(.bytes(number: 2), [1, 2, 3]) == [3, 2, 1])
            let large = [UInt8](repeating: 7, count: 300_000)
            #expect(try await client.request(.bytes(number: 2), large) == large)
        }
    }

    @Test func `answers C's requests by their number`() async throws {
        try await withServer { server, name in
            server.onRequest = { number, bytes in number == 5 ? bytes + [9] : nil }
            let client = try MessagePort(remote: name)
            #expect(try await client.requestBytes(number: 5, [1]) == [1, 9])
            #expect(try await client.requestBytes(number: 6, [1]) == [])
            #expect(try await onThread { try client.requestAndWait(number: 5, []) } == [9])
        }
    }

    @Test func `answers requests from bytes where they lie`() async throws {
        try await withServer { server, name in
            let heard = Mutex<[Int32]>([])
            server.onRequestBytes = { number, request, reply in
                heard.withLock { $0.append(number) }
                if number == 5 { reply.set(request) }
            }
            #expect(server.onRequestBytes != nil && server.onRequest == nil)
            let client = try MessagePort(remote: name)
            let large = [UInt8](repeating: 7, count: 300_000)
            #expect(try await client.requestBytes(number: 5, [1, 2]) == [1, 2])
            #expect(try await client.requestBytes(number: 5, large) == large)
            #expect(try await client.requestBytes(number: 6, [1]) == [])
            try await onThread {
                try client.sendAndWait(number: 7, large.span.bytes)
                let length = try client.requestAndWait(number: 5, large.span.bytes) { answer in
                    #expect(answer.unsafeLoad(fromByteOffset: 299_999, as: UInt8.self) == 7)
                    return answer.byteCount
                }
                #expect(length == 300_000)
            }
            #expect(heard.withLock { $0 } == [5, 5, 6, 7, 5])

            server.handle(.bytes(number: 5)) { $0.reversed() }
            #expect(try await client.requestBytes(number: 5, [1, 2]) == [2, 1])
            server.onRequest = { number, bytes in number == 6 ? bytes : nil }
            #expect(server.onRequestBytes == nil)
            #expect(try await client.requestBytes(number: 6, [3]) == [3])
        }
    }

    @Test func `a port that ends in its own handler is freed after it`() async throws {
        let name = name()
        let freed = Count()
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "server", until: stop)
        func add() throws {
            let witness = Witness { freed.next() }
            let server = try MessagePort(name: name)
            server.onRequestBytes = { [unowned server] _, request, reply in
                server.invalidate()
                reply.set(request)
                #expect(freed.value == 0)
                witness.touch()
            }
            loop.add(server, forMode: .common)
        }
        try add()
        let client = try MessagePort(remote: name)
        await #expect(throws: PortError.invalid(name)) { try await client.requestBytes(number: 1, [4]) }
        while freed.value == 0 { await Task.yield() }
        stop.requestStop()
    }

    @Test func `a handler that is replaced while it runs goes on, and is freed after it`() async throws {
        try await onThread {
            let trace = Trace()
            let server = try MessagePort(name: name())
            RunLoop.current.add(server, forMode: .default)
            let client = try MessagePort(remote: server.name)
            @Sendable func receive() { _ = RunLoop.current.run(in: .default, for: .zero, returnAfterSourceHandled: true) }
            @Sendable func handle(_ name: String, then next: @escaping @Sendable () -> Void) {
                let witness = Witness { trace.add("-\(name)") }
                server.onRequestBytes = { _, _, _ in
                    trace.add(name)
                    next()
                    witness.touch()
                    trace.add("/\(name)")
                }
            }
            handle("a") {
                handle("b") {
                    handle("c") {}
                    receive()
                }
                receive()
            }
            for number in 1...3 as ClosedRange<Int32> { try client.sendAndWait(number: number, [1].span.bytes) }
            receive()
            #expect(trace.text == "a b c /c /b -b /a -a")
            server.onRequest = nil
            #expect(trace.text == "a b c /c /b -b /a -a -c")
            server.invalidate()
        }
    }

    @Test func `a handler that is freed may set another`() async throws {
        let server = try MessagePort(name: nil)
        let freed = Count()
        for _ in 0..<2 {
            let witness = Witness {
                if freed.next() == 1 { server.onRequest = { _, bytes in bytes } }
            }
            server.onRequestBytes = { _, _, _ in witness.touch() }
        }
        #expect(freed.value == 2 && server.onRequest != nil && server.onRequestBytes == nil)  // the first one's end has replaced the second
        server.invalidate()
    }

    @Test func `handlers that another thread replaces are whole while they run, and each is freed once`() async throws {
        let (made, freed, wrong) = (Count(), Count(), Count())
        try await withServer { server, name in
            @Sendable func replace() {
                made.next()
                let canary = Canary { freed.next() }
                server.onRequestBytes = { _, request, reply in
                    if !canary.isWhole { wrong.next() }
                    reply.set(request)
                    if !canary.isWhole { wrong.next() }
                }
            }
            replace()
            let stop = RunLoop.StopToken()
            let replacer = try Thread.joinable { while !stop.isRequested { replace() } }
            try await onThread {
                let client = try MessagePort(remote: name)
                for number in 0..<500 as Range<Int32> {
                    if number % 2 == 0 {
                        try client.sendAndWait(number: number, [1].span.bytes)
                    } else {
                        #expect(try client.requestAndWait(number: number, [2]) == [2])
                    }
                }
            }
            stop.requestStop()
            try await replacer.value
            server.onRequestBytes = nil
        }
        while freed.value < made.value { await Task.yield() }
        #expect(freed.value == made.value && wrong.value == 0)
    }

    @Test func `a name that it gets while another thread replaces its handler answers by the last one`() async throws {
        for _ in 0..<6 {
            try await withServer { server, name in
                for round in 0..<10 as Range<UInt8> {
                    let setter = try Thread.joinable {
                        for number in 0..<4 as Range<UInt8> { server.onRequest = { _, _ in [round, number] } }
                    }
                    #expect(MessagePortNameServer.shared.registerPort(server, name: "\(name).\(round)"))
                    try await setter.value
                    for name in [name, "\(name).\(round)"] {
                        let answer = try await MessagePort(remote: name).requestBytes(number: 1, [])
                        #expect(answer == [round, 3])
                    }
                }
            }
        }
    }

    @Test func `serves many requests at once`() async throws {
        try await withServer { server, name in
            server.handle(.bytes(number: 2)) { $0 }
            let client = try MessagePort(remote: name)
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<20 {
                    group.addTask { try await client.request(.bytes(number: 2), [UInt8(number)]) == [UInt8(number)] }
                }
                for try await isEqual in group { #expect(isEqual) }
            }
        }
    }

    @Test func `gives up at a deadline, and when the task is cancelled`() async throws {
        let silent = try MessagePort(name: name())  // in no loop: nobody answers
        let client = try MessagePort(remote: silent.name)
        await #expect(throws: PortError.receiveTimeout) {
            try await client.request(.text(number: 1), "anyone?", timeout: .milliseconds(10))
        }
        let task = Task { try await client.request(.text(number: 1), "anyone?", timeout: .seconds(1000)) }
        await Task.yield()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await #expect(throws: PortError.invalidTimeout(.seconds(-1))) {
            try await client.request(.text(number: 1), "anyone?", timeout: .seconds(-1))
        }
        await #expect(throws: PortError.invalidTimeout(.seconds(-2))) {
            try await client.requestBytes(number: 1, [], timeout: .seconds(-2))
        }
        try await onThread {
            #expect(throws: PortError.invalidTimeout(.seconds(-3))) { try client.requestAndWait(number: 1, [], timeout: .seconds(-3)) }
            let nothing: [UInt8] = []
            #expect(throws: PortError.invalidTimeout(.seconds(-4))) {
                try client.sendAndWait(number: 1, nothing.span.bytes, timeout: .seconds(-4))
            }
            let shortest = Duration(secondsComponent: 0, attosecondsComponent: -1)
            #expect(throws: PortError.invalidTimeout(shortest)) {
                try client.sendAndWait(number: 1, nothing.span.bytes, timeout: shortest)
            }
            try client.sendAndWait(number: 1, nothing.span.bytes, timeout: .zero)
        }
        silent.invalidate()
    }

    @Test func `has errors that name what was refused`() async throws {
        let name = name()
        let owner = try MessagePort(name: name)
        #expect(throws: PortError.nameTaken(name)) { try MessagePort(name: name) }
        #expect(throws: PortError.invalidName("")) { try MessagePort(name: "") }
        #expect(throws: PortError.invalidName("a\0b")) { try MessagePort(name: "a\0b") }
        #expect(throws: PortError.notFound("crl.tests.nobody")) { try MessagePort(remote: "crl.tests.nobody") }
        let client = try MessagePort(remote: name)
        owner.invalidate()
        await #expect(throws: PortError.invalid(name)) { try await client.request(.text(number: 1), "dead?", timeout: .seconds(1000)) }
        #expect(throws: PortError.notFound(name)) { try MessagePort(remote: name) }
    }

    private func greeting(of name: String) async throws -> String {
        try await MessagePort(remote: name).request(.text(number: 1), "you")
    }

    @Test func `with several names is reached by each, also by those that it got in its loop`() async throws {
        try await withServer { server, name in
            server.handle(.text(number: 1)) { "hello, \($0)" }
            for further in [name + ".second", name + ".third", name + ".\u{E9}", name + ".e\u{301}"] {
                #expect(MessagePortNameServer.shared.registerPort(server, name: further))
                let answer = try await greeting(of: further)
                #expect(answer == "hello, you")
            }
            #expect(server.name == name)
            #expect(server.setName(name + ".new"))
            let answer = try await greeting(of: name + ".new")
            #expect(answer == "hello, you")
            _ = #expect(throws: PortError.notFound(name)) { try MessagePort(remote: name) }
        }
    }

    @Test func `is not renamed to what cannot be a name, or to one that a port has, and keeps its name when it is invalid`() throws {
        let (first, second, name) = (try MessagePort(name: nil), try MessagePort(name: nil), name())
        let longest = name + String(repeating: "x", count: 128 - name.utf8.count)
        #expect(first.setName(longest))
        for impossible in ["", longest + "x", "y" + longest, name + "\0"] {
            #expect(!second.setName(impossible))
            #expect(throws: PortError.invalidName(impossible)) { try MessagePort(name: impossible) }
            #expect(throws: PortError.notFound(impossible)) { try MessagePort(remote: impossible) }
        }
        let remote = try MessagePort(remote: longest)
        #expect(!first.setName(longest) && !second.setName(longest) && !remote.setName(name))
        first.invalidate()
        #expect(!first.setName(name) && first.name == longest && remote.name == longest)
        #expect(throws: PortError.invalid(longest)) { try first.post(before: .now) }
        #expect(second.setName(longest))
        second.invalidate()
    }

    @Test func `is found by the name server, and renamed`() throws {
        let (first, second) = (try MessagePort(name: nil), try MessagePort(name: nil))
        let name = name()
        let server = MessagePortNameServer.shared
        #expect(server.registerPort(first, name: name))
        #expect(!server.registerPort(second, name: name))
        #expect(server.port(forName: name)?.isRemote == true)
        #expect(server.port(forName: name, host: "elsewhere") == nil)
        #expect(server.port(forName: "crl.tests.nobody") == nil)
        first.invalidate()
        #expect(server.port(forName: name) == nil)
        #expect(server.registerPort(second, name: name))
        #expect(server.registerPort(second, name: name + ".again"))
        #expect(server.port(forName: name) != nil && server.port(forName: name + ".again") != nil)
        second.invalidate()
        #expect(server.port(forName: name) == nil && server.port(forName: name + ".again") == nil)
        #expect(!server.registerPort(second, name: name))
        #expect(!server.registerPort(try MessagePort(name: nil), name: ""))
    }

    @Test func `is found by its name in its process, and nothing is left of a name that its port's end has given up`() {
        let server = MachBootstrapServer.shared
        let (mach, second, name) = (MachPort(), MachPort(), name())
        #expect(server.registerPort(mach, name: name) && server.registerPort(mach, name: name))
        #expect(server.registerPort(mach, name: name + ".again"))
        #expect(!server.registerPort(second, name: name) && !server.registerPort(second, name: ""))
        #expect(server.registerPort(mach, name: name + ".\u{E9}") && server.registerPort(second, name: name + ".e\u{301}"))
        #expect(server.port(forName: name) === mach && server.port(forName: name + ".e\u{301}", host: "") === second)
        #expect(server.port(forName: name, host: "elsewhere") == nil)
        mach.invalidate()
        #expect(server.port(forName: name) == nil && !server.isKnown(name) && !server.isKnown(name + ".again"))
        #expect(!server.registerPort(mach, name: name) && !server.isKnown(name))
        #expect(server.registerPort(second, name: name) && server.port(forName: name) === second)
        func register() { #expect(server.registerPort(MachPort(), name: name + ".brief")) }
        register()
        #expect(server.port(forName: name + ".brief") == nil && !server.isKnown(name + ".brief"))
        register()
        second.invalidate()
    }
}
