/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls on sockets, but for addresses and sending (CFSocketTransfer.c) and the name registry (CFSocketNames.c). What happens
 * when a descriptor is ready is in socket_events.c; fields and guards are in socket.h.
 */
#include "CoreFoundation/CFSocket.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "Descriptor/socket.h"
#include "Loop/descriptor_source.h"
#include "Support/fault.h"

static const CFOptionFlags reading_kinds = kCFSocketDataCallBack; /* both bits */

static void require(CFSocketRef s, const char *function)
{
    object_require(s, object_type_socket, function, "socket");
}

/* ---- the descriptor ---- */

int socket_begin_use(CFSocketRef s)
{
    int native;

    socket_lock(s);
    native = s->native;
    s->users += native >= 0;
    socket_unlock(s);
    return native;
}

void socket_end_use(CFSocketRef s)
{
    int native = -1;

    socket_lock(s);
    s->users--;
    if (s->users == 0 && s->closes_late) {
        s->closes_late = false;
        native = s->native_to_close;
    }
    socket_unlock(s);
    if (native >= 0) {
        (void)kernel.close(native);
    }
}

CFDataRef socket_copy_address(CFAllocatorRef allocator, const struct kernel_address *address)
{
    return CFDataCreate(allocator, address->bytes, (CFIndex)address->length);
}

/* ---- interest ---- */

void socket_update(CFSocketRef s)
{
    uint32_t wanted = s->events & ~(s->disabled | s->spent);
    uint32_t interest = 0;

    if (s->is_valid) {
        interest |= (wanted & socket_event_read) && !s->backs_off ? kernel_readable : 0u;
        interest |= wanted & (socket_event_connect | socket_event_write) ? kernel_writable : 0u;
    }
    if (s->is_idle) {
        bool is_unreported = s->is_unix && (interest & kernel_writable);

        interest = interest << descriptor_changes_shift | (is_unreported ? (uint32_t)descriptor_unreported : 0u);
    }
    atomic_store_explicit(&s->interest, interest, memory_order_release);
}

/* Two threads may change the interest at once: whoever comes last finds the other's change. */
void socket_tell(CFSocketRef s, CFRunLoopSourceRef source)
{
    uint32_t interest = atomic_load_explicit(&s->interest, memory_order_acquire);
    uint32_t told;

    do {
        told = interest;
        descriptor_source_set_interest(source, told);
        interest = atomic_load_explicit(&s->interest, memory_order_acquire);
    } while (interest != told);
}

void socket_tell_source(CFSocketRef s)
{
    CFRunLoopSourceRef source;

    socket_lock(s);
    source = weak_source_retain(&s->source);
    socket_unlock(s);
    if (source) {
        socket_tell(s, source);
        object_release(source);
    }
}

/* ---- the object ---- */

void socket_release_info(CFSocketRef s, void *info)
{
    if (s->context.release) {
        s->context.release(info);
    }
}

/* No source is left, for a source holds a reference; nor a user. */
static void finalize(CFTypeRef object)
{
    CFSocketRef s = (CFSocketRef)(uintptr_t)object;

    void *info;

    if (s->peer) {
        CFRelease(s->peer);
    }
    free(s->spare_delivery);
    if (s->is_valid) {
        socket_registry_remove(s->native, s);
    }
    if (info_hold_finish(&s->info.hold, &info)) {
        socket_release_info(s, info);
    }
    if (s->is_valid && (s->flags & kCFSocketCloseOnInvalidate) && !s->lost_descriptor) {
        (void)kernel.close(s->native);
    }
}

static CFStringRef describe(CFTypeRef object)
{
    CFSocketRef s = (CFSocketRef)(uintptr_t)object;
    CFStringRef context = info_hold_describe(&s->info.hold, item_lock(s), s->context.copyDescription, s->context.release);
    CFStringRef text;
    bool is_valid;
    int native;
    CFOptionFlags flags;
    const void *info;

    socket_lock(s);
    is_valid = s->is_valid;
    native = s->native;
    flags = s->flags;
    info = s->info.hold.info;
    socket_unlock(s);
    text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFSocket %p>{valid = %s, descriptor = %d, types = %lu, flags = %lu, callout = %p, info = %p%@%@}"), object,
        is_valid ? "Yes" : "No", native, s->reading | (s->events & ~(unsigned long)socket_event_read), flags,
        (void *)(uintptr_t)s->callout, info, context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));
    if (context) {
        CFRelease(context);
    }
    return text;
}

static const struct object_class socket_class = {
    .type_id = object_type_socket,
    .name = "CFSocket",
    .finalize = finalize,
    .copy_description = describe,
};

CFTypeID CFSocketGetTypeID(void)
{
    return object_type_socket;
}

/* A socket whose context is not adopted yet, so that it can be thrown away. */
static CFSocketRef make(CFAllocatorRef allocator, int native, CFOptionFlags types, CFSocketCallBack callout)
{
    CFSocketRef s = object_create(allocator, &socket_class, sizeof *s);

    if (!s) {
        return NULL;
    }
    s->callout = callout;
    s->reading = types & reading_kinds;
    s->flags = s->reading | kCFSocketCloseOnInvalidate; /* 253: the kinds' flags have the kinds' numbers */
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

static CFSocketRef create(CFAllocatorRef allocator, int native, CFOptionFlags types, CFSocketCallBack callout,
                          const CFSocketContext *context)
{
    CFSocketRef s = make(allocator, native, types, callout);
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
    s->is_valid = true;
    socket_update(s);
    other = socket_registry_add(native, s, &failed);
    if (other || failed) {
        s->is_valid = false; /* so that the descriptor stays open */
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
        return s; /* 251 */
    }
    return sock >= 0 && kernel.descriptor_is_open(sock) ? create(allocator, sock, callBackTypes, callout, context) : NULL;
}

CFSocketRef CFSocketCreate(CFAllocatorRef allocator, SInt32 protocolFamily, SInt32 socketType, SInt32 protocol, CFOptionFlags callBackTypes,
                           CFSocketCallBack callout, const CFSocketContext *context)
{
    CFSocketRef s;
    int native;

    protocolFamily = protocolFamily <= 0 ? PF_INET : protocolFamily; /* 271 */
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
    socket_registry_evict(native);
    s = create(allocator, native, callBackTypes, callout, context);
    if (!s) {
        (void)kernel.close(native);
    }
    return s;
}

static CFSocketRef keep_if(CFSocketRef s, CFSocketError error)
{
    int reason = errno;

    if (s && error != kCFSocketSuccess) {
        CFSocketInvalidate(s);
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

    return s ? keep_if(s, CFSocketSetAddress(s, signature->address)) : NULL;
}

CFSocketRef CFSocketCreateConnectedToSocketSignature(CFAllocatorRef allocator, const CFSocketSignature *signature,
                                                     CFOptionFlags callBackTypes, CFSocketCallBack callout, const CFSocketContext *context,
                                                     CFTimeInterval timeout)
{
    CFSocketRef s = signature ? CFSocketCreate(allocator, signature->protocolFamily, signature->socketType, signature->protocol,
                                               callBackTypes, callout, context)
                              : NULL;

    return s ? keep_if(s, CFSocketConnectToAddress(s, signature->address, timeout)) : NULL;
}

CFSocketNativeHandle CFSocketGetNative(CFSocketRef s)
{
    int native;

    require(s, "CFSocketGetNative");
    socket_lock(s);
    native = s->native;
    socket_unlock(s);
    return native;
}

void CFSocketGetContext(CFSocketRef s, CFSocketContext *context)
{
    require(s, "CFSocketGetContext");
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
    bool is_valid;

    require(s, "CFSocketIsValid");
    socket_lock(s);
    is_valid = s->is_valid;
    socket_unlock(s);
    return is_valid;
}

/* ---- flags and callbacks ---- */

CFOptionFlags CFSocketGetSocketFlags(CFSocketRef s)
{
    CFOptionFlags flags;

    require(s, "CFSocketGetSocketFlags");
    socket_lock(s);
    flags = s->flags;
    socket_unlock(s);
    return flags;
}

void CFSocketSetSocketFlags(CFSocketRef s, CFOptionFlags flags)
{
    require(s, "CFSocketSetSocketFlags");
    socket_lock(s);
    s->flags = flags;
    socket_unlock(s);
}

/* Read, Accept and Data are one field of two bits (252): whoever asked for Data may name it by either of the others. */
static uint32_t reading_named_by(CFSocketRef s, CFOptionFlags types)
{
    return types & s->reading ? (uint32_t)socket_event_read : 0u;
}

void CFSocketDisableCallBacks(CFSocketRef s, CFOptionFlags callBackTypes)
{
    uint32_t events = (uint32_t)callBackTypes & (socket_event_connect | socket_event_write);
    CFRunLoopSourceRef source;

    require(s, "CFSocketDisableCallBacks");
    events |= reading_named_by(s, callBackTypes);
    socket_lock(s);
    source = weak_source_retain(&s->source);
    /* Otherwise adding it enables all of them. Asked under the lock: if it is out of its last mode by now, left_mode comes after this. */
    if (source && descriptor_source_is_held(source)) {
        s->disabled |= events;
        socket_update(s);
    }
    socket_unlock(s);
    if (source) {
        socket_tell(s, source);
        object_release(source);
    }
}

/* Before they are not spent any more. I */
static void note_renewed(CFSocketRef s, uint32_t events, uint64_t poll_number)
{
    s->renewed = poll_number ? events & s->spent : 0;
    s->renewed_by = poll_number;
}

/* None of `events` is disabled or spent any more. I */
static void enable(CFSocketRef s, uint32_t events)
{
    if (s->has_ended && s->reading == kCFSocketDataCallBack) {
        events &= ~(uint32_t)socket_event_read; /* the end is told once (257) */
    }
    if (events & socket_event_read) {
        s->has_ended = false; /* unless it is found again: the program may have made another connection */
    }
    s->disabled &= ~events;
    s->spent &= ~(events & ~(uint32_t)socket_event_connect); /* Connect comes once (261) */
    socket_expect_events(s);
}

void CFSocketEnableCallBacks(CFSocketRef s, CFOptionFlags callBackTypes)
{
    uint32_t events = (uint32_t)callBackTypes & (socket_event_connect | socket_event_write);

    require(s, "CFSocketEnableCallBacks");
    events |= reading_named_by(s, callBackTypes);
    if (!events) {
        return;
    }
    socket_lock(s);
    note_renewed(s, events, descriptor_source_poll_number());
    enable(s, events);
    socket_update(s);
    socket_unlock(s);
    socket_tell_source(s);
}

/* ---- the source ---- */

static void forget(void *object, CFRunLoopSourceRef source)
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

/* With the last mode it forgets what is disabled or spent: who adds it anew hears of all kinds (254). */
static void left_mode(void *object, CFRunLoopRef loop, CFStringRef mode)
{
    CFSocketRef s = object;

    (void)loop;
    (void)mode;
    socket_lock(s);
    if (--s->memberships <= 0) {
        enable(s, s->events);
        socket_update(s);
    }
    socket_unlock(s);
    socket_tell_source(s);
}

static CFStringRef describe_source(const void *object)
{
    return CFCopyDescription(object);
}

static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, CFSocketRef s, int native, CFIndex order)
{
    const struct descriptor_source_context context = {.info = s,
                                                      .release = object_release,
                                                      .forget = forget,
                                                      .perform = socket_perform,
                                                      .copy_description = describe_source,
                                                      .schedule = joined_mode,
                                                      .cancel = left_mode,
                                                      .is_version_0 = true};
    CFRunLoopSourceRef source;

    object_retain(s);
    source = descriptor_source_create(allocator, order, native, &context);
    if (!source) {
        object_release(s);
    }
    return source;
}

CFRunLoopSourceRef CFSocketCreateRunLoopSource(CFAllocatorRef allocator, CFSocketRef s, CFIndex order)
{
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef made;
    int native;

    require(s, "CFSocketCreateRunLoopSource");
    source = weak_source_settle(s, &s->source, NULL, &s->is_valid);
    native = CFSocketGetNative(s);
    if (source || native < 0) {
        return source;
    }
    made = make_source(allocator, s, native, order);
    if (!made) {
        return NULL;
    }
    source = weak_source_settle(s, &s->source, made, &s->is_valid);
    if (source == made) {
        socket_tell(s, made);
    } else {
        CFRunLoopSourceInvalidate(made); /* another thread was faster, or has invalidated the socket */
    }
    object_release(made);
    return source;
}

/* ---- the end ---- */

/* What an invalidation has to give back once the lock is dropped. */
struct leftovers {
    CFRunLoopSourceRef source;
    CFRunLoopTimerRef retry;
    void *info;
    int native;
    bool closes;
    bool becomes_blocking;
    bool releases;
};

/* False if the socket was invalid already. */
static bool take_apart(CFSocketRef s, struct leftovers *ret_leftovers)
{
    bool was_valid;

    socket_lock(s);
    was_valid = s->is_valid;
    if (was_valid) {
        s->is_valid = false;
        socket_update(s);
        ret_leftovers->source = weak_source_retain(&s->source);
        ret_leftovers->retry = s->retry;
        if (s->retry) {
            CFRetain(s->retry);
        }
        ret_leftovers->native = s->native;
        ret_leftovers->closes = (s->flags & kCFSocketCloseOnInvalidate) && !s->lost_descriptor;
        ret_leftovers->becomes_blocking = s->made_non_blocking && !ret_leftovers->closes && !s->lost_descriptor;
        ret_leftovers->releases = called_info_give_up(&s->info, &ret_leftovers->info);
        s->source.source = NULL;
        s->native = -1;
    }
    socket_unlock(s);
    return was_valid;
}

/* Now, or by whoever still uses the descriptor. The source is out of the loops: nobody waits for the number any more. */
static void close_native(CFSocketRef s, int native)
{
    bool is_used;

    socket_lock(s);
    is_used = s->users > 0;
    s->closes_late = is_used;
    s->native_to_close = native;
    socket_unlock(s);
    if (!is_used) {
        (void)kernel.close(native);
    }
}

void CFSocketInvalidate(CFSocketRef s)
{
    struct leftovers leftovers = {0};

    require(s, "CFSocketInvalidate");
    object_retain(s);
    if (take_apart(s, &leftovers)) {
        socket_registry_remove(leftovers.native, s);
        if (leftovers.source) {
            descriptor_source_invalidate(leftovers.source);
            object_release(leftovers.source);
        }
        if (leftovers.retry) {
            CFRunLoopTimerInvalidate(leftovers.retry);
            CFRelease(leftovers.retry);
        }
        if (leftovers.becomes_blocking) {
            (void)kernel.make_non_blocking(leftovers.native, false);
        }
        if (leftovers.closes) {
            close_native(s, leftovers.native);
        }
        if (leftovers.releases) {
            socket_release_info(s, leftovers.info);
        }
    }
    object_release(s);
}
