/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of memory; see stream_memory.h. A stream's own fields belong to the thread that has claimed it, and the constant ones to all.
 */
#include "Stream/Kind/stream_memory.h"

#include <errno.h>
#include <string.h>

struct memory_reader {
    struct stream stream;
    const UInt8 *bytes; /* constant, as the next two */
    CFIndex length;
    CFAllocatorRef deallocator; /* a reference */
    CFIndex position; /* of the next byte to read */
};

struct memory_writer {
    struct stream stream;
    CFAllocatorRef allocator; /* constant: a reference, which a buffer that grows comes from; NULL: the buffer is the program's */
    UInt8 *buffer; /* NULL: nothing was written yet to a buffer that grows */
    CFIndex capacity;
    CFIndex length;
};

/* ---- reading ---- */

static int open_reader(struct stream *s)
{
    const struct memory_reader *reader = (struct memory_reader *)s;

    s->opens_at_end = reader->length == 0;
    return 0;
}

static const UInt8 *lend(struct stream *s, CFIndex most, CFIndex *ret_count, bool *ret_at_end)
{
    struct memory_reader *reader = (struct memory_reader *)s;
    const UInt8 *bytes = reader->bytes + reader->position;
    CFIndex left = reader->length - reader->position;

    *ret_count = most > 0 && most < left ? most : left;
    reader->position += *ret_count;
    *ret_at_end = reader->position == reader->length;
    invariant(reader->position <= reader->length);
    return bytes;
}

static CFIndex read_bytes(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    CFIndex count;
    const UInt8 *lent = lend(s, size, &count, ret_at_end);

    memcpy(bytes, lent, (size_t)count);
    return count;
}

static void finalize_reader(struct stream *s)
{
    struct memory_reader *reader = (struct memory_reader *)s;

    if (reader->bytes) {
        CFAllocatorDeallocate(reader->deallocator, (void *)(uintptr_t)reader->bytes);
    }
    object_release_if_any(reader->deallocator);
}

static const struct stream_kind reader_kind = {
    .size = sizeof(struct memory_reader),
    .open = open_reader,
    .read = read_bytes,
    .lend = lend,
    .finalize = finalize_reader,
};

struct stream *stream_memory_create_reader(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFAllocatorRef deallocator)
{
    struct memory_reader *reader = (struct memory_reader *)stream_create(allocator, &reader_kind, true);

    if (!reader) {
        return NULL;
    }
    reader->bytes = bytes;
    reader->length = length;
    reader->deallocator = CFRetain(deallocator ? deallocator : CFAllocatorGetDefault());
    atomic_init(&reader->stream.is_ready, true); /* stays so: the read that takes the last bytes says that the end is reached */
    return &reader->stream;
}

/* ---- writing ---- */

/* Makes room for `size` more bytes. Returns false if there is no memory. */
static bool grow(struct memory_writer *writer, CFIndex size)
{
    enum { smallest = 1024 };
    CFIndex needed = writer->length + size;
    CFIndex capacity = writer->capacity > needed / 2 ? 2 * writer->capacity : needed;
    UInt8 *grown;

    if (needed <= writer->capacity) {
        return true;
    }
    capacity = capacity < smallest ? smallest : capacity;
    grown = CFAllocatorAllocate(writer->allocator, capacity, 0);
    if (!grown) {
        return false;
    }
    if (writer->buffer) {
        memcpy(grown, writer->buffer, (size_t)writer->length);
        CFAllocatorDeallocate(writer->allocator, writer->buffer);
    }
    writer->buffer = grown;
    writer->capacity = capacity;
    return true;
}

static CFIndex write_bytes(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    struct memory_writer *writer = (struct memory_writer *)s;

    if (size > INTPTR_MAX / 4 - writer->length || (writer->allocator && !grow(writer, size)) || size > writer->capacity - writer->length) {
        return -ENOMEM;
    }
    memcpy(writer->buffer + writer->length, bytes, (size_t)size);
    writer->length += size;
    invariant(writer->length <= writer->capacity);
    if (!writer->allocator) {
        atomic_store_explicit(&s->is_ready, writer->length < writer->capacity, memory_order_release);
    }
    return size;
}

static int open_writer(struct stream *s)
{
    const struct memory_writer *writer = (struct memory_writer *)s;

    s->opens_at_end = !writer->allocator && writer->capacity == 0;
    return 0;
}

static CFTypeRef copy_property(struct stream *s, CFStringRef name)
{
    const struct memory_writer *writer = (struct memory_writer *)s;

    if (!writer->allocator || !CFEqual(name, kCFStreamPropertyDataWritten)) {
        return NULL;
    }
    return CFDataCreate(writer->allocator, writer->buffer, writer->length);
}

static void finalize_writer(struct stream *s)
{
    struct memory_writer *writer = (struct memory_writer *)s;

    if (writer->allocator) {
        if (writer->buffer) {
            CFAllocatorDeallocate(writer->allocator, writer->buffer);
        }
        CFRelease(writer->allocator);
    }
}

static const struct stream_kind writer_kind = {
    .size = sizeof(struct memory_writer),
    .open = open_writer,
    .write = write_bytes,
    .copy_property = copy_property,
    .finalize = finalize_writer,
};

struct stream *stream_memory_create_writer(CFAllocatorRef allocator, UInt8 *buffer, CFIndex capacity, CFAllocatorRef buffer_allocator)
{
    struct memory_writer *writer = (struct memory_writer *)stream_create(allocator, &writer_kind, false);

    if (!writer) {
        return NULL;
    }
    writer->allocator = buffer_allocator ? CFRetain(buffer_allocator) : NULL;
    writer->buffer = buffer;
    writer->capacity = capacity;
    atomic_init(&writer->stream.is_ready, true);
    return &writer->stream;
}
