// SPDX-License-Identifier: Apache-2.0
//
// What is printed.

import CoreRunLoop
import Testing

@Suite struct `Printing` {
    @Test func `shows a text as itself, and other objects as they say of themselves`() async throws {
        #expect("\("a mode".cfString), \(CFRunLoopMode.defaultMode.rawValue)" == "a mode, kCFRunLoopDefaultMode")
        #expect("\([1, 2].cfData)".hasPrefix("<CFData "))
        // Of a loop that no other test changes meanwhile, the line of the loop itself: other lines may have distances from now.
        let (shown, said) = try await onThread { ("\(RunLoop.current)", RunLoop.current.getCFRunLoop().debugDescription) }
        #expect(shown.hasPrefix("<CFRunLoop ") && shown.split(separator: "\n").first == said.split(separator: "\n").first)
        let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
        #expect("\(timer)".hasPrefix("<CFRunLoopTimer "))
        timer.invalidate()
    }

    @Test func `dumps a loop with its modes and what is in them`() async throws {
        let mode = RunLoop.Mode("dumped")
        let lines = try await onThread {
            let timer = Timer(timeInterval: .seconds(100_000), repeats: true) { _ in }
            timer.tolerance = .seconds(5)
            RunLoop.current.add(timer, forMode: mode)
            defer { timer.invalidate() }
            return RunLoop.current.dump().split(separator: "\n").map(String.init)
        }
        #expect(lines.first?.contains("thread = secondary (this one), current mode = (none), waiting = No") == true)
        let place = try #require(lines.firstIndex(of: "    mode dumped:"))
        #expect(lines[place + 1].hasPrefix("        <CFRunLoopTimer ") && lines[place + 1].contains("(in 9999"))
        #expect(lines[place + 1].contains("interval = 100000, tolerance = 5, ") && lines.last == "}")
    }

    @Test func `dumps a loop of another thread, in the debugger as well`() {
        #expect(RunLoop.main.dump().contains("{thread = main"))
        #expect(RunLoop.main.debugDescription.contains("\n    mode kCFRunLoopDefaultMode, common:"))
    }

    @Test func `is asked of objects by the C functions' names`() throws {
        let object = [1, 2].cfData
        let description = try #require(CFCopyDescription(object))
        #expect(String(description) == "\(object)" && CFCopyDescription(nil as CFData?) == nil)
        // By C's own functions, which no optimization leaves out.
        let address = unsafe unsafeBitCast(object, to: CFTypeRef.self)
        let before = CFGetRetainCount(object)
        for _ in 0..<3 { _ = unsafe CFRetain(address) }
        let after = CFGetRetainCount(object)
        for _ in 0..<3 { unsafe CFRelease(address) }
        #expect(before >= 1 && after == before + 3 && CFGetRetainCount(nil as CFData?) == 0)
        withExtendedLifetime(object) {}
    }

    @Test func `shows results and activities by their names`() {
        #expect(
            ([.finished, .stopped, .timedOut, .handledSource] as [RunLoop.RunResult]).map(\.debugDescription)
                == ["finished", "stopped", "timedOut", "handledSource"])
        #expect("\(RunLoop.Activity.beforeWaiting)" == "beforeWaiting")
        #expect("\([.exit, .entry] as RunLoop.Activity)" == "[entry, exit]")
        #expect("\([] as RunLoop.Activity)" == "[]")
        #expect("\(RunLoop.Activity.allActivities)" == "allActivities")
        #expect("\(CFSocketError.success), \(CFSocketError.error), \(CFSocketError.timeout)" == "success, error, timeout")
        #expect("\(CFSocketCallBackType.dataCallBack)" == "dataCallBack")
        #expect("\([.readCallBack, .connectCallBack] as CFSocketCallBackType)" == "[readCallBack, connectCallBack]")
        #expect("\([] as CFSocketCallBackType)" == "[]")
    }

    @Test func `shows a thread's number and name`() async throws {
        final class Own: Thread, @unchecked Sendable { override var description: String { "own" } }
        #expect("\(Own())" == "own")
        #expect("\(Thread {})".hasSuffix("{number = 0, name = (null)}"))
        let shown = try await Thread.joinable(name: "shown") { "\(Thread.current)" }.value
        #expect(shown.hasPrefix("<Thread: 0x"))
        #expect(shown.hasSuffix(", name = shown}"))
        #expect(!shown.contains("number = 0,"))
    }
}
