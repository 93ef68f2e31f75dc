// SPDX-License-Identifier: Apache-2.0
//
// Requests whose bytes are property lists.

import CoreRunLoop
import CoreRunLoopPropertyLists
import Testing

@Suite(.timeLimit(.minutes(5))) struct `An exchange of property lists` {
    private func withService(_ body: (MessagePort) async throws -> Void) async throws {
        let stop = RunLoop.StopToken()
        let loop = try Thread.runningLoop(name: "service", until: stop)
        let service = try MessagePort(name: nil)
        defer {
            service.invalidate()
            stop.requestStop()
        }
        loop.add(service, forMode: .common)
        try await body(service)
    }

    @Test func `takes and gives Codable values and trees`() async throws {
        try await withService { port in
            port.handle(MessagePort.Exchange<Point, [Point]>.propertyList(number: 1)) { [$0, $0] }
            port.handle(MessagePort.Exchange<PropertyList, PropertyList>.propertyList(number: 2), concurrently: 2) { $0["key"] ?? "none" }
            let point = Point(x: 1, y: 2)
            let points: [Point] = try await port.request(.propertyList(number: 1), point)
            let tree: PropertyList = try await port.request(.propertyList(number: 2), ["key": everything] as PropertyList)
            #expect(points == [point, point])
            #expect(tree == everything)
        }
    }

    @Test func `says what cannot be read or written`() async throws {
        try await withService { port in
            port.handle(MessagePort.Exchange<[Int], UInt64>.propertyList(number: 1)) { UInt64($0.count) + .max / 2 + 1 }
            await #expect(throws: PortError.malformed(1)) { try await port.requestBytes(number: 1, [1, 2, 3]) }
            await #expect(throws: PortError.malformed(1)) { try await port.request(.propertyList(number: 1), "text") as UInt64 }
            await #expect(throws: EncodingError.self) { try await port.request(.propertyList(number: 1), UInt64.max) as UInt64 }
            let error = await #expect(throws: PortError.self) { try await port.request(.propertyList(number: 1), [1]) as UInt64 }
            guard case .failed(let text) = error else { throw try #require(error) }
            #expect(text.contains("64 bits"))
        }
    }
}
