// SPDX-License-Identifier: Apache-2.0
//
// What happens to one file, for tasks. Each iterator has a source of its own; what the loop tells waits as one set of flags.

import CCoreRunLoop
public import CoreRunLoop
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// What happens to one file or folder, wherever it is moved.
///
/// ```swift
/// for try await change in FileChanges(of: "settings.json", telling: [.written, .deleted], on: loop) {
///     print(change.contains(.deleted) ? "is gone" : "has changed")
/// }
/// ```
///
/// Watching begins with the iteration, and ends when its iterator is gone or its task is cancelled. The sequence ends after
/// ``Flags/deleted`` or ``Flags/revoked``. A task that does not keep up gets as one element what it missed. The loop has to run in its
/// common modes.
///
/// The corresponding C function is `CRLFileSourceCreateWithPath`, which says what may not be watched.
public struct FileChanges: AsyncSequence, Sendable {
    /// What happened; several changes may be told as one.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// The bits of `CRLFileEvents`.
        public let rawValue: UInt
        /// Creates a set from the bits of `CRLFileEvents`.
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Its last name is gone. Nothing more is told.
        public static let deleted = Flags(rawValue: 0x1)
        /// Bytes were written, or it was cut. A folder: what is in it came, went, or has another name.
        public static let written = Flags(rawValue: 0x2)
        /// It became longer. A folder: something was moved in or out, or renamed.
        public static let extended = Flags(rawValue: 0x4)
        /// Its owner, rights, times or extended attributes changed.
        public static let attributes = Flags(rawValue: 0x8)
        /// The number of its names changed. A folder: of the folders in it.
        public static let linked = Flags(rawValue: 0x10)
        /// It has another name, or is in another folder.
        public static let renamed = Flags(rawValue: 0x20)
        /// Its file system was unmounted. Nothing more is told.
        public static let revoked = Flags(rawValue: 0x40)
        /// All of them.
        public static let all = Flags(rawValue: 0x7f)

        static let last: Flags = [.deleted, .revoked]
    }

    /// The file cannot be watched.
    public struct Refused: Error, Hashable, Sendable {
        /// Why, as an `errno` of `CRLFileSourceCreateWithPath`: `ENOENT` when there is no such file.
        public let code: Int32
    }

    let path: String
    let flags: Flags
    let loop: RunLoop

    /// - Parameters:
    ///   - path: A file or folder, which has to be there. Links are followed.
    ///   - flags: What is told; ``Flags/deleted`` and ``Flags/revoked`` always are.
    ///   - loop: The loop that serves it.
    public init(of path: String, telling flags: Flags = .all, on loop: RunLoop) {
        self.path = path
        self.flags = flags.union(.last)
        self.loop = loop
    }

    /// Begins to watch.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Tells changes in turn.
    public struct Iterator: AsyncIteratorProtocol {
        private let source: Result<FileChangeSource, Refused>
        private var wakings: AsyncStream<Void>.Iterator?
        private var isOver = false

        init(_ changes: FileChanges) {
            source = Result { () throws(Refused) in try FileChangeSource(changes) }
            wakings = (try? source.get())?.untold.wakings.makeAsyncIterator()
        }

        /// Returns what has happened since; `nil` after the file's end, and when the task is cancelled.
        ///
        /// - Throws: ``Refused`` when watching could not begin.
        public mutating func next() async throws -> Flags? {
            let untold = try source.get().untold
            while !isOver {
                let flags = untold.take()
                isOver = !flags.isDisjoint(with: .last)
                if !flags.isEmpty { return flags }
                if await wakings?.next() == nil { return nil }
            }
            return nil
        }
    }
}

@available(*, unavailable)
extension FileChanges.Iterator: Sendable {}

/// The source of one iterator, which ends with it. Any thread may let go of it.
final class FileChangeSource: Sendable {
    let untold = UntoldFileChanges()
    private let source: CFRunLoopSource

    init(_ changes: FileChanges) throws(FileChanges.Refused) {
        var context = unsafe CRLSourceContext()
        unsafe context.info = Unmanaged.passUnretained(untold).toOpaque()
        unsafe context.retain = { info in
            if let info = unsafe info { unsafe _ = Unmanaged<UntoldFileChanges>.fromOpaque(info).retain() }
            return unsafe info
        }
        unsafe context.release = { info in if let info = unsafe info { unsafe Unmanaged<UntoldFileChanges>.fromOpaque(info).release() } }
        let made: CFRunLoopSource? = unsafe CRLFileSourceCreateWithPath(
            nil, changes.path, CFOptionFlags(changes.flags.rawValue), 0,
            { _, flags, info in
                guard let info = unsafe info else { return }
                unsafe Unmanaged<UntoldFileChanges>.fromOpaque(info).takeUnretainedValue().add(FileChanges.Flags(rawValue: UInt(flags)))
            }, &context)
        guard let made else { throw FileChanges.Refused(code: errno) }
        source = made
        CFRunLoopAddSource(changes.loop.getCFRunLoop(), made, kCFRunLoopCommonModes)
    }

    deinit { CFRunLoopSourceInvalidate(source) }
}

/// What was told and not taken yet.
final class UntoldFileChanges: Sendable {
    let wakings: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let flags = Mutex<FileChanges.Flags>([])

    init() { (wakings, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func add(_ told: FileChanges.Flags) {
        flags.withLock { $0.formUnion(told) }
        waker.yield()
    }

    func take() -> FileChanges.Flags {
        flags.withLock { flags in
            defer { flags = [] }
            return flags
        }
    }
}
