// SPDX-License-Identifier: Apache-2.0
//
// The compact coding: values and back, the bytes as CompactFormat.swift says, and bytes that nobody should believe.

import CoreRunLoopDistributed
import Testing

private struct Point: Codable, Hashable {
    var x: Int
    var y: Int?
}

private struct NewerPoint: Codable, Hashable {
    var x: Int
    var y: Int?
    var label: String?
}

private indirect enum Tree: Codable, Hashable {
    case leaf(Int)
    case node(Tree, Tree)
}

private struct Everything: Codable, Hashable {
    var isOn = true
    var small: [Int8] = [.min, -1, 0, 1, .max]
    var large: [Int] = [.min, -129, -128, 127, 128, .max]
    var unsigned: [UInt64] = [0, 127, 128, .max]
    var real = [0.0, -1.5, .greatestFiniteMagnitude, .infinity]
    var single: Float = 1.25
    var texts = ["", "ö", String(repeating: "a", count: 63), String(repeating: "a", count: 64), String(repeating: "語", count: 500)]
    var bytes: [UInt8] = [0, 127, 128, 255]
    var none: Int?
    var nested: [[Point?]] = [[], [nil, Point(x: 1, y: nil)], [Point(x: -70_000, y: 3)]]
    var byText = ["one": Point(x: 1, y: 1), "": Point(x: 0, y: nil)]
    var byNumber = [1: "one", -2: "two"]
    var tree = Tree.node(.leaf(1), .node(.leaf(2), .leaf(3)))
    var set: Set<String> = ["a"]
}

private struct Empty: Codable, Hashable {}

private class Base: Codable {
    var a = 1
    init() {}
}

/// Shares the container of its base class.
private final class Sharing: Base {
    var b = 2
    private enum Key: CodingKey { case b }
    override init() { super.init() }
    required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
        b = try decoder.container(keyedBy: Key.self).decode(Int.self, forKey: .b)
    }
    override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(b, forKey: .b)
    }
}

/// Has its base class's value, and containers in containers.
private final class Nesting: Base {
    var list = [1, 2]
    private enum Key: CodingKey { case inner, list }
    override init() { super.init() }
    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let inner = try container.nestedContainer(keyedBy: Key.self, forKey: .inner)
        var numbers = try inner.nestedUnkeyedContainer(forKey: .list)
        list = []
        while !numbers.isAtEnd { list.append(try numbers.decode(Int.self)) }
        try super.init(from: container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        var inner = container.nestedContainer(keyedBy: Key.self, forKey: .inner)
        var numbers = inner.nestedUnkeyedContainer(forKey: .list)
        for number in list { try numbers.encode(number) }
        try super.encode(to: container.superEncoder())
    }
}

/// Goes on with a container after the one around it.
private struct Confused: Encodable {
    private enum Key: CodingKey { case a, b }
    func encode(to encoder: any Encoder) throws {
        var outer = encoder.container(keyedBy: Key.self)
        var inner = outer.nestedContainer(keyedBy: Key.self, forKey: .a)
        try outer.encode(1, forKey: .b)
        try inner.encode(2, forKey: .a)
    }
}

/// Encodes itself as a closure says.
private struct Odd: Encodable {
    enum Key: CodingKey { case a, b }
    let body: (any Encoder) throws -> Void
    init(_ body: @escaping (any Encoder) throws -> Void) { self.body = body }
    func encode(to encoder: any Encoder) throws { try body(encoder) }
}

private func bytes(_ value: some Encodable) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try CompactCoding().encode(value, into: &bytes)
    return bytes
}

private func value<Value: Decodable>(_ type: Value.Type = Value.self, of bytes: [UInt8]) throws -> Value {
    try CompactCoding().decode(type, from: bytes[...])
}

@Suite struct `The compact coding` {
    private func expectSame<Value: Codable & Equatable>(_ original: Value) throws { #expect(try value(of: bytes(original)) == original) }

    @Test func `gives back what it was given`() throws {
        try expectSame(Everything())
        try expectSame(Empty())
        try expectSame(7)
        try expectSame("text")
        try expectSame(Int?.none)
        try expectSame([Int?.none, 1])
        try expectSame([UInt8](0...255))
        #expect(try value(Double.self, of: bytes(Double.nan)).isNaN)
    }

    @Test func `gives back classes, and containers in containers`() throws {
        let sharing = Sharing()
        (sharing.a, sharing.b) = (3, 4)
        let shared = try value(Sharing.self, of: bytes(sharing))
        #expect((shared.a, shared.b) == (3, 4))
        let nesting = Nesting()
        (nesting.a, nesting.list) = (5, [6, 7])
        let nested = try value(Nesting.self, of: bytes(nesting))
        #expect((nested.a, nested.list) == (5, [6, 7]))
    }

    @Test func `has the bytes that its format says`() throws {
        #expect(try bytes(5) == [5])
        #expect(try bytes(300) == [0x83, 0xAC, 0x02])
        #expect(try bytes(-3) == [0x84, 2])
        #expect(try bytes(false) == [0x81])
        #expect(try bytes("ab") == [0xA2, 0x61, 0x62])
        #expect(try bytes([UInt8]([9, 8])) == [0x88, 2, 9, 8])
        #expect(try bytes(Float(1)) == [0x85, 0, 0, 0x80, 0x3F])
        #expect(try bytes(1.0) == [0x86, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F])
        #expect(try bytes(Point(x: 1, y: nil)) == [0x8A, 0xA1, 0x78, 1, 0x8B])
        #expect(try bytes([Int?.none]) == [0x89, 0x80, 0x8B])
        #expect(try bytes(String(repeating: "a", count: 64)).prefix(3) == [0x87, 64, 0x61])
    }

    @Test func `lets types get properties and lose them`() throws {
        #expect(try value(of: bytes(NewerPoint(x: 1, y: 2, label: "new"))) == Point(x: 1, y: 2))
        #expect(try value(of: bytes(Point(x: 1, y: 2))) == NewerPoint(x: 1, y: 2, label: nil))
    }

    @Test func `says where it is that bytes are wrong`() throws {
        let error = #expect(throws: DecodingError.self) { try value([Point].self, of: bytes([["x": 1], ["x": 1 << 40], ["y": 3]])) }
        guard case .keyNotFound(let key, let context) = error else { throw try #require(error) }
        #expect(key.stringValue == "x")
        #expect(context.codingPath.map(\.stringValue) == ["2"])
        #expect(throws: DecodingError.self) { try value(Int8.self, of: bytes(128)) }
        #expect(throws: DecodingError.self) { try value(UInt.self, of: bytes(-1)) }
        #expect(throws: DecodingError.self) { try value(String.self, of: bytes(1)) }
        #expect(throws: DecodingError.self) { try value(Int.self, of: [5, 5]) }
        #expect(throws: DecodingError.self) { try value(Int.self, of: []) }
        #expect(throws: DecodingError.self) { try value(String.self, of: [0xA1, 0xFF]) }
        #expect(throws: DecodingError.self) { try value([Int].self, of: [0x89, 1]) }
        #expect(throws: DecodingError.self) { try value([UInt8].self, of: [0x88, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]) }
        #expect(throws: DecodingError.self) { try value(UInt64.self, of: [0x83] + [UInt8](repeating: 0xFF, count: 10)) }
        #expect(throws: EncodingError.self) { try bytes(Confused()) }
    }

    @Test func `refuses what a type encodes at a place that is taken`() throws {
        let twice = Odd { encoder in
            var value = encoder.singleValueContainer()
            try value.encode(1)
            try value.encode(2)
        }
        let scalarThenMap = Odd { encoder in
            try 1.encode(to: encoder)
            _ = encoder.container(keyedBy: Odd.Key.self)
        }
        let mapThenList = Odd { encoder in
            _ = encoder.container(keyedBy: Odd.Key.self)
            _ = encoder.unkeyedContainer()
        }
        let lateValueOfBase = Odd { encoder in
            var map = encoder.container(keyedBy: Odd.Key.self)
            let base = map.superEncoder()
            try map.encode(1, forKey: .a)
            try 2.encode(to: base)
        }
        let deepLateValueOfBase = Odd { encoder in
            var map = encoder.container(keyedBy: Odd.Key.self)
            var inner = map.nestedContainer(keyedBy: Odd.Key.self, forKey: .a)
            let base = inner.superEncoder()
            try map.encode(1, forKey: .b)
            var late = base.container(keyedBy: Odd.Key.self)
            try? late.encode(1, forKey: .a)
        }
        let lateContainer = Odd { encoder in
            var list = encoder.unkeyedContainer()
            var inner = list.nestedUnkeyedContainer()
            try list.encode(1)
            _ = inner.nestedContainer(keyedBy: Odd.Key.self)
        }
        for odd in [twice, scalarThenMap, mapThenList, lateValueOfBase, deepLateValueOfBase, lateContainer] {
            #expect(throws: EncodingError.self) { try bytes(odd) }
            #expect(throws: EncodingError.self) { try bytes([odd]) }
        }
    }

    @Test func `has a value without properties for a base class that encodes nothing`() throws {
        let unused = Odd { encoder in
            var map = encoder.container(keyedBy: Odd.Key.self)
            _ = map.superEncoder()
            try map.encode(1, forKey: .a)
            _ = map.superEncoder(forKey: .b)
        }
        #expect(try bytes(unused) == [0x8A, 0xA5] + Array("super".utf8) + [0x8A, 0x8B, 0xA1, 0x61, 1, 0xA1, 0x62, 0x8A, 0x8B, 0x8B])
        let list = Odd { encoder in
            var list = encoder.unkeyedContainer()
            _ = list.superEncoder()
            try list.encode(1)
        }
        #expect(try bytes(list) == [0x89, 0x8A, 0x8B, 1, 0x8B])
    }

    @Test func `has one value of a key that is there twice`() throws {
        struct Pair: Decodable, Equatable { let x: Int?, y: Int }
        let pair = { (key: UInt8, value: UInt8) in [0xA1, key, value] as [UInt8] }
        let bytes = [0x8A] + pair(0x78, 0x80) + pair(0x78, 5) + pair(0x79, 1) + [0x8B]
        #expect(try value(Pair.self, of: bytes) == Pair(x: nil, y: 1))
    }

    @Test func `takes integers of no more than 64 bits`() throws {
        #expect(throws: EncodingError.self) { try bytes(["a": UInt128(UInt64.max) + 1]) }
        #expect(throws: EncodingError.self) { try bytes([Int128(Int64.min) - 1]) }
    }

    @Test func `takes no more than 64 levels`() throws {
        let hostile = [UInt8](repeating: 0x89, count: 1_000_000)
        #expect(throws: DecodingError.self) { try value(Tree.self, of: hostile) }
        var tree = Tree.leaf(1)
        for _ in 0..<10 { tree = .node(tree, .leaf(2)) }
        #expect(try value(of: bytes(tree)) == tree)
        for _ in 0..<100 { tree = .node(tree, .leaf(2)) }
        #expect(throws: EncodingError.self) { try bytes(tree) }
    }

    @Test func `ends with a value or an error for whatever bytes`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed)
        let original = try bytes(Everything())
        var decoded = 0
        for _ in 0..<3000 {
            let hostile = mutated(original, &random)
            if (try? value(Everything.self, of: hostile)) != nil { decoded += 1 }
            _ = try? value(Tree.self, of: hostile)
            _ = try? value([String: [Int?]].self, of: hostile)
            await Task.yield()  // other tests need a thread, too
        }
        #expect(decoded > 0, "seed \(seed)")
        print("the compact coding: seed \(seed), \(decoded) of 3000 mutations decode")
    }
}

/// Random numbers that can be repeated.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// The bytes with some of them changed, added, taken out, or moved.
func mutated(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &random) {
        if bytes.isEmpty { return bytes }
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0 ... .max, using: &random)
        case 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 2: bytes.insert(UInt8.random(in: 0x80...0x8F, using: &random), at: place)
        case 3: bytes.remove(at: place)
        case 4: bytes.removeLast(min(bytes.count, Int.random(in: 0..<9, using: &random)))
        default: bytes.append(contentsOf: bytes[place...].prefix(40))
        }
    }
    return bytes
}
