// SPDX-License-Identifier: Apache-2.0
// Requests between threads: results, errors, and what would wait for ever.
import CoreRunLoop

struct Refused: Error {}

let stop = RunLoop.StopToken()
let worker = Thread { RunLoop.current.run(until: stop) }
worker.name = "worker"
worker.start()

print("sum:", try worker.performAndWait { (1...10).reduce(0, +) })
do {
    try worker.performAndWait { throw Refused() }
} catch {
    print("error:", error)
}
let main = RunLoop.main
do {
    try worker.performAndWait { try main.performAndWait { print("never") } }
} catch {
    print("error:", error)
}
do {
    try worker.performAndWait { @MainActor in print("never") }
} catch {
    print("error:", error)
}
do {
    try worker.performAndWait(in: ["nobody runs this"], timeout: .milliseconds(1)) { print("never") }
} catch {
    print("error:", error)
}
print("queued:", worker.perform { stop.requestStop() })
worker.join()
print("queued:", worker.perform { print("never") })
do {
    try worker.performAndWait { print("never") }
} catch {
    print("error:", error)
}

// prints: sum: 55
// prints: error: Refused()
// prints: error: wouldDeadlock
// prints: error: wouldDeadlock
// prints: error: timedOut
// prints: queued: true
// prints: queued: false
// prints: error: threadFinished
