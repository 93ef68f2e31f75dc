/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: their dates, their places in the heaps of modes, and their life.
 *
 *   FREE       in no loop (a timer among a loop's common items is in that loop, even while in none of its modes)
 *   SCHEDULED  in the heaps of all its modes
 *   FIRING     in callout, out of every heap, but for those of modes to which it is added meanwhile: there it stands behind all others
 *
 *   FREE -> SCHEDULED [timer_add]   SCHEDULED -> FIRING [timer_firing.c]   FIRING -> SCHEDULED, with the next date of its series
 *   [timer_firing.c]
 *   any -> FREE, invalid [timer_invalidate; a one-shot that has fired]
 *
 * A new date gives a new sequence number, so that the entry of a snapshot taken before no longer matches.
 *
 * A timer that is given another date stays where it is in the heap until somebody asks for the earliest timer (timers_settle). With a later
 * date it is DEFERRED: the heap's key is a lower bound of its date, and it is moved only once it stands on top. With an earlier one it is
 * ADVANCED, and in a list of those that are to be moved by the next who asks. Each new date is paid for by one such move at most, and by
 * none if yet another date, or the timer's end, comes before.
 */
#ifndef CRL_LOOP_TIMER_H
#define CRL_LOOP_TIMER_H

#include "Support/link_names.h"

#include "Loop/item.h"

struct timer_member {
    struct mode *mode; /* NULL: this one is free */
    struct heap_node node; /* its sequence is that of the timer's date; its tag, of enum timer_member_tag */
};

enum timer_member_tag {
    timer_member_is_further = 1, /* C; tells how the timer is found */
    timer_member_is_deferred = 2, /* H */
    timer_member_is_advanced = 4, /* H */
    timer_member_place_shift = 3, /* H; above, of an advanced one: its place in the list */
};

/* In a further mode. */
struct timer_further_member {
    struct timer_member member;
    CFRunLoopTimerRef timer; /* C */
    struct timer_further_member *next;
};

/* What few timers have; made at the first need. H unless said otherwise. */
struct timer_rare {
    struct item_context *context; /* C; NULL if the context has no functions */
    void *context_info;
    CFIndex order; /* C */
    double tolerance;
    struct common_item *common; /* its place among the common items of `loop` */
    struct timer_further_member *further;
};

/* Bits of the object's info; H. */
enum timer_flag {
    timer_is_valid = 1,
    timer_is_redated = 2, /* a date was set during the callout */
    timer_releases_late = 4, /* invalidated during the callout, which then releases the info: by another thread, or if it keeps the info */
    timer_keeps_info = 8, /* C; until its callout has returned, also when the callout itself invalidates it */
    timer_is_firing = 16, /* in callout */
    timer_has_rare = 32,
};

/*
 * H: the lock of the timer's home, which is that of the loop that it is in, or the item's own while it is in none. It comes to a loop under
 * the loop's alone, by an update that finds it in none, and leaves under the loop's alone, by the last store that is made under it. Whoever
 * holds the item's has claimed the timer in the same way, with timer_claimed in the loop's place, so that it comes to no loop meanwhile.
 *
 * The size counts: among very many timers each is in no cache, and malloc gives back quickly what takes up to 120 bytes in all. What moving
 * a timer touches stands together.
 */
struct __CFRunLoopTimer {
    struct object object;
    _Atomic(CFRunLoopRef) loop; /* not retained: a loop that ends lets go of its timers first; see timer_claimed */
    struct timer_member first_member; /* H; of a timer in callout, the sequence is not in use, see timer_outer */
    double date; /* H; what GetNextFireDate says */
    int64_t fire_ns; /* H */
    CFRunLoopTimerCallBack callout; /* C */
    union {
        void *context_info; /* NULL once invalid */
        struct timer_rare *rare; /* where the timer has it, with the info in it */
    } own; /* H; see timer_info */
    double interval; /* C; 0: one-shot */
};

/* Static, for the compiler to see that nothing is in it. */
static const struct timer_rare timer_nothing_rare = {.context = NULL};

/*
 * Has the processor fetch a timer that may be one of very many, with what stands before it, while there is something else to do. NULL and
 * what is no timer are as good. Always inline, because gcc takes out calls of a function that only fetches ahead.
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

/* H, or nobody else knows the timer. */
static inline const struct timer_rare *timer_rare(const struct __CFRunLoopTimer *timer)
{
    return timer_has(timer, timer_has_rare) ? timer->own.rare : &timer_nothing_rare;
}

/* Where the context's info stands; NULL there once the timer is invalid. H, or nobody else knows the timer. */
static inline void **timer_info(CFRunLoopTimerRef timer)
{
    return timer_has(timer, timer_has_rare) ? &timer->own.rare->context_info : &timer->own.context_info;
}

/*
 * The timer in whose callout, by a nested run, this one is called; NULL for none. Of a timer in callout, whose place in a heap says
 * nothing. Written by the thread that calls it, with the lock of its loop.
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

/* NULL if there is no memory. */
CFRunLoopTimerRef run_loop_timer_create(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFIndex order,
                                        CFRunLoopTimerCallBack callout, const CFRunLoopTimerContext *context);

/* For its maker: a context that has no means to keep its info alive during the callout is released after it. */
void timer_keep_info(CFRunLoopTimerRef timer);
/* `fire_ns` is the instant of `date`. */
void timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t fire_ns);
CFAbsoluteTime timer_date(CFRunLoopTimerRef timer);
void timer_set_tolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance);

/* ---- shared by the files of timers; H ---- */

/* What few timers have, to write to; NULL if there is no memory. H, or nobody else knows the timer yet. */
struct timer_rare *timer_rare_made(CFRunLoopTimerRef timer);

/* What a timer without a loop has in its place while somebody holds its own lock; no object. */
static inline CFRunLoopRef timer_claimed(void)
{
    return (CFRunLoopRef)(uintptr_t)1; /* NOLINT(performance-no-int-to-ptr) */
}

static inline CFRunLoopRef timer_loop(const struct __CFRunLoopTimer *timer)
{
    CFRunLoopRef owner = atomic_load_explicit(&timer->loop, memory_order_acquire);

    return owner == timer_claimed() ? NULL : owner;
}

/*
 * Gives a timer that is in no loop, and that nobody has claimed, to a loop, or to timer_claimed; false if it is not so. Acquire: what was
 * done to it by whoever had it last. Release: who finds the loop in it finds the loop made.
 */
static inline bool timer_claim(CFRunLoopTimerRef timer, CFRunLoopRef owner)
{
    CFRunLoopRef none = NULL;

    return atomic_compare_exchange_strong_explicit(&timer->loop, &none, owner, memory_order_acq_rel, memory_order_relaxed);
}

/* The last that its owner does to it. */
static inline void timer_disclaim(CFRunLoopTimerRef timer)
{
    atomic_store_explicit(&timer->loop, NULL, memory_order_release);
}

/* The item's lock is held, but a loop has the timer. */
CFRunLoopRef timer_lock_home_again(CFRunLoopTimerRef timer);

/* Takes H. Returns the loop whose lock it is, which stays alive until it is dropped, or NULL. */
static inline CFRunLoopRef timer_lock_home(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home = item_lock_home(timer, &timer->loop);

    return home || timer_claim(timer, timer_claimed()) ? home : timer_lock_home_again(timer);
}

static inline void timer_unlock_home(CFRunLoopTimerRef timer, CFRunLoopRef home)
{
    if (!home) {
        timer_disclaim(timer);
    }
    item_unlock_home(timer, home);
}

static inline bool timer_node_is_deferred(const struct heap_node *node)
{
    return (node->tag & (uint32_t)timer_member_is_deferred) != 0;
}

static inline bool timer_node_is_advanced(const struct heap_node *node)
{
    return (node->tag & (uint32_t)timer_member_is_advanced) != 0;
}

/* Gives a member that is in its mode's heap another date than `old_ns`: has it wait there, or without memory moves it. L. */
void timer_member_move(struct timer_member *member, int64_t old_ns, int64_t fire_ns);

/* Takes a member out of its mode's heap. L. */
void timer_member_unqueue(struct timer_member *member);

void timers_settle_places(struct mode *mode);

/* Has the timer that comes first stand on top of the heap, for its date. */
static inline void timers_settle(struct mode *mode)
{
    if (mode->deferred_count > 0 || mode->advanced_count > 0) {
        timers_settle_places(mode);
    }
}

/* Puts a timer that was in callout into every heap. */
void timer_reschedule(CFRunLoopRef loop, CFRunLoopTimerRef timer);

#endif
