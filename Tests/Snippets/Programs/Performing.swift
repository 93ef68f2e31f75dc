// SPDX-License-Identifier: Apache-2.0
// Methods in the place of selectors: later, in order, on other threads, and cancelled by name.
import CoreRunLoop

nonisolated final class Search: Performing, Sendable {
    func begin(_ text: String) { print("searching for", text) }
    func show() { print("shown on the main thread:", Thread.isMainThread) }
    static let begin = Action("begin", Search.begin(_:))
}

let loop = RunLoop.current
let stop = RunLoop.StopToken()
let search = Search()

search.perform(Search.begin, with: "lo", afterDelay: .zero)
search.perform(Search.begin, with: "loops", afterDelay: .zero)
Search.cancelPreviousPerformRequests(withTarget: search, selector: Search.begin, object: "lo")

loop.perform(Search.begin, target: search, argument: "second", order: 2)
loop.perform(Search.begin, target: search, argument: "first", order: 1)
loop.perform(Search.begin, target: search, argument: "never", order: 3)
loop.cancelPerform(Search.begin, target: search, argument: "never")
loop.run(for: .zero)

let worker = Thread { RunLoop.current.run(until: stop) }
worker.start()
print(search.perform(Search.show, on: worker, with: nil, waitUntilDone: true))
search.performSelector(onMainThread: Search.show, with: nil, waitUntilDone: true)
stop.requestStop()
worker.join()
print(search.perform(Search.show, on: worker, waitUntilDone: true))

// prints: searching for loops
// prints: searching for first
// prints: searching for second
// prints: shown on the main thread: false
// prints: success()
// prints: shown on the main thread: true
// prints: failure(CoreRunLoop.PerformError.threadFinished)
// reports: CoreRunLoop: a perform request failed: threadFinished
