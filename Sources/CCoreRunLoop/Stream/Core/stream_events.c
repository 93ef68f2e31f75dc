/* SPDX-License-Identifier: Apache-2.0 */
/* Computes which events a stream owes and what its carriers watch for; see stream_events.h. */
#include "Stream/Core/stream_events.h"

#include "Stream/Core/stream_carriers.h"

enum { events_all = 31 };

bool stream_events_set_client(struct stream *s, CFOptionFlags events, union stream_callback callback, const CFStreamClientContext *context)
{
    uint8_t known = (uint8_t)(events & events_all);
    struct stream_client *client = NULL;
    struct stream_client *old;

    if (known) {
        client = stream_client_create(known, callback, context);
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
    stream_client_release(old);
    stream_events_changed(s);
    return true;
}

/* ---- what is wanted ---- */

REQUIRES(the_item_lock) static uint8_t wanted_events(const struct stream *s)
{
    return s->client ? s->client->events : 0;
}

void stream_events_owe(struct stream *s, uint8_t event)
{
    invariant_held(item_lock(s));
    invariant(!(event & stream_events_lasting) && s->status != kCFStreamStatusClosed);
    s->owed = (uint8_t)(s->owed | (event & wanted_events(s)));
}

/* The kind of readiness that the stream reads or writes by. */
static uint32_t own_readiness(const struct stream *s)
{
    return stream_is_reader(s) ? kernel_readable : kernel_writable;
}

bool stream_events_await_lasting(const struct stream *s)
{
    const uint8_t found_by_looking = stream_lasting_event(s) | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered;

    return s->status == kCFStreamStatusOpen && !s->is_transferring && (wanted_events(s) & found_by_looking) &&
           (!s->told || atomic_load_explicit(&s->is_over, memory_order_relaxed));
}

/* An event that is owed is posted. The loop takes a post only of a source with an interest. */
REQUIRES(the_item_lock) static void update_interest(struct stream *s)
{
    uint32_t opening = atomic_load_explicit(&s->opening_interest, memory_order_relaxed);
    uint32_t interest = 0;

    if (stream_carriers_watch(s)) {
        if (s->status == kCFStreamStatusOpening && wanted_events(s) && !s->is_transferring) {
            interest = opening;
        } else if (stream_events_await_lasting(s) || (s->owed & wanted_events(s))) {
            interest = opening ? opening : own_readiness(s);
        }
    }
    /* Release: a thread that tells this interest also sees the fields that it comes from. */
    atomic_store_explicit(&s->interest, interest, memory_order_release);
    stream_check_invariants(s);
}

struct stream_carriers stream_events_rest(struct stream *s)
{
    uint32_t before = atomic_load_explicit(&s->interest, memory_order_relaxed);

    if (before == 0) {
        return stream_carriers_none; /* the usual case: a callback reads what it was told of */
    }
    update_interest(s);
    return atomic_load_explicit(&s->interest, memory_order_relaxed) == before ? stream_carriers_none : stream_carriers_retain(s);
}

/* ---- what is due ---- */

/* Whether there is something to tell, or to do, that the loop's wait does not report. Whoever has claimed the stream asks afterwards. */
REQUIRES(the_item_lock) static bool is_due(const struct stream *s)
{
    if (s->is_nudged && s->status == kCFStreamStatusOpening && !s->is_claimed) {
        return true;
    }
    return (s->owed & wanted_events(s)) || (stream_events_await_lasting(s) && atomic_load_explicit(&s->is_ready, memory_order_acquire));
}

EXCLUDES(the_item_lock) static void tell_carriers(struct stream *s, bool nudges)
{
    struct stream_carriers carriers;
    bool signals;

    stream_lock(s);
    s->is_nudged |= nudges && s->status == kCFStreamStatusOpening; /* also where the stream is put next */
    update_interest(s);
    carriers = stream_carriers_retain(s);
    signals = nudges || is_due(s);
    stream_unlock(s);
    stream_carriers_tell(s, carriers, signals);
}

void stream_events_changed(struct stream *s)
{
    tell_carriers(s, false);
}

void stream_events_nudge(struct stream *s)
{
    tell_carriers(s, true);
}

struct stream_client *stream_events_take(struct stream *s, uint8_t event, uint8_t lasting, bool is_reported)
{
    invariant(lasting == 0 || lasting == stream_lasting_event(s));
    if (event & stream_events_lasting) {
        if (!(lasting & event) || !stream_events_await_lasting(s)) {
            return NULL;
        }
        s->transfers = is_reported ? transfer_none : transfer_once;
        s->told |= event; /* also if nobody wants it, so that the loop does not report it again and again */
    } else {
        if (!(s->owed & event)) {
            return NULL;
        }
        s->owed &= (uint8_t)~event;
    }
    return wanted_events(s) & event ? stream_client_retain(s) : NULL;
}
