// SPDX-License-Identifier: Apache-2.0
//
// Trees to values.

extension PropertyList {
    /// Makes `Decodable` values of property lists, as Foundation's `PropertyListDecoder` does without this package.
    ///
    /// A number is taken for one of another type if that can hold it exactly, and for the nearest `Float`. The text `$null` is nothing.
    public struct Decoder: Sendable {
        /// What goes to the values' own code.
        public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

        /// Makes a decoder.
        public init() {}

        /// The value that bytes in any format have.
        ///
        /// - Throws: ``PropertyListError/malformed(line:reason:)`` for bytes that are no property list; `DecodingError` for one that is no
        ///   such value; what the value's own code throws.
        public func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
            try decode(type, from: PropertyList(bytes: bytes))
        }

        /// The value that a tree has.
        ///
        /// - Throws: `DecodingError`; what the value's own code throws.
        public func decode<Value: Decodable>(_ type: Value.Type, from tree: PropertyList) throws -> Value {
            try TreeDecoder(tree: tree, place: nil, userInfo: userInfo).decode(type)
        }
    }
}

/// A tree at a place.
private struct TreeDecoder: Decoder, SingleValueDecodingContainer {
    let tree: PropertyList
    let place: CodingPlace?
    let userInfo: [CodingUserInfoKey: Any]
    var codingPath: [any CodingKey] { CodingPlace.path(place) }

    private func context(_ text: String) -> DecodingError.Context { .init(codingPath: codingPath, debugDescription: text) }

    private func mismatch(_ type: Any.Type) -> DecodingError {
        if decodeNil() { return .valueNotFound(type, context("there is nothing here")) }
        return .typeMismatch(type, context("there is \(tree.kind) here, no \(type)"))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .dictionary(let values) = tree else { throw mismatch([String: PropertyList].self) }
        return KeyedDecodingContainer(KeyedDecoder(values: values, outer: self))
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let values) = tree else { throw mismatch([PropertyList].self) }
        return ListDecoder(values: values, outer: self)
    }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { tree == .string(textForNothing) }

    func decode(_ type: Bool.Type) throws -> Bool {
        guard case .boolean(let isTrue) = tree else { throw mismatch(type) }
        return isTrue
    }
    func decode(_ type: String.Type) throws -> String {
        guard case .string(let text) = tree, text != textForNothing else { throw mismatch(type) }
        return text
    }
    func decode(_ type: Double.Type) throws -> Double {
        guard let number = tree.real else { throw mismatch(type) }
        return number
    }
    func decode(_ type: Float.Type) throws -> Float {
        Float(try decode(Double.self))
    }
    func decode<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws -> Value {
        let number: Value? =
            switch tree {
            case .integer(let number): Value(exactly: number)
            case .real(let number): Value(exactly: number)
            default: throw mismatch(type)
            }
        guard let number else { throw DecodingError.dataCorrupted(context("the number does not fit \(type)")) }
        return number
    }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if Value.self == [UInt8].self, case .data(let bytes) = tree, let value = bytes as? Value { return value }
        if let convertible = type as? any PropertyListConvertible.Type {
            guard let value = convertible.init(propertyList: tree) as? Value else { throw mismatch(type) }
            return value
        }
        if place?.depth ?? 0 > PropertyList.deepest {
            throw DecodingError.dataCorrupted(context("the value has more than \(PropertyList.deepest) levels"))
        }
        return try Value(from: self)
    }

    /// The decoder of a value in this one.
    func inner(_ tree: PropertyList, _ key: some CodingKey) -> TreeDecoder {
        TreeDecoder(tree: tree, place: CodingPlace(key, in: place), userInfo: userInfo)
    }
}

private struct ListDecoder: UnkeyedDecodingContainer {
    let values: [PropertyList]
    let outer: TreeDecoder
    private(set) var currentIndex = 0
    var codingPath: [any CodingKey] { outer.codingPath }
    var count: Int? { values.count }
    var isAtEnd: Bool { currentIndex == values.count }

    init(values: [PropertyList], outer: TreeDecoder) {
        self.values = values
        self.outer = outer
    }

    /// Decodes the next value. The list moves only if that succeeds.
    private mutating func next<Value>(_ type: Any.Type, _ body: (TreeDecoder) throws -> Value) throws -> Value {
        let key = IndexKey(currentIndex)
        if isAtEnd {
            throw DecodingError.valueNotFound(type, .init(codingPath: codingPath + [key], debugDescription: "the array has no more"))
        }
        let value = try body(outer.inner(values[currentIndex], key))
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        if isAtEnd || values[currentIndex] != .string(textForNothing) { return false }
        currentIndex += 1
        return true
    }
    mutating func decode(_ type: Bool.Type) throws -> Bool { try next(type) { try $0.decode(type) } }
    mutating func decode(_ type: String.Type) throws -> String { try next(type) { try $0.decode(type) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try next(type) { try $0.decode(type) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try next(type) { try $0.decode(type) } }
    mutating func decode<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws -> Value {
        try next(type) { try $0.decode(type) }
    }
    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try next(type) { try $0.decode(type) } }
    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try next(type) { try $0.container(keyedBy: type) }
    }
    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try next([Any].self) { try $0.unkeyedContainer() } }
    mutating func superDecoder() throws -> any Decoder { try next((any Decoder).self) { $0 } }
}

private struct KeyedDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let values: [String: PropertyList]
    let outer: TreeDecoder
    var codingPath: [any CodingKey] { outer.codingPath }
    var allKeys: [Key] { values.keys.compactMap { Key(stringValue: $0) } }

    private func value(_ key: some CodingKey) throws -> TreeDecoder {
        guard let value = values[key.stringValue] else {
            throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: "there is no \(key.stringValue)"))
        }
        return outer.inner(value, key)
    }

    func contains(_ key: Key) -> Bool { values[key.stringValue] != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try value(key).decodeNil() }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try value(key).decode(type) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try value(key).decode(type) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try value(key).decode(type) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try value(key).decode(type) }
    func decode<Value: FixedWidthInteger & Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try value(key).decode(type) }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try value(key).decode(type) }
    func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) throws -> KeyedDecodingContainer<Inner> {
        try value(key).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try value(key).unkeyedContainer() }
    func superDecoder() throws -> any Decoder { try superDecoder(of: SuperKey.base) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try superDecoder(of: key) }

    /// A base class that has encoded nothing has no value.
    private func superDecoder(of key: some CodingKey) throws -> any Decoder {
        values[key.stringValue] == nil ? outer.inner(.dictionary([:]), key) : try value(key)
    }
}

extension PropertyList {
    /// The kind of the value, for errors.
    fileprivate var kind: String {
        switch self {
        case .string: "a text"
        case .integer: "a whole number"
        case .real: "a number"
        case .boolean: "a truth value"
        case .date: "a date"
        case .data: "data"
        case .array: "an array"
        case .dictionary: "a dictionary"
        }
    }
}
