// SPDX-License-Identifier: Apache-2.0
//
// Decodes any bytes as a call, and as values of the compact coding. What is taken is encoded again, and gives back what was taken. Built
// from those files of CoreRunLoopDistributed that read bytes: `make fuzz FUZZ_TARGETS=calls`.

/// A type with all that may be in a call: scalars, texts, bytes, lists, maps, and what may be missing.
private indirect enum Tree: Codable, Equatable {
    case leaf(Int8?, UInt64, Float, Bool)
    case named(String, [UInt8])
    case branch([Tree], by: [String: Tree])
}

/// A class whose base class has a value of its own.
private class Base: Codable {
    var number = 0
}
private final class Derived: Base {
    var words: [String] = []
    private enum Key: CodingKey { case words }
    required init(from decoder: any Decoder) throws {
        let map = try decoder.container(keyedBy: Key.self)
        words = try map.decode([String].self, forKey: .words)
        try super.init(from: try map.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
        var map = encoder.container(keyedBy: Key.self)
        try map.encode(words, forKey: .words)
        try super.encode(to: map.superEncoder())
    }
}

private func encoded(_ value: some Encodable) -> [UInt8] {
    var bytes: [UInt8] = []
    do { try CompactCoding().encode(value, into: &bytes) } catch { fatalError("what was decoded does not encode: \(error)") }
    return bytes
}

/// Whatever decodes has bytes that decode to the same. These are compared, as not every value is equal to itself.
private func checkValue<Value: Codable>(_ type: Value.Type, _ bytes: ArraySlice<UInt8>) {
    guard let value = try? CompactCoding().decode(type, from: bytes) else { return }
    let first = encoded(value)
    guard let again = try? CompactCoding().decode(type, from: first[...]) else { fatalError("\(value) does not decode again") }
    let second = encoded(again)
    if first.sorted() != second.sorted() { fatalError("\(value) becomes \(again)") }  // dictionaries have no order
}

private func checkCall(_ bytes: [UInt8]) {
    guard var call = try? ReceivedCall(bytes) else { return }
    if call.target.utf8.count > CallFrame.longestTarget || call.substitutions.count > CallFrame.mostSubstitutions { fatalError("too long") }
    while let argument = try? call.argument() {
        checkValue(Tree.self, argument)
        checkValue(MessagePortActorError.self, argument)
    }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCalls(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = [UInt8](UnsafeBufferPointer(start: start, count: count))
    guard let kind = bytes.first else { return 0 }
    let rest = bytes.dropFirst()
    switch kind & 7 {
    case 0: checkCall(Array(rest))
    case 1: checkValue(Tree.self, rest)
    case 2: checkValue(Derived.self, rest)
    case 3: checkValue(MessagePortActorError.self, rest)
    case 4: checkValue([Double?].self, rest)
    case 5: checkValue([Int32: [UInt16]].self, rest)
    case 6: checkValue(MessagePortActorID.self, rest)
    default:
        var reader = CompactReader(rest)
        while !reader.isAtEnd, (try? reader.skip()) != nil {}
    }
    return 0
}
