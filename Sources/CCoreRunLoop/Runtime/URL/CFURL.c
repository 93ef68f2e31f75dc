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

/* Makes a URL of bytes that need not be in the form that it keeps. */
static CFURLRef create(CFAllocatorRef allocator, const uint8_t *bytes, CFIndex count, bool is_strict, CFStringEncoding encoding,
                       const struct url *base)
{
    char *canonical = allocator_allocate(kCFAllocatorSystemDefault, (size_t)count * url_escape_length + 1);

    if (canonical == NULL) {
        return NULL;
    }
    CFIndex length = url_write_canonical(bytes, count, is_strict, canonical);
    const struct url *url = length != kCFNotFound ? url_create(allocator, canonical, length, encoding, base) : NULL;
    allocator_deallocate(kCFAllocatorSystemDefault, canonical);
    return url_reference(url);
}

/* The base's escapes and those of the string are in the same encoding. */
static CFURLRef create_with_text(CFAllocatorRef allocator, CFStringRef string, bool is_strict, CFStringEncoding encoding,
                                 const struct url *base, const char *function)
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
    CFURLRef url = create(allocator, bytes, text.length, is_strict, encoding, base);
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

    return create_with_text(allocator, text, true, kCFStringEncodingUTF8, base_of(baseURL, function), function);
}

static CFURLRef create_with_bytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFStringEncoding encoding, CFURLRef base,
                                  const char *function)
{
    CFStringRef text = CFStringCreateWithBytes(NULL, bytes, length, encoding, false);

    if (text == NULL) {
        return NULL;
    }
    CFStringEncoding escaped_in = encoding_extends_ascii(encoding) ? encoding : kCFStringEncodingUTF8;
    CFStringRef escaped = CFURLCreateStringByAddingPercentEscapes(NULL, text, CFSTR("%#[]"), NULL, escaped_in);
    CFRelease(text);
    if (escaped == NULL) {
        return NULL;
    }
    CFURLRef url = create_with_text(allocator, escaped, false, escaped_in, base_of(base, function), function);
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
    if (relative != NULL) {
        CFRelease(relative);
    }
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

    if (buffer == NULL) {
        return url->count;
    }
    if (url->count > bufferLength) {
        return -1;
    }
    memcpy(buffer, url->bytes, (size_t)url->count);
    return url->count;
}
