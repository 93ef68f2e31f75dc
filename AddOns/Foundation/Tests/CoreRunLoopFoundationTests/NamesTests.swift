// SPDX-License-Identifier: Apache-2.0
//
// Code that was written for Foundation, with one import changed: no other module that brings Foundation may be imported here.

import CoreRunLoopFoundation
import Synchronization
import Testing

private final class Receiver: PortDelegate {
    let components = Guarded<[Any]>([])
    func handle(_ message: PortMessage) { components.value = message.components ?? [] }
}

/// A value that one thread after another uses.
private final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var stored: Value
    init(_ value: Value) { stored = value }
    var value: Value {
        get { lock.withLock { stored } }
        set { lock.withLock { stored = newValue } }
    }
}

private final class Target: Performing, Sendable {
    let calls = Guarded<[String]>([])
    func note(_ text: String) { calls.value.append(text) }
    func call() { note("called") }
    static let named = Action("named", Target.note(_:))
}

private final class Field: NSObject, Performing, @unchecked Sendable {
    let calls = Guarded<[String]>([])
    func search() { calls.value.append("searched") }
    static let search = Action("search", Field.search)
    func take(_ text: String) { calls.value.append(text) }
    static let take = Action("take", Field.take)
}

private final class Inbox: NSMachPortDelegate {
    let numbers = Guarded<[UInt32]>([])
    func handle(_ message: PortMessage) { numbers.value.append(message.msgid) }
}

private final class TimerTarget: Sendable {
    let calls = Guarded<[String]>([])
    func call() { calls.value.append("called") }
    func take(_ timer: Timer) { calls.value.append(timer.userInfo as? String ?? "none") }
}

/// An actor whose asynchronous functions use what on Darwin they may.
private actor Scheduler: RunLoopActor {
    nonisolated let runLoop: RunLoop
    private(set) var count = 0
    private let target = Target()
    init(_ runLoop: RunLoop) { self.runLoop = runLoop }

    func schedule() async {
        await Task.yield()
        Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { timer in
            self.count += 1
            if self.count == 3 { timer.invalidate() }
        }
        Timer.scheduledTimer(timeInterval: 3600, target: target, selector: Target.call, userInfo: nil, repeats: false).invalidate()
        target.perform(Target.call, afterDelay: 3600)
    }
}

/// A subclass and an extension, in which the name of the quality is Foundation's as well.
private final class Worker: Thread, @unchecked Sendable {
    init(quality: QualityOfService) {
        super.init()
        qualityOfService = quality
    }
}

extension Thread {
    fileprivate static var usual: QualityOfService { .default }
}

@MainActor private final class MainTarget: Performing {
    nonisolated init() {}
    func note(_ text: String) {}
}

/// A thread whose object returns from `start` when it runs its loop, and stops the loop when it is cancelled.
private final class Server: Thread, @unchecked Sendable {
    private let ready = DispatchSemaphore(value: 0)
    override func start() {
        super.start()
        ready.wait()
    }
    override func main() {
        let port = Port()
        RunLoop.current.add(port, forMode: .default)
        RunLoop.current.perform { self.ready.signal() }
        while !isCancelled { _ = RunLoop.current.run(in: .default) }
        port.invalidate()
    }
    override func cancel() {
        super.cancel()
        runLoop?.stop()
    }
}

/// A port of the program's own, which counts where it is.
private final class CountingPort: Port, @unchecked Sendable {
    var modes: [RunLoop.Mode] = []
    override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { modes.append(mode) }
    override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) { modes.removeAll { $0 == mode } }
}

/// A port whose end is its own affair, as Darwin's programs have it.
private final class AnnouncingPort: Port, @unchecked Sendable {
    var modes: [RunLoop.Mode] = []
    private var ended = false
    override var isValid: Bool { !ended }
    override func invalidate() {
        if ended { return }
        ended = true
        NotificationCenter.default.post(name: Port.didBecomeInvalidNotification, object: self)
    }
    override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { modes.append(mode) }
    override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) { modes.removeAll { $0 == mode } }
}

/// As programs have it that print what a run returned.
extension CFRunLoopRunResult: @retroactive CustomStringConvertible {
    public var description: String { self == .stopped ? "it was stopped" : "it ended" }
}

private func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await Thread.joinable(name: "test", body).value
}

@Suite(.timeLimit(.minutes(10))) struct `In the place of Foundation` {
    @Test func `the names of both are this package's`() {
        #expect(RunLoop.self == NSRunLoop.self)
        #expect(Timer.self == NSTimer.self)
        #expect(Thread.self == NSThread.self)
        #expect(Port.self == NSPort.self)
        #expect(Thread.mainThread == Thread.main)
    }

    @Test func `objects are equal to themselves, and to nothing of another class`() async throws {
        try await onThread {
            let (loop, thread, port) = (RunLoop.current, Thread.current, Port())
            let timer = Timer(timeInterval: 1, repeats: false) { _ in }
            #expect(loop.isEqual(RunLoop.current) && !loop.isEqual(RunLoop.main) && !loop.isEqual(thread) && !loop.isEqual(nil))
            #expect(thread.isEqual(Thread.current) && !thread.isEqual(Thread.main) && !thread.isEqual(loop) && !thread.isEqual(nil))
            #expect(timer.isEqual(timer) && !timer.isEqual(Timer(timeInterval: 1, repeats: false) { _ in }) && !timer.isEqual(nil))
            #expect(port.isEqual(port as Any) && !port.isEqual(Port()) && !port.isEqual(timer) && !port.isEqual(nil))
            let remotes = try [10000, 10000, 10001].map { try #require(SocketPort(remoteWithTCPPort: $0, host: "localhost")) }
            #expect(remotes[0].isEqual(remotes[1]) && !remotes[0].isEqual(remotes[2]))
        }
    }

    @Test func `a program prints results in its own way`() {
        #expect("\(RunLoop.RunResult.stopped)" == "it was stopped")
    }

    @Test func `threads have Foundation's qualities`() {
        let thread = Thread {}
        let quality: QualityOfService = .utility
        #expect(thread.qualityOfService == .default)
        thread.qualityOfService = quality
        #expect(thread.qualityOfService == quality)
        #expect(thread.threadPriority == 0.35)
        for quality in [.background, .default, .userInitiated, .userInteractive, .utility] as [QualityOfService] {
            thread.qualityOfService = quality
            #expect(thread.qualityOfService == quality)
        }
        #expect(Worker(quality: quality).qualityOfService == quality)
        #expect(Thread.usual == OperationQueue().qualityOfService)
    }

    @Test func `a thread's subclass has its own start and cancellation`() async throws {
        try await onThread {
            let server = Server()
            server.start()
            #expect(server.runLoop?.currentMode == .default)
            server.cancel()
            server.join()
        }
    }

    @Test func `C's functions take what C's functions return`() async throws {
        let called = try await onThread {
            let called = Guarded(false)
            let loop = CFRunLoopGetCurrent()
            CFRunLoopPerformBlock(loop, CFRunLoopMode.defaultMode.rawValue) { called.value = true }
            CFRunLoopWakeUp(loop)
            CFRunLoopRunInMode(.defaultMode, 0, false)
            return called.value
        }
        #expect(called)
    }

    @Test func `a thread's values are an object of Foundation's`() async throws {
        let values = Guarded<[NSMutableDictionary]>([])
        let thread = Thread {
            let own = Thread.current.threadDictionary
            own["number"] = 7
            own["any"] = "text" as Any
            Thread.current.threadDictionary.removeObject(forKey: "any")
            values.value = [Thread.current.threadDictionary]
        }
        let atEnd = Guarded(0)
        thread.onExit { atEnd.value = Thread.current.threadDictionary["number"] as? Int ?? 0 }
        thread.start()
        try await thread.value
        #expect(values.value.first?["number"] as? Int == 7 && values.value.first?["any"] == nil)
        #expect(atEnd.value == 7)
        #expect(thread.threadDictionary.count == 0)
        #expect(thread.CoreRunLoop::threadDictionary.isEmpty)
    }

    @Test func `the end of a thread is posted on it`() async throws {
        let told = Guarded<[Bool]>([])
        let thread = Thread { Thread.current.threadDictionary["own"] = true }
        let observer = NotificationCenter.default.addObserver(forName: .NSThreadWillExit, object: thread, queue: nil) { note in
            told.value.append(note.object as? Thread === Thread.current && Thread.current.threadDictionary["own"] as? Bool == true)
        }
        thread.start()
        try await thread.value
        NotificationCenter.default.removeObserver(observer)
        #expect(told.value == [true])
    }

    @Test func `a timer calls a method at a date`() async throws {
        try await onThread {
            let target = TimerTarget()
            RunLoop.current.add(
                Timer(fireAt: Date(), interval: 0, target: target, selector: TimerTarget.call, userInfo: nil, repeats: false),
                forMode: .default)
            RunLoop.current.add(
                Timer(fireAt: Date(), interval: 0, target: target, selector: TimerTarget.take, userInfo: "info", repeats: false),
                forMode: .default)
            RunLoop.current.add(
                Timer(fireAt: WallTime.now, interval: .zero, target: target, selector: TimerTarget.call, repeats: false), forMode: .default)
            RunLoop.current.run()  // until the last of them has fired
            #expect(target.calls.value.sorted() == ["called", "called", "info"])
        }
    }

    @Test func `an actor schedules timers in an asynchronous function`() async throws {
        let stop = RunLoop.StopToken()
        let worker = Scheduler(try Thread.runningLoop(until: stop))
        await worker.schedule()
        while await worker.count < 3 { await Task.yield() }
        stop.requestStop()
    }

    @Test func `an actor's methods are performed after seconds on its thread only`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await onThread {
                let target = MainTarget()
                target.perform(MainTarget.note(_:), with: "", afterDelay: 0.0)
                RunLoop.current.run(until: Date(timeIntervalSinceNow: 10))
            }
        }
        let sentence = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(sentence.contains("CoreRunLoop: a method of the actor MainActor was called on thread"))
    }

    @Test func `methods are performed after seconds, with nil where they have no parameter`() async throws {
        let calls = try await onThread {
            let target = Target()
            target.perform(Target.note(_:), with: "noted", afterDelay: 0.002)
            target.perform(Target.call, with: nil, afterDelay: 0)
            target.perform(Target.named, with: "named", afterDelay: 0.001)
            target.perform(Target.named, with: "cancelled", afterDelay: 0)
            Target.cancelPreviousPerformRequests(withTarget: target, selector: Target.named, object: "cancelled")
            target.perform(Target.call, on: .current, with: nil, waitUntilDone: true)
            RunLoop.current.run(until: Date(timeIntervalSinceNow: 1000))
            return target.calls.value
        }
        // In which order those with a delay come depends on how long it took to ask for them.
        #expect(calls.first == "called")
        #expect(calls.dropFirst().sorted() == ["called", "named", "noted"])
    }

    @Test func `requests are cancelled by the class of all objects`() async throws {
        let calls = try await onThread {
            let field = Field()
            for text in ["one", "two"] { field.perform(Field.take, with: text, afterDelay: 0) }
            NSObject.cancelPreviousPerformRequests(withTarget: field, selector: Field.take, object: "one")
            field.perform(Field.search, with: nil, afterDelay: 0)
            NSObject.cancelPreviousPerformRequests(withTarget: field, selector: Field.search, object: nil)
            RunLoop.current.run()
            field.perform(Field.search, afterDelay: 0)
            NSObject.cancelPreviousPerformRequests(withTarget: field)
            field.perform(Field.search, afterDelay: 0)
            Field.cancelPreviousPerformRequests(withTarget: field)
            RunLoop.current.run()
            return field.calls.value
        }
        #expect(calls == ["two"])
    }

    @Test func `a Mach port's delegate has Darwin's name`() async throws {
        try await onThread {
            let (inbox, port) = (Inbox(), NSMachPort())
            port.setDelegate(inbox)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(before: .distantFuture, msgid: 42, components: nil, from: nil, reserved: 0))
            RunLoop.current.run(mode: .default, before: .distantFuture)
            #expect(inbox.numbers.value == [42])
        }
    }

    @Test func `return addresses are Foundation's numbers`() async throws {
        let addresses = try await onThread { Thread.callStackReturnAddresses.map { $0.uintValue } }
        #expect(addresses.count > 3)
    }

    @Test func `timers have dates and seconds`() async throws {
        try await onThread {
            let date = Date(timeIntervalSinceReferenceDate: 800_000_000.25)
            let timer = Timer(fire: date, interval: 0.5, repeats: true) { _ in }
            timer.tolerance = 0.1
            #expect(timer.fireDate == date)
            #expect(timer.timeInterval == 0.5)
            #expect(timer.tolerance == 0.1)
            timer.fireDate = date.addingTimeInterval(2)
            #expect(timer.fireDate.timeIntervalSince(date) == 2)
            #expect(Set([timer, timer]).count == 1)
            RunLoop.current.add(timer, forMode: .common)
            let inAnHour = Date(timeIntervalSinceNow: 3600)
            timer.fireDate = inAnHour
            let limit = try #require(RunLoop.current.limitDate(forMode: .default))
            #expect(abs(limit.timeIntervalSince(inAnHour)) < 1)
        }
    }

    @Test(arguments: [0, -1, -.infinity, .nan, -.greatestFiniteMagnitude] as [TimeInterval])
    func `timers take no seconds, and what is no number, for 0.1 ms`(seconds: TimeInterval) {
        let timer = Timer(timeInterval: seconds, repeats: true) { _ in }
        #expect(timer.timeInterval == 0.0001)
        timer.tolerance = seconds
        #expect(timer.tolerance == 0)
    }

    @Test(arguments: [1e12, .infinity, .greatestFiniteMagnitude] as [TimeInterval])
    func `seconds without end are timers that do not fire, and runs that something else ends`(seconds: TimeInterval) async throws {
        try await onThread {
            let dates = [Date(timeIntervalSinceReferenceDate: seconds), Date(timeIntervalSinceNow: seconds), .distantFuture]
            let timers = dates.map { Timer(fire: $0, interval: seconds, repeats: true) { _ in Issue.record("fired") } }
            let timer = Timer(timeInterval: seconds, repeats: true) { _ in Issue.record("fired") }
            for timer in timers + [timer] {
                timer.tolerance = seconds
                RunLoop.current.add(timer, forMode: .default)
                #expect(timer.fireDate > Date(timeIntervalSinceNow: 1e9))
            }
            RunLoop.current.perform {
                for timer in timers + [timer] { timer.invalidate() }
                RunLoop.current.wake()
            }
            for date in dates { RunLoop.current.run(until: date) }
        }
    }

    @Test func `loops run until dates`() async throws {
        let count = try await onThread {
            nonisolated(unsafe) var count = 0
            let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { timer in
                count += 1
                if count == 3 { timer.invalidate() }
            }
            RunLoop.current.add(timer, forMode: .default)
            RunLoop.current.run(until: Date(timeIntervalSinceNow: 1000))
            return count
        }
        #expect(count == 3)
    }

    @Test func `a port of no subclass keeps a mode alive and carries data`() async throws {
        try await onThread {
            let (port, receiver) = (Port(), Receiver())
            port.setDelegate(receiver)
            RunLoop.current.add(port, forMode: .default)
            #expect(!RunLoop.current.run(mode: "other", before: Date.distantFuture))
            let components = NSMutableArray(array: [Data([1, 2]), NSData()])
            #expect(port.send(before: Date(), components: components, from: port, reserved: 0))
            #expect(RunLoop.current.run(mode: .default, before: Date.distantFuture))
            #expect(receiver.components.value.map { $0 as? Data } == [Data([1, 2]), Data()])
            #expect(PortMessage(sendPort: port, receivePort: nil, components: [Data([3])]).send(before: Date()))
            #expect(RunLoop.current.run(mode: .default, before: Date.distantFuture))
            #expect(receiver.components.value.first as? Data == Data([3]))
            port.invalidate()
            #expect(!RunLoop.current.run(mode: .default, before: Date.distantFuture))
        }
    }

    @Test func `socket ports have their addresses as data`() async throws {
        try await onThread {
            let server = try #require(SocketPort(tcpPort: 0))
            let address: Data = server.address
            let remote = SocketPort(remoteWithProtocolFamily: AF_INET, socketType: 1, protocol: 0, address: address)
            #expect(remote.address == address)
            #expect(address.withUnsafeBytes { $0.load(as: sockaddr_in.self) }.sin_port.bigEndian == server.tcpPort)
            #expect(SocketPort(protocolFamily: AF_INET, socketType: 1, protocol: 0, address: address) == nil)  // which is taken
            #expect(SocketPort(protocolFamily: AF_INET, socketType: 1, protocol: 0, socket: -1) == nil)
            #expect(SocketPort(remoteWithTCPPort: 80, host: "example.invalid") == nil)
            #expect(!SocketPort(remoteWithProtocolFamily: AF_INET, socketType: 1, protocol: 0, address: Data()).isValid)
            #expect(remote.isValid)
            server.invalidate()
        }
    }

    @Test func `the overlay's initializers tell why there is no port`() throws {
        #expect(throws: PortError.notFound("example.invalid")) {
            try SocketPort.CoreRunLoop::init(remoteWithTCPPort: 80, host: "example.invalid")
        }
    }

    @Test func `ports have Foundation's small members`() {
        let (port, receiver) = (Port(), Receiver())
        port.setDelegate(receiver)
        #expect(port.delegate() === receiver && port.delegate === receiver)
        #expect(port.copy() as AnyObject === port && port.hash == port.hashValue && port.reservedSpaceLength == 0)
        let message = PortMessage(sendPort: port, receivePort: nil, components: nil)
        #expect(message.copy(with: nil) as AnyObject === message)
        port.invalidate()
    }

    @Test func `a port of the program's own is asked once for each mode`() async throws {
        try await onThread {
            let port = CountingPort()
            RunLoop.current.add(port, forMode: .default)
            RunLoop.current.add(port, forMode: .default)
            RunLoop.current.add(port, forMode: "other")
            #expect(port.modes == [.default, "other"])
            RunLoop.current.remove(port, forMode: .default)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.modes == ["other", .default])
            port.invalidate()
            #expect(port.modes == [])
        }
    }

    @Test func `a port of the program's own is kept by its loop, and not asked to leave a mode that it is not in`() async throws {
        try await onThread {
            let seen = Guarded<[ObjectIdentifier]>([])
            weak var kept: CountingPort?
            func add() {
                let port = CountingPort()
                port.modes = ["by other means"]
                RunLoop.current.remove(port, forMode: "by other means")
                #expect(port.modes == ["by other means"])
                RunLoop.current.add(port, forMode: .default)
                seen.value = [ObjectIdentifier(port)]
                kept = port
            }
            add()
            #expect(kept.map { [ObjectIdentifier($0)] } == seen.value)
            kept?.invalidate()
            #expect(kept == nil)
        }
    }

    @Test func `a port of the program's own that posts its end leaves its loops`() async throws {
        try await onThread {
            weak var kept: AnnouncingPort?
            let other = CountingPort()
            RunLoop.current.add(other, forMode: .default)
            let modes = {
                let port = AnnouncingPort()
                RunLoop.current.add(port, forMode: .default)
                RunLoop.current.add(port, forMode: "other")
                kept = port
                let before = port.modes
                port.invalidate()
                return [before, port.modes]
            }()
            #expect(modes == [[.default, "other"], []])
            #expect(kept == nil)
            #expect(other.modes == [.default])
            other.invalidate()
        }
    }

    @Test func `the end of a port is posted`() {
        let ended = Guarded<[ObjectIdentifier]>([])
        let port = MachPort()
        let observer = NotificationCenter.default.addObserver(
            forName: Port.didBecomeInvalidNotification, object: port, queue: nil
        ) { note in if let object = note.object as AnyObject? { ended.value.append(ObjectIdentifier(object)) } }
        port.invalidate()
        port.invalidate()
        NotificationCenter.default.removeObserver(observer)
        #expect(ended.value == [ObjectIdentifier(port)])
    }
}

/// A thread that keeps its loop, as many programs have one.
private final class LoopThread: Thread, @unchecked Sendable {
    let loop = Guarded<RunLoop?>(nil)
    var runLoop: RunLoop! { loop.value }
    override func main() {
        loop.value = RunLoop.current
        RunLoop.current.add(Port(), forMode: .common)
        while !isCancelled && RunLoop.current.run(mode: .default, before: Date.distantFuture) {}
    }
}

/// A thread that says of itself what it likes.
private final class Pretender: Thread, @unchecked Sendable {
    private let own: String
    init(_ own: String) {
        self.own = own
        super.init()
    }
    override var name: String? {
        get { own }
        set { _ = newValue }
    }
    override var stackSize: Int {
        get { 1 << 20 }
        set { _ = newValue }
    }
    override var isFinished: Bool { true }
    override var isExecuting: Bool { true }
    override var isCancelled: Bool { false }
    override func main() {
        let alive = RunLoop.current.keepAlive()
        _ = RunLoop.current.run(mode: .default, before: .distantFuture)  // until something is performed
        alive.cancel()
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A subclass of Thread` {
    @Test func `may have its own properties`() async throws {
        let thread = Pretender("own")
        thread.name = "another"
        #expect(thread.name == "own" && thread.isFinished && thread.isExecuting)
        #expect((thread as Thread).stackSize == 1 << 20)
        thread.cancel()
        #expect(!thread.isCancelled)
    }

    @Test func `is waited for until it ends whatever it says`() async throws {
        let thread = Pretender("own")
        thread.start()
        #expect(try await onThread { try thread.performAndWait { Thread.current === thread } })
        try await thread.value
        #expect(!thread.perform {})
    }

    @Test func `may have a loop by the name of runLoop`() async throws {
        let thread = LoopThread()
        thread.start()
        while thread.runLoop == nil { await Task.yield() }
        let isThere = await withCheckedContinuation { continuation in
            thread.runLoop.perform { continuation.resume(returning: Thread.current === thread) }
        }
        #expect(isThere)
        thread.cancel()
        thread.runLoop.perform { RunLoop.current.stop() }  // from inside, as a run that has not begun takes no notice
        try await thread.value
    }
}

@Suite struct `Objects of the C interface` {
    @Test(arguments: [
        "", "plain", "Grüße", "世界, 世界, 世界", "😀 beyond the first plane 𝄞", "e\u{301}",
        String(repeating: "long ", count: 1000), String(repeating: "länger 😀", count: 1000),
    ]) func `are made of texts, and texts of them`(text: String) {
        #expect(Array(String(text.cfString).utf8) == Array(text.utf8))
        #expect(CFStringGetLength(text.cfString) == text.utf16.count)
    }

    @Test func `do not end at a NUL`() {
        for text in ["a\0b", "\0", "ends in\0", "ä\0ö", "\0😀\0𝄞\0"] {
            #expect(Array(String(text.cfString).utf8) == Array(text.utf8))
        }
    }

    @Test(arguments: [[0xD83D], [0x61, 0xDE00], [0xDE00, 0xD83D]] as [[UniChar]])
    func `give an empty text for half of a pair`(units: [UniChar]) throws {
        #expect(String(try #require(CFStringCreateWithCharacters(nil, units, units.count))) == "")
    }

    @Test func `name different modes beyond a NUL`() {
        #expect(RunLoop.Mode("crl.tests\0one".cfString) != RunLoop.Mode("crl.tests\0other".cfString))
    }

    @Test func `are made of literals, and modes of their names`() {
        let number = 7
        let (plain, interpolated): (CFString, CFString) = ("Grüße", "port.\(number)" as CFString)
        #expect(String(plain) == "Grüße" && String(interpolated) == "port.7")
        let mode = CFRunLoopMode("crl.tests.literal" as CFString)
        #expect(mode == CFRunLoopMode(rawValue: "crl.tests.literal" as CFString) && mode.rawValue == mode)
        #expect(RunLoop.Mode("crl.tests.literal") == RunLoop.Mode(mode))
        let held = "crl.tests.counted".cfString
        let before = CFGetRetainCount(held)
        for _ in 0..<100 { #expect(CFRunLoopMode(held) === held && CFRunLoopMode(rawValue: held) === held) }
        #expect(CFGetRetainCount(held) == before)
    }

    @Test(arguments: [[], [0], [1, 2, 255]] as [[UInt8]]) func `are made of bytes, and bytes of them`(bytes: [UInt8]) {
        #expect([UInt8](bytes.cfData) == bytes)
        #expect(Data(Data(bytes).cfData) == Data(bytes))
    }

    @Test func `say by Darwin's truth value what they keep`() {
        var shouldFreeInfo: DarwinBoolean = true
        let name = "crl.tests.names.\(UInt32.random(in: 0 ... .max))".cfString
        let port = CFMessagePortCreateLocal(nil, name, { _, _, _, _ in nil }, nil, &shouldFreeInfo)
        #expect(!shouldFreeInfo)
        CFMessagePortInvalidate(port)
    }
}
