// SPDX-License-Identifier: Apache-2.0
//
// What it costs that either loop of a thread serves the items of both: `make bench-foundation`, a part of `make bench-swift`.
// Each figure is the median of several processes. Those with the loops joined and those with the loops apart take turns, so that a change
// of the machine's speed meets both. Times are the thread's own processor time.
//
// `bench-foundation together WORK` and `bench-foundation apart WORK` measure one work in one process and print nanoseconds.

import Allocations
import CoreFoundation
import CoreRunLoop
import CoreRunLoopFoundation

let processes = 9
let batches = 101
let batch = 1000
let wakes = 20_000
let pause: UInt32 = 20  // microseconds in which the loop goes to sleep

/// A source that signals itself from its own callback as often as said, and then stops the run.
final class Chain {
    var left = 0
    var signal: () -> Void = {}
    var stop: () -> Void = {}

    func call() {
        left -= 1
        if left == 0 { stop() } else { signal() }
    }
}

let loop = RunLoop.current
let chain = Chain()

func addOurSource() {
    let source = InputSource<Void> { _ in chain.call() }
    loop.add(source, forMode: .default)
    chain.signal = { source.signal() }
    chain.stop = { loop.stop() }
}

func addTheirSource() {
    var context = CoreFoundation::CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(chain).toOpaque()
    context.perform = { Unmanaged<Chain>.fromOpaque($0!).takeUnretainedValue().call() }
    let source = CoreFoundation::CFRunLoopSourceCreate(nil, 0, &context)
    let theirLoop = CoreFoundation::CFRunLoopGetCurrent()
    CoreFoundation::CFRunLoopAddSource(theirLoop, source, CoreFoundation::kCFRunLoopDefaultMode)
    chain.signal = {
        CoreFoundation::CFRunLoopSourceSignal(source)
        CoreFoundation::CFRunLoopWakeUp(theirLoop)
    }
    chain.stop = { CoreFoundation::CFRunLoopStop(theirLoop) }
}

func runOurs() { _ = loop.run(in: .default, for: .seconds(1000)) }
func runTheirs() { _ = CoreFoundation::CFRunLoopRunInMode(CoreFoundation::kCFRunLoopDefaultMode, 1000, false) }

/// Nanoseconds of one signal and its callback in `run`.
func perItem(_ run: () -> Void) -> Double {
    let times = (0..<batches).map { _ in
        chain.left = batch
        chain.signal()
        let start = thread_time_ns()
        run()
        return Double(thread_time_ns() - start) / Double(batch)
    }
    return median(times)
}

let isCalled = DispatchSemaphore(value: 0)

/// Nanoseconds that the loop's thread spends on a signal of another thread, which wakes it, and on the callback.
func perWake(_ run: () -> Void) -> Double {
    nonisolated(unsafe) let signal = chain.signal
    chain.left = wakes
    chain.signal = { isCalled.signal() }
    CoreRunLoop::Thread.detachNewThread {
        for _ in 0..<wakes {
            usleep(pause)
            signal()
            isCalled.wait()
        }
    }
    let start = thread_time_ns()
    run()
    return Double(thread_time_ns() - start) / Double(wakes)
}

/// Nanoseconds of one pass that finds nothing to do.
func perPass() -> Double {
    let source = InputSource<Void> { _ in }
    loop.add(source, forMode: .default)
    let times = (0..<batches).map { _ in
        let start = thread_time_ns()
        for _ in 0..<batch { _ = loop.run(in: .default, for: .zero) }
        return Double(thread_time_ns() - start) / Double(batch)
    }
    return median(times)
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// What a process measures, by its name on the command line.
let works: [String: () -> Double] = [
    "pass": perPass,
    "our-source-in-our-run": {
        addOurSource()
        return perItem(runOurs)
    },
    "our-source-in-their-run": {
        _ = CoreFoundation::CFRunLoopGetCurrent()
        addOurSource()
        return perItem(runTheirs)
    },
    "their-source-in-their-run": {
        addTheirSource()
        return perItem(runTheirs)
    },
    "their-source-in-our-run": {
        addTheirSource()
        return perItem(runOurs)
    },
    "our-wake-in-our-run": {
        addOurSource()
        return perWake(runOurs)
    },
    "our-wake-in-their-run": {
        _ = CoreFoundation::CFRunLoopGetCurrent()
        addOurSource()
        return perWake(runTheirs)
    },
    "their-wake-in-their-run": {
        addTheirSource()
        return perWake(runTheirs)
    },
    "their-wake-in-our-run": {
        addTheirSource()
        return perWake(runOurs)
    },
]

/// Runs this program for each of the two works in turn, and returns the median of each.
func compare(_ one: [String], _ other: [String]) throws -> (Double, Double) {
    var times: ([Double], [Double]) = ([], [])
    for _ in 0..<processes {
        times.0.append(try measure(one))
        times.1.append(try measure(other))
    }
    return (median(times.0), median(times.1))
}

func measure(_ arguments: [String]) throws -> Double {
    let process = Process(), output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = arguments
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard let time = Double(text.split(separator: "\n").first ?? "") else { fatalError("\(arguments) printed \(text)") }
    return time
}

func text(_ value: Double) -> String { String(format: "%.0f ns", value) }

let arguments = CommandLine.arguments
if arguments.count == 3, let work = works[arguments[2]] {
    if arguments[1] == "apart" { RunLoop.separateFromFoundation() }
    print(work())
} else {
    print("| work | apart | together | difference |\n|---|--:|--:|--:|")
    let pass = try compare(["apart", "pass"], ["together", "pass"])
    print(
        "| a pass of a thread that has this package's loop only | \(text(pass.0)) | \(text(pass.1)) "
            + "| \(String(format: "%+.1f", (pass.1 / pass.0 - 1) * 100)) % |")
    for (name, own, other) in [
        ("this package's source, in a run of Foundation's loop", "our-source-in-our-run", "our-source-in-their-run"),
        ("Foundation's source, in a run of this package's loop", "their-source-in-their-run", "their-source-in-our-run"),
        ("this package's source, whose signal wakes Foundation's loop", "our-wake-in-our-run", "our-wake-in-their-run"),
        ("Foundation's source, whose signal wakes this package's loop", "their-wake-in-their-run", "their-wake-in-our-run"),
    ] {
        let times = try compare(["apart", own], ["together", other])
        print("| \(name) | \(text(times.0)) | \(text(times.1)) | \(text(times.1 - times.0)) |")
    }
}
