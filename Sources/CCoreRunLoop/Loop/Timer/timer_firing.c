/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callouts of timers. A pass takes a snapshot of the timers that are due, in order of date, and fires them one after the other. The
 * loop's thread does this; it holds the loop's lock except during callouts. `loop->firing` lists the timers in callout, innermost first.
 */
#include "Loop/Timer/timer_firing.h"

#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/instant.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Timer/timer_membership.h"
#include "Loop/Trace/trace.h"

/* A due timer in the snapshot of a pass. */
struct timer_entry {
    CFRunLoopTimerRef timer; /* with a reference */
    int64_t key;
    uint64_t sequence; /* belongs to the date that is due: a new date has another number */
    uint32_t next; /* the entry to fire after this one, or no_entry */
};

static const uint32_t no_entry = UINT32_MAX;

/* The timers that one pass has found due; on its stack. Each stays in its heaps until its turn, so that a nested run can fire it. */
struct timer_batch {
    struct timer_entry *entries;
    uint32_t count;
    uint32_t capacity;
    bool is_cut; /* there was no memory for more entries: the other timers stay due for the next pass */
    struct timer_entry first_entries[8];
};

static CFRunLoopTimerRef timer_of_entry(const struct heap_entry *entry)
{
    return timer_of_node(entry->node);
}

/* Makes room for more entries. Returns false if there is no memory. */
static bool batch_grow(struct timer_batch *batch)
{
    const uint32_t growth = 16; /* a large factor, because each growth copies the entries */
    struct timer_entry *grown = malloc((size_t)batch->capacity * growth * sizeof *grown);

    if (!grown) {
        return false;
    }
    memcpy(grown, batch->entries, batch->count * sizeof *grown);
    if (batch->entries != batch->first_entries) {
        free(batch->entries);
    }
    batch->entries = grown;
    batch->capacity *= growth;
    return true;
}

/* Appends a due timer with a reference. Returns its entry, or no_entry if there is no memory. */
static uint32_t batch_append(struct timer_batch *batch, const struct heap_entry *due)
{
    CFRunLoopTimerRef timer = timer_of_entry(due);

    invariant(!batch->is_cut); /* the collection has ended there */
    if (batch->count == batch->capacity && !batch_grow(batch)) {
        batch->is_cut = true;
        return no_entry;
    }
    object_retain(timer);
    batch->entries[batch->count] = (struct timer_entry){timer, timer->fire_ns, due->node->sequence, no_entry};
    return batch->count++;
}

/* Returns true if `one` fires before `other`: by date, then by the order in which the dates were set. */
static bool entry_is_before(const struct timer_entry *one, const struct timer_entry *other)
{
    if (__builtin_expect(one->key == other->key, 0)) {
        return one->sequence < other->sequence;
    }
    return one->key < other->key;
}

/* Merges two sorted chains of entries, either of which may be no_entry. No branch depends on the order, which cannot be predicted. */
static uint32_t entries_merge(struct timer_entry *entries, uint32_t one, uint32_t other)
{
    uint32_t first = no_entry;
    uint32_t *place = &first;

    while (one != no_entry && other != no_entry) {
        bool is_one = entry_is_before(&entries[one], &entries[other]);
        uint32_t taken = is_one ? one : other;
        uint32_t after = entries[taken].next;

        *place = taken;
        place = &entries[taken].next;
        one = is_one ? after : one;
        other = is_one ? other : after;
    }
    *place = one != no_entry ? one : other;
    return first;
}

/* Returns true if only the early key of the timer is due: its date is later than now. */
static bool only_key_is_due(const struct heap_entry *entry, int64_t now_ns)
{
    return timer_key_is_early(entry->node) && timer_of_entry(entry)->fire_ns > now_ns;
}

static void free_entries(const void *entries)
{
    free((void *)(uintptr_t)entries);
}

/* Collects the due timers at `index` and below it, in order, and returns the first. An entry that is not due has none below it that is. */
static uint32_t batch_collect(struct timer_batch *batch, const struct heap *heap, uint64_t index, int64_t now_ns)
{
    uint64_t child = index * heap_arity + 1;
    uint32_t below[heap_arity];
    uint32_t one = no_entry;

    if (index >= heap->count || heap->block->entries[index].key > now_ns || batch->is_cut) {
        return no_entry;
    }
    if (!only_key_is_due(&heap->block->entries[index], now_ns)) {
        one = batch_append(batch, &heap->block->entries[index]);
    }
    for (uint64_t i = 0; i < heap_arity; i++) {
        below[i] = batch_collect(batch, heap, child + i, now_ns);
    }
    /* `one` is merged, too: with an early key its date may be later than the dates below it. */
    return entries_merge(batch->entries, one,
                         entries_merge(batch->entries, entries_merge(batch->entries, below[0], below[1]),
                                       entries_merge(batch->entries, below[2], below[3])));
}

/*
 * Returns true if the timer may still fire now that its turn has come. An earlier callout of the pass may have invalidated it, moved it or
 * given it another date (rule 132). A new date counts if it is due as well. The loop's lock is held.
 */
static bool may_fire(CFRunLoopRef loop, const struct mode *mode, const struct timer_entry *entry)
{
    CFRunLoopTimerRef timer = entry->timer;
    const struct timer_member *member = NULL;

    if (timer_loop(timer) == loop) {
        invariant(timer_has(timer, timer_is_valid)); /* an invalid timer has no loop */
        invariant(!timer_has(timer, timer_is_firing)); /* its callout would be around this pass, which would not have collected it */
        member = timer_member_in(timer, mode);
    }
    return member && (member->node.sequence == entry->sequence || timer->fire_ns <= kernel.elapsed_ns());
}

/* The fields that a callout reads, copied under the lock. */
struct timer_call {
    CFRunLoopTimerRef timer;
    const struct context *context; /* NULL: no functions */
    void *info;
};

/* Traces count on the monotonic clock: writes when it showed, or would have shown, the timer's instant. */
REQUIRES(the_loop_lock) static __attribute__((cold)) void trace_due(CFRunLoopTimerRef timer)
{
    int64_t late_ns = kernel.elapsed_ns() - timer->fire_ns;

    trace_write(trace_timer_is_due, 0, (uintptr_t)timer, (uint64_t)(kernel.monotonic_ns() - late_ns));
}

/* Takes a timer out of its heaps and makes it FIRING. Returns false if it must not fire. */
REQUIRES(the_loop_lock)
static bool begin_firing(CFRunLoopRef loop, const struct mode *mode, const struct timer_entry *entry, struct timer_call *ret_call)
{
    CFRunLoopTimerRef timer = entry->timer;

    if (!may_fire(loop, mode, entry)) {
        *ret_call = (struct timer_call){0}; /* some compilers warn that it may be read uninitialised */
        return false;
    }
    for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
        invariant(heap_contains(&member->node)); /* SCHEDULED: in the heaps of all its modes */
        timer_member_unqueue(member);
    }
    invariant(timer_has(timer, timer_is_valid));
    invariant(!timer_has(timer, timer_is_firing));
    timer_set(timer, timer_is_firing, true);
    timer_set(timer, timer_is_redated, false);
    timer_set_outer(timer, loop->firing);
    loop->firing = timer;
    if (trace_is_on()) {
        trace_due(timer);
    }
    *ret_call = (struct timer_call){timer, timer_extra(timer)->context, *timer_info(timer)};
    return true;
}

/* Sets the first date of the series that is later than now (rule 118), by one division however many were missed (rule 120). */
static void advance_date(CFRunLoopTimerRef timer)
{
    int64_t interval_ns = instant_interval_ns(timer->interval);
    int64_t now_ns = kernel.elapsed_ns();
    int64_t periods = now_ns > timer->fire_ns ? (now_ns - timer->fire_ns) / interval_ns + 1 : 1;

    invariant(timer->interval > 0);
    invariant(interval_ns > 0);
    invariant(periods > 0);
    timer->fire_ns = periods > INT64_MAX / interval_ns ? kernel_never : instant_add(timer->fire_ns, periods * interval_ns);
    timer->date = date_of_instant(timer->fire_ns);
}

/*
 * Takes the home lock, and takes the timer off the loop's list of timers in callout. The home lock need not be the lock of the loop that
 * the timer fired on, because the callout may have moved the timer. Not checked for guards: clang cannot tell the two locks apart.
 */
NOT_CHECKED static CFRunLoopRef lock_after_firing(CFRunLoopRef fired_on, CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = timer_lock_home(timer);

    invariant(fired_on->firing == timer); /* inner callouts have ended before this one */
    if (loop != fired_on) {
        timer_unlock_home(timer, loop);
        loop_lock(fired_on);
        fired_on->firing = timer_outer(timer);
        loop_unlock(fired_on);
        return timer_lock_home(timer);
    }
    fired_on->firing = timer_outer(timer);
    return loop;
}

/*
 * Ends the state FIRING: gives a repeating timer its next date, and invalidates a timer that fires once (rules 118 and 124). The home lock
 * is held; it is the lock of `loop` unless that is NULL, which clang cannot follow.
 */
NOT_CHECKED static struct timer_teardown settle_after_firing(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    void **info = timer_info(timer);
    struct timer_teardown teardown = {
        .releases_info = timer_has(timer, timer_releases_late), .context = timer_extra(timer)->context, .info = *info};

    invariant(timer_has(timer, timer_is_firing));
    invariant(timer_loop(timer) == loop);
    timer_set(timer, timer_is_firing, false);
    timer_set(timer, timer_releases_late, false);
    if (teardown.releases_info) {
        *info = NULL;
    }
    if (!timer_has(timer, timer_is_valid)) {
        return teardown;
    }
    if (timer->interval == 0) {
        return timer_make_invalid(timer);
    }
    if (!timer_has(timer, timer_is_redated)) {
        advance_date(timer);
    }
    if (loop) {
        timer_reschedule(loop, timer);
        timer_keep_to_wall(loop, timer);
    }
    return teardown;
}

static struct timer_teardown end_firing(CFRunLoopRef fired_on, CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = lock_after_firing(fired_on, timer);
    struct timer_teardown teardown = settle_after_firing(loop, timer);

    timer_unlock_home(timer, loop);
    return teardown;
}

void timers_end_callouts(CFRunLoopRef loop, bool releases)
{
    while (loop->firing) {
        CFRunLoopTimerRef timer = loop->firing; /* the pass that has gone left its reference, which keeps the timer alive */
        struct timer_teardown teardown = end_firing(loop, timer);

        if (releases) {
            timer_finish_teardown(timer, &teardown);
        }
    }
}

/* Clean-up for a timer whose callout did not return: ends the callout as if it had, and drops the reference of the pass. */
static void end_left_firing(const void *reference)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)reference;
    CFRunLoopRef loop = thread_loop_if_any();

    if (loop && loop->firing == timer) {
        struct timer_teardown teardown = end_firing(loop, timer);

        timer_finish_teardown(timer, &teardown);
    }
    object_release(timer);
}

/* Calls the callback with an info that was retained for it. A clean-up releases the info if the callback does not return. */
static __attribute__((noinline)) void call_back(CFRunLoopRef loop, CFRunLoopTimerRef timer, const struct context *context, void *info)
{
    uint32_t mark = context->release ? cleanup_push(loop, context->release, info) : 0;

    if (timer->callout) {
        timer->callout(timer, info);
    }
    cleanup_pop(loop, mark);
}

/* Ends runs that were left inside the callout. Their timers come off the list of timers in callout before this one does. */
static __attribute__((noinline, cold)) void end_left_runs(CFRunLoopRef loop, const struct run *run)
{
    loop_lock(loop);
    run_resume(loop, run);
    loop_unlock(loop);
}

/* Makes one callout. The context's retain and release are called before and after it (rule 135). No lock is held. */
static inline __attribute__((always_inline)) void call_out(CFRunLoopRef loop, const struct run *run, const struct timer_call *call)
{
    const struct context *context = call->context;
    void *info = call->info; /* still alive: another thread that invalidates the timer leaves the release to end_firing */
    struct timer_teardown teardown;

    trace_callout_begin(trace_timer, call->timer, (void (*)(void))call->timer->callout);
    if (context && context->retain) {
        info = (void *)(uintptr_t)context->retain(info);
        call_back(loop, call->timer, context, info);
    } else if (call->timer->callout) {
        call->timer->callout(call->timer, info);
    }
    trace_callout_end(trace_timer, call->timer);
    if (__builtin_expect(loop->innermost_run != run, 0)) {
        end_left_runs(loop, run);
    }
    teardown = end_firing(loop, call->timer);
    timer_finish_teardown(call->timer, &teardown);
    if (context && context->retain && context->release) {
        context->release(info);
    }
}

/* Pushes a clean-up for each timer of the batch and for its memory. Returns false, having pushed none, if there is no memory. */
static bool batch_push_cleanups(CFRunLoopRef loop, const struct timer_batch *batch)
{
    if (!cleanup_reserve(loop, batch->count + 1)) {
        return false;
    }
    if (batch->entries != batch->first_entries) {
        (void)cleanup_push(loop, free_entries, batch->entries);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        (void)cleanup_push(loop, end_left_firing, batch->entries[i].timer);
    }
    return true;
}

/* Fires the timers of a batch one after the other, from the entry `turn`. Each clean-up is disarmed once its timer has had its turn. */
REQUIRES(the_loop_lock) static void fire_batch(CFRunLoopRef loop, struct run *run, const struct timer_batch *batch, uint32_t turn)
{
    uint32_t height = loop->cleanups.count;
    bool is_kept = batch_push_cleanups(loop, batch);
    uint32_t end = loop->cleanups.count;
    uint32_t first = end - batch->count;

    while (turn != no_entry) {
        const struct timer_entry *entry = &batch->entries[turn];
        struct timer_call call;
        bool fires = begin_firing(loop, run->mode, entry, &call);

        loop_unlock(loop);
        if (fires) {
            call_out(loop, run, &call);
        }
        if (is_kept) {
            cleanup_disarm(loop, first + turn);
        }
        object_release(entry->timer);
        loop_lock(loop);
        turn = entry->next;
    }
    cleanup_pop_locked(loop, height, end);
}

void timers_fire(CFRunLoopRef loop, struct run *run, int64_t now_ns)
{
    struct timer_batch batch = {.capacity = sizeof batch.first_entries / sizeof batch.first_entries[0]};
    uint32_t turn;

    invariant_held(&loop->lock);
    batch.entries = batch.first_entries;
    timers_apply_new_dates(run->mode); /* observers may have given timers other dates since they were found due */
    turn = batch_collect(&batch, &run->mode->timers, 0, now_ns);
    if (turn != no_entry) {
        fire_batch(loop, run, &batch, turn);
    }
    if (batch.entries != batch.first_entries) {
        free(batch.entries);
    }
}

CFRunLoopTimerRef timers_next(CFRunLoopRef loop, struct mode *mode)
{
    CFRunLoopTimerRef earliest;

    timers_apply_new_dates(mode);
    earliest = mode->timers.count > 0 ? timer_of_entry(&mode->timers.block->entries[0]) : NULL;
    /* A timer in callout counts with the date that is being served (rule 123), which is in no heap. It wins against an equal date. */
    for (CFRunLoopTimerRef timer = loop->firing; timer; timer = timer_outer(timer)) {
        if (timer_loop(timer) == loop && timer_has(timer, timer_is_valid) && timer_member_in(timer, mode) &&
            (!earliest || timer->fire_ns <= earliest->fire_ns)) {
            earliest = timer;
        }
    }
    return earliest;
}
