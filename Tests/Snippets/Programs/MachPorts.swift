// SPDX-License-Identifier: Apache-2.0
// Messages between threads, with an answer.
import CoreRunLoop

let stop = RunLoop.StopToken()
let done = RunLoop.StopToken()
let loop = try Thread.runningLoop(name: "doubler", until: stop)

let doubler = MachPort()
doubler.onMessage = { message in
    guard let bytes = message.components.first as? [UInt8] else { return }
    do {
        try message.sendPort?.post(msgid: message.msgid, components: [bytes + bytes], before: .now + .seconds(30))
    } catch {
        print("error:", error)
    }
}
loop.add(doubler, forMode: .default)

let answers = MachPort()
answers.onMessage = { message in
    print("answer", message.msgid, message.components)
    done.requestStop()
}
RunLoop.current.add(answers, forMode: .default)
try doubler.post(msgid: 5, components: [[1, 2, 3] as [UInt8]], from: answers, before: .now + .seconds(30))
RunLoop.current.run(until: done)

doubler.onInvalidate { print("the port has ended") }
doubler.invalidate()
print("sent:", doubler.send(before: .now, components: nil, from: nil))
stop.requestStop()

// prints: answer 5 [[1, 2, 3, 1, 2, 3]]
// prints: the port has ended
// prints: sent: false
