/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: their dates, their places in the heaps of modes, and their states.
 *
 *   FREE       in no loop (a timer among a loop's common items is in that loop, even while in none of its modes)
 *   SCHEDULED  in the heaps of all its modes
 *   FIRING     in callout, and in no heap; only a mode that the timer joins during the callout has it in its heap, behind all others
 *
 *   FREE -> SCHEDULED      timer_add
 *   SCHEDULED -> FIRING    begin_firing
 *   FIRING -> SCHEDULED    end_firing, with the next date of its series
 *   any -> FREE, invalid   timer_invalidate, or end_firing of a timer that fires once
 *
 * A new date gives a new sequence number, so that the entry of a snapshot taken before no longer matches.
 *
 * A timer that gets a later date stays where it is in the heap. Its key there is then an early key: a lower bound of its date. The timer
 * moves only when it is on top and somebody asks for the earliest timer (timers_apply_new_dates). So a timeout that is postponed again and
 * again pays for one move at most. An earlier date moves the timer at once, unless its key is early enough already.
 *
 * The home lock of a timer guards it: the lock of the loop that it is in, or the item lock of the timer while it is in no loop. A timer
 * joins a loop under that loop's lock alone, by a compare-and-swap that finds it in no loop. It leaves under the loop's lock alone, by the
 * last store that is made under the lock. Whoever holds the item lock has claimed the timer by the same compare-and-swap, with
 * timer_claimed in the place of the loop, so that the timer joins no loop meanwhile.
 */
#ifndef CRL_LOOP_TIMER_H
#define CRL_LOOP_TIMER_H

#include "Loop/link_names.h"

#include "Kernel/kernel.h"
#include "Loop/Core/common_items.h"
#include "Loop/Core/context.h"
#include "Loop/Core/home_lock.h"
#include "Loop/Core/loop.h"
#include "Support/invariant.h"

struct timer_member {
    struct mode *mode; /* NULL: this member is free */
    struct heap_node node; /* `sequence` counts the dates that were set; `tag` is of enum timer_member_tag */
};

enum timer_member_tag {
    timer_member_is_further = 1, /* constant: the member is in a timer_further_member, which names the timer */
    timer_member_key_is_early = 2, /* home lock: the key in the heap is earlier than the date */
};

/* The membership of a second mode, a third, and so on. Guarded by the home lock. */
struct timer_further_member {
    struct timer_member member;
    CFRunLoopTimerRef timer; /* constant */
    struct timer_further_member *next;
};

/* Fields that few timers need, allocated at the first need. Guarded by the home lock, except for constants. */
struct timer_extra {
    struct context *context; /* constant; NULL if the context has no functions */
    void *context_info;
    CFIndex order; /* constant */
    double tolerance;
    struct common_item *common; /* its place among the common items of `loop` */
    struct timer_further_member *further;
};

/* Bits of the object's info; guarded by the home lock. */
enum timer_flag {
    timer_is_valid = 1,
    timer_is_redated = 2, /* a date was set during the callout */
    timer_releases_late = 4, /* the end of the callout releases the info: the timer was invalidated during the callout, and either
                                another thread did so or timer_keeps_info is set */
    timer_keeps_info = 8, /* constant: the info lives until the callout has returned, even if the callout invalidates the timer */
    timer_is_firing = 16, /* in callout */
    timer_has_extra = 32,
    timer_follows_wall = 64, /* constant once in a loop: its date counts, whoever sets the wall clock; see timers_follow_wall */
};

/*
 * The size matters. A program with very many timers has none of them in a cache, and malloc reuses blocks of up to 120 bytes in all
 * quickly. The fields that moving a timer touches are next to each other.
 */
struct __CFRunLoopTimer {
    struct object object;
    _Atomic(CFRunLoopRef) loop; /* no reference: a loop that ends removes its timers first; see timer_claimed */
    struct timer_member first_member; /* home lock; during the callout its sequence number is free for timer_outer */
    double date; /* home lock; CFRunLoopTimerGetNextFireDate returns it */
    int64_t fire_ns; /* home lock; the instant of `date` */
    CFRunLoopTimerCallBack callout; /* constant */
    union {
        void *context_info; /* NULL once invalid */
        struct timer_extra *extra; /* with timer_has_extra: holds the info, too */
    } own; /* home lock; see timer_info */
    double interval; /* constant; 0: fires once */
};

/* Stands in for the extra fields of a timer that has none. Static, so that the compiler knows every field to be zero. */
static const struct timer_extra timer_no_extra = {.context = NULL};

/*
 * Prefetches a timer, and malloc's header in front of it, because one of very many timers is in no cache. Harmless for NULL and for a
 * pointer to anything else. Always inline, because gcc removes calls of a function that only prefetches.
 */
static inline __attribute__((always_inline)) void timer_fetch(const struct __CFRunLoopTimer *timer)
{
    uintptr_t begin = (uintptr_t)timer - 2 * sizeof(void *);
    uintptr_t end = (uintptr_t)timer + sizeof *timer;

    __builtin_prefetch((const void *)begin); /* NOLINT(performance-no-int-to-ptr) */
    __builtin_prefetch((const void *)(begin + cache_line)); /* NOLINT(performance-no-int-to-ptr) */
    __builtin_prefetch((const void *)(end - 1)); /* NOLINT(performance-no-int-to-ptr) */
}

static inline bool timer_has(const struct __CFRunLoopTimer *timer, enum timer_flag flag)
{
    return (timer->object.info & (uint32_t)flag) != 0;
}

static inline void timer_set(CFRunLoopTimerRef timer, enum timer_flag flag, bool is_set)
{
    timer->object.info = (timer->object.info & ~(uint32_t)flag) | (is_set ? (uint32_t)flag : 0u);
}

/* Returns the extra fields to read, which are all zero if the timer has none. Home lock, or nobody else knows the timer. */
static inline const struct timer_extra *timer_extra(const struct __CFRunLoopTimer *timer)
{
    return timer_has(timer, timer_has_extra) ? timer->own.extra : &timer_no_extra;
}

/* Returns the place of the context's info, which is NULL once the timer is invalid. Home lock, or nobody else knows the timer. */
static inline void **timer_info(CFRunLoopTimerRef timer)
{
    return timer_has(timer, timer_has_extra) ? &timer->own.extra->context_info : &timer->own.context_info;
}

/*
 * Returns the timer around this one: a callout of that timer runs the loop that now calls this timer. NULL if there is none. Only for a
 * timer in callout, whose sequence number is free. The calling thread writes it, with the lock of its loop.
 */
static inline CFRunLoopTimerRef timer_outer(const struct __CFRunLoopTimer *timer)
{
    return (CFRunLoopTimerRef)(uintptr_t)timer->first_member.node.sequence; /* NOLINT(performance-no-int-to-ptr) */
}

static inline void timer_set_outer(CFRunLoopTimerRef timer, CFRunLoopTimerRef outer)
{
    timer->first_member.node.sequence = (uintptr_t)outer;
}

extern const struct object_class timer_class;

/* Returns NULL if there is no memory. */
CFRunLoopTimerRef run_loop_timer_create(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFIndex order,
                                        CFRunLoopTimerCallBack callout, const CFRunLoopTimerContext *context);

/*
 * Called by the creator of a timer whose context cannot retain its info. The context is then released after the callout, never during it.
 */
void timer_keep_info(CFRunLoopTimerRef timer);
/*
 * The timer fires when the wall clock shows its date, also if somebody sets the clock. Called before it is in a loop. The next date of a
 * series is a period of time after the last one.
 */
void timer_follow_wall(CFRunLoopTimerRef timer);
/* Sets the next date. `fire_ns` must be the instant of `date`. */
void timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t fire_ns);
/*
 * Returns the date as it was given, or, if the wall clock has been set forward past it, the one that it shows at the timer's instant: a
 * date is never past while the timer is not due. The home lock is held.
 */
CFAbsoluteTime timer_shown_date(const struct __CFRunLoopTimer *timer);
/* Returns the next date as timer_shown_date does, or 0 for an invalid timer. */
CFAbsoluteTime timer_date(CFRunLoopTimerRef timer);
void timer_set_tolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance);

/* ---- shared by the files of this directory ---- */

/*
 * Returns the extra fields to write, and allocates them if need be. NULL if there is no memory. Home lock, or nobody else knows the timer.
 */
struct timer_extra *timer_make_extra(CFRunLoopTimerRef timer);

/* Returns the value that stands in `loop` while somebody holds the item lock of a timer that is in no loop. It is not an object. */
static inline CFRunLoopRef timer_claimed(void)
{
    return (CFRunLoopRef)(uintptr_t)1; /* NOLINT(performance-no-int-to-ptr) */
}

/* Returns the loop that the timer is in, or NULL. */
static inline CFRunLoopRef timer_loop(const struct __CFRunLoopTimer *timer)
{
    CFRunLoopRef owner = atomic_load_explicit(&timer->loop, memory_order_acquire);

    return owner == timer_claimed() ? NULL : owner;
}

/*
 * Gives a timer to a loop, or claims it with timer_claimed. Returns false if it is in a loop or claimed already. Acquire: the new owner
 * sees everything the last one did to the timer. Release: a thread that finds the loop in the timer finds the loop initialised.
 */
static inline bool timer_claim(CFRunLoopTimerRef timer, CFRunLoopRef owner)
{
    CFRunLoopRef none = NULL;

    return atomic_compare_exchange_strong_explicit(&timer->loop, &none, owner, memory_order_acq_rel, memory_order_relaxed);
}

/* Makes the timer free again. The owner does not touch the timer afterwards: another thread may own it at once. */
static inline void timer_disclaim(CFRunLoopTimerRef timer)
{
    invariant(atomic_load_explicit(&timer->loop, memory_order_relaxed) != NULL);
    atomic_store_explicit(&timer->loop, NULL, memory_order_release);
}

/* Continues timer_lock_home where the item lock was taken, but a loop has the timer by now. */
CFRunLoopRef timer_lock_home_again(CFRunLoopTimerRef timer);

/* Takes the home lock. Returns the loop whose lock it is, which lives at least until the lock is dropped; NULL for the item lock. */
static inline CFRunLoopRef timer_lock_home(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home = home_lock_take(timer, &timer->loop);

    return home || timer_claim(timer, timer_claimed()) ? home : timer_lock_home_again(timer);
}

/* Drops the home lock that timer_lock_home took. */
static inline void timer_unlock_home(CFRunLoopTimerRef timer, CFRunLoopRef home)
{
    if (!home) {
        timer_disclaim(timer);
    }
    home_lock_drop(timer, home);
}

/*
 * Gives a scheduled timer of the loop that follows the wall clock the instant that its date has now. Returns false if it has that, or
 * follows no wall clock.
 */
REQUIRES(the_loop_lock) bool timer_take_wall_instant(CFRunLoopRef loop, CFRunLoopTimerRef timer);

/*
 * Called when a timer is scheduled by an instant that was found before, or without the lock. Somebody may have set the clock since, and the
 * loop may have taken note of that already.
 */
REQUIRES(the_loop_lock) static inline void timer_keep_to_wall(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (__builtin_expect(timer_has(timer, timer_follows_wall), 0)) {
        (void)timer_take_wall_instant(loop, timer);
    }
}

/* Takes over that the wall clock was set, if it was: gives the loop's timers that follow it the instants that their dates have now. */
REQUIRES(the_loop_lock) void timers_follow_wall(CFRunLoopRef loop);

/* Returns the time that the loop's timers go by, and gives those that follow the wall clock their instants. */
REQUIRES(the_loop_lock) static inline int64_t timers_now(CFRunLoopRef loop)
{
    int64_t now_ns = kernel.elapsed_ns(); /* first: a step that comes between the two is told by the clock, or taken over here */

    if (__builtin_expect(loop->has_wall_timers, 0)) {
        timers_follow_wall(loop);
    }
    return now_ns;
}

/* Puts a timer whose callout has ended into the heaps of all its modes. */
REQUIRES(the_loop_lock) void timer_reschedule(CFRunLoopRef loop, CFRunLoopTimerRef timer);

#endif
