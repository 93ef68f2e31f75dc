/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on write queues, and the object: see write_queue.h. Any thread. */
#include "CRLWriteQueue.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Support/invariant.h"
#include "Write/write_kernel.h"
#include "Write/write_queue.h"
#include "service_object.h"

static _Atomic CFTypeID write_queue_type;

/* ---- the object ---- */

static void release_if_any(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

/* Nobody else has the queue any more (NOT_CHECKED). One that is scheduled nowhere may have bytes left. */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    CRLWriteQueueRef queue = (CRLWriteQueueRef)(uintptr_t)object;

    invariant(!queue->watch.room && !queue->has_client);
    write_watch_end(queue->watch);
    write_bytes_drop(&queue->waiting);
    release_if_any(queue->modes);
    release_if_any(queue->loop);
    release_if_any(queue->socket);
    release_if_any(queue->stream);
    service_lock_destroy(&queue->lock);
    if (queue->context.release) {
        queue->context.release(queue->context.info);
    }
}

static CFStringRef copy_description(CFTypeRef object)
{
    CRLWriteQueueRef queue = (CRLWriteQueueRef)(uintptr_t)object;
    CFStringRef context = queue->context.copyDescription ? queue->context.copyDescription(queue->context.info) : NULL;
    CRLWriteQueueCounts counts = CRLWriteQueueGetCounts(queue);
    CFStringRef text =
        CFStringCreateWithFormat(NULL, NULL, CFSTR("<CRLWriteQueue %p>{waiting = %ld, written = %llu, error = %d, context = %@}"), object,
                                 (long)counts.waiting, (unsigned long long)counts.written, counts.error, context ? context : CFSTR("none"));

    release_if_any(context);
    return text;
}

CFTypeID CRLWriteQueueGetTypeID(void)
{
    static const CRLTypeFunctions functions = {.name = "CRLWriteQueue", .finalize = finalize, .copyDescription = copy_description};

    return service_type(&write_queue_type, &functions);
}

static void require(CFTypeRef queue, const char *function)
{
    service_require(queue, CRLWriteQueueGetTypeID(), function, "queue");
}

/* The lock's object has no other user yet (NOT_CHECKED). */
NOT_CHECKED static CRLWriteQueueRef create(CFAllocatorRef allocator, CFSocketRef socket, CFWriteStreamRef stream, CFIndex limit,
                                           CFIndex mark, const CRLSourceContext *context)
{
    CRLWriteQueueRef queue;

    if (limit < 1 || mark < 0 || (context && context->version != 0)) {
        errno = EINVAL;
        return NULL;
    }
    queue = CRLTypeCreateObject(allocator, CRLWriteQueueGetTypeID(), sizeof *queue);
    if (!queue) {
        errno = ENOMEM;
        return NULL;
    }
    service_lock_init(&queue->lock);
    queue->limit = (size_t)limit;
    queue->mark = (size_t)mark;
    queue->process = getpid();
    queue->watch.descriptor = -1;
    queue->socket = socket ? (CFSocketRef)(uintptr_t)CFRetain(socket) : NULL;
    queue->stream = stream ? (CFWriteStreamRef)(uintptr_t)CFRetain(stream) : NULL;
    if (context) {
        queue->context = *context;
        queue->context.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
    }
    return queue;
}

CRLWriteQueueRef CRLWriteQueueCreateWithSocket(CFAllocatorRef allocator, CFSocketRef socket, CFIndex limit, CFIndex mark,
                                               CRLWriteQueueCallBack callout, const CRLSourceContext *context)
{
    int native;
    int type;
    CRLWriteQueueRef queue;

    service_require(socket, CFSocketGetTypeID(), "CRLWriteQueueCreateWithSocket", "socket");
    native = CFSocketGetNative(socket);
    type = native < 0 ? -EBADF : write_kernel.socket_type(native);
    if (type != SOCK_STREAM) {
        errno = type == -EBADF ? EBADF : EPROTOTYPE;
        return NULL;
    }
    queue = create(allocator, socket, NULL, limit, mark, context);
    if (queue) {
        queue->callout = callout;
    }
    return queue;
}

CRLWriteQueueRef CRLWriteQueueCreateWithStream(CFAllocatorRef allocator, CFWriteStreamRef stream, CFIndex limit, CFIndex mark,
                                               CRLWriteQueueCallBack callout, const CRLSourceContext *context)
{
    CRLWriteQueueRef queue;

    service_require(stream, CFWriteStreamGetTypeID(), "CRLWriteQueueCreateWithStream", "stream");
    queue = create(allocator, NULL, stream, limit, mark, context);
    if (queue) {
        queue->callout = callout;
    }
    return queue;
}

/* ---- writing ---- */

/* Why nothing is taken now, or 0. Finds that the socket was invalidated. */
REQUIRES(the_service_lock) static int reason_against(CRLWriteQueueRef queue)
{
    if (queue->counts.error == 0 && queue->socket && !CFSocketIsValid(queue->socket)) {
        write_queue_fail(queue, EBADF);
    }
    return queue->counts.error != 0 ? queue->counts.error : queue->finishes ? ESHUTDOWN : 0;
}

/* Takes the bytes: 0 or an errno. */
REQUIRES(the_service_lock) static int take_bytes(CRLWriteQueueRef queue, const UInt8 *bytes, size_t size)
{
    struct write_block *block = write_block_make(&queue->waiting, size);
    int opened = block ? write_queue_open(queue) : -ENOMEM;
    ssize_t written = 0;

    if (opened < 0) {
        free(block);
        return -opened;
    }
    queue->counts.taken += size;
    if (queue->waiting.count == 0) {
        written = write_queue_put(queue, bytes, size);
    }
    if (written < 0) {
        write_queue_fail(queue, (int)-written);
        free(block);
        return (int)-written;
    }
    write_bytes_append(&queue->waiting, block, bytes + written, size - (size_t)written);
    queue->owes_room |= queue->waiting.count > queue->mark;
    return 0;
}

REQUIRES(the_service_lock) static CRLWriteResult write_locked(CRLWriteQueueRef queue, const UInt8 *bytes, size_t size, int *ret_error)
{
    *ret_error = reason_against(queue);
    if (*ret_error == 0 && size > queue->limit - queue->waiting.count) {
        queue->counts.refused += size;
        queue->owes_room |= queue->waiting.count > 0;
        return kCRLWriteRefused;
    }
    *ret_error = *ret_error == 0 && size > 0 ? take_bytes(queue, bytes, size) : *ret_error;
    return *ret_error == 0 ? kCRLWriteTaken : kCRLWriteFailed;
}

CRLWriteResult CRLWriteQueueWrite(CRLWriteQueueRef queue, const UInt8 *bytes, CFIndex length)
{
    struct write_watch ended;
    CRLWriteResult result;
    int error;

    require(queue, "CRLWriteQueueWrite");
    if (length < 0 || getpid() != queue->process) {
        errno = length < 0 ? EINVAL : ECHILD;
        return kCRLWriteFailed;
    }
    service_lock_take(&queue->lock);
    result = write_locked(queue, bytes, (size_t)length, &error);
    ended = write_watch_update(queue);
    if (result == kCRLWriteTaken && queue->counts.error != 0) {
        result = kCRLWriteFailed; /* a part is written, and there is no memory for the wait */
        error = queue->counts.error;
    }
    service_lock_drop(&queue->lock);
    write_watch_end(ended);
    if (result == kCRLWriteFailed) {
        errno = error;
    }
    return result;
}

CRLWriteQueueCounts CRLWriteQueueGetCounts(CRLWriteQueueRef queue)
{
    struct write_watch ended;
    CRLWriteQueueCounts counts;

    require(queue, "CRLWriteQueueGetCounts");
    service_lock_take(&queue->lock);
    (void)reason_against(queue);
    ended = write_watch_update(queue);
    counts = queue->counts;
    counts.waiting = (CFIndex)queue->waiting.count;
    service_lock_drop(&queue->lock);
    write_watch_end(ended);
    return counts;
}

/* ---- the end ---- */

void CRLWriteQueueFinish(CRLWriteQueueRef queue)
{
    CFSocketRef socket = NULL;
    bool closes;

    require(queue, "CRLWriteQueueFinish");
    service_lock_take(&queue->lock);
    if (reason_against(queue) == 0) {
        queue->finishes = true;
        queue->has_finished = queue->waiting.count == 0;
        socket = queue->socket;
        queue->socket = NULL;
    }
    closes = queue->has_finished && queue->stream;
    service_lock_drop(&queue->lock);
    release_if_any(socket);
    if (closes) {
        CFWriteStreamClose(queue->stream);
    }
}

void CRLWriteQueueInvalidate(CRLWriteQueueRef queue)
{
    struct write_watch ended;

    require(queue, "CRLWriteQueueInvalidate");
    service_lock_take(&queue->lock);
    write_queue_fail(queue, EBADF);
    ended = write_watch_update(queue);
    service_lock_drop(&queue->lock);
    write_watch_end(ended);
}

/* ---- loops ---- */

/* The modes have the mode then. Returns false if there is no memory. */
REQUIRES(the_service_lock) static bool add_mode(CRLWriteQueueRef queue, CFRunLoopRef loop, CFRunLoopMode mode)
{
    if (!queue->modes) {
        queue->modes = CFSetCreateMutable(NULL, 0, &kCFTypeSetCallBacks);
    }
    if (!queue->modes || (queue->loop && queue->loop != loop)) {
        return false;
    }
    CFSetSetValue(queue->modes, mode);
    if (!CFSetContainsValue(queue->modes, mode)) {
        return false;
    }
    if (!queue->loop) {
        queue->loop = (CFRunLoopRef)(uintptr_t)CFRetain(loop);
    }
    if (queue->stream) {
        CFWriteStreamScheduleWithRunLoop(queue->stream, loop, mode);
    } else if (queue->watch.room) {
        CFRunLoopAddSource(loop, queue->watch.source, mode);
        CFRunLoopAddObserver(loop, queue->watch.observer, mode);
    }
    return true;
}

Boolean CRLWriteQueueScheduleWithRunLoop(CRLWriteQueueRef queue, CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct write_watch ended;
    bool result;

    require(queue, "CRLWriteQueueScheduleWithRunLoop");
    service_lock_take(&queue->lock);
    result = add_mode(queue, loop, mode);
    ended = write_watch_update(queue);
    service_lock_drop(&queue->lock);
    write_watch_end(ended);
    return result;
}

void CRLWriteQueueUnscheduleFromRunLoop(CRLWriteQueueRef queue, CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct write_watch ended = {NULL, NULL, NULL, -1};
    CFRunLoopRef left = NULL;

    require(queue, "CRLWriteQueueUnscheduleFromRunLoop");
    service_lock_take(&queue->lock);
    if (queue->loop == loop && queue->modes && CFSetContainsValue(queue->modes, mode)) {
        CFSetRemoveValue(queue->modes, mode);
        if (queue->stream) {
            CFWriteStreamUnscheduleFromRunLoop(queue->stream, loop, mode);
        } else if (queue->watch.room) {
            CFRunLoopRemoveSource(loop, queue->watch.source, mode);
            CFRunLoopRemoveObserver(loop, queue->watch.observer, mode);
        }
        if (CFSetGetCount(queue->modes) == 0) {
            left = queue->loop;
            queue->loop = NULL;
            ended = write_watch_take(queue);
            queue->watch.descriptor = ended.descriptor; /* goes on being where the bytes go */
            ended.descriptor = -1;
        }
    }
    service_lock_drop(&queue->lock);
    write_watch_end(ended);
    release_if_any(left);
}
