// SPDX-License-Identifier: Apache-2.0

import Checks
import CoreRunLoop
import CoreRunLoopMain
import Testing

/// What Swift Testing's tests have of the main loop.
@Suite struct LoopTests {
    @Test @MainActor func mainActorStaysOnTheFirstThread() async throws {
        #expect(RunLoop.mainThreadRunsLoop)
        #expect(isOnFirstThread())
        try await Task.sleep(for: .milliseconds(1))
        #expect(isOnFirstThread())
    }

    @Test @MainActor func timersFireWhileTestsAwait() async {
        await withCheckedContinuation { done in
            RunLoop.main.add(Timer(timeInterval: .milliseconds(1), repeats: false) { _ in done.resume() }, forMode: .default)
        }
    }
}
