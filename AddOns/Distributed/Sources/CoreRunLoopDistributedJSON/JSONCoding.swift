// SPDX-License-Identifier: Apache-2.0

public import CoreRunLoopDistributed
import Foundation

/// JSON, for calls that other programs read or write, or that are easier to look at. Larger and slower than ``CompactCoding``.
public struct JSONCoding: ActorCoding {
    /// Makes the coding.
    public init() {}

    /// The coding's name.
    public var name: String { "json" }

    /// Appends a value's bytes. Throws what `JSONEncoder` throws.
    public func encode<Value: Encodable>(_ value: Value, into bytes: inout [UInt8], userInfo: [CodingUserInfoKey: any Sendable]) throws {
        let encoder = JSONEncoder()
        encoder.userInfo = userInfo
        bytes.append(contentsOf: try encoder.encode(value))
    }

    /// Returns the value of all these bytes. Throws what `JSONDecoder` throws.
    public func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: ArraySlice<UInt8>, userInfo: [CodingUserInfoKey: any Sendable]
    ) throws -> Value {
        let decoder = JSONDecoder()
        decoder.userInfo = userInfo
        return try decoder.decode(type, from: Data(bytes))
    }
}
