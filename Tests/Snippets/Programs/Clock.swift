// SPDX-License-Identifier: Apache-2.0
// Sleeps of a loop's clock, in tasks that prefer the loop.
import CoreRunLoop

let stop = RunLoop.StopToken()
let loop = try Thread.runningLoop(name: "clock", until: stop)

try RunLoop.runMain {
    let clock = loop.clock
    let elapsed = try await clock.measure {
        try await Task.sleep(for: .milliseconds(2), clock: clock)
    }
    print("slept long enough:", elapsed >= .milliseconds(2))

    let task = Task(executorPreference: loop) {
        print("on the loop:", loop.isCurrent)
        try await clock.sleep(for: .seconds(3600))
    }
    task.cancel()
    do {
        try await task.value
    } catch {
        print("error:", error)
    }

    let sleeper = Task { try await clock.sleep(for: .seconds(3600)) }
    stop.requestStop()
    do {
        try await sleeper.value
    } catch {
        print("error:", error)
    }
}

// prints: slept long enough: true
// prints: on the loop: true
// prints: error: CancellationError()
// prints: error: loopEnded
