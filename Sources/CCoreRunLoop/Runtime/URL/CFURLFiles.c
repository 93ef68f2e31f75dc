/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the functions that make URLs of file system paths, and paths of URLs. */
#include "CoreFoundation/CFURL.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "Runtime/Object/allocator.h"
#include "Runtime/Text/encoding.h"
#include "Runtime/URL/url.h"
#include "Runtime/URL/url_bytes.h"

/* The URL of a path with `base`, which may be NULL. */
static const struct url *create_with_path(CFAllocatorRef allocator, const UInt8 *path, size_t length, bool is_directory,
                                          const struct url *base)
{
    static const char scheme[] = "file://";

    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    char *bytes = allocator_allocate(kCFAllocatorSystemDefault, sizeof scheme + length * url_escape_length + 3);
    if (bytes == NULL) {
        return NULL;
    }
    char *next = bytes;
    const UInt8 *slash = memchr(path, '/', length);
    if (slash == path) {
        next = memcpy(next, scheme, sizeof scheme - 1);
        next += sizeof scheme - 1;
    } else if (memchr(path, ':', slash != NULL ? (size_t)(slash - path) : length) != NULL) {
        *next++ = '.';
        *next++ = '/';
    }
    for (size_t i = 0; i < length; i++) {
        if (url_set_has(url_set_file, path[i])) {
            *next++ = (char)path[i];
        } else {
            next += url_write_escape(path[i], next);
        }
    }
    if (is_directory && next[-1] != '/') {
        *next++ = '/';
    }
    const struct url *url = url_create(allocator, bytes, next - bytes, kCFStringEncodingUTF8, base, NULL);
    allocator_deallocate(kCFAllocatorSystemDefault, bytes);
    return url;
}

static const struct url *create_current_directory(CFAllocatorRef allocator)
{
    char path[PATH_MAX];

    return getcwd(path, sizeof path) != NULL ? create_with_path(allocator, (const UInt8 *)path, strlen(path), true, NULL) : NULL;
}

static CFURLRef create(CFAllocatorRef allocator, const UInt8 *path, CFIndex length, bool is_directory, const struct url *base)
{
    if (length <= 0 || memchr(path, '\0', (size_t)length) != NULL) {
        return NULL;
    }
    if (path[0] == '/' || base != NULL) {
        return url_reference(create_with_path(allocator, path, (size_t)length, is_directory, path[0] == '/' ? NULL : base));
    }
    const struct url *current = create_current_directory(allocator);
    const struct url *url = current != NULL ? create_with_path(allocator, path, (size_t)length, is_directory, current) : NULL;
    object_release_if_any(current);
    return url_reference(url);
}

static CFURLRef create_with_text(CFAllocatorRef allocator, CFStringRef path, CFURLPathStyle style, bool is_directory, CFURLRef base,
                                 const char *function)
{
    object_require(path, object_type_string, function, "path");
    const struct url *base_url = base != NULL ? url_of(base, function) : NULL;
    CFDataRef bytes = style == kCFURLPOSIXPathStyle ? CFStringCreateExternalRepresentation(NULL, path, kCFStringEncodingUTF8, 0) : NULL;
    if (bytes == NULL) {
        return NULL;
    }
    CFURLRef url = create(allocator, CFDataGetBytePtr(bytes), CFDataGetLength(bytes), is_directory, base_url);
    CFRelease(bytes);
    return url;
}

CFURLRef CFURLCreateWithFileSystemPath(CFAllocatorRef allocator, CFStringRef filePath, CFURLPathStyle pathStyle, Boolean isDirectory)
{
    return create_with_text(allocator, filePath, pathStyle, isDirectory, NULL, "CFURLCreateWithFileSystemPath");
}

CFURLRef CFURLCreateWithFileSystemPathRelativeToBase(CFAllocatorRef allocator, CFStringRef filePath, CFURLPathStyle pathStyle,
                                                     Boolean isDirectory, CFURLRef baseURL)
{
    return create_with_text(allocator, filePath, pathStyle, isDirectory, baseURL, "CFURLCreateWithFileSystemPathRelativeToBase");
}

CFURLRef CFURLCreateFromFileSystemRepresentation(CFAllocatorRef allocator, const UInt8 *buffer, CFIndex bufferLength, Boolean isDirectory)
{
    return create(allocator, buffer, bufferLength, isDirectory, NULL);
}

CFURLRef CFURLCreateFromFileSystemRepresentationRelativeToBase(CFAllocatorRef allocator, const UInt8 *buffer, CFIndex bufferLength,
                                                               Boolean isDirectory, CFURLRef baseURL)
{
    const struct url *base = baseURL != NULL ? url_of(baseURL, "CFURLCreateFromFileSystemRepresentationRelativeToBase") : NULL;

    return create(allocator, buffer, bufferLength, isDirectory, base);
}

static bool write_path(const struct url *url, UInt8 *buffer, CFIndex size)
{
    CFRange path = url->parts.path;
    bool has_path = !url->parts.is_opaque && (path.length > 0 || (!url_part_is_missing(url->parts.host) && url->parts.host.length > 0));

    if (!has_path) {
        return false;
    }
    UInt8 *bytes = allocator_allocate(kCFAllocatorSystemDefault, (size_t)path.length + 1);
    if (bytes == NULL) {
        return false;
    }
    CFIndex length = url_write_unescaped(url->bytes + path.location, path.length, bytes);
    length -= length > 1 && bytes[length - 1] == '/';
    bool fits = length < size && memchr(bytes, '\0', (size_t)length) == NULL;
    if (fits) {
        memcpy(buffer, bytes, (size_t)length);
        buffer[length] = '\0';
    }
    allocator_deallocate(kCFAllocatorSystemDefault, bytes);
    return fits;
}

Boolean CFURLGetFileSystemRepresentation(CFURLRef reference, Boolean resolveAgainstBase, UInt8 *buffer, CFIndex maxBufferLength)
{
    const struct url *url = url_of(reference, "CFURLGetFileSystemRepresentation");

    if (!resolveAgainstBase) {
        return write_path(url, buffer, maxBufferLength);
    }
    const struct url *absolute = url_copy_absolute(kCFAllocatorSystemDefault, url);
    bool is_written = absolute != NULL && write_path(absolute, buffer, maxBufferLength);
    object_release_if_any(absolute);
    return is_written;
}
