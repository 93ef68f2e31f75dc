// SPDX-License-Identifier: Apache-2.0
//
// Values to trees. Many of an encoder's functions cannot throw, and a type may ignore what others throw. So the first error stays, and the
// whole value ends with it.

extension PropertyList {
    /// Makes property lists of `Encodable` values, as Foundation's `PropertyListEncoder` does without this package.
    ///
    /// `[UInt8]` becomes data, and `WallTime` a date. An optional property without a value has no key, and nothing in an array is the text
    /// `$null`.
    public struct Encoder: Sendable {
        /// How the tree is written.
        public var format: Format
        /// What goes to the values' own code.
        public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

        /// Makes an encoder.
        public init(format: Format = .binary) { self.format = format }

        /// The bytes of a value.
        ///
        /// - Throws: `EncodingError` for a number that 64 bits with a sign do not hold, for more than ``PropertyList/deepest`` levels, and
        ///   for two things at the place of one; ``PropertyListError/unwritable(reason:)``; what the value's own code throws.
        public func encode<Value: Encodable>(_ value: Value) throws -> [UInt8] { try tree(of: value).bytes(as: format) }

        /// The tree of a value.
        ///
        /// - Throws: As ``encode(_:)``.
        public func tree<Value: Encodable>(of value: Value) throws -> PropertyList {
            let state = EncodingState(userInfo)
            let part = try state.encode(value, at: nil)
            if let error = state.error { throw error }
            return part.tree
        }
    }
}

/// What the encoders of one value share.
private final class EncodingState {
    let userInfo: [CodingUserInfoKey: Any]
    private(set) var error: (any Error)?

    init(_ userInfo: [CodingUserInfoKey: any Sendable]) { self.userInfo = userInfo }

    /// Notes what the whole value ends with. Returns the first error.
    @discardableResult
    func fail(_ error: any Error) -> any Error {
        self.error = self.error ?? error
        return self.error!
    }

    @discardableResult
    func refuse(_ value: Any, _ text: String, at place: CodingPlace?) -> any Error {
        fail(EncodingError.invalidValue(value, .init(codingPath: CodingPlace.path(place), debugDescription: text)))
    }

    func encode<Value: Encodable>(_ value: Value, at place: CodingPlace?) throws -> EncodedPart {
        if let error { throw error }
        if Value.self == [UInt8].self, let bytes = value as? [UInt8] { return .tree(.data(bytes)) }
        if let value = value as? any PropertyListConvertible { return .tree(value.propertyList) }
        if place?.depth ?? 0 > PropertyList.deepest { throw tooDeep(value, at: place) }
        let node = EncodingNode(self, place)
        do { try value.encode(to: node) } catch { throw fail(error) }
        return .node(node)
    }

    func tooDeep(_ value: Any, at place: CodingPlace?) -> any Error {
        refuse(value, "the value has more than \(PropertyList.deepest) levels", at: place)
    }

    func integer<Value: FixedWidthInteger>(_ value: Value, at place: () -> CodingPlace?) throws -> EncodedPart {
        guard let number = Int64(exactly: value) else {
            throw refuse(value, "\(value) does not fit 64 bits with a sign", at: place())
        }
        return .tree(.integer(number))
    }
}

/// A value that is encoded, or may still be filled.
private enum EncodedPart {
    case tree(PropertyList)
    case node(EncodingNode)

    var tree: PropertyList {
        switch self {
        case .tree(let tree): tree
        case .node(let node): node.tree
        }
    }
}

/// The place of one value. A type that encodes nothing has an empty dictionary.
private final class EncodingNode: Encoder {
    enum Content {
        case nothing
        case part(EncodedPart)
        case list([EncodedPart])
        case map([String: EncodedPart])
    }
    let state: EncodingState
    let place: CodingPlace?
    var content = Content.nothing
    var codingPath: [any CodingKey] { CodingPlace.path(place) }
    var userInfo: [CodingUserInfoKey: Any] { state.userInfo }

    init(_ state: EncodingState, _ place: CodingPlace?) {
        self.state = state
        self.place = place
        if place?.depth ?? 0 > PropertyList.deepest { _ = state.tooDeep("a container", at: place) }
    }

    var tree: PropertyList {
        switch content {
        case .nothing: .dictionary([:])
        case .part(let part): part.tree
        case .list(let parts): .array(parts.map(\.tree))
        case .map(let parts): .dictionary(parts.mapValues(\.tree))
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        switch content {
        case .nothing: content = .map([:])
        case .map: break
        default: _ = twice()
        }
        return KeyedEncodingContainer(KeyedEncoder(node: self))
    }
    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        switch content {
        case .nothing: content = .list([])
        case .list: break
        default: _ = twice()
        }
        return ListEncoder(node: self)
    }
    func singleValueContainer() -> any SingleValueEncodingContainer { ValueEncoder(node: self) }

    /// Sets the only value.
    func set(_ part: EncodedPart) throws {
        guard case .nothing = content else { throw twice() }
        content = .part(part)
    }

    func append(_ part: EncodedPart) throws {
        guard case .list(var parts) = content else { throw twice() }
        content = .nothing  // so that the array is not shared, and not copied
        parts.append(part)
        content = .list(parts)
    }

    func set(_ part: EncodedPart, for key: some CodingKey) throws {
        guard case .map(var parts) = content else { throw twice() }
        content = .nothing
        parts[key.stringValue] = part
        content = .map(parts)
    }

    var count: Int { if case .list(let parts) = content { parts.count } else { 0 } }

    private func twice() -> any Error { state.refuse("a value", "two values at the place of one", at: place) }
}

/// Containers without keys: each function encodes the next value.
private protocol SequenceEncoder {
    var node: EncodingNode { get }
    var nextPlace: CodingPlace? { get }
    func put(_ part: EncodedPart) throws
}

extension SequenceEncoder {
    func encodeNil() throws { try put(.tree(.string(textForNothing))) }
    func encode(_ value: Bool) throws { try put(.tree(.boolean(value))) }
    func encode(_ value: String) throws { try put(.tree(.string(value))) }
    func encode(_ value: Double) throws { try put(.tree(.real(value))) }
    func encode(_ value: Float) throws { try put(.tree(.real(Double(value)))) }
    func encode<Value: FixedWidthInteger & Encodable>(_ value: Value) throws { try put(node.state.integer(value, at: { nextPlace })) }
    func encode<Value: Encodable>(_ value: Value) throws { try put(node.state.encode(value, at: nextPlace)) }
}

private struct ValueEncoder: SingleValueEncodingContainer, SequenceEncoder {
    let node: EncodingNode
    var codingPath: [any CodingKey] { node.codingPath }
    var nextPlace: CodingPlace? { node.place }

    func put(_ part: EncodedPart) throws { try node.set(part) }
}

private struct ListEncoder: UnkeyedEncodingContainer, SequenceEncoder {
    let node: EncodingNode
    var codingPath: [any CodingKey] { node.codingPath }
    var count: Int { node.count }
    var nextPlace: CodingPlace? { CodingPlace(IndexKey(count), in: node.place) }

    func put(_ part: EncodedPart) throws { try node.append(part) }

    // These cannot throw. The state remembers the error.
    private func inner() -> EncodingNode {
        let inner = EncodingNode(node.state, nextPlace)
        try? put(.node(inner))
        return inner
    }
    func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> { inner().container(keyedBy: type) }
    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { inner().unkeyedContainer() }
    func superEncoder() -> any Encoder { inner() }
}

private struct KeyedEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: EncodingNode
    var codingPath: [any CodingKey] { node.codingPath }

    private func place(_ key: some CodingKey) -> CodingPlace { CodingPlace(key, in: node.place) }

    func encodeNil(forKey key: Key) throws { try node.set(.tree(.string(textForNothing)), for: key) }
    func encode(_ value: Bool, forKey key: Key) throws { try node.set(.tree(.boolean(value)), for: key) }
    func encode(_ value: String, forKey key: Key) throws { try node.set(.tree(.string(value)), for: key) }
    func encode(_ value: Double, forKey key: Key) throws { try node.set(.tree(.real(value)), for: key) }
    func encode(_ value: Float, forKey key: Key) throws { try node.set(.tree(.real(Double(value))), for: key) }
    func encode<Value: FixedWidthInteger & Encodable>(_ value: Value, forKey key: Key) throws {
        try node.set(node.state.integer(value, at: { place(key) }), for: key)
    }
    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        try node.set(node.state.encode(value, at: place(key)), for: key)
    }

    // As for lists: these cannot throw.
    private func inner(_ key: some CodingKey) -> EncodingNode {
        let inner = EncodingNode(node.state, place(key))
        try? node.set(.node(inner), for: key)
        return inner
    }
    func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedEncodingContainer<Inner> {
        inner(key).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { inner(key).unkeyedContainer() }
    func superEncoder() -> any Encoder { inner(SuperKey.base) }
    func superEncoder(forKey key: Key) -> any Encoder { inner(key) }
}
