/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a socket does when its descriptor is ready: takes the events that are wanted, and delivers them in the order Connect, reading,
 * Write (264).
 *
 * Runs on the loop's thread, without a lock but where it looks at the socket's fields. An event is spent from the moment it is taken, so
 * that neither a nested run nor another loop delivers it a second time meanwhile (276).
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "Descriptor/socket.h"
#include "Loop/descriptor_source.h"
#include "Loop/held.h"
#include "Loop/thread_loop.h"
#include "Runtime/data.h"
#include "Support/fault.h"

enum { stream_read_size = 32768, datagram_read_size = 65535 }; /* 256 */

/* How long nothing is taken when there is no room for it: eight attempts a second. */
static const CFTimeInterval back_off_s = 0.125;

/* One perform. In memory that the thread's stack does not take along if a callback does not return, unless there is none. */
struct delivery {
    struct delivery *memory; /* this, or NULL */
    CFSocketRef s; /* a reference */
    CFRunLoopSourceRef source;
    int native;
    uint32_t ready;
    uint32_t events; /* taken */
    uint32_t unused; /* taken, but there was nothing to tell */
    bool takes_error;
    bool ends; /* the end of the data is being told: the socket is to be invalidated */
    bool has_retained; /* the info, by the context's function */
    void *info;
    CFDataRef address; /* for the callout that is under way, as the next */
    CFDataRef data;
};

/* ---- taking ---- */

/* I */
static void become_idle(CFSocketRef s, bool is_unix)
{
    s->is_idle = true;
    s->is_unix = is_unix;
    socket_update(s);
}

/* True also if it cannot be told: then the loop looks in vain. */
static bool may_be_unix(int native)
{
    struct kernel_address address;
    sa_family_t family = AF_UNIX;

    if (kernel.socket_address(native, false, &address) == 0) {
        memcpy(&family, address.bytes + offsetof(struct sockaddr, sa_family), sizeof family);
    }
    return family == AF_UNIX;
}

/* What no kind of reading would find out: that there is none, or that it was never seen to work. I */
static bool may_be_idle(const struct __CFSocket *s)
{
    return !s->is_known_active || s->is_idle || !(s->events & ~(s->disabled | s->spent) & socket_event_read);
}

/* A hang-up with no error: it may just not have begun, or the program has taken its connection away. */
static bool turns_out_idle(CFSocketRef s, uint32_t ready)
{
    bool is_asked;
    bool is_idle;
    bool is_unix;
    int native;

    if (!(ready & kernel_failed) || (ready & kernel_error) || !socket_is_connection_oriented(s)) {
        return false;
    }
    socket_lock(s);
    is_asked = may_be_idle(s);
    socket_unlock(s);
    native = is_asked ? socket_begin_use(s) : -1;
    if (native < 0) {
        return false;
    }
    is_idle = kernel.socket_is_idle(native);
    is_unix = is_idle && may_be_unix(native);
    socket_end_use(s);
    if (is_idle) {
        socket_lock(s);
        become_idle(s, is_unix);
        socket_unlock(s);
    }
    return is_idle;
}

static uint32_t events_of(uint32_t readiness)
{
    return (readiness & kernel_readable ? (uint32_t)socket_event_read : 0u) |
           (readiness & kernel_writable ? (uint32_t)socket_event_connect | socket_event_write : 0u);
}

/* Readiness that nobody wants any more has no bit in the interest. I */
static uint32_t wanted_of(const struct __CFSocket *s, uint32_t kinds)
{
    return events_of(kinds & atomic_load_explicit(&s->interest, memory_order_relaxed)) & s->events & ~(s->disabled | s->spent);
}

/* What is wanted of what is ready: in the memory that the socket has for it, or in `on_stack`; NULL if there is nothing. */
static struct delivery *take(CFSocketRef s, CFRunLoopSourceRef source, struct activation *run, uint32_t ready, struct delivery *on_stack)
{
    const uint32_t connecting = (uint32_t)socket_event_connect | socket_event_write;
    uint32_t kinds = ready & kernel_failed ? ready | kernel_readable | kernel_writable : ready;
    struct delivery *delivery = NULL;
    uint32_t renewed;
    uint32_t events = 0;

    socket_lock(s);
    if (s->is_valid) {
        if (s->is_idle) {
            s->is_idle = false; /* it has been connected, or listens */
            socket_update(s);
        }
        events = wanted_of(s, kinds);
    }
    renewed = socket_take_renewed(s, run->poll_number);
    if (events && !(events & ~renewed)) {
        descriptor_source_put_by(run);
    }
    events &= ~renewed;
    if (events) {
        bool takes_error = !(s->flags & kCFSocketLeaveErrors) && (events & (s->is_connecting ? connecting : socket_event_connect));

        delivery = s->spare_delivery ? s->spare_delivery : on_stack;
        *delivery = (struct delivery){.memory = s->spare_delivery,
                                      .s = s,
                                      .source = source,
                                      .native = s->native,
                                      .ready = ready,
                                      .events = events,
                                      .takes_error = takes_error,
                                      .info = called_info_begin(&s->info)};
        s->spare_delivery = NULL;
        s->spent |= events;
        s->is_known_active |= !(ready & kernel_failed);
        socket_update(s);
    }
    socket_unlock(s);
    return delivery;
}

/* Its memory serves the next one. I. */
static void give_back_memory(CFSocketRef s, struct delivery *memory)
{
    if (s->spare_delivery) {
        free(memory);
    } else {
        s->spare_delivery = memory;
    }
}

/* What was told once stays spent, but for what is enabled again by itself (255, 262, 265). */
static void give_back(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    uint32_t again = delivery->unused;
    void *info = NULL;
    bool releases;

    socket_lock(s);
    if (socket_reads_again(s) && !s->has_ended) {
        again |= socket_event_read;
    }
    if (s->flags & kCFSocketAutomaticallyReenableWriteCallBack) {
        again |= socket_event_write;
    }
    s->spent &= ~(again & delivery->events);
    socket_update(s);
    releases = called_info_end(&s->info, &info);
    give_back_memory(s, delivery->memory);
    socket_unlock(s);
    if (releases) {
        socket_release_info(s, info);
    }
}

static void end_callout(struct delivery *delivery)
{
    if (delivery->data) {
        CFRelease(delivery->data);
        delivery->data = NULL;
    }
    if (delivery->address) {
        CFRelease(delivery->address);
        delivery->address = NULL;
    }
    if (delivery->ends) {
        delivery->ends = false;
        CFSocketInvalidate(delivery->s); /* 257 */
    }
}

/* All is told, or a callout does not return. */
static void end_delivery(const void *told)
{
    struct delivery *delivery = (struct delivery *)(uintptr_t)told;
    CFSocketRef s = delivery->s;
    CFRunLoopSourceRef source = delivery->source;

    end_callout(delivery);
    if (delivery->has_retained) {
        socket_release_info(s, delivery->info);
    }
    give_back(delivery);
    socket_tell(s, source);
    object_release(s);
}

static void call(struct delivery *delivery, CFSocketCallBackType type, CFDataRef address, const void *data)
{
    delivery->s->callout(delivery->s, type, address, data, delivery->info);
}

/* ---- Connect ---- */

/* Whether the connection failed: then there is nothing to write (263). */
static bool deliver_connect(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    SInt32 error = 0;

    if (delivery->takes_error && socket_begin_use(s) >= 0) {
        int taken = kernel.socket_take_error(delivery->native);

        error = taken > 0 ? taken : 0;
        delivery->ready &= ~(uint32_t)kernel_error;
        socket_end_use(s);
    }
    socket_lock(s);
    s->is_connecting = false;
    s->is_known_active |= error == 0;
    socket_unlock(s);
    if (delivery->events & socket_event_connect) {
        call(delivery, kCFSocketConnectCallBack, NULL, error ? &error : NULL);
    }
    return error != 0;
}

/* ---- Read ---- */

static void deliver_read(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;

    /* The end is told once: the kernel would report it for ever (258). Looking for data would take a pending error away from the
     * program. */
    if ((delivery->ready & kernel_ended) && !(delivery->ready & kernel_error) && socket_begin_use(s) >= 0) {
        int peeked = kernel.socket_peek(delivery->native);

        socket_end_use(s);
        if (peeked == -EAGAIN) {
            delivery->unused |= socket_event_read;
            return;
        }
        socket_lock(s);
        s->has_ended = peeked == 0;
        if (peeked == -ENOTCONN && socket_is_connection_oriented(s)) {
            become_idle(s, false); /* the program has taken its connection away: told once, too, and then there may be another */
        }
        socket_unlock(s);
    }
    call(delivery, kCFSocketReadCallBack, NULL, NULL);
}

/* ---- backing off ---- */

/* When the timer has fired, or its loop has gone: looks for connections again. */
static void resume(const void *info)
{
    CFSocketRef s = (CFSocketRef)(uintptr_t)info;
    CFRunLoopTimerRef retry;

    socket_lock(s);
    retry = s->retry;
    s->retry = NULL;
    s->backs_off = false;
    socket_update(s);
    socket_unlock(s);
    socket_tell_source(s);
    if (retry) {
        CFRelease(retry);
    }
    CFRelease(s);
}

static void ignore_timer(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
}

/* No descriptor for another connection, or no memory for bytes: they stay with the system, and the loop does not spin over them (260). */
static void back_off(struct delivery *delivery)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    CFSocketRef s = delivery->s;
    CFRunLoopTimerContext context = {0, s, CFRetain, resume, NULL};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + back_off_s, 0, 0, 0, ignore_timer, &context);
    bool backs_off;

    fault_log_once(&logged, "CFSocket: no descriptor or memory is left for what comes in; it waits until there is");
    if (!timer) {
        return;
    }
    socket_lock(s);
    backs_off = s->is_valid && !s->backs_off;
    if (backs_off) {
        s->backs_off = true;
        s->retry = timer;
        CFRetain(timer);
        socket_update(s);
    }
    socket_unlock(s);
    if (!backs_off || !descriptor_source_add_timer(delivery->source, timer)) {
        CFRunLoopTimerInvalidate(timer); /* then it goes on looking at once: better than to rest for ever */
    }
    CFRelease(timer);
}

/* ---- Data ---- */

/* Room for what is to be received: made before, as what has been taken from the system cannot be put back. */
static CFDataRef room_for(size_t size)
{
    UInt8 *bytes = calloc(1, size);
    CFDataRef data = bytes ? CFDataCreateWithBytesNoCopy(NULL, bytes, (CFIndex)size, kCFAllocatorMalloc) : NULL;

    if (!data) {
        free(bytes);
    }
    return data;
}

/* Who a connected socket is connected to, asked once. */
static CFDataRef copy_peer(CFSocketRef s, int native)
{
    struct kernel_address address;
    CFDataRef peer;

    socket_lock(s);
    peer = s->peer ? CFRetain(s->peer) : NULL;
    socket_unlock(s);
    if (peer) {
        return peer;
    }
    if (kernel.socket_address(native, true, &address) < 0) {
        address.length = 0;
    }
    peer = socket_copy_address(NULL, &address);
    socket_lock(s);
    if (!s->peer && peer && address.length > 0) {
        s->peer = CFRetain(peer);
    }
    socket_unlock(s);
    return peer;
}

/* The system's own want of memory, which says nothing about the connection. */
static bool is_shortage(int result)
{
    return result == -ENOMEM || result == -ENOBUFS;
}

/* Receives once. The bytes, empty at the end, or NULL if there is nothing to tell. */
static CFDataRef receive(struct delivery *delivery, CFDataRef *ret_sender)
{
    CFSocketRef s = delivery->s;
    size_t size = s->type == SOCK_DGRAM ? datagram_read_size : stream_read_size;
    CFDataRef data = room_for(size);
    struct kernel_address sender = {0};
    int result;

    if (!data) {
        back_off(delivery);
        return NULL;
    }
    if (socket_begin_use(s) < 0) {
        CFRelease(data);
        return NULL;
    }
    result = kernel.socket_receive(delivery->native, (UInt8 *)(uintptr_t)CFDataGetBytePtr(data), size, &sender);
    if (result == -EAGAIN || is_shortage(result) || (result < 0 && !socket_is_connection_oriented(s) && s->type >= 0)) {
        socket_end_use(s); /* somebody else was faster, or an error that concerns one datagram */
        CFRelease(data);
        if (is_shortage(result)) {
            back_off(delivery);
        }
        return NULL;
    }
    *ret_sender =
        sender.length == 0 && socket_is_connection_oriented(s) ? copy_peer(s, delivery->native) : socket_copy_address(NULL, &sender);
    socket_end_use(s);
    data_shorten(data, result > 0 ? result : 0); /* an error ends a stream as the peer's end does */
    return data;
}

/* Before the end is told: its callout may run the loop, and the callout of Connect may have enabled reading. */
static void stop_reading(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;

    socket_lock(s);
    s->has_ended = true;
    s->spent |= socket_event_read;
    socket_update(s);
    socket_unlock(s);
    socket_tell(s, delivery->source);
}

static void deliver_data(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;

    delivery->data = receive(delivery, &delivery->address);
    if (!delivery->data) {
        delivery->unused |= socket_event_read;
        return;
    }
    delivery->ends = CFDataGetLength(delivery->data) == 0 && (socket_is_connection_oriented(s) || s->type < 0);
    if (delivery->ends) {
        stop_reading(delivery);
    }
    call(delivery, kCFSocketDataCallBack, delivery->address, delivery->data);
    end_callout(delivery);
}

/* ---- Accept ---- */

/* Until it listens, nothing can come; and if it does something else, nothing until the program says so. */
static void stop_accepting(const struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    bool is_idle = false;

    if (socket_is_connection_oriented(s) && socket_begin_use(s) >= 0) {
        is_idle = kernel.socket_is_idle(delivery->native);
        if (!is_idle && (delivery->ready & kernel_error)) {
            is_idle = kernel.socket_is_idle(delivery->native); /* the error of a connection that is gone was in the way */
        }
        socket_end_use(s);
    }
    socket_lock(s);
    if (is_idle) {
        become_idle(s, false);
    } else {
        s->backs_off = true; /* another thread may have begun to, with a timer: then this is for as long */
        socket_update(s);
    }
    socket_unlock(s);
}

/* A connection that went away before it was accepted must not make accept wait for the next one. */
static void make_non_blocking(CFSocketRef s, int native)
{
    bool is_done;
    int result;

    socket_lock(s);
    is_done = s->made_non_blocking;
    socket_unlock(s);
    if (is_done) {
        return;
    }
    result = kernel.make_non_blocking(native, true);
    socket_lock(s);
    s->made_non_blocking = result == 0;
    socket_unlock(s);
}

static void refuse(struct delivery *delivery, int error)
{
    switch (-error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        back_off(delivery);
        break;
    case EINVAL: /* not listening */
    case EOPNOTSUPP:
    case ENOTSOCK:
        stop_accepting(delivery);
        break;
    default: /* that connection is gone already, or never was */
        break;
    }
}

static void deliver_accept(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    struct kernel_address peer = {0};
    CFSocketNativeHandle accepted;

    if (socket_begin_use(s) < 0) {
        return;
    }
    make_non_blocking(s, delivery->native);
    accepted = kernel.socket_accept(delivery->native, &peer);
    socket_end_use(s);
    if (accepted < 0) {
        delivery->unused |= socket_event_read;
        refuse(delivery, accepted);
        return;
    }
    socket_registry_evict(accepted);
    delivery->address = socket_copy_address(NULL, &peer);
    call(delivery, kCFSocketAcceptCallBack, delivery->address, &accepted);
    end_callout(delivery);
}

/* ---- all of them ---- */

static void deliver(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    bool has_failed = false;

    if ((delivery->events & socket_event_connect) || delivery->takes_error) {
        has_failed = deliver_connect(delivery);
    }
    if ((delivery->events & socket_event_read) && CFSocketIsValid(s)) {
        switch (s->reading) {
        case kCFSocketReadCallBack:
            deliver_read(delivery);
            break;
        case kCFSocketAcceptCallBack:
            deliver_accept(delivery);
            break;
        default:
            deliver_data(delivery);
            break;
        }
    }
    if ((delivery->events & socket_event_write) && !has_failed && CFSocketIsValid(s)) {
        call(delivery, kCFSocketWriteCallBack, NULL, NULL);
    }
}

/* What was taken, where it outlasts the stack; or where it is, without memory. */
static struct delivery *settle(struct delivery *taken)
{
    struct delivery *memory = malloc(sizeof *memory);

    taken->memory = memory;
    if (!memory) {
        return taken;
    }
    *memory = *taken;
    return memory;
}

void socket_perform(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    CFSocketRef s = object;
    struct activation *run = held_caller();
    struct delivery on_stack;
    struct delivery *delivery = turns_out_idle(s, ready) ? NULL : take(s, source, run, ready, &on_stack);

    socket_tell(s, source);
    if (!delivery) {
        return;
    }
    object_retain(s);
    if (!delivery->memory) {
        delivery = settle(delivery);
    }
    if (delivery->memory) {
        held_in_hand(run, end_delivery, delivery);
    }
    if (s->context.retain) {
        delivery->info = (void *)(uintptr_t)s->context.retain(delivery->info); /* 275 */
        delivery->has_retained = true;
    }
    deliver(delivery);
    held_put_down(run);
    end_delivery(delivery);
}
