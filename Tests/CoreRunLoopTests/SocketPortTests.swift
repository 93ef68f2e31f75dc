// SPDX-License-Identifier: Apache-2.0
//
// The socket ports, rule 1611 of docs/rules.md; what all ports have in common is in PortTests.

import CoreRunLoop
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A `sockaddr_in` or `sockaddr_in6` of this machine, as bytes.
private func loopback(_ family: Int32, _ number: UInt16 = 0, host: [UInt8]? = nil) -> [UInt8] {
    let header = [UInt8(family), 0, UInt8(number >> 8), UInt8(number & 0xFF)]
    if family == AF_INET { return header + (host ?? [127, 0, 0, 1]) + [UInt8](repeating: 0, count: 8) }
    return header + [0, 0, 0, 0] + (host ?? [UInt8](repeating: 0, count: 15) + [1]) + [0, 0, 0, 0]
}

/// A `sockaddr_un`, as bytes.
private func unixAddress(_ path: String) -> [UInt8] { [UInt8(AF_UNIX), 0] + Array(path.utf8) + [0] }

private func freshPath() -> String { "/tmp/corerunloop-tests-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock" }

private let stream = Int32(SOCK_STREAM.rawValue)
/// For sockets of the tests' own: a program that another test starts meanwhile would keep them open.
private let closingStream = stream | Int32(SOCK_CLOEXEC.rawValue)

/// Runs the calling thread's loop until `port` has got that many messages.
private func receive(_ number: Int, on port: Port) -> [PortMessage] {
    let messages = Mutex<[PortMessage]>([])
    port.onMessage = { message in messages.withLock { $0.append(message) } }
    RunLoop.current.add(port, forMode: .default)
    let limit = WallTime.now + .seconds(1000)
    while messages.withLock({ $0.count }) < number && limit > .now { _ = RunLoop.current.run(mode: .default, before: limit) }
    RunLoop.current.remove(port, forMode: .default)
    port.onMessage = nil
    return messages.withLock { $0 }
}

/// A plain connection to a port, for bytes that are no messages.
private func connection(to port: SocketPort) -> Int32 {
    let made = socket(port.protocolFamily, closingStream, 0)
    let result = port.address.withUnsafeBytes { bytes in
        connect(made, bytes.baseAddress.map { $0.assumingMemoryBound(to: sockaddr.self) }, socklen_t(bytes.count))
    }
    if result != 0 { close(made) }
    return result == 0 ? made : -1
}

/// How many descriptors of this process are sockets whose number is, or whose peer's is, one of these.
private func descriptors(on numbers: Set<UInt16>) -> Int {
    func number(_ of: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32, _ descriptor: Int32) -> UInt16? {
        var address = sockaddr_in6()
        var size = socklen_t(MemoryLayout.size(ofValue: address))
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { of(descriptor, $0, &size) }
        }
        let isInternet = [sa_family_t(AF_INET), sa_family_t(AF_INET6)].contains(address.sin6_family)
        return result == 0 && isInternet ? UInt16(bigEndian: address.sin6_port) : nil
    }
    return (0..<4096).count { descriptor in
        [number(getsockname, descriptor), number(getpeername, descriptor)].contains { $0.map(numbers.contains) == true }
    }
}

/// Waits until nobody listens there any more: a program that another test starts at this moment has all descriptors until it has begun.
private func awaitRefusal(by port: SocketPort) {
    while case let made = connection(to: port), made >= 0 {
        close(made)
        sched_yield()
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A socket port` {
    @Test func `has a number of its own, and everything that it was made of`() throws {
        let port = try SocketPort(tcpPort: 0)
        let number = try #require(port.tcpPort)
        #expect(number != 0 && !port.isRemote && port.socket >= 0)
        #expect(port.protocolFamily == AF_INET && port.socketType == stream && port.protocol == Int32(IPPROTO_TCP))
        #expect(port.address == loopback(AF_INET, number))
        port.invalidate()
        #expect(port.socket == -1)
        awaitRefusal(by: port)
    }

    @Test func `is reached by its number, its address, and from a new object each time`() async throws {
        try await onThread {
            let port = try SocketPort(tcpPort: 0)
            let number = try #require(port.tcpPort)
            let remotes = [
                try SocketPort(remoteWithTCPPort: number, host: nil), try SocketPort(remoteWithTCPPort: number, host: ""),
                try SocketPort(remoteWithTCPPort: number, host: "localhost"),
                try SocketPort(remoteWithTCPPort: number, host: "127.0.0.1"),
                try SocketPort(remoteWithProtocolFamily: AF_INET, socketType: stream, protocol: 0, address: loopback(AF_INET, number)),
            ]
            for (index, remote) in remotes.enumerated() {
                #expect(remote.isRemote && remote.socket == -1)
                #expect(remote == remotes[0] && remote.hashValue == remotes[0].hashValue && remote != port)
                #expect(remote.send(before: .now, msgid: UInt32(index), components: [[UInt8(index)]], from: nil))
            }
            let messages = receive(remotes.count, on: port)
            #expect(messages.map(\.msgid).sorted() == [0, 1, 2, 3, 4])
            #expect(messages.allSatisfy { $0.receivePort === port && $0.sendPort == nil && $0.components.count == 1 })
            port.invalidate()
        }
    }

    @Test func `keeps the order of one sender's messages, large ones included`() async throws {
        try await onThread {
            let port = try SocketPort(tcpPort: 0)
            let remote = try SocketPort(remoteWithTCPPort: port.tcpPort ?? 0, host: nil)
            let sizes = [0, 1, 4_000_000, 3, 70_000, 65_536, 65_535]
            let sender = try Thread.joinable {
                for (index, size) in sizes.enumerated() {
                    let bytes = [UInt8](repeating: UInt8(index), count: size)
                    try remote.post(msgid: UInt32(index), components: [bytes, [] as [UInt8]], before: .now + .seconds(1000))
                }
            }
            let messages = receive(sizes.count, on: port)
            #expect(messages.map(\.msgid) == [0, 1, 2, 3, 4, 5, 6])
            for (index, message) in messages.enumerated() {
                #expect(message.components[0] as? [UInt8] == [UInt8](repeating: UInt8(index), count: sizes[index]))
            }
            sender.thread.join()
            port.invalidate()
        }
    }

    @Test func `hands its one message to each run`() async throws {
        try await onThread {
            let port = try SocketPort(tcpPort: 0)
            for number in 0..<3 { #expect(port.send(before: .now, msgid: UInt32(number), components: nil, from: nil)) }
            let numbers = Mutex<[UInt32]>([])
            port.onMessage = { message in numbers.withLock { $0.append(message.msgid) } }
            RunLoop.current.add(port, forMode: .default)
            for number in 1...3 {
                #expect(RunLoop.current.run(mode: .default, before: .now + .seconds(1000)))
                #expect(numbers.withLock { $0.count } == number)
            }
            #expect(numbers.withLock { $0 } == [0, 1, 2])
            port.invalidate()
        }
    }

    @Test func `receives in a run inside its own delegate`() async throws {
        try await onThread {
            let port = try SocketPort(tcpPort: 0)
            let trace = Trace()
            port.onMessage = { message in
                trace.add("begin \(message.msgid)")
                if message.msgid == 0 { _ = RunLoop.current.run(mode: .default, before: .now + .seconds(1000)) }
                trace.add("end \(message.msgid)")
            }
            RunLoop.current.add(port, forMode: .default)
            for number in 0..<2 { #expect(port.send(before: .now, msgid: UInt32(number), components: nil, from: nil)) }
            while trace.events.count < 4 { _ = RunLoop.current.run(mode: .default, before: .now + .seconds(1000)) }
            #expect(trace.events == ["begin 0", "begin 1", "end 1", "end 0"])
            port.invalidate()
        }
    }

    @Test func `waits for room until its date, and then says so`() async throws {
        try await onThread {
            let port = try SocketPort(tcpPort: 0)
            let remote = try SocketPort(remoteWithTCPPort: port.tcpPort ?? 0, host: nil)
            let bytes = [UInt8](repeating: 7, count: 1 << 20)
            var sent = 0
            #expect(throws: PortError.sendTimeout) {
                for _ in 0..<200 {
                    try remote.post(components: [bytes], before: .now + .milliseconds(5))
                    sent += 1
                }
            }
            #expect(remote.isValid)
            #expect(receive(sent, on: port).count == sent)
            try remote.post(msgid: 9, before: .now)
            #expect(receive(1, on: port).map(\.msgid) == [9])
            port.invalidate()
        }
    }

    @Test(arguments: [AF_INET, AF_INET6]) func `listens on all addresses when it is told to, and can be answered`(family: Int32)
        async throws
    {
        try await onThread {
            let all = [UInt8](repeating: 0, count: family == AF_INET ? 4 : 16)
            let make = {
                try SocketPort(protocolFamily: family, socketType: stream, protocol: 0, address: loopback(family, host: all))
            }
            let (port, answer) = (try make(), try make())
            #expect(port.protocolFamily == family)
            let remote = try SocketPort(
                remoteWithProtocolFamily: family, socketType: stream, protocol: 0, address: loopback(family, port.tcpPort ?? 0))
            #expect(remote.send(before: .now, msgid: 3, components: [answer], from: answer))
            let message = try #require(receive(1, on: port).first)
            #expect(message.sendPort === answer && message.components.first as? Port === answer)
            #expect(message.sendPort?.send(before: .now, msgid: 4, components: nil, from: nil) == true)
            #expect(receive(1, on: answer).map(\.msgid) == [4])
            port.invalidate()
            answer.invalidate()
        }
    }

    @Test func `may be a Unix socket, whose file it makes and removes`() async throws {
        try await onThread {
            let path = freshPath()
            let port = try SocketPort(protocolFamily: AF_UNIX, socketType: stream, protocol: 0, address: unixAddress(path))
            #expect(access(path, F_OK) == 0 && port.tcpPort == nil)
            #expect(throws: PortError.nameTaken(path)) {
                try SocketPort(protocolFamily: AF_UNIX, socketType: stream, protocol: 0, address: unixAddress(path))
            }
            let answerPath = freshPath()
            let answer = try SocketPort(protocolFamily: AF_UNIX, socketType: stream, protocol: 0, address: unixAddress(answerPath))
            let remote = try SocketPort(remoteWithProtocolFamily: AF_UNIX, socketType: stream, protocol: 0, address: unixAddress(path))
            #expect(remote.send(before: .now, msgid: 5, components: [[1 as UInt8]], from: answer))
            let message = try #require(receive(1, on: port).first)
            #expect(message.msgid == 5 && message.sendPort === answer)
            port.invalidate()
            answer.invalidate()
            #expect(access(path, F_OK) != 0 && access(answerPath, F_OK) != 0)
        }
    }

    @Test func `that is a Unix socket leaves another one's file at its path`() throws {
        let path = freshPath()
        let make = { try SocketPort(protocolFamily: AF_UNIX, socketType: stream, protocol: 0, address: unixAddress(path)) }
        func makeAndEnd() throws -> SocketPort {
            let ended = try make()
            ended.invalidate()
            let next = try make()
            withExtendedLifetime(ended) {}
            return next
        }
        let second = try makeAndEnd()
        #expect(access(path, F_OK) == 0)  // the first has been released
        unlink(path)
        let third = try make()
        second.invalidate()
        #expect(access(path, F_OK) == 0)
        third.invalidate()
        #expect(access(path, F_OK) != 0)
    }

    @Test func `takes a listening socket over, and nothing else`() async throws {
        try await onThread {
            let listening = socket(AF_INET, closingStream, 0)
            #expect(listen(listening, 4) == 0)  // the system chooses a number on all addresses
            let port = try SocketPort(protocolFamily: AF_INET, socketType: stream, protocol: 0, socket: listening)
            #expect(port.socket == listening)
            #expect(port.send(before: .now, msgid: 1, components: nil, from: nil))
            #expect(receive(1, on: port).count == 1)
            port.invalidate()
            awaitRefusal(by: port)
            let silent = socket(AF_INET, closingStream, 0)
            #expect(throws: PortError.invalidAddress("socket \(silent)")) {
                try SocketPort(protocolFamily: AF_INET, socketType: stream, protocol: 0, socket: silent)
            }
            #expect(throws: PortError.invalidAddress("socket -1")) {
                try SocketPort(protocolFamily: AF_INET, socketType: stream, protocol: 0, socket: -1)
            }
        }
    }

    @Test func `gives its messages as a sequence, all or as many as are to be kept`() async throws {
        func numbers(_ messages: @escaping @Sendable (SocketPort) -> AsyncStream<PortMessage>) async throws -> [UInt32] {
            let unread = try await onThread {
                let port = try SocketPort(tcpPort: 0)
                let messages = messages(port)
                RunLoop.current.add(port, forMode: .default)
                for number in UInt32(1)...5 {
                    try port.post(msgid: number, components: [], before: .now + .seconds(1000))
                    #expect(RunLoop.current.run(mode: .default, before: .now + .seconds(1000)))
                }
                port.invalidate()
                return messages
            }
            return await unread.reduce(into: []) { $0.append($1.msgid) }
        }
        #expect(try await numbers { $0.messages() } == [1, 2, 3, 4, 5])
        #expect(try await numbers { $0.messages(keeping: .bufferingNewest(2)) } == [4, 5])
    }

    @Test func `has errors that name what was refused`() throws {
        let port = try SocketPort(tcpPort: 0)
        let number = try #require(port.tcpPort)
        #expect(throws: PortError.nameTaken("127.0.0.1:\(number)")) { try SocketPort(tcpPort: number) }
        #expect(throws: PortError.notFound("example.invalid")) { try SocketPort(remoteWithTCPPort: 80, host: "example.invalid") }
        let cut = "127.0.0.1\0.example.invalid"
        #expect(throws: PortError.notFound(cut)) { try SocketPort(remoteWithTCPPort: 80, host: cut) }
        #expect(throws: PortError.invalidAddress("0")) { try SocketPort(remoteWithTCPPort: 0, host: nil) }
        #expect(throws: PortError.invalidAddress("192.0.2.1:80")) {
            try SocketPort(protocolFamily: AF_INET, socketType: stream, protocol: 0, address: loopback(AF_INET, 80, host: [192, 0, 2, 1]))
        }
        for bytes in [[], [UInt8(AF_INET), 0, 0], [99, 0] + [UInt8](repeating: 0, count: 20), [UInt8(AF_UNIX), 0, 0, 65]] {
            #expect(throws: PortError.self) {
                try SocketPort(remoteWithProtocolFamily: AF_INET, socketType: stream, protocol: 0, address: bytes)
            }
            #expect(throws: PortError.self) {
                try SocketPort(remoteWithProtocolFamily: AF_UNIX, socketType: stream, protocol: 0, address: bytes)
            }
        }
        #expect(throws: PortError.invalidAddress("family 2, type 2, 16 bytes")) {
            try SocketPort(remoteWithProtocolFamily: AF_INET, socketType: 2, protocol: 0, address: loopback(AF_INET, 80))
        }
        port.invalidate()
    }

    @Test func `that nobody listens to any more becomes invalid when something is sent`() async throws {
        try await onThread {
            let port = try SocketPort(tcpPort: 0)
            let remote = try SocketPort(remoteWithTCPPort: port.tcpPort ?? 0, host: nil)
            try remote.post(before: .now)
            #expect(receive(1, on: port).count == 1)
            port.invalidate()
            let told = Count()
            remote.onInvalidate { told.next() }
            let patience = WallTime.now + .seconds(1000)
            #expect(throws: PortError.invalid("127.0.0.1:\(remote.tcpPort ?? 0)")) {
                while .now < patience { try remote.post(before: patience) }  // a busy kernel takes a moment to tell of the end
            }
            #expect(!remote.isValid && told.value == 1)
        }
    }

    @Test(arguments: [
        Array("GET / HTTP/1.1\r\n\r\n".utf8), Array("CRLS".utf8), Array("CRLS".utf8) + [255, 255, 255, 255, 0, 0, 0, 0],
        Array("CRLS".utf8) + [4, 0, 0, 0, 0, 0, 0, 0] + Array("abcd".utf8), Array("CRLS".utf8) + [255, 0, 0, 0, 0, 0, 0, 0, 1],
    ]) func `drops what is no message, and goes on`(bytes: [UInt8]) async throws {
        try await onThread {
            let port = try SocketPort(tcpPort: 0)
            let stranger = connection(to: port)
            #expect(write(stranger, bytes, bytes.count) == bytes.count)
            close(stranger)
            #expect(port.send(before: .now, msgid: 8, components: nil, from: nil))
            #expect(receive(1, on: port).map(\.msgid) == [8])
            port.invalidate()
        }
    }

    @Test func `puts together what comes in pieces`() async throws {
        try await onThread {
            let port = try SocketPort(tcpPort: 0)
            let stranger = connection(to: port)
            // A message without components or answer, with the number 258.
            let bytes = Array("CRLS".utf8) + [16, 0, 0, 0, 2, 1, 0, 0] + Array("CRLPORT1".utf8) + [UInt8](repeating: 0, count: 8)
            port.onMessage = { _ in Issue.record("too early") }
            RunLoop.current.add(port, forMode: .default)
            for byte in bytes.dropLast() {
                #expect(write(stranger, [byte], 1) == 1)
                _ = RunLoop.current.run(mode: .default, before: .now)
            }
            #expect(write(stranger, [bytes[bytes.count - 1]], 1) == 1)
            #expect(receive(1, on: port).map(\.msgid) == [258])
            close(stranger)
            port.invalidate()
        }
    }

    @Test func `leaves no descriptor behind`() async throws {
        try await onThread {
            var numbers: Set<UInt16> = []
            for _ in 0..<50 {
                let port = try SocketPort(tcpPort: 0)
                let number = try #require(port.tcpPort)
                let remote = try SocketPort(remoteWithTCPPort: number, host: nil)
                try remote.post(before: .now)
                _ = receive(1, on: port)
                if numbers.isEmpty { #expect(descriptors(on: [number]) > 1) }
                numbers.insert(number)
            }
            // Other tests may have got one of the numbers by now: what fifty exchanges would leave is more.
            #expect(descriptors(on: numbers) < 25)
        }
    }

    @Test func `serves another process`() async throws {
        let port = try SocketPort(tcpPort: 0)
        let name = "crl.tests.sockets.\(getpid())"
        #expect(SocketPortNameServer.shared.registerPort(port, name: name))
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: stop)
        port.onMessage = { message in
            #expect(
                message.sendPort?.send(before: .now + .seconds(1000), msgid: message.msgid + 1, components: message.components, from: nil)
                    == true)
        }
        loop.add(port, forMode: .default)
        await #expect(processExitsWith: .exitCode(7)) { [name = name as String] in
            let answers = try Thread.joinable {
                let remote = try #require(SocketPortNameServer.shared.port(forName: name))
                let own = try SocketPort(tcpPort: 0)
                try remote.post(msgid: 41, components: [Array("hello".utf8)], from: own, before: .now + .seconds(1000))
                return receive(1, on: own)
            }
            let message = try #require(try await answers.value.first)
            exit(message.msgid == 42 && message.components.first as? [UInt8] == Array("hello".utf8) ? 7 : 1)
        }
        stop.requestStop()
        port.invalidate()
    }
}

@Suite(.timeLimit(.minutes(10))) struct `The socket ports' name server` {
    @Test func `knows ports by unique names, as long as they are valid`() async throws {
        try await onThread {
            let server = SocketPortNameServer.shared
            let name = "crl.tests.\(getpid()).\(UInt32.random(in: 0 ... .max))"
            let (first, second) = (try SocketPort(tcpPort: 0), try SocketPort(tcpPort: 0))
            #expect(server.port(forName: name) == nil)
            #expect(server.registerPort(first, name: name))
            #expect(server.registerPort(first, name: name))
            #expect(server.registerPort(first, name: name + ".again"))
            #expect(!server.registerPort(second, name: name))
            #expect(server.port(forName: name) === first)
            #expect(server.port(forName: name, host: "localhost") === first)
            #expect(server.port(forName: name, host: "elsewhere") == nil)
            #expect(!server.registerPort(try SocketPort(remoteWithTCPPort: first.tcpPort ?? 0, host: nil), name: name + ".remote"))
            #expect(!server.registerPort(first, name: ""))
            #expect(server.registerPort(first, name: name + ".\u{E9}") && server.registerPort(second, name: name + ".e\u{301}"))
            #expect(server.port(forName: name + ".e\u{301}") === second)
            #expect(server.removePort(forName: name + ".again"))
            #expect(!server.removePort(forName: name + ".again"))
            #expect(first.isValid && server.port(forName: name + ".again") == nil)
            first.invalidate()
            #expect(server.port(forName: name) == nil)
            #expect(server.registerPort(second, name: name))
            second.invalidate()
            #expect(!server.registerPort(second, name: name))
        }
    }

    @Test func `keeps nothing in a port whose name was taken from it`() async throws {
        try await onThread {
            let server = SocketPortNameServer.shared
            let name = "crl.tests.\(getpid()).\(UInt32.random(in: 0 ... .max))"
            let port = try SocketPort(tcpPort: 0)
            for _ in 0..<3 {
                #expect(server.registerPort(port, name: name) && port.invalidationHandlerCount == 1)
                #expect(server.removePort(forName: name) && port.invalidationHandlerCount == 0)
            }
            port.invalidate()
        }
    }

    @Test func `may be used by those who are told of the first thread, which it starts`() async {
        await #expect(processExitsWith: .exitCode(3)) {
            alarm(600)
            let name = "crl.tests.\(getpid()).\(UInt32.random(in: 0 ... .max))"
            let (first, second) = (try SocketPort(tcpPort: 0), try SocketPort(tcpPort: 0))
            let told = Count()
            Thread.onWillBecomeMultiThreaded {
                if SocketPortNameServer.shared.registerPort(second, name: name + ".second") { told.next() }
            }
            guard SocketPortNameServer.shared.registerPort(first, name: name), told.value == 1 else { exit(1) }
            try await onThread {
                for name in [name, name + ".second"] {
                    if try MessagePort(remote: "SocketPort:" + name).requestAndWait(number: 0, [], timeout: .seconds(1000)).isEmpty {
                        exit(2)
                    }
                }
            }
            exit(3)
        }
    }

    @Test func `gives a name up with its port's last release`() async throws {
        try await onThread {
            let server = SocketPortNameServer.shared
            let name = "crl.tests.\(getpid()).\(UInt32.random(in: 0 ... .max))"
            func register() throws { #expect(server.registerPort(try SocketPort(tcpPort: 0), name: name)) }
            try register()
            #expect(server.port(forName: name) == nil)
            try register()
        }
    }

    @Test func `gives others the address`() async throws {
        try await onThread {
            let name = "crl.tests.\(getpid()).\(UInt32.random(in: 0 ... .max))"
            let port = try SocketPort(tcpPort: 0)
            #expect(SocketPortNameServer.shared.registerPort(port, name: name))
            // What another process does.
            let holder = try MessagePort(remote: "SocketPort:" + name)
            let number = try #require(port.tcpPort)
            #expect(try holder.requestAndWait(number: 0, []) == [4, UInt8(number >> 8), UInt8(number & 0xFF), 127, 0, 0, 1])
            port.invalidate()
        }
    }
}
