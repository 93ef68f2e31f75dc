// SPDX-License-Identifier: Apache-2.0
//
// A queue of notifications by this package's loops. It replaces Foundation's queue, whose observers are in Foundation's loop. There is one
// observer for each mode that a waiting notification names. So a loop itself knows which modes are common.

public import CoreRunLoop
public import Foundation

/// Posts notifications when the calling thread's loop comes to it, and those that are alike once.
///
/// As in Cocoa a queue belongs to the thread that uses it, and keeps no mode alive: a run of an empty mode posts nothing.
open class NotificationQueue: NSObject {
    /// When a notification is posted.
    public typealias PostingStyle = Foundation::NotificationQueue.PostingStyle
    /// The properties by which two notifications count as alike.
    public typealias NotificationCoalescing = Foundation::NotificationQueue.NotificationCoalescing

    private struct Entry {
        let notification: Notification
        let style: PostingStyle
        let modes: [CoreRunLoop::RunLoop.Mode]
    }

    private let center: NotificationCenter
    private var entries: [Entry] = []
    private var observers: [CoreRunLoop::RunLoop.Mode: CoreRunLoop::RunLoop.Observer] = [:]

    /// The calling thread's queue for the default center.
    open class var `default`: NotificationQueue { CoreRunLoop::Thread.current.values.queue }

    /// Makes a queue for `notificationCenter`.
    public init(notificationCenter: NotificationCenter) { center = notificationCenter }

    deinit { for observer in observers.values { observer.invalidate() } }

    /// Queues a notification for the default mode, unless one with its name and object waits there.
    open func enqueue(_ notification: Notification, postingStyle: PostingStyle) {
        enqueue(notification, postingStyle: postingStyle, coalesceMask: [.onName, .onSender], forModes: nil)
    }

    /// Queues a notification, unless an equal one waits already and is posted as soon.
    ///
    /// Among equal notifications the first is posted, as on Apple's systems. Equal notifications that would be posted later than the new
    /// one leave the queue.
    ///
    /// - Parameters:
    ///   - notification: What to post.
    ///   - postingStyle: `.now` posts it before this returns, if no loop runs or one in `modes` by name. `.asap` posts it at the end of the
    ///     pass or the run that is under way. `.whenIdle` posts it before the loop sleeps.
    ///   - coalesceMask: The parts by which notifications are equal; if empty, no two are.
    ///   - modes: In which modes to post it; `nil` is the default mode.
    open func enqueue(
        _ notification: Notification, postingStyle: PostingStyle, coalesceMask: NotificationCoalescing,
        forModes modes: [CoreRunLoop::RunLoop.Mode]?
    ) {
        let modes = modes ?? [.default]
        let alike = { (entry: Entry) in coalesceMask.covers(entry.notification, notification) }
        entries.removeAll { alike($0) && $0.style.isLater(than: postingStyle) }
        if entries.contains(where: alike) { return }
        guard postingStyle != .now else {
            let current = CoreRunLoop::RunLoop.current.currentMode
            if current.map(modes.contains) ?? true { center.post(notification) }
            return
        }
        entries.append(Entry(notification: notification, style: postingStyle, modes: modes))
        for mode in modes where observers[mode] == nil {
            observers[mode] = CoreRunLoop::RunLoop.current.observe([.beforeWaiting, .exit], in: mode) { [weak self] _, activity in
                self?.post(in: mode, atExit: activity == .exit)
            }
        }
    }

    /// Removes the waiting notifications that are equal to `notification`. Removes none if `coalesceMask` is empty.
    open func dequeueNotifications(matching notification: Notification, coalesceMask: NotificationCoalescing) {
        entries.removeAll { coalesceMask.covers($0.notification, notification) }
    }

    private func post(in mode: CoreRunLoop::RunLoop.Mode, atExit: Bool) {
        func isDue(_ entry: Entry) -> Bool { entry.modes.contains(mode) && (entry.style == .asap || !atExit) }
        let due = entries.filter(isDue)
        entries.removeAll(where: isDue)
        for entry in due where entry.style == .asap { center.post(entry.notification) }
        for entry in due where entry.style != .asap { center.post(entry.notification) }
        if entries.contains(where: isDue) {
            CoreRunLoop::RunLoop.current.wake()  // for those that came meanwhile, as the loop would sleep now
        } else if !entries.contains(where: { $0.modes.contains(mode) }) {
            observers.removeValue(forKey: mode)?.invalidate()
        }
    }
}

extension Foundation::NotificationQueue.PostingStyle {
    /// Whether a notification of this style is posted after one of the other style that is queued with it.
    fileprivate func isLater(than other: Self) -> Bool { other == .now || (other == .asap && self == .whenIdle) }
}

extension Foundation::NotificationQueue.NotificationCoalescing {
    /// Whether the two are alike.
    fileprivate func covers(_ one: Notification, _ other: Notification) -> Bool {
        !isEmpty && (!contains(.onName) || one.name == other.name) && (!contains(.onSender) || isSame(one.object, other.object))
    }
}

/// Whether both are one object, or equal values, or none.
private func isSame(_ one: Any?, _ other: Any?) -> Bool {
    guard let one, let other else { return one == nil && other == nil }
    if let one = one as? AnyHashable, let other = other as? AnyHashable, !(type(of: one.base) is AnyClass) { return one == other }
    return (one as AnyObject) === (other as AnyObject)
}
