// SPDX-License-Identifier: Apache-2.0
//
// A value behind a lock, with the interface of the standard library's. That one sleeps on a futex of its own, whose order the thread
// sanitizer does not see on Linux, so that every use would be reported as a race; the C library's it sees. Tests use it too.

import CoreRunLoopShims

@safe package struct Mutex<Value>: ~Copyable, @unchecked Sendable {
    private struct Cell {
        var lock = shim_lock()
        var value: Value
    }
    private let cell: UnsafeMutablePointer<Cell>

    package init(_ value: Value) {
        unsafe cell = .allocate(capacity: 1)
        unsafe cell.initialize(to: Cell(value: value))
    }

    deinit {
        unsafe cell.deinitialize(count: 1)
        unsafe cell.deallocate()
    }

    private var lock: UnsafeMutablePointer<shim_lock> { unsafe UnsafeMutableRawPointer(cell).assumingMemoryBound(to: shim_lock.self) }

    /// Runs `body` with the lock held: it may call nothing that could take it again.
    package borrowing func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        unsafe shim_lock_take(lock)
        defer { unsafe shim_lock_drop(lock) }
        return try unsafe body(&cell.pointee.value)
    }
}
