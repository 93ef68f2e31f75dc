/* SPDX-License-Identifier: Apache-2.0 */
/* Which timers are due, when to wake for them, and their callouts. */
#include "Loop/timer_firing.h"

#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Loop/activation.h"
#include "Loop/held.h"
#include "Loop/instant.h"
#include "Loop/thread_loop.h"
#include "Loop/timer_membership.h"

/* A due timer in the snapshot of a pass. */
struct timer_entry {
    CFRunLoopTimerRef timer; /* with a reference */
    int64_t key;
    uint64_t sequence; /* of the date that is due */
    uint32_t next; /* the entry whose turn is after this one's, or no_entry */
};

static const uint32_t no_entry = UINT32_MAX;

/* What one pass has found due; on its stack. Every timer stays in its heaps until its turn, so that a nested run meets it there. */
struct timer_batch {
    struct timer_entry *entries;
    uint32_t count;
    uint32_t capacity;
    bool is_cut; /* there was no memory for more: the rest stays due */
    struct timer_entry first_entries[8];
};

static CFRunLoopTimerRef timer_of_entry(const struct heap_entry *entry)
{
    return timer_of_node(entry->node);
}

static int64_t limit_of_entry(const struct heap_entry *entry)
{
    const struct __CFRunLoopTimer *timer = timer_of_entry(entry);
    double tolerance = timer_rare(timer)->tolerance;

    return tolerance > 0 ? instant_add(timer->fire_ns, instant_interval_ns(tolerance)) : timer->fire_ns;
}

int64_t timers_limit(struct mode *mode)
{
    enum { most_nodes = 32 };
    const struct heap *heap = &mode->timers;
    uint32_t open[most_nodes * heap_arity + 1];
    uint32_t open_count = 0;
    int64_t best = kernel_never;

    if (heap->count == 0) {
        return kernel_never;
    }
    timers_settle(mode);
    if (mode->tolerant_count == 0) {
        return heap->entries[0].key;
    }
    /* The earliest of (date + tolerance). A node later than the best limit so far cannot lower it, nor can what stands below it. */
    open[open_count++] = 0;
    for (uint32_t visited = 0; open_count > 0; visited++) {
        uint32_t index = open[--open_count];
        const struct heap_entry *entry = &heap->entries[index];
        uint64_t child = (uint64_t)index * heap_arity + 1;

        if (entry->key >= best) {
            continue;
        }
        if (visited >= most_nodes) {
            best = entry->key; /* unexplored: its bare date is a safe bound for all below it */
            continue;
        }
        best = limit_of_entry(entry) < best ? limit_of_entry(entry) : best;
        for (uint32_t i = 0; i < heap_arity && child + i < heap->count; i++) {
            open[open_count++] = (uint32_t)child + i;
        }
    }
    return best;
}

/* False if there is no memory for more. */
static bool batch_grow(struct timer_batch *batch)
{
    const uint32_t growth = 16; /* times: what has been found is copied each time */
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

static uint32_t batch_append(struct timer_batch *batch, const struct heap_entry *due)
{
    CFRunLoopTimerRef timer = timer_of_entry(due);

    if (batch->is_cut || (batch->count == batch->capacity && !batch_grow(batch))) {
        batch->is_cut = true;
        return no_entry;
    }
    object_retain(timer);
    batch->entries[batch->count] = (struct timer_entry){timer, timer->fire_ns, due->node->sequence, no_entry};
    return batch->count++;
}

static bool is_before(const struct timer_entry *one, const struct timer_entry *other)
{
    if (__builtin_expect(one->key == other->key, 0)) {
        return one->sequence < other->sequence;
    }
    return one->key < other->key;
}

/* Both in order already; either may be no_entry. Without branches on the order, which no processor can foresee. */
static uint32_t merge(struct timer_entry *entries, uint32_t one, uint32_t other)
{
    uint32_t first = no_entry;
    uint32_t *place = &first;

    while (one != no_entry && other != no_entry) {
        bool is_one = is_before(&entries[one], &entries[other]);
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

/* It stands in the heap for a date that has come, and has a later one by now, which has not. */
static bool is_put_off(const struct heap_entry *entry, int64_t now_ns)
{
    return timer_node_is_deferred(entry->node) && timer_of_entry(entry)->fire_ns > now_ns;
}

static void free_entries(const void *entries)
{
    free((void *)(uintptr_t)entries);
}

/* All that is due below and at `index`, in order; what stands there for a date to come has nothing due below it. Returns the first. */
static uint32_t batch_collect(struct timer_batch *batch, const struct heap *heap, uint64_t index, int64_t now_ns)
{
    uint64_t child = index * heap_arity + 1;
    uint32_t below[heap_arity];
    uint32_t one = no_entry;

    if (index >= heap->count || heap->entries[index].key > now_ns || batch->is_cut) {
        return no_entry;
    }
    if (!is_put_off(&heap->entries[index], now_ns)) {
        one = batch_append(batch, &heap->entries[index]);
    }
    for (uint64_t i = 0; i < heap_arity; i++) {
        below[i] = batch_collect(batch, heap, child + i, now_ns);
    }
    return merge(batch->entries, one, /* a deferred one need not come before what stands below it */
                 merge(batch->entries, merge(batch->entries, below[0], below[1]), merge(batch->entries, below[2], below[3])));
}

/*
 * Its turn has come, and it is still due in this loop and mode (132): for the date that was found, or for another that has come since. L.
 */
static bool may_fire(CFRunLoopRef loop, const struct mode *mode, const struct timer_entry *entry)
{
    CFRunLoopTimerRef timer = entry->timer;
    const struct timer_member *member = NULL;

    if (timer_loop(timer) == loop && timer_has(timer, timer_is_valid) && !timer_has(timer, timer_is_firing)) {
        member = timer_member_in(timer, mode);
    }
    return member && (member->node.sequence == entry->sequence || timer->fire_ns <= kernel.monotonic_ns());
}

/* What a callout needs. */
struct timer_call {
    CFRunLoopTimerRef timer;
    const struct item_context *context; /* NULL: no functions */
    void *info;
};

/* Its turn has come. False if it is not to fire. L. */
static bool begin_firing(CFRunLoopRef loop, const struct mode *mode, const struct timer_entry *entry, struct timer_call *ret_call)
{
    CFRunLoopTimerRef timer = entry->timer;

    if (!may_fire(loop, mode, entry)) {
        *ret_call = (struct timer_call){0}; /* which some compilers take for looked at */
        return false;
    }
    for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
        timer_member_unqueue(member);
    }
    timer_set(timer, timer_is_firing, true);
    timer_set(timer, timer_is_redated, false);
    timer_set_outer(timer, loop->firing);
    loop->firing = timer;
    *ret_call = (struct timer_call){timer, timer_rare(timer)->context, *timer_info(timer)};
    return true;
}

/* The first date of the series that is strictly later than now (118), by division (120). */
static void advance_date(CFRunLoopTimerRef timer)
{
    int64_t interval_ns = instant_interval_ns(timer->interval);
    int64_t now_ns = kernel.monotonic_ns();
    int64_t periods = now_ns > timer->fire_ns ? (now_ns - timer->fire_ns) / interval_ns + 1 : 1;

    timer->fire_ns = periods > INT64_MAX / interval_ns ? kernel_never : instant_add(timer->fire_ns, periods * interval_ns);
    timer->date = date_of_instant(timer->fire_ns);
}

/* Takes the timer from the loop's callouts, and its home's lock: not always that of the loop it fired on, for the callout may have moved
 * it. */
static CFRunLoopRef lock_after_firing(CFRunLoopRef fired_on, CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = timer_lock_home(timer);

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

/* Its next date, or its end if it fires once (118, 124). H. */
static struct timer_farewell settle_after_firing(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    void **info = timer_info(timer);
    struct timer_farewell farewell = {
        .releases_info = timer_has(timer, timer_releases_late), .context = timer_rare(timer)->context, .info = *info};

    timer_set(timer, timer_is_firing, false);
    timer_set(timer, timer_releases_late, false);
    if (farewell.releases_info) {
        *info = NULL;
    }
    if (!timer_has(timer, timer_is_valid)) {
        return farewell;
    }
    if (timer->interval == 0) {
        return timer_make_invalid(timer);
    }
    if (!timer_has(timer, timer_is_redated)) {
        advance_date(timer);
    }
    if (loop) {
        timer_reschedule(loop, timer);
    }
    return farewell;
}

static struct timer_farewell end_firing(CFRunLoopRef fired_on, CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = lock_after_firing(fired_on, timer);
    struct timer_farewell farewell = settle_after_firing(loop, timer);

    timer_unlock_home(timer, loop);
    return farewell;
}

void timers_end_callouts(CFRunLoopRef loop, bool releases)
{
    while (loop->firing) {
        CFRunLoopTimerRef timer = loop->firing; /* kept by the reference of the pass that is gone */
        struct timer_farewell farewell = end_firing(loop, timer);

        if (releases) {
            timer_bid_farewell(timer, &farewell);
        }
    }
}

/* It is in no callout any more, to which it would return: as if it had. */
static void let_go_of_timer(const void *reference)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)reference;
    CFRunLoopRef loop = thread_loop_if_any();

    if (loop && loop->firing == timer) {
        struct timer_farewell farewell = end_firing(loop, timer);

        timer_bid_farewell(timer, &farewell);
    }
    object_release(timer);
}

/* The callback, for which the info was retained. */
static __attribute__((noinline)) void call_back(CFRunLoopRef loop, CFRunLoopTimerRef timer, const struct item_context *context, void *info)
{
    uint32_t end = context->release ? held_hold(loop, context->release, info) : 0;

    if (timer->callout) {
        timer->callout(timer, info);
    }
    held_let_go(loop, end);
}

/* The timers of runs inside the callout come out of theirs before this one does. */
static __attribute__((noinline, cold)) void end_left_runs(CFRunLoopRef loop, const struct activation *run)
{
    loop_lock(loop);
    run_resume(loop, run);
    loop_unlock(loop);
}

/* One callout, bracketed by the context's retain and release (135). No lock is held. */
static inline __attribute__((always_inline)) void call_out(CFRunLoopRef loop, const struct activation *run, const struct timer_call *call)
{
    const struct item_context *context = call->context;
    void *info = call->info; /* still ours: an invalidation from now on leaves its release to end_firing, or is made by this thread */
    struct timer_farewell farewell;

    if (context && context->retain) {
        info = (void *)(uintptr_t)context->retain(info);
        call_back(loop, call->timer, context, info);
    } else if (call->timer->callout) {
        call->timer->callout(call->timer, info);
    }
    if (__builtin_expect(loop->activation != run, 0)) {
        end_left_runs(loop, run);
    }
    farewell = end_firing(loop, call->timer);
    timer_bid_farewell(call->timer, &farewell);
    if (context && context->retain && context->release) {
        context->release(info);
    }
}

/* Every timer of a batch of several, and its memory. Returns for how many timers there was memory. */
static uint32_t hold_batch(CFRunLoopRef loop, const struct timer_batch *batch)
{
    if (!held_reserve(loop, batch->count + 1)) {
        return 0;
    }
    if (batch->entries != batch->first_entries) {
        (void)held_push(loop, free_entries, batch->entries);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        loop->held.items[loop->held.count++] = (struct held){let_go_of_timer, batch->entries[i].timer};
    }
    return batch->count;
}

/* From the turn of one timer to that of the last. */
static void take_turns(CFRunLoopRef loop, struct activation *run, const struct timer_batch *batch, uint32_t turn)
{
    uint32_t height = loop->held.count;
    uint32_t held = batch->count > 1 ? hold_batch(loop, batch) : 0;
    uint32_t end = loop->held.count;
    uint32_t first = end - held;

    if (held == 0) {
        held_in_hand(run, let_go_of_timer, batch->entries[turn].timer); /* without memory for several, the first has to do */
    }
    while (turn != no_entry) {
        const struct timer_entry *entry = &batch->entries[turn];
        struct timer_call call;
        bool fires = begin_firing(loop, run->mode, entry, &call);

        loop_unlock(loop);
        if (fires) {
            call_out(loop, run, &call);
        }
        if (held > 0) {
            held_take(loop, first + turn);
        } else {
            held_put_down(run);
        }
        object_release(entry->timer);
        loop_lock(loop);
        turn = entry->next;
    }
    held_cut(loop, height, end);
}

void timers_fire(CFRunLoopRef loop, struct activation *run, int64_t now_ns)
{
    struct timer_batch batch = {.capacity = sizeof batch.first_entries / sizeof batch.first_entries[0]};
    uint32_t turn;

    batch.entries = batch.first_entries;
    timers_settle(run->mode); /* observers may have given timers other dates since they were found due */
    turn = batch_collect(&batch, &run->mode->timers, 0, now_ns);
    if (turn != no_entry) {
        take_turns(loop, run, &batch, turn);
    }
    if (batch.entries != batch.first_entries) {
        free(batch.entries);
    }
}

CFRunLoopTimerRef timers_next(CFRunLoopRef loop, struct mode *mode)
{
    CFRunLoopTimerRef earliest;

    timers_settle(mode);
    earliest = mode->timers.count > 0 ? timer_of_entry(&mode->timers.entries[0]) : NULL;
    /* A timer in callout counts with the date that has come (123), which is earlier than any that came after it at the same instant. */
    for (CFRunLoopTimerRef timer = loop->firing; timer; timer = timer_outer(timer)) {
        if (timer_loop(timer) == loop && timer_has(timer, timer_is_valid) && timer_member_in(timer, mode) &&
            (!earliest || timer->fire_ns <= earliest->fire_ns)) {
            earliest = timer;
        }
    }
    return earliest;
}
