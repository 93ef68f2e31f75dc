// SPDX-License-Identifier: Apache-2.0

/// Functions to be called of one event, in the order in which they were added, each of which may be taken out by its number.
///
/// Guarded by the lock of the state that it is in. They are called, and freed, outside it.
struct Handlers<Handler> {
    private var last = 0
    private var handlers: [Int: Handler] = [:]

    var count: Int { handlers.count }

    var inOrder: [Handler] { handlers.sorted { $0.key < $1.key }.map(\.value) }

    mutating func add(_ handler: Handler) -> Int {
        last += 1
        handlers[last] = handler
        return last
    }

    /// Takes one out, if it is still there: it is to be freed outside the caller's lock.
    mutating func remove(_ number: Int) -> Handler? { handlers.removeValue(forKey: number) }

    mutating func takeAll() -> [Handler] {
        defer { handlers = [:] }
        return inOrder
    }
}

extension Handlers: Sendable where Handler: Sendable {}
