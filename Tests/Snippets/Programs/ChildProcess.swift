// SPDX-License-Identifier: Apache-2.0
// The end of child processes, with their status.
import CoreRunLoop
import Glibc

func spawn(_ script: String) -> Int32 {
    let words: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup(script), nil]
    defer { for word in words { free(word) } }
    var child: Int32 = 0
    return posix_spawn(&child, "/bin/sh", nil, nil, words, environ) == 0 ? child : -1
}

let stop = RunLoop.StopToken()
let loop = RunLoop.current
let last = spawn("kill -TERM $$")
let first = spawn("exit 3")
let source = try ChildProcessSource(processID: first) { child, status in
    print("first:", child == first, status)
    do {
        let second = try ChildProcessSource(processID: last) { _, status in
            print("second:", status)
            stop.requestStop()
        }
        RunLoop.current.add(second, forMode: .default)
    } catch {
        print("error:", error)
    }
}
loop.add(source, forMode: .default)
loop.run(until: stop)
do {
    _ = try ChildProcessSource(processID: first) { _, _ in }
} catch {
    print("not a child any more:", error == .notAChild(first))
}

// prints: first: true exited(3)
// prints: second: signalled(15)
// prints: not a child any more: true
