/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callouts of sources; see source_perform.h. A reference keeps each source alive during its callout, and a clean-up drops that
 * reference if the callout does not return (a long jump, or the end of the thread).
 */
#include "Loop/Source/source_perform.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Wake/coalesce.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Source/source_membership.h"
#include "Loop/Signal/source_queue.h"
#include "Loop/Trace/trace.h"
#include "Loop/Watch/watch.h"

/* Asks the kernel again about a source whose report was taken and not handled: it reports a change only once. */
REQUIRES(the_loop_lock) static void recheck_everywhere(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    if (source_kind(source) == source_manual) {
        return;
    }
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        watch_recheck(mode, source);
    }
}

void ready_source_end_lent(const void *object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;
    CFRunLoopRef loop = thread_loop_if_any();
    bool is_lent;

    loop_lock(loop);
    recheck_everywhere(loop, source);
    is_lent = loop->lent_reference == source;
    if (is_lent) {
        loop->lent_reference = NULL;
    }
    loop_unlock(loop);
    if (!is_lent) { /* the source has left the loop, whose reference became the report's own */
        object_release(source);
    }
}

void ready_source_end_own(const void *object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;
    CFRunLoopRef loop = thread_loop_if_any();

    loop_lock(loop);
    recheck_everywhere(loop, source);
    loop_unlock(loop);
    object_release(source);
}

/* Drops the report and what ready_source_hold did for it. May drop the lock meanwhile. */
REQUIRES(the_loop_lock) static inline __attribute__((always_inline)) void report_drop(CFRunLoopRef loop, struct ready_source *report)
{
    CFRunLoopSourceRef source = report->source;

    invariant(source != NULL);
    report->source = NULL;
    if (report->cleanup > 0) {
        cleanup_pop_locked(loop, report->cleanup - 1, report->cleanup);
    }
    if (report->has_lent_reference && loop->lent_reference == source) {
        loop->lent_reference = NULL;
        return;
    }
    loop_unlock(loop);
    object_release(source);
    loop_lock(loop);
}

/* ---- version-0 sources ---- */

/* Waits until coalesced sources may be looked at again. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) static __attribute__((noinline)) void pace_coalesced(CFRunLoopRef loop)
{
    loop_unlock(loop);
    loop->coalesce_look_ns = coalesce_await_look(loop->coalesce_look_ns);
    loop_lock(loop);
}

/*
 * Calls a source whose turn it is, if its mark is still set: the source may have been invalidated meanwhile (rule 84). The mark is taken
 * before the call, so that a signal during the call leads to another call (rule 78). The caller keeps the source alive. Drops the lock.
 */
RELEASES(the_loop_lock) static inline __attribute__((always_inline)) bool call_if_marked(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    source_function perform = source_callback(source, source_callback_perform);
    enum source_taken taken;
    bool is_marked;

    invariant_held(&loop->lock);
    source_unlink_pending(loop, source);
    taken = source_take_mark(source);
    if (__builtin_expect(taken == source_taken_coalesced, 0)) {
        source_link_pending(loop, source); /* the next pass has to look for announced signals */
    }
    loop_unlock(loop);
    is_marked = taken == source_taken_no_signal ? source_end_coalescing(source) : taken != source_taken_nothing;
    if (is_marked && perform) {
        trace_callout_begin(trace_source, source, perform);
        ((void (*)(void *))perform)(source->context_info);
        trace_callout_end(trace_source, source);
    }
    return is_marked;
}

/* Performs a source of a snapshot, and drops the snapshot's reference. */
REQUIRES(the_loop_lock) static bool perform_held(CFRunLoopRef loop, struct run *run, CFRunLoopSourceRef source)
{
    uint32_t cleanup = cleanup_push(loop, object_release, source);
    bool performed;

    performed = call_if_marked(loop, source);
    cleanup_pop(loop, cleanup);
    object_release(source);
    loop_lock(loop);
    run_resume(loop, run);
    return performed;
}

/* Performs the first source in order that is really signalled; the others stay signalled (rule 49). */
REQUIRES(the_loop_lock) static bool perform_one_source(CFRunLoopRef loop, struct run *run)
{
    struct source_member *member;
    bool performed = false;

    while (!performed && (member = source_first_pending(run->mode)) != NULL) {
        run->report.source = member->binding->source;
        ready_source_hold(loop, &run->report);
        if (__builtin_expect(source_is_coalesced(run->report.source), 0)) {
            pace_coalesced(loop);
        }
        performed = call_if_marked(loop, run->report.source);
        loop_lock(loop);
        run_resume(loop, run);
        report_drop(loop, &run->report);
    }
    return performed;
}

/*
 * Performs all sources without memory for a snapshot: performs the first one, as often as there are sources now. Sources that are signalled
 * meanwhile are in the queue, not in the list.
 */
REQUIRES(the_loop_lock) static __attribute__((cold)) bool perform_one_by_one(CFRunLoopRef loop, struct run *run)
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
 * Performs all sources that are signalled now, from a snapshot (rules 50 and 82). Each stays in the pending lists until its turn, so that a
 * nested run can perform it.
 */
REQUIRES(the_loop_lock) static bool perform_all_sources(CFRunLoopRef loop, struct run *run)
{
    uint32_t first = loop->cleanups.count;
    bool performed = false;
    bool has_coalesced = false;
    uint32_t end;

    source_sort_pending(run->mode);
    list_for_each(link, &run->mode->pending) {
        CFRunLoopSourceRef source = container_of(link, struct source_member, link)->binding->source;

        if (!cleanup_push(loop, object_release, source)) {
            break; /* without memory: some now, the rest in the next pass */
        }
        object_retain(source);
        has_coalesced |= source_is_coalesced(source);
    }
    end = loop->cleanups.count;
    invariant(end >= first);
    if (end == first) {
        return perform_one_by_one(loop, run);
    }
    if (has_coalesced) {
        pace_coalesced(loop);
    }
    for (uint32_t place = first; place < end; place++) {
        CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)cleanup_object(loop, place);

        cleanup_disarm(loop, place);
        performed |= perform_held(loop, run, source); /* the pass has handled a source if it performed any (rule 85) */
    }
    cleanup_pop_locked(loop, first, end);
    return performed;
}

REQUIRES(the_loop_lock) static bool has_one_pending(const struct mode *mode)
{
    return mode->pending.next->next == &mode->pending;
}

REQUIRES(the_loop_lock) static void drain_queue(CFRunLoopRef loop)
{
    struct binding_release_list released = {NULL};

    source_queue_drain(loop, &released);
    if (released.first) {
        loop_unlock(loop);
        bindings_release(&released);
        loop_lock(loop);
    }
}

bool sources_perform_some(CFRunLoopRef loop, struct run *run)
{
    if (waker_has_signals(loop->waker)) {
        drain_queue(loop);
    }
    if (list_is_empty(&run->mode->pending)) {
        return false;
    }
    return run->returns_after_source || has_one_pending(run->mode) ? perform_one_source(loop, run) : perform_all_sources(loop, run);
}

/* ---- sources that a wait has reported ---- */

enum { no_counter = -1 };

/* Calls the source of a higher layer. Returns false if the source has declined the report (descriptor_source_decline). */
static bool call_descriptor(struct run *run)
{
    const struct ready_source *report = &run->report;
    source_function perform = source_callback(report->source, source_callback_perform);

    invariant(!run->performing && report->source);
    run->performing = report->source;
    ((void (*)(void *, CFRunLoopSourceRef, uint32_t))perform)(report->source->context_info, report->source, report->ready);
    run->performing = NULL;
    return report->ready != 0;
}

/*
 * Asks the kernel what the descriptor of a version-1 source is. The source is in a mode of the loop, so its descriptor stays the same
 * meanwhile. Loops on several threads that ask at once get the same answer. The kind of a closed descriptor stays unknown.
 */
REQUIRES(the_loop_lock) static __attribute__((noinline)) void learn_port_kind(struct source_descriptor_part *descriptor_part)
{
    enum port_kind kind = port_kind_other;

    if (!kernel.descriptor_is_open(descriptor_part->descriptor)) {
        return;
    }
    if (kernel.descriptor_kind(descriptor_part->descriptor) == kernel_descriptor_counter) {
        kind = port_kind_counter;
    }
    atomic_store_explicit(&descriptor_part->port_kind, kind, memory_order_relaxed);
}

static enum port_kind port_kind_of(const struct source_descriptor_part *descriptor_part)
{
    return (enum port_kind)atomic_load_explicit(&descriptor_part->port_kind, memory_order_relaxed);
}

/*
 * Returns false if the program had closed the source's descriptor by its first report. `*ret_counter` is the descriptor if the loop reads
 * it itself, otherwise no_counter. Both are found under the lock. Once that is dropped, another thread may give the source another
 * descriptor.
 */
REQUIRES(the_loop_lock) static bool port_is_open(CFRunLoopSourceRef source, int *ret_counter)
{
    struct source_descriptor_part *descriptor_part = source_descriptor_part(source);

    if (port_kind_of(descriptor_part) == port_kind_unknown) {
        learn_port_kind(descriptor_part);
    }
    *ret_counter = port_kind_of(descriptor_part) == port_kind_counter ? descriptor_part->descriptor : no_counter;
    return port_kind_of(descriptor_part) != port_kind_unknown;
}

/* Calls a version-1 source, after reading its counter if it has one (rule 99). Returns false if the counter was 0: a stale report. */
static bool call_port(CFRunLoopSourceRef source, int counter)
{
    source_function perform = source_callback(source, source_callback_perform);

    if (counter != no_counter) {
        int result = kernel.counter_drain(counter);

        /* A timerfd of the wall clock returns ECANCELED once after that clock was set. That is an event of its own. */
        if (result < 0 && result != -ECANCELED) {
            return false;
        }
    }
    if (perform) {
        trace_callout_begin(trace_port_source, source, perform);
        trace_note_descriptor(0, source, item_lock(source), &source_descriptor_part(source)->descriptor);
        ((void (*)(void *))perform)(source->context_info);
        trace_callout_end(trace_port_source, source);
    }
    return true;
}

bool ready_source_perform(CFRunLoopRef loop, struct run *run)
{
    CFRunLoopSourceRef source = run->report.source;
    /* An AfterWaiting observer may have taken the source out of the mode, or invalidated it (rules 15 and 88). */
    bool performed = source_is_valid(source) && source_has_joined(loop, source, run->mode);

    if (performed) {
        bool is_descriptor = source_kind(source) == source_with_descriptor;
        int counter = no_counter;
        bool is_open = is_descriptor || port_is_open(source, &counter);

        loop_unlock(loop);
        performed = is_descriptor ? call_descriptor(run) : is_open && call_port(source, counter);
        loop_lock(loop);
        run_resume(loop, run);
        if (!performed && !is_descriptor) {
            watch_recheck(run->mode, source);
        }
    }
    report_drop(loop, &run->report);
    return performed;
}
