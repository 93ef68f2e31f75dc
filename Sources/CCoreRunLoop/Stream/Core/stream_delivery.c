/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the client what is due; see stream_delivery.h. No lock is held over the client's functions. */
#include "Stream/Core/stream_delivery.h"

#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/mode.h"
#include "Loop/Core/thread_loop.h"
#include "Stream/Core/stream_carriers.h"
#include "Stream/Core/stream_events.h"

/* A thread of a dispatch queue has no loop: what it does not return from is not given back. */
static uint32_t push_cleanup(CFRunLoopRef loop, void (*function)(const void *object), const void *object)
{
    return loop ? cleanup_push(loop, function, object) : 0;
}

static void pop_cleanup(CFRunLoopRef loop, uint32_t mark)
{
    if (loop) {
        cleanup_pop(loop, mark);
    }
}

static void call(struct stream *s, const struct stream_client *client, CFStreamEventType event)
{
    invariant_not_held(item_lock(s));
    if (stream_is_reader(s)) {
        client->callback.reader((CFReadStreamRef)s, event, client->context.info);
    } else {
        client->callback.writer((CFWriteStreamRef)s, event, client->context.info);
    }
}

/*
 * Tells one event. Returns true if the client was called. The interest changes before the callout, which may run the loop: that inner run
 * must not report the same event.
 */
EXCLUDES(the_item_lock) static bool tell(struct stream *s, CFRunLoopRef loop, uint8_t event, uint8_t lasting, bool is_reported)
{
    struct stream_carriers carriers = stream_carriers_none;
    struct stream_client *client;
    uint32_t mark;

    stream_lock(s);
    client = stream_events_take(s, event, lasting, is_reported);
    if (event & lasting) {
        carriers = stream_events_rest(s);
    }
    stream_unlock(s);
    stream_carriers_tell(s, carriers, false);
    if (client) {
        mark = push_cleanup(loop, stream_client_release, client);
        call(s, client, event);
        pop_cleanup(loop, mark);
        stream_client_release(client);
    }
    return client;
}

/* Drops the reference of a delivery. */
static void end_delivery(const void *object)
{
    struct stream *s = (struct stream *)(uintptr_t)object;

    stream_lock(s);
    invariant(s->deliveries > 0);
    s->deliveries--;
    stream_unlock(s);
    object_release(s);
}

/*
 * Whether a delivery has to stop. A callback that takes the stream out of a mode hears no more there: what is still due is told by another
 * performance. One that drops the program's last reference closes the stream at once, for the deliveries under way keep it alive.
 */
EXCLUDES(the_item_lock) static bool has_to_stop(struct stream *s, uint32_t departures)
{
    bool has_left;
    bool is_released;

    stream_lock(s);
    has_left = s->departures != departures;
    is_released = CFGetRetainCount((CFTypeRef)s) <= (CFIndex)s->deliveries;
    stream_unlock(s);
    if (is_released) {
        stream_close(s);
    }
    return has_left || is_released;
}

/* Whether the stream is in more modes of loops than one, each of which has reports of its own. */
EXCLUDES(the_item_lock) static bool has_several_modes(struct stream *s, CFRunLoopRef loop)
{
    bool has_several;
    bool is_in_common;

    stream_lock(s);
    is_in_common = s->modes.count == 1 && mode_name_is_common(s->modes.list[0].mode);
    has_several = s->modes.count > 1 || (is_in_common && s->modes.list[0].loop != loop);
    stream_unlock(s);
    return has_several || (is_in_common && mode_common_are_several(loop));
}

/*
 * Looks for bytes or room. A loop fetches many reports at once: a callout may have read or written since then, so that the report is out of
 * date and reading would wait. It can be believed if the program has moved bytes only once since a report was last told, in its callback,
 * and if no other mode has a report of its own.
 */
EXCLUDES(the_item_lock) static uint8_t look(struct stream *s, CFRunLoopRef loop, uint32_t ready, bool was_called)
{
    bool is_doubtful;
    bool looks;

    stream_lock(s);
    looks =
        stream_events_await_lasting(s) && (ready || !stream_carriers_watch(s) || atomic_load_explicit(&s->is_ready, memory_order_acquire));
    is_doubtful = was_called || s->transfers == transfer_many;
    stream_unlock(s);
    if (!looks) {
        return 0;
    }
    return stream_look(s, is_doubtful || has_several_modes(s, loop) ? 0 : ready);
}

/* Any callout may close the stream, after which nothing is due (rule 315). */
EXCLUDES(the_item_lock) static void tell_all(struct stream *s, CFRunLoopRef loop, uint32_t ready, uint32_t departures)
{
    bool was_called = tell(s, loop, kCFStreamEventOpenCompleted, 0, false);
    uint8_t lasting;

    if (was_called && has_to_stop(s, departures)) {
        return;
    }
    lasting = look(s, loop, ready, was_called);
    for (uint8_t event = kCFStreamEventHasBytesAvailable; event <= kCFStreamEventEndEncountered; event = (uint8_t)(event << 1)) {
        if (tell(s, loop, event, lasting, ready && !was_called) && (has_to_stop(s, departures) || (event & lasting))) {
            return;
        }
    }
}

void stream_deliver(struct stream *s, uint32_t ready)
{
    CFRunLoopRef loop = thread_loop_if_any();
    uint32_t mark;
    uint32_t departures;

    stream_lock(s);
    s->deliveries++;
    invariant(s->deliveries > 0); /* the count has not run over */
    departures = s->departures;
    stream_unlock(s);
    mark = push_cleanup(loop, end_delivery, s);
    stream_go_on_opening(s);
    if (!has_to_stop(s, departures)) {
        tell_all(s, loop, ready, departures);
    }
    pop_cleanup(loop, mark);
    stream_events_changed(s);
    end_delivery(s);
}
