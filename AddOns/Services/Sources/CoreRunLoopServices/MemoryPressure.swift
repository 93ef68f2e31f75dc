// SPDX-License-Identifier: Apache-2.0
//
// Memory pressure for tasks. Each iterator has a source of its own; of what the loop tells, the latest waits.

import CCoreRunLoop
public import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// How scarce memory is, each time that it changes, and again every 5 seconds as long as it is scarce.
///
/// ```swift
/// for try await level in MemoryPressure(on: loop) where level > .normal {
///     print("\(level): drop the caches")
/// }
/// ```
///
/// Listening begins with the iteration, and ends when its iterator is gone or its task is cancelled. A task that does not keep up gets the
/// latest level. The loop has to run in its common modes.
///
/// The corresponding C function is `CRLMemoryPressureSourceCreate`, which says what is listened to.
public struct MemoryPressure: AsyncSequence, Sendable {
    /// How scarce memory is.
    public enum Level: UInt, Sendable, Comparable {
        /// There has been no sign of scarcity for 5 seconds.
        case normal = 1
        /// Tasks wait for memory: give back what can be made again.
        case warning = 2
        /// A limit was reached: give back all that can be, or the kernel will kill a process.
        case critical = 4

        public static func < (one: Level, other: Level) -> Bool { one.rawValue < other.rawValue }
    }

    /// Nothing can be listened to.
    public struct Refused: Error, Hashable, Sendable {
        /// Why, as an `errno` of `CRLMemoryPressureSourceCreate`: `EHOSTDOWN` where the environment asks for no source.
        public let code: Int32
    }

    let loop: RunLoop

    /// - Parameter loop: The loop that serves it.
    public init(on loop: RunLoop) { self.loop = loop }

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator { Iterator(loop) }

    /// Tells levels in turn.
    public struct Iterator: AsyncIteratorProtocol {
        private let source: Result<MemoryPressureSource, Refused>
        private var levels: AsyncStream<Level>.Iterator?

        init(_ loop: RunLoop) {
            source = Result { () throws(Refused) in try MemoryPressureSource(loop) }
            levels = (try? source.get())?.untold.levels.makeAsyncIterator()
        }

        /// Returns the next level; `nil` when the task is cancelled.
        ///
        /// - Throws: ``Refused`` when listening could not begin.
        public mutating func next() async throws -> Level? {
            _ = try source.get()
            return await levels?.next()
        }
    }
}

@available(*, unavailable)
extension MemoryPressure.Iterator: Sendable {}

/// The source of one iterator, which ends with it. Any thread may let go of it.
final class MemoryPressureSource: Sendable {
    let untold = UntoldLevels()
    private let source: CFRunLoopSource

    init(_ loop: RunLoop) throws(MemoryPressure.Refused) {
        var context = unsafe CRLSourceContext()
        unsafe context.info = Unmanaged.passUnretained(untold).toOpaque()
        unsafe context.retain = { info in
            if let info = unsafe info { unsafe _ = Unmanaged<UntoldLevels>.fromOpaque(info).retain() }
            return unsafe info
        }
        unsafe context.release = { info in if let info = unsafe info { unsafe Unmanaged<UntoldLevels>.fromOpaque(info).release() } }
        let made: CFRunLoopSource? = unsafe CRLMemoryPressureSourceCreate(
            nil, 0x7, 0,
            { _, level, info in
                guard let info = unsafe info, let level = MemoryPressure.Level(rawValue: UInt(level)) else { return }
                unsafe Unmanaged<UntoldLevels>.fromOpaque(info).takeUnretainedValue().waker.yield(level)
            }, &context)
        guard let made else { throw MemoryPressure.Refused(code: errno) }
        source = made
        CFRunLoopAddSource(loop.getCFRunLoop(), made, kCFRunLoopCommonModes)
    }

    deinit { CFRunLoopSourceInvalidate(source) }
}

/// The latest level that was told and not taken yet.
final class UntoldLevels: Sendable {
    let levels: AsyncStream<MemoryPressure.Level>
    let waker: AsyncStream<MemoryPressure.Level>.Continuation

    init() { (levels, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }
}
