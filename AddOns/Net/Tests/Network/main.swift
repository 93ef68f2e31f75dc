// SPDX-License-Identifier: Apache-2.0
//
// The add-on library in a program of SwiftPM, which links it and calls nothing of it: streams of the C interface and of Swift then have
// TLS and names of hosts. `openssl s_server` is the peer. A program of its own, because the tests of the overlay are to run without that
// library. Names come from /etc/hosts, so that no server is asked for them.

import CCoreRunLoop
import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

func fail(_ sentence: String) -> Never {
    print("network: \(sentence)")
    exit(1)
}

func expect(_ holds: Bool, _ sentence: String) {
    if !holds { fail(sentence) }
}

// MARK: The peer

func start(_ words: [String], outputTo output: Int32? = nil) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    if let output { posix_spawn_file_actions_adddup2(&actions, output, 1) }
    let arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var pid: pid_t = 0
    if posix_spawnp(&pid, words[0], &actions, nil, arguments, environ) != 0 {
        print("there is no \(words[0])")
        exit(77)
    }
    return pid
}

func awaitEnd(_ pid: pid_t) -> Int32 {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    return status
}

func contents(of path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { fail("there is no \(path)") }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes[..<count])
}

/// A name of 127.0.0.1 that the core library does not know, or `localhost` if the machine has none.
func nameOfThisMachine() -> String {
    for line in String(decoding: contents(of: "/etc/hosts"), as: UTF8.self).split(separator: "\n") {
        let words = line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }
        if words.first == "127.0.0.1", let name = words.dropFirst().first(where: { !$0.hasPrefix("localhost") }) { return String(name) }
    }
    return "localhost"
}

/// A server of TLS that answers each line with its letters turned round.
struct Server {
    let name: String
    let pid: pid_t
    let port: UInt16
    let certificate: [UInt8]
    let key: [UInt8]

    init(name: String, folder: String) {
        let (key, certificate) = ("\(folder)/key.pem", "\(folder)/certificate.pem")
        let made = start([
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-addext",
            "subjectAltName=DNS:\(name)", "-keyout", key, "-out", certificate,
        ])
        expect(awaitEnd(made) == 0, "openssl makes no certificate")
        self.certificate = contents(of: certificate)
        self.key = contents(of: key)
        self.name = name
        var ends: [Int32] = [0, 0]
        expect(pipe(&ends) == 0, "there is no pipe")
        pid = start(
            ["timeout", "300", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key, "-rev"],
            outputTo: ends[1])
        close(ends[1])
        guard let output = fdopen(ends[0], "r") else { fail("there is no output of the server") }
        defer { fclose(output) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, output) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            // As `ACCEPT 127.0.0.1:43223`.
            if text.hasPrefix("ACCEPT"), let port = text.split(separator: ":").last.flatMap({ UInt16($0.filter(\.isNumber)) }) {
                self.port = port
                return
            }
        }
        fail("the server does not say where it listens")
    }

    func stop() {
        kill(pid, SIGTERM)
        _ = awaitEnd(pid)
    }
}

/// A peer that takes connections and says nothing.
func listenInSilence() -> (listener: Int32, port: UInt16) {
    #if canImport(Glibc)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
        let listener = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            expect(bind(listener, address, length) == 0 && listen(listener, 8) == 0, "there is no listener")
            expect(getsockname(listener, address, &length) == 0, "the listener has no port")
        }
    }
    return (listener, UInt16(bigEndian: address.sin_port))
}

// MARK: The cases

/// Why connecting fails, or nothing.
func refusal(of host: String, _ port: UInt16, on loop: RunLoop, withTLS tls: TLSSettings?, timeout: Duration) async throws
    -> ByteStreamError?
{
    do {
        _ = try await ByteStream.connect(to: host, port: port, on: loop, withTLS: tls, timeout: timeout)
        return nil
    } catch let error as ByteStreamError {
        return error
    }
}

func talk(to server: Server, on loop: RunLoop) async throws {
    var settings = TLSSettings.client
    settings.authorities = [server.certificate]
    let stream = try await ByteStream.connect(to: server.name, port: server.port, on: loop, withTLS: settings)
    try await stream.write("hello\n")
    expect(try await stream.readLine() == Array("olleh".utf8), "the server answers through TLS")
    // A read that is given up loses nothing.
    let waiting = Task { try await stream.readLine() }
    while stream.waitingReads == 0 { await Task.yield() }
    waiting.cancel()
    if case .success = await waiting.result { fail("a read was cancelled, and has read") }
    try await stream.write("more\n")
    expect(try await stream.readLine() == Array("erom".utf8), "the stream goes on after a cancelled read")
    do {
        try await stream.finishWriting()
        fail("TLS cannot end one direction alone, and did")
    } catch let error as ByteStreamError {
        expect(error.reason == .system(EOPNOTSUPP), "ending one direction of TLS is refused: \(error)")
    }
    stream.close()
}

func bePickyAbout(_ server: Server, on loop: RunLoop) async throws {
    let patience = Duration.seconds(30)
    var settings = TLSSettings.client
    let stranger = try await refusal(of: server.name, server.port, on: loop, withTLS: settings, timeout: patience)
    guard case .tls = stranger?.reason else { fail("a certificate of nobody's is refused: \(String(describing: stranger))") }
    expect("\(stranger!)".hasSuffix("refused: self-signed certificate"), "the reason is in words: \(stranger!)")
    settings.authorities = [server.certificate]
    let impostor = try await refusal(of: "127.0.0.1", server.port, on: loop, withTLS: settings, timeout: patience)
    guard case .tls = impostor?.reason else { fail("another name's certificate is refused: \(String(describing: impostor))") }
    expect("\(impostor!)".hasSuffix("another name than 127.0.0.1"), "the name that was wanted is told: \(impostor!)")
    expect(impostor != stranger, "the two have different reasons")
    settings.verification = .name(server.name)
    expect(
        try await refusal(of: "127.0.0.1", server.port, on: loop, withTLS: settings, timeout: patience) == nil,
        "the certificate of a name that was given is accepted")
    // Of these, none leaves the process: a label of a name has 63 letters at the most, a name 253.
    let long = String(repeating: "a", count: 64)
    let names = [
        "\(long).localdomain", Array(repeating: "name", count: 60).joined(separator: "."), "\(server.name)\0.test", "\(server.name) ",
        " \(server.name)", "\(server.name)..", "[\(server.name)]", "\(server.name)%lo", "::1%nosuch", "127.0.0.256", "",
    ]
    for name in names {
        let nobody = try await refusal(of: name, server.port, on: loop, withTLS: settings, timeout: patience)
        guard case .name = nobody?.reason else { fail("what is no name is told, \(name.debugDescription): \(String(describing: nobody))") }
        expect("\(nobody!)".hasSuffix("There is no host of this name"), "what is no name is told in words: \(nobody!)")
    }
}

func loseInterest(on loop: RunLoop) async throws {
    let (listener, port) = listenInSilence()
    defer { close(listener) }
    let late = try await refusal(of: "127.0.0.1", port, on: loop, withTLS: .client, timeout: .milliseconds(50))
    expect(late?.reason == .timedOut, "a handshake has a deadline: \(String(describing: late))")
    close(accept(listener, nil, nil))
    let connecting = Task { try await ByteStream.connect(to: "127.0.0.1", port: port, on: loop, withTLS: .client, timeout: nil) }
    let peer = accept(listener, nil, nil)
    defer { close(peer) }
    connecting.cancel()
    guard case .failure(let error) = await connecting.result, error is CancellationError else {
        fail("a handshake can be cancelled")
    }
    var byte: UInt8 = 0
    while read(peer, &byte, 1) > 0 {}  // the hello, and then the end: the socket is closed
}

// MARK: All of it

var reader: CFReadStream?
let host: CFString = CFStringCreateWithCString(nil, "host.invalid", CFStringBuiltInEncodings.UTF8.rawValue)
CFStreamCreatePairWithSocketToHost(nil, host, 443, &reader, nil)
let level = unsafeBitCast(kCFStreamSocketSecurityLevelNegotiatedSSL, to: CFTypeRef.self)
guard CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, level) else { fail("the add-on library is not there") }

let stop = RunLoop.StopToken()
let loop = try CoreRunLoop.Thread.runningLoop(name: "loop", until: stop)
var template = Array("/tmp/crl-network-XXXXXX".utf8CString)
guard let made = mkdtemp(&template) else { fail("there is no folder") }
let folder = String(cString: made)
let server = Server(name: nameOfThisMachine(), folder: folder)
do {
    try await talk(to: server, on: loop)
    try await bePickyAbout(server, on: loop)
    try await loseInterest(on: loop)
    try await beginLate(server, on: loop)
    try await meetAnInjection(server, on: loop)
} catch { fail("\(error)") }
stop.requestStop()
server.stop()
for file in ["key.pem", "certificate.pem"] { unlink("\(folder)/\(file)") }
rmdir(folder)
print("the add-on library is there")
