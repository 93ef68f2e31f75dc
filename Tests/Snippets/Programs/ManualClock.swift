// SPDX-License-Identifier: Apache-2.0
// A test with clocks that it moves by hand.
import CoreRunLoop
import CoreRunLoopTesting
import Testing

nonisolated final class Session {
    private(set) var isOpen = true
    private var timeout: Timer?

    func touch() {
        timeout?.invalidate()
        timeout = Timer.scheduledTimer(withTimeInterval: .seconds(600), repeats: false) { _ in self.isOpen = false }
    }
}

nonisolated struct Sessions {
    @Test(.manualTime) func `a session ends ten minutes after its last use`() {
        let session = Session()
        session.touch()
        ManualTime.advance(by: .seconds(500))
        session.touch()
        ManualTime.advance(by: .seconds(500), pumping: .current, step: .seconds(1))
        #expect(session.isOpen)
        ManualTime.advance(by: .seconds(100))
        RunLoop.current.pump()
        #expect(!session.isOpen)
        print("open:", session.isOpen)
    }

    @Test(.manualTime) func `a lease ends after an hour`() async throws {
        async let lease: Void = Task.sleep(for: .seconds(3600), clock: RunLoop.ofTest.clock)
        await ManualTime.pass(.seconds(3600))
        try await lease
    }

    @Test(.manualTime) func `the time of day does not move a timer`() {
        let session = Session()
        session.touch()
        ManualTime.stepWallClock(by: .seconds(86400))
        RunLoop.current.pump()
        #expect(session.isOpen)
    }
}

// prints: open: false
