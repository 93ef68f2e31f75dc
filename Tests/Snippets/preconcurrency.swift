// SPDX-License-Identifier: Apache-2.0
//
// Closures, methods and delegates that are not `Sendable`, where Foundation on Darwin takes them: nothing is said of them in the language
// mode 5, and warnings are in 6, as of all declarations from before Swift's concurrency.

import CoreRunLoopFoundation

final class Engine {  // expected-mode6-note 11 {{class 'Engine' does not conform}}
    var count = 0
    func step(_ timer: Timer) { count += 1 }
    func stop() {}
    func work(_ number: Int) { count += number }
}

func captured(_ engine: Engine, _ loop: RunLoop) {
    _ = Timer(timeInterval: 1, repeats: true) { _ in engine.stop() }
    // expected-mode6-warning@-1 {{capture of 'engine' with non-Sendable type}}
    _ = Timer(fire: Date(), interval: 1, repeats: true) { _ in engine.stop() }
    // expected-mode6-warning@-1 {{capture of 'engine' with non-Sendable type}}
    loop.perform { engine.stop() }  // expected-mode6-warning {{capture of 'engine' with non-Sendable type}}
    loop.perform(inModes: [.default]) { engine.stop() }  // expected-mode6-warning {{capture of 'engine' with non-Sendable type}}
    CFRunLoopPerformBlock(loop.getCFRunLoop(), .defaultMode) { engine.stop() }
    // expected-mode6-warning@-1 {{capture of 'engine' with non-Sendable type}}
    _ = Thread { engine.stop() }  // expected-mode6-warning {{capture of 'engine' with non-Sendable type}}
    Thread.detachNewThread { engine.stop() }  // expected-mode6-warning {{capture of 'engine' with non-Sendable type}}
}

func passed(_ loop: RunLoop, _ tick: @escaping (Timer) -> Void, _ work: @escaping () -> Void) {  // expected-mode6-note 5 {{implicitly}}
    _ = Timer(timeInterval: 1, repeats: true, block: tick)  // expected-mode6-warning {{passing non-Sendable parameter 'tick'}}
    loop.perform(work)  // expected-mode6-warning {{passing non-Sendable parameter 'work'}}
    CFRunLoopPerformBlock(loop.getCFRunLoop(), .defaultMode, work)  // expected-mode6-warning {{passing non-Sendable parameter 'work'}}
    _ = Thread(block: work)  // expected-mode6-warning {{passing non-Sendable parameter 'work'}}
    Thread.detachNewThread(work)  // expected-mode6-warning {{passing non-Sendable parameter 'work'}}
}

func targets(_ engine: Engine) {
    _ = Timer(timeInterval: 1, target: engine, selector: Engine.step, userInfo: nil, repeats: true)
    // expected-mode6-warning@-1 {{type 'Engine' does not conform to the 'Sendable' protocol}}
    _ = Timer(timeInterval: 1, target: engine, selector: Engine.stop, userInfo: nil, repeats: true)
    // expected-mode6-warning@-1 {{type 'Engine' does not conform to the 'Sendable' protocol}}
    _ = Thread(target: engine, selector: Engine.stop, object: nil)
    // expected-mode6-warning@-1 {{type 'Engine' does not conform to the 'Sendable' protocol}}
    Thread.detachNewThreadSelector(Engine.work, toTarget: engine, with: 1)
    // expected-mode6-warning@-1 {{type 'Engine' does not conform to the 'Sendable' protocol}}
}

final class Inbox: PortDelegate {
    var count = 0  // expected-mode6-warning {{stored property 'count'}}
    func handle(_ message: PortMessage) { count += 1 }
}

final class Worker: Performing, Sendable {
    func work() {}
    func add(_ number: Int) {}
}

func methods(_ worker: Worker, _ thread: CoreRunLoop.Thread) {
    worker.perform(Worker.work, on: thread, waitUntilDone: false)
    worker.performSelector(onMainThread: Worker.add, with: 1, waitUntilDone: false)
    worker.performSelector(inBackground: Worker.work)
    _ = Worker.Action("work", Worker.work)
}
