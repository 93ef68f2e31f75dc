/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What wakes a queue while bytes wait, and what it then does: see write_queue.h. A socket's descriptor is watched by a CFFileDescriptor of
 * a copy, so that the socket's own callbacks are not touched; an observer looks at the end of each pass whether the socket was invalidated.
 */
#include <errno.h>
#include <unistd.h>

#include "Support/invariant.h"
#include "Write/write_kernel.h"
#include "Write/write_queue.h"

static const struct write_watch no_watch = {NULL, NULL, NULL, -1};

/* ---- what is told ---- */

struct telling {
    bool has_room;
    bool has_failed;
    bool has_finished;
    int error;
};

REQUIRES(the_service_lock) static void drain(CRLWriteQueueRef queue)
{
    while (queue->waiting.first) {
        struct write_block *block = queue->waiting.first;
        size_t size = block->end - block->begin;
        ssize_t count = write_queue_put(queue, &block->bytes[block->begin], size);

        if (count < 0) {
            write_queue_fail(queue, (int)-count);
            return;
        }
        write_bytes_consume(&queue->waiting, (size_t)count);
        if ((size_t)count < size) {
            return;
        }
    }
}

REQUIRES(the_service_lock) static struct telling drain_and_tell(CRLWriteQueueRef queue)
{
    struct telling telling = {false, false, false, 0};
    bool had_failed = queue->counts.error != 0;

    if (queue->socket && !CFSocketIsValid(queue->socket)) {
        write_queue_fail(queue, EBADF);
        return telling;
    }
    drain(queue);
    telling.error = queue->counts.error;
    telling.has_failed = !had_failed && telling.error != 0;
    if (telling.error == 0) {
        telling.has_room = queue->owes_room && queue->waiting.count <= queue->mark;
        queue->owes_room = queue->owes_room && !telling.has_room;
        telling.has_finished = queue->finishes && !queue->has_finished && queue->waiting.count == 0;
        queue->has_finished |= telling.has_finished;
    }
    return telling;
}

EXCLUDES(the_service_lock) static void tell(CRLWriteQueueRef queue, CRLWriteQueueEvent event, int error)
{
    bool is_invalid;

    service_lock_take(&queue->lock);
    is_invalid = event != kCRLWriteQueueFailed && queue->counts.error != 0; /* by the callback before, for instance */
    service_lock_drop(&queue->lock);
    if (queue->callout && !is_invalid) {
        queue->callout(queue, event, error, queue->context.info);
    }
}

EXCLUDES(the_service_lock) static void wake(CRLWriteQueueRef queue, bool has_room)
{
    struct write_watch ended;
    struct telling telling;

    (void)CFAutorelease(CFRetain(queue)); /* until the pass is over, or the thread */
    service_lock_take(&queue->lock);
    queue->stream_has_room = has_room;
    telling = drain_and_tell(queue);
    queue->stream_has_room = false;
    ended = write_watch_update(queue);
    service_lock_drop(&queue->lock);
    write_watch_end(ended);
    if (telling.has_finished && queue->stream) {
        CFWriteStreamClose(queue->stream);
    }
    if (telling.has_failed) {
        tell(queue, kCRLWriteQueueFailed, telling.error);
    }
    if (telling.has_room) {
        tell(queue, kCRLWriteQueueHasRoom, 0);
    }
    if (telling.has_finished) {
        tell(queue, kCRLWriteQueueFinished, 0);
    }
}

/* ---- who wakes ---- */

/*
 * In the child of a fork the parent goes on writing, and the lock may be taken for ever: the watch is ended and the queue left alone. The
 * child has one thread (NOT_CHECKED).
 */
NOT_CHECKED static bool is_left_to_parent(CRLWriteQueueRef queue)
{
    if (getpid() == queue->process) {
        return false;
    }
    if (queue->watch.room && CFFileDescriptorIsValid(queue->watch.room)) {
        (void)CFRetain(CFRetain(queue)); /* for the two that give one back now */
        CFFileDescriptorInvalidate(queue->watch.room);
        CFRunLoopObserverInvalidate(queue->watch.observer);
        CFRunLoopWakeUp(CFRunLoopGetCurrent());
    }
    return true;
}

static void on_room(CFFileDescriptorRef room, CFOptionFlags types, void *info)
{
    (void)room;
    (void)types;
    if (!is_left_to_parent(info)) {
        wake(info, false);
    }
}

static void on_stream(CFWriteStreamRef stream, CFStreamEventType type, void *info)
{
    (void)stream;
    if (!is_left_to_parent(info)) {
        wake(info, type == kCFStreamEventCanAcceptBytes);
    }
}

static void look_at_socket(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    CRLWriteQueueRef queue = info;
    struct write_watch ended = no_watch;

    (void)observer;
    (void)activity;
    if (is_left_to_parent(queue)) {
        return;
    }
    (void)CFRetain(queue);
    service_lock_take(&queue->lock);
    if (queue->socket && !CFSocketIsValid(queue->socket)) {
        write_queue_fail(queue, EBADF);
        ended = write_watch_update(queue);
        CFRunLoopWakeUp(CFRunLoopGetCurrent()); /* or a run that has nothing left would sleep */
    }
    service_lock_drop(&queue->lock);
    write_watch_end(ended);
    CFRelease(queue);
}

/* ---- beginning and ending ---- */

struct mode_addition {
    CFRunLoopRef loop;
    struct write_watch watch;
    bool is_in; /* all modes */
};

static void add_to_mode(const void *mode, void *info)
{
    struct mode_addition *addition = info;

    CFRunLoopAddSource(addition->loop, addition->watch.source, mode);
    CFRunLoopAddObserver(addition->loop, addition->watch.observer, mode);
    addition->is_in = addition->is_in && CFRunLoopContainsSource(addition->loop, addition->watch.source, mode) &&
                      CFRunLoopContainsObserver(addition->loop, addition->watch.observer, mode);
}

/* Puts the watch into all modes. Returns false if there is no memory. */
REQUIRES(the_service_lock) static bool make_watch(CRLWriteQueueRef queue)
{
    CFFileDescriptorContext context = {0, queue, (void *(*)(void *))CFRetain, (void (*)(void *))CFRelease, NULL};
    struct write_watch *watch = &queue->watch;
    struct mode_addition addition;

    invariant(watch->descriptor >= 0);
    watch->room = CFFileDescriptorCreate(NULL, watch->descriptor, false, on_room, &context);
    watch->source = watch->room ? CFFileDescriptorCreateRunLoopSource(NULL, watch->room, 0) : NULL;
    watch->observer = watch->source ? CRLRunLoopObserverCreateWithFunction(NULL, kCFRunLoopBeforeWaiting | kCFRunLoopExit, true, 0,
                                                                           look_at_socket, queue, (void (*)(void *))CFRelease)
                                    : NULL;
    if (!watch->observer) {
        return false;
    }
    (void)CFRetain(queue); /* for the observer */
    addition = (struct mode_addition){queue->loop, *watch, true};
    CFSetApplyFunction(queue->modes, add_to_mode, &addition);
    return addition.is_in;
}

/* Returns false if there is no memory. */
REQUIRES(the_service_lock) static bool begin(CRLWriteQueueRef queue)
{
    CFStreamClientContext context = {0, queue, (void *(*)(void *))CFRetain, (void (*)(void *))CFRelease, NULL};

    if (queue->stream) {
        queue->has_client =
            queue->has_client ||
            CFWriteStreamSetClient(queue->stream, kCFStreamEventCanAcceptBytes | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered,
                                   on_stream, &context);
        return queue->has_client;
    }
    if (!queue->watch.room && !make_watch(queue)) {
        return false;
    }
    CFFileDescriptorEnableCallBacks(queue->watch.room, kCFFileDescriptorWriteCallBack);
    return true;
}

struct write_watch write_watch_take(CRLWriteQueueRef queue)
{
    struct write_watch taken = queue->watch;

    queue->watch = no_watch;
    if (queue->has_client) {
        queue->has_client = false;
        (void)CFWriteStreamSetClient(queue->stream, kCFStreamEventNone, NULL, NULL); /* the caller has a reference as well */
    }
    return taken;
}

struct write_watch write_watch_update(CRLWriteQueueRef queue)
{
    if (queue->waiting.count > 0 && queue->loop && !begin(queue)) {
        write_queue_fail(queue, ENOMEM);
    }
    return queue->waiting.count > 0 ? no_watch : write_watch_take(queue);
}

void write_watch_end(struct write_watch watch)
{
    if (watch.observer) {
        CFRunLoopObserverInvalidate(watch.observer);
        CFRelease(watch.observer);
    }
    if (watch.room) {
        CFFileDescriptorInvalidate(watch.room);
        CFRelease(watch.room);
    }
    if (watch.source) {
        CFRelease(watch.source);
    }
    if (watch.descriptor >= 0) {
        write_kernel.close(watch.descriptor);
    }
}
