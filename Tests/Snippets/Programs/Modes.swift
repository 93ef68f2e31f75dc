// SPDX-License-Identifier: Apache-2.0
// Items wait until a run of their mode comes.
import CoreRunLoop

let loop = RunLoop.current
let importing: RunLoop.Mode = "importing"
let source = InputSource<String> { print("imported:", $0) }
loop.add(source, forMode: importing)
source.send("rows")
loop.perform(inModes: [importing]) { print("in mode", RunLoop.current.currentMode ?? "none") }
loop.perform { print("in the default mode") }

print("contains:", loop.contains(source, in: importing), loop.contains(source, in: .default))
loop.run(for: .zero)
print("handled:", loop.run(mode: importing, before: .now + .seconds(30)))

loop.addCommonMode(importing)
let everywhere = InputSource<Int> { print("common:", $0) }
loop.add(everywhere, forMode: .common)
everywhere.send(1)
print(loop.run(in: importing, for: .seconds(30), returnAfterSourceHandled: true))
do {
    _ = try loop.runChecked(in: "imprting", for: .zero)
} catch {
    print("error:", error)
}

// prints: contains: true false
// prints: in the default mode
// prints: in mode importing
// prints: imported: ["rows"]
// prints: handled: true
// prints: common: [1]
// prints: handledSource
// prints: error: invalidMode(imprting)
