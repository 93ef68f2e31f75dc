// SPDX-License-Identifier: Apache-2.0
// A source that tells when a descriptor can be read, until its end.
import CoreRunLoop
import Glibc

var ends: [Int32] = [0, 0]
pipe(&ends)
let writer = ends[1]
let stop = RunLoop.StopToken()

let source = try DescriptorSource(descriptor: ends[0], closeOnInvalidate: true) { event in
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = read(event.descriptor, &bytes, bytes.count)
    guard count > 0 else {
        print("end, readable:", event.readiness.contains(.readable))
        event.invalidate()
        stop.requestStop()
        return
    }
    print("read:", String(decoding: bytes.prefix(count), as: UTF8.self))
    close(writer)
}
RunLoop.current.add(source, forMode: .default)
write(writer, "hello", 5)
RunLoop.current.run(until: stop)
print("valid:", source.isValid, "descriptor:", source.descriptor)

// prints: read: hello
// prints: end, readable: true
// prints: valid: false descriptor: -1
