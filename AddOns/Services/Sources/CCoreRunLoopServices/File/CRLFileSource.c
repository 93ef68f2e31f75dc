/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of one file: a version-1 source of an inotify instance that watches the file and, if it is a folder, the folder around it.
 *
 * The kernel tells a folder's end only when nobody has the folder open any more. It tells the end of its name at once, to whoever watches
 * the folder around it. The state belongs to the source, which frees it. Each kernel event becomes what kqueue would have told; what
 * events do not say, the file's status says.
 */
#include "CRLFileSource.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "File/notify_kernel.h"
#include "Support/invariant.h"
#include "service_lock.h"

enum { queue_size = 4096, path_size = sizeof "/proc/self/fd/2147483647/.." };

static const CFOptionFlags all_events =
    kCRLFileDeleted | kCRLFileWritten | kCRLFileExtended | kCRLFileAttributesChanged | kCRLFileLinked | kCRLFileRenamed | kCRLFileRevoked;
/* IN_MASK_ADD: a folder that lies in itself, as the root does, is watched once, for both. */
static const uint32_t own_mask =
    IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_MASK_ADD;
static const uint32_t parent_mask = IN_DELETE | IN_ONLYDIR | IN_MASK_ADD;

struct file_source {
    CFRunLoopSourceRef source; /* no reference, as the source has this; constant once the source is made, as all to the lock */
    CRLFileCallBack callout;
    CRLSourceContext context;
    CFOptionFlags wanted;
    pid_t process; /* that made it. Its child has the same inotify instance, and would take away its events */
    int notify;
    int own_watch;
    int file; /* stands for the file (O_PATH) */
    bool is_folder;
    struct service_lock lock; /* the_service_lock */
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
    watch = notify_kernel.watch_add(state->notify, path, parent_mask);
    if (watch != state->parent_watch && state->parent_watch >= 0) {
        (void)notify_kernel.watch_remove(state->notify, state->parent_watch);
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

REQUIRES(the_service_lock) static CFOptionFlags take_events(struct file_source *state)
{
    _Alignas(struct inotify_event) char queue[queue_size];
    ssize_t count = notify_kernel.notify_read(state->notify, queue, sizeof queue);
    CFOptionFlags events = 0;

    for (ssize_t place = 0; place < count;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)&queue[place];

        events |= event_told(state, event);
        place += (ssize_t)(sizeof *event + event->len);
    }
    return events;
}

/* ---- the source ---- */

static __CFPort source_descriptor(void *info)
{
    return ((const struct file_source *)info)->notify;
}

static void perform_source(void *info)
{
    struct file_source *state = info;
    CFOptionFlags events;

    if (getpid() != state->process) {
        CFRunLoopSourceInvalidate(state->source);
        return;
    }
    service_lock_take(&state->lock);
    events = take_events(state) & state->wanted;
    service_lock_drop(&state->lock);
    if (events != 0) {
        state->callout(state->source, events, state->context.info);
    }
}

static void close_if_open(int descriptor)
{
    if (descriptor >= 0) {
        (void)notify_kernel.close(descriptor);
    }
}

static void free_state(const void *info)
{
    struct file_source *state = (struct file_source *)(uintptr_t)info;

    close_if_open(state->notify);
    close_if_open(state->file);
    if (state->context.release && state->source) {
        state->context.release(state->context.info);
    }
    service_lock_destroy(&state->lock);
    free(state);
}

static CFStringRef copy_description(const void *info)
{
    const struct file_source *state = info;

    return state->context.copyDescription ? state->context.copyDescription(state->context.info)
                                          : CFStringCreateWithFormat(NULL, NULL, CFSTR("<file source %p>"), (const void *)state);
}

/* Opens what the source watches: 0 or a negative errno. No other thread knows the state (NOT_CHECKED). */
NOT_CHECKED static int open_state(struct file_source *state, const char *path)
{
    char own_path[path_size];
    int result;

    state->notify = state->own_watch = state->parent_watch = -1;
    state->file = notify_kernel.file_open(path);
    state->notify = state->file < 0 ? state->file : notify_kernel.notify_create();
    if (state->notify < 0) {
        return state->notify;
    }
    proc_path(own_path, state->file, "");
    state->own_watch = notify_kernel.watch_add(state->notify, own_path, own_mask);
    result = state->own_watch < 0 ? state->own_watch : notify_kernel.file_status(state->file, &state->status);
    if (result >= 0) {
        state->is_folder = S_ISDIR(state->status.st_mode);
        watch_parent(state);
    }
    return result;
}

/* Returns NULL and leaves why in errno. */
static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, struct file_source *state, const char *path, CFIndex order)
{
    CFRunLoopSourceContext1 context = {.version = 1,
                                       .info = state,
                                       .release = free_state,
                                       .copyDescription = copy_description,
                                       .getPort = source_descriptor,
                                       .perform = perform_source};
    CFRunLoopSourceRef source;
    int result = open_state(state, path);

    source = result < 0 ? NULL : CFRunLoopSourceCreate(allocator, order, (CFRunLoopSourceContext *)(void *)&context);
    if (!source) {
        free_state(state);
        errno = result < 0 ? -result : ENOMEM;
        return NULL;
    }
    if (state->context.retain) {
        state->context.info = (void *)(uintptr_t)state->context.retain(state->context.info);
    }
    state->source = source;
    return source;
}

CFRunLoopSourceRef CRLFileSourceCreateWithPath(CFAllocatorRef allocator, const char *path, CFOptionFlags events, CFIndex order,
                                               CRLFileCallBack callout, const CRLSourceContext *context)
{
    struct file_source *state;

    if (!path || !callout || (events & all_events) == 0 || (context && context->version != 0)) {
        errno = EINVAL;
        return NULL;
    }
    state = calloc(1, sizeof *state);
    if (!state) {
        return NULL;
    }
    service_lock_init(&state->lock);
    state->callout = callout;
    state->context = context ? *context : (CRLSourceContext){0, NULL, NULL, NULL, NULL};
    state->wanted = events & all_events;
    state->process = getpid();
    return make_source(allocator, state, path, order);
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
