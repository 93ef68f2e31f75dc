/* SPDX-License-Identifier: Apache-2.0 */
/* Files for tests of background streams: a pattern of bytes, streams of paths, and a kernel that notes, fails or hangs as a test says. */
#ifndef CRL_TESTS_FILE_PROBE_H
#define CRL_TESTS_FILE_PROBE_H

#include <stdint.h>

#include "CRLFileStream.h"
#include "Stream/stream_recorder.h"

/* The byte of the pattern at the offset. */
UInt8 pattern_byte(size_t offset);
void pattern_fill(UInt8 *bytes, size_t offset, size_t size);
/* Makes a file of the pattern. */
void pattern_write_file(const char *path, size_t size);
/* Whether the file has the pattern, and nothing else. */
bool pattern_is_file(const char *path, size_t size);

CFReadStreamRef background_reader(const char *path);
CFWriteStreamRef background_writer(const char *path);
/* Takes the stream out of the loop, closes and releases it. */
void background_reader_end(CFReadStreamRef reader);
void background_writer_end(CFWriteStreamRef writer);

/* What a call of the kernel does first, on the thread that works. */
struct file_probe {
    struct trace trace; /* open, read, write, sync, close */
    void (*before)(const char *call); /* NULL: nothing */
    _Atomic int errors[5]; /* what the calls fail with, in the order above; 0: they do not */
    _Atomic int opened; /* files that are open */
    _Atomic int closes;
};
extern struct file_probe file_probe;

/* From now on the calls go by the probe. */
void file_probe_install(void);
/* Waits until the streams' files have been closed so often. */
void file_probe_await_closes(int closes);

#endif
