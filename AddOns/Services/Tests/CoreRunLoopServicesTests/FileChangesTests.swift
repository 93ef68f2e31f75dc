// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop
import CoreRunLoopServices
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// Calls `body` with the descriptor and the path of a new file, and a loop that runs.
private func withFile(_ name: String, _ body: @Sendable (Int32, String, RunLoop) async throws -> Void) async throws {
    let path = "/tmp/crl-changes-\(name)-\(getpid())"
    let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
    #expect(file >= 0)
    try await withLoop { loop in try await body(file, path, loop) }
    close(file)
    unlink(path)
}

@Suite struct FileChangesTests {
    @Test func `What happens to a file is told until it is deleted`() async throws {
        try await withFile("life") { file, path, loop in
            var changes = FileChanges(of: path, on: loop).makeAsyncIterator()
            #expect(write(file, "line", 4) == 4)
            let written = try await changes.next()
            #expect(written == [.written, .extended])
            rename(path, path + "-new")
            let renamed = try await changes.next()
            #expect(renamed?.contains(.renamed) == true)
            unlink(path + "-new")
            var last = try await changes.next()
            while let flags = last, !flags.contains(.deleted) { last = try await changes.next() }
            #expect(last?.contains(.deleted) == true)
            let after = try await changes.next()
            #expect(after == nil)
        }
    }

    @Test func `Only what is asked for is told, and the end`() async throws {
        try await withFile("asked") { file, path, loop in
            var changes = FileChanges(of: path, telling: .attributes, on: loop).makeAsyncIterator()
            #expect(write(file, "line", 4) == 4)
            fchmod(file, 0o640)
            let flags = try await changes.next()
            #expect(flags == .attributes)
            unlink(path)
            var last = try await changes.next()
            while let flags = last, !flags.contains(.deleted) { last = try await changes.next() }
            #expect(last?.contains(.deleted) == true)
        }
    }

    @Test func `A task that does not keep up gets all as one`() async throws {
        try await withFile("late") { file, path, loop in
            var changes = FileChanges(of: path, on: loop).makeAsyncIterator()
            // When the second change was told here, the first one was told there.
            var others = FileChanges(of: path, telling: .attributes, on: loop).makeAsyncIterator()
            #expect(write(file, "line", 4) == 4)
            for mode in [0o640, 0o600] as [mode_t] {
                fchmod(file, mode)
                _ = try await others.next()
            }
            var seen: FileChanges.Flags = []
            while !seen.isSuperset(of: [.written, .extended, .attributes]), let flags = try await changes.next() { seen.formUnion(flags) }
            #expect(seen == [.written, .extended, .attributes])
        }
    }

    @Test func `A task that is cancelled gets no more`() async throws {
        try await withFile("cancelled") { _, path, loop in
            let task = Task {
                var count = 0
                for try await _ in FileChanges(of: path, on: loop) { count += 1 }
                return count
            }
            task.cancel()
            let count = try await task.value
            #expect(count == 0)
        }
    }

    @Test func `Of a file that is not there, the error says so`() async throws {
        try await withLoop { loop in
            let error = await #expect(throws: FileChanges.Refused.self) {
                for try await _ in FileChanges(of: "/nowhere/at/all", on: loop) {}
            }
            #expect(error?.code == ENOENT)
        }
    }
}
