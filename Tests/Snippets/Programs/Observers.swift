// SPDX-License-Identifier: Apache-2.0
// The points of a pass, as an observer sees them.
import CoreRunLoop

let loop = RunLoop.current
let alive = loop.keepAlive(in: "quiet")
var seen: [RunLoop.Activity] = []
let observer = loop.observe(.allActivities, in: "quiet") { _, activity in seen.append(activity) }
print(loop.run(in: "quiet", for: .zero))
print(seen)

let entry = RunLoop.Observer(activities: [.entry, .exit], repeats: false) { observer, activity in
    print("once:", activity, observer.isValid)
}
loop.add(entry, forMode: "quiet")
observer.invalidate()
print(loop.run(in: "quiet", for: .zero))
print("valid:", observer.isValid, entry.isValid)
alive.cancel()
print(loop.run(in: "quiet", for: .zero))

// prints: timedOut
// prints: [entry, beforeTimers, beforeSources, exit]
// prints: once: entry true
// prints: timedOut
// prints: valid: false false
// prints: finished
