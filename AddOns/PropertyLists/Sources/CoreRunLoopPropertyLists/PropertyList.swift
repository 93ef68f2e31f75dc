// SPDX-License-Identifier: Apache-2.0

public import CoreRunLoop

/// A tree of values, as it is kept in property lists: files in XML or in the binary format, and messages.
///
/// ```swift
/// let settings: PropertyList = ["volume": 11, "names": ["hall", "yard"], "ratio": 0.5]
/// let bytes = try settings.bytes(as: .xml)
/// let read = try PropertyList(bytes: bytes)
/// print(read["names"]?[0]?.string ?? "none")
/// ```
///
/// The UID of a keyed archive is a dictionary whose only key is `CF$UID`, and is written as a UID in the binary format.
public enum PropertyList: Hashable, Sendable {
    /// A text.
    case string(String)
    /// A whole number.
    case integer(Int64)
    /// A number with a fraction.
    case real(Double)
    /// A truth value.
    case boolean(Bool)
    /// A date.
    case date(WallTime)
    /// Bytes.
    case data([UInt8])
    /// Values in an order.
    case array([PropertyList])
    /// Values by name.
    case dictionary([String: PropertyList])

    /// How many containers there may be inside of each other, where a tree is read, written or made of another value.
    public static let deepest = 512
}

extension PropertyList {
    // MARK: What it is

    /// The text, `nil` if it is something else.
    public var string: String? { if case .string(let text) = self { text } else { nil } }

    /// The whole number, `nil` if it is something else.
    public var integer: Int64? { if case .integer(let number) = self { number } else { nil } }

    /// The number, whole or with a fraction; `nil` if it is something else.
    public var real: Double? {
        switch self {
        case .real(let number): number
        case .integer(let number): Double(number)
        default: nil
        }
    }

    /// The truth value, `nil` if it is something else.
    public var boolean: Bool? { if case .boolean(let isTrue) = self { isTrue } else { nil } }

    /// The date, `nil` if it is something else.
    public var date: WallTime? { if case .date(let date) = self { date } else { nil } }

    /// The bytes, `nil` if it is something else.
    public var data: [UInt8]? { if case .data(let bytes) = self { bytes } else { nil } }

    /// The values in their order, `nil` if it is no array.
    public var array: [PropertyList]? { if case .array(let values) = self { values } else { nil } }

    /// The values by name, `nil` if it is no dictionary.
    public var dictionary: [String: PropertyList]? { if case .dictionary(let values) = self { values } else { nil } }

    /// The value of a key: `nil` if there is none, or this is no dictionary. Setting one makes a dictionary of whatever was there, and
    /// setting `nil` removes the key from a dictionary.
    public subscript(key: String) -> PropertyList? {
        get { dictionary?[key] }
        set {
            guard var values = dictionary else {
                if let newValue { self = .dictionary([key: newValue]) }
                return
            }
            self = .boolean(false)  // so that the dictionary is not shared, and not copied
            values[key] = newValue
            self = .dictionary(values)
        }
    }

    /// The value at a place of an array: `nil` if there is none, or this is no array.
    public subscript(index: Int) -> PropertyList? {
        guard case .array(let values) = self, values.indices.contains(index) else { return nil }
        return values[index]
    }
}

extension PropertyList: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A text.
    public init(stringLiteral text: String) { self = .string(text) }

    /// A whole number.
    public init(integerLiteral number: Int64) { self = .integer(number) }

    /// A number with a fraction.
    public init(floatLiteral number: Double) { self = .real(number) }

    /// A truth value.
    public init(booleanLiteral isTrue: Bool) { self = .boolean(isTrue) }

    /// An array.
    public init(arrayLiteral values: PropertyList...) { self = .array(values) }

    /// A dictionary. Of two values with one key the last one counts.
    public init(dictionaryLiteral values: (String, PropertyList)...) {
        self = .dictionary(Dictionary(values, uniquingKeysWith: { $1 }))
    }
}
