// SPDX-License-Identifier: Apache-2.0
//
// Files that are read on the threads of the C library's pool.

import CCoreRunLoop
public import CoreRunLoop

extension ByteStream {
    /// Makes a stream that reads a file from its start, away from the loop: a slow disk holds up nobody but those who wait for the bytes.
    ///
    /// ```swift
    /// for try await line in try ByteStream(readingInBackground: "log", on: loop).lines(maxLength: 1024) { print(line) }
    /// ```
    ///
    /// The file is opened and read on the threads of the pool of `RunLoop.performInBackground(in:_:)`, up to 256 KiB ahead. So a file that
    /// is not there is an error of the first read. A named pipe can be read as well. For a file that is written, see
    /// `RunLoop.performInBackground(in:_:)`.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - loop: The loop that serves the stream.
    ///   - mode: The mode of the loop in which that happens.
    /// - Throws: ``CoreRunLoop/ByteStreamError`` for a path that is none, and without memory.
    ///
    /// The corresponding C function is `CRLReadStreamCreateWithFileInBackground`.
    public convenience init(readingInBackground path: String, on loop: RunLoop, mode: RunLoop.Mode = .common) throws(ByteStreamError) {
        try self.init(reading: path, on: loop, mode: mode) { CRLReadStreamCreateWithFileInBackground(nil, $0) }
    }
}
