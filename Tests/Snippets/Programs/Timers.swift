// SPDX-License-Identifier: Apache-2.0
// Every way to make a timer, in the order of the dates.
import CoreRunLoop

final class Bell: Sendable {
    func ring(_ timer: Timer) { print("bell with", timer.userInfo as? String ?? "nothing") }
}

let stop = RunLoop.StopToken()
let loop = RunLoop.current

let once = Timer(timeInterval: .milliseconds(2), repeats: false) { timer in print("once, repeats:", timer.repeats) }
loop.add(once, forMode: .default)

Timer.scheduledTimer(timeInterval: .milliseconds(4), target: Bell(), selector: Bell.ring, userInfo: "a clapper", repeats: false)

let dated = Timer(fire: .now + .milliseconds(6), interval: .seconds(3600), repeats: true) { timer in
    print("dated, its date has come:", timer.fireDate < .now + .seconds(1800))
    timer.invalidate()
}
loop.add(dated, forMode: .common)

let byHand = Timer(timeInterval: .seconds(3600), repeats: false) { _ in print("fired by hand") }
byHand.fire()

var left = 3
let beat = Timer.scheduledTimer(withTimeInterval: .milliseconds(8), repeats: true) { timer in
    left -= 1
    print("beat, \(left) to come")
    if left == 0 {
        timer.invalidate()
        stop.requestStop()
    }
}
beat.tolerance = .milliseconds(1)
loop.run(until: stop)
print("valid:", byHand.isValid, once.isValid, dated.isValid, beat.isValid)

// prints: fired by hand
// prints: once, repeats: false
// prints: bell with a clapper
// prints: dated, its date has come: true
// prints: beat, 2 to come
// prints: beat, 1 to come
// prints: beat, 0 to come
// prints: valid: false false false false
