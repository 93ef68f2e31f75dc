/* SPDX-License-Identifier: Apache-2.0 */
/* The modes that a stream is scheduled in, and its source; see stream_schedule.h. No lock is held over calls on loops. */
#include "Stream/Core/stream_schedule.h"

#include <stdlib.h>

#include "Loop/Source/descriptor_source.h"
#include "Loop/Watch/watch.h"
#include "Stream/Core/stream_claim.h"
#include "Stream/Core/stream_events.h"
#include "Stream/Core/stream_queue.h"
#include "Support/fault.h"

/* The info of a stream's source, which frees it. */
struct stream_link {
    struct stream *stream GUARDED_BY(the_item_lock); /* the link's own lock; NULL: the stream is closed, or has another source */
};

/* ---- the link ---- */

static void cut_link(struct stream_link *link)
{
    lock_take(item_lock(link));
    link->stream = NULL;
    lock_drop(item_lock(link));
}

/* Returns the stream with a reference, or NULL if it is closed, freed, or has another source. */
static struct stream *retain_stream(struct stream_link *link)
{
    struct stream *s;

    lock_take(item_lock(link));
    s = link->stream && object_try_retain(link->stream) ? link->stream : NULL;
    lock_drop(item_lock(link));
    return s;
}

static void free_link(const void *info)
{
    free((void *)(uintptr_t)info);
}

static CFStringRef describe_link(const void *info)
{
    struct stream *s = retain_stream((struct stream_link *)(uintptr_t)info);
    CFStringRef text = s ? CFCopyDescription(s) : NULL;

    object_release_if_any(s);
    return text;
}

/* ---- the source ---- */

/* Returns the source with a reference, or NULL. */
REQUIRES(the_item_lock) static CFRunLoopSourceRef retain_source(const struct stream *s)
{
    if (s->carriers.source) {
        object_retain(s->carriers.source);
    }
    return s->carriers.source;
}

/* Whether the stream is scheduled in the mode that runs on this thread. */
EXCLUDES(the_item_lock) static bool is_in_running_mode(struct stream *s)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFStringRef mode = CFRunLoopCopyCurrentMode(loop);
    CFRunLoopSourceRef source;
    bool answer;

    stream_lock(s);
    source = retain_source(s);
    stream_unlock(s);
    answer = source && mode && CFRunLoopContainsSource(loop, source, mode);
    object_release_if_any(source);
    object_release_if_any(mode);
    return answer;
}

/* A pass performs what was signalled when it began, also what a callback has taken out of the mode since. Such a stream stays signalled. */
static void perform_signalled(void *info)
{
    struct stream *s = retain_stream(info);

    if (!s) {
        return;
    }
    if (is_in_running_mode(s)) {
        s->deliver(s, 0);
    } else {
        stream_events_nudge(s);
        object_release(s);
    }
}

static void perform_ready(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    struct stream *s = retain_stream(info);

    if (ready & watch_posted) {
        descriptor_source_take_post(source);
    }
    if (s) {
        s->deliver(s, ready & ~(uint32_t)(watch_posted | watch_still_installed));
    }
}

static CFRunLoopSourceRef make_source(struct stream_link *link, int descriptor)
{
    if (descriptor >= 0) {
        const struct descriptor_source_context context = {
            .info = link, .release = free_link, .perform = perform_ready, .copy_description = describe_link, .is_version_0 = true};

        return descriptor_source_create(NULL, 0, descriptor, &context);
    }
    CFRunLoopSourceContext context = {.info = link, .release = free_link, .copyDescription = describe_link, .perform = perform_signalled};

    return CFRunLoopSourceCreate(NULL, 0, &context);
}

/* Makes a source for the descriptor, or one to be signalled (-1). Returns none if there is no memory. */
static struct stream_carriers make_carriers(struct stream *s, int descriptor)
{
    struct stream_link *link = malloc(sizeof *link);
    CFRunLoopSourceRef source = link ? make_source(link, descriptor) : NULL;

    if (!source) {
        free(link);
        return stream_carriers_none;
    }
    lock_take(item_lock(link));
    link->stream = s;
    lock_drop(item_lock(link));
    return (struct stream_carriers){.kind = descriptor >= 0 ? carrier_descriptor_source : carrier_signalled_source,
                                    .descriptor = descriptor,
                                    .source = source,
                                    .link = link};
}

/* ---- taking a carrier out ---- */

/* All that a stream has in loops and on a queue. */
struct belongings {
    struct stream_carriers carriers;
    struct scheduled_modes modes;
};

/* Puts other carriers in the place of the stream's. Returns those, which the caller ends with end_carriers once the lock is dropped. */
REQUIRES(the_item_lock) static struct stream_carriers exchange_carriers(struct stream *s, struct stream_carriers carriers)
{
    struct stream_carriers taken = s->carriers;

    s->carriers = carriers;
    atomic_store_explicit(&s->interest, 0, memory_order_relaxed); /* until stream_events_changed */
    stream_begin_withdrawal(s);
    return taken;
}

/* Invalidates what the stream has given up, and drops the stream's reference. Loops wake. */
static void end_carriers(struct stream_carriers taken)
{
    if (taken.source) {
        cut_link(taken.link); /* before the source may free it */
        descriptor_source_invalidate(taken.source);
        object_release(taken.source);
    }
    stream_queue_detach(taken.queue);
}

/* Takes the stream out of all modes as well. */
REQUIRES(the_item_lock) static struct belongings exchange_all(struct stream *s, struct stream_carriers carriers)
{
    struct belongings taken = {exchange_carriers(s, carriers), s->modes};

    s->modes = (struct scheduled_modes){NULL, 0};
    s->departures++;
    return taken;
}

static void log_lack_of_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFStream: no memory to schedule a stream; its client is told nothing until it is scheduled again");
}

/* ---- the modes ---- */

/* Takes the stream off its queue. Returns false if there is no memory, or the stream is closed, or it is in the mode already. */
EXCLUDES(the_item_lock) static bool add_mode(struct stream *s, struct scheduled_mode added)
{
    struct stream_carriers left = stream_carriers_none;
    bool is_new;
    bool is_added;

    stream_lock(s);
    is_new = s->status != kCFStreamStatusClosed && !scheduled_modes_contain(&s->modes, added.loop, added.mode);
    is_added = is_new && scheduled_modes_add(&s->modes, added);
    if (is_added && s->carriers.kind == carrier_queue) {
        s->departures++;
        left = exchange_carriers(s, stream_carriers_none);
    }
    stream_check_invariants(s);
    stream_unlock(s);
    if (left.kind == carrier_queue) {
        end_carriers(left);
        stream_end_withdrawal(s);
    }
    if (is_new && !is_added) {
        log_lack_of_memory();
    }
    return is_added;
}

/* Returns the source with a reference, or NULL, and whether it has to be in the mode. */
EXCLUDES(the_item_lock) static CFRunLoopSourceRef source_for(struct stream *s, CFRunLoopRef loop, CFStringRef mode, bool *ret_is_in)
{
    CFRunLoopSourceRef source;

    stream_lock(s);
    source = retain_source(s);
    *ret_is_in = scheduled_modes_contain(&s->modes, loop, mode);
    stream_unlock(s);
    return source;
}

/*
 * Puts the source into the mode, or takes it out, as the stream's list says. Other threads may change the list and the source meanwhile, so
 * each looks again after it has acted: the last one to act has seen the latest.
 */
static void settle_source(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    struct stream *s = info;
    CFRunLoopSourceRef settled = NULL;
    bool was_in = false;
    bool is_in;
    CFRunLoopSourceRef source = source_for(s, loop, mode, &is_in);

    while (source && (source != settled || is_in != was_in)) {
        (is_in ? CFRunLoopAddSource : CFRunLoopRemoveSource)(loop, source, mode);
        object_release_if_any(settled);
        settled = source;
        was_in = is_in;
        source = source_for(s, loop, mode, &is_in);
    }
    object_release_if_any(source);
    object_release_if_any(settled);
}

/* Whether the stream is in modes without a source for its descriptor. */
REQUIRES(the_item_lock) static bool needs_source(const struct stream *s)
{
    return s->modes.count > 0 &&
           (s->carriers.kind == carrier_none || s->carriers.descriptor != atomic_load_explicit(&s->descriptor, memory_order_relaxed));
}

/* Puts the new source into the stream if it still needs that, and ends the one before; else ends the new one. Returns whether it did. */
EXCLUDES(the_item_lock) static bool replace_source(struct stream *s, struct stream_carriers made)
{
    struct stream_carriers given_up = made;
    bool is_needed;

    stream_lock(s);
    /* Else another thread has done it, or has changed the descriptor and comes here itself. */
    is_needed = needs_source(s) && made.descriptor == atomic_load_explicit(&s->descriptor, memory_order_relaxed);
    if (is_needed) {
        given_up = exchange_carriers(s, made);
    }
    stream_check_invariants(s);
    stream_unlock(s);
    end_carriers(given_up);
    if (is_needed) {
        stream_end_withdrawal(s);
    }
    return is_needed;
}

void stream_schedule_renew(struct stream *s)
{
    struct stream_carriers made;
    bool is_needed;
    int descriptor;

    stream_lock(s);
    is_needed = needs_source(s);
    descriptor = atomic_load_explicit(&s->descriptor, memory_order_relaxed);
    stream_unlock(s);
    if (!is_needed) {
        return;
    }
    made = make_carriers(s, descriptor);
    if (made.kind == carrier_none) {
        log_lack_of_memory();
    } else if (replace_source(s, made)) {
        scheduled_modes_each(s, &s->modes, settle_source, s);
    }
}

void stream_schedule_add(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    struct scheduled_mode made;
    bool is_made = scheduled_mode_init(&made, loop, mode);
    bool is_added = is_made && add_mode(s, made);

    if (!is_made) {
        log_lack_of_memory();
    } else if (!is_added) {
        scheduled_mode_release(made);
    }
    stream_schedule_renew(s); /* also a stream for whose source there was no memory when it was scheduled here before */
    if (is_added) {
        settle_source(s, loop, mode);
        if (s->kind->scheduled) {
            s->kind->scheduled(s, loop, mode);
        }
    }
    stream_events_changed(s);
}

void stream_schedule_remove(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    struct scheduled_mode removed;
    bool was_there;

    stream_lock(s);
    was_there = scheduled_modes_remove(&s->modes, loop, mode, &removed);
    s->departures += was_there;
    stream_check_invariants(s);
    stream_unlock(s);
    if (was_there) {
        settle_source(s, loop, mode);
        if (s->kind->unscheduled) {
            s->kind->unscheduled(s, loop, mode);
        }
        scheduled_mode_release(removed);
    }
}

void stream_schedule_descriptor_changed(struct stream *s, int descriptor)
{
    CFRunLoopSourceRef source = NULL;

    stream_lock(s);
    if (s->status == kCFStreamStatusOpening || s->status == kCFStreamStatusOpen) {
        atomic_store_explicit(&s->descriptor, descriptor, memory_order_relaxed);
        if (s->carriers.kind == carrier_descriptor_source && s->carriers.descriptor == descriptor) {
            source = retain_source(s);
            s->transfers = transfer_many; /* a report that a loop has fetched may be of the former file */
        }
    }
    stream_unlock(s);
    stream_queue_forget(s);
    if (source) {
        descriptor_source_file_replaced(source);
        object_release(source);
    } else {
        stream_schedule_renew(s);
    }
}

/* ---- queues ---- */

/* Tells the kind of the modes that the stream was taken out of. No other thread knows the list (NOT_CHECKED). */
NOT_CHECKED static void tell_unscheduled(struct stream *s, const struct scheduled_modes *modes)
{
    for (uint32_t i = 0; s->kind->unscheduled && i < modes->count; i++) {
        s->kind->unscheduled(s, modes->list[i].loop, modes->list[i].mode);
    }
}

void stream_schedule_put_on_queue(struct stream *s, struct stream_queue *place)
{
    struct belongings left = {stream_carriers_none, {NULL, 0}};
    bool is_closed;

    stream_lock(s);
    is_closed = s->status == kCFStreamStatusClosed;
    if (!is_closed) {
        left = exchange_all(s, (struct stream_carriers){.kind = carrier_queue, .descriptor = -1, .queue = place});
    }
    stream_check_invariants(s);
    stream_unlock(s);
    if (is_closed) {
        stream_queue_detach(place);
        return;
    }
    tell_unscheduled(s, &left.modes);
    end_carriers(left.carriers);
    scheduled_modes_free(&left.modes);
    stream_end_withdrawal(s);
    stream_events_nudge(s);
}

void stream_schedule_leave_queue(struct stream *s)
{
    struct stream_carriers left = stream_carriers_none;
    bool is_on_queue;

    stream_lock(s);
    is_on_queue = s->carriers.kind == carrier_queue;
    if (is_on_queue) {
        s->departures++;
        left = exchange_carriers(s, stream_carriers_none);
    }
    stream_check_invariants(s);
    stream_unlock(s);
    if (is_on_queue) {
        end_carriers(left);
        stream_end_withdrawal(s);
    }
}

/* ---- the end ---- */

void stream_schedule_take_and_unlock(struct stream *s)
{
    struct belongings taken = exchange_all(s, stream_carriers_none);

    stream_check_invariants(s);
    stream_unlock(s);
    end_carriers(taken.carriers);
    scheduled_modes_free(&taken.modes);
    stream_end_withdrawal(s);
}

/* Nobody else refers to the stream (NOT_CHECKED). */
NOT_CHECKED void stream_schedule_end(struct stream *s)
{
    invariant(s->withdrawals == 0); /* each has a reference */
    end_carriers(s->carriers);
    scheduled_modes_free(&s->modes);
    s->carriers = stream_carriers_none;
    s->modes = (struct scheduled_modes){NULL, 0};
}
