// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop
import CoreRunLoopServices
import Testing

@Suite struct NetworkReachabilityTests {
    @Test func `The way to this machine is told at once`() async throws {
        try await withLoop { loop in
            var flags = NetworkReachability(of: "127.0.0.1", on: loop).makeAsyncIterator()
            let first = try await flags.next()
            #expect(first?.contains([.reachable, .localAddress]) == true)
            #expect(first?.contains(.transientConnection) == false)
            var none = NetworkReachability(of: "255.255.255.255", on: loop).makeAsyncIterator()
            #expect(try await none.next() == [])
        }
    }

    @Test func `A task that is cancelled hears no more of the way`() async throws {
        try await withLoop { loop in
            let task = Task {
                var count = 0
                for try await _ in NetworkReachability(on: loop) { count += 1 }
                return count
            }
            task.cancel()
            let count = try await task.value
            #expect(count <= 1)
        }
    }

    @Test func `What is no name has no way`() async throws {
        try await withLoop { loop in
            let refused = await #expect(throws: NetworkReachability.Refused.self) {
                for try await _ in NetworkReachability(of: "", on: loop) {}
            }
            #expect(refused?.code == 1002)
        }
    }
}
