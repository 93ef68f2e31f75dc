// SPDX-License-Identifier: Apache-2.0
import Foundation

nonisolated(unsafe) var ticks = 0
_ = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { timer in
    ticks += 1
    if ticks == 3 { timer.invalidate() }
}
while ticks < 3 { RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.01)) }
print("\(ticks) ticks")
