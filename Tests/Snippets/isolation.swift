// SPDX-License-Identifier: Apache-2.0
//
// Closures of an actor's as a loop's callbacks: what compiles, in the language modes 5 and 6, and what does not.

import CoreRunLoop
import CoreRunLoopFoundation

@MainActor final class Model: Performing {
    var count = 0  // expected-note {{mutation of this property is only permitted within the actor}}
    func step(_ timer: CoreRunLoop.Timer) { count += 1 }
    func add(_ number: Int) { count += number }

    func closures(_ loop: CoreRunLoop.RunLoop, _ thread: CoreRunLoop.Thread, _ port: CoreRunLoop.MessagePort) throws {
        _ = Timer(timeInterval: .seconds(1), repeats: true) { @MainActor _ in self.count += 1 }
        _ = Timer(timeInterval: 1.0, repeats: true) { @MainActor _ in self.count += 1 }
        _ = Timer(fire: .now, interval: .seconds(1), repeats: true) { @MainActor timer in self.step(timer) }
        _ = Timer(timeInterval: .seconds(1), invocation: { @MainActor in self.count += 1 }, repeats: true)
        _ = loop.schedule(every: .seconds(1)) { @MainActor [weak self] _ in self?.count += 1 }
        loop.perform { @MainActor in self.count += 1 }
        loop.perform(inModes: [.default]) { @MainActor in self.count += 1 }
        thread.perform { @MainActor in self.count += 1 }
        thread.onExit { @MainActor in self.count += 1 }
        _ = try loop.performAndWait { @MainActor in self.count }
        _ = RunLoop.Observer(activities: .exit) { @MainActor _, activity in self.count += Int(activity.rawValue) }
        _ = InputSource<Int> { @MainActor numbers in for number in numbers { self.add(number) } }
        _ = try DescriptorSource(descriptor: 0) { @MainActor event in self.count += Int(event.descriptor) }
        _ = try SignalSource(signal: 1) { @MainActor signal in self.count += Int(signal.number) }
        _ = try ChildProcessSource(processID: 1) { @MainActor process, _ in self.count += Int(process) }
        port.handle(.text(number: 1)) { @MainActor text in "\(text) \(self.count)" }
    }

    func closuresOfItsOwnThread(_ loop: CoreRunLoop.RunLoop) {
        Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in self.count += 1 }
        loop.observe(.exit) { _, _ in self.count += 1 }
    }

    func unmarked(_ loop: CoreRunLoop.RunLoop) {
        loop.perform { self.count += 1 }  // expected-warning {{property 'count' can not be mutated from a Sendable closure}}
    }
}
