// SPDX-License-Identifier: Apache-2.0
//
// A server on loopback, and a folder with a directory of names for each machine.

import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The name of the port of the actor "hall".
let port = "actor:bridges.Adder/hall"

func fail(_ sentence: String) -> Never {
    print("bridges: \(sentence)")
    exit(1)
}

func expect(_ holds: Bool, _ sentence: @autoclosure () -> String) {
    if !holds { fail(sentence()) }
}

/// Runs the loop until something holds. The whole program has a time limit.
func run(until holds: () -> Bool) {
    while !holds() { _ = RunLoop.current.run(in: .default, for: .milliseconds(10), returnAfterSourceHandled: true) }
}

struct Place {
    let folder: String
    let port: UInt16
    private let server: pid_t

    var url: String { "nats://127.0.0.1:\(port)" }

    /// Starts a server; ends the program as skipped if there is none.
    init() {
        var template = Array("/tmp/corerunloop-bridges-XXXXXX".utf8CString)
        expect(mkdtemp(&template) != nil, "there is no folder")
        folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        port = Self.freePort()
        guard let version = start("nats-server", ["--version"], quietly: true) else {
            rmdir(folder)
            print("nats-server is not installed (make deps)")
            exit(77)
        }
        awaitEnd(version)
        // Should this program crash, the server ends by itself, and keeps nobody waiting who reads the output.
        guard let server = start("timeout", ["100", "nats-server", "-a", "127.0.0.1", "-p", "\(port)"], quietly: true) else {
            fail("the server cannot be started")
        }
        self.server = server
        while !Self.answers(port) { Thread.sleep(for: .milliseconds(5)) }
    }

    func remove() {
        kill(server, SIGTERM)  // which it passes on
        awaitEnd(server)
        for machine in ["here", "there"] { _ = start("rm", ["-rf", "\(folder)/\(machine)"]).map(awaitEnd) }
        rmdir(folder)
    }

    /// The environment of a machine's processes: they find only each other's ports.
    func become(_ machine: String) {
        mkdir("\(folder)/\(machine)", 0o700)
        setenv("CORERUNLOOP_PORTS", "\(folder)/\(machine)", 1)
    }

    private static func connect(_ port: UInt16, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
        #if canImport(Glibc)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func answers(_ port: UInt16) -> Bool {
        #if canImport(Glibc)
            connect(port) { Glibc.connect($0, $1, $2) == 0 }
        #else
            connect(port) { Musl.connect($0, $1, $2) == 0 }
        #endif
    }

    private static func freePort() -> UInt16 {
        var port: UInt16 = 0
        let isBound = connect(0) { descriptor, address, length in
            var own = sockaddr_in()
            var size = length
            guard bind(descriptor, address, length) == 0 else { return false }
            return withUnsafeMutablePointer(to: &own) { own in
                own.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) == 0 }
                    && {
                        port = UInt16(bigEndian: own.pointee.sin_port); return true
                    }()
            }
        }
        expect(isBound, "there is no free port")
        return port
    }
}

// MARK: Processes

/// Returns `nil` if there is no such program.
func start(_ program: String, _ arguments: [String], quietly: Bool = false) -> pid_t? {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for output: Int32 in quietly ? [1, 2] : [] { posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0) }
    let words = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var pid: pid_t = 0
    return posix_spawnp(&pid, program, &actions, nil, words, environ) == 0 ? pid : nil
}

func awaitEnd(_ pid: pid_t) {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
}

func end(_ pid: pid_t) {
    kill(pid, SIGKILL)
    awaitEnd(pid)
}
