/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock of four bytes: free, held, or held with somebody asleep on it. Not recursive, not fair, and, unlike a pthread mutex, it can be set
 * free again in the child of a fork. Never held over user code.
 *
 * A drop is a store between two looks whether anybody sleeps. If somebody does, it is an exchange, which says whether the sleeper waits for
 * this lock. The thread that goes to sleep makes the fence that the store needs, for all threads at once (barrier_everywhere). Where the
 * kernel does not offer that, each drop is an exchange.
 *
 * Items (sources, timers, observers) have no lock of their own but share a row of locks, chosen by address: an item lock is always the
 * innermost one and no thread ever holds two of them, so that two items on one lock cannot deadlock; and a fork can take and reset the
 * whole row. The kernel may wipe the row in a child of a fork (Kernel/fork_mark.c), which frees the locks as well.
 */
#ifndef CRL_SUPPORT_LOCK_H
#define CRL_SUPPORT_LOCK_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Support/guard.h"
#include "Support/invariant.h"

struct CAPABILITY lock {
    _Atomic uint32_t state;
};

enum lock_state { lock_free, lock_held, lock_contended };

enum { lock_place_count = 64, cache_line = 64 };

/*
 * `sleepers` is the number of threads that sleep, or are about to, on a lock of this place, plus lock_needs_no_fence. It is not in the lock
 * itself, whose memory may be gone once it is free. Each drop looks at it, so it has a cache line of its own: threads that sleep on other
 * locks do not take the line away.
 */
struct lock_place {
    _Alignas(cache_line) _Atomic uint32_t sleepers;
};

extern struct lock_place lock_places[lock_place_count];
static const uint32_t lock_needs_no_fence = 0x80000000; /* added where a drop makes no fence, because sleepers do */

/* The address chooses the place. */
static inline struct lock_place *lock_place_of(const struct lock *lock)
{
    return &lock_places[(uintptr_t)lock / cache_line % lock_place_count];
}

void lock_take_contended(struct lock *lock);
void lock_drop_contended(struct lock *lock);
void lock_wake_sleeper(struct lock *lock);

#if defined(CRL_TESTING)
/* Tests keep a list of the locks that each thread holds. */
void lock_note_taken(const struct lock *lock);
void lock_note_dropped(const struct lock *lock);
/* Returns true if the calling thread holds the lock, or holds more locks than the list has room for. */
bool lock_is_mine(const struct lock *lock);
#define invariant_held(lock) invariant(lock_is_mine(lock))
#define invariant_not_held(lock) invariant(!lock_is_mine(lock))
#else
static inline void lock_note_taken(const struct lock *lock)
{
    (void)lock;
}

static inline void lock_note_dropped(const struct lock *lock)
{
    (void)lock;
}

#define invariant_held(lock) ((void)(lock))
#define invariant_not_held(lock) ((void)(lock))
#endif

static inline void lock_take(struct lock *lock) ACQUIRES(lock);
static inline void lock_drop(struct lock *lock) RELEASES(lock);

NOT_CHECKED static inline void lock_take(struct lock *lock)
{
    uint32_t expected = lock_free;

    if (!atomic_compare_exchange_strong_explicit(&lock->state, &expected, lock_held, memory_order_acquire, memory_order_relaxed)) {
        lock_take_contended(lock);
    }
    lock_note_taken(lock);
}

/* Returns true if nobody sleeps on a lock of this place. Returns false if somebody does, or if the library cannot tell. */
static inline bool lock_has_no_sleepers(const struct lock *lock)
{
    return __builtin_expect(atomic_load_explicit(&lock_place_of(lock)->sleepers, memory_order_relaxed) == lock_needs_no_fence, 1);
}

NOT_CHECKED static inline void lock_drop(struct lock *lock)
{
    lock_note_dropped(lock);
    if (!lock_has_no_sleepers(lock)) {
        lock_drop_contended(lock);
        return;
    }
    atomic_store_explicit(&lock->state, lock_free, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* the sleeper's barrier_everywhere makes it a fence */
    if (!lock_has_no_sleepers(lock)) {
        lock_wake_sleeper(lock); /* it came in between, and the store may have wiped out its mark */
    }
}

/* Returns true if some thread holds the lock at this moment. */
static inline bool lock_is_taken(const struct lock *lock)
{
    return atomic_load_explicit(&lock->state, memory_order_relaxed) != lock_free;
}

/* Sets the lock free in the child of a fork, where the thread that held it does not exist. */
static inline void lock_reset(struct lock *lock)
{
    lock_note_dropped(lock);
    atomic_store_explicit(&lock->state, lock_free, memory_order_relaxed);
}

enum { item_lock_count = 64, item_locks_bytes = item_lock_count * cache_line };

struct padded_lock {
    _Alignas(cache_line) struct lock lock;
    _Atomic uint32_t spare[cache_line / sizeof(uint32_t) - 1]; /* for what may be wiped with the lock */
};

_Static_assert(sizeof(struct padded_lock) == cache_line, "a place each");

/*
 * The row is what begins at a multiple of its size, for the kernel to wipe it as a page. It is found, and not aligned: else the linker
 * would have all variables that begin as zero start on a page of their own, and the row is there to save one.
 */
extern struct padded_lock item_lock_space[2 * item_lock_count - 1];

static inline struct padded_lock *item_locks(void)
{
    uintptr_t start = (uintptr_t)&item_lock_space[item_lock_count - 1];

    start &= ~(uintptr_t)(item_locks_bytes - 1);
    return (struct padded_lock *)start; /* NOLINT(performance-no-int-to-ptr) */
}

/* Stands for whichever item lock: no thread ever holds two of them. */
extern struct lock_role the_item_lock;

RETURNS_LOCK(the_item_lock) static inline struct lock *item_lock(const void *item)
{
    /* Objects are 16-byte aligned and at least 48 bytes apart; the multiplication spreads neighbours over the row. */
    uint64_t hash = ((uint64_t)(uintptr_t)item >> 4) * UINT64_C(0x9E3779B97F4A7C15);

    return &item_locks()[hash >> 58].lock;
}

/* Waits for whoever holds an item lock now to drop it. */
void item_locks_pass(void);

/* For fork: takes all item locks, drops them in the parent, resets them in the child. The checker does not follow these. */
void item_locks_take_all(void);
void item_locks_drop_all(void);
void item_locks_reset_all(void);

#endif
