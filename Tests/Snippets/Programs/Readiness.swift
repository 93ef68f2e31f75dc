// SPDX-License-Identifier: Apache-2.0
// Reading a pipe to its end, whenever there is something to read.
import CoreRunLoop
import Glibc

func read(_ descriptor: Int32) -> String? {
    let bytes = [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
        count = max(0, Glibc.read(descriptor, buffer.baseAddress, buffer.count))
    }
    return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
}

var ends: [Int32] = [0, 0]
pipe(&ends)
let (reader, writer) = (ends[0], ends[1])

try RunLoop.runMain {
    let lines = ["one", "two"]
    var next = 0
    write(writer, lines[next], lines[next].utf8.count)
    for await _ in try RunLoop.main.readiness(of: reader) {
        guard let text = read(reader) else { break }
        print(text)
        next += 1
        if next < lines.count {
            write(writer, lines[next], lines[next].utf8.count)
        } else {
            close(writer)
        }
    }
    print("end")
    close(reader)
    do {
        _ = try RunLoop.main.readiness(of: -1)
    } catch {
        print("error:", error)
    }
}

// prints: one
// prints: two
// prints: end
// prints: error: invalidDescriptor(-1)
