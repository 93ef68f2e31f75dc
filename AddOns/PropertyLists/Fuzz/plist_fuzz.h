/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target of a reader does with a tree: it is valid, and both writers' bytes are read as the same tree. */
#ifndef CRL_PLIST_FUZZ_H
#define CRL_PLIST_FUZZ_H

#define _GNU_SOURCE /* memmem */
#include <CoreFoundation/CoreFoundation.h>
#include <stdlib.h>
#include <string.h>

#include "Format/read_fault.h"
#include "check.h"

/* A string that begins with one is read without it, as Core Foundation does. */
static bool has_byte_order_mark(CFDataRef data)
{
    return memmem(CFDataGetBytePtr(data), (size_t)CFDataGetLength(data), "\xEF\xBB\xBF", 3);
}

/*
 * A tree with kCFNull in it is not written; one with a UID is. Equal trees may have NaN, which is not equal to itself: bytes are compared.
 */
static void plist_fuzz_round_trip(CFTypeRef tree, CFPropertyListFormat format)
{
    CFErrorRef error = NULL;
    CFDataRef data = CFPropertyListCreateData(NULL, tree, format, 0, &error);
    CFPropertyListFormat found = 0;
    CFTypeRef again;
    CFDataRef data_again;

    if (!data) {
        CHECK(error);
        CFRelease(error);
        return;
    }
    again = CFPropertyListCreateWithData(NULL, data, kCFPropertyListImmutable, &found, &error);
    CHECK(again && found == format);
    data_again = CFPropertyListCreateData(NULL, again, kCFPropertyListXMLFormat_v1_0, 0, NULL);
    if (format == kCFPropertyListXMLFormat_v1_0 && !has_byte_order_mark(data)) {
        CHECK(data_again && CFEqual(data, data_again));
    }
    if (data_again) {
        CFRelease(data_again);
    }
    CFRelease(again);
    CFRelease(data);
}

/* Takes the tree, or the fault that says why there is none. */
static void plist_fuzz_tree(CFTypeRef tree, const struct read_fault *fault)
{
    CFTypeRef copy;

    CHECK(!tree == (fault->words[0] != '\0'));
    if (!tree) {
        return;
    }
    plist_fuzz_round_trip(tree, kCFPropertyListXMLFormat_v1_0);
    plist_fuzz_round_trip(tree, kCFPropertyListBinaryFormat_v1_0);
    if (CFPropertyListIsValid(tree, kCFPropertyListXMLFormat_v1_0)) {
        copy = CFPropertyListCreateDeepCopy(NULL, tree, kCFPropertyListImmutable);
        CHECK(copy);
        CFRelease(copy);
    }
    CFRelease(tree);
}

#endif
