// SPDX-License-Identifier: Apache-2.0

/// Objects by a key, kept by others. Any thread.
///
/// An entry is told by its object's identity: comparing the object itself would need a reference to it, which could be the last one, and
/// the object's deinitializer would then wait for the lock that is held.
struct WeakTable<Key: Hashable, Object: AnyObject>: ~Copyable, @unchecked Sendable {
    private final class Entry {
        weak var object: Object?
        let identity: ObjectIdentifier
        init(_ object: Object) {
            self.object = object
            identity = ObjectIdentifier(object)
        }
    }
    private let entries = Mutex<[Key: Entry]>([:])

    /// The key's object, as long as someone keeps it.
    subscript(key: Key) -> Object? { entries.withLock { $0[key]?.object } }

    /// The key's object, or else a new one.
    func object(for key: Key, orMake make: () -> Object) -> Object {
        entries.withLock { entries in
            if let object = entries[key]?.object { return object }
            let object = make()
            entries[key] = Entry(object)
            return object
        }
    }

    func set(_ object: Object, for key: Key) { entries.withLock { $0[key] = Entry(object) } }

    /// Takes `object` out, unless another one has the key by now. May be called by the object's deinitializer.
    func remove(_ object: Object, for key: Key) {
        entries.withLock { entries in if entries[key]?.identity == ObjectIdentifier(object) { entries[key] = nil } }
    }
}
