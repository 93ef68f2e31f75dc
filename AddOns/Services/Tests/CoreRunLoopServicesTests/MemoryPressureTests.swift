// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop
import CoreRunLoopServices
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// Each has a process of its own, as the environment is the process's.
@Suite struct MemoryPressureTests {
    @Test func `A warning of the service manager is told`() async {
        await #expect(processExitsWith: .success) {
            let path = "/tmp/crl-pressure-\(getpid())"
            #expect(mkfifo(path, 0o600) == 0)
            let fifo = open(path, O_RDWR | O_CLOEXEC)
            setenv("MEMORY_PRESSURE_WATCH", path, 1)
            try await withLoop { loop in
                var levels = MemoryPressure(on: loop).makeAsyncIterator()
                #expect(write(fifo, "x", 1) == 1)
                let level = try await levels.next()
                #expect(level == .warning)
                if let level { #expect(level > .normal && level < .critical) }
            }
            unlink(path)
        }
    }

    @Test func `A task that is cancelled gets no more`() async {
        await #expect(processExitsWith: .success) {
            let path = "/tmp/crl-pressure-\(getpid())"
            #expect(mkfifo(path, 0o600) == 0)
            setenv("MEMORY_PRESSURE_WATCH", path, 1)
            try await withLoop { loop in
                let task = Task {
                    var count = 0
                    for try await _ in MemoryPressure(on: loop) { count += 1 }
                    return count
                }
                task.cancel()
                let count = try await task.value
                #expect(count == 0)
            }
            unlink(path)
        }
    }

    @Test func `Where nothing is to be listened to, the error says why`() async {
        await #expect(processExitsWith: .success) {
            setenv("MEMORY_PRESSURE_WATCH", "/dev/null", 1)
            try await withLoop { loop in
                let error = await #expect(throws: MemoryPressure.Refused.self) {
                    for try await _ in MemoryPressure(on: loop) {}
                }
                #expect(error?.code == EHOSTDOWN)
            }
        }
    }
}
