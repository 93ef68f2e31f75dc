// SPDX-License-Identifier: Apache-2.0

/// Jobs that wait for a thread: first those of the highest priority, in the order in which they came. No priority starves: whoever has been
/// passed over long enough is next.
struct ReadyJobs {
    /// How often the jobs of a priority are passed over by those of higher ones before one of them runs.
    private static let patience = 32

    /// The jobs of one priority, in their order.
    private struct Queue {
        var jobs: [UnownedJob?] = []
        var first = 0
        var passedOver = 0
        var isEmpty: Bool { first == jobs.count }

        mutating func append(_ job: UnownedJob) { jobs.append(job) }

        mutating func takeFirst() -> UnownedJob? {
            let job = jobs[first]
            jobs[first] = nil
            first += 1
            if first == jobs.count {
                jobs.removeAll(keepingCapacity: true)
                first = 0
            } else if first >= 1024 && first * 2 > jobs.count {
                jobs.removeFirst(first)
                first = 0
            }
            passedOver = 0
            return job
        }
    }

    /// By falling priority: above high, high, medium, utility and lower ones.
    private var queues = [Queue](repeating: Queue(), count: 5)
    private(set) var count = 0

    private static func index(_ priority: JobPriority) -> Int {
        switch priority.rawValue {
        case 26...: 0
        case 22...: 1
        case 18...: 2
        case 10...: 3
        default: 4
        }
    }

    mutating func append(_ job: UnownedJob, _ priority: JobPriority) {
        queues[Self.index(priority)].append(job)
        count += 1
    }

    mutating func takeNext() -> UnownedJob? {
        guard count > 0 else { return nil }
        count -= 1
        var next: Int?
        for index in queues.indices where !queues[index].isEmpty {
            if next == nil {
                next = index
            } else {
                queues[index].passedOver += 1
                if queues[index].passedOver > Self.patience { next = index }
            }
        }
        return next.flatMap { queues[$0].takeFirst() }
    }
}
