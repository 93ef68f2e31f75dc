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

/* What few timers have; made at the first need. */
struct timer_rare {
    struct item_context *context; /* C; NULL if the context has no functions */
    CFIndex order; /* C */
    double tolerance; /* L+I (I alone while in no loop) */
    struct common_item *common; /* L+I; its place among the common items of `loop` */
};

/* Bits of the object's info; L+I (I alone while in no loop). */
enum timer_flag {
    timer_is_valid = 1,
    timer_is_redated = 2, /* a date was set during the callout */
    timer_releases_late = 4, /* invalidated during the callout, which then releases the info: by another thread, or if it keeps the info */
    timer_keeps_info = 8, /* C; until its callout has returned, also when the callout itself invalidates it */
};

/* What moving a timer touches stands together, for among very many it is in no cache. */
struct __CFRunLoopTimer {
    struct object object;
    _Atomic(CFRunLoopRef) loop; /* written under L+I; not retained: a loop that ends lets go of its timers first */
    CFRunLoopRef firing_on; /* I; the loop in whose callout it is */
    double date; /* L+I (I alone while in no loop), as the next and `members`; what GetNextFireDate says */
    int64_t fire_ns;
    struct timer_member *members;
    struct timer_member first_member; /* free while its timer is NULL */
    CFRunLoopTimerCallBack callout; /* C */
    void *context_info; /* I; NULL once invalid */
    double interval; /* C; 0: one-shot */
    CFRunLoopTimerRef firing_outer; /* L of firing_on; in whose callout, by a nested run, it is */
    _Atomic(struct timer_rare *) rare; /* written once, under I; NULL: all zero */
};

extern const struct timer_rare timer_nothing_rare;

/*
 * Has the processor fetch a timer that may be one of very many, while there is something else to do. NULL and what is no timer are as good.
 * Always inline, because gcc takes out calls of a function that only fetches ahead.
 */
static inline __attribute__((always_inline)) void timer_fetch(const struct __CFRunLoopTimer *timer)
{
    __builtin_prefetch(timer);
    __builtin_prefetch((const char *)timer + cache_line);
    __builtin_prefetch((const char *)timer + sizeof *timer - 1);
}

static inline bool timer_has(const struct __CFRunLoopTimer *timer, enum timer_flag flag)
{
    return (timer->object.info & (uint32_t)flag) != 0;
}

static inline void timer_set(CFRunLoopTimerRef timer, enum timer_flag flag, bool is_set)
{
    timer->object.info = (timer->object.info & ~(uint32_t)flag) | (is_set ? (uint32_t)flag : 0u);
}

static inline const struct timer_rare *timer_rare(const struct __CFRunLoopTimer *timer)
{
    const struct timer_rare *rare = atomic_load_explicit(&timer->rare, memory_order_acquire);

    return rare ? rare : &timer_nothing_rare;
}

extern const struct object_class timer_class;

/* NULL if there is no memory. */
CFRunLoopTimerRef run_loop_timer_create(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFIndex order,
                                        CFRunLoopTimerCallBack callout, const CFRunLoopTimerContext *context);

/* For its maker: a context that has no means to keep its info alive during the callout is released after it. */
void timer_keep_info(CFRunLoopTimerRef timer);
void timer_add(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
void timer_remove(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
bool timer_is_in(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
void timer_invalidate(CFRunLoopTimerRef timer);
/* `fire_ns` is the instant of `date`. */
void timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t fire_ns);
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
