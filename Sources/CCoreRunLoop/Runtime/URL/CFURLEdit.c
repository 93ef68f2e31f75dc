/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the functions that make URLs with another path. */
#include "CoreFoundation/CFURL.h"

#include <string.h>

#include "Runtime/Object/allocator.h"
#include "Runtime/URL/url.h"
#include "Runtime/URL/url_bytes.h"

/* A URL with `added` and, with `is_directory`, a slash in the place of a range of the path. */
static CFURLRef create_edited(CFAllocatorRef allocator, const struct url *url, CFRange replaced, const char *added, bool is_directory)
{
    size_t added_length = strlen(added);
    char *bytes = allocator_allocate(kCFAllocatorSystemDefault, (size_t)url->count + added_length + 1);

    if (bytes == NULL) {
        return NULL;
    }
    CFIndex end = replaced.location + replaced.length;
    char *next = bytes;
    memcpy(next, url->bytes, (size_t)replaced.location);
    next += replaced.location;
    memcpy(next, added, added_length);
    next += added_length;
    if (is_directory && (next == bytes || next[-1] != '/')) {
        *next++ = '/';
    }
    memcpy(next, url->bytes + end, (size_t)(url->count - end));
    next += url->count - end;
    const struct url *edited = url_create(allocator, bytes, next - bytes, url->encoding, url->base, NULL);
    allocator_deallocate(kCFAllocatorSystemDefault, bytes);
    return url_reference(edited);
}

static bool has_path(const struct url *url)
{
    const struct url_parts *parts = &url->parts;

    return !parts->is_opaque && (parts->path.length > 0 || (!url_part_is_missing(parts->authority) && parts->authority.length > 0));
}

static CFIndex end_of(CFRange range)
{
    return range.location + range.length;
}

static bool ends_with_slash(const struct url *url)
{
    return url->parts.path.length > 0 && url->bytes[end_of(url->parts.path) - 1] == '/';
}

/* The bytes of a text, escaped for a path, behind `first`. To be freed; NULL if there is no memory or the encoding lacks a character. */
static char *copy_escaped(const struct url *url, CFStringRef text, const char *first)
{
    CFStringRef escaped = CFURLCreateStringByAddingPercentEscapes(NULL, text, NULL, CFSTR("?;"), url->encoding);

    if (escaped == NULL) {
        return NULL;
    }
    size_t first_length = strlen(first);
    CFIndex size = CFStringGetLength(escaped) + 1;
    char *bytes = allocator_allocate(kCFAllocatorSystemDefault, first_length + (size_t)size);
    if (bytes != NULL) {
        memcpy(bytes, first, first_length);
        CFStringGetCString(escaped, bytes + first_length, size, kCFStringEncodingASCII);
    }
    CFRelease(escaped);
    return bytes;
}

CFURLRef CFURLCreateCopyAppendingPathComponent(CFAllocatorRef allocator, CFURLRef reference, CFStringRef pathComponent, Boolean isDirectory)
{
    const struct url *url = url_of(reference, "CFURLCreateCopyAppendingPathComponent");

    object_require(pathComponent, object_type_string, "CFURLCreateCopyAppendingPathComponent", "path component");
    char *added = has_path(url) ? copy_escaped(url, pathComponent, "/") : NULL;
    if (added == NULL) {
        return NULL;
    }
    /* There is one slash between, whoever of the two brings it. Two could begin a net location. */
    const char *from = added + strspn(added, "/") - (ends_with_slash(url) ? 0 : 1);
    CFURLRef edited = create_edited(allocator, url, CFRangeMake(end_of(url->parts.path), 0), from, isDirectory);
    allocator_deallocate(kCFAllocatorSystemDefault, added);
    return edited;
}

CFURLRef CFURLCreateCopyDeletingLastPathComponent(CFAllocatorRef allocator, CFURLRef reference)
{
    const struct url *url = url_of(reference, "CFURLCreateCopyDeletingLastPathComponent");
    CFRange path = url->parts.path;

    if (!has_path(url)) {
        return NULL;
    }
    if (path.length == 0) {
        return create_edited(allocator, url, path, "", false);
    }
    CFRange last = url_last_component(url->bytes, path);
    if (last.length == 0 || url_is_dot_segment(url->bytes, last)) {
        return create_edited(allocator, url, CFRangeMake(end_of(path), 0), ends_with_slash(url) ? "../" : "/../", false);
    }
    CFRange removed = CFRangeMake(last.location, end_of(path) - last.location);
    return create_edited(allocator, url, removed, last.location == path.location ? "./" : "", false);
}

CFURLRef CFURLCreateCopyAppendingPathExtension(CFAllocatorRef allocator, CFURLRef reference, CFStringRef extension)
{
    const struct url *url = url_of(reference, "CFURLCreateCopyAppendingPathExtension");

    object_require(extension, object_type_string, "CFURLCreateCopyAppendingPathExtension", "extension");
    CFRange last = url_last_component(url->bytes, url->parts.path);
    bool is_valid = CFStringGetLength(extension) > 0 && CFStringFind(extension, CFSTR("/"), 0).location == kCFNotFound &&
                    CFStringFind(extension, CFSTR(" "), 0).location == kCFNotFound;
    if (!is_valid || !has_path(url) || last.length == 0) {
        return NULL;
    }
    char *added = copy_escaped(url, extension, ".");
    CFURLRef edited = added != NULL ? create_edited(allocator, url, CFRangeMake(end_of(last), 0), added, false) : NULL;
    allocator_deallocate(kCFAllocatorSystemDefault, added);
    return edited;
}

CFURLRef CFURLCreateCopyDeletingPathExtension(CFAllocatorRef allocator, CFURLRef reference)
{
    const struct url *url = url_of(reference, "CFURLCreateCopyDeletingPathExtension");

    if (!has_path(url)) {
        return NULL;
    }
    CFRange extension = url_extension(url->bytes, url_last_component(url->bytes, url->parts.path));
    CFRange removed = url_part_is_missing(extension) ? CFRangeMake(end_of(url->parts.path), 0)
                                                     : CFRangeMake(extension.location - 1, extension.length + 1);
    return create_edited(allocator, url, removed, "", false);
}
