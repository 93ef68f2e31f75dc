// SPDX-License-Identifier: Apache-2.0
//
// The background work of a FileHandle, by this package's loops: a source on its descriptor that ends with its notification. These
// declarations hide Foundation's where the file does not import Foundation by itself. Foundation's notifications come in Foundation's loop
// of the main thread. Declarations that take modes are there twice, because Foundation's would still be found by its own type of modes.

public import CoreRunLoop
public import Foundation

/// The bytes read so far. Only the loop's thread uses it.
private final class Collected: @unchecked Sendable { var data = Data() }

/// The result of a call that must not block: `nil` when it would have blocked.
private func unlessBlocked(_ call: () -> Int) -> Result<Int, POSIXError>? {
    while true {
        let result = call()
        if result >= 0 { return .success(result) }
        switch errno {
        case EINTR: continue
        case EAGAIN, EWOULDBLOCK, ECONNABORTED: return nil
        default: return .failure(POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO))
        }
    }
}

/// Reads the bytes that are ready; no bytes at the end.
private func readNow(_ descriptor: Int32) -> Result<Data, POSIXError>? {
    let room = 65536
    var result: Result<Int, POSIXError>?
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
        result = unlessBlocked { unsafe Foundation::read(descriptor, buffer.baseAddress, room) }
        if case .success(let length) = result { count = length }
    }
    return result?.map { _ in Data(bytes) }
}

private func described(_ error: POSIXError) -> [String: Any] { ["NSFileHandleError": NSNumber(value: error.code.rawValue)] }

extension [Foundation::RunLoop.Mode] {
    fileprivate var ours: [CoreRunLoop::RunLoop.Mode] { map { CoreRunLoop::RunLoop.Mode($0.rawValue) } }
}

extension FileHandle {
    /// Posts a notification once, in the calling thread's loop, when the descriptor is readable and `answer` has something to report of it.
    private func post(
        _ name: Notification.Name, inModes modes: [CoreRunLoop::RunLoop.Mode]?, _ answer: @escaping @Sendable (Int32) -> [String: Any]?
    ) {
        let (loop, modes) = (CoreRunLoop::RunLoop.current, modes ?? [.default])
        do {
            let source = try DescriptorSource(descriptor: fileDescriptor) { event in
                guard let info = answer(event.descriptor) else { return }
                event.invalidate()
                NotificationCenter.default.post(name: name, object: self, userInfo: info)
            }
            for mode in modes { loop.add(source, forMode: mode) }
        } catch {
            // By a source as well, so that its notification ends a run as the others' does.
            let source = InputSource<@Sendable () -> Void> { for act in $0 { act() } }
            source.enqueue {
                source.invalidate()
                NotificationCenter.default.post(name: name, object: self, userInfo: described(POSIXError(.EBADF)))
            }
            for mode in modes { loop.add(source, forMode: mode) }
            source.signal()
        }
    }

    /// Posts `NSFileHandleDataAvailable` once, when there is something to read, or its end.
    ///
    /// This function and its siblings here work in the loop of the calling thread, in `modes`; `nil` is the default mode. The modes are
    /// kept from being empty until the notification. The loop keeps the handle. Close it only after its notification. A failed read is
    /// reported by the key `NSFileHandleError`.
    public func waitForDataInBackgroundAndNotify(forModes modes: [CoreRunLoop::RunLoop.Mode]?) {
        post(.NSFileHandleDataAvailable, inModes: modes) { _ in [:] }
    }

    /// Posts `readCompletionNotification` once, with the bytes read as `NSFileHandleNotificationDataItem`: no bytes at the end.
    public func readInBackgroundAndNotify(forModes modes: [CoreRunLoop::RunLoop.Mode]?) {
        post(FileHandle.readCompletionNotification, inModes: modes) { descriptor in
            switch readNow(descriptor) {
            case .success(let data): [NSFileHandleNotificationDataItem: data]
            case .failure(let error): described(error).merging([NSFileHandleNotificationDataItem: Data()]) { first, _ in first }
            case nil: nil
            }
        }
    }

    /// Posts `NSFileHandleReadToEndOfFileCompletion` once, at the end, with all that came until then as `NSFileHandleNotificationDataItem`.
    public func readToEndOfFileInBackgroundAndNotify(forModes modes: [CoreRunLoop::RunLoop.Mode]?) {
        let collected = Collected()
        post(.NSFileHandleReadToEndOfFileCompletion, inModes: modes) { descriptor in
            switch readNow(descriptor) {
            case .success(let data) where data.isEmpty: return [NSFileHandleNotificationDataItem: collected.data]
            case .success(let data): collected.data += data
            case .failure(let error): return described(error)
            case nil: break
            }
            return nil
        }
    }

    /// Posts `NSFileHandleConnectionAccepted` once, with a handle of the accepted connection as `NSFileHandleNotificationFileHandleItem`.
    public func acceptConnectionInBackgroundAndNotify(forModes modes: [CoreRunLoop::RunLoop.Mode]?) {
        post(.NSFileHandleConnectionAccepted, inModes: modes) { descriptor in
            switch unlessBlocked({ Int(accept(descriptor, nil, nil)) }) {
            case .success(let connection):
                // A moment late for a program that another thread executes just then: Swift does not see accept4.
                _ = fcntl(Int32(connection), F_SETFD, FD_CLOEXEC)
                return [NSFileHandleNotificationFileHandleItem: FileHandle(fileDescriptor: Int32(connection), closeOnDealloc: true)]
            case .failure(let error): return described(error)
            case nil: return nil
            }
        }
    }

    /// Like the method with modes, in the default mode.
    public func waitForDataInBackgroundAndNotify() { waitForDataInBackgroundAndNotify(forModes: [.default]) }
    /// Like the method with modes, in the default mode.
    public func readInBackgroundAndNotify() { readInBackgroundAndNotify(forModes: [.default]) }
    /// Like the method with modes, in the default mode.
    public func readToEndOfFileInBackgroundAndNotify() { readToEndOfFileInBackgroundAndNotify(forModes: [.default]) }
    /// Like the method with modes, in the default mode.
    public func acceptConnectionInBackgroundAndNotify() { acceptConnectionInBackgroundAndNotify(forModes: [.default]) }

    /// Like the method with modes, with Foundation's names of modes.
    @_disfavoredOverload
    public func waitForDataInBackgroundAndNotify(forModes modes: [Foundation::RunLoop.Mode]?) {
        waitForDataInBackgroundAndNotify(forModes: modes?.ours)
    }

    /// Like the method with modes, with Foundation's names of modes.
    @_disfavoredOverload
    public func readInBackgroundAndNotify(forModes modes: [Foundation::RunLoop.Mode]?) {
        readInBackgroundAndNotify(forModes: modes?.ours)
    }

    /// Like the method with modes, with Foundation's names of modes.
    @_disfavoredOverload
    public func readToEndOfFileInBackgroundAndNotify(forModes modes: [Foundation::RunLoop.Mode]?) {
        readToEndOfFileInBackgroundAndNotify(forModes: modes?.ours)
    }

    /// Like the method with modes, with Foundation's names of modes.
    @_disfavoredOverload
    public func acceptConnectionInBackgroundAndNotify(forModes modes: [Foundation::RunLoop.Mode]?) {
        acceptConnectionInBackgroundAndNotify(forModes: modes?.ours)
    }
}
