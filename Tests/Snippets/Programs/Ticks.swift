// SPDX-License-Identifier: Apache-2.0
// Ticks and activities of a loop, as sequences.
import CoreRunLoop

let stop = RunLoop.StopToken()
let loop = try Thread.runningLoop(name: "ticks", until: stop)

try RunLoop.runMain {
    var dates: [WallTime] = []
    for await tick in try loop.ticks(every: .milliseconds(1), policy: .all) {
        dates.append(tick.scheduled)
        if dates.count == 3 { break }
    }
    print("ticks:", dates.count, "in order:", dates == dates.sorted())

    let activities = loop.activities(.beforeWaiting)
    loop.wake()
    for await activity in activities {
        print("activity:", activity)
        break
    }

    let task = Task {
        for await _ in try loop.ticks(every: .seconds(3600)) {}
        return Task.isCancelled
    }
    task.cancel()
    print("cancelled:", try await task.value)
    do {
        _ = try loop.ticks(every: .zero)
    } catch {
        print("error:", error)
    }
}
stop.requestStop()

// prints: ticks: 3 in order: true
// prints: activity: beforeWaiting
// prints: cancelled: true
// prints: error: invalidDuration(0.0 seconds)
