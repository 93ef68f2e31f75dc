/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes whole descriptors. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "messageport.h"

static const CFIndex message_most = 0x60000000; /* what the library sends */

CFDataRef read_all(int descriptor, const char *what)
{
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    UInt8 buffer[65536];
    ssize_t size;

    while ((size = read(descriptor, buffer, sizeof buffer)) != 0) {
        if (size > 0 && CFDataGetLength(data) + size > message_most) {
            (void)fail(exit_error, "%s: this is more than a message may have", what);
            CFRelease(data);
            return NULL;
        }
        if (size > 0) {
            CFDataAppendBytes(data, buffer, size);
        } else if (size < 0 && errno != EINTR) {
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
