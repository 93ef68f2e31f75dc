/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that grow at their end. A buffer belongs to one thread. Once it lacks memory, nothing more is appended. */
#ifndef CRL_PLIST_BYTE_BUFFER_H
#define CRL_PLIST_BYTE_BUFFER_H

#include "plist_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "CoreFoundation/CFString.h"

struct byte_buffer {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
    bool lacks_memory;
};

/* Makes more room than there is. */
uint8_t *byte_buffer_grow(struct byte_buffer *buffer, size_t count);
void byte_buffer_free(struct byte_buffer *buffer);

/* Makes room for `count` more bytes, and returns where they begin; NULL without memory. */
static inline uint8_t *byte_buffer_reserve(struct byte_buffer *buffer, size_t count)
{
    return count < buffer->capacity - buffer->count && !buffer->lacks_memory ? buffer->bytes + buffer->count
                                                                             : byte_buffer_grow(buffer, count);
}

static inline void byte_buffer_append(struct byte_buffer *buffer, const void *bytes, size_t count)
{
    uint8_t *end = byte_buffer_reserve(buffer, count);

    if (end && count > 0) {
        memcpy(end, bytes, count);
        buffer->count += count;
    }
}

static inline void byte_buffer_append_text(struct byte_buffer *buffer, const char *text)
{
    byte_buffer_append(buffer, text, strlen(text));
}

static inline void byte_buffer_append_byte(struct byte_buffer *buffer, uint8_t byte)
{
    byte_buffer_append(buffer, &byte, 1);
}

/*
 * The units of a string that is not ASCII: its own, or a copy in `*ret_copy` for free(). NULL without memory, which the buffer then lacks.
 */
const UniChar *byte_buffer_borrow_units(struct byte_buffer *buffer, CFStringRef string, UniChar **ret_copy);

/* The lowest `size` bytes of a number, the most significant first. */
void byte_buffer_append_big_endian(struct byte_buffer *buffer, uint64_t number, size_t size);
/* A character in UTF-8. */
void byte_buffer_append_character(struct byte_buffer *buffer, uint32_t character);

#endif
