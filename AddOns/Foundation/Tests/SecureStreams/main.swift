// SPDX-License-Identifier: Apache-2.0
//
// TLS that begins on open streams of Foundation's, with the add-on library, which the tests of the overlay are to do without. The server is
// a byte stream on another thread's loop; `openssl` makes the certificate. Exits with the number of checks that failed.

import CoreRunLoopFoundation

nonisolated(unsafe) var failures: Int32 = 0
func check(_ name: String, _ passed: Bool) {
    print(passed ? "ok - " : "not ok - ", name, separator: "")
    if !passed { failures += 1 }
}

/// Ends the program: without this nothing else can be tried.
func need<Value>(_ value: Value?, _ name: String) -> Value {
    guard let value else {
        print("not ok - \(name)")
        exit(1)
    }
    return value
}

typealias Key = Stream.PropertyKey
let level = Key.socketSecurityLevelKey
let settings = Key("kCFStreamPropertySSLSettings")

/// The client, on the main thread's loop: what it has read, and what its delegate was told.
final class Client: NSObject, StreamDelegate {
    let input: InputStream
    let output: OutputStream
    var text = ""
    var errors = 0

    init(to port: UInt16) {
        var (input, output): (InputStream?, OutputStream?) = (nil, nil)
        Stream.getStreamsToHost(withName: "127.0.0.1", port: Int(port), inputStream: &input, outputStream: &output)
        (self.input, self.output) = (need(input, "a stream to read"), need(output, "a stream to write"))
        super.init()
        for stream in [self.input, self.output] as [Stream] {
            stream.delegate = self
            stream.schedule(in: RunLoop.current, forMode: .default)
            stream.open()
        }
    }

    func stream(_ stream: Stream, handle event: Stream.Event) {
        if event == .errorOccurred { errors += 1 }
        guard event == .hasBytesAvailable else { return }
        var buffer = [UInt8](repeating: 0, count: 100)
        let count = input.read(&buffer, maxLength: buffer.count)
        text += String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }

    func say(_ words: String) {
        check("\(words) is sent", output.write(Array((words + "\n").utf8), maxLength: words.utf8.count + 1) == words.utf8.count + 1)
    }

    func set(_ value: Any?, _ key: Key) -> Bool {
        let isTaken = input.setProperty(value as AnyObject?, forKey: key)
        return output.setProperty(value as AnyObject?, forKey: key) && isTaken
    }

    /// Runs the loop until the server has said this, or there is an error.
    func hear(_ words: String) {
        while !text.hasSuffix(words + "\n") && errors == 0 { RunLoop.current.run(mode: .default, before: Date.distantFuture) }
        check("\(words) is heard", text.hasSuffix(words + "\n"))
    }

    func awaitErrors() {
        while errors < 2 { RunLoop.current.run(mode: .default, before: Date.distantFuture) }
    }

    /// Comes to where TLS may begin.
    func ask() {
        say("STARTTLS")
        hear("go")
    }

    func close() {
        input.close()
        output.close()
    }
}

/// Answers the clients one after the other, each by its own last words under TLS.
func serve(_ listener: ByteStreamListener, _ certificates: [[UInt8]], answers: [String]) async {
    for answer in answers {
        do {
            let stream = try await listener.accept()
            _ = try await stream.readLine()
            try await stream.write(answer)
            try await stream.startTLS(.server(certificates: certificates))
            while let line = try await stream.readLine() { try await stream.write(line + Array("!\n".utf8)) }
        } catch { continue }  // of a client that has refused
    }
}

func openssl(_ words: String...) -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + words
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
}

// MARK: The cases

let folder = NSTemporaryDirectory() + "crl-secure-streams-\(getpid())"
try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
let (keyPath, certificatePath) = (folder + "/key.pem", folder + "/certificate.pem")
guard
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
        "-keyout", keyPath, "-out", certificatePath)
else {
    print("there is no openssl")
    exit(77)
}
let certificate = try Data(contentsOf: URL(fileURLWithPath: certificatePath))
let key = try Data(contentsOf: URL(fileURLWithPath: keyPath))
try FileManager.default.removeItem(atPath: folder)
let trust: [String: Any] = ["kCRLStreamSSLAnchorCertificates": [certificate]]
let loop = try CoreRunLoop.Thread.runningLoop(name: "server", until: RunLoop.StopToken())
let listener = try ByteStreamListener(port: 0, on: loop)
let answers = ["go\n", "go\n", "go\n", "go\nmore\n"]
let certificates = [Array(certificate), Array(key)]
Task.detached { await serve(listener, certificates, answers: answers) }

do {
    let client = Client(to: listener.port)
    client.ask()
    check("a level that is no level is refused", !client.set(NSNull(), level) && !client.set(true, level))
    check("so are settings of another kind", !client.set(StreamSocketSecurityLevel.negotiatedSSL, settings))
    check("no security is what there is", client.set(StreamSocketSecurityLevel.none, level))
    check("settings are taken on open streams", client.set(trust, settings))
    client.say("secret")
    client.hear("secret!")
    let version = client.input.property(forKey: Key("kCRLStreamPropertySSLVersion")) as? String
    check("the version is told", version?.hasPrefix("TLSv1") == true)
    let chain = client.output.property(forKey: Key("kCFStreamPropertySSLPeerCertificates")) as? [Data]
    check("the server's certificate is told", chain?.count == 1)
    check("there is no way back", !client.set(StreamSocketSecurityLevel.none, level))
    client.say("thanks")
    client.hear("thanks!")
    client.close()
}

do {
    let client = Client(to: listener.port)
    client.ask()
    check("nobody's name is asked for with NSNull", client.set(trust.merging(["kCFStreamSSLPeerName": NSNull()]) { $1 }, settings))
    client.say("secret")
    client.hear("secret!")
    client.close()
}

do {
    let client = Client(to: listener.port)
    client.ask()
    check("the level of Foundation is taken", client.set(StreamSocketSecurityLevel.negotiatedSSL, level))
    client.awaitErrors()
    let reason = (client.input.streamError as? NSError)?.localizedDescription ?? ""
    check("a certificate of nobody's is refused", reason.contains("self-signed"))
    check("both streams have failed", client.output.streamStatus == .error)
}

do {
    let client = Client(to: listener.port)
    client.say("STARTTLS")
    while !client.input.hasBytesAvailable {}
    check("settings are taken", client.set(trust, settings))
    client.awaitErrors()
    check("bytes of before are not read under TLS", client.text == "" && client.input.streamStatus == .error)
}
exit(failures)
