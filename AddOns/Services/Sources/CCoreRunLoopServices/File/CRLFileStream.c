/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of files that are read and written in the background: their functions, and the public calls. See background_file.h. */
#include "CRLFileStream.h"

#include <errno.h>
#include <limits.h>

#include "CoreFoundation/CFNumber.h"
#include "File/background_file.h"
#include "service_object.h"

static const CFStringRef finish = CFSTR("kCRLStreamPropertyFinish"); /* set by CRLWriteStreamFinish to whether to sync */

/* ---- the functions of the stream ---- */

static int go_on_opening(void *info, Boolean waits)
{
    return background_file_open(info, waits);
}

static CFIndex read_bytes(void *info, UInt8 *bytes, CFIndex size)
{
    return background_file_read(info, bytes, (size_t)size);
}

static CFIndex write_bytes(void *info, const UInt8 *bytes, CFIndex size)
{
    return background_file_write(info, bytes, (size_t)size);
}

static void forget(void *info)
{
    background_file_forget(info);
}

static void close_stream(void *info)
{
    background_file_close(info);
}

static void finalize(void *info)
{
    background_file_release(info);
}

static CFTypeRef copy_property(void *info, CFStringRef name)
{
    struct background_file *file = info;
    int64_t offset;

    if (CFEqual(name, kCFStreamPropertyAppendToFile) && !file->is_reader) {
        return CFRetain(file->appends ? kCFBooleanTrue : kCFBooleanFalse);
    }
    if (!CFEqual(name, kCFStreamPropertyFileCurrentOffset) || file->appends) {
        return NULL;
    }
    offset = file->start + background_file_moved(file);
    return CFNumberCreate(NULL, kCFNumberSInt64Type, &offset);
}

static bool set_start(struct background_file *file, CFTypeRef value)
{
    int64_t start;

    if (file->appends || !value || CFGetTypeID(value) != CFNumberGetTypeID() || !CFNumberGetValue(value, kCFNumberSInt64Type, &start) ||
        start < 0) {
        return false;
    }
    file->start = start;
    return true;
}

static Boolean set_property(void *info, CFStringRef name, CFTypeRef value)
{
    struct background_file *file = info;
    bool is_truth = value && CFGetTypeID(value) == CFBooleanGetTypeID();

    if (CFEqual(name, finish)) {
        return is_truth && !file->is_reader && background_file_finish(file, CFBooleanGetValue(value));
    }
    if (background_file_has_begun(file)) {
        return false;
    }
    if (CFEqual(name, kCFStreamPropertyFileCurrentOffset)) {
        return set_start(file, value);
    }
    if (!CFEqual(name, kCFStreamPropertyAppendToFile) || file->is_reader || !is_truth) {
        return false;
    }
    file->appends = CFBooleanGetValue(value);
    file->start = 0; /* a file that is appended to is written at its end, wherever that is */
    return true;
}

static const CRLStreamFunctions reader_functions = {
    .open = go_on_opening,
    .read = read_bytes,
    .forget = forget,
    .close = close_stream,
    .finalize = finalize,
    .copyProperty = copy_property,
    .setProperty = set_property,
};

static const CRLStreamFunctions writer_functions = {
    .open = go_on_opening,
    .write = write_bytes,
    .forget = forget,
    .close = close_stream,
    .finalize = finalize,
    .copyProperty = copy_property,
    .setProperty = set_property,
};

/* ---- creating ---- */

static bool is_of_file(CFURLRef url)
{
    CFStringRef scheme = CFURLCopyScheme(url);
    bool answer = scheme && CFStringCompare(scheme, CFSTR("file"), kCFCompareCaseInsensitive) == kCFCompareEqualTo;

    if (scheme) {
        CFRelease(scheme);
    }
    return answer;
}

static CFTypeRef create(CFAllocatorRef allocator, CFURLRef url, const CRLStreamFunctions *functions)
{
    char path[PATH_MAX];
    struct background_file *file = NULL;
    CFTypeRef stream;

    if (url && is_of_file(url) && CFURLGetFileSystemRepresentation(url, true, (UInt8 *)path, sizeof path)) {
        file = background_file_make(path, functions->read != NULL);
    }
    if (!file) {
        return NULL;
    }
    stream = CRLStreamCreate(allocator, functions, file);
    if (stream) {
        background_file_set_stream(file, stream);
    } else {
        background_file_release(file);
    }
    return stream;
}

CFReadStreamRef CRLReadStreamCreateWithFileInBackground(CFAllocatorRef allocator, CFURLRef fileURL)
{
    return (CFReadStreamRef)(uintptr_t)create(allocator, fileURL, &reader_functions);
}

CFWriteStreamRef CRLWriteStreamCreateWithFileInBackground(CFAllocatorRef allocator, CFURLRef fileURL)
{
    return (CFWriteStreamRef)(uintptr_t)create(allocator, fileURL, &writer_functions);
}

/* ---- finishing ---- */

Boolean CRLWriteStreamFinish(CFWriteStreamRef stream, Boolean syncs)
{
    service_require(stream, CFWriteStreamGetTypeID(), "CRLWriteStreamFinish", "stream");
    return CFWriteStreamSetProperty(stream, finish, syncs ? kCFBooleanTrue : kCFBooleanFalse);
}
