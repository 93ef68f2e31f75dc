// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop

var ticks = 0
Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
    ticks += 1
    if ticks == 3 { timer.invalidate() }
}
RunLoop.current.run(until: .now + .seconds(10))
print("\(ticks) ticks")
