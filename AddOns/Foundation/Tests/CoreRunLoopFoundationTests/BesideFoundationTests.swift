// SPDX-License-Identifier: Apache-2.0
//
// Code that imports Foundation beside this package, as what imports XCTest does.

import CoreRunLoopFoundation
import Foundation
import Testing

private typealias RunLoop = NSRunLoop
private typealias Thread = NSThread
private typealias Timer = NSTimer

@Suite(.timeLimit(.minutes(10))) struct `Beside Foundation` {
    @Test func `a method of this package's is meant where a file of the module says so`() async throws {
        try await Thread.joinable(name: "test") {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/bin/cat")
            let input = Pipe()
            process.standardInput = input
            process.standardOutput = FileHandle.nullDevice
            try process.run()
            let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in try? input.fileHandleForWriting.close() }
            process.waitUntilExit()
            #expect(!timer.isValid && !process.isRunning)
        }
        .value
    }

    @Test func `a thread's quality is Foundation's`() {
        let thread = Thread {}
        let quality: QualityOfService = .utility
        thread.qualityOfService = quality
        #expect(thread.qualityOfService == quality)
    }
}
