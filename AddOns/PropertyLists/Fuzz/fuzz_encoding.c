/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes in each encoding that the C library converts, and any units into it, at once and into buffers of any size. What was written is
 * within the buffer and the size that is foretold, the count of bytes is that of a buffer of the exact size, and what was written without
 * loss is read again.
 */
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFStringEncodingExt.h"
#include "check.h"

static void check_splitting(CFStringRef text, CFStringEncoding encoding, UInt8 loss_byte, CFIndex room)
{
    CFIndex length = CFStringGetLength(text);
    CFIndex counted = 0;
    CFIndex used = 0;
    CFIndex all = CFStringGetBytes(text, CFRangeMake(0, length), encoding, loss_byte, false, NULL, 0, &counted);
    UInt8 *bytes = malloc((size_t)counted + 1);

    CHECK(all >= 0 && all <= length && counted <= CFStringGetMaximumSizeForEncoding(length, encoding));
    CHECK(CFStringGetBytes(text, CFRangeMake(0, length), encoding, loss_byte, false, bytes, counted, &used) == all && used == counted);
    if (all == length && loss_byte == 0) {
        CFStringRef again = CFStringCreateWithBytes(NULL, bytes, used, encoding, false);

        if (again) { /* not all that the C library writes it reads */
            CFRelease(again);
        }
    }
    free(bytes);
    room = counted != 0 ? room % counted : 0;
    bytes = malloc((size_t)room + 1);
    CFIndex part = CFStringGetBytes(text, CFRangeMake(0, length), encoding, loss_byte, false, bytes, room, &used);
    CHECK(part >= 0 && part <= all && used >= 0 && used <= room);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const CFStringEncoding *list = CFStringGetListOfAvailableEncodings();
    size_t count = 0;

    if (size < 3) {
        return 0;
    }
    while (list[count] != kCFStringEncodingInvalidId) {
        count++;
    }
    CFStringEncoding encoding = list[bytes[0] % count];
    if (encoding == kCFStringEncodingUTF8 || encoding == kCFStringEncodingUTF16 || encoding == kCFStringEncodingUTF32) {
        return 0; /* with marks, and of the core */
    }
    CFStringRef decoded = CFStringCreateWithBytes(NULL, bytes + 3, (CFIndex)size - 3, encoding, false);
    CFStringRef units = CFStringCreateWithBytes(NULL, bytes + 3, (CFIndex)size - 3, kCFStringEncodingUTF16LE, false);
    if (decoded) {
        CHECK(CFStringGetLength(decoded) <= 4 * (CFIndex)size);
        check_splitting(decoded, encoding, 0, bytes[2]);
        CFRelease(decoded);
    }
    check_splitting(units, encoding, bytes[1], bytes[2]);
    check_splitting(units, encoding, 0, bytes[2]);
    CFRelease(units);
    return 0;
}
