// SPDX-License-Identifier: Apache-2.0
// Runs inside runs, each with its own end.
import CoreRunLoop

let loop = RunLoop.current
let outer = RunLoop.StopToken()
let answered: RunLoop.Mode = "waiting for the answer"

let answers = InputSource<String> { texts in print("answer:", texts) }
loop.add(answers, forMode: answered)

loop.perform {
    print("ask")
    loop.perform { print("later, in the outer run") }
    answers.send("yes")
    print("answered:", loop.run(mode: answered, before: .now + .seconds(30)))

    let inner = RunLoop.StopToken()
    loop.perform(inModes: [answered]) {
        print("mode:", loop.currentMode ?? "none")
        inner.requestStop()
    }
    loop.run(in: answered, until: inner)
    print("back in", loop.currentMode == .default ? "the default mode" : "another mode")
    loop.perform { outer.requestStop() }
}
loop.run(until: outer)
loop.run(until: outer)  // has been stopped already
print("end, running:", loop.currentMode != nil)

// prints: ask
// prints: answer: ["yes"]
// prints: answered: true
// prints: mode: waiting for the answer
// prints: back in the default mode
// prints: later, in the outer run
// prints: end, running: false
