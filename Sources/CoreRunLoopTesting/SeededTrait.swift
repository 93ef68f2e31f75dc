// SPDX-License-Identifier: Apache-2.0

import CoreRunLoopTestingShims
import Synchronization
public import Testing

/// Runs a test in an order that is drawn from a seed, and in virtual time.
public struct SeededTrait: TestTrait, SuiteTrait, TestScoping {
    let seeds: ClosedRange<Int>

    /// Holds for the tests of a suite.
    public var isRecursive: Bool { true }

    /// Runs the test with one seed after the other, until one fails.
    public func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
        guard testCase != nil else { return try await function() }
        let body = keptForever(function)
        for number in seeds {
            if try await fails(Seed(number), test, testCase, body) { return }
        }
    }

    /// Whether the seed fails. Its issues say which seed it was.
    private func fails(
        _ seed: Seed, _ test: Test, _ testCase: Test.Case?, _ body: @escaping @Sendable () async throws -> Void
    ) async throws -> Bool {
        let issues = IssueCount()
        let comment = Comment(rawValue: "seed \(seed.number), which @Test(.seeded(\(seed.number))) repeats")
        let noting = IssueHandlingTrait.compactMapIssues { issue in
            if issue.isFailure { issues.add() }
            var issue = issue
            issue.comments.append(comment)
            return issue
        }
        try await noting.provideScope(for: test, testCase: testCase) {
            guard let failure = await seed.failure(of: body) else { return }
            switch failure.reason {
            case .threw(let error): issues.thrown.withLock { $0 = error }
            default: Issue.record(failure, sourceLocation: test.sourceLocation)
            }
        }
        let thrown = issues.thrown.withLock { $0 }
        if let thrown {
            if thrown is ExpectationFailedError { return true }
            Issue.record(thrown, comment, sourceLocation: test.sourceLocation)
            return true
        }
        return issues.isAny
    }
}

private final class IssueCount: Sendable {
    private let count = Atomic(0)
    let thrown = Mutex<(any Error)?>(nil)
    func add() { count.add(1, ordering: .relaxed) }
    var isAny: Bool { count.load(ordering: .relaxed) > 0 }
}

/// A copy of the test's function that may outlive its call. A run that cannot end leaves tasks that hold it, but never go on.
private func keptForever(_ function: @Sendable () async throws -> Void) -> @Sendable () async throws -> Void {
    typealias Body = @Sendable () async throws -> Void
    @unsafe struct Words { var code: UInt, context: UnsafeMutableRawPointer? }
    struct Box { let body: Body }
    return withoutActuallyEscaping(function) { function in
        var words = unsafe unsafeBitCast(Box(body: function), to: Words.self)
        if let context = unsafe words.context { unsafe words.context = seeded_keep_context(context) }
        return unsafe unsafeBitCast(words, to: Box.self).body
    }
}

extension Trait where Self == SeededTrait {
    /// Runs the test in the order of one seed, as one that ``seeds(_:)`` has found.
    public static func seeded(_ seed: Int) -> SeededTrait { SeededTrait(seeds: seed...seed) }

    /// Looks for an order in which the test fails, among those of the seeds: it runs once for each, until one fails.
    public static func seeds(_ seeds: ClosedRange<Int>) -> SeededTrait { SeededTrait(seeds: seeds) }
}
