// SPDX-License-Identifier: Apache-2.0

private import CoreRunLoopExecutorsShims
public import CoreRunLoop

/// The loops whose threads run the tasks that have no other executor.
///
/// The threads start with the first such task, and never end. What they are to be like has to be set before, as at the beginning of main:
///
/// ```text
/// var loops = TaskLoops()
/// loops.count = 8
/// loops.use()
/// ```
public struct TaskLoops: Sendable {
    /// How many threads there are: unless set, as many as the process may use processors.
    public var count = Int(executors_processor_count())

    /// What the threads' names begin with; a number follows.
    public var name = "task"

    /// The numbers of the processors that the threads may use; empty: those of the process. Numbers that the process may not use count for
    /// nothing, and a list of only such numbers is taken for an empty one.
    public var processors: [Int32] = []

    /// How long a thread looks for its next job before it sleeps, while jobs come that quickly after one another. Zero: not at all.
    public var busyWait = Duration.microseconds(100)

    /// The settings that hold unless others are used.
    public init() {}

    /// Has the threads be so.
    ///
    /// - Returns: `false`, and nothing is changed, when they have started already, or when the count is not between 1 and 1,024.
    @discardableResult public func use() -> Bool { (1...1024).contains(count) && LoopPool.shared.use(self) }

    /// The loops, in the order of their threads' numbers; empty before the first task.
    public static var loops: [RunLoop] { LoopPool.shared.loops }
}
