// SPDX-License-Identifier: Apache-2.0
// A thread that waits for commands, and ends when it is asked to.
import CoreRunLoop

let stop = RunLoop.StopToken()
let done = RunLoop.StopToken()
let worker = try Thread.runningLoop(name: "worker", until: stop)
let source = InputSource<String> { commands in
    for command in commands {
        print(command, "on the main thread:", Thread.isMainThread)
        if command == "last" { done.requestStop() }
    }
}
worker.add(source, forMode: .default)
source.send("first")
source.enqueue("second")
source.enqueue("last")
source.fireAllCommands(on: worker)
RunLoop.current.run(until: done)

let name = try worker.performAndWait { Thread.current.name ?? "" }
print("thread:", name)
source.invalidate()
source.send("too late")
print("valid:", source.isValid, "waiting:", source.pendingCount)
stop.requestStop()

// prints: first on the main thread: false
// prints: second on the main thread: false
// prints: last on the main thread: false
// prints: thread: worker
// prints: valid: false waiting: 0
