/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a stream and its events; see stream_events.h. No lock is held over the client's functions. */
#include "Stream/Core/stream_events.h"

#include <stdlib.h>

#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/shown.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Source/descriptor_source.h"
#include "Stream/Core/stream_queue.h"
#include "Stream/Core/stream_schedule.h"

/* The stream has one reference, and each callout that is under way another one. */
struct stream_client {
    _Atomic uint32_t references;
    uint8_t events; /* constant, as all that follows */
    union stream_callback callback;
    CFStreamClientContext context;
};

enum { events_all = 31 };

/* ---- the client ---- */

static void release_client(const void *object)
{
    struct stream_client *client = (struct stream_client *)(uintptr_t)object;

    if (client && atomic_fetch_sub_explicit(&client->references, 1, memory_order_acq_rel) == 1) {
        if (client->context.release) {
            client->context.release(client->context.info);
        }
        free(client);
    }
}

/* Returns the client with a reference, or NULL. */
REQUIRES(the_item_lock) static struct stream_client *retain_client(const struct stream *s)
{
    if (s->client) {
        atomic_fetch_add_explicit(&s->client->references, 1, memory_order_relaxed);
    }
    return s->client;
}

static struct stream_client *make_client(uint8_t events, union stream_callback callback, const CFStreamClientContext *context)
{
    struct stream_client *client = malloc(sizeof *client);

    if (client) {
        atomic_init(&client->references, 1);
        client->events = events;
        client->callback = callback;
        client->context = *context;
        if (context->retain) {
            client->context.info = context->retain(context->info);
        }
    }
    return client;
}

bool stream_client_set(struct stream *s, CFOptionFlags events, union stream_callback callback, const CFStreamClientContext *context)
{
    uint8_t known = (uint8_t)(events & events_all);
    struct stream_client *client = NULL;
    struct stream_client *old;

    if (known) {
        client = make_client(known, callback, context);
        if (!client) {
            return false;
        }
    }
    stream_lock(s);
    old = s->client;
    s->client = client;
    s->owed &= known;
    s->told = 0; /* the new client hears of bytes or room that are there */
    stream_unlock(s);
    release_client(old);
    stream_events_changed(s);
    return true;
}

/* Nothing else refers to the stream (NOT_CHECKED). */
NOT_CHECKED void stream_client_remove(struct stream *s)
{
    release_client(s->client);
}

CFStringRef stream_client_describe(struct stream *s)
{
    static const struct shown_bit names[] = {{kCFStreamEventOpenCompleted, "OpenCompleted"},
                                             {kCFStreamEventHasBytesAvailable, "HasBytesAvailable"},
                                             {kCFStreamEventCanAcceptBytes, "CanAcceptBytes"},
                                             {kCFStreamEventErrorOccurred, "ErrorOccurred"},
                                             {kCFStreamEventEndEncountered, "EndEncountered"},
                                             {0, NULL}};
    struct stream_client *client;
    CFStringRef description = NULL;
    CFStringRef text = NULL;
    struct shown events;
    struct shown callout;

    stream_lock(s);
    client = retain_client(s);
    stream_unlock(s);
    if (client) {
        description = client->context.copyDescription ? client->context.copyDescription(client->context.info) : NULL;
        text = CFStringCreateWithFormat(NULL, NULL, CFSTR("%@%@, events = %s, callout = %s"),
                                        description ? CFSTR(", client = ") : CFSTR(""), description ? description : CFSTR(""),
                                        shown_bits(&events, names, client->events),
                                        shown_callout(&callout, (void (*)(void))client->callback.reader));
    }
    if (description) {
        CFRelease(description);
    }
    release_client(client);
    return text;
}

/* ---- what the loops have to look for ---- */

REQUIRES(the_item_lock) static uint8_t wanted_events(const struct stream *s)
{
    return s->client ? s->client->events : 0;
}

void stream_owe(struct stream *s, uint8_t event)
{
    invariant_held(item_lock(s));
    s->owed |= event & wanted_events(s);
}

/* The kind of readiness that the stream reads or writes by. */
static uint32_t own_readiness(const struct stream *s)
{
    return stream_is_reader(s) ? kernel_readable : kernel_writable;
}

/*
 * Whether the next change from "would wait" to "would not" has to be told. The end and errors are found at the same look, so that a client
 * for these alone counts as well.
 */
REQUIRES(the_item_lock) static bool awaits_lasting_event(const struct stream *s)
{
    const uint8_t found_by_looking = stream_lasting_event(s) | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered;

    return s->status == kCFStreamStatusOpen && !s->is_transferring && !s->told && (wanted_events(s) & found_by_looking);
}

/* An event that is owed is posted. The loop takes a post only of a source with an interest. */
REQUIRES(the_item_lock) static void update_interest(struct stream *s)
{
    uint32_t interest = 0;

    stream_check_invariants(s);
    if (s->source_descriptor >= 0) {
        if (s->status == kCFStreamStatusOpening && wanted_events(s) && !s->is_transferring) {
            interest = atomic_load_explicit(&s->opening_interest, memory_order_relaxed);
        } else if (awaits_lasting_event(s) || (s->owed & wanted_events(s))) {
            interest = own_readiness(s);
        }
    }
    /* Release: a thread that tells this interest also sees the fields that it comes from. */
    atomic_store_explicit(&s->interest, interest, memory_order_release);
}

/* Two threads may tell the interest in either order. Each looks again afterwards, so that the last one to tell has the latest interest. */
static void publish_to(struct stream *s, CFRunLoopSourceRef source)
{
    uint32_t interest = atomic_load_explicit(&s->interest, memory_order_acquire);
    uint32_t told;

    invariant_not_held(item_lock(s));
    do {
        told = interest;
        descriptor_source_set_interest(source, told);
        interest = atomic_load_explicit(&s->interest, memory_order_acquire);
    } while (interest != told);
}

/* Returns the stream's place on a queue with a reference, or NULL. */
REQUIRES(the_item_lock) static struct stream_queue *retain_queue(const struct stream *s)
{
    if (s->queue) {
        stream_queue_retain(s->queue);
    }
    return s->queue;
}

bool stream_events_rest(struct stream *s)
{
    uint32_t before = atomic_load_explicit(&s->interest, memory_order_relaxed);

    if (before == 0) {
        return false; /* the usual case: a callback reads what it was told of */
    }
    update_interest(s);
    return atomic_load_explicit(&s->interest, memory_order_relaxed) != before;
}

void stream_events_publish(struct stream *s)
{
    CFRunLoopSourceRef source = NULL;
    struct stream_queue *queue;
    int descriptor;

    stream_lock(s);
    queue = retain_queue(s);
    descriptor = s->source_descriptor;
    if (descriptor >= 0 && s->source) {
        source = s->source;
        object_retain(source);
    }
    stream_unlock(s);
    if (source) {
        publish_to(s, source);
        object_release(source);
    }
    if (queue) {
        stream_queue_watch(queue, s, descriptor);
        stream_queue_release(queue);
    }
}

/* Whether there is something to tell that the loop's wait does not report. */
REQUIRES(the_item_lock) static bool is_due(const struct stream *s)
{
    return (s->owed & wanted_events(s)) || (awaits_lasting_event(s) && atomic_load_explicit(&s->is_ready, memory_order_acquire));
}

/* Drops a reference to the queue. */
EXCLUDES(the_item_lock) static void tell_queue(struct stream *s, struct stream_queue *queue, int descriptor, bool posts)
{
    stream_queue_watch(queue, s, descriptor);
    if (posts) {
        stream_queue_post(queue);
    }
    stream_queue_release(queue);
}

EXCLUDES(the_item_lock) static void tell_loops(struct stream *s, bool nudges)
{
    CFRunLoopSourceRef source;
    struct stream_queue *queue;
    int descriptor;
    bool signals;

    stream_lock(s);
    update_interest(s);
    source = s->source;
    queue = retain_queue(s);
    descriptor = s->source_descriptor;
    signals = nudges || is_due(s);
    if (source) {
        object_retain(source);
    }
    stream_unlock(s);
    if (queue) {
        tell_queue(s, queue, descriptor, signals);
    }
    if (!source) {
        return;
    }
    if (descriptor >= 0) {
        publish_to(s, source);
        if (signals) {
            descriptor_source_post(source);
        }
    } else if (signals) {
        CFRunLoopSourceSignal(source);
        stream_schedule_wake(s);
    }
    object_release(source);
}

void stream_events_changed(struct stream *s)
{
    tell_loops(s, false);
}

void stream_events_nudge(struct stream *s)
{
    tell_loops(s, true);
}

/* ---- delivery ---- */

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
 * Takes an event to tell, with the client that wants it. NULL: it is not due any more, or nobody wants it. `is_reported`: the latest
 * report that the loop has fetched for the stream has led to this event. If not, one may be left, which is out of date as soon as the
 * callback has read or written.
 */
REQUIRES(the_item_lock)
static struct stream_client *take_event(struct stream *s, uint8_t event, uint8_t lasting, bool is_reported)
{
    if (event & stream_events_lasting) {
        if (!(lasting & event) || !awaits_lasting_event(s)) {
            return NULL;
        }
        s->moves = is_reported ? 0 : 1;
        s->told |= event; /* also if nobody wants it, so that the loop does not report it again and again */
    } else {
        if (!(s->owed & event)) {
            return NULL;
        }
        s->owed &= (uint8_t)~event;
    }
    return wanted_events(s) & event ? retain_client(s) : NULL;
}

/*
 * Tells one event. Returns true if the client was called. The interest changes before the callout, which may run the loop: that inner run
 * must not report the same event.
 */
EXCLUDES(the_item_lock) static bool tell(struct stream *s, CFRunLoopRef loop, uint8_t event, uint8_t lasting, bool is_reported)
{
    struct stream_client *client;
    bool publishes;
    uint32_t mark;

    stream_lock(s);
    client = take_event(s, event, lasting, is_reported);
    publishes = (event & lasting) && stream_events_rest(s);
    stream_unlock(s);
    if (publishes) {
        stream_events_publish(s);
    }
    if (client) {
        mark = push_cleanup(loop, release_client, client);
        call(s, client, event);
        pop_cleanup(loop, mark);
        release_client(client);
    }
    return client;
}

/* Drops the reference of a delivery. */
static void end_delivery(const void *object)
{
    struct stream *s = (struct stream *)(uintptr_t)object;

    stream_lock(s);
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

/*
 * Looks for bytes or room. A loop fetches many reports at once: a callout may have read or written since then, so that the report is out of
 * date and reading would wait. It can be believed if the program has moved bytes only once since a report was last told, in its callback,
 * and if no other mode has a report of its own.
 */
EXCLUDES(the_item_lock) static uint8_t look(struct stream *s, uint32_t ready, bool was_called)
{
    bool is_doubtful;
    bool looks;

    stream_lock(s);
    looks = awaits_lasting_event(s) && (ready || s->source_descriptor < 0 || atomic_load_explicit(&s->is_ready, memory_order_acquire));
    is_doubtful = was_called || s->moves > 1 || stream_schedule_has_several_modes(s);
    stream_unlock(s);
    return looks ? stream_look(s, is_doubtful ? 0 : ready) : 0;
}

/* Any callout may close the stream, after which nothing is due (rule 315). */
EXCLUDES(the_item_lock) static void tell_all(struct stream *s, CFRunLoopRef loop, uint32_t ready, uint32_t departures)
{
    bool was_called = tell(s, loop, kCFStreamEventOpenCompleted, 0, false);
    uint8_t lasting;

    if (was_called && has_to_stop(s, departures)) {
        return;
    }
    lasting = look(s, ready, was_called);
    for (uint8_t event = kCFStreamEventHasBytesAvailable; event <= kCFStreamEventEndEncountered; event = (uint8_t)(event << 1)) {
        if (tell(s, loop, event, lasting, ready && !was_called) && has_to_stop(s, departures)) {
            return;
        }
    }
}

void stream_events_deliver(struct stream *s, uint32_t ready)
{
    CFRunLoopRef loop = thread_loop_if_any();
    uint32_t mark;
    uint32_t departures;

    stream_lock(s);
    s->deliveries++;
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
