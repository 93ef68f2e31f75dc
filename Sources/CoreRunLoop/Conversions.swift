// SPDX-License-Identifier: Apache-2.0
//
// Swift's texts and bytes as objects of the C interface, and back: what `as` does on Darwin, where the compiler knows both.

public import CCoreRunLoop

/// Darwin's name for the truth value that C functions write through a pointer.
public typealias DarwinBoolean = Bool

extension String {
    /// The text of a C object; empty when it is none that UTF-8 can write.
    public init(_ text: CFString) {
        let length = CFStringGetLength(text)
        let capacity = length * 3 + 1
        self = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer in
            guard let base = buffer.baseAddress,
                unsafe CFStringGetCString(text, base, capacity, CFStringBuiltInEncodings.UTF8.rawValue)
            else { return "" }
            return unsafe String(cString: base)
        }
    }

    /// A new C object with this text: what `as CFString` gives on Darwin.
    public var cfString: CFString {
        var text = self
        return text.withUTF8 { bytes in
            unsafe require(
                CFStringCreateWithBytes(nil, bytes.baseAddress, bytes.count, CFStringBuiltInEncodings.UTF8.rawValue, false),
                "String.cfString")
        }
    }
}

extension [UInt8] {
    /// The bytes of a C object.
    public init(_ data: CFData) {
        self = unsafe Array(UnsafeBufferPointer(start: CFDataGetBytePtr(data), count: CFDataGetLength(data)))
    }

    /// A new C object with these bytes.
    public var cfData: CFData {
        withUnsafeBufferPointer { bytes in
            unsafe require(CFDataCreate(nil, bytes.baseAddress, bytes.count), "Array.cfData")
        }
    }
}
