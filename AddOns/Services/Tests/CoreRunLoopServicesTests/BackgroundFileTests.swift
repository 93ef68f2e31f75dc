// SPDX-License-Identifier: Apache-2.0
import CoreRunLoop
import CoreRunLoopServices
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

@Suite struct BackgroundFileTests {
    @Test func `A file is read in the background`() async throws {
        let path = "/tmp/crl-background-\(getpid())"
        let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        #expect(write(file, "one\ntwo\n", 8) == 8)
        close(file)
        defer { unlink(path) }
        try await withLoop { loop in
            var lines: [String] = []
            for try await line in try ByteStream(readingInBackground: path, on: loop).lines(maxLength: 100) { lines.append(line) }
            #expect(lines == ["one", "two"])
        }
    }

    @Test func `A file that is not there is an error of the first read`() async throws {
        try await withLoop { loop in
            let stream = try ByteStream(readingInBackground: "/tmp/crl-none-\(getpid())/file", on: loop)
            let error = await #expect(throws: ByteStreamError.self) { _ = try await stream.read(upTo: 10) }
            #expect(error?.reason == .system(ENOENT))
        }
    }
}
