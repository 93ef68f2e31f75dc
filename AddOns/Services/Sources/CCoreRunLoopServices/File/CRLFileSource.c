/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of one file: a version-1 source of an inotify instance that watches the file and, if it is a folder, the folder around it.
 *
 * The kernel tells a folder's end only when nobody has the folder open any more. It tells the end of its name at once, to whoever watches
 * the folder around it. Each kernel event becomes what kqueue would have told; what events do not say, the file's status says.
 */
#include "CRLFileSource.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "File/notify_kernel.h"
#include "Support/invariant.h"
#include "event_source.h"

enum { queue_size = 4096, path_size = sizeof "/proc/self/fd/2147483647/.." };

/* IN_MASK_ADD: a folder that lies in itself, as the root does, is watched once, for both. */
static const uint32_t own_mask =
    IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_MASK_ADD;
static const uint32_t parent_mask = IN_DELETE | IN_ONLYDIR | IN_MASK_ADD;

struct file_source {
    struct event_source event_source; /* its descriptor is the inotify instance */
    int own_watch; /* constant once the source is made, as the next two */
    int file; /* stands for the file (O_PATH) */
    bool is_folder;
    struct stat status GUARDED_BY(the_service_lock); /* as it was last told */
    int parent_watch GUARDED_BY(the_service_lock); /* -1: none. Of a folder that is not its own parent */
};

/* ---- what is watched ---- */

static void proc_path(char path[path_size], int descriptor, const char *behind)
{
    int length = snprintf(path, path_size, "/proc/self/fd/%d%s", descriptor, behind);

    invariant(length > 0 && length < path_size);
    (void)length;
}

/* Of a folder whose parent may not be watched, only the end of all is told. */
REQUIRES(the_service_lock) static void watch_parent(struct file_source *state)
{
    char path[path_size];
    int watch;

    if (!state->is_folder) {
        return;
    }
    proc_path(path, state->file, "/..");
    watch = notify_kernel.watch_add(state->event_source.descriptor, path, parent_mask);
    if (watch != state->parent_watch && state->parent_watch >= 0) {
        (void)notify_kernel.watch_remove(state->event_source.descriptor, state->parent_watch);
    }
    state->parent_watch = watch >= 0 && watch != state->own_watch ? watch : -1;
}

/* ---- what has happened ---- */

static bool same_time(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

/* A change of the link count alone is no change of attributes, though the kernel has one event for both. */
REQUIRES(the_service_lock) static CFOptionFlags compare_status(struct file_source *state, uint32_t mask)
{
    struct stat last = state->status;
    CFOptionFlags events = mask & IN_MODIFY ? kCRLFileWritten : 0;
    bool is_linked;

    if (notify_kernel.file_status(state->file, &state->status) < 0) {
        state->status = last;
        return events | (mask & IN_ATTRIB ? kCRLFileAttributesChanged : 0);
    }
    is_linked = !state->is_folder && state->status.st_nlink != last.st_nlink;
    events |= is_linked ? kCRLFileLinked : 0;
    events |= state->status.st_nlink == 0 && last.st_nlink != 0 ? kCRLFileDeleted : 0;
    events |= !state->is_folder && state->status.st_size > last.st_size ? kCRLFileExtended : 0;
    if (mask & IN_ATTRIB) {
        bool is_same = state->status.st_mode == last.st_mode && state->status.st_uid == last.st_uid &&
                       state->status.st_gid == last.st_gid && same_time(&state->status.st_mtim, &last.st_mtim);

        events |= is_same && (is_linked || events & kCRLFileDeleted) ? 0 : kCRLFileAttributesChanged;
    }
    return events;
}

REQUIRES(the_service_lock) static CFOptionFlags event_told(struct file_source *state, const struct inotify_event *event)
{
    CFOptionFlags events = 0;

    if (event->mask & IN_Q_OVERFLOW) {
        watch_parent(state);
        return compare_status(state, IN_MODIFY | IN_ATTRIB) | (state->is_folder ? kCRLFileExtended | kCRLFileLinked : 0);
    }
    if (event->wd != state->own_watch) {
        return compare_status(state, 0);
    }
    if (event->mask & (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)) {
        events |= kCRLFileWritten | (event->mask & IN_ISDIR ? kCRLFileLinked : 0);
        events |= event->mask & (IN_MOVED_FROM | IN_MOVED_TO) ? kCRLFileExtended : 0;
    }
    if (event->mask & (IN_MODIFY | IN_ATTRIB)) {
        events |= compare_status(state, event->mask);
    }
    if (event->mask & IN_MOVE_SELF) {
        events |= kCRLFileRenamed;
        watch_parent(state);
        events |= compare_status(state, 0); /* it may have gone before its new parent was watched */
    }
    if (event->mask & IN_DELETE_SELF) {
        events |= state->status.st_nlink != 0 ? kCRLFileDeleted : 0;
        state->status.st_nlink = 0;
    }
    return events | (event->mask & IN_UNMOUNT ? kCRLFileRevoked : 0);
}

REQUIRES(the_service_lock) static CFOptionFlags take_events(struct event_source *event_source)
{
    struct file_source *state = (struct file_source *)(void *)event_source;
    _Alignas(struct inotify_event) char queue[queue_size];
    ssize_t count = notify_kernel.notify_read(event_source->descriptor, queue, sizeof queue);
    CFOptionFlags events = 0;

    for (ssize_t place = 0; place < count;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)&queue[place];

        events |= event_told(state, event);
        place += (ssize_t)(sizeof *event + event->len);
    }
    return events;
}

/* ---- the source ---- */

static void close_all(struct event_source *event_source)
{
    const struct file_source *state = (const struct file_source *)(const void *)event_source;

    if (event_source->descriptor >= 0) {
        (void)notify_kernel.close(event_source->descriptor);
    }
    if (state->file >= 0) {
        (void)notify_kernel.close(state->file);
    }
}

/* Opens what the source watches, at a path. No other thread knows the state (NOT_CHECKED). */
NOT_CHECKED static int open_all(struct event_source *event_source, const void *path)
{
    struct file_source *state = (struct file_source *)(void *)event_source;
    char own_path[path_size];
    int result;

    state->own_watch = state->parent_watch = -1;
    state->file = notify_kernel.file_open(path);
    event_source->descriptor = state->file < 0 ? state->file : notify_kernel.notify_create();
    if (event_source->descriptor < 0) {
        return event_source->descriptor;
    }
    proc_path(own_path, state->file, "");
    state->own_watch = notify_kernel.watch_add(event_source->descriptor, own_path, own_mask);
    result = state->own_watch < 0 ? state->own_watch : notify_kernel.file_status(state->file, &state->status);
    if (result >= 0) {
        state->is_folder = S_ISDIR(state->status.st_mode);
        watch_parent(state);
    }
    return result;
}

static const struct event_source_kind file_kind = {.name = "file source",
                                                   .size = sizeof(struct file_source),
                                                   .all = kCRLFileDeleted | kCRLFileWritten | kCRLFileExtended | kCRLFileAttributesChanged |
                                                          kCRLFileLinked | kCRLFileRenamed | kCRLFileRevoked,
                                                   .open = open_all,
                                                   .take = take_events,
                                                   .close = close_all};

CFRunLoopSourceRef CRLFileSourceCreateWithPath(CFAllocatorRef allocator, const char *path, CFOptionFlags events, CFIndex order,
                                               CRLFileCallBack callout, const CRLSourceContext *context)
{
    if (!path) {
        errno = EINVAL;
        return NULL;
    }
    return event_source_create(&file_kind, path, allocator, events, order, callout, context);
}

CFRunLoopSourceRef CRLFileSourceCreateWithDescriptor(CFAllocatorRef allocator, int descriptor, CFOptionFlags events, CFIndex order,
                                                     CRLFileCallBack callout, const CRLSourceContext *context)
{
    char path[path_size];
    struct stat status;
    int result = notify_kernel.file_status(descriptor, &status);

    if (result < 0) {
        errno = -result;
        return NULL;
    }
    proc_path(path, descriptor, "");
    return CRLFileSourceCreateWithPath(allocator, path, events, order, callout, context);
}
