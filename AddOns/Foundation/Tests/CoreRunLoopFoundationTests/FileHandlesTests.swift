// SPDX-License-Identifier: Apache-2.0
//
// What file handles do in the background, in runs of this package's loops alone.

import CoreRunLoopFoundation
import Testing

private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await Thread.joinable(name: "test", body).value
}

/// The notifications of one handle, of one thread, while it lives.
private final class Posted: @unchecked Sendable {
    private(set) var notifications: [Notification] = []
    private var observer: (any NSObjectProtocol)?

    init(_ name: Notification.Name, of handle: FileHandle, also then: @escaping @Sendable (Posted) -> Void = { _ in }) {
        observer = NotificationCenter.default.addObserver(forName: name, object: handle, queue: nil) { [unowned self] notification in
            notifications.append(notification)
            then(self)
        }
    }
    deinit { observer.map { NotificationCenter.default.removeObserver($0) } }

    /// Runs the calling thread's loop until there are so many, or nothing is left to wait for.
    func wait(for count: Int = 1, in mode: RunLoop.Mode = .default) -> [[String: Any]] {
        while notifications.count < count && RunLoop.current.run(mode: mode, before: Date.distantFuture) {}
        return notifications.map { $0.userInfo as? [String: Any] ?? [:] }
    }

    /// The same, and what the last of so many says.
    func last(of count: Int = 1) throws -> [String: Any] { try #require(wait(for: count).last) }
}

@Suite(.timeLimit(.minutes(10))) struct `File handles in the background` {
    @Test func `wait for data, once each time that they are asked`() async throws {
        try await onThread {
            let pipe = Pipe()
            let reading = pipe.fileHandleForReading
            let posted = Posted(.NSFileHandleDataAvailable, of: reading) { posted in
                _ = reading.availableData
                if posted.notifications.count < 3 { reading.waitForDataInBackgroundAndNotify() }
            }
            reading.waitForDataInBackgroundAndNotify()
            #expect(posted.notifications.isEmpty)
            let timer = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { _ in pipe.fileHandleForWriting.write(Data([1])) }
            #expect(posted.wait(for: 3).count == 3)
            timer.invalidate()
            #expect(!RunLoop.current.run(mode: .default, before: Date.distantFuture))
        }
    }

    @Test func `read what is there, and nothing at the end`() async throws {
        try await onThread {
            let pipe = Pipe()
            let reading = pipe.fileHandleForReading
            let posted = Posted(FileHandle.readCompletionNotification, of: reading)
            pipe.fileHandleForWriting.write(Data([1, 2]))
            reading.readInBackgroundAndNotify()
            try #expect(posted.last()[NSFileHandleNotificationDataItem] as? Data == Data([1, 2]))
            try pipe.fileHandleForWriting.close()
            reading.readInBackgroundAndNotify()
            try #expect(posted.last(of: 2)[NSFileHandleNotificationDataItem] as? Data == Data())
        }
    }

    @Test func `read a file and a pipe to their ends`() async throws {
        try await onThread {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent("crl.tests.\(UUID())")
            defer { try? FileManager.default.removeItem(at: path) }
            let content = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
            try content.write(to: path)
            let file = try FileHandle(forReadingFrom: path)
            let ofFile = Posted(.NSFileHandleReadToEndOfFileCompletion, of: file)
            file.readToEndOfFileInBackgroundAndNotify()
            try #expect(ofFile.last()[NSFileHandleNotificationDataItem] as? Data == content)

            let pipe = Pipe()
            let ofPipe = Posted(.NSFileHandleReadToEndOfFileCompletion, of: pipe.fileHandleForReading)
            pipe.fileHandleForReading.readToEndOfFileInBackgroundAndNotify()
            Thread.detachNewThread {
                pipe.fileHandleForWriting.write(content)
                try? pipe.fileHandleForWriting.close()
            }
            try #expect(ofPipe.last()[NSFileHandleNotificationDataItem] as? Data == content)
        }
    }

    @Test func `accept connections`() async throws {
        try await onThread {
            let stream = Int32(SOCK_STREAM.rawValue)
            let listener = FileHandle(fileDescriptor: socket(AF_INET, stream, 0), closeOnDealloc: true)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let client = FileHandle(fileDescriptor: socket(AF_INET, stream, 0), closeOnDealloc: true)
            let results = withUnsafeMutableBytes(of: &address) { bytes in
                let address = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
                return [
                    bind(listener.fileDescriptor, address, length), listen(listener.fileDescriptor, 1),
                    getsockname(listener.fileDescriptor, address, &length), connect(client.fileDescriptor, address, length),
                ]
            }
            #expect(results == [0, 0, 0, 0])
            let posted = Posted(.NSFileHandleConnectionAccepted, of: listener)
            listener.acceptConnectionInBackgroundAndNotify()
            let accepted = try #require(posted.last()[NSFileHandleNotificationFileHandleItem] as? FileHandle)
            client.write(Data([7]))
            #expect(accepted.readData(ofLength: 1) == Data([7]))
        }
    }

    @Test func `work in the modes that they are given, Foundation's names of them included`() async throws {
        try await onThread {
            let pipe = Pipe()
            let reading = pipe.fileHandleForReading
            pipe.fileHandleForWriting.write(Data([1]))
            let posted = Posted(.NSFileHandleDataAvailable, of: reading)
            reading.waitForDataInBackgroundAndNotify(forModes: ["other", "another"])
            #expect(posted.wait().isEmpty)
            #expect(posted.wait(in: "another").count == 1)
            #expect(!RunLoop.current.run(mode: "other", before: Date.distantFuture))
            let theirs = [Foundation::RunLoop.Mode(rawValue: "other")]
            reading.waitForDataInBackgroundAndNotify(forModes: theirs)
            #expect(posted.wait(for: 2, in: "other").count == 2)
            reading.waitForDataInBackgroundAndNotify(forModes: nil)
            #expect(posted.wait(for: 3).count == 3)
            reading.waitForDataInBackgroundAndNotify(forModes: [.common])
            #expect(posted.wait(for: 4).count == 4)
        }
    }

    @Test func `tell what cannot be read`() async throws {
        try await onThread {
            let folder = FileHandle(fileDescriptor: open("/", O_RDONLY), closeOnDealloc: true)
            let posted = Posted(FileHandle.readCompletionNotification, of: folder)
            folder.readInBackgroundAndNotify()
            let told = try posted.last()
            #expect(told["NSFileHandleError"] as? NSNumber == NSNumber(value: EISDIR))
            #expect(told[NSFileHandleNotificationDataItem] as? Data == Data())

            let ended = Posted(.NSFileHandleReadToEndOfFileCompletion, of: folder)
            folder.readToEndOfFileInBackgroundAndNotify()
            try #expect(ended.last()["NSFileHandleError"] as? NSNumber == NSNumber(value: EISDIR))

            let none = FileHandle(fileDescriptor: 1_000_000)
            let waited = Posted(.NSFileHandleDataAvailable, of: none)
            none.waitForDataInBackgroundAndNotify()
            try #expect(waited.last()["NSFileHandleError"] as? NSNumber == NSNumber(value: EBADF))
        }
    }
}
