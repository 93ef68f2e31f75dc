/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_queue.h. */
#include "Stream/Core/stream_queue.h"

#include <stdlib.h>

#include "Support/fault.h"
#include "Support/libdispatch.h"

enum watch_token { token_event, token_descriptor, token_count };

/* The item lock of the place guards what changes. It is held over calls of the kernel that do not wait. */
struct stream_queue {
    _Atomic uint32_t references; /* the stream's, one until the source has been cancelled, and those of calls under way */
    struct stream *stream GUARDED_BY(the_item_lock); /* NULL: it has left the queue */
    void *queue; /* a reference; constant, as all that follows but the last two */
    void *source; /* a reference, which the detachment drops */
    int set;
    int event;
    int watched GUARDED_BY(the_item_lock); /* the descriptor in the set; -1: none */
    uint32_t interest GUARDED_BY(the_item_lock); /* of enum kernel_readiness: what the set watches the descriptor for */
};

void stream_queue_retain(struct stream_queue *place)
{
    atomic_fetch_add_explicit(&place->references, 1, memory_order_relaxed);
}

void stream_queue_release(struct stream_queue *place)
{
    if (atomic_fetch_sub_explicit(&place->references, 1, memory_order_acq_rel) == 1) {
        (void)kernel.close(place->event);
        (void)kernel.close(place->set);
        dispatch_release(place->queue);
        free(place);
    }
}

/* Returns the stream with a reference, or NULL if it has left the queue or is being freed. */
static struct stream *retain_stream(struct stream_queue *place)
{
    struct stream *s;

    lock_take(item_lock(place));
    s = place->stream && object_try_retain(place->stream) ? place->stream : NULL;
    lock_drop(item_lock(place));
    return s;
}

/* ---- on the queue ---- */

static void handle_events(void *context)
{
    struct stream_queue *place = context;
    struct kernel_event events[token_count];
    int count = kernel.set_wait(place->set, events, token_count, 0);
    struct stream *s;
    uint32_t ready = 0;

    for (int i = 0; i < count; i++) {
        if (events[i].token == token_event) {
            (void)kernel.counter_drain(place->event);
        } else {
            ready = events[i].ready;
        }
    }
    s = count > 0 ? retain_stream(place) : NULL;
    if (s) {
        s->deliver(s, ready);
    }
}

static void end_source(void *context)
{
    stream_queue_release(context);
}

/* ---- making and ending ---- */

static void close_if_open(int descriptor)
{
    if (descriptor >= 0) {
        (void)kernel.close(descriptor);
    }
}

/* Returns a place with a wait set and a source that is not resumed yet, or NULL. No other thread knows it (NOT_CHECKED). */
NOT_CHECKED static struct stream_queue *make_place(struct stream *s, void *queue)
{
    struct stream_queue *place = calloc(1, sizeof *place);
    int set = place ? kernel.set_create() : -1;
    int event = set >= 0 ? kernel.event_create() : -1;
    void *source = NULL;

    if (event >= 0 && kernel.set_add(set, event, kernel_readable, token_event) == 0) {
        source = dispatch_source_create(_dispatch_source_type_read, (uintptr_t)set, 0, queue);
    }
    if (!source) {
        close_if_open(event);
        close_if_open(set);
        free(place);
        return NULL;
    }
    atomic_init(&place->references, 2);
    place->stream = s;
    place->queue = queue;
    place->source = source;
    place->set = set;
    place->event = event;
    place->watched = -1;
    return place;
}

struct stream_queue *stream_queue_attach(struct stream *s, void *queue)
{
    struct stream_queue *place = libdispatch_is_there() ? make_place(s, queue) : NULL;

    if (place) {
        dispatch_retain(queue);
        dispatch_set_context(place->source, place);
        dispatch_source_set_event_handler_f(place->source, handle_events);
        dispatch_source_set_cancel_handler_f(place->source, end_source);
        dispatch_resume(place->source);
    }
    return place;
}

REQUIRES(the_item_lock) static void stop_watching(struct stream_queue *place)
{
    if (place->watched >= 0) {
        (void)kernel.set_remove(place->set, place->watched);
        place->watched = -1;
        place->interest = 0;
    }
}

void stream_queue_detach(struct stream_queue *place)
{
    if (!place) {
        return;
    }
    lock_take(item_lock(place));
    place->stream = NULL;
    stop_watching(place);
    lock_drop(item_lock(place));
    dispatch_source_cancel(place->source);
    dispatch_release(place->source);
    stream_queue_release(place);
}

/* ---- what the queue hears of ---- */

/* Returns 0 or a negative errno. A descriptor without interest leaves the set, because the kernel would go on to report its errors. */
REQUIRES(the_item_lock) static int set_watch(struct stream_queue *place, int descriptor, uint32_t interest)
{
    int result;

    invariant_held(item_lock(place));
    invariant((place->watched >= 0) == (place->interest != 0));
    if (place->watched == descriptor && place->interest == interest) {
        return 0;
    }
    stop_watching(place);
    if (descriptor < 0 || interest == 0) {
        return 0;
    }
    result = kernel.set_add(place->set, descriptor, interest, token_descriptor);
    if (result == 0) {
        place->watched = descriptor;
        place->interest = interest;
    }
    return result;
}

/* The words are read under the lock, so that the last thread to come sets the latest ones. The interest first: see update_interest. */
void stream_queue_watch(struct stream_queue *place, struct stream *s)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    int result = 0;

    lock_take(item_lock(place));
    if (place->stream) {
        uint32_t interest = atomic_load_explicit(&s->interest, memory_order_acquire);

        result = set_watch(place, atomic_load_explicit(&s->descriptor, memory_order_relaxed), interest);
    }
    lock_drop(item_lock(place));
    if (result < 0) {
        fault_log_once(&logged, "CFStream: the kernel cannot watch another descriptor for a dispatch queue; its stream is not told");
    }
}

void stream_queue_post(struct stream_queue *place)
{
    (void)kernel.event_post(place->event);
}

/* ---- the stream's queue ---- */

/* Returns the stream's place with a reference, or NULL. */
EXCLUDES(the_item_lock) static struct stream_queue *retain_place(struct stream *s)
{
    struct stream_queue *place;

    stream_lock(s);
    place = s->carriers.queue;
    if (place) {
        stream_queue_retain(place);
    }
    stream_unlock(s);
    return place;
}

void stream_queue_forget(struct stream *s)
{
    struct stream_queue *place = retain_place(s);

    if (place) {
        lock_take(item_lock(place));
        stop_watching(place);
        lock_drop(item_lock(place));
        stream_queue_release(place);
    }
}

void *stream_queue_copy(struct stream *s)
{
    struct stream_queue *place = retain_place(s);
    void *queue = place ? place->queue : NULL;

    if (place) {
        dispatch_retain(queue);
        stream_queue_release(place);
    }
    return queue;
}
