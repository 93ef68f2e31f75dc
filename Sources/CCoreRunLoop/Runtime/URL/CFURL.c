/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the functions that make URLs of strings and bytes, and those that look at a URL as a whole. */
#include "CoreFoundation/CFURL.h"

#include <string.h>

#include "Runtime/Object/allocator.h"
#include "Runtime/Text/encoding.h"
#include "Runtime/Text/text.h"
#include "Runtime/URL/url.h"
#include "Runtime/URL/url_bytes.h"

CFTypeID CFURLGetTypeID(void)
{
    return object_type_url;
}

/* What a URL is made of, and how. */
struct url_origin {
    CFStringEncoding encoding; /* of its escapes, and of those of its base */
    bool is_strict;
    const struct url *base;
    const uint8_t *given; /* what the program gave where that is not the text; NULL otherwise */
    CFIndex given_count;
};

/* Makes a URL of bytes that need not be in the form that it keeps. */
static CFURLRef create(CFAllocatorRef allocator, const uint8_t *bytes, CFIndex count, const struct url_origin *origin)
{
    const uint8_t *given = origin->given != NULL ? origin->given : bytes;
    CFIndex given_count = origin->given != NULL ? origin->given_count : count;
    char *canonical = allocator_allocate(kCFAllocatorSystemDefault, (size_t)count * url_escape_length + 1);
    const struct url *url = NULL;

    if (canonical == NULL) {
        return NULL;
    }
    CFIndex length = url_write_canonical(bytes, count, origin->is_strict, canonical);
    if (length == given_count && memcmp(canonical, given, (size_t)length) == 0) {
        url = url_create(allocator, canonical, length, origin->encoding, origin->base, NULL);
    } else if (length != kCFNotFound) {
        CFDataRef kept = CFDataCreate(NULL, given, given_count);

        if (kept != NULL) {
            url = url_create(allocator, canonical, length, origin->encoding, origin->base, kept);
            CFRelease(kept);
        }
    }
    allocator_deallocate(kCFAllocatorSystemDefault, canonical);
    return url_reference(url);
}

static CFURLRef create_with_text(CFAllocatorRef allocator, CFStringRef string, const struct url_origin *origin, const char *function)
{
    struct text text = text_of(string, function);

    if (!text_is_ascii(&text)) {
        return NULL;
    }
    uint8_t *bytes = allocator_allocate(kCFAllocatorSystemDefault, (size_t)text.length + 1);
    if (bytes == NULL) {
        return NULL;
    }
    for (CFIndex i = 0; i < text.length; i++) {
        bytes[i] = (uint8_t)text_unit(&text, i);
    }
    CFURLRef url = create(allocator, bytes, text.length, origin);
    allocator_deallocate(kCFAllocatorSystemDefault, bytes);
    return url;
}

static const struct url *base_of(CFURLRef base, const char *function)
{
    return base != NULL ? url_of(base, function) : NULL;
}

CFURLRef CFURLCreateWithString(CFAllocatorRef allocator, CFStringRef text, CFURLRef baseURL)
{
    const char *function = "CFURLCreateWithString";

    const struct url_origin origin = {.encoding = kCFStringEncodingUTF8, .is_strict = true, .base = base_of(baseURL, function)};

    return create_with_text(allocator, text, &origin, function);
}

static CFURLRef create_with_bytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFStringEncoding encoding, CFURLRef base,
                                  const char *function)
{
    CFStringRef text = CFStringCreateWithBytes(NULL, bytes, length, encoding, false);

    if (text == NULL) {
        return NULL;
    }
    struct url_origin origin = {.encoding = kCFStringEncodingUTF8, .base = base_of(base, function)};
    if (encoding_extends_ascii(encoding)) {
        origin.encoding = encoding;
        origin.given = bytes;
        origin.given_count = length;
    }
    CFStringRef escaped = CFURLCreateStringByAddingPercentEscapes(NULL, text, CFSTR("%#[]"), NULL, origin.encoding);
    CFRelease(text);
    if (escaped == NULL) {
        return NULL;
    }
    CFURLRef url = create_with_text(allocator, escaped, &origin, function);
    CFRelease(escaped);
    return url;
}

CFURLRef CFURLCreateWithBytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFStringEncoding encoding, CFURLRef baseURL)
{
    return create_with_bytes(allocator, bytes, length, encoding, baseURL, "CFURLCreateWithBytes");
}

CFURLRef CFURLCreateAbsoluteURLWithBytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFStringEncoding encoding,
                                         CFURLRef baseURL, Boolean useCompatibilityMode)
{
    (void)useCompatibilityMode;
    CFURLRef relative = create_with_bytes(allocator, bytes, length, encoding, baseURL, "CFURLCreateAbsoluteURLWithBytes");
    CFURLRef absolute = relative != NULL ? CFURLCopyAbsoluteURL(relative) : NULL;
    object_release_if_any(relative);
    return absolute;
}

CFURLRef CFURLCopyAbsoluteURL(CFURLRef reference)
{
    const struct url *url = url_of(reference, "CFURLCopyAbsoluteURL");

    return url_reference(url_copy_absolute(object_allocator(url), url));
}

CFStringRef CFURLGetString(CFURLRef url)
{
    return url_of(url, "CFURLGetString")->string;
}

CFURLRef CFURLGetBaseURL(CFURLRef url)
{
    return url_reference(url_of(url, "CFURLGetBaseURL")->base);
}

Boolean CFURLCanBeDecomposed(CFURLRef url)
{
    return !url_of(url, "CFURLCanBeDecomposed")->parts.is_opaque;
}

CFDataRef CFURLCreateData(CFAllocatorRef allocator, CFURLRef reference, CFStringEncoding encoding, Boolean escapeWhitespace)
{
    (void)escapeWhitespace;
    return CFStringCreateExternalRepresentation(allocator, url_of(reference, "CFURLCreateData")->string, encoding, 0);
}

CFIndex CFURLGetBytes(CFURLRef reference, UInt8 *buffer, CFIndex bufferLength)
{
    const struct url *url = url_of(reference, "CFURLGetBytes");
    CFIndex count = url->given != NULL ? CFDataGetLength(url->given) : url->count;

    if (buffer == NULL) {
        return count;
    }
    if (count > bufferLength) {
        return -1;
    }
    memcpy(buffer, url->given != NULL ? (const void *)CFDataGetBytePtr(url->given) : url->bytes, (size_t)count);
    return count;
}
