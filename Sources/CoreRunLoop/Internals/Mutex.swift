// SPDX-License-Identifier: Apache-2.0
//
// The standard library's Mutex for builds with the thread sanitizer, which `make tsan-swift` makes with -D CRL_TSAN. The sanitizer does not
// see the order that the standard one's futex makes on Linux, and would report every use as a race. It sees that of the C library's lock.
// In every other build there is none. The compiler prefers this one to the standard one because it is only for values that can be copied; a
// value that cannot be is in a standard one there, too.

#if CRL_TSAN
    import CoreRunLoopShims

    @safe package struct Mutex<Value>: ~Copyable, @unchecked Sendable {
        private let lock: OpaquePointer
        private let value: UnsafeMutablePointer<Value>

        package init(_ value: Value) {
            unsafe lock = shim_lock_create()
            unsafe self.value = .allocate(capacity: 1)
            unsafe self.value.initialize(to: value)
        }

        deinit {
            unsafe shim_lock_destroy(lock)
            unsafe value.deinitialize(count: 1)
            unsafe value.deallocate()
        }

        /// Runs `body` with the lock held. `body` must not call anything that could take the lock again.
        package borrowing func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
            unsafe shim_lock_take(lock)
            defer { unsafe shim_lock_drop(lock) }
            return try unsafe body(&value.pointee)
        }
    }
#endif
