// SPDX-License-Identifier: Apache-2.0

/// What a loop's streams read into, so that the arrays that the program gets have the size of what has come. For the loop's thread.
@safe final class ReadBuffer {
    static let size = 65536
    private var allocated: UnsafeMutablePointer<UInt8>?
    /// An array that an event handler has not kept.
    private var spare: [UInt8] = []

    deinit { unsafe allocated?.deallocate() }

    var start: UnsafeMutablePointer<UInt8> {
        if let allocated = unsafe allocated { return unsafe allocated }
        let made = UnsafeMutablePointer<UInt8>.allocate(capacity: Self.size)
        unsafe allocated = made
        return unsafe made
    }

    /// The first bytes in an array of about their size.
    func copy(_ count: Int) -> [UInt8] {
        let bytes = unsafe UnsafeBufferPointer(start: start, count: count)
        guard count > 0, spare.capacity >= count, spare.capacity <= count + count / 8 + 64 else { return unsafe [UInt8](bytes) }
        var array: [UInt8] = []
        swap(&array, &spare)
        array.removeAll(keepingCapacity: true)
        unsafe array.append(contentsOf: bytes)
        return array
    }

    /// Keeps an array for the next bytes, if nobody else has its storage. The standard library does not tell that of an array; but an array
    /// is one reference to its storage, and of a reference it does.
    func reuse(_ bytes: inout [UInt8]) {
        let isUnique = unsafe withUnsafeMutablePointer(to: &bytes) { array in
            unsafe array.withMemoryRebound(to: AnyObject.self, capacity: 1) { unsafe isKnownUniquelyReferenced(&$0.pointee) }
        }
        if isUnique && bytes.count <= Self.size { swap(&bytes, &spare) }
    }
}
