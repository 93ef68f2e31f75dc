// SPDX-License-Identifier: Apache-2.0
//
// A program that brings a main executor of its own: this library says so and stands back.

@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency
import Checks
import CoreRunLoop
import CoreRunLoopMain

typealias DefaultExecutorFactory = OwnFactory

@main struct Program {
    static func main() async throws {
        check("the property", !RunLoop.mainThreadRunsLoop)
        try await Task.sleep(for: .milliseconds(1))
        check("the program's executor runs its main thread", isOnFirstThread())
        endProgram()
    }
}
