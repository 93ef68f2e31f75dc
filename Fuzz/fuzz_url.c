/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a base and a relative URL of any bytes, which a byte of zero separates. The string of a URL makes the same URL again, each part
 * lies inside it, and no path is taken for another host.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"

static CFURLRef url_of_bytes(const uint8_t *bytes, size_t count, CFURLRef base)
{
    return CFURLCreateWithBytes(NULL, bytes, (CFIndex)count, kCFStringEncodingUTF8, base);
}

static void release(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

static bool are_same(CFStringRef one, CFStringRef other)
{
    bool is_same = one && other ? CFEqual(one, other) : one == other;

    release(one);
    release(other);
    return is_same;
}

static void check_string(CFURLRef url)
{
    CFURLRef again = CFURLCreateWithString(NULL, CFURLGetString(url), CFURLGetBaseURL(url));

    CHECK(again && CFEqual(url, again) && CFHash(url) == CFHash(again));
    release(again);
}

static void check_parts(CFURLRef url)
{
    CFIndex count = CFURLGetBytes(url, NULL, 0);
    UInt8 *bytes = malloc((size_t)count + 1);

    CHECK(bytes && CFURLGetBytes(url, bytes, count) == count);
    for (CFURLComponentType component = 0; component < 14; component++) {
        CFRange wide;
        CFRange part = CFURLGetByteRangeForComponent(url, component, &wide);

        CHECK(part.location == kCFNotFound || (part.location >= wide.location && part.length <= wide.length));
        CHECK(wide.location == kCFNotFound || (wide.location >= 0 && wide.location + wide.length <= count));
    }
    CFURLGetFileSystemRepresentation(url, true, bytes, count + 1);
    free(bytes);
    release(CFURLCopyScheme(url));
    release(CFURLCopyNetLocation(url));
    release(CFURLCopyUserName(url));
    release(CFURLCopyPassword(url));
    release(CFURLCopyPath(url));
    release(CFURLCopyStrictPath(url, NULL));
    release(CFURLCopyFileSystemPath(url, kCFURLPOSIXPathStyle));
    release(CFURLCopyQueryString(url, CFSTR("&=")));
    release(CFURLCopyFragment(url, CFSTR("")));
    release(CFURLCopyResourceSpecifier(url));
    release(CFURLCopyLastPathComponent(url));
    release(CFURLCopyPathExtension(url));
    release(CFCopyDescription(url));
    CHECK(CFURLGetPortNumber(url) >= -1);
}

/* Another path changes neither the scheme nor the host, and escapes keep the rest. */
static void check_edited(CFURLRef url, CFURLRef edited)
{
    if (edited) {
        check_string(edited);
        CHECK(are_same(CFURLCopyScheme(url), CFURLCopyScheme(edited)));
        CHECK(are_same(CFURLCopyHostName(url), CFURLCopyHostName(edited)));
        CHECK(are_same(CFURLCopyFragment(url, NULL), CFURLCopyFragment(edited, NULL)));
        CFRelease(edited);
    }
}

static void check_edits(CFURLRef url, CFStringRef text)
{
    check_edited(url, CFURLCreateCopyAppendingPathComponent(NULL, url, text, true));
    check_edited(url, CFURLCreateCopyAppendingPathExtension(NULL, url, text));
    check_edited(url, CFURLCreateCopyDeletingLastPathComponent(NULL, url));
    check_edited(url, CFURLCreateCopyDeletingPathExtension(NULL, url));
}

static void check_absolute(CFURLRef url)
{
    CFURLRef absolute = CFURLCopyAbsoluteURL(url);

    CHECK(absolute && !CFURLGetBaseURL(absolute));
    check_string(absolute);
    check_parts(absolute);
    CHECK(are_same(CFURLCopyScheme(url), CFURLCopyScheme(absolute)));
    CHECK(are_same(CFURLCopyHostName(url), CFURLCopyHostName(absolute)));
    CHECK(CFURLGetPortNumber(url) == CFURLGetPortNumber(absolute));
    release(absolute);
}

static void check_path(const uint8_t *bytes, size_t count)
{
    CFURLRef url = CFURLCreateFromFileSystemRepresentation(NULL, bytes, (CFIndex)count, false);
    UInt8 path[4096];

    if (url) {
        check_string(url);
        CHECK(CFURLGetFileSystemRepresentation(url, false, path, sizeof path) || count >= sizeof path);
        release(url);
    }
}

static void check_escapes(CFStringRef text)
{
    CFStringRef escaped = CFURLCreateStringByAddingPercentEscapes(NULL, text, NULL, NULL, kCFStringEncodingUTF8);
    CFStringRef replaced = escaped ? CFURLCreateStringByReplacingPercentEscapes(NULL, escaped, CFSTR("")) : NULL;

    release(CFURLCreateStringByReplacingPercentEscapes(NULL, text, CFSTR("a/")));
    /* A byte order mark is not text, and so does not come back. */
    CHECK(!escaped || (replaced && (CFEqual(replaced, text) || CFStringFind(text, CFSTR("\uFEFF"), 0).location != kCFNotFound)));
    release(escaped);
    release(replaced);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(bytes, '\0', size) : NULL;
    size_t base_count = end ? (size_t)(end - bytes) : 0;
    CFURLRef base = end ? url_of_bytes(bytes, base_count, NULL) : NULL;
    const uint8_t *rest = end ? end + 1 : bytes;
    size_t count = (size_t)(bytes + size - rest);
    CFURLRef url = url_of_bytes(rest, count, base);
    CFStringRef text = CFStringCreateWithBytes(NULL, rest, (CFIndex)count, kCFStringEncodingUTF8, false);

    CHECK(!text == !url);
    if (url) {
        check_string(url);
        check_parts(url);
        check_absolute(url);
        check_edits(url, text);
        check_escapes(text);
    }
    if (count > 0) {
        check_path(rest, count);
    }
    release(url);
    release(base);
    release(text);
    return 0;
}
