// SPDX-License-Identifier: Apache-2.0

/// How the arguments and results of calls become bytes. Systems that call each other have the same coding.
///
/// Bytes come from other processes: decoding must end with an error for whatever is malformed, and must not use more memory than the bytes
/// warrant.
public protocol ActorCoding: Sendable {
    /// The coding's name, which each call carries.
    var name: String { get }

    /// Appends a value's bytes. `userInfo` goes to the encoder, for actors and streams among the values.
    ///
    /// - Throws: Any error, with which the call ends. What was appended by then is dropped.
    func encode<Value: Encodable>(_ value: Value, into bytes: inout [UInt8], userInfo: [CodingUserInfoKey: any Sendable]) throws

    /// Returns the value of all these bytes. `userInfo` goes to the decoder.
    ///
    /// - Throws: Any error, for bytes that are no such value. Its text goes to the caller.
    func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: ArraySlice<UInt8>, userInfo: [CodingUserInfoKey: any Sendable]
    ) throws -> Value
}

/// The coding of this package: binary, with the names of properties, so that a type may get new optional ones.
///
/// A decoder takes nothing that has more than 64 levels.
public struct CompactCoding: ActorCoding {
    /// Makes the coding.
    public init() {}

    /// The coding's name.
    public var name: String { "compact" }

    /// Appends a value's bytes.
    ///
    /// - Throws: What the value's own code throws; `EncodingError` for a value that has more than 64 levels, or encodes two things at the
    ///   place of one, also where that code ignores the error. The bytes are of no use then.
    public func encode<Value: Encodable>(
        _ value: Value, into bytes: inout [UInt8], userInfo: [CodingUserInfoKey: any Sendable] = [:]
    ) throws {
        if Value.self == [UInt8].self, let value = value as? [UInt8] { return bytes.append(compact: value) }
        let output = CompactOutput(userInfo)
        swap(&output.bytes, &bytes)
        defer { swap(&output.bytes, &bytes) }
        try output.encode(value)
    }

    /// Returns the value of all these bytes.
    ///
    /// - Throws: `DecodingError`, which says where the bytes are wrong, and what the value's own code throws.
    public func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: ArraySlice<UInt8>, userInfo: [CodingUserInfoKey: any Sendable] = [:]
    ) throws -> Value {
        try CompactInput(bytes, userInfo).decodeWhole(type)
    }
}
