// SPDX-License-Identifier: Apache-2.0
//
// Qt's window in a program with an asynchronous main: the main actor lives in Qt's event loop, so main sets the label after an await. With
// "once" the program ends when the window has shown the last text for a moment.

import CoreRunLoop
import CoreRunLoopMain
import QtWindow

/// Somewhere else, off the main actor.
@concurrent func fetchGreeting() async throws -> String {
    try await Task.sleep(for: .milliseconds(300))
    return "Hello from a Swift task"
}

@main struct Program {
    static func main() async throws {
        qt_window_show()
        RunLoop.mainThreadRuns { _ = qt_window_run() }
        qt_window_set_text(try await fetchGreeting())
        var beats = 0
        for await _ in try RunLoop.main.ticks(every: .milliseconds(100)) {
            beats += 1
            qt_window_set_text("Hello from a Swift task, beat \(beats)")
            if beats == 10 { break }
        }
        print("beat \(beats)")
        let stays = !CommandLine.arguments.contains("once")
        repeat { try await Task.sleep(for: .seconds(3)) } while stays
    }
}
