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
        let utf8 = CFStringBuiltInEncodings.UTF8.rawValue
        if let ascii = unsafe CFStringGetCStringPtr(text, utf8) {
            self = unsafe String(decoding: UnsafeRawBufferPointer(start: ascii, count: length), as: UTF8.self)
            return
        }
        var size = 0
        _ = unsafe CFStringGetBytes(text, CFRangeMake(0, length), utf8, 0, false, nil, 0, &size)
        self = unsafe String(unsafeUninitializedCapacity: size) { buffer in
            var count = 0
            let converted = unsafe CFStringGetBytes(
                text, CFRangeMake(0, length), utf8, 0, false, buffer.baseAddress, buffer.count, &count)
            return converted == length ? count : 0
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

/// A C object that is made of a text. The initializers are in a protocol, because the importer's classes can have none of their own.
public protocol CFText: CFObject, ExpressibleByStringInterpolation where StringLiteralType == String {}

extension CFText {
    /// A new C object with the literal's text, so that `"name" as CFString` is written as on Darwin. A text that is no literal has
    /// `cfString`.
    public init(stringLiteral text: String) { self.init(text.cfString) }

    /// The object itself: on Darwin `CFRunLoopMode` is a structure that is made of its name.
    public init(_ text: CFString) { self = unsafe unsafeBitCast(text, to: Self.self) }

    /// The object itself, by the longer of Darwin's two names for the same.
    public init(rawValue text: CFString) { self.init(text) }
}

extension CFString: CFText, @retroactive ExpressibleByStringInterpolation {
    /// The type of its literals.
    public typealias StringLiteralType = String
}

extension [UInt8] {
    /// The bytes of a C object.
    public init(_ data: CFData) {
        self = unsafe Array(UnsafeBufferPointer(start: CFDataGetBytePtr(data), count: CFDataGetLength(data)))
    }

    /// A new C object with these bytes.
    public var cfData: CFData {
        unsafe withUnsafeBufferPointer { bytes in
            unsafe require(CFDataCreate(nil, bytes.baseAddress, bytes.count), "Array.cfData")
        }
    }
}
