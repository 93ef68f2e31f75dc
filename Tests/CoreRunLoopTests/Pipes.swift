// SPDX-License-Identifier: Apache-2.0

import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

func makePipe() -> (reading: Int32, writing: Int32) {
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
    let number = dup2(descriptor, 900)
    precondition(number == 900)
    return number
}

/// What stands under a number, which other tests may take as soon as it is free; `nil` if nothing does.
func fileIdentity(_ descriptor: Int32) -> [UInt]? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? [UInt(status.st_dev), UInt(status.st_ino)] : nil
}
