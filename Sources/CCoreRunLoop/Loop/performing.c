/* SPDX-License-Identifier: Apache-2.0 */
/* The callouts of sources; see performing.h. Numbers in parentheses are rules. */
#include "Loop/performing.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Loop/activation.h"
#include "Loop/flood.h"
#include "Loop/held.h"
#include "Loop/source_membership.h"
#include "Loop/source_queue.h"
#include "Loop/watch.h"

/* Of what report_hold keeps. The lock may be dropped meanwhile. */
static inline __attribute__((always_inline)) void report_drop(CFRunLoopRef loop, struct watch_report *report)
{
    CFRunLoopSourceRef source = report->source;

    report->source = NULL;
    if (report->is_borrowed && loop->borrowed == source) {
        loop->borrowed = NULL;
        return;
    }
    loop_unlock(loop);
    object_release(source);
    loop_lock(loop);
}

/* ---- version-0 sources ---- */

/* A pass is to look at flooded sources. L, which is dropped meanwhile. */
static __attribute__((noinline)) void pace_flood(CFRunLoopRef loop)
{
    loop_unlock(loop);
    loop->flood_look_ns = flood_await_look(loop->flood_look_ns);
    loop_lock(loop);
}

/*
 * Calls a source whose turn it is, if its mark is still there (84), which is taken before: a signal during the callout is another one (78).
 * Somebody keeps the source. Leaves without the lock.
 */
static inline __attribute__((always_inline)) bool call_if_marked(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    source_function perform = source_callback(source, source_callback_perform);
    enum source_taken taken;
    bool is_marked;

    source_unlink_pending(loop, source);
    taken = source_take_mark(source);
    if (__builtin_expect(taken == source_taken_in_flood, 0)) {
        source_link_pending(loop, source);
    }
    loop_unlock(loop);
    is_marked = taken == source_taken_flood ? source_end_flood(source) : taken != source_taken_nothing;
    if (is_marked && perform) {
        ((void (*)(void *))perform)(source->context_info);
    }
    return is_marked;
}

/* Performs one of a snapshot, and drops its reference. */
static bool perform_held(CFRunLoopRef loop, struct activation *run, CFRunLoopSourceRef source)
{
    bool performed;

    held_in_hand(run, object_release, source);
    performed = call_if_marked(loop, source);
    held_put_down(run);
    object_release(source);
    loop_lock(loop);
    run_resume(loop, run);
    return performed;
}

/* The first that counts, in order (49). */
static bool perform_one_source(CFRunLoopRef loop, struct activation *run)
{
    struct source_member *member;
    bool performed = false;

    while (!performed && (member = source_first_pending(run->mode)) != NULL) {
        run->report.source = member->slot->source;
        report_hold(loop, &run->report);
        if (__builtin_expect(source_is_flooded(run->report.source), 0)) {
            pace_flood(loop);
        }
        performed = call_if_marked(loop, run->report.source);
        loop_lock(loop);
        run_resume(loop, run);
        report_drop(loop, &run->report);
    }
    return performed;
}

/* Without memory for a snapshot: as often as there are sources, the first. What is signalled meanwhile waits outside the list. */
static __attribute__((cold)) bool perform_one_by_one(CFRunLoopRef loop, struct activation *run)
{
    bool performed = false;
    size_t count = 0;

    list_for_each(link, &run->mode->pending) {
        count++;
    }
    for (; count > 0; count--) {
        performed |= perform_one_source(loop, run);
    }
    return performed;
}

/*
 * All that are signalled now, as a snapshot (50, 82). Each stays in the pending lists until its turn, so that a nested run can perform it.
 */
static bool perform_all_sources(CFRunLoopRef loop, struct activation *run)
{
    uint32_t first = loop->held.count;
    bool performed = false;
    bool is_flooded = false;
    uint32_t end;

    source_sort_pending(run->mode);
    list_for_each(link, &run->mode->pending) {
        CFRunLoopSourceRef source = container_of(link, struct source_member, link)->slot->source;

        if (!held_push(loop, object_release, source)) {
            break; /* without memory: some now, the rest in the next pass */
        }
        object_retain(source);
        is_flooded |= source_is_flooded(source);
    }
    end = loop->held.count;
    if (end == first) {
        return perform_one_by_one(loop, run);
    }
    if (is_flooded) {
        pace_flood(loop);
    }
    for (uint32_t place = first; place < end; place++) {
        CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)held_thing(loop, place);

        held_take(loop, place);
        performed |= perform_held(loop, run, source); /* handled if any was (85) */
    }
    held_cut(loop, first, end);
    return performed;
}

static bool has_one_pending(const struct mode *mode)
{
    return mode->pending.next->next == &mode->pending;
}

static void drain_queue(CFRunLoopRef loop)
{
    struct slot_reap reap = {NULL};

    source_queue_drain(loop, &reap);
    if (reap.first) {
        loop_unlock(loop);
        slots_release(&reap);
        loop_lock(loop);
    }
}

bool sources_perform_some(CFRunLoopRef loop, struct activation *run)
{
    if (mailbox_has_signals(loop->mailbox)) {
        drain_queue(loop);
    }
    if (list_is_empty(&run->mode->pending)) {
        return false;
    }
    return run->returns_after_source || has_one_pending(run->mode) ? perform_one_source(loop, run) : perform_all_sources(loop, run);
}

/* ---- what a wait has reported ---- */

/* A source of the layers above. The pass holds it. False if it has put by what there is. */
static bool call_descriptor(struct activation *run)
{
    const struct watch_report *report = &run->report;
    source_function perform = source_callback(report->source, source_callback_perform);

    run->performing = report->source;
    ((void (*)(void *, CFRunLoopSourceRef, uint32_t))perform)(report->source->context_info, report->source, report->ready);
    run->performing = NULL;
    return report->ready != 0;
}

/* A version-1 source: its counter is read first (99). False if there was nothing to read: a report out of date. */
static bool call_port(CFRunLoopSourceRef source)
{
    const struct source_port_part *part = source_port_part(source);
    source_function perform = source_callback(source, source_callback_perform);

    if (part->is_counter) {
        int result = kernel.counter_drain(part->descriptor);

        if (result < 0 && result != -ECANCELED) { /* which a timerfd of the wall clock says, once, when that is set: an event of its own */
            return false;
        }
    }
    if (perform) {
        ((void (*)(void *))perform)(source->context_info);
    }
    return true;
}

bool report_perform(CFRunLoopRef loop, struct activation *run)
{
    CFRunLoopSourceRef source = run->report.source;
    /* An AfterWaiting observer may have taken it out (15, 88). */
    bool performed = source_is_valid(source) && source_has_joined(loop, source, run->mode);

    if (performed) {
        bool is_descriptor = source_kind(source) == source_descriptor;

        loop_unlock(loop);
        performed = is_descriptor ? call_descriptor(run) : call_port(source);
        loop_lock(loop);
        run_resume(loop, run);
        if (!performed && !is_descriptor) {
            watch_doubt(run->mode, source);
        }
    }
    report_drop(loop, &run->report);
    return performed;
}
