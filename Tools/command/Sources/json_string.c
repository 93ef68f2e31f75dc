/* SPDX-License-Identifier: Apache-2.0 */
/* See json_string.h. */
#include "json_string.h"

#include <stdbool.h>
#include <string.h>

/* The length of the UTF-8 character at `bytes`, 0 if it is none. */
static size_t character_length(const unsigned char *bytes, size_t left)
{
    size_t length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xC2 ? 0 : bytes[0] < 0xE0 ? 2 : bytes[0] < 0xF0 ? 3 : bytes[0] < 0xF5 ? 4 : 0;

    if (length == 0 || length > left) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
}

static bool must_escape(unsigned char byte, const char *escaped)
{
    return byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7F || strchr(escaped, byte);
}

void write_json_string(FILE *file, const char *bytes, size_t length, const char *escaped)
{
    const unsigned char *next = (const unsigned char *)bytes;

    (void)fputc('"', file);
    while (length > 0) {
        size_t size = character_length(next, length);

        if (size == 0) {
            (void)fputs("\\ufffd", file);
            size = 1;
        } else if (size == 1 && must_escape(next[0], escaped)) {
            (void)fprintf(file, "\\u%04x", next[0]);
        } else {
            (void)fwrite(next, 1, size, file);
        }
        next += size;
        length -= size;
    }
    (void)fputc('"', file);
}
