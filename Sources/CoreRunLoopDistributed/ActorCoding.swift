// SPDX-License-Identifier: Apache-2.0

/// How the arguments and results of calls become bytes. Systems that call each other have the same coding.
///
/// Bytes come from other processes: decoding must end with an error for whatever is malformed, and must not use more memory than the bytes
/// warrant.
public protocol ActorCoding: Sendable {
    /// The coding's name, which each call carries.
    var name: String { get }

    /// Appends a value's bytes. `userInfo` goes to the encoder, for actors and streams among the values.
    func encode<Value: Encodable>(_ value: Value, into bytes: inout [UInt8], userInfo: [CodingUserInfoKey: any Sendable]) throws

    /// Returns the value of all these bytes. `userInfo` goes to the decoder.
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
    public func encode<Value: Encodable>(
        _ value: Value, into bytes: inout [UInt8], userInfo: [CodingUserInfoKey: any Sendable] = [:]
    ) throws {
        let output = CompactOutput(userInfo)
        swap(&output.bytes, &bytes)
        defer { swap(&output.bytes, &bytes) }
        try output.encode(value)
    }

    /// Returns the value of all these bytes.
    public func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: ArraySlice<UInt8>, userInfo: [CodingUserInfoKey: any Sendable] = [:]
    ) throws -> Value {
        try CompactInput(bytes, userInfo).decodeWhole(type)
    }
}
