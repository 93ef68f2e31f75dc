// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop
import CoreRunLoopServices
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

private func makeFile(_ path: String) {
    let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
    #expect(file >= 0)
    close(file)
}

@Suite struct FileEventsTests {
    @Test func `What happens in a tree is told in turn`() async throws {
        let folder = "/tmp/crl-events-\(getpid())"
        #expect(mkdir(folder, 0o700) == 0)
        try await withLoop { loop in
            var events = FileEvents(in: [folder], on: loop).makeAsyncIterator()
            mkdir(folder + "/sub", 0o700)
            makeFile(folder + "/sub/file")
            var paths: [String] = []
            while paths.last != folder + "/sub/file", let event = try await events.next() {
                #expect(event.flags.contains(.created))
                paths.append(event.path)
            }
            #expect(paths == [folder + "/sub", folder + "/sub/file"])
            unlink(folder + "/sub/file")
            let gone = try await events.next()
            #expect(gone?.path == folder + "/sub/file")
            #expect(gone?.flags.contains([.removed, .isFile]) == true)
        }
        rmdir(folder + "/sub")
        rmdir(folder)
    }

    @Test func `A task that is cancelled gets no more`() async throws {
        try await withLoop { loop in
            let task = Task {
                var count = 0
                for try await _ in FileEvents(in: ["/nowhere/at/all"], on: loop) { count += 1 }
                return count
            }
            task.cancel()
            let count = try await task.value
            #expect(count == 0)
        }
    }

    @Test(arguments: [
        ([], "FileEvents in []: no path was given"), (["/tmp", ""], "FileEvents in [\"/tmp\", \"\"]: an empty path is none"),
        (["/a\0b"], "FileEvents in [\"/a\\0b\"]: a path with a zero in it is none"),
    ])
    func `What is no path is refused`(paths: [String], words: String) async throws {
        try await withLoop { loop in
            do {
                for try await _ in FileEvents(in: paths, on: loop) {}
                Issue.record("it is watched")
            } catch let refused as FileEvents.Refused {
                #expect("\(refused)" == words)
            }
        }
    }

    @Test func `A loop that has ended is said to have`() async throws {
        let loop = try await Thread.joinable { RunLoop.current }.value
        do {
            for try await _ in FileEvents(in: ["/tmp"], on: loop) {}
            Issue.record("it is watched")
        } catch let refused as FileEvents.Refused {
            #expect(refused.reason == .loopEnded)
        }
    }
}
