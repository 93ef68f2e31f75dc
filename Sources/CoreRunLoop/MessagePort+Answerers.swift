// SPDX-License-Identifier: Apache-2.0
//
// Who answers what comes to a local port: tables of numbers and functions, which the C ports have as their callees.

import CCoreRunLoop
import CoreRunLoopShims

extension MessagePort {
    /// Whom the C ports belong to.
    final class Owner: Sendable {
        struct Weakly: @unchecked Sendable { weak var port: MessagePort? }
        let port = Mutex(Weakly())

        /// False if it is no envelope, or there is nobody for it.
        func receiveEnvelope(_ bytes: RawSpan) -> Bool {
            port.withLock { $0.port }?.receiveEnvelope([UInt8](copying: bytes)) ?? false
        }
    }

    /// What messages go to. It never changes but is replaced as a whole, and the C port keeps it while a call is under way: so a message
    /// needs neither a lock of ours nor a reference.
    final class Answerers: Sendable {
        private let owner: Owner
        private let ofNumbers: [Int32: Answerer]
        let ofOthers: Answerer?

        init(_ owner: Owner, _ ofNumbers: [Int32: Answerer] = [:], _ ofOthers: Answerer? = nil) {
            self.owner = owner
            self.ofNumbers = ofNumbers
            self.ofOthers = ofOthers
        }

        /// With another one for a number, or for all that have none of their own.
        func with(_ new: Answerer?, of number: Int32?) -> Answerers {
            guard let number else { return Answerers(owner, ofNumbers, new) }
            var ofNumbers = ofNumbers
            ofNumbers[number] = new
            return Answerers(owner, ofNumbers, ofOthers)
        }

        /// Takes a C port's messages from now on.
        func answer(_ port: CFMessagePort) { unsafe shim_message_port_call(port, retainedInfo(self)) }

        func receive(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if !ofNumbers.isEmpty || number == MessagePort.envelope { return receiveKnown(number, bytes, &reply) }
            ofOthers?.answer(number, bytes, &reply)
        }

        @inline(never)
        private func receiveKnown(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if number == MessagePort.envelope && owner.receiveEnvelope(bytes) { return }
            (ofNumbers[number] ?? ofOthers)?.answer(number, bytes, &reply)
        }
    }

    /// Who answers requests. An object: reading a function out of a generic value would allocate at each message.
    class Answerer: @unchecked Sendable {
        func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {}
    }

    final class AnswererOfArrays: Answerer, @unchecked Sendable {
        /// As it was given.
        let closure: @isolated(any) @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?
        private let function: @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?

        init(_ closure: @escaping @isolated(any) @Sendable (_ number: Int32, _ bytes: [UInt8]) -> [UInt8]?) {
            self.closure = closure
            function = checked(closure)
        }

        override func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) {
            if let answer = function(number, [UInt8](copying: bytes)) { unsafe reply.set(answer.span.bytes) }
        }
    }

    final class AnswererOfSpans: Answerer, @unchecked Sendable {
        /// As it was given.
        let closure: @isolated(any) @Sendable (_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) -> Void
        private let function: @Sendable (_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) -> Void

        init(_ closure: @escaping @isolated(any) @Sendable (_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) -> Void) {
            self.closure = closure
            function = checked(closure)
        }

        override func answer(_ number: Int32, _ bytes: RawSpan, _ reply: inout Reply) { function(number, bytes, &reply) }
    }

    /// The answer to a request, for as long as the call of the handler lasts.
    @safe public struct Reply: ~Copyable {
        private let reply: OpaquePointer

        fileprivate init(_ reply: OpaquePointer) { unsafe self.reply = reply }

        /// Makes the answer: a copy of `bytes`, in the place of an answer given before. Without any the answer is empty.
        public mutating func set(_ bytes: RawSpan) {
            unsafe bytes.withUnsafeBytes { buffer in unsafe shim_reply_set(reply, buffer.baseAddress, buffer.count) }
        }
    }

    /// A C port whose messages go to `answerers`; `nil` when it cannot have the name.
    static func make(_ name: String, _ owner: Owner, _ answerers: Answerers) -> CFMessagePort? {
        let info = unsafe retainedInfo(owner)
        let made: CFMessagePort? = unsafe shim_message_port_create(
            name.cfString,
            { callee, number, bytes, length, reply in
                var reply = unsafe Reply(reply)
                unsafe lend(Answerers.self, from: callee) { answerers in
                    unsafe answerers.receive(number, UnsafeRawBufferPointer(start: bytes, count: length).bytes, &reply)
                }
            }, info, { reference in unsafe releaseConstantInfo(reference) })
        guard let made else {
            unsafe releaseInfo(info)
            return nil
        }
        answerers.answer(made)
        return made
    }
}
