// SPDX-License-Identifier: Apache-2.0
//
// Article 001's two custom sources: the main thread and a worker send each other commands. Changed are the spellings of Swift 2, the
// selectors, and UIKit: the delegate and the controller are the listing's own, the cells' transparency is a list of numbers, and the timer
// waits a hundredth of a second. The part of the main thread is played by a thread of the test's, whose loop the listing is given, for the
// test runner's main thread does not run its loop.

import CoreRunLoop
import CoreRunLoopFoundation
import Foundation
import Testing

/// What the article gets from `UIApplication.sharedApplication()`.
final class Application {
    nonisolated(unsafe) static let shared = Application()
    let delegate = AppDelegate()
    var mainThread = NSThread.main
    var mainRunLoop = NSRunLoop.main
}

class MainThreadRunLoopSourceContext {
    let runloop: CFRunLoop?
    let runloopSource: MainThreadRunLoopSource?
    init(runloop: CFRunLoop?, runloopSource: MainThreadRunLoopSource?) {
        self.runloop = runloop
        self.runloopSource = runloopSource
    }
}

class SecondaryThreadRunLoopSourceContext {
    let runloop: CFRunLoop?
    let runloopSource: SecondaryThreadRunLoopSource?
    init(runloop: CFRunLoop?, runloopSource: SecondaryThreadRunLoopSource?) {
        self.runloop = runloop
        self.runloopSource = runloopSource
    }
}

class MainThreadRunLoopSource: NSObject {

    var runloopSource: CFRunLoopSource?
    var commandBuffer: [SecondaryThreadRunLoopSourceContext]?

    override init() {

        super.init()

        var runloopSourceContext = CFRunLoopSourceContext(
            version: 0, info: unsafeBitCast(self, to: UnsafeMutableRawPointer.self), retain: nil, release: nil, copyDescription: nil,
            equal: nil,
            hash: nil, schedule: runloopSourceScheduleRoutine(), cancel: runloopSourceCancelRoutine(),
            perform: runloopSourcePerformRoutine())

        runloopSource = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &runloopSourceContext)

        commandBuffer = [SecondaryThreadRunLoopSourceContext]()

    }

    func addToCurrentRunLoop() {

        let cfrunloop = CFRunLoopGetCurrent()

        if let rls = runloopSource {

            CFRunLoopAddSource(cfrunloop, rls, kCFRunLoopDefaultMode)

        }

    }

    func signalSourceAndWakeUpRunloop(_ runloop: CFRunLoopRef) {

        CFRunLoopSourceSignal(runloopSource)

        CFRunLoopWakeUp(runloop)

    }

    func runloopSourceScheduleRoutine() -> @convention(c) (UnsafeMutableRawPointer?, CFRunLoop?, CFString?) -> Void {

        return { (info, runloop, runloopMode) -> Void in

            let mainThreadRunloopSource = unsafeBitCast(info, to: MainThreadRunLoopSource.self)

            let mainThreadRunloopSourceContext = MainThreadRunLoopSourceContext(
                runloop: runloop, runloopSource: mainThreadRunloopSource)

            let appDelegate = Application.shared.delegate

            appDelegate.perform(AppDelegate.registerMainThreadRunLoopSource, with: mainThreadRunloopSourceContext)

        }

    }

    func runloopSourceCancelRoutine() -> @convention(c) (UnsafeMutableRawPointer?, CFRunLoop?, CFString?) -> Void {

        return { (info, runloop, runloopMode) -> Void in Application.shared.delegate.cancelled += 1 }

    }

    func runloopSourcePerformRoutine() -> @convention(c) (UnsafeMutableRawPointer?) -> Void {

        return { info -> Void in

            let appDelegate = Application.shared.delegate

            appDelegate.perform(AppDelegate.performMainThreadRunLoopSourceTask)

        }

    }

}

class SecondaryThreadRunLoopSource: NSObject {

    var runloopSource: CFRunLoopSource?
    var commandBuffer: [MainThreadRunLoopSourceContext]?

    override init() {

        super.init()

        var runloopSourceContext = CFRunLoopSourceContext(
            version: 0, info: unsafeBitCast(self, to: UnsafeMutableRawPointer.self), retain: nil, release: nil, copyDescription: nil,
            equal: nil,
            hash: nil, schedule: runloopSourceScheduleRoutine(), cancel: nil, perform: runloopSourcePerformRoutine())

        runloopSource = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &runloopSourceContext)

        commandBuffer = [MainThreadRunLoopSourceContext]()

    }

    func addToCurrentRunLoop() {

        let cfrunloop = CFRunLoopGetCurrent()

        if let rls = runloopSource {

            CFRunLoopAddSource(cfrunloop, rls, kCFRunLoopDefaultMode)

        }

    }

    func signalSourceAndWakeUpRunloop(_ runloop: CFRunLoopRef) {

        CFRunLoopSourceSignal(runloopSource)

        CFRunLoopWakeUp(runloop)

    }

    func runloopSourceScheduleRoutine() -> @convention(c) (UnsafeMutableRawPointer?, CFRunLoop?, CFString?) -> Void {

        return { (info, runloop, runloopMode) -> Void in

            let secondaryThreadRunloopSource = unsafeBitCast(info, to: SecondaryThreadRunLoopSource.self)

            let secondaryThreadRunloopSourceContext = SecondaryThreadRunLoopSourceContext(
                runloop: runloop, runloopSource: secondaryThreadRunloopSource)

            let appDelegate = Application.shared.delegate

            appDelegate.perform(
                AppDelegate.registerSecondaryThreadRunLoopSource, on: Application.shared.mainThread,
                with: secondaryThreadRunloopSourceContext,
                waitUntilDone: true)

        }

    }

    func runloopSourcePerformRoutine() -> @convention(c) (UnsafeMutableRawPointer?) -> Void {

        return { info -> Void in

            let appDelegate = Application.shared.delegate

            appDelegate.perform(AppDelegate.performSecondaryThreadRunLoopSourceTask)

        }

    }

}

class AppDelegate: Performing {

    var mainThreadRunloopSourceContext: MainThreadRunLoopSourceContext?
    var secondaryThreadRunloopSourceContext: SecondaryThreadRunLoopSourceContext?
    var mainCollectionViewController: MainCollectionViewController?
    var cancelled = 0

    func registerMainThreadRunLoopSource(_ runloopSourceContext: MainThreadRunLoopSourceContext) {

        mainThreadRunloopSourceContext = runloopSourceContext

    }

    func registerSecondaryThreadRunLoopSource(_ runloopSourceContext: SecondaryThreadRunLoopSourceContext) {

        secondaryThreadRunloopSourceContext = runloopSourceContext

        sendCommandToSecondaryThread()

    }

    func sendCommandToSecondaryThread() {

        secondaryThreadRunloopSourceContext?.runloopSource?.commandBuffer?.append(mainThreadRunloopSourceContext!)

        secondaryThreadRunloopSourceContext?.runloopSource?.signalSourceAndWakeUpRunloop(secondaryThreadRunloopSourceContext!.runloop!)

    }

    func performSecondaryThreadRunLoopSourceTask() {

        if secondaryThreadRunloopSourceContext!.runloopSource!.commandBuffer!.count > 0 {

            mainCollectionViewController!.generateRandomAlpha()

            let mainThreadRunloopSourceContext = secondaryThreadRunloopSourceContext!.runloopSource!.commandBuffer![0]

            secondaryThreadRunloopSourceContext!.runloopSource!.commandBuffer!.removeAll()

            mainThreadRunloopSourceContext.runloopSource?.commandBuffer?.append(secondaryThreadRunloopSourceContext!)

            mainThreadRunloopSourceContext.runloopSource?.signalSourceAndWakeUpRunloop(mainThreadRunloopSourceContext.runloop!)

        }

    }

    func performMainThreadRunLoopSourceTask() {

        if mainThreadRunloopSourceContext!.runloopSource!.commandBuffer!.count > 0 {

            mainThreadRunloopSourceContext!.runloopSource!.commandBuffer!.removeAll()

            mainCollectionViewController!.reloadData()

            let timer = NSTimer(
                timeInterval: 0.01, target: self, selector: AppDelegate.sendCommandToSecondaryThread, userInfo: nil, repeats: false)

            Application.shared.mainRunLoop.add(timer, forMode: .default)

        }

    }

}

/// What the article's controller does, without the view.
class MainCollectionViewController {
    var alphas: [Double] = []
    var reloads = 0
    var secondary: NSThread?
    var source: MainThreadRunLoopSource?

    func start() {

        let mainThreadRunLoopSource = MainThreadRunLoopSource()
        source = mainThreadRunLoopSource

        mainThreadRunLoopSource.addToCurrentRunLoop()

        let secondaryThread = NSThread(target: self, selector: MainCollectionViewController.startThreadWithRunloop, object: nil)
        secondary = secondaryThread

        secondaryThread.start()

    }

    /// The stop button that the article leaves as an exercise: the main thread's source is cancelled, and the worker's loop stopped.
    func stop() {
        CFRunLoopSourceInvalidate(source?.runloopSource)
        CFRunLoopStop(Application.shared.delegate.secondaryThreadRunloopSourceContext?.runloop)
    }

    func startThreadWithRunloop() {

        autoreleasepool {

            var done = false

            let secondaryThreadRunLoopSource = SecondaryThreadRunLoopSource()

            secondaryThreadRunLoopSource.addToCurrentRunLoop()

            repeat {

                let result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 5, true)

                if (result == CFRunLoopRunResult.stopped) || (result == CFRunLoopRunResult.finished) {

                    done = true

                }

            } while !done

        }

    }

    func generateRandomAlpha() { alphas = (0..<9).map { _ in Double.random(in: 0...1) } }

    func reloadData() { reloads += 1 }
}

extension `Article 001` {
    @Test func `its two sources send each other commands until the stop button`() async throws {
        let outcome = try await NSThread.joinable { () -> (Int, Int, Int, Bool) in
            Application.shared.mainThread = NSThread.current
            Application.shared.mainRunLoop = NSRunLoop.current
            let controller = MainCollectionViewController()
            Application.shared.delegate.mainCollectionViewController = controller
            controller.start()
            while controller.reloads < 3 { _ = NSRunLoop.current.run(mode: .default, before: Date.distantFuture) }
            // At rest the worker sleeps in its loop, which the stop then ends.
            while Application.shared.delegate.secondaryThreadRunloopSourceContext.map({ !CFRunLoopIsWaiting($0.runloop) }) == true {}
            controller.stop()
            let ended = controller.secondary?.join(timeout: .seconds(1000)) == true
            return (controller.reloads, controller.alphas.count, Application.shared.delegate.cancelled, ended)
        }.value
        #expect(outcome == (3, 9, 1, true))
    }
}
