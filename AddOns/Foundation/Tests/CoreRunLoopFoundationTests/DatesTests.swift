// SPDX-License-Identifier: Apache-2.0
//
// Foundation's types in the overlay's calls, in a file that imports both.

import CoreRunLoop
import CoreRunLoopFoundation
import Foundation
import Testing

@Suite(.timeLimit(.minutes(10))) struct `Foundation's types` {
    @Test func `are dates that stay the same`() {
        let date = Date(timeIntervalSinceReferenceDate: 1234.5)
        #expect(Date(WallTime(date)) == date)
        #expect(WallTime(Date.distantFuture) == .distantFuture)
    }

    @Test func `make and run timers`() async throws {
        let count = try await NSThread.joinable { () -> Int in
            nonisolated(unsafe) var count = 0
            let timer = NSTimer(timeInterval: 0.001, repeats: true) { timer in
                count += 1
                if count == 3 { timer.invalidate() }
            }
            timer.date = Date()
            NSRunLoop.current.add(timer, forMode: .default)
            NSRunLoop.current.run(until: Date(timeIntervalSinceNow: 1000))
            NSTimer.scheduledTimer(withTimeInterval: 0.001, repeats: false) { _ in count += 1 }
            #expect(NSRunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.05)))
            NSThread.sleep(forTimeInterval: -1)
            NSThread.sleep(until: Date.distantPast)
            return count
        }.value
        #expect(count == 4)
    }

    @Test func `are what travels: anything else is an error with its type`() {
        let message = PortMessage(sendPort: nil, receivePort: nil, components: [NSObject()] as [Any])
        #expect(throws: PortError.unsupportedComponent("NSObject")) {
            try NSMachPort().post(components: message.CoreRunLoop::components, before: .distantPast)
        }
    }

    @Test func `travel in port messages`() async throws {
        try await NSThread.joinable {
            let port = NSMachPort()
            NSRunLoop.current.add(port, forMode: .default)
            port.onMessage = { #expect($0.dataComponents == [Data([1, 2]), Data()]) }
            #expect(port.send(before: .now, components: [Data([1, 2]), Data()], from: nil))
            #expect(NSRunLoop.current.run(mode: .default, before: Date.distantFuture))
            port.invalidate()
        }.value
    }
}
