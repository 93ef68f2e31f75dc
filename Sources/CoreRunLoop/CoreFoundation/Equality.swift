// SPDX-License-Identifier: Apache-2.0
//
// Comparing objects of the C interface, as code for Darwin does: `==` is what CFEqual says, `===` asks for one and the same object. The
// importer gives neither to the classes that it makes of C structures on Linux.

public import CCoreRunLoop

/// An object of the C interface that can be compared, kept in sets and as a key, and printed.
public protocol CFObject: Hashable, CustomDebugStringConvertible {}

extension CFObject {
    /// The object's address, uncounted.
    @usableFromInline var address: CFTypeRef { unsafe unsafeBitCast(self, to: CFTypeRef.self) }

    /// Whether `CFEqual` finds the two equal. Texts are equal by their characters, loops only to themselves.
    @inlinable public static func == (one: Self, other: Self) -> Bool {
        withExtendedLifetime((one, other)) { unsafe CFEqual(one.address, other.address) }
    }

    /// Hashes what `CFHash` gives, which is the same for equal objects.
    @inlinable public func hash(into hasher: inout Hasher) {
        withExtendedLifetime(self) { hasher.combine(unsafe CFHash(address)) }
    }
}

/// Whether the two are one object, or both are `nil`.
@inlinable public func === <Object: CFObject>(one: Object?, other: Object?) -> Bool {
    withExtendedLifetime((one, other)) { unsafe one?.address == other?.address }
}

/// Whether the two are different objects, or one is and the other is `nil`.
@inlinable public func !== <Object: CFObject>(one: Object?, other: Object?) -> Bool { !(one === other) }

extension CFAllocator: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFArray: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFBoolean: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFData: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFDate: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFDictionary: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFError: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFFileDescriptor: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFMachPort: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFMessagePort: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFNull: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFNumber: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFReadStream: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFRunLoop: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFRunLoopObserver: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFRunLoopSource: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFRunLoopTimer: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFSet: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFSocket: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFString: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFURL: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFUUID: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
extension CFWriteStream: CFObject, @retroactive Hashable, @retroactive CustomDebugStringConvertible {}
