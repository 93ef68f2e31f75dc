/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in and out, and as JSON. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "messageport.h"

CFDataRef read_all(int descriptor, const char *what)
{
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    UInt8 buffer[65536];
    ssize_t size;

    while ((size = read(descriptor, buffer, sizeof buffer)) != 0) {
        if (size > 0) {
            CFDataAppendBytes(data, buffer, size);
        } else if (errno != EINTR) {
            (void)fail(exit_error, "%s cannot be read: %s", what, strerror(errno));
            CFRelease(data);
            return NULL;
        }
    }
    return data;
}

bool write_all(int descriptor, CFDataRef data)
{
    const UInt8 *next = CFDataGetBytePtr(data);
    size_t left = (size_t)CFDataGetLength(data);

    while (left > 0) {
        ssize_t size = write(descriptor, next, left);

        if (size < 0 && errno != EINTR) {
            return false;
        }
        next += size > 0 ? size : 0;
        left -= size > 0 ? (size_t)size : 0;
    }
    return true;
}

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

void print_json_string(const char *bytes, size_t length)
{
    const unsigned char *next = (const unsigned char *)bytes;

    (void)putchar('"');
    while (length > 0) {
        size_t size = character_length(next, length);

        if (size == 0) {
            (void)fputs("\\ufffd", stdout);
            size = 1;
        } else if (size == 1 && (next[0] < 0x20 || next[0] == '"' || next[0] == '\\' || next[0] == 0x7F)) {
            (void)printf("\\u%04x", next[0]);
        } else {
            (void)fwrite(next, 1, size, stdout);
        }
        next += size;
        length -= size;
    }
    (void)putchar('"');
}
