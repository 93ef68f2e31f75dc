// SPDX-License-Identifier: Apache-2.0
// Signals as a sequence, and as a source with a closure.
import CoreRunLoop
import Glibc

try SignalSource.block(SIGTERM)
let user = try SignalSource(signal: SIGUSR1) { signal in
    print("from this process:", signal.processID == getpid())
    kill(getpid(), SIGTERM)
}
RunLoop.main.add(user, forMode: .common)

try RunLoop.runMain {
    let signals = try RunLoop.main.signals([SIGTERM, SIGINT])
    kill(getpid(), SIGUSR1)
    for await signal in signals {
        print("terminated:", signal.number == SIGTERM)
        break
    }
}
user.invalidate()
do {
    _ = try SignalSource(signal: SIGKILL) { _ in }
} catch {
    print("error:", error)
}

// prints: from this process: true
// prints: terminated: true
// prints: error: invalidSignal(9)
