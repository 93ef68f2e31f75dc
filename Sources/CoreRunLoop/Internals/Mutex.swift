// SPDX-License-Identifier: Apache-2.0
//
// The standard library's Mutex for builds with the thread sanitizer, which `make tsan-swift` makes with -D CRL_TSAN. The sanitizer does not
// see the order that the standard one's futex makes on Linux, and would report every use as a race. It sees that of the C library's lock.
// This one hides the standard one in all targets of the package; in every other build there is none.

#if CRL_TSAN
    import CoreRunLoopShims

    @safe package struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
        private let lock: OpaquePointer
        private let value: UnsafeMutablePointer<Value>

        package init(_ value: consuming sending Value) {
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
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            unsafe shim_lock_take(lock)
            defer { unsafe shim_lock_drop(lock) }
            return try unsafe body(&value.pointee)
        }
    }
#endif
