// SPDX-License-Identifier: Apache-2.0
//
// Decodes values as CompactFormat says, from bytes that anybody may have written. Whatever they are, decoding ends with a value or with an
// error: nothing is read beyond the end, no memory is reserved for counts that only claim to be large, and no value has more levels than
// `compactDeepest`.

/// The bytes of one value and of those in it.
final class CompactInput {
    let bytes: ArraySlice<UInt8>
    let userInfo: [CodingUserInfoKey: any Sendable]

    init(_ bytes: ArraySlice<UInt8>, _ userInfo: [CodingUserInfoKey: any Sendable]) {
        self.bytes = bytes
        self.userInfo = userInfo
    }

    /// Decodes a value that has all the bytes.
    func decodeWhole<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let at = CompactDecoder(input: self, position: bytes.startIndex, key: nil, outer: nil)
        let end = try at.end()
        if end != bytes.endIndex { throw at.corrupted("\(bytes.endIndex - end) bytes follow the value") }
        return try at.decode(type)
    }
}

/// The keys that lead to a container, as a list from the innermost.
final class CompactPath {
    let key: (any CodingKey)?
    let outer: CompactPath?
    let depth: Int

    init(_ key: (any CodingKey)?, in outer: CompactPath?) {
        self.key = key
        self.outer = outer
        depth = (outer?.depth ?? 0) + 1
    }
}

/// A value at a position of the bytes.
struct CompactDecoder: Decoder, SingleValueDecodingContainer {
    let input: CompactInput
    let position: Int
    /// Its key in the container that it is in, and the keys of that one.
    let key: (any CodingKey)?
    let outer: CompactPath?

    var userInfo: [CodingUserInfoKey: Any] { input.userInfo }
    var codingPath: [any CodingKey] {
        var keys = [key]
        var next = outer
        while let one = next {
            keys.append(one.key)
            next = one.outer
        }
        return keys.reversed().compactMap { $0 }
    }

    private var reader: CompactReader {
        var reader = CompactReader(input.bytes)
        reader.position = position
        return reader
    }

    func corrupted(_ text: String) -> DecodingError { .dataCorrupted(.init(codingPath: codingPath, debugDescription: text)) }

    private func mismatch(_ type: Any.Type) -> DecodingError {
        .typeMismatch(type, .init(codingPath: codingPath, debugDescription: "the bytes have no \(type) here"))
    }

    /// Reads, and says where it was that reading has failed.
    func read<Value>(_ body: (inout CompactReader) throws(CompactFault) -> Value) throws -> Value {
        var reader = reader
        do { return try body(&reader) } catch { throw corrupted(error.description) }
    }

    /// Returns the position after the value.
    func end() throws -> Int {
        try read { reader throws(CompactFault) in
            try reader.skip()
            return reader.position
        }
    }

    // MARK: A container

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(try CompactKeyedDecoder(self))
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try CompactListDecoder(self) }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    /// Returns the position after the tag of a list or map.
    func begin(_ tag: UInt8, _ type: Any.Type) throws -> Int {
        guard try read({ reader throws(CompactFault) in try reader.byte() }) == tag else { throw mismatch(type) }
        return position + 1
    }

    // MARK: A scalar

    func decodeNil() -> Bool { (try? reader.peek()) == CompactTag.none }

    func decode(_ type: Bool.Type) throws -> Bool {
        switch try read({ reader throws(CompactFault) in try reader.byte() }) {
        case CompactTag.no: return false
        case CompactTag.yes: return true
        default: throw mismatch(type)
        }
    }

    func decode(_ type: String.Type) throws -> String {
        let text = try read { reader throws(CompactFault) -> String? in
            guard let span = try reader.textSpan() else { return nil }
            return try reader.string(span)
        }
        guard let text else { throw mismatch(type) }
        return text
    }

    func decode(_ type: Double.Type) throws -> Double {
        let value = try read { reader throws(CompactFault) -> Double? in
            try reader.byte() == CompactTag.double ? Double(bitPattern: try reader.fixed(UInt64.self)) : nil
        }
        guard let value else { throw mismatch(type) }
        return value
    }

    func decode(_ type: Float.Type) throws -> Float {
        let value = try read { reader throws(CompactFault) -> Float? in
            try reader.byte() == CompactTag.float ? Float(bitPattern: try reader.fixed(UInt32.self)) : nil
        }
        guard let value else { throw mismatch(type) }
        return value
    }

    private enum Integer {
        case positive(UInt64)
        case negative(Int64)
    }

    func decode<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws -> Value {
        let integer = try read { reader throws(CompactFault) -> Integer? in
            let tag = try reader.byte()
            if tag <= 0x7F { return .positive(UInt64(tag)) }
            if tag == CompactTag.unsigned { return .positive(try reader.varint()) }
            if tag != CompactTag.negative { return nil }
            let complement = try reader.varint()
            if complement > UInt64(Int64.max) { throw CompactFault(description: "a number is below -2^63") }
            return .negative(~Int64(complement))
        }
        let value: Value? =
            switch integer {
            case nil: throw mismatch(type)
            case .positive(let number): Value(exactly: number)
            case .negative(let number): Value(exactly: number)
            }
        guard let value else { throw corrupted("a number does not fit \(type)") }
        return value
    }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if (outer?.depth ?? 0) > compactDeepest { throw corrupted("more than \(compactDeepest) levels") }
        if Value.self == [UInt8].self, let bytes = try byteArray() as? Value { return bytes }
        return try Value(from: self)
    }

    /// `nil` if the value is none, such as a list of numbers.
    private func byteArray() throws -> [UInt8]? {
        try read { reader throws(CompactFault) -> [UInt8]? in
            guard try reader.byte() == CompactTag.bytes else { return nil }
            return Array(reader.bytes[try reader.span()])
        }
    }
}

private struct CompactListDecoder: UnkeyedDecodingContainer {
    private let list: CompactDecoder
    private let path: CompactPath
    private var position: Int
    private(set) var currentIndex = 0
    var codingPath: [any CodingKey] { list.codingPath }
    /// A list does not say how many values it has.
    var count: Int? { nil }
    var isAtEnd: Bool { position >= list.input.bytes.endIndex || list.input.bytes[position] == CompactTag.end }

    init(_ list: CompactDecoder) throws {
        self.list = list
        path = CompactPath(list.key, in: list.outer)
        position = try list.begin(CompactTag.list, [Any].self)
    }

    /// Decodes the next value. The list moves only if that succeeds.
    private mutating func next<Value>(_ type: Any.Type, _ body: (CompactDecoder) throws -> Value) throws -> Value {
        let at = CompactDecoder(input: list.input, position: position, key: IndexKey(currentIndex), outer: path)
        if isAtEnd { throw DecodingError.valueNotFound(type, .init(codingPath: at.codingPath, debugDescription: "the list has no more")) }
        let value = try body(at)
        position = try at.end()
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        if isAtEnd || list.input.bytes[position] != CompactTag.none { return false }
        position += 1
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

private struct CompactKeyedDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let map: CompactDecoder
    private let path: CompactPath
    /// Where the keys' texts and the values stand.
    private let entries: [(key: Range<Int>, value: Int)]
    private let next = Place()
    var codingPath: [any CodingKey] { map.codingPath }

    /// The entry after the one that was decoded last. Types ask for their keys in the order in which they have written them.
    private final class Place { var index = 0 }

    init(_ map: CompactDecoder) throws {
        self.map = map
        path = CompactPath(map.key, in: map.outer)
        let start = try map.begin(CompactTag.map, [String: Any].self)
        entries = try map.read { reader throws(CompactFault) in
            var entries: [(Range<Int>, Int)] = []
            reader.position = start
            while try reader.peek() != CompactTag.end {
                guard let key = try reader.textSpan() else { throw CompactFault(description: "a key is not a text") }
                entries.append((key, reader.position))
                try reader.skip()
            }
            return entries
        }
    }

    var allKeys: [Key] {
        entries.compactMap { entry in String(validating: map.input.bytes[entry.key], as: UTF8.self).flatMap { Key(stringValue: $0) } }
    }

    /// The index of a key's entry; of two with the same key, the same one until one of them is decoded.
    private func index(of key: some CodingKey) -> Int? {
        let name = key.stringValue
        let isIt = { (index: Int) in
            let found = entries[index].key
            return found.count == name.utf8.count && map.input.bytes[found].elementsEqual(name.utf8)
        }
        return (next.index..<entries.count).first(where: isIt) ?? (0..<next.index).first(where: isIt)
    }

    private func value(_ key: some CodingKey, isLast: Bool = true) throws -> CompactDecoder {
        guard let index = index(of: key) else {
            throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: "there is no \(key.stringValue)"))
        }
        if isLast { next.index = index + 1 }
        return CompactDecoder(input: map.input, position: entries[index].value, key: key, outer: path)
    }

    func contains(_ key: Key) -> Bool { index(of: key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try value(key, isLast: false).decodeNil() }
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
    func superDecoder() throws -> any Decoder { try value(SuperKey.base) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try value(key) }
}

/// The place of a value in a list.
private struct IndexKey: CodingKey {
    private let index: Int
    init(_ index: Int) { self.index = index }
    init?(intValue: Int) { index = intValue }
    init?(stringValue: String) { return nil }
    var intValue: Int? { index }
    var stringValue: String { "\(index)" }
}
