/* SPDX-License-Identifier: Apache-2.0 */
/* See file_probe.h. */
#include "file_probe.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "File/file_kernel.h"

struct file_probe file_probe;
static struct file_kernel linux_files;

UInt8 pattern_byte(size_t offset)
{
    return (UInt8)(offset * 31 + offset / 251);
}

void pattern_fill(UInt8 *bytes, size_t offset, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = pattern_byte(offset + i);
    }
}

void pattern_write_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "we");

    REQUIRE(file);
    for (size_t i = 0; i < size; i++) {
        (void)fputc(pattern_byte(i), file);
    }
    REQUIRE(fclose(file) == 0);
}

bool pattern_is_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "re");
    bool is_same = file != NULL;

    for (size_t i = 0; is_same && i < size; i++) {
        is_same = fgetc(file) == pattern_byte(i);
    }
    is_same = is_same && fgetc(file) == EOF;
    if (file) {
        (void)fclose(file);
    }
    return is_same;
}

static CFURLRef url_of(const char *path)
{
    CFURLRef url = CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)path, (CFIndex)strlen(path), false);

    REQUIRE(url);
    return url;
}

CFReadStreamRef background_reader(const char *path)
{
    CFURLRef url = url_of(path);
    CFReadStreamRef reader = CRLReadStreamCreateWithFileInBackground(NULL, url);

    CFRelease(url);
    REQUIRE(reader);
    return reader;
}

CFWriteStreamRef background_writer(const char *path)
{
    CFURLRef url = url_of(path);
    CFWriteStreamRef writer = CRLWriteStreamCreateWithFileInBackground(NULL, url);

    CFRelease(url);
    REQUIRE(writer);
    return writer;
}

void background_reader_end(CFReadStreamRef reader)
{
    CFReadStreamClose(reader);
    CFRelease(reader);
}

void background_writer_end(CFWriteStreamRef writer)
{
    CFWriteStreamClose(writer);
    CFRelease(writer);
}

/* ---- the kernel ---- */

enum { call_open, call_read, call_write, call_sync, call_close };

/* Notes the call. Returns what it fails with, or 0. */
static int note(int call)
{
    static const char *const names[] = {"open", "read", "write", "sync", "close"};

    trace_add(&file_probe.trace, names[call]);
    if (file_probe.before) {
        file_probe.before(names[call]);
    }
    return -file_probe.errors[call];
}

static int probe_open(const char *path, int flags)
{
    int error = note(call_open);
    int file = error ? error : linux_files.open(path, flags);

    file_probe.opened += file >= 0;
    return file;
}

static ssize_t probe_read(int file, void *bytes, size_t size)
{
    int error = note(call_read);

    return error ? error : linux_files.read(file, bytes, size);
}

static ssize_t probe_write(int file, const void *bytes, size_t size)
{
    int error = note(call_write);

    return error ? error : linux_files.write(file, bytes, size);
}

static int probe_sync(int file)
{
    int error = note(call_sync);

    return error ? error : linux_files.sync(file);
}

static int probe_close(int file)
{
    int error = note(call_close);
    int result = linux_files.close(file);

    file_probe.opened--;
    file_probe.closes++;
    return error ? error : result;
}

void file_probe_install(void)
{
    linux_files = file_kernel;
    file_kernel.open = probe_open;
    file_kernel.read = probe_read;
    file_kernel.write = probe_write;
    file_kernel.sync = probe_sync;
    file_kernel.close = probe_close;
}

void file_probe_await_closes(int closes)
{
    while (file_probe.closes < closes) {
        (void)sched_yield();
    }
}
