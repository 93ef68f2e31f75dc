// SPDX-License-Identifier: Apache-2.0
//
// The coders beside Foundation's: what one has written the other reads.

import CoreRunLoop
import CoreRunLoopPropertyLists
import Foundation
import Testing

extension Foundation.Date: PropertyListConvertible {
    public var propertyList: PropertyList { .date(WallTime(timeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate)) }
    public init?(propertyList: PropertyList) {
        guard let date = propertyList.date else { return nil }
        self.init(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate)
    }
}

extension Foundation.Data: PropertyListConvertible {
    public var propertyList: PropertyList { .data([UInt8](self)) }
    public init?(propertyList: PropertyList) {
        guard let bytes = propertyList.data else { return nil }
        self.init(bytes)
    }
}

private struct Record: Codable, Hashable {
    var everything = Everything()
    var date = Foundation.Date(timeIntervalSinceReferenceDate: 5_000_000)
    var data = Data([0, 127, 128, 255])
    var url: [String: [Double]] = ["a": [1, 2.5], "ö": []]
}

@Suite struct `The coders beside Foundation's` {
    @Test(arguments: [(PropertyList.Format.xml, PropertyListSerialization.PropertyListFormat.xml), (.binary, .binary)])
    func `read what the others write`(here: PropertyList.Format, there: PropertyListSerialization.PropertyListFormat) throws {
        let record = Record()
        let own = try PropertyList.Encoder(format: here).encode(record)
        #expect(try PropertyListDecoder().decode(Record.self, from: Data(own)) == record)
        let encoder = PropertyListEncoder()
        encoder.outputFormat = there
        let foundations = try encoder.encode(record)
        #expect(try PropertyList.Decoder().decode(Record.self, from: [UInt8](foundations)) == record)
        #expect(try PropertyList(bytes: own) == PropertyList(bytes: [UInt8](foundations)))
    }

    /// Whether both decode a value of the type, or both refuse.
    private func expectBoth<Value: Decodable>(_ type: Value.Type, of xml: String) {
        let bytes = Array("<plist version=\"1.0\"><array>\(xml)</array></plist>".utf8)
        let here = (try? PropertyList.Decoder().decode([Value].self, from: bytes)) != nil
        let there = (try? PropertyListDecoder().decode([Value].self, from: Data(bytes))) != nil
        #expect(here == there, "\(type) of \(xml)")
    }

    @Test(arguments: [
        "<string>1</string>", "<string>$null</string>", "<true/>", "<integer>1</integer>", "<integer>300</integer>",
        "<integer>-1</integer>", "<real>1</real>", "<real>1.5</real>", "<real>1e39</real>", "<date>2001-01-01T00:00:00Z</date>",
        "<data>AAE=</data>", "<array/>", "<dict/>", "<array><string>$null</string></array>",
    ])
    func `refuse what the others refuse`(xml: String) {
        expectBoth(String.self, of: xml)
        expectBoth(Bool.self, of: xml)
        expectBoth(Int8.self, of: xml)
        expectBoth(UInt.self, of: xml)
        expectBoth(Double.self, of: xml)
        expectBoth(Float.self, of: xml)
        expectBoth([Int?].self, of: xml)
        expectBoth([String: Int].self, of: xml)
        expectBoth(String?.self, of: xml)
        expectBoth(Foundation.Date.self, of: xml)
        expectBoth(Data.self, of: xml)
        expectBoth(Point.self, of: xml)
    }
}
