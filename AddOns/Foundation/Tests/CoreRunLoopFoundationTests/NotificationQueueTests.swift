// SPDX-License-Identifier: Apache-2.0
//
// Notifications that wait for this package's loop, in runs of it alone.

import CoreRunLoopFoundation
import Testing

private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await Thread.joinable(name: "test", body).value
}

/// What was posted of names that no other test has, by one thread, while it lives.
private final class Posts: @unchecked Sendable {
    private(set) var seen: [String] = []
    /// What the posted ones brought with them.
    private(set) var brought: [Int] = []
    private let own = NotificationCenter()
    private var observers: [any NSObjectProtocol] = []
    let queue: NotificationQueue

    init(_ names: [String] = ["a", "b"], also then: @escaping @Sendable (Posts, String) -> Void = { _, _ in }) {
        queue = NotificationQueue(notificationCenter: own)
        for name in names {
            observers.append(
                own.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { [unowned self] notification in
                    seen.append(name)
                    if let value = notification.userInfo?["value"] as? Int { brought.append(value) }
                    then(self, name)
                })
        }
    }

    func add(
        _ name: String, _ style: NotificationQueue.PostingStyle, object: Any? = nil, bringing value: Int? = nil,
        mask: NotificationQueue.NotificationCoalescing = .none, modes: [RunLoop.Mode]? = nil
    ) {
        let notification = Notification(name: Notification.Name(name), object: object, userInfo: value.map { ["value": $0] })
        queue.enqueue(notification, postingStyle: style, coalesceMask: mask, forModes: modes)
    }

    /// One pass of the calling thread's loop, which has something to wait for.
    func pass(in mode: RunLoop.Mode = .default) {
        let alive = RunLoop.current.keepAlive(in: mode)
        RunLoop.current.run(mode: mode, before: Date.distantPast)
        alive.cancel()
    }
}

/// A reference that keeps nothing; one thread's after the other.
private final class Held: @unchecked Sendable { weak var queue: NotificationQueue? }

@Suite(.timeLimit(.minutes(10))) struct `A notification queue` {
    @Test func `posts at once outside of runs, and in modes that are named`() async throws {
        try await onThread {
            let posts = Posts()
            posts.add("a", .now, modes: ["other"])
            #expect(posts.seen == ["a"])
            RunLoop.current.perform {
                posts.add("a", .now, modes: ["other"])
                posts.add("a", .now, modes: [.common])
                #expect(posts.seen == ["a"])
                posts.add("b", .now)
                #expect(posts.seen == ["a", "b"])
            }
            posts.pass()
            #expect(posts.seen == ["a", "b"])
        }
    }

    @Test func `posts soon at the end of a run that does not sleep, and what waits for an idle loop in one that does`() async throws {
        try await onThread {
            let posts = Posts { _, name in if name == "b" { RunLoop.current.stop() } }
            posts.add("b", .whenIdle)
            posts.add("a", .asap)
            #expect(posts.seen == [])
            posts.pass()
            #expect(posts.seen == ["a"])
            let alive = RunLoop.current.keepAlive()
            posts.add("a", .asap)
            #expect(RunLoop.current.run(in: .default) == .stopped)
            #expect(posts.seen == ["a", "a", "b"])
            alive.cancel()
        }
    }

    @Test func `posts after the callback that has asked for it`() async throws {
        try await onThread {
            let posts = Posts()
            let timer = Timer.scheduledTimer(withTimeInterval: 0, repeats: false) { _ in
                NotificationQueue.default.enqueue(Notification(name: Notification.Name("crl.tests.own")), postingStyle: .asap)
                posts.add("a", .asap)
                #expect(posts.seen == [])
            }
            while timer.isValid { RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01)) }
            #expect(posts.seen == ["a"])
        }
    }

    @Test func `posts in one of the modes that are named, and in each of the common ones`() async throws {
        try await onThread {
            let posts = Posts(["a", "b", "c"])
            RunLoop.current.addCommonMode("shared")
            posts.add("a", .asap, modes: ["other", "another"])
            posts.add("b", .asap, modes: [.common])
            posts.pass(in: "none of them")
            #expect(posts.seen == [])
            posts.pass(in: "shared")
            #expect(posts.seen == ["b"])
            posts.add("c", .asap)
            posts.pass(in: "another")
            #expect(posts.seen == ["b", "a"])
            posts.pass(in: "other")
            posts.pass()
            #expect(posts.seen == ["b", "a", "c"])
        }
    }

    @Test func `posts before the sleep what is asked for by those that are told`() async throws {
        try await onThread {
            let posts = Posts { posts, name in
                if name == "a" { posts.add("b", .whenIdle) } else { RunLoop.current.stop() }
            }
            posts.add("a", .whenIdle)
            let alive = RunLoop.current.keepAlive()
            #expect(RunLoop.current.run(in: .default) == .stopped)
            alive.cancel()
            #expect(posts.seen == ["a", "b"])
        }
    }

    @Test func `posts those that are alike once, the first of them`() async throws {
        try await onThread {
            let (one, other) = (NSObject(), NSObject())
            let posts = Posts()
            for object in [one, other, one] { posts.add("a", .asap, object: object, mask: [.onName, .onSender]) }
            posts.pass()
            #expect(posts.seen == ["a", "a"])
            for object in [one, other] { posts.add("a", .asap, object: object, mask: .onName) }
            posts.add("b", .asap, object: other, mask: .onSender)
            posts.pass()
            #expect(posts.seen == ["a", "a", "a", "b"])
            for value in [1, 2, 1] { posts.add("a", .asap, object: value, mask: [.onName, .onSender]) }
            posts.add("a", .now, object: 2, mask: [.onName, .onSender])
            posts.pass()
            #expect(posts.seen == ["a", "a", "a", "b", "a", "a"])
            posts.add("a", .asap)
            posts.add("b", .asap)
            posts.queue.dequeueNotifications(matching: Notification(name: Notification.Name("a")), coalesceMask: .none)
            posts.queue.dequeueNotifications(matching: Notification(name: Notification.Name("a")), coalesceMask: .onName)
            posts.pass()
            #expect(posts.seen == ["a", "a", "a", "b", "a", "a", "b"])
        }
    }

    @Test func `posts the first of those that are alike, or the first of those that are posted soonest`() async throws {
        try await onThread {
            let posts = Posts { _, _ in RunLoop.current.stop() }
            let alive = RunLoop.current.keepAlive()
            for value in 1...3 { posts.add("a", .whenIdle, bringing: value, mask: .onName) }
            #expect(RunLoop.current.run(in: .default) == .stopped)
            posts.pass()
            #expect(posts.brought == [1])
            for value in 4...5 { posts.add("a", .asap, bringing: value, mask: .onName) }
            posts.add("a", .whenIdle, bringing: 6, mask: .onName)
            posts.pass()
            #expect(posts.brought == [1, 4])
            posts.add("a", .whenIdle, bringing: 7, mask: .onName)
            for value in 8...9 { posts.add("a", .asap, bringing: value, mask: .onName) }
            posts.pass()
            #expect(posts.brought == [1, 4, 8])
            posts.add("a", .asap, bringing: 10)
            posts.add("a", .whenIdle, bringing: 11)
            posts.add("a", .now, bringing: 12, mask: .onName)
            #expect(posts.brought == [1, 4, 8, 12])
            posts.pass()
            #expect(posts.brought == [1, 4, 8, 12])
            posts.add("b", .whenIdle, bringing: 13)
            #expect(RunLoop.current.run(in: .default) == .stopped)
            #expect(posts.brought == [1, 4, 8, 12, 13])
            alive.cancel()
        }
    }

    @Test func `of a thread is one object, and gone with it`() async throws {
        let held = Held()
        let thread = Thread {
            held.queue = NotificationQueue.default
            #expect(NotificationQueue.default === held.queue)
            NotificationQueue.default.enqueue(Notification(name: Notification.Name("crl.tests.never")), postingStyle: .asap)
        }
        thread.start()
        try await thread.value
        #expect(held.queue == nil)
    }

    @Test func `that nobody keeps leaves nothing in its loop`() async throws {
        try await onThread {
            weak var queue: NotificationQueue?
            func use() {
                let posts = Posts()
                posts.add("a", .whenIdle)
                queue = posts.queue
            }
            use()
            #expect(queue == nil)
            Posts().pass()
        }
    }
}
