// SPDX-License-Identifier: Apache-2.0
//
// A small service on a message port and a Unix socket, and its client: `swift run swift-service server`, then in another terminal
// `swift run swift-service client`. SIGTERM or SIGINT ends the server; `swift run swift-service` runs both, and ends the server by SIGTERM.

import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

let portName = "corerunloop.example.service.\(getuid())"
let socketPath = "/tmp/corerunloop-example-\(getuid())-\(CommandLine.arguments.dropFirst(2).first ?? "0").sock"

extension MessagePort.Exchange where Request == String, Reply == String {
    static var upper: Self { .text(number: 1) }
}

func withAddress<Result>(of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
}

/// The service: an actor on the main loop's thread, whose callbacks may use its state at once.
actor Service: RunLoopActor {
    nonisolated let runLoop: RunLoop
    private(set) var served = 0

    init(on runLoop: RunLoop) { self.runLoop = runLoop }

    func upper(_ text: String) -> String {
        served += 1
        return text.uppercased()
    }
}

func serve() throws -> Int {
    return try RunLoop.runMain {
        let service = Service(on: .main)

        let port = try MessagePort(name: portName)
        port.handle(.upper) { text in service.assumeIsolated { $0.upper(text) } }
        RunLoop.main.add(port, forMode: .common)

        unlink(socketPath)
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard withAddress(of: socketPath, { bind(listener, $0, $1) }) == 0, listen(listener, 16) == 0 else {
            throw RunLoopError.invalidDescriptor(listener)
        }
        let connections = try DescriptorSource(descriptor: listener, closeOnInvalidate: true) { event in
            let connection = accept(event.descriptor, nil, nil)
            guard connection >= 0 else { return }
            let source = try? DescriptorSource(descriptor: connection, closeOnInvalidate: true) { event in
                var bytes = [UInt8](repeating: 0, count: 512)
                let count = read(event.descriptor, &bytes, bytes.count)
                guard count > 0 else { return event.invalidate() }
                let answer = service.assumeIsolated { $0.upper(String(decoding: bytes.prefix(count), as: UTF8.self)) }
                _ = write(event.descriptor, answer, answer.utf8.count)
            }
            if let source { RunLoop.main.add(source, forMode: .common) } else { close(connection) }
        }
        RunLoop.main.add(connections, forMode: .common)

        print("server: ready")
        for await signal in try RunLoop.main.signals([SIGTERM, SIGINT]) {
            print("server: signal \(signal.number), \(await service.served) requests served")
            break
        }
        port.invalidate()
        connections.invalidate()
        unlink(socketPath)
        return await service.served
    }
}

func ask() async throws {
    let port = try MessagePort(remote: portName)
    print("client: the port says \(try await port.request(.upper, "hello"))")
    let connection = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(connection) }
    guard withAddress(of: socketPath, { connect(connection, $0, $1) }) == 0 else { throw RunLoopError.invalidDescriptor(connection) }
    _ = write(connection, "world", 5)
    for await _ in try RunLoop.main.readiness(of: connection) {
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = read(connection, &bytes, bytes.count)
        print("client: the socket says \(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self))")
        break
    }
}

/// Starts this program again.
func spawnSelf(_ argument: String) -> pid_t {
    var process: pid_t = 0
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("/proc/self/exe"), strdup(argument), nil]
    defer { arguments.forEach { free($0) } }
    return posix_spawn(&process, "/proc/self/exe", nil, nil, &arguments, environ) == 0 ? process : -1
}

switch CommandLine.arguments.dropFirst().first {
case "server": _ = try serve()
case "client": try RunLoop.runMain { try await ask() }
default:
    let ended: ChildProcessSource.Status = try RunLoop.runMain {
        let server = spawnSelf("server")
        let (statuses, continuation) = AsyncStream.makeStream(of: ChildProcessSource.Status.self)
        let child = try ChildProcessSource(processID: server) { _, status in continuation.yield(status) }
        RunLoop.main.add(child, forMode: .common)
        for attempt in 1... {
            do {
                try await ask()
                break
            } catch PortError.notFound(let name) {
                guard attempt < 500 else { throw PortError.notFound(name) }
                try await Task.sleep(for: .milliseconds(10), clock: RunLoop.main.clock)
            }
        }
        kill(server, SIGTERM)
        var statusesOfServer = statuses.makeAsyncIterator()
        return await statusesOfServer.next() ?? .unknown
    }
    print("the server ended: \(ended)")
    exit(ended == .exited(0) ? 0 : 1)
}
