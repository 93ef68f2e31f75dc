// SPDX-License-Identifier: Apache-2.0
//
// Which functions a caller may name. Swift's runtime calls any distributed function of the program by its mangled name, on whatever actor
// it is given: with an actor of another type, that is memory corruption. So the name is taken apart here first. It has to be a distributed
// function of the actor's own type, or of a protocol to which the actor conforms.
//
// A name of a few hundred bytes can stand for a type of which taking it apart makes gigabytes. So no name is taken apart that the compiler
// has not given to a distributed function of this program.

import CoreRunLoop
import CoreRunLoopShims
import Distributed
import Synchronization

/// A function that may be called on actors of one type.
package struct CallTarget: Sendable {
    /// The mangled name by which the runtime is to find it.
    let name: String
    /// Its name, without parameters.
    let function: String
    /// Its name for errors, as Swift prints it.
    let shown: String
    /// How many types the caller has to say for the function's generic parameters.
    let genericParameterCount: Int
    /// Whether it is a function of the type that `@Resolvable` makes for a protocol.
    let isOfProtocol: Bool

    private struct Key: Hashable {
        let type: ObjectIdentifier
        let name: String
    }
    private static let known = Mutex<[Key: CallTarget]>([:])
    private static let mostKnown = 4096
    private static let longestReadable = 8192

    /// Throws `unknownTarget` if the function of this mangled name must not be called on the actor.
    static func find(_ name: String, on actor: any DistributedActor) throws(MessagePortActorError) -> CallTarget {
        let key = Key(type: ObjectIdentifier(type(of: actor)), name: name)
        if let target = known.withLock({ $0[key] }) { return target }
        guard isFunction(name), let readable = readable(name), let target = try CallTarget(name, readable, actor) else {
            throw .unknownTarget(name)
        }
        known.withLock { known in
            if known.count == mostKnown { known.removeAll() }  // a program has fewer functions
            known[key] = target
        }
        return target
    }

    /// Whether the program has a distributed function of this mangled name.
    private static func isFunction(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { name in unsafe shim_swift_knows_function(name.baseAddress, name.count) }
    }

    /// A function's name for errors: as Swift prints it, or as it is if it is not mangled. Not for names that others have sent.
    package static func displayName(of name: String) -> String { readable(name).map(displayName(readable:)) ?? name }

    private static func displayName(readable: String) -> String {
        String(readable.droppingPrefix("distributed thunk ") ?? readable[...])
    }

    /// The name for errors of a type that others have named by its mangled name. `nil` for one that is not simply nested in a module, as
    /// it may stand for more than its own letters.
    package static func displayName(ofType name: String) -> String? {
        var rest = name.utf8[...]
        if rest.first == UInt8(ascii: "s") { rest.removeFirst() }  // the module Swift
        if rest.isEmpty { return nil }
        while !rest.isEmpty {
            guard rest.skipIdentifier() else { return nil }
            if let kind = rest.first, "COV".utf8.contains(kind) { rest.removeFirst() }
        }
        return readable("$s" + name)
    }

    /// The name as Swift prints it, such as `distributed thunk Jobs.Queue.add(Jobs.Job) async throws -> ()`.
    private static func readable(_ name: String) -> String? {
        var name = name
        return name.withUTF8 { name in
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: longestReadable) { buffer in
                let written = unsafe shim_swift_demangle(name.baseAddress, name.count, buffer.baseAddress, buffer.count)
                return unsafe written ? String(validatingCString: buffer.baseAddress!) : nil
            }
        }
    }

    /// `nil` for a function that is none of the actor's.
    private init?(_ name: String, _ readable: String, _ actor: any DistributedActor) throws(MessagePortActorError) {
        guard var rest = readable.droppingPrefix("distributed thunk ") else { return nil }
        if rest.hasPrefix("(extension in ") {
            guard let end = rest.firstIndex(of: ":") else { return nil }
            rest = rest[rest.index(after: end)...]
        }
        if let own = _mangledTypeName(type(of: actor)).flatMap({ Self.readable("$s" + $0) }), let function = rest.droppingPrefix(own + ".")
        {
            guard let count = Self.genericParameters(of: function) else { return nil }
            self.name = name
            self.function = Self.name(of: function)
            shown = Self.displayName(readable: readable)
            genericParameterCount = count
            isOfProtocol = false
            return
        }
        let parts = rest.split(separator: ".", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let plain = parts[1].droppingPrefix("$"), Self.conforms(actor, String(parts[0]), String(plain)),
            Self.genericParameters(of: parts[2]) == 0  // the toolchain passes the wrong types to others
        else { return nil }
        function = Self.name(of: parts[2])
        shown = Self.displayName(readable: readable)
        genericParameterCount = 0
        guard String(reflecting: type(of: actor)).hasPrefix(parts[0] + ".") else {
            self.name = name
            isOfProtocol = true
            return
        }
        self.name = try Self.ownName(name, parts, on: actor)
        isOfProtocol = false
    }

    /// The name of the actor's own function in the place of that of a protocol in the same module. There, optimized code of Swift 6.3 does
    /// not get from one to the other, and crashes. Within a module the two names may differ in the type alone.
    ///
    /// They differ elsewhere, too, if the function's name or parameters repeat a word of the type's, because Swift abbreviates such words.
    /// Then the exchange of the type makes no function's name, or another function's. `parts` are those of the function's readable name:
    /// module, type, function.
    private static func ownName(
        _ name: String, _ parts: [Substring], on actor: any DistributedActor
    ) throws(MessagePortActorError) -> String {
        let prefix = "$s\(parts[0].utf8.count)\(parts[0])\(parts[1].utf8.count)\(parts[1])C"
        if let type = _mangledTypeName(Swift.type(of: actor)), let rest = name.droppingPrefix(prefix), isFunction("$s\(type)\(rest)"),
            let own = readable("$s" + type), readable("$s\(type)\(rest)") == "distributed thunk \(own).\(parts[2])"
        {
            return "$s\(type)\(rest)"
        }
        let reason = "Swift cannot call it through a protocol that is in the actor's module; give it a module of its own"
        throw .unknownTarget("\(displayName(of: name)): \(reason)")
    }

    /// How many generic parameters a function has, of which there is `name<A, B where ...>(...)`. `nil` if it is not a function of the type
    /// itself: one of a nested type has a further name and a point in front.
    private static func genericParameters(of function: Substring) -> Int? {
        var rest = function
        if rest.first == "(" {  // `(name in file)` is private
            guard let end = rest.firstIndex(of: ")"), !rest[..<end].contains(".") else { return nil }
            rest = rest[rest.index(after: end)...]
            guard let next = rest.first, next == "(" || next == "<" else { return nil }
        } else {
            guard let end = rest.firstIndex(where: { $0 == "(" || $0 == "<" }), !rest[..<end].contains(".") else { return nil }
            rest = rest[end...]
        }
        guard rest.first == "<" else { return 0 }
        guard let end = rest.firstIndex(of: ">") else { return nil }
        let parameters = rest[..<end].split(separator: " where ", maxSplits: 1)[0]
        return parameters.count { $0 == "," } + 1
    }

    /// `name` of `name<A>(...)`, and of the private `(name in file)(...)`.
    private static func name(of function: Substring) -> String {
        String(function.drop { $0 == "(" }.prefix { $0 != "(" && $0 != "<" && $0 != " " })
    }

    /// Whether the actor conforms to the protocol. One that is nested in a type, or has no plain name, is not found.
    private static func conforms(_ actor: any DistributedActor, _ module: String, _ name: String) -> Bool {
        guard isPlain(module), isPlain(name), let type = _typeByName("\(module.utf8.count)\(module)\(name.utf8.count)\(name)_p")
        else { return false }
        func isActor<T>(_: T.Type) -> Bool { actor is T }
        return _openExistential(type, do: isActor)
    }

    private static func isPlain(_ word: String) -> Bool {
        guard let first = word.utf8.first, !(0x30...0x39).contains(first) else { return false }
        return word.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) && $0 < 0x80 || $0 == 0x5F }
    }
}

extension StringProtocol where SubSequence == Substring {
    /// What follows a prefix.
    func droppingPrefix(_ prefix: String) -> Substring? { hasPrefix(prefix) ? dropFirst(prefix.count) : nil }
}

extension Substring.UTF8View {
    /// Drops an identifier of a mangled name: its length and its letters. A zero in front has words of the identifiers before take part: a
    /// letter for each, the last one in upper case. Returns `false` if there is none.
    fileprivate mutating func skipIdentifier() -> Bool {
        var hasWords = first == UInt8(ascii: "0")
        if hasWords { removeFirst() }
        repeat {
            while hasWords, let letter = first, (0x41...0x5A).contains(letter & 0xDF) {
                removeFirst()
                hasWords = letter >= UInt8(ascii: "a")
            }
            if first == UInt8(ascii: "0") {
                removeFirst()
                return true
            }
            let digits = prefix { (0x30...0x39).contains($0) }
            guard let length = Int(String(Substring(digits))), length <= count - digits.count else { return false }
            removeFirst(digits.count + length)
        } while hasWords
        return true
    }
}
