// SPDX-License-Identifier: Apache-2.0
//
// Calls that come to the system's ports. Their bytes may be anybody's: each ends with a reply or with a refusal.

import CoreRunLoop
import Distributed
import Synchronization

/// The types that other processes may name.
struct AllowedTypes: @unchecked Sendable {  // for the metatypes, of which every thread may use every one
    typealias Read = @Sendable (MessagePortActorSystem, ArraySlice<UInt8>) -> any Error

    /// How errors are decoded, by the mangled names of their types.
    var errors: [String: Read] = [:]
    /// Types for generic parameters, by their mangled names.
    var generic: [String: any Any.Type] = [:]

    init() {
        let usual: [any Any.Type] = [
            Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self, UInt32.self,
            UInt64.self,
            Float.self, Double.self, String.self, [UInt8].self,
        ]
        for type in usual { allow(type) }
    }

    mutating func allow(_ type: any Any.Type) { if let name = _mangledTypeName(type) { generic[name] = type } }
}

extension MessagePortActorSystem {
    /// Allows errors of a type to come as themselves from other processes. Others, and those that are not `Codable`, come as
    /// ``MessagePortActorError/failed(_:)`` with their text. Any thread.
    public func allowErrors<Failure: Error & Codable>(_ type: Failure.Type) {
        guard let name = _mangledTypeName(type) else { return }
        types.withLock {
            $0.errors[name] = { system, bytes in
                do { return try system.coding.decode(type, from: bytes, userInfo: system.userInfo) } catch {
                    return MessagePortActorError.failed("\(type), which cannot be read: \(error)")
                }
            }
        }
    }

    /// Allows other processes to name a type for the generic parameters of distributed functions. Numbers, texts, truth values and
    /// `[UInt8]` are allowed from the beginning. Any thread.
    public func allowGenericArguments(_ allowed: any Any.Type...) { types.withLock { types in allowed.forEach { types.allow($0) } } }

    /// A call that has come, for ``admission``.
    public struct IncomingCall: Sendable {
        /// The actor that is called.
        public let actor: ActorID
        /// The name of the distributed function or property, without parameters.
        public let function: String
        /// The caller's process, as the kernel says. `nil` for one in another PID namespace.
        public let process: Int32?
    }

    /// Decides which calls of this system's actors are carried out; others end with ``MessagePortActorError/refused(_:)``. Callers are
    /// processes of the same user. Called on any thread, for each call, before its arguments are decoded; not for the elements of a stream
    /// that a call has returned. `nil` lets all calls in.
    public var admission: (@Sendable (IncomingCall) -> Bool)? {
        get { admissionCheck.withLock { $0 } }
        set { admissionCheck.withLock { $0 = newValue } }
    }

    /// Answers the calls of a port, so many at the same time.
    func serve(at port: MessagePort, _ limit: Int) {
        let name = port.name
        port.handle(.bytes(number: MessageNumber.call), concurrently: max(1, limit)) { [weak self] bytes async in
            guard let self else { return CallFrame.refusal(.closed) }
            do { return try await self.answer(bytes, name) } catch let error as MessagePortActorError {
                return CallFrame.refusal(error)
            } catch { return CallFrame.refusal(.failed("\(error)")) }
        }
        serveStreams(at: port)
    }

    /// Carries out a call that has come to a port, and returns the reply.
    private func answer(_ bytes: [UInt8], _ port: String) async throws -> [UInt8] {
        let call = try ReceivedCall(bytes)
        if call.coding != coding.name { throw MessagePortActorError.otherCoding(call.coding, coding.name) }
        let id = ActorID(port: port, number: call.actor)
        guard let actor = local(id) else { throw MessagePortActorError.gone(id) }
        let target = try CallTarget.find(call.target, on: actor)
        if let admission, !admission(IncomingCall(actor: id, function: target.function, process: MessagePort.requestProcess)) {
            throw MessagePortActorError.refused(target.function)
        }
        var decoder = InvocationDecoder(self, call, target.shown, try substitutions(of: call, target, actor))
        let handler = ResultHandler(self, target.shown, port)
        do {
            try await executeDistributedTarget(
                on: actor, target: RemoteCallTarget(target.name), invocationDecoder: &decoder, handler: handler)
        } catch is ExecuteDistributedTargetError { throw MessagePortActorError.unknownTarget(target.shown) }
        return handler.reply.bytes
    }

    private func substitutions(
        of call: ReceivedCall, _ target: CallTarget, _ actor: any DistributedActor
    ) throws(MessagePortActorError) -> [any Any.Type] {
        if call.substitutions.count != target.genericParameterCount {
            throw .malformedCall("\(target.shown) has \(target.genericParameterCount) generic parameters")
        }
        if target.isOfProtocol { return [type(of: actor)] }
        let allowed = types.withLock { $0.generic }
        var found: [any Any.Type] = []
        for (index, name) in call.substitutions.enumerated() {
            guard let type = allowed[name] else {
                let type = CallTarget.displayName(ofType: name) ?? "of its generic parameter \(index + 1)"
                throw .refused("\(target.shown), for the type \(type)")
            }
            found.append(type)
        }
        return found
    }
}
