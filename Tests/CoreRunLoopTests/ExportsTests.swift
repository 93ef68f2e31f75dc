// SPDX-License-Identifier: Apache-2.0
//
// Names of Darwin's that programs for Linux declare for themselves, as Foundation has none of them there.

import CoreRunLoop
import Testing

private struct Failure: Error {}

private func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> (Result, by: String) {
    (try body(), "the program")
}

@Suite struct `A pool` {
    @Test func `of the program's own is preferred to the one of the same name here`() throws {
        func body() -> Int { 1 }
        let pool = autoreleasepool { body() }
        #expect(pool == (1, by: "the program"))
        #expect(throws: Failure.self) { try autoreleasepool { throw Failure() } }
    }

    @Test func `gives what its closure gives`() {
        #expect(CoreRunLoop::autoreleasepool { 2 } == 2)
        #expect(throws: Failure.self) { try CoreRunLoop::autoreleasepool { () throws(Failure) in throw Failure() } }
    }
}
