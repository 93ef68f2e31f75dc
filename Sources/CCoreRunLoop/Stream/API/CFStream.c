/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls on streams, which are the same for read and write streams but for the type of the argument. CFStreamCreate.c creates
 * them. Any thread may call these functions.
 */
#include "CoreFoundation/CFStream.h"

#include <errno.h>

#include "Stream/Core/stream.h"
#include "Stream/Core/stream_events.h"
#include "Stream/Core/stream_queue.h"
#include "Stream/Core/stream_schedule.h"
#include "Support/fault.h"

/* ---- arguments ---- */

/* Stops the program if `s` is NULL or no read stream. */
static struct stream *reader(CFReadStreamRef s, const char *function)
{
    object_check(s, &stream_read_class, function, "stream");
    return (struct stream *)s;
}

/* Stops the program if `s` is NULL or no write stream. */
static struct stream *writer(CFWriteStreamRef s, const char *function)
{
    object_check(s, &stream_write_class, function, "stream");
    return (struct stream *)s;
}

CFTypeID CFReadStreamGetTypeID(void)
{
    return object_type_read_stream;
}

CFTypeID CFWriteStreamGetTypeID(void)
{
    return object_type_write_stream;
}

/* ---- status ---- */

CFStreamStatus CFReadStreamGetStatus(CFReadStreamRef stream)
{
    return stream_status(reader(stream, "CFReadStreamGetStatus"));
}

CFStreamStatus CFWriteStreamGetStatus(CFWriteStreamRef stream)
{
    return stream_status(writer(stream, "CFWriteStreamGetStatus"));
}

CFStreamError CFReadStreamGetError(CFReadStreamRef stream)
{
    return stream_error(reader(stream, "CFReadStreamGetError"));
}

CFStreamError CFWriteStreamGetError(CFWriteStreamRef stream)
{
    return stream_error(writer(stream, "CFWriteStreamGetError"));
}

static CFErrorDomain domain_of(CFStreamError error)
{
    if (error.domain == kCFStreamErrorDomainPOSIX) {
        return kCFErrorDomainPOSIX;
    }
    return error.domain == kCFStreamErrorDomainSSL ? kCFErrorDomainOSStatus : CFSTR("kCFErrorDomainCFNetwork");
}

/* What TLS can say beyond the number, such as the name that was wanted. It knows that until both streams are closed. */
static CFErrorRef copy_tls_error(struct stream *s, CFStreamError error)
{
    const void *key = kCFErrorLocalizedFailureReasonKey;
    CFTypeRef reason = stream_copy_property(s, key);
    CFErrorRef copy =
        CFErrorCreateWithUserInfoKeysAndValues(object_allocator(s), domain_of(error), error.error, &key, &reason, reason != NULL);

    object_release_if_any(reason);
    return copy;
}

static CFErrorRef copy_error(struct stream *s)
{
    CFStreamError error = stream_error(s);
    const void *key = kCFErrorLocalizedRecoverySuggestionKey;
    const void *value = CFSTR("Names of hosts need the library libcorerunloop-net. Link it (pkg-config corerunloop-net), "
                              "or connect to a numeric address.");
    bool lacks_library = error.domain == kCFStreamErrorDomainPOSIX && error.error == ENOSYS; /* no kind of file refuses so */

    if (error.domain == 0) {
        return NULL;
    }
    if (error.domain == kCFStreamErrorDomainSSL) {
        return copy_tls_error(s, error);
    }
    return CFErrorCreateWithUserInfoKeysAndValues(object_allocator(s), domain_of(error), error.error, &key, &value, lacks_library);
}

CFErrorRef CFReadStreamCopyError(CFReadStreamRef stream)
{
    return copy_error(reader(stream, "CFReadStreamCopyError"));
}

CFErrorRef CFWriteStreamCopyError(CFWriteStreamRef stream)
{
    return copy_error(writer(stream, "CFWriteStreamCopyError"));
}

Boolean CFReadStreamOpen(CFReadStreamRef stream)
{
    return stream_open(reader(stream, "CFReadStreamOpen"));
}

Boolean CFWriteStreamOpen(CFWriteStreamRef stream)
{
    return stream_open(writer(stream, "CFWriteStreamOpen"));
}

void CFReadStreamClose(CFReadStreamRef stream)
{
    stream_close(reader(stream, "CFReadStreamClose"));
}

void CFWriteStreamClose(CFWriteStreamRef stream)
{
    stream_close(writer(stream, "CFWriteStreamClose"));
}

/* ---- bytes ---- */

Boolean CFReadStreamHasBytesAvailable(CFReadStreamRef stream)
{
    return stream_is_available(reader(stream, "CFReadStreamHasBytesAvailable"));
}

CFIndex CFReadStreamRead(CFReadStreamRef stream, UInt8 *buffer, CFIndex bufferLength)
{
    return stream_read(reader(stream, "CFReadStreamRead"), buffer, bufferLength);
}

const UInt8 *CFReadStreamGetBuffer(CFReadStreamRef stream, CFIndex maxBytesToRead, CFIndex *numBytesRead)
{
    CFIndex ignored;

    return stream_lend(reader(stream, "CFReadStreamGetBuffer"), maxBytesToRead, numBytesRead ? numBytesRead : &ignored);
}

Boolean CFWriteStreamCanAcceptBytes(CFWriteStreamRef stream)
{
    return stream_is_available(writer(stream, "CFWriteStreamCanAcceptBytes"));
}

CFIndex CFWriteStreamWrite(CFWriteStreamRef stream, const UInt8 *buffer, CFIndex bufferLength)
{
    return stream_write(writer(stream, "CFWriteStreamWrite"), buffer, bufferLength);
}

/* ---- properties ---- */

CFTypeRef CFReadStreamCopyProperty(CFReadStreamRef stream, CFStreamPropertyKey propertyName)
{
    return stream_copy_property(reader(stream, "CFReadStreamCopyProperty"), propertyName);
}

CFTypeRef CFWriteStreamCopyProperty(CFWriteStreamRef stream, CFStreamPropertyKey propertyName)
{
    return stream_copy_property(writer(stream, "CFWriteStreamCopyProperty"), propertyName);
}

Boolean CFReadStreamSetProperty(CFReadStreamRef stream, CFStreamPropertyKey propertyName, CFTypeRef propertyValue)
{
    return stream_set_property(reader(stream, "CFReadStreamSetProperty"), propertyName, propertyValue);
}

Boolean CFWriteStreamSetProperty(CFWriteStreamRef stream, CFStreamPropertyKey propertyName, CFTypeRef propertyValue)
{
    return stream_set_property(writer(stream, "CFWriteStreamSetProperty"), propertyName, propertyValue);
}

/* ---- the client ---- */

Boolean CFReadStreamSetClient(CFReadStreamRef stream, CFOptionFlags streamEvents, CFReadStreamClientCallBack clientCB,
                              CFStreamClientContext *clientContext)
{
    return stream_events_set_client(reader(stream, "CFReadStreamSetClient"), clientCB && clientContext ? streamEvents : kCFStreamEventNone,
                                    (union stream_callback){.reader = clientCB}, clientContext);
}

Boolean CFWriteStreamSetClient(CFWriteStreamRef stream, CFOptionFlags streamEvents, CFWriteStreamClientCallBack clientCB,
                               CFStreamClientContext *clientContext)
{
    return stream_events_set_client(writer(stream, "CFWriteStreamSetClient"), clientCB && clientContext ? streamEvents : kCFStreamEventNone,
                                    (union stream_callback){.writer = clientCB}, clientContext);
}

/* ---- loops ---- */

/* Stops the program if the loop is NULL or none. Returns false if there is no mode. */
static bool has_mode(CFRunLoopRef loop, CFStringRef mode, const char *function)
{
    object_require(loop, object_type_run_loop, function, "loop");
    return mode != NULL;
}

void CFReadStreamScheduleWithRunLoop(CFReadStreamRef stream, CFRunLoopRef runLoop, CFRunLoopMode runLoopMode)
{
    struct stream *s = reader(stream, "CFReadStreamScheduleWithRunLoop");

    if (has_mode(runLoop, runLoopMode, "CFReadStreamScheduleWithRunLoop")) {
        stream_schedule_add(s, runLoop, runLoopMode);
    }
}

void CFWriteStreamScheduleWithRunLoop(CFWriteStreamRef stream, CFRunLoopRef runLoop, CFRunLoopMode runLoopMode)
{
    struct stream *s = writer(stream, "CFWriteStreamScheduleWithRunLoop");

    if (has_mode(runLoop, runLoopMode, "CFWriteStreamScheduleWithRunLoop")) {
        stream_schedule_add(s, runLoop, runLoopMode);
    }
}

void CFReadStreamUnscheduleFromRunLoop(CFReadStreamRef stream, CFRunLoopRef runLoop, CFRunLoopMode runLoopMode)
{
    struct stream *s = reader(stream, "CFReadStreamUnscheduleFromRunLoop");

    if (has_mode(runLoop, runLoopMode, "CFReadStreamUnscheduleFromRunLoop")) {
        stream_schedule_remove(s, runLoop, runLoopMode);
    }
}

void CFWriteStreamUnscheduleFromRunLoop(CFWriteStreamRef stream, CFRunLoopRef runLoop, CFRunLoopMode runLoopMode)
{
    struct stream *s = writer(stream, "CFWriteStreamUnscheduleFromRunLoop");

    if (has_mode(runLoop, runLoopMode, "CFWriteStreamUnscheduleFromRunLoop")) {
        stream_schedule_remove(s, runLoop, runLoopMode);
    }
}

/* ---- dispatch queues ---- */

/* Declared in the header only where the dispatch headers are; there for every program. */
CF_EXPORT void read_stream_set_queue(CFReadStreamRef stream, void *queue) CRL_LINK(CFReadStreamSetDispatchQueue);
CF_EXPORT void write_stream_set_queue(CFWriteStreamRef stream, void *queue) CRL_LINK(CFWriteStreamSetDispatchQueue);
CF_EXPORT void *read_stream_copy_queue(CFReadStreamRef stream) CRL_LINK(CFReadStreamCopyDispatchQueue);
CF_EXPORT void *write_stream_copy_queue(CFWriteStreamRef stream) CRL_LINK(CFWriteStreamCopyDispatchQueue);

/* Takes the stream out of all loops, and has its events told on the queue; NULL takes it off its queue. */
static void set_queue(struct stream *s, void *queue)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct stream_queue *made = queue ? stream_queue_attach(s, queue) : NULL;

    if (made) {
        stream_schedule_put_on_queue(s, made);
    } else if (queue) {
        fault_log_once(&logged, "a stream cannot be put on a dispatch queue: no libdispatch in this process, no memory or no descriptor");
    } else {
        stream_schedule_leave_queue(s);
    }
}

void read_stream_set_queue(CFReadStreamRef stream, void *queue)
{
    set_queue(reader(stream, "CFReadStreamSetDispatchQueue"), queue);
}

void write_stream_set_queue(CFWriteStreamRef stream, void *queue)
{
    set_queue(writer(stream, "CFWriteStreamSetDispatchQueue"), queue);
}

void *read_stream_copy_queue(CFReadStreamRef stream)
{
    return stream_queue_copy(reader(stream, "CFReadStreamCopyDispatchQueue"));
}

void *write_stream_copy_queue(CFWriteStreamRef stream)
{
    return stream_queue_copy(writer(stream, "CFWriteStreamCopyDispatchQueue"));
}
