// SPDX-License-Identifier: Apache-2.0
//
// What Swift's runtime asks for: a call becomes bytes at the caller, and arguments and a result again at the actor.

public import Distributed

/// A call that is being made. Used by Swift.
public struct MessagePortInvocationEncoder: DistributedTargetInvocationEncoder {
    /// Arguments and results are `Codable`.
    public typealias SerializationRequirement = any Codable

    private let system: MessagePortActorSystem
    private var substitutions: [String] = []
    private var arguments: [UInt8] = []
    private var argumentCount: UInt64 = 0
    private var stub = false
    private static let firstCapacity = 96  // enough for the arguments of most calls

    init(_ system: MessagePortActorSystem) { self.system = system }

    /// Takes a type that stands for a generic parameter.
    ///
    /// - Throws: ``MessagePortActorError/unnamedType(_:)``.
    public mutating func recordGenericSubstitution<T>(_ type: T.Type) throws {
        // Of a protocol's function this is the type that the compiler has made for the protocol. The actor's own takes its place there.
        if substitutions.isEmpty, !stub, type is any _DistributedActorStub.Type {
            stub = true
            return
        }
        guard !stub, let name = _mangledTypeName(type) else {
            throw MessagePortActorError.unnamedType("\(type), for a generic parameter of a protocol's function: Swift cannot call it")
        }
        substitutions.append(name)
    }

    /// Encodes an argument.
    ///
    /// - Throws: What the coding throws; ``MessagePortActorError/transport(_:)`` for an argument of 4 GiB.
    public mutating func recordArgument<Value: Codable>(_ argument: RemoteCallArgument<Value>) throws {
        let start = arguments.count
        if start == 0 { arguments.reserveCapacity(Self.firstCapacity) }
        arguments.append(UInt32(0))
        try system.coding.encode(argument.value, into: &arguments, userInfo: system.userInfo(for: Value.self))
        guard let size = UInt32(exactly: arguments.count - start - 4) else { throw MessagePortActorError.transport(argument.name) }
        for index in 0..<4 { arguments[start + index] = UInt8(truncatingIfNeeded: size >> (8 * UInt32(index))) }
        argumentCount += 1
    }

    /// Does nothing: an error's type is told when it is thrown.
    public mutating func recordErrorType<E: Error>(_ type: E.Type) throws {}
    /// Does nothing: the actor's function knows its type.
    public mutating func recordReturnType<R: Codable>(_ type: R.Type) throws {}
    /// Does nothing.
    public mutating func doneRecording() throws {}

    /// The bytes of the call.
    func frame(_ actor: MessagePortActorID, _ target: String) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(arguments.count + target.utf8.count + 32)
        bytes.append(CallFrame.version)
        bytes.append(compact: system.coding.name)
        bytes.append(varint: actor.number)
        bytes.append(compact: target)
        bytes.append(varint: UInt64(substitutions.count))
        for name in substitutions { bytes.append(compact: name) }
        bytes.append(varint: argumentCount)
        bytes.append(contentsOf: arguments)
        return bytes
    }
}

/// A call that has come. Used by Swift.
public struct MessagePortInvocationDecoder: DistributedTargetInvocationDecoder {
    /// Arguments and results are `Codable`.
    public typealias SerializationRequirement = any Codable

    private let system: MessagePortActorSystem
    private var call: ReceivedCall
    private let function: String
    private let substitutions: [any Any.Type]
    private var index = 0

    /// `function` is its name for errors.
    init(_ system: MessagePortActorSystem, _ call: ReceivedCall, _ function: String, _ substitutions: [any Any.Type]) {
        self.system = system
        self.call = call
        self.function = function
        self.substitutions = substitutions
    }

    /// Returns the types for the generic parameters, all of which the system allows.
    public mutating func decodeGenericSubstitutions() throws -> [any Any.Type] { substitutions }

    /// Decodes an argument.
    ///
    /// - Throws: ``MessagePortActorError/malformedArgument(_:_:_:)``.
    public mutating func decodeNextArgument<Argument: Codable>() throws -> Argument {
        defer { index += 1 }
        if index >= call.argumentCount { throw MessagePortActorError.malformedArgument(function, index, "it is not there") }
        do {
            return try system.coding.decode(Argument.self, from: call.argument(), userInfo: system.userInfo(for: Argument.self))
        } catch { throw MessagePortActorError.malformedArgument(function, index, "\(error)") }
    }

    /// Returns `nil`: the caller does not say which errors it knows.
    public mutating func decodeErrorType() throws -> (any Any.Type)? { nil }
    /// Returns `nil`: the actor's function knows its type.
    public mutating func decodeReturnType() throws -> (any Any.Type)? { nil }
}

/// Makes a reply of what a function returns or throws. Used by Swift.
public struct MessagePortResultHandler: DistributedTargetInvocationResultHandler {
    /// Arguments and results are `Codable`.
    public typealias SerializationRequirement = any Codable

    /// The bytes of the reply. Only the task that serves the call uses them.
    final class Reply: Sendable { @safe nonisolated(unsafe) var bytes: [UInt8] = [] }
    let reply = Reply()
    private let system: MessagePortActorSystem
    private let function: String
    private let port: String

    /// `function` is its name for errors, and `port` is where the call has come.
    init(_ system: MessagePortActorSystem, _ function: String, _ port: String) {
        self.system = system
        self.function = function
        self.port = port
    }

    /// Encodes a result.
    ///
    /// - Throws: ``MessagePortActorError/malformedResult(_:_:)``.
    public func onReturn<Success: Codable>(value: Success) async throws {
        var bytes = [CallFrame.Reply.value]
        do {
            var userInfo = system.userInfo(for: Success.self)
            if !userInfo.isEmpty { userInfo[.portKey] = port }
            try system.coding.encode(value, into: &bytes, userInfo: userInfo)
        } catch { throw MessagePortActorError.malformedResult(function, "\(error)") }
        reply.bytes = bytes
    }

    /// Takes the end of a function without a result.
    public func onReturnVoid() async throws { reply.bytes = [CallFrame.Reply.nothing] }

    /// Encodes an error, by its type if it can be.
    public func onThrow<Err: Error>(error: Err) async throws {
        // The runtime throws one of its own if the function is not in this program.
        let error: any Error = error is ExecuteDistributedTargetError ? MessagePortActorError.unknownTarget(function) : error
        reply.bytes = Self.encode(error, system)
    }

    static func encode(_ error: any Error, _ system: MessagePortActorSystem) -> [UInt8] {
        if let error = error as? MessagePortActorError { return CallFrame.refusal(error) }
        var bytes = [CallFrame.Reply.error]
        guard let error = error as? any Error & Codable, let name = _mangledTypeName(type(of: error)) else {
            return CallFrame.refusal(.failed("\(error)"))
        }
        bytes.append(compact: name)
        do { try system.coding.encode(error, into: &bytes, userInfo: system.userInfo) } catch {
            return CallFrame.refusal(.failed("\(error)"))
        }
        return bytes
    }
}
