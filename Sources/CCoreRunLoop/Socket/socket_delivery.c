/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims what is ready, calls the program, and gives back what a delivery holds; see socket_delivery.h.
 *
 * On the loop's thread. The item lock is held only to look at the socket's fields, never over a callout.
 */
#include "Socket/socket_delivery.h"

#include <stdlib.h>

#include "Loop/Core/loop.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/Trace/trace.h"

/* ---- claiming ---- */

static uint32_t events_of_readiness(uint32_t readiness)
{
    return (readiness & kernel_readable ? (uint32_t)socket_event_read : 0u) |
           (readiness & kernel_writable ? (uint32_t)socket_event_connect | socket_event_write : 0u);
}

/* The wanted events among those that are ready. A report may be old: kinds that nobody wants any more have no bit in the interest. */
REQUIRES(the_item_lock) static uint32_t wanted_among(const struct __CFSocket *s, uint32_t readiness)
{
    return events_of_readiness(readiness & atomic_load_explicit(&s->interest, memory_order_relaxed)) & socket_wanted_events(s);
}

/*
 * The events that were delivered before, and enabled again within this run, which looks only once (its limit is 0). They are left to the
 * next run, but only once. Otherwise an observer that enables callbacks in each pass would keep a program busy for ever: one that runs the
 * loop again as long as a source was handled.
 */
REQUIRES(the_item_lock) static uint32_t take_renewed(struct __CFSocket *s, uint64_t poll_number)
{
    uint32_t renewed = s->renewed_by == poll_number ? s->renewed : 0;

    if (__builtin_expect(renewed != 0, 0)) {
        s->renewed = 0;
    }
    return renewed;
}

struct delivery *socket_claim(CFSocketRef s, CFRunLoopSourceRef source, struct run *run, uint32_t ready, struct delivery *on_stack)
{
    const uint32_t connecting = (uint32_t)socket_event_connect | socket_event_write;
    /* After an error or a hang-up the descriptor is readable and writable: neither would block. */
    uint32_t kinds = ready & kernel_failed ? ready | kernel_readable | kernel_writable : ready;
    struct delivery *delivery = NULL;
    uint32_t renewed;
    uint32_t events = 0;

    socket_lock(s);
    socket_check_invariants(s);
    if (s->is_valid) {
        if (s->is_idle) {
            s->is_idle = false; /* a change was reported: it has been connected, or listens */
            socket_update_interest(s);
        }
        events = wanted_among(s, kinds);
    }
    renewed = take_renewed(s, run->poll_number);
    if (events && !(events & ~renewed)) {
        descriptor_source_decline(run); /* the run has not handled a source by this */
    }
    events &= ~renewed;
    if (events) {
        /* Connect tells the error. While the socket connects, Write needs it as well: it is not delivered after a failure. */
        bool takes_error = !(s->flags & kCFSocketLeaveErrors) && (events & (s->is_connecting ? connecting : socket_event_connect));

        invariant((events & ~s->events) == 0); /* nothing that was not asked for at creation */
        invariant((events & (s->spent | s->disabled)) == 0);
        invariant(!s->spare_delivery || s->spare_delivery->memory == s->spare_delivery);
        delivery = s->spare_delivery ? s->spare_delivery : on_stack;
        *delivery = (struct delivery){.memory = s->spare_delivery,
                                      .s = s,
                                      .source = source,
                                      .native = s->native,
                                      .ready = ready,
                                      .events = events,
                                      .takes_error = takes_error,
                                      .info = callout_info_begin(&s->info)};
        s->spare_delivery = NULL;
        s->spent |= events;
        s->is_known_active |= !(ready & kernel_failed);
        socket_update_interest(s);
    }
    socket_unlock(s);
    return delivery;
}

struct delivery *delivery_keep(struct delivery *claimed)
{
    struct delivery *memory;

    object_retain(claimed->s);
    if (claimed->memory) {
        return claimed;
    }
    memory = malloc(sizeof *memory);
    claimed->memory = memory;
    if (!memory) {
        return claimed;
    }
    *memory = *claimed;
    return memory;
}

/* ---- callouts ---- */

void delivery_retain_info(struct delivery *delivery)
{
    const CFSocketContext *context = &delivery->s->context;

    invariant(!delivery->has_retained);
    if (context->retain) {
        delivery->info = (void *)(uintptr_t)context->retain(delivery->info);
        delivery->has_retained = true;
    }
}

static bool is_claimed(const struct delivery *delivery, CFSocketCallBackType type)
{
    uint32_t event = type & (kCFSocketConnectCallBack | kCFSocketWriteCallBack) ? (uint32_t)type : (uint32_t)socket_event_read;

    return (delivery->events & event) != 0;
}

void delivery_call(struct delivery *delivery, CFSocketCallBackType type, CFDataRef address, const void *data)
{
    CFSocketRef s = delivery->s;

    invariant(is_claimed(delivery, type));
    invariant(type == kCFSocketConnectCallBack || type == kCFSocketWriteCallBack || type == s->reading);
    invariant_not_held(item_lock(s));
    trace_callout_begin(trace_socket, s, (void (*)(void))s->callout);
    trace_note_descriptor(type == kCFSocketConnectCallBack || type == kCFSocketWriteCallBack ? 2 : 1, s, item_lock(s), &s->native);
    s->callout(s, type, address, data, delivery->info);
    trace_callout_end(trace_socket, s);
}

void delivery_end_callout(struct delivery *delivery)
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
        socket_invalidate(delivery->s); /* Data ends the socket at the end of its connection (rule 257) */
    }
}

/* ---- the end ---- */

/* Keeps the memory for the socket's next delivery, unless a nested run has left some already. */
REQUIRES(the_item_lock) static void keep_spare_memory(CFSocketRef s, struct delivery *memory)
{
    if (s->spare_delivery) {
        free(memory);
    } else {
        s->spare_delivery = memory;
    }
}

/*
 * Delivered events stay spent, but for those that enable themselves again. These are reading and Write, if the flags say so, and whatever
 * turned out not to be there (rules 255, 262). An event that was disabled meanwhile stays disabled (rule 265).
 */
static void unspend_and_release(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    uint32_t again = delivery->unused;
    void *info = NULL;
    bool releases;

    invariant((delivery->unused & ~delivery->events) == 0);
    socket_lock(s);
    socket_check_invariants(s);
    if (socket_rearms_reading(s) && !s->has_ended) {
        again |= socket_event_read;
    }
    if (s->flags & kCFSocketAutomaticallyReenableWriteCallBack) {
        again |= socket_event_write;
    }
    s->spent &= ~(again & delivery->events);
    socket_update_interest(s);
    releases = callout_info_end(&s->info, &info);
    invariant(!releases || !s->is_valid); /* only an invalidation during the callouts leaves the info to them */
    keep_spare_memory(s, delivery->memory); /* from here on the delivery may be used by another thread */
    socket_unlock(s);
    if (releases) {
        socket_release_info(s, info);
    }
}

void delivery_end(const void *object)
{
    struct delivery *delivery = (struct delivery *)(uintptr_t)object;
    CFSocketRef s = delivery->s;
    CFRunLoopSourceRef source = delivery->source;

    delivery_end_callout(delivery);
    if (delivery->has_retained) {
        socket_release_info(s, delivery->info);
    }
    unspend_and_release(delivery);
    socket_publish_interest_to(s, source);
    object_release(s);
}
