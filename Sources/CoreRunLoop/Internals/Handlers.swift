// SPDX-License-Identifier: Apache-2.0

/// The handlers of one event, in the order of adding. Each can be removed by its number.
///
/// The lock of the state that holds this guards it. Handlers are called, and freed, outside that lock.
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

    /// Removes a handler, if it is still there. The caller frees the result outside its lock.
    mutating func remove(_ number: Int) -> Handler? { handlers.removeValue(forKey: number) }

    mutating func takeAll() -> [Handler] {
        defer { handlers = [:] }
        return inOrder
    }
}

extension Handlers: Sendable where Handler: Sendable {}
