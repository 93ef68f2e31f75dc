// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop
import CoreRunLoopFoundation
import Foundation

actor Adder: RunLoopActor {
    nonisolated let runLoop: CoreRunLoop::RunLoop
    init(on runLoop: CoreRunLoop::RunLoop) { self.runLoop = runLoop }
    func add(_ number: Int) -> Int { number + 1 }
}

nonisolated(unsafe) var ticks = 0
_ = Foundation::Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in ticks += 1 }
while ticks < 1 { Foundation::RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.01)) }
ticks += try NSRunLoop.runMain {
    let stop = NSRunLoop.StopToken()
    let loop = try NSThread.runningLoop(until: stop)
    let answered = try await Adder(on: loop).add(1)
    let port = try CoreRunLoop::MessagePort(name: nil)
    port.onRequest = { _, bytes in bytes }
    loop.add(port, forMode: .default)
    let echo = try await port.requestData(number: 1, Data([7]))
    stop.requestStop()
    return answered == 2 && echo == Data([7]) ? 2 : 0
}
print("\(ticks) ticks")
