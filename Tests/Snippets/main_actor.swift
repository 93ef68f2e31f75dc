// SPDX-License-Identifier: Apache-2.0
//
// Every asynchronous function that takes a closure, called on the main actor with closures that use its state, without an error and without
// a warning.

import CoreRunLoop
import CoreRunLoopDistributed
import CoreRunLoopTesting
import Distributed

distributed actor Counter {
    typealias ActorSystem = MessagePortActorSystem
    distributed func add(_ number: Int) -> Int { number }
}

final class Plain { var number = 0 }

@MainActor final class Screen {
    let plain = Plain()
    var count = 0
    var made: Counter?

    func host(_ system: MessagePortActorSystem) async throws {
        let counter = try await system.host("counter") { Counter(actorSystem: system) }
        try await system.host("again", as: Counter.self) {
            count += plain.number
            let counter = Counter(actorSystem: system)
            made = counter
            return counter
        }
        let make: () async throws -> Counter = { [plain] in
            plain.number += 1
            return Counter(actorSystem: system)
        }
        try await system.host("by a closure", make)
        count = try await MessagePortActorSystem.withTimeLimit(.seconds(1)) { try await counter.add(count + plain.number) }
        let same = await MessagePortActorSystem.withTimeLimit(.seconds(1)) { plain }
        same.number = await MessagePortActorSystem.withTimeLimit(.seconds(1)) { 1 }
    }

    func perform(_ loop: RunLoop, _ thread: CoreRunLoop.Thread) async throws {
        try await loop.run { @MainActor in self.count += 1 }
        try await thread.run { @MainActor in self.count += self.plain.number }
    }

    func read(_ stream: ByteStream, _ listener: ByteStreamListener, _ loop: RunLoop) async throws {
        for try await byte in stream.bytes() { count += Int(byte) }
        for try await chunk in stream.chunks() { count += chunk.count }
        for try await line in stream.lines() { count += line.count }
        for try await other in listener.connections() { other.onEvent = { @MainActor _ in self.count += 1 } }
        for await _ in try loop.ticks(every: .seconds(1)) { plain.number += 1 }
    }

    func serve(_ port: MessagePort) {
        port.handle(.text(number: 1), concurrently: 4) { @MainActor text in
            await Task.yield()
            self.count += 1
            return text
        }
    }
}

actor Home {
    let plain = Plain()
    func host(_ system: MessagePortActorSystem) async throws -> Int {
        try await system.host("home") {
            plain.number += 1
            return Counter(actorSystem: system)
        }
        return await MessagePortActorSystem.withTimeLimit(.seconds(1)) { plain.number }
    }
}
