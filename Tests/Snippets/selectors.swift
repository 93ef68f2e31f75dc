// SPDX-License-Identifier: Apache-2.0
//
// What a class written for Darwin is told about its selectors; check-snippets compares the messages with those expected here.

import CoreRunLoopFoundation

final class Plain: NSObject {
    func refresh(_ text: String?) {}

    func ask(_ thread: Thread) {
        let named = Selector("refresh")  // expected-error {{name the method in its place}}
        perform(named, on: thread, with: nil, waitUntilDone: false)  // expected-error {{conform to Performing and Sendable}}
        perform(Plain.refresh, on: thread, with: "a", waitUntilDone: false)  // expected-error {{conform to Performing and Sendable}}
        performSelector(onMainThread: Plain.refresh, with: "a", waitUntilDone: true)  // expected-error {{conform to Performing and}}
        performSelector(inBackground: Plain.refresh, with: "a")  // expected-error {{make the class conform to Performing and Sendable}}
        perform(Plain.refresh, with: "a", afterDelay: 0.1)  // expected-error {{make the class conform to Performing, and name}}
        NSObject.cancelPreviousPerformRequests(withTarget: self, selector: Plain.refresh, object: "a")  // expected-error {{by an Action}}
        let center = NotificationCenter.default
        center.addObserver(self, selector: Plain.refresh, name: nil, object: nil)  // expected-error {{addObserver(forName:}}
    }
}

/// What the messages lead to.
final class Ported: NSObject, Performing, @unchecked Sendable {
    static let named = Action("refresh", Ported.refresh)

    func refresh(_ text: String?) {}
    func tick() {}
    func fire(_ timer: Timer) {}

    func ask(_ thread: Thread) {
        perform(Ported.refresh, on: thread, with: nil, waitUntilDone: false)
        perform(Ported.refresh, on: thread, with: "a", waitUntilDone: true, modes: [.default])
        perform(Ported.tick, on: thread, with: nil, waitUntilDone: false)
        performSelector(onMainThread: Ported.refresh, with: "a", waitUntilDone: true)
        performSelector(inBackground: Ported.tick, with: nil)
        perform(Ported.named, with: "a", afterDelay: 0.1, inModes: [.common])
        NSObject.cancelPreviousPerformRequests(withTarget: self)
        NSObject.cancelPreviousPerformRequests(withTarget: self, selector: Ported.named, object: "a")
        Timer.scheduledTimer(timeInterval: 0.5, target: self, selector: Ported.fire, userInfo: nil, repeats: true)
        Thread.detachNewThreadSelector(Ported.tick, toTarget: self, with: nil)
        Thread(target: self, selector: Ported.refresh, object: "a").start()
        RunLoop.main.perform(Ported.named, target: self, argument: "a", order: 0, modes: [.default])
        RunLoop.main.cancelPerform(Ported.named, target: self, argument: "a")
    }

    func askFromATask() async {
        Timer.scheduledTimer(withTimeInterval: 0.5, repeats: false) { _ in }
        Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: false) { _ in }
        perform(Ported.tick, with: nil, afterDelay: 0.1)
        perform(Ported.tick, with: nil, afterDelay: .seconds(1))
        NSObject.cancelPreviousPerformRequests(withTarget: self)
    }
}
