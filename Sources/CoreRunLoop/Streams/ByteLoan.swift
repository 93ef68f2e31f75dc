// SPDX-License-Identifier: Apache-2.0
//
// Bytes that an iteration has borrowed from its stream, so that it need not lock the stream for each. Any read of the stream takes back
// those that have not been given yet.
//
// The iteration claims a byte by moving `position` past it, and has it if `limit` then lies behind it. Who takes the loan back, with the
// stream's lock, sets `limit` to 0, has every thread pass a fence, and reads `position`. So either the iteration's store is seen, and the
// byte is the iteration's, or the iteration sees the new limit; in both cases `takenBack` tells it, once it has the lock. The fence is the
// processor's; that the compiler keeps the iteration's store before its load rests on their being a release and an acquire, which LLVM does
// not exchange. `Tests/Models/byte_loan.pml` models this. Where the kernel has no such fence, nothing is borrowed.

import CoreRunLoopShims
public import Synchronization

/// The words and bytes of a loan, by addresses: an iteration that asked an object for them would count references for each byte.
@usableFromInline @safe struct BorrowedBytes: Sendable {
    @usableFromInline struct Words: ~Copyable, Sendable {
        @usableFromInline let position = Atomic(0)
        @usableFromInline let limit = Atomic(0)
    }
    @usableFromInline nonisolated(unsafe) let words: UnsafeMutablePointer<Words>
    @usableFromInline nonisolated(unsafe) let bytes: UnsafeMutablePointer<UInt8>

    /// A byte that has been borrowed. The loan lives, and one task at a time calls this.
    @inlinable @inline(__always) func next() -> UInt8? {
        let claimed = unsafe words.pointee.position.load(ordering: .relaxed)
        unsafe words.pointee.position.store(claimed + 1, ordering: .releasing)
        return unsafe claimed < words.pointee.limit.load(ordering: .acquiring) ? bytes[claimed] : nil
    }
}

/// One for each iteration. The stream's state refers to it while bytes are borrowed.
final class ByteLoan: Sendable {
    static let size = 8192
    let borrowed: BorrowedBytes
    // The stream's lock guards these.
    @safe fileprivate nonisolated(unsafe) var count = 0
    @safe fileprivate nonisolated(unsafe) var takenBack = 0
    private static let isPossible = shim_can_fence_everywhere()

    init() {
        borrowed = unsafe BorrowedBytes(words: .allocate(capacity: 1), bytes: .allocate(capacity: Self.size))
        unsafe borrowed.words.initialize(to: BorrowedBytes.Words())
    }

    deinit {
        unsafe borrowed.words.deinitialize(count: 1)
        unsafe borrowed.words.deallocate()
        unsafe borrowed.bytes.deallocate()
    }

    private var position: Int { unsafe borrowed.words.pointee.position.load(ordering: .acquiring) }

    /// The byte that `next` has claimed in vain, if it was taken back too late for that. With the stream's lock.
    fileprivate func claimedByte() -> UInt8? {
        if takenBack == 0 { return nil }
        defer { takenBack = 0 }
        let claimed = position - 1
        return claimed < count && takenBack == claimed + 1 ? unsafe borrowed.bytes[claimed] : nil
    }

    /// Borrows the first bytes and returns the first of them. With the stream's lock.
    fileprivate func borrow(_ unread: inout ByteQueue) -> UInt8 {
        let taken = Self.isPossible ? unread.take(Self.size) : [unread.takeFirst()]
        unsafe borrowed.bytes.update(from: taken, count: taken.count)
        count = taken.count
        unsafe borrowed.words.pointee.position.store(1, ordering: .relaxed)
        unsafe borrowed.words.pointee.limit.store(count, ordering: .releasing)
        return taken[0]
    }

    /// Returns what has not been given. With the stream's lock. `isOver`: nobody asks for bytes any more.
    func takeBack(isOver: Bool = false) -> [UInt8] {
        unsafe borrowed.words.pointee.limit.store(0, ordering: .relaxed)
        if !isOver { shim_fence_everywhere() }
        takenBack = position
        let rest = max(0, count - takenBack)
        return unsafe [UInt8](UnsafeBufferPointer(start: borrowed.bytes + (count - rest), count: rest))
    }
}

extension StreamPair.State {
    /// Makes all bytes that were read and not given ones that are unread. Called before anybody looks for unread bytes.
    mutating func takeLoanBack(isOver: Bool = false) {
        guard let loan = loan.take() else { return }
        unread.putBack(loan.takeBack(isOver: isOver))
    }

    /// The next byte of an iteration that has come to the end of what it had borrowed; `nil` if it has to wait.
    mutating func borrow(_ own: ByteLoan) -> UInt8? {
        if loan === own { loan = nil }
        takeLoanBack()
        guard reads.isEmpty, !isReading, !unread.isEmpty else { return nil }
        loan = own
        return own.borrow(&unread)
    }
}

extension StreamPair {
    /// The byte that an iteration has claimed. Asked for before the iteration may throw, so that the byte is not lost. Any thread.
    func claimedByte(_ loan: ByteLoan) -> UInt8? { state.withLock { _ in loan.claimedByte() } }

    /// Any thread.
    func borrow(_ loan: ByteLoan) -> UInt8? { state.withLock { $0.borrow(loan) } }

    /// The iteration has ended. Any thread.
    func giveBack(_ loan: ByteLoan) {
        let hasOthers = state.withLock { state in
            if state.loan === loan { state.takeLoanBack(isOver: true) }
            return state.handler != nil && !state.unread.isEmpty
        }
        if hasOthers { loop.perform(inModes: [mode]) { self.serveReads() } }
    }
}
