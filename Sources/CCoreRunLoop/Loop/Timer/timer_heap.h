/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timers of a mode, in a heap by date, and a timer's members in the heaps of its modes. The loop's lock guards the heaps.
 */
#ifndef CRL_LOOP_TIMER_TIMER_HEAP_H
#define CRL_LOOP_TIMER_TIMER_HEAP_H

#include "Loop/link_names.h"

#include "Loop/Timer/timer.h"

/*
 * Walks a timer's members: returns the first one for NULL, and the one after `member` otherwise. Returns NULL after the last. Home lock.
 */
static inline struct timer_member *timer_next_member(const struct __CFRunLoopTimer *timer, const struct timer_member *member)
{
    struct timer_member *first = (struct timer_member *)(uintptr_t)&timer->first_member;
    struct timer_further_member *further;

    if (!member && first->mode) {
        return first;
    }
    further = member && member != first ? container_of(member, struct timer_further_member, member)->next : timer_extra(timer)->further;
    return further ? &further->member : NULL;
}

/* Returns the timer's member in `mode`, or NULL. Home lock. */
struct timer_member *timer_member_in(CFRunLoopTimerRef timer, const struct mode *mode);
CFRunLoopTimerRef timer_of_node(const struct heap_node *node);

/* Returns true if the key in the heap may be earlier than the timer's date. */
static inline bool timer_key_is_early(const struct heap_node *node)
{
    return (node->tag & (uint32_t)timer_member_key_is_early) != 0;
}

/* Brings the heap of the member's mode in line with a date that has changed from `old_ns` to `fire_ns`. */
REQUIRES(the_loop_lock) void timer_member_redate(struct timer_member *member, int64_t old_ns, int64_t fire_ns);

/* Takes a member out of its mode's heap. It must be in there. */
REQUIRES(the_loop_lock) void timer_member_unqueue(struct timer_member *member);

/* Continues timers_apply_new_dates for a mode with early keys. */
REQUIRES(the_loop_lock) void timers_move_early_keys(struct mode *mode);

/* Makes the top of the heap the earliest timer of the mode, with its date as the key. */
REQUIRES(the_loop_lock) static inline void timers_apply_new_dates(struct mode *mode)
{
    invariant(mode->early_key_count <= mode->timers.count);
    if (mode->early_key_count > 0) {
        timers_move_early_keys(mode);
    }
}

/* Returns true if the earliest date of the mode is not later than `now_ns`. */
REQUIRES(the_loop_lock) static inline bool timers_are_due(struct mode *mode, int64_t now_ns)
{
    if (mode->timers.count == 0 || mode->timers.block->entries[0].key > now_ns) {
        return false; /* keys are never later than dates, so this needs no new dates */
    }
    timers_apply_new_dates(mode);
    return mode->timers.block->entries[0].key <= now_ns;
}

/* Returns the latest instant at which to wake for the mode's timers, tolerances included; kernel_never if it has none. */
REQUIRES(the_loop_lock) int64_t timers_limit(struct mode *mode);

/* Retimes the loop if it sleeps in this mode and would wake later than the mode's timers allow (invariant I5 of loop.h). */
REQUIRES(the_loop_lock) static inline void timers_notice_earlier(CFRunLoopRef loop, struct mode *mode)
{
    invariant_held(&loop->lock);
    if (mode_is_waited_on(loop, mode) && timers_limit(mode) < loop->sleep_timers_ns) {
        waker_retime(loop->waker);
    }
}

#endif
