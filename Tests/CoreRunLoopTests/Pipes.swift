// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// How many descriptors the process may have. All tests begin at once, and have up to 256 together, which is all that some shells allow a
/// program that does not ask for more: asked for once, before a test's thread or pipe is made.
let descriptorLimit: Int32 = {
    #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        let resource = RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    precondition(getrlimit(resource, &limit) == 0)
    limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, 4096))
    precondition(setrlimit(resource, &limit) == 0)
    return Int32(clamping: limit.rlim_cur)
}()

func makePipe() -> (reading: Int32, writing: Int32) {
    _ = descriptorLimit
    var ends: [Int32] = [0, 0]
    precondition(pipe(&ends) == 0)
    return (ends[0], ends[1])
}

func drainPipe(_ descriptor: Int32) {
    var byte: UInt8 = 0
    _ = read(descriptor, &byte, 1)
}

func writePipe(_ descriptor: Int32) {
    var byte: UInt8 = 1
    _ = write(descriptor, &byte, 1)
}

func closePipe(_ descriptor: Int32) { close(descriptor) }

/// Another descriptor for the same, under a number that stays free when it is closed: tests that run beside get the lowest. For one test.
func highNumber(for descriptor: Int32) -> Int32 {
    let number = descriptorLimit - 1  // all tests together have had more than 1,200
    precondition(dup2(descriptor, number) == number)
    return number
}

/// What stands under a number, which other tests may take as soon as it is free; `nil` if nothing does.
func fileIdentity(_ descriptor: Int32) -> [UInt]? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? [UInt(status.st_dev), UInt(status.st_ino)] : nil
}
