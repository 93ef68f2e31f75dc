// SPDX-License-Identifier: Apache-2.0
//
// The wait for a process's end, which runs this package's loop.

import CoreRunLoopFoundation
import Testing

private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await Thread.joinable(name: "test", body).value
}

/// What the callbacks of one thread find.
private final class Tally: @unchecked Sendable {
    var count = 0
    var data = Data()
}

/// A process that ends when its standard input does.
private func started(_ output: Pipe? = nil) throws -> (process: Process, input: FileHandle) {
    let process = Process()
    let input = Pipe()
    process.executableURL = URL(fileURLWithPath: "/bin/cat")
    process.standardInput = input
    process.standardOutput = output ?? FileHandle.nullDevice
    try process.run()
    return (process, input.fileHandleForWriting)
}

@Suite(.timeLimit(.minutes(10))) struct `A wait for a process` {
    @Test func `fires this loop's timers, one of which ends the process`() async throws {
        try await onThread {
            let (process, input) = try started()
            Timer.scheduledTimer(withTimeInterval: 0.01, repeats: false) { _ in try? input.close() }
            process.waitUntilExit()
            #expect(!process.isRunning)
            #expect(process.terminationStatus == 0)
        }
    }

    @Test func `posts what is read in the background meanwhile`() async throws {
        try await onThread {
            let output = Pipe()
            let (process, input) = try started(output)
            let reading = output.fileHandleForReading
            let read = Tally()
            let observer = NotificationCenter.default.addObserver(
                forName: FileHandle.readCompletionNotification, object: reading, queue: nil
            ) { notification in
                read.data += notification.userInfo?[NSFileHandleNotificationDataItem] as? Data ?? Data()
                try? input.close()
            }
            reading.readInBackgroundAndNotify()
            try input.write(contentsOf: Data([1, 2, 3]))
            process.waitUntilExit()
            NotificationCenter.default.removeObserver(observer)
            #expect(read.data == Data([1, 2, 3]))
        }
    }

    @Test func `is not ended by a stop of the loop, and leaves nothing in it`() async throws {
        try await onThread {
            let loop = RunLoop.current
            let (process, input) = try started()
            let stops = Tally()
            let timer = Timer(timeInterval: 0.001, repeats: true) { timer in
                stops.count += 1
                CFRunLoopStop(loop.getCFRunLoop())
                if stops.count == 5 {
                    timer.invalidate()
                    try? input.close()
                }
            }
            loop.add(timer, forMode: .default)
            process.waitUntilExit()
            #expect(stops.count == 5)
            #expect(!process.isRunning)
            #expect(!loop.run(mode: .default, before: Date.distantFuture))
        }
    }

    @Test func `returns at once for a process that has ended, or was never started`() async throws {
        try await onThread {
            let (process, input) = try started()
            try input.close()
            process.waitUntilExit()
            process.waitUntilExit()
            #expect(process.terminationReason == .exit)
            Process().waitUntilExit()
        }
    }
}
