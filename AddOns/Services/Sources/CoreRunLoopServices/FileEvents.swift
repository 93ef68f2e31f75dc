// SPDX-License-Identifier: Apache-2.0
//
// Events of files for tasks. Each iterator has an FSEventStream of its own; what the loop tells waits in the box `UntoldFileEvents`,
// which is bounded.

import CCoreRunLoop
public import CoreRunLoop
import Synchronization

/// What happens in whole trees of folders.
///
/// ```swift
/// for try await event in FileEvents(in: ["src"], on: loop) {
///     print(event.path, event.flags.contains(.removed) ? "is gone" : "has changed")
/// }
/// ```
///
/// Watching begins with the iteration, and ends when its iterator is gone or its task is cancelled. A task that does not keep up gets
/// one event with ``Flags/mustScan`` for each path in the place of what it missed. The loop has to run in its common modes.
///
/// The corresponding C type is `FSEventStreamRef`.
public struct FileEvents: AsyncSequence, Sendable {
    /// What happened at a path; several events may be told as one, so look what is there now.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// The bits of `FSEventStreamEventFlags`.
        public let rawValue: UInt32
        /// Creates a set from the bits of `FSEventStreamEventFlags`.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Something may have happened to anything in the folder.
        public static let mustScan = Flags(rawValue: 0x1)
        /// The given path is gone, came, or stands for another file.
        public static let rootChanged = Flags(rawValue: 0x20)
        /// A file system was mounted there.
        public static let mounted = Flags(rawValue: 0x40)
        /// The file system there was unmounted.
        public static let unmounted = Flags(rawValue: 0x80)
        /// It was created.
        public static let created = Flags(rawValue: 0x100)
        /// It was removed.
        public static let removed = Flags(rawValue: 0x200)
        /// Its owner, rights, times, extended attributes or link count changed.
        public static let attributes = Flags(rawValue: 0x400)
        /// It was moved from here, or to here.
        public static let renamed = Flags(rawValue: 0x800)
        /// Its bytes changed.
        public static let modified = Flags(rawValue: 0x1000)
        /// It is, or was, neither folder nor link.
        public static let isFile = Flags(rawValue: 0x10000)
        /// It is, or was, a folder.
        public static let isFolder = Flags(rawValue: 0x20000)
        /// It is, or was, a symbolic link.
        public static let isLink = Flags(rawValue: 0x40000)
    }

    /// What happened to one file or folder.
    public struct Event: Sendable, Hashable {
        /// Where; it begins as the path was given. What is no UTF-8 in it is replaced.
        public let path: String
        /// What.
        public let flags: Flags
        /// A number that grows; 0 with ``Flags/rootChanged``.
        public let id: UInt64
    }

    /// Why watching could not begin.
    public struct Refused: Error, Hashable, Sendable, CustomStringConvertible {
        /// What was wrong.
        public enum Reason: Hashable, Sendable {
            /// No path was given.
            case noPath
            /// This is no path: it is empty, or there is a zero in it.
            case invalid(path: String)
            /// The thread of the loop has ended.
            case loopEnded
            /// No inotify instance, descriptor or memory is left.
            case resources
        }
        /// What was wrong.
        public let reason: Reason
        /// What was to be watched.
        public let paths: [String]

        /// The paths, and what was wrong in words.
        public var description: String {
            let text =
                switch reason {
                case .noPath: "no path was given"
                case .invalid(let path): path.isEmpty ? "an empty path is none" : "a path with a zero in it is none"
                case .loopEnded: "the thread of the loop has ended"
                case .resources: "no inotify instance, descriptor or memory is left"
                }
            return "FileEvents in \(paths): \(text)"
        }

        init(_ events: FileEvents) {
            paths = events.paths
            if paths.isEmpty {
                reason = .noPath
            } else if let path = paths.first(where: { !FileEvents.isPath($0) }) {
                reason = .invalid(path: path)
            } else {
                reason = events.loop.hasEnded ? .loopEnded : .resources
            }
        }
    }

    static func isPath(_ path: String) -> Bool { !path.isEmpty && !path.utf8.contains(0) }

    let paths: [String]
    let latency: Duration
    let loop: RunLoop

    /// - Parameters:
    ///   - paths: Folders, or files, which need not be there yet.
    ///   - latency: How long events wait for others of the same path.
    ///   - loop: The loop that serves it.
    public init(in paths: [String], latency: Duration = .zero, on loop: RunLoop) {
        self.paths = paths
        self.latency = latency
        self.loop = loop
    }

    /// Begins to watch.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Tells events in turn.
    public struct Iterator: AsyncIteratorProtocol {
        private let events: FileEvents
        private let stream: FileEventStream?
        private var batch: ArraySlice<Event> = []
        private var wakings: AsyncStream<Void>.Iterator?

        init(_ events: FileEvents) {
            self.events = events
            stream = FileEventStream(events)
            wakings = stream?.untold.wakings.makeAsyncIterator()
        }

        /// Returns the next event; `nil` when the task is cancelled.
        ///
        /// - Throws: ``Refused`` when watching could not begin.
        public mutating func next() async throws -> Event? {
            guard let stream else { throw Refused(events) }
            while batch.isEmpty {
                batch = stream.untold.take()[...]
                if batch.isEmpty, await wakings?.next() == nil { return nil }
            }
            return batch.popFirst()
        }
    }
}

@available(*, unavailable)
extension FileEvents.Iterator: Sendable {}

/// The stream of one iterator, which ends with it. Any thread may let go of it.
@safe final class FileEventStream: Sendable {
    let untold: UntoldFileEvents
    private nonisolated(unsafe) let stream: FSEventStreamRef

    init?(_ events: FileEvents) {
        untold = UntoldFileEvents(events.paths)
        if !events.paths.allSatisfy(FileEvents.isPath) { return nil }
        let parts = events.latency.components
        let latency = CFTimeInterval(parts.seconds) + CFTimeInterval(parts.attoseconds) / 1e18
        guard let made = unsafe Self.make(untold, events.paths, latency) else { return nil }
        unsafe stream = made
        unsafe FSEventStreamScheduleWithRunLoop(made, events.loop.getCFRunLoop(), kCFRunLoopCommonModes)
        if unsafe !FSEventStreamStart(made) { return nil }
    }

    deinit {
        unsafe FSEventStreamStop(stream)
        unsafe FSEventStreamInvalidate(stream)
        unsafe FSEventStreamRelease(stream)
    }

    private static func make(_ untold: UntoldFileEvents, _ paths: [String], _ latency: CFTimeInterval) -> FSEventStreamRef? {
        let made = unsafe withUnsafePointer(to: kCFTypeArrayCallBacks) { unsafe CFArrayCreateMutable(nil, 0, $0) }
        guard let array = made else { return nil }
        for path in paths {
            guard let string = unsafe CFStringCreateWithCString(nil, path, CFStringEncoding(0x0800_0100)) else { return nil }
            unsafe CFArrayAppendValue(array, Unmanaged.passUnretained(string).toOpaque())
        }
        var context = unsafe FSEventStreamContext()
        unsafe context.info = Unmanaged.passRetained(untold).toOpaque()
        unsafe context.release = { info in if let info = unsafe info { unsafe Unmanaged<UntoldFileEvents>.fromOpaque(info).release() } }
        let stream = unsafe FSEventStreamCreate(
            nil,
            { _, info, count, paths, flags, ids in
                guard let info = unsafe info, let paths = unsafe paths, let flags = unsafe flags, let ids = unsafe ids else { return }
                let texts = unsafe paths.assumingMemoryBound(to: UnsafePointer<CChar>.self)
                unsafe Unmanaged<UntoldFileEvents>.fromOpaque(info).takeUnretainedValue().add(
                    (0..<count).map { place in
                        unsafe FileEvents.Event(
                            path: String(cString: texts[place]), flags: FileEvents.Flags(rawValue: flags[place]), id: ids[place])
                    })
            }, &context, array, FSEventStreamEventId.max, latency, FSEventStreamCreateFlags(0x14))
        if unsafe stream == nil { unsafe Unmanaged.passUnretained(untold).release() }
        return unsafe stream
    }
}

/// What was told and not taken yet.
final class UntoldFileEvents: Sendable {
    private static let most = 65_536

    let wakings: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let paths: [String]
    private let events = Mutex<[FileEvents.Event]>([])

    init(_ paths: [String]) {
        self.paths = paths
        (wakings, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func add(_ told: [FileEvents.Event]) {
        events.withLock { events in
            events += told
            if events.count > Self.most {
                let id = events[events.count - 1].id
                events = paths.map { FileEvents.Event(path: $0, flags: .mustScan, id: id) }
            }
        }
        waker.yield()
    }

    func take() -> [FileEvents.Event] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}
