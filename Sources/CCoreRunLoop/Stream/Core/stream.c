/* SPDX-License-Identifier: Apache-2.0 */
/* Streams below their public calls: opening, closing, and moving bytes. See stream.h. */
#include "Stream/Core/stream.h"

#include <errno.h>

#include "Stream/Core/stream_carriers.h"
#include "Stream/Core/stream_claim.h"
#include "Stream/Core/stream_events.h"
#include "Stream/Core/stream_schedule.h"

#if defined(CRL_TESTING)
/* What belongs to a kind of carrier is there, and nothing else. */
REQUIRES(the_item_lock) static void check_carriers(const struct stream *s)
{
    const struct stream_carriers *c = &s->carriers;
    bool has_source = c->kind == carrier_signalled_source || c->kind == carrier_descriptor_source;

    invariant(has_source == (c->source != NULL) && has_source == (c->link != NULL));
    invariant((c->kind == carrier_queue) == (c->queue != NULL));
    invariant((c->kind == carrier_descriptor_source) == (c->descriptor >= 0));
    invariant(c->kind != carrier_queue || s->modes.count == 0);
    invariant(s->status != kCFStreamStatusClosed || (c->kind == carrier_none && s->modes.count == 0));
    invariant(c->kind != carrier_none || atomic_load_explicit(&s->interest, memory_order_relaxed) == 0);
}

void stream_check_invariants(const struct stream *s)
{
    invariant_held(item_lock(s));
    invariant(s->status != kCFStreamStatusReading && s->status != kCFStreamStatusWriting);
    invariant(s->status != kCFStreamStatusClosed || s->owed == 0);
    invariant(s->transfers <= transfer_many);
    invariant((s->status == kCFStreamStatusError) <= (s->error.domain != 0));
    invariant((s->owed & stream_events_lasting) == 0 && (s->told & ~(uint32_t)stream_events_lasting) == 0);
    invariant(!s->is_transferring || s->is_claimed);
    check_carriers(s);
}
#endif

static bool has_begun_and_not_ended(CFStreamStatus status)
{
    return status == kCFStreamStatusOpening || status == kCFStreamStatusOpen || status == kCFStreamStatusAtEnd;
}

/* ---- status ---- */

/* The stream has failed for good; `result` is a negative errno. The stream is claimed. */
REQUIRES(the_item_lock) static void fail(struct stream *s, CFIndex result)
{
    invariant(result < 0 && s->is_claimed);
    s->status = kCFStreamStatusError;
    s->error = s->refusal.domain ? s->refusal : (CFStreamError){kCFStreamErrorDomainPOSIX, (SInt32)-result};
    s->told = 0;
    stream_events_owe(s, kCFStreamEventErrorOccurred);
}

REQUIRES(the_item_lock) static void reach_end(struct stream *s)
{
    invariant(s->status == kCFStreamStatusOpen && s->is_claimed);
    s->status = kCFStreamStatusAtEnd;
    stream_events_owe(s, kCFStreamEventEndEncountered);
}

/* Takes the outcome of opening, unless the stream was closed meanwhile. */
REQUIRES(the_item_lock) static void take_outcome_of_opening(struct stream *s, int result)
{
    if (s->status != kCFStreamStatusOpening || result == -EINPROGRESS) {
        return;
    }
    invariant(s->is_claimed && s->is_opened);
    if (result < 0) {
        fail(s, result);
        return;
    }
    s->status = kCFStreamStatusOpen;
    stream_events_owe(s, kCFStreamEventOpenCompleted);
    if (s->opens_at_end) {
        reach_end(s);
    }
}

/* Ends a claim for opening: takes the outcome, and tells the loops. */
EXCLUDES(the_item_lock) static void end_opening(struct stream *s, int result)
{
    stream_lock(s);
    take_outcome_of_opening(s, result);
    if (stream_unclaim_and_unlock(s)) {
        return;
    }
    stream_schedule_renew(s); /* the stream may have a descriptor now */
    stream_events_changed(s);
}

void stream_go_on_opening(struct stream *s)
{
    bool goes_on;

    stream_lock(s);
    goes_on = s->status == kCFStreamStatusOpening && s->kind->finish_open && !s->is_claimed;
    if (goes_on) {
        s->is_claimed = true;
        s->is_nudged = false;
    }
    stream_unlock(s);
    if (goes_on) {
        end_opening(s, s->kind->finish_open(s, false));
    }
}

CFStreamStatus stream_status(struct stream *s)
{
    CFStreamStatus status;

    stream_go_on_opening(s);
    stream_lock(s);
    status = s->status;
    if (status == kCFStreamStatusOpen && s->is_transferring) {
        status = stream_is_reader(s) ? kCFStreamStatusReading : kCFStreamStatusWriting;
    }
    stream_unlock(s);
    return status;
}

CFStreamError stream_error(struct stream *s)
{
    CFStreamError error;

    stream_lock(s);
    error = s->error;
    stream_unlock(s);
    return error;
}

/* ---- opening and closing ---- */

bool stream_open(struct stream *s)
{
    bool begins;
    int result;

    stream_lock(s);
    stream_check_invariants(s);
    begins = s->status == kCFStreamStatusNotOpen && !s->is_claimed;
    if (begins) {
        s->status = kCFStreamStatusOpening;
        s->is_claimed = true;
        s->is_opened = true;
    }
    stream_unlock(s);
    if (!begins) {
        return false;
    }
    result = s->kind->open ? s->kind->open(s) : s->kind->finish_open ? -EINPROGRESS : 0;
    end_opening(s, result);
    if (result == -EINPROGRESS) {
        stream_go_on_opening(s); /* the outcome may be known already */
    }
    return result == 0 || result == -EINPROGRESS;
}

void stream_close(struct stream *s)
{
    object_retain(s); /* the release of the client's info may be the last of the stream */
    stream_lock(s);
    stream_check_invariants(s);
    if (has_begun_and_not_ended(s->status) || s->status == kCFStreamStatusError) {
        s->status = kCFStreamStatusClosed;
        s->owed = 0;
        stream_schedule_take_and_unlock(s); /* closes the kind, unless other threads hold it up */
    } else {
        stream_unlock(s);
    }
    object_release(s);
}

/* ---- moving bytes ---- */

/*
 * Claims the stream for a call that reads or writes, and waits until it is open. Returns the status then: Open, with the claim; any other,
 * without.
 */
EXCLUDES(the_item_lock) static CFStreamStatus begin_transfer(struct stream *s)
{
    CFStreamStatus status;

    for (;;) {
        struct stream_carriers resting = stream_carriers_none;

        stream_lock(s);
        stream_check_invariants(s);
        status = s->status;
        if (s->is_claimed && (status == kCFStreamStatusOpen || status == kCFStreamStatusOpening)) {
            status = kCFStreamStatusError; /* another thread is using it */
        } else if (status == kCFStreamStatusOpen || status == kCFStreamStatusOpening) {
            s->is_claimed = true;
            s->is_transferring = true;
            s->is_nudged = false;
            resting = stream_events_rest(s); /* opening may wait for long, and for something else than the loops watch for */
        }
        stream_unlock(s);
        stream_carriers_tell(s, resting, false);
        if (status != kCFStreamStatusOpening) {
            return status;
        }
        end_opening(s, s->kind->finish_open(s, true));
    }
}

/*
 * Ends what begin_transfer began. `result` is below 0 if the stream has failed. `still_holds` has the lasting event if that holds as
 * before, so that it need not be told again.
 */
EXCLUDES(the_item_lock) static void end_transfer(struct stream *s, CFIndex result, bool at_end, uint8_t still_holds)
{
    bool is_heard;

    stream_lock(s);
    stream_check_invariants(s);
    invariant(s->is_transferring);
    s->transfers = s->transfers == transfer_none ? transfer_once : transfer_many;
    if (s->status == kCFStreamStatusOpen) {
        s->told &= still_holds;
        if (result < 0) {
            fail(s, result);
        } else if (at_end) {
            reach_end(s);
        }
    }
    /* Scheduling a stream has the loop look. While an event counts as told, nothing is awaited. */
    is_heard = s->carriers.kind != carrier_none && !s->told;
    if (!stream_unclaim_and_unlock(s) && is_heard) {
        stream_events_changed(s);
    }
}

CFIndex stream_read(struct stream *s, UInt8 *bytes, CFIndex size)
{
    CFStreamStatus status;
    CFIndex result = 0;
    bool at_end = false;

    if (size < 0 || (!bytes && size > 0)) {
        return -1;
    }
    status = begin_transfer(s);
    if (status != kCFStreamStatusOpen) {
        return status == kCFStreamStatusAtEnd ? 0 : -1;
    }
    if (size > 0) {
        result = s->kind->read(s, bytes, size, &at_end);
    }
    end_transfer(s, result, at_end, 0);
    return result < 0 ? -1 : result;
}

const UInt8 *stream_lend(struct stream *s, CFIndex most, CFIndex *ret_count)
{
    CFStreamStatus status;
    const UInt8 *bytes;
    bool at_end = false;

    *ret_count = 0;
    if (!s->kind->lend) {
        status = stream_status(s);
        *ret_count = has_begun_and_not_ended(status) || status == kCFStreamStatusReading ? 0 : -1;
        return NULL;
    }
    status = begin_transfer(s);
    if (status != kCFStreamStatusOpen) {
        *ret_count = status == kCFStreamStatusAtEnd ? 0 : -1;
        return NULL;
    }
    bytes = s->kind->lend(s, most, ret_count, &at_end);
    end_transfer(s, 0, at_end, 0);
    return bytes;
}

CFIndex stream_write(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    CFIndex result = 0;

    if (size < 0 || (!bytes && size > 0) || begin_transfer(s) != kCFStreamStatusOpen) {
        return -1;
    }
    if (size > 0) {
        result = s->kind->write(s, bytes, size);
    }
    end_transfer(s, result, false, 0);
    return result < 0 ? -1 : result;
}

/* Claims an open stream for a write that does not wait. */
EXCLUDES(the_item_lock) static bool begin_write_now(struct stream *s)
{
    struct stream_carriers resting = stream_carriers_none;
    bool begins;

    stream_lock(s);
    stream_check_invariants(s);
    begins = s->kind->write_now && s->status == kCFStreamStatusOpen && !s->is_claimed;
    if (begins) {
        s->is_claimed = true;
        s->is_transferring = true;
        resting = stream_events_rest(s);
    }
    stream_unlock(s);
    stream_carriers_tell(s, resting, false);
    return begins;
}

CFIndex stream_write_now(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    CFIndex result;

    if (size <= 0 || !bytes || !begin_write_now(s)) {
        return -EBUSY;
    }
    result = s->kind->write_now(s, bytes, size);
    if (result == -EAGAIN || result == -EBUSY) {
        /* What was told holds as before if nobody could say. */
        end_transfer(s, 0, false, result == -EBUSY ? stream_lasting_event(s) : 0);
        return result;
    }
    end_transfer(s, result, false, result == size ? stream_lasting_event(s) : 0);
    return result < 0 ? -1 : result;
}

/* ---- looking ---- */

/* Returns the events that hold now, or a negative errno if the stream has failed. The stream is claimed. */
static int events_now(struct stream *s, uint32_t ready)
{
    if (s->kind->look) {
        return s->kind->look(s, ready);
    }
    return atomic_load_explicit(&s->is_ready, memory_order_acquire) ? stream_lasting_event(s) : 0;
}

uint8_t stream_look(struct stream *s, uint32_t ready)
{
    int events = 0;
    bool is_open;

    if (!stream_claim(s)) {
        return 0; /* whoever has claimed it has the loops look again */
    }
    stream_lock(s);
    is_open = s->status == kCFStreamStatusOpen;
    stream_unlock(s);
    if (is_open) {
        events = events_now(s, ready);
        invariant(events < 0 || !(events & ~(stream_lasting_event(s) | kCFStreamEventEndEncountered)));
    }
    stream_lock(s);
    if (s->status != kCFStreamStatusOpen) {
        events = 0;
    } else if (events < 0) {
        fail(s, events);
        events = 0;
    } else if (events & kCFStreamEventEndEncountered) {
        reach_end(s);
    }
    (void)stream_unclaim_and_unlock(s);
    return (uint8_t)(events & stream_lasting_event(s));
}

bool stream_is_available(struct stream *s)
{
    bool holds;

    stream_go_on_opening(s);
    holds = stream_look(s, 0) != 0;
    stream_events_changed(s); /* the look may have found the end */
    return holds;
}

/* ---- properties ---- */

CFTypeRef stream_copy_property(struct stream *s, CFStringRef name)
{
    CFTypeRef value = NULL;

    if (name && s->kind->copy_property && stream_claim(s)) {
        value = s->kind->copy_property(s, name);
        stream_unclaim(s);
        stream_events_changed(s); /* a loop may have looked in vain */
    }
    return value;
}

bool stream_set_property(struct stream *s, CFStringRef name, CFTypeRef value)
{
    bool is_set = false;

    if (name && s->kind->set_property && stream_claim(s)) {
        is_set = s->kind->set_property(s, name, value);
        stream_unclaim(s);
        stream_events_changed(s);
    }
    return is_set;
}
