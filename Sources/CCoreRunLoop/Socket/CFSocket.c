/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls on sockets: creation, properties, flags, callbacks, the run loop source, the end. Addresses and sending are in
 * CFSocketTransfer.c, the name registry in CFSocketNames.c. Fields and guards are in socket.h; socket_events.c handles a ready descriptor.
 *
 * Any thread may call these functions. Each checks its arguments, and takes the item lock only to read or change fields.
 */
#include "CoreFoundation/CFSocket.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "Loop/Core/shown.h"
#include "Loop/Source/descriptor_source.h"
#include "Socket/socket.h"
#include "Socket/socket_events.h"
#include "Socket/socket_registry.h"
#include "Support/fault.h"
#include "Support/locked_read.h"

static const CFOptionFlags reading_kinds = kCFSocketDataCallBack; /* both bits */

/* ---- the object ---- */

/*
 * Nothing else refers to the object any more. There is no source, because a source holds a reference. There is no user of the descriptor
 * and no thread with the lock, because either needs a reference too. So the fields are read without the lock (NOT_CHECKED).
 */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    CFSocketRef s = (CFSocketRef)(uintptr_t)object;
    void *info;

    invariant(!s->source.source);
    invariant(s->users == 0 && !s->closes_late);
    invariant(!s->retry); /* the timer holds a reference */

    object_release_if_any(s->peer);
    free(s->spare_delivery);
    if (s->is_valid) {
        socket_registry_remove(s->native, s);
    }
    if (context_info_finish(&s->info.hold, &info)) {
        socket_release_info(s, info);
    }
    if (s->is_valid && (s->flags & kCFSocketCloseOnInvalidate) && !s->lost_descriptor) {
        (void)kernel.close(s->native);
    }
}

enum { shown_data = 1 << 8 };

/* The names of callbacks in Apple's numbering, but for Data, which is Read and Accept there. */
static const struct shown_bit callback_names[] = {
    {kCFSocketReadCallBack, "read"},       {kCFSocketAcceptCallBack, "accept"}, {shown_data, "data"},
    {kCFSocketConnectCallBack, "connect"}, {kCFSocketWriteCallBack, "write"},   {0, NULL},
};

static const char *shown_callbacks(struct shown *shown, const struct __CFSocket *s, uint32_t events)
{
    uint32_t reading = s->reading == kCFSocketDataCallBack ? (uint32_t)shown_data : (uint32_t)s->reading;

    return shown_bits(shown, callback_names, (events & socket_event_read ? reading : 0) | (events & ~(uint32_t)socket_event_read));
}

static CFStringRef copy_description(CFTypeRef object)
{
    CFSocketRef s = (CFSocketRef)(uintptr_t)object;
    /* Asked for first and without the lock: the function is the program's. */
    CFStringRef context = context_info_describe(&s->info.hold, item_lock(s), s->context.copyDescription, s->context.release);
    struct shown shown[4];
    CFStringRef text;
    bool is_valid;
    int native;
    uint32_t wanted;
    CFOptionFlags flags;
    const void *info;

    socket_lock(s);
    is_valid = s->is_valid;
    native = s->native;
    wanted = is_valid ? socket_wanted_events(s) : 0;
    flags = s->flags;
    info = s->info.hold.info;
    socket_unlock(s);
    text = CFStringCreateWithFormat(
        NULL, NULL,
        CFSTR("<CFSocket %p>{valid = %s, descriptor = %s, callbacks = %s, enabled = %s, flags = 0x%lx, callout = %s, info = %p%@%@}"),
        object, shown_bool(is_valid), shown_descriptor(&shown[0], native), shown_callbacks(&shown[1], s, s->events),
        shown_callbacks(&shown[2], s, wanted), flags, shown_callout(&shown[3], (void (*)(void))s->callout), info,
        context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));
    object_release_if_any(context);
    return text;
}

static const struct object_class socket_class = {
    .type_id = object_type_socket,
    .name = "CFSocket",
    .finalize = finalize,
    .copy_description = copy_description,
};

CFTypeID CFSocketGetTypeID(void)
{
    return object_type_socket;
}

/*
 * Makes a socket that is not valid yet and has no context. It can be released without any effect on the descriptor or the program's info.
 * No other thread knows it, so that it needs no lock (NOT_CHECKED).
 */
NOT_CHECKED static CFSocketRef allocate_socket(CFAllocatorRef allocator, int native, CFOptionFlags types, CFSocketCallBack callout)
{
    CFSocketRef s = object_create(allocator, &socket_class, sizeof *s);

    if (!s) {
        return NULL;
    }
    s->callout = callout;
    s->reading = types & reading_kinds;
    s->flags = s->reading | kCFSocketCloseOnInvalidate; /* a kind's re-enabling flag has the kind's number (rule 253) */
    s->type = kernel.socket_type(native);
    s->native = native;
    if (callout) {
        s->events =
            (s->reading ? (uint32_t)socket_event_read : 0u) | (uint32_t)(types & (kCFSocketConnectCallBack | kCFSocketWriteCallBack));
    }
    if (!socket_is_connection_oriented(s)) {
        s->spent = socket_event_connect; /* there is no connection to wait for */
    }
    return s;
}

/*
 * Makes a socket and registers it. Where another thread has registered one for the number meanwhile, returns that one. The registry
 * publishes the object, so that the fields before that need no lock (NOT_CHECKED); socket_update_interest expects it, though.
 */
NOT_CHECKED static CFSocketRef create_and_register(CFAllocatorRef allocator, int native, CFOptionFlags types, CFSocketCallBack callout,
                                                   const CFSocketContext *context)
{
    CFSocketRef s = allocate_socket(allocator, native, types, callout);
    bool failed;
    CFSocketRef other;

    if (!s) {
        return NULL;
    }
    if (context) {
        s->context = *context;
        s->context.info = NULL;
        s->info.hold.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
    }
    socket_lock(s);
    s->is_valid = true;
    socket_update_interest(s);
    socket_unlock(s);
    other = socket_registry_add(native, s, &failed);
    if (other || failed) {
        s->is_valid = false; /* so that finalize leaves the descriptor open, which is the other object's or the caller's */
        object_release(s);
        return other;
    }
    return s;
}

CFSocketRef CFSocketCreateWithNative(CFAllocatorRef allocator, CFSocketNativeHandle sock, CFOptionFlags callBackTypes,
                                     CFSocketCallBack callout, const CFSocketContext *context)
{
    CFSocketRef s = socket_registry_find(sock);

    if (s) {
        return s; /* one object for one descriptor: the other arguments are ignored (rule 251) */
    }
    return sock >= 0 && kernel.descriptor_is_open(sock) ? create_and_register(allocator, sock, callBackTypes, callout, context) : NULL;
}

CFSocketRef CFSocketCreate(CFAllocatorRef allocator, SInt32 protocolFamily, SInt32 socketType, SInt32 protocol, CFOptionFlags callBackTypes,
                           CFSocketCallBack callout, const CFSocketContext *context)
{
    CFSocketRef s;
    int native;

    protocolFamily = protocolFamily <= 0 ? PF_INET : protocolFamily; /* 0 or less stands for a default, here and below (rule 271) */
    if (protocolFamily == PF_INET) {
        socketType = socketType <= 0 ? SOCK_STREAM : socketType;
        if (protocol <= 0) {
            protocol = socketType == SOCK_STREAM ? IPPROTO_TCP : socketType == SOCK_DGRAM ? IPPROTO_UDP : protocol;
        }
    } else if (protocolFamily == PF_LOCAL && socketType <= 0) {
        socketType = SOCK_STREAM;
    }
    native = kernel.socket_create(protocolFamily, socketType, protocol);
    if (native < 0) {
        errno = -native;
        return NULL;
    }
    socket_registry_evict(native); /* the number is new: an object that still has it was closed by the program behind our back */
    s = create_and_register(allocator, native, callBackTypes, callout, context);
    if (!s) {
        (void)kernel.close(native);
    }
    return s;
}

/* Returns the socket, or ends it and returns NULL if its address could not be had. Keeps errno, which says why. */
static CFSocketRef keep_unless_failed(CFSocketRef s, CFSocketError error)
{
    int reason = errno;

    if (s && error != kCFSocketSuccess) {
        socket_invalidate(s);
        object_release(s);
        errno = reason;
        return NULL;
    }
    return s;
}

CFSocketRef CFSocketCreateWithSocketSignature(CFAllocatorRef allocator, const CFSocketSignature *signature, CFOptionFlags callBackTypes,
                                              CFSocketCallBack callout, const CFSocketContext *context)
{
    CFSocketRef s = signature ? CFSocketCreate(allocator, signature->protocolFamily, signature->socketType, signature->protocol,
                                               callBackTypes, callout, context)
                              : NULL;

    return s ? keep_unless_failed(s, CFSocketSetAddress(s, signature->address)) : NULL;
}

CFSocketRef CFSocketCreateConnectedToSocketSignature(CFAllocatorRef allocator, const CFSocketSignature *signature,
                                                     CFOptionFlags callBackTypes, CFSocketCallBack callout, const CFSocketContext *context,
                                                     CFTimeInterval timeout)
{
    CFSocketRef s = signature ? CFSocketCreate(allocator, signature->protocolFamily, signature->socketType, signature->protocol,
                                               callBackTypes, callout, context)
                              : NULL;

    return s ? keep_unless_failed(s, CFSocketConnectToAddress(s, signature->address, timeout)) : NULL;
}

CFSocketNativeHandle CFSocketGetNative(CFSocketRef s)
{
    socket_require(s, "CFSocketGetNative");
    return locked_read_int(item_lock(s), &s->native);
}

void CFSocketGetContext(CFSocketRef s, CFSocketContext *context)
{
    socket_require(s, "CFSocketGetContext");
    if (!context) {
        fault_stop("CFSocketGetContext", "the context is NULL");
    }
    socket_lock(s);
    *context = s->context;
    context->info = s->info.hold.info;
    socket_unlock(s);
    context->version = 0;
}

Boolean CFSocketIsValid(CFSocketRef s)
{
    socket_require(s, "CFSocketIsValid");
    return socket_is_valid(s);
}

/* ---- flags and callbacks ---- */

CFOptionFlags CFSocketGetSocketFlags(CFSocketRef s)
{
    socket_require(s, "CFSocketGetSocketFlags");
    return locked_read_flags(item_lock(s), &s->flags);
}

void CFSocketSetSocketFlags(CFSocketRef s, CFOptionFlags flags)
{
    socket_require(s, "CFSocketSetSocketFlags");
    socket_lock(s);
    s->flags = flags;
    socket_unlock(s);
}

/*
 * The events that the program names by `types`. Read, Accept and Data share a field of two bits (rule 252), so that the reading of a socket
 * for Data may be named by any of the three.
 */
static uint32_t events_named_by(CFSocketRef s, CFOptionFlags types)
{
    return ((uint32_t)types & (socket_event_connect | socket_event_write)) | (types & s->reading ? (uint32_t)socket_event_read : 0u);
}

void CFSocketDisableCallBacks(CFSocketRef s, CFOptionFlags callBackTypes)
{
    CFRunLoopSourceRef source;
    uint32_t events;

    socket_require(s, "CFSocketDisableCallBacks");
    events = events_named_by(s, callBackTypes);
    socket_lock(s);
    source = weak_source_retain(&s->source);
    /*
     * A source in no mode needs nothing, because adding it enables all events. The question is asked under the lock: if the source leaves
     * its last mode right after it, left_mode waits for the lock, and enables them again.
     */
    if (source && descriptor_source_is_held(source)) {
        s->disabled |= events;
        socket_update_interest(s);
    }
    socket_unlock(s);
    if (source) {
        socket_publish_interest_to(s, source);
        object_release(source);
    }
}

/*
 * Notes which of `events` are about to be enabled again after they were delivered, if that happens in a run with a limit of 0. Such a run
 * does not deliver them a second time (socket_claim in socket_delivery.c). To be called before enable_events.
 */
REQUIRES(the_item_lock) static void note_renewed(CFSocketRef s, uint32_t events, uint64_t poll_number)
{
    s->renewed = poll_number ? events & s->spent : 0;
    s->renewed_by = poll_number;
}

/* Enables the events, but for those that come only once: the end of data, and Connect. */
REQUIRES(the_item_lock) static void enable_events(CFSocketRef s, uint32_t events)
{
    if (s->has_ended && s->reading == kCFSocketDataCallBack) {
        events &= ~(uint32_t)socket_event_read; /* the end was delivered, and comes once (rule 257) */
    }
    if (events & socket_event_read) {
        s->has_ended = false; /* the program may have made another connection; else the end is found again */
    }
    s->disabled &= ~events;
    s->spent &= ~(events & ~(uint32_t)socket_event_connect); /* Connect comes once (rule 261) */
    socket_expect_events(s);
}

void CFSocketEnableCallBacks(CFSocketRef s, CFOptionFlags callBackTypes)
{
    uint32_t events;

    socket_require(s, "CFSocketEnableCallBacks");
    events = events_named_by(s, callBackTypes);
    if (!events) {
        return;
    }
    socket_lock(s);
    note_renewed(s, events, descriptor_source_poll_number());
    enable_events(s, events);
    socket_update_interest(s);
    socket_unlock(s);
    socket_publish_interest(s);
}

/* ---- the source ---- */

static void forget_source(void *object, CFRunLoopSourceRef source)
{
    CFSocketRef s = object;

    weak_source_forget(s, &s->source, source);
}

static void joined_mode(void *object, CFRunLoopRef loop, CFStringRef mode)
{
    CFSocketRef s = object;

    (void)loop;
    (void)mode;
    socket_lock(s);
    s->memberships++;
    socket_unlock(s);
}

/* A source that leaves its last mode forgets what is disabled or spent. A program that adds it anew is told of all kinds (rule 254). */
static void left_mode(void *object, CFRunLoopRef loop, CFStringRef mode)
{
    CFSocketRef s = object;

    (void)loop;
    (void)mode;
    socket_lock(s);
    if (--s->memberships <= 0) { /* below 0 while the report of joining is still on its way from another thread */
        enable_events(s, s->events);
        socket_update_interest(s);
    }
    socket_unlock(s);
    socket_publish_interest(s);
}

static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, const void *owner, CFIndex order)
{
    CFSocketRef s = (CFSocketRef)(uintptr_t)owner;
    const struct descriptor_source_context context = {
        .forget = forget_source, .perform = socket_perform, .schedule = joined_mode, .cancel = left_mode, .is_version_0 = true};

    return descriptor_source_create_of(s, allocator, order, locked_read_int(item_lock(s), &s->native), context); /* -1: just ended */
}

CFRunLoopSourceRef CFSocketCreateRunLoopSource(CFAllocatorRef allocator, CFSocketRef s, CFIndex order)
{
    CFRunLoopSourceRef source;

    socket_require(s, "CFSocketCreateRunLoopSource");
    source = weak_source_get_or_make(s, &s->source, &s->is_valid, make_source, allocator, order);
    if (source) {
        socket_publish_interest_to(s, source); /* a new source knows no interest; one that was there knows it already */
    }
    return source;
}

/* ---- the end ---- */

void CFSocketInvalidate(CFSocketRef s)
{
    socket_require(s, "CFSocketInvalidate");
    socket_invalidate(s);
}
