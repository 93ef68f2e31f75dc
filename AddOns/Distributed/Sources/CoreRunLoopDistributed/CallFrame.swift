// SPDX-License-Identifier: Apache-2.0
//
// A call as the bytes of a request, and what comes back.
//
//   call    version, the coding's name, the actor's number at the port, the function's mangled name, the mangled names of the types for its
//           generic parameters, the arguments
//   reply   a kind, and what belongs to it
//
// The version is a byte; names are texts of CompactFormat; numbers and counts are 7 bits a byte. Each argument is its size, 4 bytes, and as
// many bytes of the coding.

enum CallFrame {
    static let version: UInt8 = 1
    static let longestTarget = 1024
    static let mostSubstitutions = 16

    /// What a reply begins with.
    enum Reply {
        static let nothing: UInt8 = 0
        static let value: UInt8 = 1
        static let error: UInt8 = 2  // the type's name, and the error in the coding
        static let refusal: UInt8 = 3  // a MessagePortActorError in the compact coding
    }

    static func refusal(_ error: MessagePortActorError) -> [UInt8] {
        var bytes = [Reply.refusal]
        do { try CompactCoding().encode(error, into: &bytes) } catch { return [Reply.refusal] }
        return bytes
    }
}

/// A call that has come: everything but its arguments, which are read one after the other.
struct ReceivedCall {
    let coding: String
    let actor: UInt64
    let target: String
    let substitutions: [String]
    let argumentCount: UInt64
    private(set) var reader: CompactReader

    init(_ bytes: [UInt8]) throws(MessagePortActorError) {
        do throws(CompactFault) {
            var reader = CompactReader(bytes[...])
            let version = try reader.byte()
            if version != CallFrame.version { throw CompactFault(description: "it is of version \(version)") }
            coding = try reader.text()
            actor = try reader.varint()
            target = try reader.text()
            if target.utf8.count > CallFrame.longestTarget { throw CompactFault(description: "the function's name is too long") }
            let count = try reader.varint()
            if count > UInt64(CallFrame.mostSubstitutions) { throw CompactFault(description: "too many generic parameters") }
            var names: [String] = []
            for _ in 0..<count { names.append(try reader.text()) }
            if names.contains(where: { $0.utf8.count > CallFrame.longestTarget }) {
                throw CompactFault(description: "a type's name is too long")
            }
            substitutions = names
            argumentCount = try reader.varint()
            self.reader = reader
        } catch { throw .malformedCall(error.description) }
    }

    /// The next argument's bytes.
    mutating func argument() throws(CompactFault) -> ArraySlice<UInt8> { try reader.sized() }
}

extension CompactReader {
    /// Reads a size of 4 bytes, and returns as many bytes.
    mutating func sized() throws(CompactFault) -> ArraySlice<UInt8> {
        let size = Int(try fixed(UInt32.self))
        if size > left { throw CompactFault(description: "the bytes end too soon") }
        defer { position += size }
        return bytes[position..<position + size]
    }
}
