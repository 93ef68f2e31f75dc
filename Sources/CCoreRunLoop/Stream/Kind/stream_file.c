/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of files and of descriptors; see stream_file.h. The fields belong to the thread that has claimed the stream. */
#include "Stream/Kind/stream_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"

struct file_stream {
    struct stream stream;
    char *path; /* constant; NULL: of the program's descriptor */
    int file; /* -1: not open */
    bool closes; /* constant: closing the stream closes the file */
    bool is_regular;
    bool appends;
    int64_t offset; /* where reading or writing is to begin; below 0: none was set */
};

/* ---- opening ---- */

static int open_path(const struct file_stream *file)
{
    if (stream_is_reader(&file->stream)) {
        return kernel.path_open(file->path, O_RDONLY);
    }
    return kernel.path_open(file->path, O_WRONLY | O_CREAT | (file->appends ? O_APPEND : O_TRUNC));
}

/* Returns the program's descriptor, or -EBADF if it is none or is not open for what the stream does. */
static int take_descriptor(struct file_stream *file)
{
    int refused = stream_is_reader(&file->stream) ? O_WRONLY : O_RDONLY;
    int access = kernel.file_access(file->file);

    if (access < 0) {
        file->file = -1; /* whatever has the number later is not the stream's to close */
    }
    return access < 0 || access == refused ? -EBADF : file->file;
}

static int open_file(struct stream *s)
{
    struct file_stream *file = (struct file_stream *)s;
    int opened = file->path ? open_path(file) : take_descriptor(file);

    if (opened < 0) {
        return opened;
    }
    if (file->path && file->offset >= 0) {
        int64_t offset = kernel.file_seek(opened, file->offset, SEEK_SET);

        if (offset < 0) {
            (void)kernel.close(opened);
            return (int)offset;
        }
    }
    file->file = opened;
    file->is_regular = kernel.file_is_regular(opened);
    atomic_store_explicit(&s->is_ready, file->is_regular, memory_order_release);
    if (!file->is_regular) {
        stream_lock(s);
        atomic_store_explicit(&s->descriptor, opened, memory_order_relaxed);
        stream_unlock(s);
    }
    return 0;
}

static void close_file(struct stream *s)
{
    struct file_stream *file = (struct file_stream *)s;

    if (file->file >= 0 && file->closes) {
        (void)kernel.close(file->file);
    }
    file->file = -1;
}

/* ---- moving bytes ---- */

/* After -EAGAIN of a descriptor that never waits. Returns whether to try again; otherwise `*ret_result` is an error. */
static bool wait_for(int file, uint32_t readiness, CFIndex *ret_result)
{
    int result = kernel_ports.wait(file, readiness, kernel_never);

    *ret_result = result;
    return result >= 0 || result == -EINTR;
}

static CFIndex read_file(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    const struct file_stream *file = (struct file_stream *)s;
    CFIndex result;

    invariant(file->file >= 0); /* an open stream has its file until the claim ends */
    do {
        result = kernel.file_read(file->file, bytes, (size_t)size);
    } while (result == -EAGAIN && wait_for(file->file, kernel_readable, &result));
    *ret_at_end = result == 0;
    return result;
}

/* A pipe that is reported as writable has room for so much. The rest of a longer write would wait, as the mode is left alone. */
static CFIndex write_file(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    const struct file_stream *file = (struct file_stream *)s;
    CFIndex most = file->is_regular || size < PIPE_BUF ? size : PIPE_BUF;
    CFIndex result;

    do {
        result = kernel.file_write(file->file, bytes, (size_t)most);
    } while (result == -EAGAIN && wait_for(file->file, kernel_writable, &result));
    return result;
}

/* An empty pipe whose other end is closed reports only the hang-up. For a writer the next write then returns the error. */
static int look_at_file(struct stream *s, uint32_t ready)
{
    const struct file_stream *file = (struct file_stream *)s;
    uint32_t wanted = stream_is_reader(s) ? kernel_readable : kernel_writable;

    if (file->is_regular) {
        return stream_lasting_event(s);
    }
    if (!ready) {
        ready = kernel.descriptor_ready(file->file, wanted);
    }
    if (ready & wanted) {
        return stream_lasting_event(s);
    }
    if (!(ready & kernel_failed)) {
        return 0;
    }
    return stream_is_reader(s) ? kCFStreamEventEndEncountered : kCFStreamEventCanAcceptBytes;
}

/* ---- properties ---- */

static CFTypeRef copy_property(struct stream *s, CFStringRef name)
{
    const struct file_stream *file = (struct file_stream *)s;
    int64_t offset = file->offset;

    if (CFEqual(name, kCFStreamPropertyAppendToFile) && !stream_is_reader(s)) {
        return CFRetain(file->appends ? kCFBooleanTrue : kCFBooleanFalse);
    }
    if (!CFEqual(name, kCFStreamPropertyFileCurrentOffset) || file->appends) {
        return NULL;
    }
    if (file->file >= 0) {
        offset = kernel.file_seek(file->file, 0, SEEK_CUR);
    }
    return offset >= 0 ? CFNumberCreate(object_allocator(s), kCFNumberSInt64Type, &offset) : NULL;
}

static bool set_offset(struct file_stream *file, CFTypeRef value)
{
    int64_t offset;

    if (!value || CFGetTypeID(value) != CFNumberGetTypeID() || !CFNumberGetValue(value, kCFNumberSInt64Type, &offset) || offset < 0 ||
        file->appends) {
        return false;
    }
    if (file->file >= 0 && kernel.file_seek(file->file, offset, SEEK_SET) < 0) {
        return false;
    }
    file->offset = offset;
    return true;
}

static bool set_property(struct stream *s, CFStringRef name, CFTypeRef value)
{
    struct file_stream *file = (struct file_stream *)s;

    if (CFEqual(name, kCFStreamPropertyFileCurrentOffset)) {
        return set_offset(file, value);
    }
    if (!CFEqual(name, kCFStreamPropertyAppendToFile) || stream_is_reader(s) || stream_status(s) != kCFStreamStatusNotOpen || !value ||
        CFGetTypeID(value) != CFBooleanGetTypeID()) {
        return false;
    }
    file->appends = CFBooleanGetValue(value);
    if (file->appends) {
        file->offset = -1; /* a file that is appended to is written at its end, wherever that is */
    }
    return true;
}

/* ---- the end ---- */

static void finalize(struct stream *s)
{
    close_file(s); /* the program's descriptor, if the stream was never opened */
    free(((struct file_stream *)s)->path);
}

static const struct stream_kind file_kind = {
    .size = sizeof(struct file_stream),
    .open = open_file,
    .read = read_file,
    .write = write_file,
    .look = look_at_file,
    .close = close_file,
    .copy_property = copy_property,
    .set_property = set_property,
    .finalize = finalize,
};

struct stream *stream_file_create_with_descriptor(CFAllocatorRef allocator, int descriptor, bool closes, bool is_reader)
{
    struct file_stream *file = (struct file_stream *)stream_create(allocator, &file_kind, is_reader);

    if (!file) {
        return NULL;
    }
    file->file = descriptor < 0 ? -1 : descriptor;
    file->closes = closes;
    file->offset = -1;
    return &file->stream;
}

struct stream *stream_file_create(CFAllocatorRef allocator, const char *path, bool is_reader)
{
    size_t size = strlen(path) + 1;
    char *copy = malloc(size);
    struct stream *s = copy ? stream_file_create_with_descriptor(allocator, -1, true, is_reader) : NULL;

    if (!s) {
        free(copy);
        return NULL;
    }
    ((struct file_stream *)s)->path = memcpy(copy, path, size);
    return s;
}
