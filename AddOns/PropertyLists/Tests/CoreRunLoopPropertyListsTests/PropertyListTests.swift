// SPDX-License-Identifier: Apache-2.0
//
// Trees: literals, parts, bytes in each format, and bytes that nobody should believe.

import CCoreRunLoop
import CoreRunLoop
import CoreRunLoopPropertyLists
import Testing

let everything: PropertyList = [
    "text": "a & b < c", "empty": "", "umlaut": "ö 語 \u{1F600}", "whole": 42, "negative": -7, "largest": .integer(.max),
    "least": .integer(.min), "real": 0.1, "huge": 1e300, "yes": true, "no": false,
    "date": .date(WallTime(timeIntervalSinceReferenceDate: 700_000_000)), "data": .data([0, 1, 254, 255]), "nothing": .data([]),
    "array": [1, "two", [3.5, []]], "dictionary": ["": "empty key", "inner": [:]],
]

private func nested(_ depth: Int) -> PropertyList {
    var tree: PropertyList = .array([])
    for _ in 1..<depth { tree = .array([tree]) }
    return tree
}

@Suite struct `A property list` {
    @Test func `has the values of its literal`() {
        #expect(everything["text"] == .string("a & b < c"))
        #expect(everything["whole"]?.integer == 42)
        #expect(everything["whole"]?.real == 42)
        #expect(everything["real"]?.real == 0.1)
        #expect(everything["real"]?.integer == nil)
        #expect(everything["yes"]?.boolean == true)
        #expect(everything["date"]?.date == WallTime(timeIntervalSinceReferenceDate: 700_000_000))
        #expect(everything["data"]?.data == [0, 1, 254, 255])
        #expect(everything["array"]?[2]?[0] == 3.5)
        #expect(everything["array"]?.array?.count == 3)
        #expect(everything["array"]?[3] == nil)
        #expect(everything["array"]?[-1] == nil)
        #expect(everything["array"]?["text"] == nil)
        #expect(everything[0] == nil)
        #expect(everything["dictionary"]?.dictionary?.count == 2)
    }

    @Test func `is changed by its keys`() {
        var tree: PropertyList = ["a": 1]
        tree["b"] = "\("two")"
        tree["a"] = nil
        tree["c"] = ["d": 1]
        tree["c"]?["d"] = 2
        #expect(tree == ["b": "two", "c": ["d": 2]])
        var other: PropertyList = 1
        other["a"] = nil
        #expect(other == 1)
        other["a"] = 2
        #expect(other == ["a": 2])
    }

    @Test(arguments: [PropertyList.Format.xml, .binary])
    func `is the same after it was written and read`(format: PropertyList.Format) throws {
        let read = try PropertyList.read(everything.bytes(as: format))
        #expect(read.tree == everything)
        #expect(read.format == format)
        for leaf in [PropertyList.string("x"), 1, 1.5, true, .data([1]), [], [:]] {
            #expect(try PropertyList(bytes: leaf.bytes(as: format)) == leaf)
        }
    }

    @Test func `keeps how a text composes its characters`() throws {
        let tree: PropertyList = ["e\u{301}", "\u{E9}", "e\u{301}"]
        let read = try PropertyList(bytes: tree.bytes())
        #expect(read.array?.map { Array($0.string!.utf8) } == tree.array?.map { Array($0.string!.utf8) })
    }

    @Test func `writes equal texts once in the binary format`() throws {
        let long = String(repeating: "x", count: 1000)
        #expect(try PropertyList.array([.string(long), .string(long), .string(long)]).bytes().count < 1100)
    }

    @Test func `is read in the old format, and not written`() throws {
        let read = try PropertyList.read(Array("{ a = (b, <00ff>); \"c d\" = {}; }".utf8))
        #expect(read.tree == ["a": ["b", .data([0, 255])], "c d": [:]])
        #expect(read.format == .openStep)
        #expect(throws: PropertyListError.self) { try everything.bytes(as: .openStep) }
    }

    @Test func `says why and on which line bytes are none`() throws {
        let bytes = Array("<plist>\n<array>\n<integer>one</integer>\n</array></plist>".utf8)
        let error = #expect(throws: PropertyListError.self) { try PropertyList(bytes: bytes) }
        guard case .malformed(let line, let reason) = error else { throw try #require(error) }
        #expect(line == 3)
        #expect(reason.contains("line 3"))
        #expect("\(try #require(error))" == reason)
        let empty = #expect(throws: PropertyListError.self) { try PropertyList(bytes: []) }
        guard case .malformed(nil, _) = empty else { throw try #require(empty) }
    }

    @Test(arguments: [PropertyList.Format.xml, .binary]) func `has so many levels and no more`(format: PropertyList.Format) throws {
        let deepest = nested(PropertyList.deepest)
        #expect(try PropertyList(bytes: deepest.bytes(as: format)) == deepest)
        #expect(throws: PropertyListError.unwritable(reason: "A property list has more than 512 levels")) {
            try PropertyList.array([deepest]).bytes(as: format)
        }
        #expect(throws: PropertyListError.self) { try PropertyList(bytes: Array(repeating: UInt8(ascii: "("), count: 100_000)) }
    }

    /// Each array has the next one twice.
    @Test func `is not made of a few bytes that stand for very many`() {
        let depth: UInt8 = 60
        var bytes = Array("bplist00".utf8)
        for number in 0..<depth { bytes += [0xA2, number + 1, number + 1] }
        bytes.append(0xA0)
        let table = UInt8(bytes.count)
        bytes += (0...depth).map { 8 + 3 * $0 }
        bytes += [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, depth + 1] + [0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, table]
        #expect(throws: PropertyListError.self) { try PropertyList(bytes: bytes) }
    }

    /// A long text to which a long array refers again and again.
    @Test func `takes little memory for a text that occurs often`() throws {
        let text = String(repeating: "x", count: 10_000)
        let bytes = try PropertyList.array(Array(repeating: .string(text), count: 1000)).bytes()
        #expect(bytes.count < 50_000)
        #expect(try PropertyList(bytes: bytes)[999] == .string(text))
    }

    @Test func `has U+FFFD for half of a surrogate pair`() throws {
        let bytes =
            Array("bplist00".utf8) + [0x62, 0xD8, 0x00, 0x00, 0x61, 8] + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 1]
            + [0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, 13]
        #expect(try PropertyList(bytes: bytes) == "\u{FFFD}a")
    }

    @Test func `is made of C objects, and they of it`() throws {
        let copy = unsafe try everything.withObject { object in
            Result { () throws(PropertyListError) in unsafe try PropertyList(object) }
        }
        #expect(try copy.get() == everything)
        #expect(throws: PropertyListError.self) { try unsafe PropertyList(unsafeBitCast(CFNullGetNull(), to: CFTypeRef.self)) }
    }
}

private func CFNullGetNull() -> CFNull { kCFNull }
