// SPDX-License-Identifier: Apache-2.0
//
// Trees of objects of the C interface, to and from values. The calls are as deep as the tree, which has at most `PropertyList.deepest`
// levels.

public import CCoreRunLoop
import CoreRunLoop

extension PropertyList {
    /// The values of a tree of C objects.
    ///
    /// - Parameter object: A string, number, truth value, date, data, array or dictionary.
    /// - Throws: ``PropertyListError/malformed(line:reason:)`` for other objects, and for more than ``deepest`` levels.
    @unsafe public init(_ object: CFTypeRef) throws(PropertyListError) {
        var input = ObjectReader()
        self = unsafe try input.read(object)
    }

    /// Calls `body` with a tree of C objects that has these values. The objects cannot be changed, and are there during the call, if they
    /// are not retained.
    ///
    /// - Throws: ``PropertyListError/unwritable(reason:)`` for more than ``deepest`` levels.
    @unsafe public func withObject<Result>(_ body: (CFTypeRef) -> Result) throws(PropertyListError) -> Result {
        var output = ObjectWriter()
        return try output.withObject(of: self, body)
    }
}

private let tooDeep = "A property list has more than \(PropertyList.deepest) levels"

/// Makes values of objects.
struct ObjectReader {
    /// What was made of a string or of data that occurs several times, so that a short file of one long text does not take much memory.
    private var shared: [UInt: PropertyList] = [:]
    private var depth = 0

    mutating func read(_ object: CFTypeRef) throws(PropertyListError) -> PropertyList {
        switch unsafe CFGetTypeID(object) {
        case CFStringGetTypeID(): return unsafe share(object) { unsafe .string(Self.text(object)) }
        case CFDataGetTypeID(): return unsafe share(object) { unsafe .data([UInt8](unsafeBitCast(object, to: CFData.self))) }
        case CFNumberGetTypeID(): return unsafe number(unsafeBitCast(object, to: CFNumber.self))
        case CFBooleanGetTypeID(): return unsafe .boolean(CFBooleanGetValue(unsafeBitCast(object, to: CFBoolean.self)))
        case CFDateGetTypeID():
            let seconds = unsafe CFDateGetAbsoluteTime(unsafeBitCast(object, to: CFDate.self))
            return .date(WallTime(timeIntervalSinceReferenceDate: seconds))
        case CFArrayGetTypeID(): return unsafe try array(unsafeBitCast(object, to: CFArray.self))
        case CFDictionaryGetTypeID(): return unsafe try dictionary(unsafeBitCast(object, to: CFDictionary.self))
        default: throw .malformed(line: nil, reason: "A property list cannot contain other objects than its types")
        }
    }

    /// A part of a text that UTF-8 cannot write becomes U+FFFD.
    private static func text(_ object: CFTypeRef) -> String {
        let string = unsafe unsafeBitCast(object, to: CFString.self)
        let text = String(string)
        let length = CFStringGetLength(string)
        if !text.isEmpty || length == 0 { return text }
        let units = unsafe [UniChar](unsafeUninitializedCapacity: length) { buffer, count in
            if let first = buffer.baseAddress { unsafe CFStringGetCharacters(string, CFRangeMake(0, length), first) }
            count = length
        }
        return String(decoding: units, as: UTF16.self)
    }

    private mutating func share(_ object: CFTypeRef, _ make: () -> PropertyList) -> PropertyList {
        if unsafe CCoreRunLoop.CFGetRetainCount(object) == 1 { return make() }
        let place = UInt(bitPattern: object)
        if let known = shared[place] { return known }
        let made = make()
        shared[place] = made
        return made
    }

    private func number(_ number: CFNumber) -> PropertyList {
        if CFNumberIsFloatType(number) {
            var real = 0.0
            _ = unsafe CFNumberGetValue(number, .doubleType, &real)
            return .real(real)
        }
        var integer: Int64 = 0
        _ = unsafe CFNumberGetValue(number, .sInt64Type, &integer)
        return .integer(integer)
    }

    private mutating func open() throws(PropertyListError) {
        if depth == PropertyList.deepest { throw .malformed(line: nil, reason: tooDeep) }
        depth += 1
    }

    private mutating func array(_ array: CFArray) throws(PropertyListError) -> PropertyList {
        let count = CFArrayGetCount(array)
        var values: [PropertyList] = []
        try open()
        values.reserveCapacity(count)
        for index in 0..<count {
            guard let value = unsafe CFArrayGetValueAtIndex(array, index) else { continue }
            unsafe values.append(try read(value))
        }
        depth -= 1
        return .array(values)
    }

    private mutating func dictionary(_ dictionary: CFDictionary) throws(PropertyListError) -> PropertyList {
        let count = CFDictionaryGetCount(dictionary)
        var keys = unsafe [CFTypeRef?](repeating: nil, count: count)
        var objects = unsafe keys
        var values: [String: PropertyList] = [:]
        try open()
        values.reserveCapacity(count)
        unsafe CFDictionaryGetKeysAndValues(dictionary, &keys, &objects)
        for index in 0..<count {
            guard let key = unsafe keys[index], let object = unsafe objects[index], case .string(let name) = unsafe try read(key) else {
                throw .malformed(line: nil, reason: "A key of a property list has to be a string")
            }
            unsafe values[name] = try read(object)
        }
        depth -= 1
        return .dictionary(values)
    }
}

/// Makes objects of values.
struct ObjectWriter {
    /// The same texts are one object, which is written once in the binary format. Texts that differ in how they compose a character are
    /// equal in Swift, and not the same.
    private var texts: [String: (text: String, object: CFString)] = [:]
    private var depth = 0

    @safe mutating func withObject<Result>(
        of tree: PropertyList, _ body: (CFTypeRef) -> Result
    ) throws(PropertyListError) -> Result {
        var result: Result?
        try write(tree) { object in unsafe result = body(object) }
        return result!  // write() calls its function once
    }

    private mutating func text(_ text: String) -> CFString {
        if let known = texts[text], known.text.utf8.elementsEqual(text.utf8) { return known.object }
        let made = text.cfString
        texts[text] = (text, made)
        return made
    }

    /// Calls `body` with the object of a value, which is the caller's during the call.
    @safe private mutating func write(_ value: PropertyList, _ body: (CFTypeRef) -> Void) throws(PropertyListError) {
        switch value {
        case .string(let text): give(self.text(text), body)
        case .integer(var number): give(unsafe CFNumberCreate(nil, .sInt64Type, &number), body)
        case .real(var number): give(unsafe CFNumberCreate(nil, .doubleType, &number), body)
        case .boolean(let isTrue): give(isTrue ? kCFBooleanTrue : kCFBooleanFalse, body)
        case .date(let date): give(CFDateCreate(nil, date.timeIntervalSinceReferenceDate), body)
        case .data(let bytes): give(bytes.cfData, body)
        case .array(let values):
            var callBacks = kCFTypeArrayCallBacks
            let array = unsafe CFArrayCreateMutable(nil, 0, &callBacks)
            try open()
            for value in values { try write(value) { object in unsafe CFArrayAppendValue(array, object) } }
            depth -= 1
            give(array, body)
        case .dictionary(let pairs):
            var (keys, values) = (kCFTypeDictionaryKeyCallBacks, kCFTypeDictionaryValueCallBacks)
            let dictionary = unsafe CFDictionaryCreateMutable(nil, 0, &keys, &values)
            try open()
            for (key, value) in pairs {
                let key = text(key)
                try write(value) { object in unsafe CFDictionarySetValue(dictionary, unsafeBitCast(key, to: CFTypeRef.self), object) }
            }
            depth -= 1
            give(dictionary, body)
        }
    }

    private mutating func open() throws(PropertyListError) {
        if depth == PropertyList.deepest { throw .unwritable(reason: tooDeep) }
        depth += 1
    }

    @safe private func give<Object: CFObject>(_ object: Object?, _ body: (CFTypeRef) -> Void) {
        withExtendedLifetime(object) {
            guard let object else { fatalError("CoreRunLoopPropertyLists: there is no memory") }
            unsafe body(unsafeBitCast(object, to: CFTypeRef.self))
        }
    }
}
