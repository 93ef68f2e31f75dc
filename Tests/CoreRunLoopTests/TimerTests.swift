// SPDX-License-Identifier: Apache-2.0
//
// The timers: rules 1500 to 1508 of docs/rules.md, and what its column Swift names.

import CoreRunLoop
import CoreRunLoopTesting
import Testing

private final class Owner: Sendable {
    let trace: Trace
    init(_ trace: Trace) { self.trace = trace }
    func fired(_ timer: Timer) { trace.add("fired \(timer.userInfo as? String ?? "nothing")") }
    func plain() { trace.add("plain") }
    deinit { trace.add("freed") }
}

@Suite(.timeLimit(.minutes(10))) struct `A timer` {
    @Test(.manualTime) func `that is made with an interval first fires after the interval`() {
        let timer = Timer(timeInterval: .seconds(50), repeats: true) { _ in Issue.record("fired at once") }
        RunLoop.current.add(timer, forMode: .default)
        _ = RunLoop.current.run(mode: .default, before: .distantPast)
        #expect(timer.fireDate - .now == .seconds(50))
        #expect(timer.timeInterval == .seconds(50))
        #expect(timer.repeats)
        timer.invalidate()
    }

    @Test(arguments: [Duration.zero, .seconds(-5)]) func `of no interval repeats every 0.1 ms`(interval: Duration) {
        let timer = Timer(timeInterval: interval, repeats: true) { _ in }
        #expect(timer.timeInterval == .microseconds(100))
    }

    @Test(arguments: 1...200) func `reads its interval and its tolerance as they were given`(milliseconds: Int) {
        let interval = Duration.milliseconds(milliseconds * 7) + .nanoseconds(milliseconds)
        let timer = Timer(timeInterval: interval, repeats: true) { _ in }
        #expect(timer.timeInterval == interval)
        timer.tolerance = .milliseconds(milliseconds)
        #expect(timer.tolerance == .milliseconds(milliseconds))
    }

    @Test(arguments: [Duration.nanoseconds(1), .microseconds(30)]) func `of a short interval keeps it`(interval: Duration) {
        #expect(Timer(timeInterval: interval, repeats: true) { _ in }.timeInterval == interval)
        let once = Timer(timeInterval: interval, repeats: false) { _ in }
        #expect(once.fireDate <= .now + interval)
    }

    @Test func `that fires once reads no interval, and is invalid after its closure`() async throws {
        try await onThread {
            let trace = Trace()
            let timer = Timer(fire: .now, interval: .seconds(5), repeats: false) { timer in trace.add("valid \(timer.isValid)") }
            #expect(timer.timeInterval == .zero)
            #expect(!timer.repeats)
            RunLoop.current.add(timer, forMode: .default)
            RunLoop.current.run()
            #expect(trace.events == ["valid true"])
            #expect(!timer.isValid)
            #expect(timer.fireDate == .distantPast)
        }
    }

    @Test func `gives its closure the same object`() async throws {
        try await onThread {
            let same = Count()
            let timer = Timer(fire: .now, interval: .zero, repeats: false, userInfo: 17) { timer in
                if timer.userInfo as? Int == 17 { same.next() }
            }
            let probe = Timer(fire: .now, interval: .zero, repeats: false) { given in if given === timer { Issue.record("another's") } }
            RunLoop.current.add(probe, forMode: .default)
            RunLoop.current.add(timer, forMode: .default)
            RunLoop.current.run()
            #expect(same.value == 1)
            #expect(timer.userInfo == nil)
        }
    }

    @Test func `fires by hand without a change of its dates`() {
        let count = Count()
        let timer = Timer(timeInterval: .seconds(100), repeats: true) { _ in count.next() }
        let date = timer.fireDate
        timer.fire()
        timer.fire()
        #expect(count.value == 2)
        #expect(timer.fireDate == date)
        let once = Timer(timeInterval: .seconds(100), repeats: false) { _ in count.next() }
        once.fire()
        once.fire()
        #expect(count.value == 3)
        #expect(!once.isValid)
    }

    @Test func `that fires once does so for one of two threads that fire it by hand`() async throws {
        let (calls, fired) = (Count(), Count())
        let timer = Timer(timeInterval: .seconds(100), repeats: false) { _ in
            calls.next()
            while fired.value == 0 { Thread.sleep(for: .microseconds(100)) }
        }
        let first = Thread { timer.fire() }
        first.start()
        while calls.value == 0 { await Task.yield() }
        let second = Thread {
            timer.fire()
            fired.next()
        }
        second.start()
        try await second.value
        try await first.value
        #expect(calls.value == 1)
        #expect(!timer.isValid)
    }

    @Test func `that fires once does so by hand or in its loop`() async throws {
        let (calls, fired) = (Count(), Count())
        try await onThread {
            let timer = Timer(fire: .now, interval: .zero, repeats: false) { timer in
                #expect(timer.isValid)
                calls.next()
                timer.fire()
                while fired.value == 0 { Thread.sleep(for: .microseconds(100)) }
            }
            let byHand = Thread { timer.fire() }
            byHand.start()
            while calls.value == 0 { Thread.sleep(for: .microseconds(100)) }
            RunLoop.current.add(timer, forMode: .default)
            RunLoop.current.run()
            fired.next()
            byHand.join()
            #expect(!timer.isValid)
        }
        #expect(calls.value == 1)
    }

    @Test(.manualTime) func `is moved by its date, and keeps its interval`() {
        let count = Count()
        let timer = Timer(fire: .distantFuture, interval: .seconds(1000), repeats: true) { _ in count.next() }
        RunLoop.current.add(timer, forMode: .default)
        timer.fireDate = .now
        _ = RunLoop.current.run(mode: .default, before: .now)
        #expect(count.value == 1)
        #expect(timer.timeInterval == .seconds(1000))
        #expect(timer.fireDate - .now == .seconds(1000))
        timer.invalidate()
    }

    @Test(arguments: [
        (Duration.seconds(-1), Duration.zero), (.zero, .zero), (.milliseconds(100), .milliseconds(100)), (.seconds(5), .milliseconds(500)),
    ])
    func `holds its tolerance within half of the interval`(given: Duration, kept: Duration) {
        let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
        #expect(timer.tolerance == .zero)
        timer.tolerance = given
        #expect(abs(timer.tolerance.components.attoseconds - kept.components.attoseconds) < 1_000_000_000_000)
    }

    @Test(.manualTime) func `that came due in another mode fires late and once, and keeps its phase`() {
        let loop = RunLoop.current
        let count = Count()
        let start = WallTime.now + .milliseconds(100)  // to come, as a date that has passed would become that of the call
        let timer = Timer(fire: start, interval: .milliseconds(4), repeats: true) { _ in count.next() }
        loop.add(timer, forMode: "other")
        let alive = loop.keepAlive()
        ManualTime.advance(by: .milliseconds(130))
        #expect(loop.run(in: .default, for: .zero) == .timedOut)
        #expect(count.value == 0)
        _ = loop.run(in: "other", for: .zero)
        #expect(count.value == 1)
        #expect(timer.fireDate - start == .milliseconds(32))
        timer.invalidate()
        alive.cancel()
    }

    @Test func `fires no more after it was invalidated on its thread, though it is due`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            let second = Timer(fire: .distantPast, interval: .zero, repeats: true) { _ in trace.add("second") }
            let first = Timer(fire: .distantPast, interval: .zero, repeats: true) { timer in
                trace.add("first")
                timer.invalidate()
                second.invalidate()
            }
            second.fireDate = first.fireDate + .microseconds(1)
            loop.add(first, forMode: .default)
            loop.add(second, forMode: .default)
            loop.run(until: .now + .milliseconds(2))
            #expect(trace.events == ["first"])
        }
    }

    @Test func `with a tolerance is late rather than early`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let trace = Trace()
            let start = WallTime.now
            let tolerant = Timer(fire: start + .milliseconds(20), interval: .zero, repeats: false) { _ in
                #expect(WallTime.now - start >= .milliseconds(20))
                trace.add("tolerant")
            }
            tolerant.tolerance = .milliseconds(200)
            let exact = Timer(fire: start + .milliseconds(40), interval: .zero, repeats: false) { _ in trace.add("exact") }
            loop.add(tolerant, forMode: .default)
            loop.add(exact, forMode: .default)
            loop.run(until: start + .seconds(1000))
            #expect(trace.events == ["tolerant", "exact"])
        }
    }

    @Test func `is in one loop at most, once a mode`() async throws {
        let timer = Timer(timeInterval: .seconds(100), repeats: true) { _ in }
        try await onThread {
            RunLoop.current.add(timer, forMode: .default)
            RunLoop.current.add(timer, forMode: .default)
            RunLoop.current.add(timer, forMode: "second")
            #expect(RunLoop.current.contains(timer, in: "second"))
            let loop = RunLoop.current
            let other = try Thread.joinable {
                RunLoop.current.add(timer, forMode: .default)
                return RunLoop.current.contains(timer, in: .default)
            }
            #expect(other.join() == false)
            loop.remove(timer, forMode: .default)
            #expect(!loop.contains(timer, in: .default))
            #expect(timer.isValid)
            timer.invalidate()
            timer.invalidate()
            #expect(!loop.contains(timer, in: "second"))
            loop.add(timer, forMode: .default)
            #expect(!loop.contains(timer, in: .default))
        }
    }

    @Test func `is invalidated from any thread`() async throws {
        let token = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: token)
        let count = Count()
        let timer = Timer(timeInterval: .microseconds(200), repeats: true) { _ in count.next() }
        loop.add(timer, forMode: .default)
        while count.value < 3 { await Task.yield() }
        timer.invalidate()
        try await loop.run {}
        let last = count.value
        try await loop.run {}
        #expect(count.value == last)
        token.requestStop()
    }

    @Test(.manualTime, arguments: 1...200)
    func `is due when as much time has passed as its interval, not a nanosecond before or after`(milliseconds: Int) {
        let interval = Duration.milliseconds(milliseconds) + .nanoseconds(milliseconds)
        let count = Count()
        ManualTime.advance(by: .nanoseconds(milliseconds * 12_345))  // an odd time to begin at
        let timer = Timer.scheduledTimer(withTimeInterval: interval, repeats: true) { _ in count.next() }
        for firing in 1...3 {
            ManualTime.advance(by: interval - .nanoseconds(1))
            RunLoop.current.pump()
            #expect(count.value == firing - 1)
            ManualTime.advance(by: .nanoseconds(1))
            #expect(timer.fireDate == .now)
            RunLoop.current.pump()
            #expect(count.value == firing)
        }
        timer.invalidate()
    }

    @Test func `does not fire inside its own closure`() async throws {
        try await onThread {
            let count = Count()
            let timer = Timer(fire: .now, interval: .microseconds(100), repeats: true) { timer in
                if count.next() == 1 {
                    _ = RunLoop.current.run(mode: .default, before: .now + .milliseconds(5))
                    #expect(count.value == 1)
                    timer.invalidate()
                }
            }
            RunLoop.current.add(timer, forMode: .default)
            RunLoop.current.run()
            #expect(count.value == 1)
        }
    }

    @Test func `is scheduled on the calling thread, with a closure that stays there`() async throws {
        try await onThread {
            var local = 0  // not shared with any other thread
            Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
                local += 1
                if local % 10 == 3 { timer.invalidate() }
            }
            Timer.scheduledTimer(timeInterval: .milliseconds(1), invocation: { local += 10 }, repeats: false)
            RunLoop.current.run()
            #expect(local == 13)
        }
    }

    @Test(arguments: [false, true]) func `frees a closure that stays on its thread there, whoever ends it`(isObserver: Bool) async throws {
        try await onThread {
            let (thread, freed) = (Thread.current, Trace())
            func schedule() -> @Sendable () -> Void {
                let witness = Witness { freed.add("\(Thread.current === thread)") }
                if isObserver {
                    let observer = RunLoop.current.observe(.exit) { _, _ in witness.touch() }
                    return { observer.invalidate() }
                }
                let timer = Timer.scheduledTimer(withTimeInterval: .seconds(100), repeats: true) { _ in witness.touch() }
                return { timer.invalidate() }
            }
            func endElsewhere() {
                let other = Thread(block: schedule())
                other.start()
                other.join()
            }
            endElsewhere()
            _ = RunLoop.current.run(in: .default, for: .zero)
            #expect(freed.events == ["true"])
        }
    }

    @Test func `calls a target's method, and keeps the target until it is invalid`() async throws {
        let trace = Trace()
        try await onThread {
            func schedule() -> [Timer] {
                let owner = Owner(trace)
                let first = Timer(timeInterval: .milliseconds(1), target: owner, selector: Owner.fired, userInfo: "text", repeats: false)
                RunLoop.current.add(first, forMode: .default)
                let second = Timer.scheduledTimer(timeInterval: .milliseconds(1), target: owner, selector: Owner.plain, repeats: false)
                return [first, second]
            }
            let timers = schedule()
            #expect(trace.events.isEmpty)
            RunLoop.current.run()
            #expect(trace.events == ["fired text", "plain", "freed"])
            withExtendedLifetime(timers) {}
        }
    }

    @Test func `that nobody adds is freed with its closure`() {
        let freed = Count()
        func make() {
            let witness = Witness { freed.next() }
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in witness.touch() }
            timer.fire()
        }
        make()
        #expect(freed.value == 1)
    }

    @Test func `that a thread leaves in its loop is freed with the thread`() async throws {
        let freed = Count()
        try await onThread {
            let witness = Witness { freed.next() }
            Timer.scheduledTimer(withTimeInterval: .seconds(1000), repeats: true) { _ in witness.touch() }
        }
        while freed.value == 0 { await Task.yield() }
    }

    @Test func `that was scheduled for an owner ends with the owner`() async throws {
        let token = RunLoop.StopToken()
        let loop = try Thread.runningLoop(until: token)
        let count = Count()
        func schedule() async -> Timer {
            let registration = loop.schedule(every: .microseconds(100), tolerance: .zero) { _ in count.next() }
            while count.value == 0 { await Task.yield() }
            return registration.timer
        }
        #expect(!(await schedule()).isValid)
        loop.schedule(every: .seconds(100)) { _ in }.cancel()
        token.requestStop()
    }

    @Test(.manualTime) func `collapses the periods that were missed into one firing, and keeps its phase`() {
        let dates = Trace()
        let start = WallTime.now
        let timer = Timer(fire: start + .milliseconds(10), interval: .milliseconds(10), repeats: true) { timer in
            dates.add("\((timer.fireDate - start).inNanoseconds / 1_000_000)")
            if dates.events.count == 1 { ManualTime.advance(by: .milliseconds(35)) }
        }
        RunLoop.current.add(timer, forMode: .default)
        ManualTime.advance(by: .milliseconds(10))
        RunLoop.current.pump()
        #expect(dates.text == "10")
        ManualTime.advance(by: .milliseconds(5))
        RunLoop.current.pump()
        #expect(dates.text == "10 50")
        #expect(timer.fireDate - start == .milliseconds(60))
        timer.invalidate()
    }
}

extension Duration {
    var inMilliseconds: Double { Double(components.seconds) * 1000 + Double(components.attoseconds) * 1e-15 }
}
