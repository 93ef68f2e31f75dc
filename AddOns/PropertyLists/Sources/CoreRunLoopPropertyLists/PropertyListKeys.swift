// SPDX-License-Identifier: Apache-2.0
//
// What the encoder and the decoder have in common: keys, and the text that stands for nothing.

/// Property lists have no value for nothing. Foundation's coders use this text as well.
let textForNothing = "$null"

/// The place of a value in an array.
struct IndexKey: CodingKey {
    private let index: Int
    init(_ index: Int) { self.index = index }
    init?(intValue: Int) { index = intValue }
    init?(stringValue: String) { return nil }
    var intValue: Int? { index }
    var stringValue: String { "Index \(index)" }
}

/// The key of a base class's value.
enum SuperKey: String, CodingKey { case base = "super" }

/// The keys that lead to a value, as a list from the innermost.
final class CodingPlace {
    private let key: any CodingKey
    private let outer: CodingPlace?
    /// How many containers there are around the value.
    let depth: Int

    init(_ key: any CodingKey, in outer: CodingPlace?) {
        self.key = key
        self.outer = outer
        depth = (outer?.depth ?? 0) + 1
    }

    static func path(_ place: CodingPlace?) -> [any CodingKey] {
        var keys: [any CodingKey] = []
        var next = place
        while let one = next {
            keys.append(one.key)
            next = one.outer
        }
        return keys.reversed()
    }
}
