// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A reference that does not keep its object alive.
struct Weak<Object: AnyObject & Sendable>: Sendable { weak var object: Object? }

/// A table of objects by key that does not keep the objects alive. Any thread.
///
/// An entry records its object's identity. Comparing the object itself would need a reference, which could be the last one. The object's
/// deinitializer would then wait for the lock that is already held.
struct WeakTable<Key: Hashable & Sendable, Object: AnyObject & Sendable>: ~Copyable, Sendable {
    private final class Entry: Sendable {
        weak let object: Object?
        let identity: ObjectIdentifier
        init(_ object: Object) {
            self.object = object
            identity = ObjectIdentifier(object)
        }
    }
    private let entries = Mutex<[Key: Entry]>([:])

    /// The key's object, as long as someone else keeps it alive.
    subscript(key: Key) -> Object? { entries.withLock { $0[key]?.object } }

    /// Returns the key's object, or a new one if there is none.
    func object(for key: Key, orMake make: () -> Object) -> Object {
        entries.withLock { entries in
            if let object = entries[key]?.object { return object }
            let object = make()
            entries[key] = Entry(object)
            return object
        }
    }

    func set(_ object: Object, for key: Key) { entries.withLock { $0[key] = Entry(object) } }

    /// Removes `object`, unless another object has the key by now. The object's deinitializer may call this.
    func remove(_ object: Object, for key: Key) {
        entries.withLock { entries in if entries[key]?.identity == ObjectIdentifier(object) { entries[key] = nil } }
    }
}
