// SPDX-License-Identifier: Apache-2.0
//
// The handlers of the requests to a local port: tables of message numbers and functions, which the C port's callback gets as its receiver.

import CCoreRunLoop
import CoreRunLoopShims
import Synchronization

extension MessagePort {
    /// The Swift port to which the C ports belong.
    final class Owner: Sendable {
        let port = Mutex(Weak<MessagePort>())
        private let fullHandlers = Mutex(0)

        /// One handler more or less has as many requests as it takes. Only a port without such a handler takes messages.
        func countFull(_ change: Int) {
            fullHandlers.withLock { $0 += change }
            port.withLock { $0.object }?.receive { fullHandlers.withLock { $0 == 0 } }
        }

        /// Returns false if the bytes are no envelope, or nobody takes it.
        func receiveEnvelope(_ bytes: RawSpan) -> Bool {
            port.withLock { $0.object }?.receiveEnvelope([UInt8](copying: bytes)) ?? false
        }
    }

    /// The handlers of a port's messages. The table is immutable and replaced as a whole, and the C port keeps it while a call is running.
    /// So a message needs neither a lock nor a reference.
    final class RequestHandlers: Sendable {
        private let owner: Owner
        private let byNumber: [Int32: any RequestHandler]
        let fallback: (any RequestHandler)?
        private let hasConcurrent: Bool

        init(_ owner: Owner, _ byNumber: [Int32: any RequestHandler] = [:], _ fallback: (any RequestHandler)? = nil) {
            self.owner = owner
            self.byNumber = byNumber
            self.fallback = fallback
            hasConcurrent = byNumber.values.contains { $0 is ConcurrentRequestHandler }
        }

        /// Returns a table with another handler for a number, or, with a nil number, for all that have none of their own.
        func with(_ new: (any RequestHandler)?, of number: Int32?) -> RequestHandlers {
            guard let number else { return RequestHandlers(owner, byNumber, new) }
            var byNumber = byNumber
            byNumber[number] = new
            return RequestHandlers(owner, byNumber, fallback)
        }

        /// Makes a C port deliver its messages to these handlers from now on.
        func receiveMessages(of port: CFMessagePort) {
            if hasConcurrent && RequestService.shared?.listen(to: port) != true {
                report("there are no means to notice callers that leave; their requests end with their handlers")
            }
            unsafe shim_message_port_call(port, retainedInfo(self))
        }

        func receive(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if !byNumber.isEmpty || number == MessagePort.envelope { return receiveKnown(number, bytes, &reply) }
            if let fallback { fallback.answer(number, bytes, &reply) } else { reply.refuse(SHIM_UNHANDLED) }
        }

        @inline(never)
        private func receiveKnown(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if number == MessagePort.envelope && owner.receiveEnvelope(bytes) { return }
            guard let handler = byNumber[number] ?? fallback else { return reply.refuse(SHIM_UNHANDLED) }
            handler.answer(number, bytes, &reply)
        }
    }

    /// Handles requests. Its kinds are classes because reading a function out of a generic value would allocate for each message.
    protocol RequestHandler: AnyObject, Sendable {
        func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply)
    }

    final class ArrayRequestHandler: RequestHandler {
        /// The closure as the program passed it.
        let closure: @isolated(any) @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?
        private let function: @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?

        init(_ closure: @escaping @isolated(any) @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?) {
            self.closure = closure
            function = answeringOnActorOf(closure)
        }

        func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if let answer = function(number, [UInt8](copying: bytes)) { unsafe reply.set(answer.span.bytes) }
        }
    }

    /// Answers requests of one kind, at once.
    final class ExchangeRequestHandler: RequestHandler {
        private let function: @Sendable (_ bytes: [UInt8]) throws -> [UInt8]?

        /// `function` returns `nil` for bytes that are malformed.
        init(_ function: @escaping @Sendable (_ bytes: [UInt8]) throws -> [UInt8]?) { self.function = function }

        func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            do {
                guard let answer = try function([UInt8](copying: bytes)) else { return reply.refuse(SHIM_MALFORMED) }
                unsafe reply.set(answer.span.bytes)
            } catch {
                reply.refuse(SHIM_FAILED, "\(error)")
            }
        }
    }

    final class SpanRequestHandler: RequestHandler {
        /// The closure as the program passed it.
        let closure: @isolated(any) @Sendable (_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) -> Void
        private let function: @Sendable (_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) -> Void

        init(_ closure: @escaping @isolated(any) @Sendable (_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) -> Void) {
            self.closure = closure
            function = answeringOnActorOf(closure)
        }

        func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) { function(number, bytes, &reply) }
    }

    /// The answer to a request, for as long as the call of the handler lasts.
    @safe public struct Reply: ~Copyable {
        private let reply: OpaquePointer

        fileprivate init(_ reply: OpaquePointer) { unsafe self.reply = reply }

        /// Makes the answer: a copy of `bytes`, in the place of an answer given before. Without any the answer is empty.
        public mutating func set(_ bytes: RawSpan) {
            unsafe bytes.withUnsafeBytes { buffer in unsafe shim_reply_set(reply, buffer.baseAddress, buffer.count) }
        }

        /// Says why there is no answer.
        mutating func refuse(_ status: Int, _ text: String = "") {
            var text = text
            text.withUTF8 { bytes in unsafe shim_reply_refuse(reply, UInt32(status), bytes.baseAddress, bytes.count) }
        }

        /// The process that has sent the request; 0 if it is not known.
        var process: Int32 { unsafe shim_reply_process(reply) }

        /// Leaves the answer to a later call of shim_deferred_answer; `nil` when there is no memory.
        mutating func later() -> OpaquePointer? { unsafe shim_reply_defer(reply) }
    }

    /// Creates a C port whose messages go to `handlers`; `nil` when it cannot have the name.
    static func make(_ name: String, _ owner: Owner, _ handlers: RequestHandlers) -> CFMessagePort? {
        let info = unsafe retainedInfo(owner)
        let made: CFMessagePort? = unsafe shim_message_port_create(
            name.cfString,
            { callee, number, bytes, length, reply in
                var reply = unsafe Reply(reply)
                unsafe withBorrowed(RequestHandlers.self, from: callee) { handlers in
                    unsafe handlers.receive(number, UnsafeRawBufferPointer(start: bytes, count: length).bytes, &reply)
                }
            }, info, { reference in unsafe releaseConstantInfo(reference) })
        guard let made else {
            unsafe releaseInfo(info)
            return nil
        }
        handlers.receiveMessages(of: made)
        return made
    }
}
