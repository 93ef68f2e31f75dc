/* SPDX-License-Identifier: Apache-2.0 */
/* How streams are made of what the program gives. Any thread. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Events/event_stream.h"
#include "Events/mount_points.h"
#include "File/notify_kernel.h"
#include "service_object.h"
#include "Runtime/Text/c_string.h"

/* ---- paths ---- */

/* Takes out "." and what repeats a slash, and the slash at the end. ".." stays, as what is above a link is not what stands before it. */
static void tidy_path(char *path)
{
    char *to = path;

    for (const char *from = path; *from;) {
        size_t part;

        from += strspn(from, "/");
        part = strcspn(from, "/");
        if (part > 0 && !(part == 1 && *from == '.')) {
            *to++ = '/';
            memmove(to, from, part);
            to += part;
        }
        from += part;
    }
    if (to == path) {
        *to++ = '/';
    }
    *to = '\0';
}

/* Returns an absolute path for free(), or NULL. */
static char *copy_path(CFTypeRef object, const char *base)
{
    char text[PATH_MAX];
    char current[PATH_MAX] = "";
    char *path;
    size_t size;

    if (!object || CFGetTypeID(object) != CFStringGetTypeID() || !c_string_copy(object, text, sizeof text, kCFStringEncodingUTF8)) {
        return NULL;
    }
    if (!base && text[0] != '/') {
        if (text[0] == '\0' || !getcwd(current, sizeof current)) {
            return NULL;
        }
        base = current;
    }
    size = strlen(text) + (base ? strlen(base) : 0) + 3;
    path = malloc(size);
    if (path) {
        (void)snprintf(path, size, "/%s/%s", base ? base : "", text);
        tidy_path(path);
    }
    return path;
}

static bool is_below(const char *path, const char *above)
{
    size_t length = strcmp(above, "/") == 0 ? 0 : strlen(above);

    return strncmp(path, above, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* A path that lies in another one is watched with that. */
static bool is_covered(const struct stream_roots *roots, const char *path)
{
    for (size_t i = 0; i < roots->count; i++) {
        if (is_below(path, roots->roots[i].path)) {
            return true;
        }
    }
    return false;
}

static void drop_covered(struct stream_roots *roots, const char *path)
{
    size_t kept = 0;

    for (size_t i = 0; i < roots->count; i++) {
        if (is_below(roots->roots[i].path, path)) {
            free(roots->roots[i].path);
        } else {
            roots->roots[kept++] = roots->roots[i];
        }
    }
    roots->count = kept;
}

/* ---- the stream; no other thread knows it (NOT_CHECKED) ---- */

NOT_CHECKED static bool take_paths(FSEventStreamRef stream, CFArrayRef paths)
{
    CFIndex count = CFArrayGetCount(paths);
    struct stream_roots *roots = &stream->roots;

    roots->roots = count > 0 ? calloc((size_t)count, sizeof *roots->roots) : NULL;
    for (CFIndex i = 0; roots->roots && i < count; i++) {
        char *path = copy_path(CFArrayGetValueAtIndex(paths, i), stream->device_path);

        if (!path || path[0] == '\0' || strlen(path) >= PATH_MAX) {
            free(path);
            return false;
        }
        if (is_covered(roots, path)) {
            free(path);
            continue;
        }
        drop_covered(roots, path);
        roots->roots[roots->count++].path = path;
    }
    return roots->roots;
}

NOT_CHECKED static bool open_stream(FSEventStreamRef stream, CFArrayRef paths)
{
    stream->roots.tree.pending = &stream->pending;
    stream->roots.tree.tells_files = stream->flags & kFSEventStreamCreateFlagFileEvents;
    stream->roots.tells_root_changes = stream->flags & kFSEventStreamCreateFlagWatchRoot;
    stream->set = notify_kernel.set_create();
    stream->roots.set = stream->set;
    stream->alarm = stream->set < 0 ? -1 : notify_kernel.alarm_create();
    stream->buffer = malloc(event_buffer_size);
    return stream->alarm >= 0 && stream->buffer && notify_kernel.set_add(stream->set, stream->alarm) >= 0 &&
           watch_tree_init(&stream->roots.tree) && pending_events_init(&stream->pending) && take_paths(stream, paths);
}

static int64_t nanoseconds_of(CFTimeInterval seconds)
{
    const double most = 1e9;

    if (!(seconds > 0)) {
        return 0;
    }
    return (int64_t)((seconds < most ? seconds : most) * 1e9);
}

/* Takes the device's path. */
NOT_CHECKED static FSEventStreamRef make_stream(FSEventStreamCallback callback, const FSEventStreamContext *context, dev_t device,
                                                char *device_path, CFArrayRef paths, FSEventStreamEventId since, CFTimeInterval latency,
                                                FSEventStreamCreateFlags flags)
{
    FSEventStreamRef stream = calloc(1, sizeof *stream);

    if (!stream) {
        free(device_path);
        return NULL;
    }
    atomic_init(&stream->references, 1);
    stream->callback = callback;
    stream->flags = flags;
    stream->latency_ns = nanoseconds_of(latency);
    stream->device = device;
    stream->device_path = device_path;
    stream->process = getpid();
    stream->set = stream->alarm = stream->roots.tree.notify = -1;
    atomic_init(&stream->latest, since == kFSEventStreamEventIdSinceNow ? event_id_current() : since);
    stream->is_valid = true;
    stream->has_history = since != kFSEventStreamEventIdSinceNow;
    service_lock_init(&stream->lock);
    (void)pthread_cond_init(&stream->told, NULL);
    stream->paths = open_stream(stream, paths) ? CFArrayCreateCopy(NULL, paths) : NULL;
    if (!stream->paths) {
        event_stream_release(stream);
        return NULL;
    }
    if (context) {
        stream->context = *context;
        stream->context.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
    }
    return stream;
}

FSEventStreamRef FSEventStreamCreate(CFAllocatorRef allocator, FSEventStreamCallback callback, FSEventStreamContext *context,
                                     CFArrayRef pathsToWatch, FSEventStreamEventId sinceWhen, CFTimeInterval latency,
                                     FSEventStreamCreateFlags flags)
{
    (void)allocator;
    if (!callback || !pathsToWatch || (context && context->version != 0)) {
        return NULL;
    }
    return make_stream(callback, context, 0, NULL, pathsToWatch, sinceWhen, latency, flags);
}

FSEventStreamRef FSEventStreamCreateRelativeToDevice(CFAllocatorRef allocator, FSEventStreamCallback callback,
                                                     FSEventStreamContext *context, dev_t deviceToWatch,
                                                     CFArrayRef pathsToWatchRelativeToDevice, FSEventStreamEventId sinceWhen,
                                                     CFTimeInterval latency, FSEventStreamCreateFlags flags)
{
    char *path;

    (void)allocator;
    if (!callback || !pathsToWatchRelativeToDevice || (context && context->version != 0)) {
        return NULL;
    }
    path = mount_point_of_device(deviceToWatch);
    if (!path) {
        return NULL;
    }
    return make_stream(callback, context, deviceToWatch, path, pathsToWatchRelativeToDevice, sinceWhen, latency, flags);
}

/* ---- exclusion ---- */

static bool copy_excluded(CFArrayRef paths, const char *device_path, char *copies[excluded_most], CFIndex count)
{
    for (CFIndex i = 0; i < count; i++) {
        copies[i] = copy_path(CFArrayGetValueAtIndex(paths, i), device_path);
        if (!copies[i]) {
            return false;
        }
    }
    return true;
}

Boolean FSEventStreamSetExclusionPaths(FSEventStreamRef streamRef, CFArrayRef pathsToExclude)
{
    CFIndex count = pathsToExclude ? CFArrayGetCount(pathsToExclude) : 0;
    char *copies[excluded_most] = {NULL};
    bool is_set;

    service_require_pointer(streamRef, __func__, "stream");
    is_set =
        event_stream_is_ours(streamRef) && count <= excluded_most && copy_excluded(pathsToExclude, streamRef->device_path, copies, count);

    if (is_set) {
        service_lock_take(&streamRef->lock);
        is_set = !streamRef->is_started;
        for (size_t i = 0; is_set && i < excluded_most; i++) {
            char *last = streamRef->excluded[i];

            streamRef->excluded[i] = copies[i];
            copies[i] = last;
        }
        if (is_set) {
            streamRef->roots.tree.excluded = streamRef->excluded;
            streamRef->roots.tree.excluded_count = (size_t)count;
        }
        service_lock_drop(&streamRef->lock);
    }
    for (size_t i = 0; i < excluded_most; i++) {
        free(copies[i]);
    }
    return is_set;
}
