// SPDX-License-Identifier: Apache-2.0
//
// The requests of streams, for both sides.
//
//   hold    the stream's number; answered by nothing when the reader knows of the stream's end
//   pull    the stream's number; answered by 1 if that is all, else 0, and the elements: each its size, 4 bytes, and bytes of the coding
//
// They come to the actor's own port, also when it takes no further calls and so no message at all: a port of their own would not be among
// those that a bridge exports, and from one queue they cannot be taken out of order. `admission` is not asked about them. Who knows a
// stream's number has it from the result of a call that was let in.
//
// Numbers are 7 bits a byte. Before an answer stands a kind as in replies to calls; an error is encoded as one of a call.

import CoreRunLoop
import Distributed
import Synchronization

extension CodingUserInfoKey {
    /// The port by which the other side has come, and under whose name it can come again.
    static let portKey = CodingUserInfoKey(rawValue: "CoreRunLoopDistributed.port")!
}

extension MessagePortActorSystem {
    /// How many streams may be offered at a time, and how long one waits for its reader.
    private static let mostStreams = 16_384
    private static let timeToHold = Duration.seconds(30)
    private static let forEver = Duration.seconds(10_000_000_000)

    // MARK: Offering

    /// Offers a stream at a port, and returns its ID.
    func offer(_ offer: StreamOffer, _ port: String?) throws -> MessagePortActorID {
        let number = UInt64.random(in: 1 ... .max)
        let hasRoom = streams.withLock { streams in
            if streams.count >= Self.mostStreams { return false }
            streams[number] = offer
            return true
        }
        if !hasRoom { throw MessagePortActorError.transport("\(Self.mostStreams) streams are open") }
        offer.expire(after: Self.timeToHold) { [weak self] in self?.streams.withLock { $0[number] = nil } }
        return MessagePortActorID(port: port ?? self.port.name, number: number)
    }

    /// Answers the requests for streams at a port.
    func serveStreams(at port: MessagePort) {
        port.handle(.bytes(number: MessageNumber.hold), concurrently: Self.mostStreams) { [weak self] bytes async in
            await self?.answerHold(bytes) ?? CallFrame.refusal(.closed)
        }
        port.handle(.bytes(number: MessageNumber.pull), concurrently: Self.mostStreams) { [weak self] bytes async in
            await self?.answerPull(bytes) ?? CallFrame.refusal(.closed)
        }
    }

    private func offered(_ bytes: [UInt8]) -> (number: UInt64, offer: StreamOffer)? {
        var reader = CompactReader(bytes[...])
        guard let number = try? reader.varint(), let offer = streams.withLock({ $0[number] }) else { return nil }
        return (number, offer)
    }

    private func answerHold(_ bytes: [UInt8]) async -> [UInt8] {
        guard let (number, offer) = offered(bytes), offer.beginHold() else { return CallFrame.refusal(.malformedCall("no such stream")) }
        await offer.run()
        streams.withLock { $0[number] = nil }
        return [CallFrame.Reply.nothing]
    }

    private func answerPull(_ bytes: [UInt8]) async -> [UInt8] {
        guard let (_, offer) = offered(bytes) else { return CallFrame.refusal(.malformedCall("no such stream")) }
        do {
            let batch = try await offer.buffer.take()
            var reply = [CallFrame.Reply.value, batch.isLast ? 1 : 0]
            reply.reserveCapacity(batch.elements.reduce(2) { $0 + $1.count + 4 })
            for element in batch.elements {
                reply.append(UInt32(element.count))
                reply.append(contentsOf: element)
            }
            return reply
        } catch { return ResultHandler.encode(error, self) }
    }

    // MARK: Reading

    private func frame(_ id: MessagePortActorID) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(varint: id.number)
        return bytes
    }

    /// Lasts as long as the stream.
    func hold(_ id: MessagePortActorID) async throws -> [UInt8] {
        try await request(id, MessageNumber.hold, frame(id), Self.forEver, "\(id)")
    }

    /// Waits for elements.
    func pull(_ id: MessagePortActorID) async throws -> StreamBuffer.Batch {
        let bytes = try await request(id, MessageNumber.pull, frame(id), explicitLimit ?? Self.forEver, "\(id)")
        guard bytes.first == CallFrame.Reply.value else { throw failure(bytes, "\(id)") }
        do throws(CompactFault) {
            var reader = CompactReader(bytes.dropFirst())
            var batch = StreamBuffer.Batch()
            batch.isLast = try reader.byte() == 1
            while !reader.isAtEnd { batch.elements.append(try reader.sized()) }
            return batch
        } catch { throw MessagePortActorError.malformedResult("\(id)", error.description) }
    }
}
