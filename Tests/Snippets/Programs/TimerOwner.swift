// SPDX-License-Identifier: Apache-2.0
// A timer that ends with the object that owns it.
import CoreRunLoop

final class Lease {
    let name: String
    private var renewal: Timer.Scheduled?

    init(name: String) { self.name = name }

    func begin(on loop: RunLoop, _ renewed: @escaping @Sendable () -> Void) {
        renewal = loop.schedule(every: .milliseconds(1)) { _ in renewed() }
    }
    func end() { renewal?.cancel() }
}

let stop = RunLoop.StopToken()
let loop = RunLoop.current
var lease: Lease? = Lease(name: "printer")
lease?.begin(on: loop) { stop.requestStop() }
loop.run(until: stop)
print("renewed", lease?.name ?? "nothing")
lease?.end()
print("a timer is left:", loop.nextTimerFireDate(in: .default) != nil)
lease?.begin(on: loop) { print("never") }
lease = nil
print("a timer is left:", loop.nextTimerFireDate(in: .default) != nil)

// prints: renewed printer
// prints: a timer is left: false
// prints: a timer is left: false
