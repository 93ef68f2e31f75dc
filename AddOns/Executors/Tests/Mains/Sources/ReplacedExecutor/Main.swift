// SPDX-License-Identifier: Apache-2.0
//
// A program that replaces the main executor: before main suspends for the first time, afterwards, or from a task elsewhere, as its argument
// says. From then on the main thread runs the new one, and the library says so. A function stays with the executor that there was when it
// began; the old one is still served if it had been before.

@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency
import Checks
import CoreRunLoop
import CoreRunLoopMain

@main struct Program {
    static func main() async throws {
        let when = CommandLine.arguments.dropFirst().first
        if when == "before" {
            _createExecutors(factory: OwnFactory.self)
            try await checkMain()
        }
        try await Task.sleep(for: .milliseconds(1))
        if when == "after" {
            _createExecutors(factory: OwnFactory.self)
        } else {
            await Task.detached { _createExecutors(factory: OwnFactory.self) }.value
        }
        try await Task.sleep(for: .milliseconds(1))
        check("main goes on, on the main thread", isOnFirstThread())
        try await checkMain()
    }

    @MainActor static func checkMain() async throws {
        try await Task.sleep(for: .milliseconds(1))
        check("the main actor is on the main thread", isOnFirstThread())
        check("the property", !RunLoop.mainThreadRunsLoop)
        await Task.detached {}.value
        check("and stays there", isOnFirstThread())
        endProgram()
    }
}
