// SPDX-License-Identifier: Apache-2.0
//
// Random programs with items in both loops of a thread, beside a model of what each item and each run has to do. Rules: 800 801 802 803
//
// A program is made from its number. Its thread adds timers, blocks and sources to either loop, in three modes, and runs either loop. Each
// callback goes on with the program, so that runs nest in one another. In the end the thread runs until every item has been called.
// CORERUNLOOP_PROGRAMS=FIRST-LAST says which programs to run.

import CoreFoundation
import CoreRunLoop
import CoreRunLoopFoundation
import Testing

#if canImport(Glibc)
    import Glibc
#endif

private typealias TheirLoop = Foundation::RunLoop
private typealias TheirTimer = Foundation::Timer

/// Steele, Lea and Flood's generator, whose numbers depend on the seed alone.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// One item of a loop, and what it still has to do.
private final class Item: @unchecked Sendable {
    enum Kind: CaseIterable { case ourTimer, theirTimer, ourTicks, theirTicks, ourBlock, theirBlock, ourSource, theirSource }

    let number: Int
    let kind: Kind
    let mode: String
    /// Not to be called before this time. Foundation's timers have none: it reads two clocks one after the other to set them, and a thread
    /// that is interrupted in between gets a timer that is early.
    var due = ContinuousClock.now
    /// How often it is still to be called.
    var callsLeft: Int
    var isInCall = false
    /// Takes it out of its loop, after its last call.
    var end: () -> Void = {}

    init(_ number: Int, _ kind: Kind, _ mode: String) {
        (self.number, self.kind, self.mode) = (number, kind, mode)
        callsLeft = kind == .ourTicks || kind == .theirTicks ? 3 : 1
    }

    var isSource: Bool { kind == .ourSource || kind == .theirSource }
}

/// A run of either loop that is under way.
private struct Run {
    let mode: String
    var isStopped = false
    var hasCalledSource = false
}

/// One program. Confined to its thread.
private final class Program: @unchecked Sendable {
    private static let modes = ["kCFRunLoopDefaultMode", "a", "b"]

    private let number: UInt64
    private var random: SplitMix
    /// Steps of the program; each adds an item, runs a loop or stops a run.
    private var stepsLeft = 12
    private var items: [Item] = []
    private var runs: [Run] = []
    private(set) var faults: [String] = []

    init(number: UInt64) {
        self.number = number
        random = SplitMix(state: number)
    }

    private func fault(_ text: String) { faults.append("program \(number): \(text)") }

    private func chance(_ part: Int, of whole: Int) -> Bool { Int.random(in: 0..<whole, using: &random) < part }

    /// Does it all.
    func perform() {
        while stepsLeft > 0 { takeStep() }
        let start = ContinuousClock.now
        while let item = items.first(where: { $0.callsLeft > 0 }) {
            run(in: item.mode, seconds: 0.05)
            if ContinuousClock.now - start > .seconds(30) {
                let lost = items.filter { $0.callsLeft > 0 }.map { "\($0.kind) \($0.number) in \($0.mode)" }
                return fault("never called: \(lost)")
            }
        }
        for mode in Program.modes { run(in: mode, seconds: 0) }
    }

    /// Takes one step of the program, or none if they are used up.
    private func takeStep() {
        guard stepsLeft > 0 else { return }
        stepsLeft -= 1
        if chance(3, of: 5) {
            addItem()
        } else if chance(1, of: 5), !runs.isEmpty {
            runs[runs.count - 1].isStopped = true
            if chance(1, of: 2) {
                RunLoop.current.stop()
            } else {
                CoreFoundation::CFRunLoopStop(CoreFoundation::CFRunLoopGetCurrent())
            }
        } else {
            run(in: Program.modes.randomElement(using: &random)!, seconds: Double.random(in: 0...0.003, using: &random))
        }
    }

    // MARK: Runs

    /// Runs either loop in the mode, and compares what the run returns with what has happened.
    private func run(in mode: String, seconds: Double) {
        let returnsAfterSource = chance(1, of: 2), isOurs = chance(1, of: 2)
        let inMode = items.filter { $0.mode == mode && ($0.callsLeft > 0 || $0.isInCall) }
        let isEmpty = inMode.isEmpty
        let start = ContinuousClock.now
        runs.append(Run(mode: mode))
        let result: Int32
        if isOurs {
            result =
                RunLoop.current.run(
                    in: RunLoop.Mode(mode), for: .seconds(seconds), returnAfterSourceHandled: returnsAfterSource
                ).rawValue
        } else {
            result = CoreFoundation::CFRunLoopRunInMode(TheirLoop.Mode(mode).name, seconds, returnsAfterSource).rawValue
        }
        let took = ContinuousClock.now - start
        let run = runs.removeLast()
        let text = "a run of \(isOurs ? "this package's" : "Foundation's") loop in \(mode) for \(seconds) s"
        switch result {
        case CoreFoundation::CFRunLoopRunResult.finished.rawValue:
            let left = items.filter { $0.mode == mode && $0.callsLeft > 0 && !$0.isInCall && !isTaken($0) }
            if !left.isEmpty { fault("\(text) finished before \(left.map { "\($0.kind) \($0.number)" })") }
        case CoreFoundation::CFRunLoopRunResult.stopped.rawValue:
            if !run.isStopped { fault("\(text) was stopped by nobody") }
        case CoreFoundation::CFRunLoopRunResult.timedOut.rawValue:
            if took < .seconds(seconds) - .microseconds(20) { fault("\(text) timed out after \(took)") }
        case CoreFoundation::CFRunLoopRunResult.handledSource.rawValue:
            if !returnsAfterSource || !run.hasCalledSource { fault("\(text) returned after a source, without one") }
        default:
            fault("\(text) returned \(result)")
        }
        let hasFinished = result == CoreFoundation::CFRunLoopRunResult.finished.rawValue
        if isEmpty && !hasFinished { fault("\(text) returned \(result) in an empty mode") }
        if run.isStopped && hasFinished { fault("\(text) forgot a stop") }
    }

    /// While a loop calls a block, it has taken the blocks of that mode off their list, and Foundation's loop those of all modes. A run
    /// inside that call misses them.
    private func isTaken(_ item: Item) -> Bool {
        switch item.kind {
        case .ourBlock: items.contains { $0.kind == .ourBlock && $0.isInCall && $0.mode == item.mode }
        case .theirBlock: items.contains { $0.kind == .theirBlock && $0.isInCall }
        default: false
        }
    }

    // MARK: Items

    /// An item is called: goes on with the program.
    private func call(_ item: Item) {
        if item.callsLeft == 0 { return fault("\(item.kind) \(item.number) is called once too often") }
        if item.isInCall { return fault("\(item.kind) \(item.number) is called inside itself") }
        if item.due - ContinuousClock.now > .microseconds(20) { fault("\(item.kind) \(item.number) is early") }
        if runs.last?.mode != item.mode { fault("\(item.kind) \(item.number) of \(item.mode) is called in \(runs.last?.mode ?? "no run")") }
        if item.isSource && !runs.isEmpty { runs[runs.count - 1].hasCalledSource = true }
        item.callsLeft -= 1
        item.isInCall = true
        for _ in 0..<Int.random(in: 0...2, using: &random) { takeStep() }
        item.isInCall = false
        if item.callsLeft == 0 {
            item.end()
            item.end = {}
        }
    }

    private func addItem() {
        let item = Item(items.count, Item.Kind.allCases.randomElement(using: &random)!, Program.modes.randomElement(using: &random)!)
        let delay = chance(1, of: 3) ? 0 : Double.random(in: 0...0.002, using: &random)
        let ours = RunLoop.Mode(item.mode), theirs = TheirLoop.Mode(item.mode)
        items.append(item)
        switch item.kind {
        case .ourTimer, .ourTicks:
            let ticks = item.kind == .ourTicks
            let interval = ticks ? max(delay, 0.0001) : delay
            item.due += .seconds(interval)
            let timer = Timer(timeInterval: interval, repeats: ticks) { [self] _ in call(item) }
            item.end = { timer.invalidate() }
            RunLoop.current.add(timer, forMode: ours)
        case .theirTimer, .theirTicks:
            let ticks = item.kind == .theirTicks
            let fires = Date(timeIntervalSinceNow: delay)
            let timer = TheirTimer(fire: fires, interval: max(delay, 0.0001), repeats: ticks) { [self] _ in call(item) }
            item.end = { timer.invalidate() }
            TheirLoop.current.add(timer, forMode: theirs)
        case .ourBlock:
            RunLoop.current.perform(inModes: [ours]) { [self] in call(item) }
        case .theirBlock:
            TheirLoop.current.perform(inModes: [theirs]) { [self] in call(item) }
        case .ourSource:
            let source = InputSource<Void> { [self] _ in call(item) }
            item.end = { source.invalidate() }
            RunLoop.current.add(source, forMode: ours)
            source.send(())
        case .theirSource:
            addTheirSource(item, theirs)
        }
    }

    /// Adds a signalled source to Foundation's loop.
    private func addTheirSource(_ item: Item, _ mode: TheirLoop.Mode) {
        final class Info {
            let call: () -> Void
            init(_ call: @escaping () -> Void) { self.call = call }
        }
        let info = Info { [self] in call(item) }
        var context = CoreFoundation::CFRunLoopSourceContext()
        context.info = Unmanaged.passUnretained(info).toOpaque()
        context.perform = { Unmanaged<Info>.fromOpaque($0!).takeUnretainedValue().call() }
        let source = CoreFoundation::CFRunLoopSourceCreate(nil, 0, &context)
        item.end = {
            CoreFoundation::CFRunLoopSourceInvalidate(source)
            _ = info  // lives until here
        }
        CoreFoundation::CFRunLoopAddSource(CoreFoundation::CFRunLoopGetCurrent(), source, mode.name)
        CoreFoundation::CFRunLoopSourceSignal(source)
    }
}

extension TheirLoop.Mode {
    /// The name that the toolchain's C interface takes.
    fileprivate var name: CoreFoundation::CFString {
        if self == .default { return CoreFoundation::kCFRunLoopDefaultMode }
        return unsafeBitCast(NSString(string: rawValue), to: CoreFoundation::CFString.self)
    }
}

@Suite(.timeLimit(.minutes(60))) struct `Random programs with both loops` {
    private static var range: ClosedRange<UInt64> {
        let numbers = (ProcessInfo.processInfo.environment["CORERUNLOOP_PROGRAMS"] ?? "").split(separator: "-").compactMap { UInt64($0) }
        return numbers.count == 2 && numbers[0] <= numbers[1] ? numbers[0]...numbers[1] : 1...300
    }

    @Test func `lose nothing, call nothing twice, early or in another mode, and tell why each run ended`() async throws {
        for number in Self.range {
            let faults = try await Thread.joinable(name: "program") {
                let program = Program(number: number)
                program.perform()
                return program.faults
            }.value
            #expect(faults == [])
        }
    }
}
