// SPDX-License-Identifier: Apache-2.0
// An actor whose code runs on a loop's thread, beside that loop's timer.
import CoreRunLoop

actor Sensor: RunLoopActor {
    nonisolated let runLoop: RunLoop
    private var readings = 0
    private var waiting: CheckedContinuation<Int, Never>?

    init(on loop: RunLoop) { runLoop = loop }

    func start() {
        let timer = Timer(timeInterval: .milliseconds(1), repeats: true) { timer in
            self.assumeIsolated { $0.read(timer) }
        }
        runLoop.add(timer, forMode: .common)
    }
    func read(_ timer: Timer) {
        readings += 1
        if readings == 3 {
            timer.invalidate()
            waiting?.resume(returning: readings)
        }
    }
    func allReadings() async -> Int {
        await withCheckedContinuation { continuation in
            waiting = continuation
            start()
        }
    }
    func isOnLoop() -> Bool { runLoop.isCurrent }
}

let stop = RunLoop.StopToken()
let sensor = Sensor(on: try Thread.runningLoop(name: "sensor", until: stop))
try RunLoop.runMain {
    print("on the loop:", await sensor.isOnLoop())
    print("readings:", await sensor.allReadings())
}
stop.requestStop()

// prints: on the loop: true
// prints: readings: 3
