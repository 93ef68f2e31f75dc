// SPDX-License-Identifier: Apache-2.0
//
// The bytes of CompactCoding, and of the frames of calls. A value begins with a tag; numbers are little endian.
//
//   00-7F            an integer from 0 to 127
//   80 81 82         nil, false, true
//   83 n             an integer of 128 or more: n, 7 bits a byte, the lowest first; all but the last byte have the highest bit
//   84 n             a negative integer: its complement as n
//   85 4 bytes       a Float
//   86 8 bytes       a Double
//   87 n bytes       a text of n bytes of UTF-8
//   88 n bytes       an array of bytes
//   89 values 8B     a list
//   8A pairs 8B      a map: each key is a text
//   A0-DF bytes      a text of 0 to 63 bytes

enum CompactTag {
    static let none: UInt8 = 0x80
    static let no: UInt8 = 0x81
    static let yes: UInt8 = 0x82
    static let unsigned: UInt8 = 0x83
    static let negative: UInt8 = 0x84
    static let float: UInt8 = 0x85
    static let double: UInt8 = 0x86
    static let text: UInt8 = 0x87
    static let bytes: UInt8 = 0x88
    static let list: UInt8 = 0x89
    static let map: UInt8 = 0x8A
    static let end: UInt8 = 0x8B
    static let shortText: UInt8 = 0xA0
    static let longestShortText = 63
}

/// How deep values may be nested.
let compactDeepest = 64

extension [UInt8] {
    /// Appends a number, 7 bits a byte.
    mutating func append(varint number: UInt64) {
        var rest = number
        while rest > 0x7F {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }

    /// Appends a number in so many bytes.
    mutating func append(_ number: some FixedWidthInteger) {
        for shift in stride(from: 0, to: number.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    /// Appends bytes as a value.
    mutating func append(compact value: [UInt8]) {
        append(CompactTag.bytes)
        append(varint: UInt64(value.count))
        append(contentsOf: value)
    }

    /// Appends a text as a value.
    mutating func append(compact text: String) {
        var text = text
        text.withUTF8 { utf8 in
            if utf8.count <= CompactTag.longestShortText {
                append(CompactTag.shortText + UInt8(utf8.count))
            } else {
                append(CompactTag.text)
                append(varint: UInt64(utf8.count))
            }
            unsafe append(contentsOf: utf8)
        }
    }

    /// Appends an integer as a value.
    mutating func append(compact integer: some FixedWidthInteger) {
        if integer >= 0 {
            let number = UInt64(integer)
            if number > 0x7F { append(CompactTag.unsigned) }
            append(varint: number)
        } else {
            append(CompactTag.negative)
            append(varint: UInt64(truncatingIfNeeded: ~Int64(integer)))
        }
    }
}

/// What is wrong with bytes.
struct CompactFault: Error, CustomStringConvertible { let description: String }

/// Reads tags, numbers and texts from bytes that anybody may have written. Never reads beyond their end.
struct CompactReader {
    let bytes: ArraySlice<UInt8>
    var position: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    var isAtEnd: Bool { position == bytes.endIndex }
    var left: Int { bytes.endIndex - position }

    func peek() throws(CompactFault) -> UInt8 {
        if isAtEnd { throw CompactFault(description: "the bytes end too soon") }
        return bytes[position]
    }

    mutating func byte() throws(CompactFault) -> UInt8 {
        let byte = try peek()
        position += 1
        return byte
    }

    mutating func varint() throws(CompactFault) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            let byte = try byte()
            if shift == 63 && byte > 1 { break }
            number |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return number }
        }
        throw CompactFault(description: "a number has more than 64 bits")
    }

    /// Reads a count of bytes, and moves over them.
    mutating func span() throws(CompactFault) -> Range<Int> {
        let count = try varint()
        if count > UInt64(left) { throw CompactFault(description: "the bytes end too soon") }
        defer { position += Int(count) }
        return position..<position + Int(count)
    }

    mutating func fixed<Number: FixedWidthInteger>(_ type: Number.Type) throws(CompactFault) -> Number {
        let size = Number.bitWidth / 8
        if left < size { throw CompactFault(description: "the bytes end too soon") }
        var number: Number = 0
        for index in 0..<size { number |= Number(truncatingIfNeeded: bytes[position + index]) << (8 * index) }
        position += size
        return number
    }

    /// Reads the text that begins here; `nil`, without moving, if something else does.
    mutating func textSpan() throws(CompactFault) -> Range<Int>? {
        let tag = try peek()
        if tag == CompactTag.text {
            position += 1
            return try span()
        }
        let count = Int(tag) - Int(CompactTag.shortText)
        guard (0...CompactTag.longestShortText).contains(count) else { return nil }
        if left <= count { throw CompactFault(description: "the bytes end too soon") }
        defer { position += 1 + count }
        return position + 1..<position + 1 + count
    }

    mutating func text() throws(CompactFault) -> String {
        guard let span = try textSpan() else { throw CompactFault(description: "a text is expected") }
        return try string(span)
    }

    func string(_ span: Range<Int>) throws(CompactFault) -> String {
        guard let text = String(validating: bytes[span], as: UTF8.self) else { throw CompactFault(description: "a text is not UTF-8") }
        return text
    }

    /// Moves over one value, whatever it is.
    mutating func skip() throws(CompactFault) {
        // One bit for each open container, the innermost lowest: whether it is a map. A key is expected where `wantsKey`.
        var open: [Bool] = []
        repeat {
            if let isMap = open.last {
                if try peek() == CompactTag.end {
                    position += 1
                    open.removeLast()
                    continue
                }
                if isMap, try textSpan() == nil { throw CompactFault(description: "a key is not a text") }
            }
            if let isMap = try skipHead() {
                if open.count == compactDeepest { throw CompactFault(description: "more than \(compactDeepest) levels") }
                open.append(isMap)
            }
        } while !open.isEmpty
    }

    /// Moves over a tag and what belongs to it. Returns whether it begins a map, or `nil` if it begins nothing.
    private mutating func skipHead() throws(CompactFault) -> Bool? {
        if try textSpan() != nil { return nil }
        let tag = try byte()
        switch tag {
        case 0...0x7F, CompactTag.none, CompactTag.no, CompactTag.yes: return nil
        case CompactTag.unsigned, CompactTag.negative: _ = try varint()
        case CompactTag.float: _ = try fixed(UInt32.self)
        case CompactTag.double: _ = try fixed(UInt64.self)
        case CompactTag.bytes: _ = try span()
        case CompactTag.list: return false
        case CompactTag.map: return true
        default: throw CompactFault(description: "there is no value of the tag \(tag)")
        }
        return nil
    }
}
