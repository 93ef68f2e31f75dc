/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that grow at their end (byte_buffer.h). */
#include "Format/byte_buffer.h"

#include <stdlib.h>

#include "Support/invariant.h"

enum { capacity_first = 256 };

uint8_t *byte_buffer_grow(struct byte_buffer *buffer, size_t count)
{
    size_t needed;
    size_t capacity = buffer->capacity > SIZE_MAX / 2 ? SIZE_MAX : buffer->capacity * 2;
    uint8_t *bytes;

    if (buffer->lacks_memory || __builtin_add_overflow(buffer->count, count, &needed)) {
        buffer->lacks_memory = true;
        return NULL;
    }
    if (needed <= buffer->capacity && buffer->bytes) {
        return buffer->bytes + buffer->count;
    }
    capacity = capacity < needed ? needed : capacity;
    capacity = capacity < capacity_first ? capacity_first : capacity;
    bytes = realloc(buffer->bytes, capacity);
    if (!bytes) {
        buffer->lacks_memory = true;
        return NULL;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return bytes + buffer->count;
}

void byte_buffer_free(struct byte_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct byte_buffer){0};
}

const UniChar *byte_buffer_borrow_units(struct byte_buffer *buffer, CFStringRef string, UniChar **ret_copy)
{
    const UniChar *units = CFStringGetCharactersPtr(string);
    CFIndex length = CFStringGetLength(string);

    *ret_copy = units ? NULL : calloc((size_t)length + 1, sizeof **ret_copy);
    if (*ret_copy) {
        CFStringGetCharacters(string, CFRangeMake(0, length), *ret_copy);
    }
    buffer->lacks_memory = buffer->lacks_memory || (!units && !*ret_copy);
    return units ? units : *ret_copy;
}

void byte_buffer_append_big_endian(struct byte_buffer *buffer, uint64_t number, size_t size)
{
    uint8_t bytes[8];

    invariant(size <= sizeof bytes);
    for (size_t i = size; i > 0; i--) {
        bytes[i - 1] = (uint8_t)number;
        number >>= 8;
    }
    byte_buffer_append(buffer, bytes, size);
}

void byte_buffer_append_character(struct byte_buffer *buffer, uint32_t character)
{
    uint8_t bytes[4];
    size_t count = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

    for (size_t i = count - 1; i > 0; i--) {
        bytes[i] = (uint8_t)(0x80 | (character & 0x3F));
        character >>= 6;
    }
    bytes[0] = (uint8_t)(count == 1 ? character : (0xF00 >> count) | character);
    byte_buffer_append(buffer, bytes, count);
}
