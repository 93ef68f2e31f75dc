// SPDX-License-Identifier: Apache-2.0

public import CoreRunLoop

/// A value that is one of a property list's own, where ``PropertyList/Encoder`` and ``PropertyList/Decoder`` meet it.
///
/// `WallTime` is a date, and `[UInt8]` is data. A program that has Foundation can say the same of its types:
///
/// ```swift
/// import Foundation
///
/// extension Foundation.Date: @retroactive PropertyListConvertible {
///     public var propertyList: PropertyList {
///         .date(WallTime(timeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate))
///     }
///     public init?(propertyList: PropertyList) {
///         guard let date = propertyList.date else { return nil }
///         self.init(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate)
///     }
/// }
/// ```
public protocol PropertyListConvertible {
    /// The value.
    var propertyList: PropertyList { get }

    /// Makes the value of a tree; `nil` if it is none.
    init?(propertyList: PropertyList)
}

extension PropertyList: PropertyListConvertible {
    /// The tree itself.
    public var propertyList: PropertyList { self }

    /// The tree itself.
    public init(propertyList: PropertyList) { self = propertyList }
}

extension WallTime: PropertyListConvertible, Codable {
    /// A date.
    public var propertyList: PropertyList { .date(self) }

    /// Makes the date of a tree; `nil` if it is none.
    public init?(propertyList: PropertyList) {
        guard let date = propertyList.date else { return nil }
        self = date
    }

    /// Decodes the seconds since 2001, in formats without dates.
    public init(from decoder: any Decoder) throws {
        self.init(timeIntervalSinceReferenceDate: try decoder.singleValueContainer().decode(Double.self))
    }

    /// Encodes the seconds since 2001, in formats without dates.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(timeIntervalSinceReferenceDate)
    }
}

extension PropertyList: Codable {
    /// Decodes what another format has. There are no dates and data among it: what ``encode(to:)`` has made of them comes as numbers.
    public init(from decoder: any Swift.Decoder) throws {
        let value = try decoder.singleValueContainer()
        if let isTrue = try? value.decode(Bool.self) {
            self = .boolean(isTrue)
        } else if let number = try? value.decode(Int64.self) {
            self = .integer(number)
        } else if let number = try? value.decode(Double.self) {
            self = .real(number)
        } else if let text = try? value.decode(String.self) {
            self = .string(text)
        } else if let values = try? value.decode([PropertyList].self) {
            self = .array(values)
        } else {
            self = .dictionary(try value.decode([String: PropertyList].self))
        }
    }

    /// Encodes the value in another format. A date becomes a number of seconds since 2001, and data becomes numbers.
    public func encode(to encoder: any Swift.Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .string(let text): try container.encode(text)
        case .integer(let number): try container.encode(number)
        case .real(let number): try container.encode(number)
        case .boolean(let isTrue): try container.encode(isTrue)
        case .date(let date): try container.encode(date)
        case .data(let bytes): try container.encode(bytes)
        case .array(let values): try container.encode(values)
        case .dictionary(let values): try container.encode(values)
        }
    }
}
