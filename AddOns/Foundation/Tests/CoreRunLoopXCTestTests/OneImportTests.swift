// SPDX-License-Identifier: Apache-2.0
//
// A suite of XCTest's with one import, in which Foundation's names mean this package's. Its waits are in Foundation's loop. Rules: 807

import CoreRunLoopXCTest

final class OneImportTests: XCTestCase {
    func testNamesAreThisPackages() {
        XCTAssertTrue(RunLoop.current === NSRunLoop.current)
        XCTAssertTrue(Timer.self == NSTimer.self && Thread.self == NSThread.self && Port.self == NSPort.self)
        let quality: QualityOfService = Thread.current.qualityOfService
        XCTAssertEqual(quality, Operation().qualityOfService)
    }

    @MainActor func testTimerFiresWhileXCTestWaits() {
        let fired = expectation(description: "fired")
        Timer.scheduledTimer(withTimeInterval: 0.01, repeats: false) { _ in fired.fulfill() }
        waitForExpectations(timeout: 60)
    }

    func testMessageComesWhileXCTestWaits() throws {
        let local = try XCTUnwrap(SocketPort(tcpPort: 0))
        let remote = try XCTUnwrap(SocketPort(remoteWithTCPPort: try XCTUnwrap(local.tcpPort), host: "localhost"))
        let received = expectation(description: "received")
        let inbox = Inbox(received)
        local.setDelegate(inbox)
        XCTAssertTrue(local.delegate() === inbox)
        local.schedule(in: .current, forMode: .default)
        XCTAssertTrue(remote.send(before: Date(timeIntervalSinceNow: 60), components: [Data([1])], from: nil, reserved: 0))
        wait(for: [received], timeout: 60)
        local.invalidate()
    }

    func testProcessEndsInThisPackagesLoop() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/true")
        try process.run()
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 0)
    }

    @MainActor func testFileHandleNotifiesWhileXCTestWaits() {
        let pipe = Pipe()
        let handle = pipe.fileHandleForReading
        expectation(forNotification: FileHandle.readCompletionNotification, object: handle)
        handle.readInBackgroundAndNotify()
        pipe.fileHandleForWriting.write(Data([1]))
        waitForExpectations(timeout: 60)
    }

    @MainActor func testQueuedNotificationIsPostedWhileXCTestWaits() {
        let name = Notification.Name("queued")
        expectation(forNotification: name, object: nil)
        NotificationQueue.default.enqueue(Notification(name: name), postingStyle: .asap)
        waitForExpectations(timeout: 60)
    }
}

private final class Inbox: PortDelegate {
    let received: XCTestExpectation
    init(_ received: XCTestExpectation) { self.received = received }
    func handle(_ message: PortMessage) { received.fulfill() }
}
