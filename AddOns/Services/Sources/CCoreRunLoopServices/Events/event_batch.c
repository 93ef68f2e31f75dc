/* SPDX-License-Identifier: Apache-2.0 */
/* See event_batch.h. */
#define _GNU_SOURCE
#include "Events/event_batch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "CoreFoundation/CoreFoundation.h"
#include "File/notify_kernel.h"

static const FSEventStreamEventFlags kinds = kFSEventStreamEventFlagItemIsFile | kFSEventStreamEventFlagItemIsDir |
                                             kFSEventStreamEventFlagItemIsSymlink | kFSEventStreamEventFlagItemIsHardlink;

/* Of what was moved away, the number of the inode where it is now, if that is told next; else 0. */
static ino_t inode_elsewhere(const struct pending_event *event)
{
    const struct pending_event *next = event->next;
    struct stat status;

    return event->cookie != 0 && next && next->cookie == event->cookie && notify_kernel.name_status(-1, next->path, &status) == 0
               ? status.st_ino
               : 0;
}

/* The kind of what is there now; of what is gone, what the kernel said. Stores the inode's number, or 0. */
static FSEventStreamEventFlags flags_now(const struct pending_event *event, ino_t *ret_inode)
{
    struct stat status;
    FSEventStreamEventFlags kind;

    if (notify_kernel.name_status(-1, event->path, &status) < 0) {
        *ret_inode = inode_elsewhere(event);
        kind = event->flags & kFSEventStreamEventFlagItemIsDir ? 0 : kFSEventStreamEventFlagItemIsFile;
        return event->flags | (event->is_looked_at ? kind : 0);
    }
    *ret_inode = status.st_ino;
    if (!event->is_looked_at) {
        return event->flags;
    }
    if (S_ISDIR(status.st_mode)) {
        kind = kFSEventStreamEventFlagItemIsDir;
    } else if (S_ISLNK(status.st_mode)) {
        kind = kFSEventStreamEventFlagItemIsSymlink;
    } else {
        kind = kFSEventStreamEventFlagItemIsFile | (status.st_nlink > 1 ? kFSEventStreamEventFlagItemIsHardlink : 0);
    }
    return (event->flags & ~kinds) | kind;
}

static const char *told_path(const char *path, const char *device_path)
{
    size_t length = device_path ? strlen(device_path) : 0;

    if (device_path && strncmp(path, device_path, length) == 0) {
        path += length;
        path += *path == '/';
    }
    return path;
}

/* ---- objects ---- */

/* Returns the path as a string, or that of the nearest folder above it whose path is one. */
static CFStringRef copy_string(const char *path, bool *ret_is_whole)
{
    size_t length = strlen(path);
    CFStringRef string = NULL;

    *ret_is_whole = true;
    while (!(string = CFStringCreateWithBytes(NULL, (const UInt8 *)path, (CFIndex)length, kCFStringEncodingUTF8, false)) && length > 0) {
        const char *slash;

        *ret_is_whole = false;
        slash = memrchr(path, '/', length);
        length = slash ? (size_t)(slash - path) + (slash == path && length > 1) : 0; /* of the root, its slash */
    }
    return string;
}

static CFTypeRef copy_extended(CFStringRef path, ino_t inode)
{
    CFMutableDictionaryRef data = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    SInt64 number = (SInt64)inode;
    CFNumberRef file = inode != 0 && data ? CFNumberCreate(NULL, kCFNumberSInt64Type, &number) : NULL;

    if (data) {
        CFDictionarySetValue(data, kFSEventStreamEventExtendedDataPathKey, path);
    }
    if (file) {
        CFDictionarySetValue(data, kFSEventStreamEventExtendedFileIDKey, file);
        CFRelease(file);
    }
    return data;
}

static bool add_object(struct event_batch *batch, size_t place, const char *path, ino_t inode, FSEventStreamCreateFlags flags)
{
    bool is_whole;
    CFStringRef string = copy_string(path, &is_whole);
    CFTypeRef object = string;
    CFIndex before = CFArrayGetCount(batch->paths);

    if (string && flags & kFSEventStreamCreateFlagUseExtendedData) {
        object = copy_extended(string, inode);
        CFRelease(string);
    }
    if (!object) {
        return false;
    }
    if (!is_whole) {
        batch->flags[place] = kFSEventStreamEventFlagMustScanSubDirs;
    }
    CFArrayAppendValue(batch->paths, object);
    CFRelease(object);
    return CFArrayGetCount(batch->paths) > before;
}

/* ---- the batch ---- */

bool event_batch_make(struct event_batch *batch, struct pending_event *list, FSEventStreamCreateFlags flags, const char *device_path)
{
    size_t count = 0;
    size_t place = 0;
    bool is_made;

    for (const struct pending_event *event = list; event; event = event->next) {
        count++;
    }
    batch->count = count;
    batch->latest = 0;
    batch->has_objects = flags & kFSEventStreamCreateFlagUseCFTypes;
    batch->flags = malloc(count * sizeof *batch->flags);
    batch->ids = malloc(count * sizeof *batch->ids);
    batch->paths = batch->has_objects ? (void *)CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks) : malloc(count * sizeof(char *));
    is_made = batch->flags && batch->ids && batch->paths;
    for (struct pending_event *event = list; event && is_made; event = event->next, place++) {
        const char *path = told_path(event->path, device_path);
        ino_t inode;

        batch->flags[place] = flags_now(event, &inode);
        batch->ids[place] = event->id;
        batch->latest = event->id > batch->latest ? event->id : batch->latest;
        if (batch->has_objects) {
            is_made = add_object(batch, place, path, inode, flags);
        } else {
            ((const char **)batch->paths)[place] = path;
        }
    }
    if (!is_made) {
        event_batch_free(batch);
    }
    return is_made;
}

void event_batch_free(struct event_batch *batch)
{
    free(batch->flags);
    free(batch->ids);
    if (batch->has_objects && batch->paths) {
        CFRelease(batch->paths);
    } else if (!batch->has_objects) {
        free(batch->paths);
    }
}
