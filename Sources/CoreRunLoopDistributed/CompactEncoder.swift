// SPDX-License-Identifier: Apache-2.0
//
// Encodes values as CompactFormat says, straight into one array. Containers are written as they are filled: when one is used again, those
// that were opened inside of it are closed. A type that goes on with a container which was closed that way gets an error.

/// The bytes that come of a value, and the containers that are open.
final class CompactOutput {
    var bytes: [UInt8] = []
    let userInfo: [CodingUserInfoKey: any Sendable]
    /// The open containers, the innermost last.
    private var open: [(number: Int, tag: UInt8)] = []
    private var lastNumber = 0

    init(_ userInfo: [CodingUserInfoKey: any Sendable]) { self.userInfo = userInfo }

    /// Encodes a whole value.
    func encode<Value: Encodable>(_ value: Value) throws {
        let (depth, start) = (open.count, bytes.count)
        if Value.self == [UInt8].self, let value = value as? [UInt8] {
            bytes.append(CompactTag.bytes)
            bytes.append(varint: UInt64(value.count))
            bytes.append(contentsOf: value)
            return
        }
        if depth > compactDeepest {
            throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: "more than \(compactDeepest) levels"))
        }
        try value.encode(to: CompactEncoder(self))
        close(to: depth)
        if bytes.count == start { begin(CompactTag.map, at: depth) }  // a type without properties encodes nothing
        close(to: depth)
    }

    /// Opens a container at a depth, and returns its number.
    @discardableResult
    func begin(_ tag: UInt8, at depth: Int) -> Int {
        close(to: depth)
        bytes.append(tag)
        lastNumber += 1
        open.append((lastNumber, tag))
        return lastNumber
    }

    /// Opens the container of a value at a depth, or goes on with it, as a class and its base class may share one. Returns its number; 0,
    /// which no container has, when the value already has one of the other kind.
    func container(_ tag: UInt8, at depth: Int) -> Int {
        if depth == open.count { return begin(tag, at: depth) }
        return open[depth].tag == tag ? open[depth].number : 0
    }

    var depth: Int { open.count }

    func close(to depth: Int) {
        while open.count > depth {
            bytes.append(CompactTag.end)
            open.removeLast()
        }
    }

    /// Closes what was opened inside of a container.
    func goOn(_ number: Int, at depth: Int) throws {
        guard depth < open.count, open[depth].number == number else {
            throw EncodingError.invalidValue(
                self, .init(codingPath: [], debugDescription: "a container is used again after one around it was"))
        }
        close(to: depth + 1)
    }
}

/// What a value is asked to encode itself to. Also what a base class gets, as a value of its own.
struct CompactEncoder: Encoder {
    private let output: CompactOutput
    private let depth: Int
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { output.userInfo }

    init(_ output: CompactOutput) {
        self.output = output
        depth = output.depth
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(CompactKeyedEncoder(output, depth, output.container(CompactTag.map, at: depth)))
    }
    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        CompactListEncoder(output, depth, output.container(CompactTag.list, at: depth))
    }
    func singleValueContainer() -> any SingleValueEncodingContainer { CompactValueEncoder(output: output) }
}

/// Writes scalars, which are the same everywhere.
protocol CompactScalars {
    /// Gets ready for one more value.
    mutating func next() throws -> CompactOutput
}

extension CompactScalars {
    mutating func put(_ value: Bool) throws { try next().bytes.append(value ? CompactTag.yes : CompactTag.no) }
    mutating func put(_ value: String) throws { try next().bytes.append(compact: value) }
    mutating func put(_ value: some FixedWidthInteger) throws { try next().bytes.append(compact: value) }
    mutating func putNil() throws { try next().bytes.append(CompactTag.none) }
    mutating func put(_ value: Float) throws {
        let output = try next()
        output.bytes.append(CompactTag.float)
        output.bytes.append(value.bitPattern)
    }
    mutating func put(_ value: Double) throws {
        let output = try next()
        output.bytes.append(CompactTag.double)
        output.bytes.append(value.bitPattern)
    }
}

private struct CompactValueEncoder: SingleValueEncodingContainer, CompactScalars {
    let output: CompactOutput
    var codingPath: [any CodingKey] { [] }
    func next() -> CompactOutput { output }

    mutating func encodeNil() throws { try putNil() }
    mutating func encode(_ value: Bool) throws { try put(value) }
    mutating func encode(_ value: String) throws { try put(value) }
    mutating func encode(_ value: Double) throws { try put(value) }
    mutating func encode(_ value: Float) throws { try put(value) }
    mutating func encode(_ value: Int) throws { try put(value) }
    mutating func encode(_ value: Int8) throws { try put(value) }
    mutating func encode(_ value: Int16) throws { try put(value) }
    mutating func encode(_ value: Int32) throws { try put(value) }
    mutating func encode(_ value: Int64) throws { try put(value) }
    mutating func encode(_ value: UInt) throws { try put(value) }
    mutating func encode(_ value: UInt8) throws { try put(value) }
    mutating func encode(_ value: UInt16) throws { try put(value) }
    mutating func encode(_ value: UInt32) throws { try put(value) }
    mutating func encode(_ value: UInt64) throws { try put(value) }
    mutating func encode<Value: Encodable>(_ value: Value) throws { try output.encode(value) }
}

private struct CompactListEncoder: UnkeyedEncodingContainer, CompactScalars {
    let output: CompactOutput
    private let depth: Int
    private let number: Int
    private(set) var count = 0
    var codingPath: [any CodingKey] { [] }

    init(_ output: CompactOutput, _ depth: Int, _ number: Int) {
        self.output = output
        self.depth = depth
        self.number = number
    }

    mutating func next() throws -> CompactOutput {
        try output.goOn(number, at: depth)
        count += 1
        return output
    }

    mutating func encodeNil() throws { try putNil() }
    mutating func encode(_ value: Bool) throws { try put(value) }
    mutating func encode(_ value: String) throws { try put(value) }
    mutating func encode(_ value: Double) throws { try put(value) }
    mutating func encode(_ value: Float) throws { try put(value) }
    mutating func encode(_ value: Int) throws { try put(value) }
    mutating func encode(_ value: Int8) throws { try put(value) }
    mutating func encode(_ value: Int16) throws { try put(value) }
    mutating func encode(_ value: Int32) throws { try put(value) }
    mutating func encode(_ value: Int64) throws { try put(value) }
    mutating func encode(_ value: UInt) throws { try put(value) }
    mutating func encode(_ value: UInt8) throws { try put(value) }
    mutating func encode(_ value: UInt16) throws { try put(value) }
    mutating func encode(_ value: UInt32) throws { try put(value) }
    mutating func encode(_ value: UInt64) throws { try put(value) }
    mutating func encode<Value: Encodable>(_ value: Value) throws { try next().encode(value) }

    // These cannot throw. If the container was closed, its inner one was never opened, and says so when it is filled.
    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        _ = try? next()
        return KeyedEncodingContainer(CompactKeyedEncoder(output, depth + 1, output.begin(CompactTag.map, at: depth + 1)))
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        _ = try? next()
        return CompactListEncoder(output, depth + 1, output.begin(CompactTag.list, at: depth + 1))
    }
    mutating func superEncoder() -> any Encoder {
        _ = try? next()
        return CompactEncoder(output)
    }
}

private struct CompactKeyedEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    private let output: CompactOutput
    private let depth: Int
    private let number: Int
    var codingPath: [any CodingKey] { [] }

    init(_ output: CompactOutput, _ depth: Int, _ number: Int) {
        self.output = output
        self.depth = depth
        self.number = number
    }

    /// Writes a key, after which one value has to come.
    private func value(of key: some CodingKey) throws -> CompactValueEncoder {
        try output.goOn(number, at: depth)
        output.bytes.append(compact: key.stringValue)
        return CompactValueEncoder(output: output)
    }

    mutating func encodeNil(forKey key: Key) throws { var at = try value(of: key); try at.putNil() }
    mutating func encode(_ value: Bool, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: String, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: Double, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: Float, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: Int, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: Int8, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: Int16, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: Int32, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: Int64, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: UInt, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: UInt8, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: UInt16, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: UInt32, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode(_ value: UInt64, forKey key: Key) throws { var at = try self.value(of: key); try at.put(value) }
    mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try self.value(of: key).output.encode(value) }

    // As for lists: these cannot throw.
    mutating func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedEncodingContainer<Inner> {
        _ = try? value(of: key)
        return KeyedEncodingContainer(CompactKeyedEncoder<Inner>(output, depth + 1, output.begin(CompactTag.map, at: depth + 1)))
    }
    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        _ = try? value(of: key)
        return CompactListEncoder(output, depth + 1, output.begin(CompactTag.list, at: depth + 1))
    }
    mutating func superEncoder() -> any Encoder { superEncoder(of: SuperKey.base) }
    mutating func superEncoder(forKey key: Key) -> any Encoder { superEncoder(of: key) }
    private func superEncoder(of key: some CodingKey) -> any Encoder {
        _ = try? value(of: key)
        return CompactEncoder(output)
    }
}

/// The key of a base class's value.
enum SuperKey: String, CodingKey { case base = "super" }
