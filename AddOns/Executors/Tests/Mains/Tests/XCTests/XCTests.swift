// SPDX-License-Identifier: Apache-2.0

import Checks
import CoreRunLoop
import CoreRunLoopMain
import XCTest

/// XCTest keeps the first thread, in Foundation's loop, which serves the main actor as before.
final class XCTests: XCTestCase {
    @MainActor func testMainActorIsOnTheFirstThread() async throws {
        XCTAssertTrue(isOnFirstThread())
        try await Task.sleep(for: .milliseconds(1))
        XCTAssertTrue(isOnFirstThread())
    }

    @MainActor func testExpectationsAreServed() {
        let served = expectation(description: "the main queue")
        Task { @MainActor in served.fulfill() }
        wait(for: [served], timeout: 100)
    }
}
