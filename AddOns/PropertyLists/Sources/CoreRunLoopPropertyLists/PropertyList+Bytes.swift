// SPDX-License-Identifier: Apache-2.0
//
// Trees as bytes, by the C library's readers and writers.

import CCoreRunLoop
import CoreRunLoop

/// Why bytes are no property list, or a tree could not be written.
public enum PropertyListError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The bytes are no property list. The reason is a sentence, which names the line as well; the binary format has no lines.
    case malformed(line: Int?, reason: String)
    /// The tree cannot be written. The reason is a sentence.
    case unwritable(reason: String)

    /// The reason.
    public var description: String {
        switch self {
        case .malformed(_, let reason), .unwritable(let reason): reason
        }
    }
}

extension PropertyList {
    /// How a tree becomes bytes.
    public enum Format: Hashable, Sendable {
        /// Apple's XML. Dates have whole seconds in it.
        case xml
        /// Apple's binary format: shorter, and read and written faster.
        case binary
        /// The old format of OpenStep, which is read and not written. It has texts, bytes, arrays and dictionaries.
        case openStep
    }

    /// Reads a tree of bytes whose format is found by looking at them.
    ///
    /// Anybody may have written the bytes: whatever they are, reading ends with a tree or an error, and a tree has at most a constant times
    /// the length of the bytes.
    ///
    /// - Throws: ``PropertyListError/malformed(line:reason:)``.
    public init(bytes: [UInt8]) throws(PropertyListError) { self = try Self.read(bytes).tree }

    /// Reads a tree, as ``init(bytes:)`` does, and tells its format.
    ///
    /// - Throws: ``PropertyListError/malformed(line:reason:)``.
    public static func read(_ bytes: [UInt8]) throws(PropertyListError) -> (tree: PropertyList, format: Format) {
        var format = CFPropertyListFormat.xmlFormat_v1_0
        var error: CFError?
        let options = CFPropertyListMutabilityOptions.mutableContainers.rawValue
        guard let object = unsafe CFPropertyListCreateWithData(nil, bytes.cfData, options, &format, &error) else {
            throw .malformed(error)
        }
        defer { unsafe CFRelease(object) }
        var input = ObjectReader()
        let tree = unsafe try input.read(object)
        return (tree, format == .binaryFormat_v1_0 ? .binary : format == .xmlFormat_v1_0 ? .xml : .openStep)
    }

    /// The tree's bytes. XML has the keys of a dictionary in the order of their UTF-16 units.
    ///
    /// - Throws: ``PropertyListError/unwritable(reason:)``: for more than ``deepest`` levels, for ``Format/openStep``, and for a date that
    ///   XML cannot write.
    public func bytes(as format: Format = .binary) throws(PropertyListError) -> [UInt8] {
        let number: CFPropertyListFormat =
            switch format {
            case .xml: .xmlFormat_v1_0
            case .binary: .binaryFormat_v1_0
            case .openStep: .openStepFormat
            }
        var output = ObjectWriter()
        var error: CFError?
        let data = try output.withObject(of: self) { object in unsafe CFPropertyListCreateData(nil, object, number, 0, &error) }
        guard let data else { throw .unwritable(reason: error.reason) }
        return [UInt8](data)
    }
}

extension CFError? {
    fileprivate var reason: String {
        guard let self, let information = CFErrorCopyUserInfo(self) else { return "There is no memory" }
        let key: CFString = "NSDebugDescription"
        return withExtendedLifetime((information, key)) {
            let words = unsafe CFDictionaryGetValue(information, unsafeBitCast(key, to: CFTypeRef.self))
            return unsafe words.map { unsafe String(unsafeBitCast($0, to: CFString.self)) } ?? "There is no memory"
        }
    }
}

extension PropertyListError {
    /// The words end with the line.
    fileprivate static func malformed(_ error: CFError?) -> Self {
        let reason = error.reason
        let last = reason.split(separator: " ").suffix(3)
        let isLine = last.count == 3 && last.prefix(2).elementsEqual(["on", "line"])
        return .malformed(line: isLine ? last.last.flatMap { Int($0) } : nil, reason: reason)
    }
}
