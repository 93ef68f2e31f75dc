// SPDX-License-Identifier: Apache-2.0
// Foundation's notifications, timers and dates with this package's loop.
import CoreRunLoopFoundation

final class Counter: Sendable {
    static let changed = Notification.Name("changed")
}

let stop = RunLoop.StopToken()
let observation = NotificationCenter.default.addObserver(forName: Counter.changed, object: nil, queue: nil) { notification in
    print("changed:", notification.userInfo?["count"] as? Int ?? 0)
    let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { timer in
        print("timer, valid:", timer.isValid)
        stop.requestStop()
    }
    print("interval:", timer.timeInterval, "date:", timer.fireDate > Date.distantPast)
}

let queue = NotificationQueue.default
for count in 1...3 {
    queue.enqueue(
        Notification(name: Counter.changed, userInfo: ["count": count]), postingStyle: .whenIdle, coalesceMask: [.onName], forModes: nil)
}
RunLoop.current.run(until: stop)
print("joined:", RunLoop.isJoinedWithFoundation)
NotificationCenter.default.removeObserver(observation)

// prints: changed: 1
// prints: interval: 0.0 date: true
// prints: timer, valid: true
// prints: joined: true
