// SPDX-License-Identifier: Apache-2.0
//
// Encodes values as CompactFormat says, straight into one array. Values and containers are written as they are filled: when a container is
// used again, what was opened inside of it is closed. A type that goes on with something closed, or encodes two things at the place of one,
// gets an error. Many of an encoder's functions cannot throw, and a type may ignore what others throw. So the first error stays, and the
// whole value ends with it.

/// Something open: its place in the list of all that is open, and a number that nothing else had.
struct CompactPlace {
    let depth: Int
    let number: Int
}

/// The bytes that come of a value, and what is open of it.
final class CompactOutput {
    enum Kind {
        /// The place of one value, whatever it will be.
        case value
        case list
        case map
    }
    private struct Open {
        let number: Int
        let kind: Kind
        /// Nothing was encoded at the place of this value.
        var isUnused = true
    }
    var bytes: [UInt8] = []
    let userInfo: [CodingUserInfoKey: any Sendable]
    /// The innermost last. A value's container follows the value.
    private var open: [Open] = []
    private var levels = 0
    private var lastNumber = 0
    private var error: (any Error)?

    init(_ userInfo: [CodingUserInfoKey: any Sendable]) { self.userInfo = userInfo }

    /// Encodes a whole value, at a place where one is expected.
    func encode<Value: Encodable>(_ value: Value) throws {
        if let error { throw error }
        if Value.self == [UInt8].self, let value = value as? [UInt8] {
            bytes.append(compact: value)
            return
        }
        let place = begin(.value)
        do { try value.encode(to: CompactEncoder(self, place)) } catch { fail(error) }
        close(to: place.depth)
        if let error { throw error }
    }

    /// Opens a value or a container inside of what is open.
    func begin(_ kind: Kind) -> CompactPlace {
        if kind != .value {
            if levels == compactDeepest { refuse("more than \(compactDeepest) levels") }
            levels += 1
            bytes.append(kind == .list ? CompactTag.list : CompactTag.map)
        }
        lastNumber += 1
        open.append(Open(number: lastNumber, kind: kind))
        return CompactPlace(depth: open.count - 1, number: lastNumber)
    }

    /// Opens the container of a value, or goes on with it, as a class and its base class may share one.
    func container(_ kind: Kind, of value: CompactPlace) -> CompactPlace {
        if isOpen(value) {
            let inner = value.depth + 1
            if open[value.depth].isUnused {
                open[value.depth].isUnused = false
                return begin(kind)
            }
            if inner < open.count, open[inner].kind == kind { return CompactPlace(depth: inner, number: open[inner].number) }
        }
        refuse("a value has a container of another kind, or was closed")
        return CompactPlace(depth: open.count, number: 0)  // is never open
    }

    /// Gets ready for the only scalar or value at the place of a value.
    func use(_ value: CompactPlace) throws {
        if let error { throw error }
        guard isOpen(value), open[value.depth].isUnused else {
            throw refuse("two values at the place of one, or one after its place was closed")
        }
        open[value.depth].isUnused = false
    }

    /// Gets ready for a further value of a container: closes what was opened inside of it.
    func goOn(_ container: CompactPlace) throws {
        if let error { throw error }
        guard isOpen(container) else { throw refuse("a container is used again after one around it was") }
        close(to: container.depth + 1)
    }

    private func isOpen(_ place: CompactPlace) -> Bool { place.depth < open.count && open[place.depth].number == place.number }

    private func close(to depth: Int) {
        while open.count > depth {
            let last = open.removeLast()
            if last.kind != .value {
                levels -= 1
                bytes.append(CompactTag.end)
            } else if last.isUnused {
                bytes.append(contentsOf: [CompactTag.map, CompactTag.end])  // a type without properties encodes nothing
            }
        }
    }

    @discardableResult
    func refuse(_ text: String) -> any Error {
        fail(EncodingError.invalidValue(text, .init(codingPath: [], debugDescription: text)))
    }

    /// Notes what the whole value ends with. Returns the first error.
    @discardableResult
    private func fail(_ error: any Error) -> any Error {
        if let first = self.error { return first }
        self.error = error
        return error
    }
}

/// What a value is asked to encode itself to. Also what a base class gets, as a value of its own.
struct CompactEncoder: Encoder {
    private let output: CompactOutput
    private let place: CompactPlace
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { output.userInfo }

    init(_ output: CompactOutput, _ place: CompactPlace) {
        self.output = output
        self.place = place
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(CompactKeyedEncoder(output, output.container(.map, of: place)))
    }
    func unkeyedContainer() -> any UnkeyedEncodingContainer { CompactListEncoder(output, output.container(.list, of: place)) }
    func singleValueContainer() -> any SingleValueEncodingContainer { CompactValueEncoder(output: output, place: place) }
}

extension CompactOutput {
    func put(_ value: Bool) { bytes.append(value ? CompactTag.yes : CompactTag.no) }
    func put(_ value: String) { bytes.append(compact: value) }
    func putNil() { bytes.append(CompactTag.none) }
    func put(_ value: Float) {
        bytes.append(CompactTag.float)
        bytes.append(value.bitPattern)
    }
    func put(_ value: Double) {
        bytes.append(CompactTag.double)
        bytes.append(value.bitPattern)
    }
    func put<Value: FixedWidthInteger>(_ value: Value) throws {
        if Value.bitWidth > 64, Int64(exactly: value) == nil, UInt64(exactly: value) == nil {
            throw refuse("\(value) has more than 64 bits")
        }
        bytes.append(compact: value)
    }
}

/// Containers without keys: each function encodes the next value.
private protocol CompactSequenceEncoder {
    /// Gets ready for one more value.
    mutating func next() throws -> CompactOutput
}

extension CompactSequenceEncoder {
    mutating func encodeNil() throws { try next().putNil() }
    mutating func encode(_ value: Bool) throws { try next().put(value) }
    mutating func encode(_ value: String) throws { try next().put(value) }
    mutating func encode(_ value: Double) throws { try next().put(value) }
    mutating func encode(_ value: Float) throws { try next().put(value) }
    mutating func encode<Value: FixedWidthInteger & Encodable>(_ value: Value) throws { try next().put(value) }
    mutating func encode<Value: Encodable>(_ value: Value) throws { try next().encode(value) }
}

private struct CompactValueEncoder: SingleValueEncodingContainer, CompactSequenceEncoder {
    let output: CompactOutput
    let place: CompactPlace
    var codingPath: [any CodingKey] { [] }

    func next() throws -> CompactOutput {
        try output.use(place)
        return output
    }
}

private struct CompactListEncoder: UnkeyedEncodingContainer, CompactSequenceEncoder {
    private let output: CompactOutput
    private let place: CompactPlace
    private(set) var count = 0
    var codingPath: [any CodingKey] { [] }

    init(_ output: CompactOutput, _ place: CompactPlace) {
        self.output = output
        self.place = place
    }

    mutating func next() throws -> CompactOutput {
        try output.goOn(place)
        count += 1
        return output
    }

    // These cannot throw. The output remembers the error.
    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        _ = try? next()
        return KeyedEncodingContainer(CompactKeyedEncoder(output, output.begin(.map)))
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        _ = try? next()
        return CompactListEncoder(output, output.begin(.list))
    }
    mutating func superEncoder() -> any Encoder {
        _ = try? next()
        return CompactEncoder(output, output.begin(.value))
    }
}

private struct CompactKeyedEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    private let output: CompactOutput
    private let place: CompactPlace
    var codingPath: [any CodingKey] { [] }

    init(_ output: CompactOutput, _ place: CompactPlace) {
        self.output = output
        self.place = place
    }

    /// Writes a key, after which one value has to come.
    private func next(_ key: some CodingKey) throws -> CompactOutput {
        try output.goOn(place)
        output.bytes.append(compact: key.stringValue)
        return output
    }

    mutating func encodeNil(forKey key: Key) throws { try next(key).putNil() }
    mutating func encode(_ value: Bool, forKey key: Key) throws { try next(key).put(value) }
    mutating func encode(_ value: String, forKey key: Key) throws { try next(key).put(value) }
    mutating func encode(_ value: Double, forKey key: Key) throws { try next(key).put(value) }
    mutating func encode(_ value: Float, forKey key: Key) throws { try next(key).put(value) }
    mutating func encode<Value: FixedWidthInteger & Encodable>(_ value: Value, forKey key: Key) throws { try next(key).put(value) }
    mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try next(key).encode(value) }

    // As for lists: these cannot throw.
    mutating func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedEncodingContainer<Inner> {
        _ = try? next(key)
        return KeyedEncodingContainer(CompactKeyedEncoder<Inner>(output, output.begin(.map)))
    }
    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        _ = try? next(key)
        return CompactListEncoder(output, output.begin(.list))
    }
    mutating func superEncoder() -> any Encoder { superEncoder(of: SuperKey.base) }
    mutating func superEncoder(forKey key: Key) -> any Encoder { superEncoder(of: key) }
    private func superEncoder(of key: some CodingKey) -> any Encoder {
        _ = try? next(key)
        return CompactEncoder(output, output.begin(.value))
    }
}

/// The key of a base class's value.
enum SuperKey: String, CodingKey { case base = "super" }
