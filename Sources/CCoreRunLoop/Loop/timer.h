/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: their dates, their places in the heaps of modes, and their life.
 *
 *   FREE       in no loop (a timer among a loop's common items is in that loop, even while in none of its modes)
 *   SCHEDULED  in the heaps of all its modes
 *   FIRING     in callout, out of every heap
 *
 *   FREE -> SCHEDULED [timer_add]   SCHEDULED -> FIRING [timer_firing.c]   FIRING -> SCHEDULED, with the next date of its series
 *   [timer_firing.c]
 *   any -> FREE, invalid [timer_invalidate; a one-shot that has fired]
 *
 * A new date gives a new sequence number, so that the entry of a snapshot taken before no longer matches.
 */
#ifndef CRL_LOOP_TIMER_H
#define CRL_LOOP_TIMER_H

#include "Support/link_names.h"

#include "Loop/item.h"

struct timer_member {
    CFRunLoopTimerRef timer; /* C */
    struct mode *mode; /* C */
    struct timer_member *next; /* L */
    struct heap_node node; /* L; its sequence is that of the timer's date */
};

struct __CFRunLoopTimer {
    struct object object;
    CFRunLoopTimerCallBack callout; /* C */
    void *context_info; /* I; NULL once invalid */
    struct item_context *context; /* C; NULL if the context has no functions */
    _Atomic(CFRunLoopRef) loop; /* written under L+I; not retained: a loop that ends lets go of its timers first */
    CFRunLoopRef firing_on; /* I; the loop in whose callout it is */
    CFRunLoopTimerRef firing_outer; /* L of firing_on; in whose callout, by a nested run, it is */
    double date; /* L+I (I alone while in no loop), as all below; what GetNextFireDate says */
    int64_t fire_ns;
    double interval; /* C; 0: one-shot */
    double tolerance;
    CFIndex order; /* C */
    struct timer_member first_member; /* free while its timer is NULL */
    struct timer_member *members;
    bool is_valid;
    bool is_redated; /* a date was set during the callout */
    bool releases_late; /* invalidated by another thread during the callout, which then releases the info */
    struct common_item *common; /* its place among the common items of `loop` */
};

extern const struct object_class timer_class;

/* NULL if there is no memory. */
CFRunLoopTimerRef run_loop_timer_create(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFIndex order,
                                        CFRunLoopTimerCallBack callout, const CFRunLoopTimerContext *context);

void timer_add(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
void timer_remove(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
bool timer_is_in(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
void timer_invalidate(CFRunLoopTimerRef timer);
void timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date);
CFAbsoluteTime timer_date(CFRunLoopTimerRef timer);
void timer_set_tolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance);
/* Adds every common timer to a mode that has just become common. */
void timers_join_common_mode(CFRunLoopRef loop, struct mode *mode);
/* Lets go of every timer of a loop whose thread ends. */
void timers_remove_all(CFRunLoopRef loop);

/* ---- shared with timer_firing.c; L of its loop, if it is in one, and I ---- */

static inline CFRunLoopRef timer_loop(CFRunLoopTimerRef timer)
{
    return atomic_load_explicit(&timer->loop, memory_order_relaxed);
}

struct timer_member *timer_member_in(CFRunLoopTimerRef timer, const struct mode *mode);

/* Puts a new date into every heap, and the timer too if it was in callout. */
void timer_reschedule(CFRunLoopRef loop, CFRunLoopTimerRef timer);

/* What is left to do once the locks are dropped. */
struct timer_farewell {
    bool releases_info;
    bool has_left_loop;
    void *info;
};

/* Makes the timer invalid; its info is released by the caller, or by the callout that is under way on another thread. */
struct timer_farewell timer_make_invalid(CFRunLoopTimerRef timer);

/* No lock is held. */
void timer_bid_farewell(CFRunLoopTimerRef timer, const struct timer_farewell *farewell);

#endif
