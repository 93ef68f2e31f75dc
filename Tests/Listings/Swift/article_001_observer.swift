// SPDX-License-Identifier: Apache-2.0
//
// Article 001's demonstration of an observer. Changed are the spellings of Swift 2, the selectors, which are methods here, the imports, and
// the times, which are tenths of the article's; and the first thread waits for the end of the second, however long that takes, where it
// slept for a time. Its context holds the address of a local variable, which only lives as long as the function
// runs the loop: the callback never looks at it.

import CoreRunLoop
import CoreRunLoopFoundation
import Foundation
import Testing

private let output = Events()
private func print(_ text: Any) { output.add("\(text)") }

class TestThread: NSObject {

    private let hasEnded = DispatchSemaphore(value: 0)

    func launch() {

        print("First event in Main Thread.")

        NSThread.detachNewThreadSelector(TestThread.createAndConfigObserverInSecondaryThread, toTarget: self, with: nil)

        print(NSThread.isMultiThreaded())

        hasEnded.wait()

        print("Second event in Main Thread.")

    }

    func createAndConfigObserverInSecondaryThread() {

        autoreleasepool {

            // 1
            let runloop = NSRunLoop.current

            // 2
            var _self = self

            // 3
            var observerContext = CFRunLoopObserverContext(version: 0, info: &_self, retain: nil, release: nil, copyDescription: nil)

            // 4
            let observer = CFRunLoopObserverCreate(
                kCFAllocatorDefault, CFRunLoopActivity.allActivities.rawValue, true, 0, self.observerCallbackFunc(), &observerContext)

            if observer != nil {

                // 5
                let cfRunloop = runloop.getCFRunLoop()

                // 6
                CFRunLoopAddObserver(cfRunloop, observer, kCFRunLoopDefaultMode)

            }

            // 7
            NSTimer.scheduledTimer(timeInterval: 0.05, target: self, selector: TestThread.fireTimer, userInfo: nil, repeats: true)

            var loopCount = 10

            repeat {

                // 8
                runloop.run(until: Date(timeIntervalSinceNow: 0.1))

                loopCount -= 1

            } while loopCount > 0

        }

        hasEnded.signal()

    }

    func observerCallbackFunc() -> CFRunLoopObserverCallBack {

        return { (observer, activity, context) -> Void in

            switch activity {

            case CFRunLoopActivity.entry:
                print("entry")
                break
            case CFRunLoopActivity.beforeTimers:
                print("before timers")
                break
            case CFRunLoopActivity.beforeSources:
                print("before sources")
                break
            case CFRunLoopActivity.beforeWaiting:
                print("before waiting")
                break
            case CFRunLoopActivity.afterWaiting:
                print("after waiting")
                break
            case CFRunLoopActivity.exit:
                print("exit")
                break
            default:
                break

            }

        }

    }

    func fireTimer() {

    }

}

@Suite struct `Article 001` {
    @Test func `its observer sees every point of ten runs`() {
        let testThread = TestThread()
        testThread.launch()
        let printed = output.all
        #expect(printed.prefix(2) == ["First event in Main Thread.", "true"] || printed.first == "First event in Main Thread.")
        #expect(printed.last == "Second event in Main Thread.")
        let events = printed.filter { $0 != "true" && !$0.hasSuffix("Thread.") }
        #expect(events.first == "entry" && events.last == "exit")
        #expect(events.filter { $0 == "entry" }.count == 10)
        #expect(events.filter { $0 == "exit" }.count == 10)
        #expect(events.filter { $0 == "before waiting" }.count == events.filter { $0 == "after waiting" }.count)
        #expect(events.prefix(4) == ["entry", "before timers", "before sources", "before waiting"])
    }
}
