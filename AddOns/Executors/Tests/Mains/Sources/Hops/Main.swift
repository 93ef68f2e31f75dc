// SPDX-License-Identifier: Apache-2.0
//
// What hops between the main actor and the pool, tasks and sleeps cost with the executors that are linked: one line a figure, its name and
// microseconds. `make bench-executors` compares them. An argument has tasks sleep by something else than Task.sleep, and measures that
// alone. With NIO defined, SwiftNIO has taken over the default executor.

import Checks
import CoreRunLoop
import CoreRunLoopMain
import Dispatch

#if NIO
    import NIOCore
    import NIOPosix
#endif

@MainActor var hopCount = 0
@MainActor func hop() { hopCount += 1 }

/// An actor in the pool.
actor Counter {
    private(set) var count = 0
    func add() { count += 1 }
}

/// An actor of another thread's loop.
#if NIO
    actor OnLoop {
        private let loop = MultiThreadedEventLoopGroup.singleton.next()
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }
        private(set) var count = 0
        func add() { count += 1 }
    }
#else
    actor OnLoop: RunLoopActor {
        nonisolated let runLoop = try! Thread.runningLoop(until: RunLoop.StopToken())
        private(set) var count = 0
        func add() { count += 1 }
    }
#endif

/// How a task sleeps for a millisecond.
enum Sleep: String {
    case task, asyncAfter, sourceTimer, scheduleTask

    private static let queue = DispatchQueue(label: "sleeps")

    func callAsFunction() async {
        if self == .task {
            try? await Task.sleep(for: .milliseconds(1))
        } else {
            await withCheckedContinuation { done in wake { done.resume() } }
        }
    }

    private func wake(_ body: @escaping @Sendable () -> Void) {
        switch self {
        case .task: break
        case .asyncAfter: Self.queue.asyncAfter(deadline: .now() + .milliseconds(1), execute: body)
        case .sourceTimer:
            let timer = DispatchSource.makeTimerSource(queue: Self.queue)
            timer.schedule(deadline: .now() + .milliseconds(1))
            timer.setEventHandler {
                timer.cancel()
                body()
            }
            timer.activate()
        case .scheduleTask:
            #if NIO
                MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: .milliseconds(1), body)
            #else
                fatalError("built without SwiftNIO")
            #endif
        }
    }
}

@main struct Program {
    static func main() async {
        #if NIO
            precondition(NIOSingletons.unsafeTryInstallSingletonPosixEventLoopGroupAsConcurrencyGlobalExecutor())
        #endif
        let sleep = CommandLine.arguments.dropFirst().first.flatMap(Sleep.init) ?? .task
        if sleep == .task { await reportHops() }
        for count in [1000, 100_000] {
            await report("sleep of 1 ms, \(count) at once", best(of: 3, per: count) {
                await withDiscardingTaskGroup { group in for _ in 0..<count { group.addTask { await sleep() } } }
            })
        }
        if sleep == .task { await report("lateness of a sleep of 1 ms", lateness()) }
    }

    static func reportHops() async {
        let hops = 10_000
        await report("hop to the main actor and back", best(of: 5, per: hops) {
            await Task.detached { for _ in 0..<hops { await hop() } }.value
        })
        await report("task", best(of: 5, per: 100_000) {
            await withDiscardingTaskGroup { group in for _ in 0..<100_000 { group.addTask {} } }
        })
        let counter = Counter()
        await report("call of an actor by 100 tasks", best(of: 5, per: 100_000) {
            await withDiscardingTaskGroup { group in
                for _ in 0..<100 { group.addTask { for _ in 0..<1000 { await counter.add() } } }
            }
        })
        let (one, other) = (OnLoop(), OnLoop())
        await report("hop from one loop to another", best(of: 5, per: hops * 2) {
            await Task.detached {
                for _ in 0..<hops {
                    await one.add()
                    await other.add()
                }
            }.value
        })
    }

    static func report(_ name: String, _ cost: Duration) { print("\(name)\t\(cost / .microseconds(1))") }

    static func best(of rounds: Int, per count: Int, _ work: @Sendable () async -> Void) async -> Duration {
        var best = Duration.seconds(1_000_000)
        for _ in 0..<rounds {
            let begin = ContinuousClock.now
            await work()
            best = min(best, ContinuousClock.now - begin)
        }
        return best / count
    }

    static func lateness() async -> Duration {
        await Task.detached {
            var late: [Duration] = []
            for _ in 0..<201 {
                let begin = ContinuousClock.now
                try? await Task.sleep(for: .milliseconds(1), tolerance: .zero)
                late.append(ContinuousClock.now - begin - .milliseconds(1))
            }
            return late.sorted()[late.count / 2]
        }.value
    }
}
