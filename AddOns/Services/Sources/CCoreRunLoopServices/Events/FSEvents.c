/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of CoreServices/FSEvents.h but those that make a stream. */
#include "CoreServices/FSEvents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Events/event_queue.h"
#include "Events/event_stream.h"
#include "File/notify_kernel.h"
#include "service_object.h"

static struct __FSEventStream *mutable_stream(ConstFSEventStreamRef stream)
{
    return (struct __FSEventStream *)(uintptr_t)stream;
}

/* Whether this process has made the stream. */
static bool is_ours(ConstFSEventStreamRef stream, const char *function)
{
    service_require_pointer(stream, function, "stream");
    return event_stream_is_ours(stream);
}

void FSEventStreamRetain(FSEventStreamRef streamRef)
{
    service_require_pointer(streamRef, __func__, "stream");
    event_stream_retain(streamRef);
}

void FSEventStreamRelease(FSEventStreamRef streamRef)
{
    service_require_pointer(streamRef, __func__, "stream");
    event_stream_release(streamRef);
}

/* ---- loops ---- */

static __CFPort source_descriptor(void *info)
{
    return ((const struct __FSEventStream *)info)->set;
}

/* The child of a fork has the same wait set, whose events are the parent's: there the source is at its end, as no lock can be taken. */
static void perform_source(void *info)
{
    if (event_stream_is_ours(info)) {
        event_stream_serve(info);
    } else {
        CFRunLoopSourceInvalidate(atomic_load_explicit(&((struct __FSEventStream *)info)->performed, memory_order_relaxed));
    }
}

static const void *retain_stream(const void *info)
{
    event_stream_retain(mutable_stream(info));
    return info;
}

static void release_stream(const void *info)
{
    event_stream_release(mutable_stream(info));
}

/* Returns the stream's source, which it makes if there is none, or NULL. Each holds the other until the stream is invalid. */
REQUIRES(the_service_lock) static CFRunLoopSourceRef source_of(FSEventStreamRef stream)
{
    CFRunLoopSourceContext1 context = {.version = 1,
                                       .info = stream,
                                       .retain = retain_stream,
                                       .release = release_stream,
                                       .getPort = source_descriptor,
                                       .perform = perform_source};

    if (!stream->source) {
        stream->source = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
        atomic_store_explicit(&stream->performed, stream->source, memory_order_relaxed);
    }
    return stream->source;
}

/* Returns a reference to the source, or NULL. */
EXCLUDES(the_service_lock) static CFRunLoopSourceRef take_source(FSEventStreamRef stream, bool makes)
{
    CFRunLoopSourceRef source;

    service_lock_take(&stream->lock);
    source = stream->is_valid && !stream->queue_source ? (makes ? source_of(stream) : stream->source) : NULL;
    if (source) {
        CFRetain(source);
    }
    service_lock_drop(&stream->lock);
    return source;
}

EXCLUDES(the_service_lock) static void count_mode(FSEventStreamRef stream, CFIndex change)
{
    service_lock_take(&stream->lock);
    stream->mode_count += change;
    service_lock_drop(&stream->lock);
}

void FSEventStreamScheduleWithRunLoop(FSEventStreamRef streamRef, CFRunLoopRef runLoop, CFStringRef runLoopMode)
{
    CFRunLoopSourceRef source = is_ours(streamRef, __func__) ? take_source(streamRef, true) : NULL;

    if (source) {
        if (!CFRunLoopContainsSource(runLoop, source, runLoopMode)) {
            CFRunLoopAddSource(runLoop, source, runLoopMode);
            count_mode(streamRef, CFRunLoopContainsSource(runLoop, source, runLoopMode) ? 1 : 0);
        }
        CFRelease(source);
    }
}

void FSEventStreamUnscheduleFromRunLoop(FSEventStreamRef streamRef, CFRunLoopRef runLoop, CFStringRef runLoopMode)
{
    CFRunLoopSourceRef source = is_ours(streamRef, __func__) ? take_source(streamRef, false) : NULL;

    if (source) {
        if (CFRunLoopContainsSource(runLoop, source, runLoopMode)) {
            CFRunLoopRemoveSource(runLoop, source, runLoopMode);
            count_mode(streamRef, -1);
        }
        CFRelease(source);
    }
}

/* ---- a queue ---- */

EXCLUDES(the_service_lock) static void leave_queue(FSEventStreamRef stream)
{
    void *queue_source;

    service_lock_take(&stream->lock);
    queue_source = stream->queue_source;
    stream->queue_source = NULL;
    service_lock_drop(&stream->lock);
    if (queue_source) {
        event_queue_detach(queue_source);
    }
}

void FSEventStreamSetDispatchQueue(FSEventStreamRef streamRef, void *q)
{
    void *queue_source;

    if (!is_ours(streamRef, __func__)) {
        return;
    }
    leave_queue(streamRef);
    queue_source = q ? event_queue_attach(streamRef, q) : NULL;
    if (!queue_source) {
        return;
    }
    service_lock_take(&streamRef->lock);
    if (streamRef->is_valid && !streamRef->source && !streamRef->queue_source) {
        streamRef->queue_source = queue_source;
        queue_source = NULL;
    }
    service_lock_drop(&streamRef->lock);
    if (queue_source) {
        event_queue_detach(queue_source);
    }
}

/* ---- start and end ---- */

void FSEventStreamInvalidate(FSEventStreamRef streamRef)
{
    CFRunLoopSourceRef source;

    if (!is_ours(streamRef, __func__)) {
        return;
    }
    event_stream_retain(streamRef);
    event_stream_stop(streamRef);
    service_lock_take(&streamRef->lock);
    streamRef->is_valid = false;
    source = streamRef->source;
    streamRef->source = NULL;
    streamRef->mode_count = 0;
    service_lock_drop(&streamRef->lock);
    if (source) {
        CFRunLoopSourceInvalidate(source);
        CFRelease(source);
    }
    leave_queue(streamRef);
    event_stream_release(streamRef);
}

Boolean FSEventStreamStart(FSEventStreamRef streamRef)
{
    return is_ours(streamRef, __func__) && event_stream_start(streamRef);
}

void FSEventStreamStop(FSEventStreamRef streamRef)
{
    if (is_ours(streamRef, __func__)) {
        event_stream_stop(streamRef);
    }
}

void FSEventStreamFlushSync(FSEventStreamRef streamRef)
{
    if (is_ours(streamRef, __func__)) {
        event_stream_retain(streamRef); /* the callback may give back the program's reference */
        event_stream_flush(streamRef);
        event_stream_release(streamRef);
    }
}

FSEventStreamEventId FSEventStreamFlushAsync(FSEventStreamRef streamRef)
{
    return is_ours(streamRef, __func__) ? event_stream_hurry(streamRef) : 0;
}

/* ---- what it says of itself ---- */

FSEventStreamEventId FSEventStreamGetLatestEventId(ConstFSEventStreamRef streamRef)
{
    service_require_pointer(streamRef, __func__, "stream");
    return atomic_load_explicit(&streamRef->latest, memory_order_relaxed);
}

dev_t FSEventStreamGetDeviceBeingWatched(ConstFSEventStreamRef streamRef)
{
    service_require_pointer(streamRef, __func__, "stream");
    return streamRef->device;
}

CFArrayRef FSEventStreamCopyPathsBeingWatched(ConstFSEventStreamRef streamRef)
{
    service_require_pointer(streamRef, __func__, "stream");
    return CFRetain(streamRef->paths);
}

CFStringRef FSEventStreamCopyDescription(ConstFSEventStreamRef streamRef)
{
    struct __FSEventStream *stream = mutable_stream(streamRef);
    bool is_started = false;
    CFStringRef info;
    CFStringRef result;

    if (is_ours(stream, __func__)) {
        service_lock_take(&stream->lock);
        is_started = stream->is_started;
        service_lock_drop(&stream->lock);
    }
    info = stream->context.copyDescription ? stream->context.copyDescription(stream->context.info) : NULL;
    result = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<FSEventStream %p>{started = %d, flags = 0x%x, latest = %llu, paths = %@, info = %@}"), (const void *)stream,
        is_started, (unsigned)stream->flags, (unsigned long long)FSEventStreamGetLatestEventId(stream), (CFTypeRef)stream->paths,
        info ? (CFTypeRef)info : (CFTypeRef)CFSTR("(none)"));
    if (info) {
        CFRelease(info);
    }
    return result;
}

void FSEventStreamShow(ConstFSEventStreamRef streamRef)
{
    CFStringRef text = FSEventStreamCopyDescription(streamRef);

    if (text) {
        CFShow(text);
        CFRelease(text);
    }
}

/* ---- ids ---- */

FSEventStreamEventId FSEventsGetCurrentEventId(void)
{
    return event_id_current();
}

FSEventStreamEventId FSEventsGetLastEventIdForDeviceBeforeTime(dev_t dev, CFAbsoluteTime time)
{
    double seconds = time + kCFAbsoluteTimeIntervalSince1970;

    (void)dev;
    if (!(seconds > 0)) {
        return 0;
    }
    return seconds < 1e12 ? (FSEventStreamEventId)(seconds * 1e6) : (FSEventStreamEventId)1000000000000000000ULL;
}

CFUUIDRef FSEventsCopyUUIDForDevice(dev_t dev)
{
    (void)dev;
    return NULL;
}

Boolean FSEventsPurgeEventsForDeviceUpToEventId(dev_t dev, FSEventStreamEventId eventId)
{
    (void)dev;
    (void)eventId;
    return false;
}
