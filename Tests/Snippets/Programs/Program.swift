// SPDX-License-Identifier: Apache-2.0
// A whole program: a service of the main actor, which ends by SIGTERM.
import CoreRunLoop
import Glibc

@MainActor final class Visitors {
    private(set) var count = 0
    func greet(_ name: String) -> String {
        count += 1
        return "hello, \(name)"
    }
}

@main struct Server: RunLoopProgram {
    func run() async throws {
        try SignalSource.block(SIGTERM)
        let signals = try RunLoop.main.signals([SIGTERM])
        let visitors = Visitors()
        let port = try MessagePort(name: "com.example.greeter")
        port.handle(.text(number: 1)) { @MainActor name in visitors.greet(name) }
        RunLoop.main.add(port, forMode: .common)

        let client = try MessagePort(remote: "com.example.greeter")
        print(try await client.request(.text(number: 1), "you"))
        kill(getpid(), SIGTERM)
        for await signal in signals {
            print("SIGTERM:", signal.number == SIGTERM)
            break
        }
        port.invalidate()
        print("visitors:", visitors.count)
    }
}

// prints: hello, you
// prints: SIGTERM: true
// prints: visitors: 1
