// SPDX-License-Identifier: Apache-2.0
//
// The main loop serves GLib's context, while an asynchronous main is suspended.

import CGLib
import CoreRunLoop
import CoreRunLoopGLib
import HostChecks

nonisolated(unsafe) private var left = 20
nonisolated(unsafe) private var done: CheckedContinuation<Void, Never>?

@main struct Program {
    static func main() async throws {
        _ = isOnFirstThread()
        try await Task.sleep(for: .milliseconds(1))
        let source = GLibContextSource()!
        RunLoop.main.add(source, forMode: .common)
        await withCheckedContinuation { continuation in
            unsafe done = continuation
            g_timeout_add(1, { _ in
                if !isOnFirstThread() { check("GLib's timeouts fire on the first thread", false) }
                MainActor.assumeIsolated {}
                unsafe left -= 1
                if unsafe left == 0 { unsafe done!.resume() }
                return unsafe left > 0 ? 1 : 0
            }, nil)
        }
        check("GLib's timeouts are served by the main loop", isOnFirstThread())
        RunLoop.main.remove(source, forMode: .common)
        endProgram()
    }
}
