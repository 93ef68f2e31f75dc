// SPDX-License-Identifier: Apache-2.0

/// Bytes that were read and not taken yet. The lock of the state that holds this guards it.
struct ByteQueue: Sendable {
    private var bytes: [UInt8] = []
    private var start = 0
    /// How many of the bytes, from the first one on, are known to hold no newline.
    private var searched = 0

    init(bytes: [UInt8] = []) { self.bytes = bytes }

    var count: Int { bytes.count - start }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ more: [UInt8]) {
        if isEmpty {
            (bytes, start, searched) = (more.fitted, 0, 0)
            return
        }
        if start > bytes.count / 2 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes += more
    }

    /// Puts bytes before those that are there.
    mutating func putBack(_ taken: [UInt8]) {
        if taken.isEmpty { return }
        self = isEmpty ? ByteQueue(bytes: taken) : ByteQueue(bytes: taken + bytes[start...])
    }

    /// Takes the first bytes, `most` at the most.
    mutating func take(_ most: Int) -> [UInt8] {
        let taken = min(most, count)
        if start == 0 && taken == bytes.count {
            defer { (bytes, searched) = ([], 0) }
            return bytes.fitted
        }
        defer {
            start += taken
            searched = max(0, searched - taken)
            if isEmpty { (bytes, start) = ([], 0) }
        }
        return Array(bytes[start..<start + taken])
    }

    /// Takes the first byte. There is one.
    mutating func takeFirst() -> UInt8 {
        defer {
            start += 1
            searched = max(0, searched - 1)
            if isEmpty { (bytes, start) = ([], 0) }
        }
        return bytes[start]
    }

    /// Where the first newline is.
    mutating func newline() -> Int? {
        let found = bytes[(start + searched)...].firstIndex(of: 10)
        searched = (found ?? bytes.count) - start
        return found.map { $0 - start }
    }

    subscript(index: Int) -> UInt8 { bytes[start + index] }
}

extension [UInt8] {
    /// The same bytes, in memory of about their size: an array keeps the room that it was made with.
    var fitted: [UInt8] { capacity > count + count / 8 + 64 ? unsafe [UInt8](copying: span.bytes) : self }
}
