// SPDX-License-Identifier: Apache-2.0
//
// Both loops of the first thread in one run: what Foundation sends by its main loop, and the main actor. Exits with the number of checks
// that failed.

import CoreRunLoopFoundation

nonisolated(unsafe) var failures: Int32 = 0
func check(_ name: String, _ passed: Bool) {
    print(passed ? "ok - " : "not ok - ", name, separator: "")
    if !passed { failures += 1 }
}

let loop = RunLoop.main
let pipe = Pipe()
let reading = pipe.fileHandleForReading
nonisolated(unsafe) var text = ""
let available = NotificationCenter.default.addObserver(forName: .NSFileHandleDataAvailable, object: reading, queue: nil) { note in
    guard let reading = note.object as? FileHandle else { return }
    text += String(decoding: reading.availableData, as: UTF8.self)
    if text.count < 3 { reading.Foundation::waitForDataInBackgroundAndNotify() } else { loop.stop() }
}
reading.Foundation::waitForDataInBackgroundAndNotify()
let letters = Timer.scheduledTimer(withTimeInterval: 0.001, repeats: true) { _ in pipe.fileHandleForWriting.write(Data("a".utf8)) }
let first = loop.run(in: .default, for: .seconds(1000))
letters.invalidate()
check("a file handle waits in the background by Foundation's loop", first == .stopped && text.count >= 3)

Task { @MainActor in
    try await Task.sleep(for: .milliseconds(1))
    text = "actor"
    loop.stop()
}
check("the main actor runs", loop.run(in: .default, for: .seconds(1000)) == .stopped && text == "actor")
NotificationCenter.default.removeObserver(available)
exit(failures)
