// SPDX-License-Identifier: Apache-2.0
//
// Codable values as trees and back, and types that encode themselves oddly.

import CoreRunLoop
import CoreRunLoopPropertyLists
import Testing

struct Point: Codable, Hashable {
    var x: Int
    var y: Int?
}

struct Everything: Codable, Hashable {
    var isOn = true
    var small: [Int8] = [.min, -1, 0, .max]
    var large: [Int] = [.min, -129, .max]
    var unsigned: [UInt32] = [0, .max]
    var real = [0.0, -1.5, .greatestFiniteMagnitude, .infinity]
    var single: Float = 0.1
    var text = "ö & 語"
    var none: Int?
    var nested: [[Point?]] = [[], [nil, Point(x: 1, y: nil)], [Point(x: -70_000, y: 3)]]
    var byText = ["one": Point(x: 1, y: 1), "": Point(x: 0, y: nil)]
    var byNumber = [1: "one", -2: "two"]
    var set: Set<String> = ["a"]
}

private indirect enum Tree: Codable, Hashable {
    case leaf(Int)
    case node(Tree)
}

private struct Own: Codable, Hashable {
    var bytes: [UInt8] = [0, 255]
    var date = WallTime(timeIntervalSinceReferenceDate: 1000)
    var tree: PropertyList = ["any": [1, true, .date(WallTime(timeIntervalSinceReferenceDate: 5))]]
}

private class Base: Codable {
    var a = 1
    init() {}
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

/// Encodes itself as a closure says.
private struct Odd: Encodable {
    enum Key: CodingKey { case a, b }
    let body: (any Encoder) throws -> Void
    init(_ body: @escaping (any Encoder) throws -> Void) { self.body = body }
    func encode(to encoder: any Encoder) throws { try body(encoder) }
}

private func tree(_ value: some Encodable) throws -> PropertyList { try PropertyList.Encoder().tree(of: value) }

private func value<Value: Decodable>(_ type: Value.Type = Value.self, of tree: PropertyList) throws -> Value {
    try PropertyList.Decoder().decode(type, from: tree)
}

@Suite struct `The coders of property lists` {
    @Test(arguments: [PropertyList.Format.xml, .binary]) func `give back what they were given`(format: PropertyList.Format) throws {
        func expectSame<Value: Codable & Equatable>(_ original: Value) throws {
            let bytes = try PropertyList.Encoder(format: format).encode(original)
            #expect(try PropertyList.Decoder().decode(Value.self, from: bytes) == original)
        }
        try expectSame(Everything())
        try expectSame(Own())
        try expectSame(7)
        try expectSame("text")
        try expectSame([Int?.none, 1])
        try expectSame(Tree.node(.node(.leaf(1))))
    }

    @Test func `give back classes, and containers in containers`() throws {
        let nesting = Nesting()
        (nesting.a, nesting.list) = (5, [6, 7])
        let encoded = try tree(nesting)
        #expect(encoded == ["inner": ["list": [6, 7]], "super": ["a": 5]])
        let nested = try value(Nesting.self, of: encoded)
        #expect((nested.a, nested.list) == (5, [6, 7]))
    }

    @Test func `make the trees that one expects`() throws {
        #expect(try tree(Point(x: 1, y: nil)) == ["x": 1])
        #expect(try tree([nil, 1]) == ["$null", 1])
        let date = WallTime(timeIntervalSinceReferenceDate: 1000)
        #expect(try tree(Own()) == ["bytes": .data([0, 255]), "date": .date(date), "tree": Own().tree])
        #expect(try tree(Odd { _ in }) == [:])
        #expect(try value([UInt8].self, of: [1, 2]) == [1, 2])
        #expect(try value(Double.self, of: 3) == 3)
        #expect(try value(Int.self, of: 3.0) == 3)
        #expect(try value(Float.self, of: 1e300) == .infinity)
    }

    @Test func `say where a tree is none of the value's`() throws {
        let error = #expect(throws: DecodingError.self) { try value([[Point]].self, of: [[["x": 1], ["x": "one"]]]) }
        guard case .typeMismatch(_, let context) = error else { throw try #require(error) }
        #expect(context.codingPath.map(\.stringValue) == ["Index 0", "Index 1", "x"])
        #expect(context.codingPath.map(\.intValue) == [0, 1, nil])
        #expect(throws: DecodingError.self) { try value(Int8.self, of: 128) }
        #expect(throws: DecodingError.self) { try value(UInt.self, of: -1) }
        #expect(throws: DecodingError.self) { try value(Int.self, of: 1.5) }
        #expect(throws: DecodingError.self) { try value(Int.self, of: true) }
        #expect(throws: DecodingError.self) { try value(Bool.self, of: 1) }
        #expect(throws: DecodingError.self) { try value(String.self, of: "$null") }
        #expect(throws: DecodingError.self) { try value(Point.self, of: ["y": 1]) }
        #expect(throws: DecodingError.self) { try value(WallTime.self, of: 1) }
    }

    @Test func `refuse what no property list can hold`() {
        #expect(throws: EncodingError.self) { try tree([UInt64.max]) }
        #expect(throws: EncodingError.self) { try tree(Int128.max) }
    }

    @Test func `refuse what a type encodes at a place that is taken`() {
        let twice = Odd { encoder in
            var value = encoder.singleValueContainer()
            try value.encode(1)
            try? value.encode(2)
        }
        #expect(throws: EncodingError.self) { try tree(twice) }
        let mapThenList = Odd { encoder in
            _ = encoder.container(keyedBy: Odd.Key.self)
            _ = encoder.unkeyedContainer()
        }
        #expect(throws: EncodingError.self) { try tree([mapThenList]) }
    }

    @Test func `end at the deepest level`() throws {
        struct Chain: Codable {
            var depth: Int
            func encode(to encoder: any Encoder) throws {
                var list = encoder.unkeyedContainer()
                if depth > 1 { try list.encode(Chain(depth: depth - 1)) }
            }
            init(depth: Int) { self.depth = depth }
            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                depth = list.isAtEnd ? 1 : try list.decode(Chain.self).depth + 1
            }
        }
        let bytes = try PropertyList.Encoder().encode(Chain(depth: PropertyList.deepest))
        #expect(try PropertyList.Decoder().decode(Chain.self, from: bytes).depth == PropertyList.deepest)
        #expect(throws: (any Error).self) { try PropertyList.Encoder().encode(Chain(depth: PropertyList.deepest + 1)) }
        #expect(throws: EncodingError.self) { try tree(Chain(depth: 1_000_000)) }
    }

    @Test func `give what a program says to the value's code`() throws {
        struct Told: Codable {
            let word: String
            init() { word = "" }
            init(from decoder: any Decoder) throws { word = decoder.userInfo[.told] as? String ?? "" }
            func encode(to encoder: any Encoder) throws {
                var value = encoder.singleValueContainer()
                try value.encode(encoder.userInfo[.told] as? String ?? "")
            }
        }
        var encoder = PropertyList.Encoder()
        encoder.userInfo[.told] = "a"
        #expect(try encoder.tree(of: Told()) == "a")
        var decoder = PropertyList.Decoder()
        decoder.userInfo[.told] = "b"
        #expect(try decoder.decode(Told.self, from: "a").word == "b")
    }
}

extension CodingUserInfoKey { fileprivate static let told = CodingUserInfoKey(rawValue: "told")! }
