/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock of four bytes: free, held, or held with somebody asleep on it. Not recursive, not fair, and, unlike a pthread mutex, it can be set
 * free again in the child of a fork. Never held over user code.
 *
 * Dropping it is a store between two looks whether anybody sleeps; if somebody does, an exchange, which says whether it is on this lock.
 * The fence that the store needs is made by the one that goes to sleep, for all threads at once (barrier_everywhere); where that cannot be
 * had, each drop is an exchange.
 *
 * Items (sources, timers, observers) have no lock of their own but share a row of locks, chosen by address: an item lock is always the
 * innermost one and no thread ever holds two of them, so that two items on one lock cannot deadlock; and a fork can take and reset the
 * whole row. In a child that finds the row wiped (Kernel/fork_mark.h) they are free as well.
 */
#ifndef CRL_SUPPORT_LOCK_H
#define CRL_SUPPORT_LOCK_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
    _Atomic uint32_t state;
};

enum lock_state { lock_free, lock_held, lock_contended };

enum { lock_place_count = 64, cache_line = 64 };

/*
 * For each place, which an address chooses, how many threads sleep, or are about to, on a lock of this place; plus lock_needs_no_fence. Not
 * in the lock itself, whose memory may be gone once it is free.
 */
extern _Atomic uint32_t lock_sleepers[lock_place_count];
static const uint32_t lock_needs_no_fence = 0x80000000; /* when it is dropped */

static inline uint32_t lock_place(const struct lock *lock)
{
    return (uint32_t)((uintptr_t)lock / cache_line % lock_place_count);
}

void lock_take_contended(struct lock *lock);
void lock_drop_contended(struct lock *lock);
void lock_wake_sleeper(struct lock *lock);

static inline void lock_take(struct lock *lock)
{
    uint32_t expected = lock_free;

    if (!atomic_compare_exchange_strong_explicit(&lock->state, &expected, lock_held, memory_order_acquire, memory_order_relaxed)) {
        lock_take_contended(lock);
    }
}

/* False also where nobody could tell. */
static inline bool lock_has_no_sleepers(const struct lock *lock)
{
    return __builtin_expect(atomic_load_explicit(&lock_sleepers[lock_place(lock)], memory_order_relaxed) == lock_needs_no_fence, 1);
}

static inline void lock_drop(struct lock *lock)
{
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

/* By somebody, just now. */
static inline bool lock_is_taken(const struct lock *lock)
{
    return atomic_load_explicit(&lock->state, memory_order_relaxed) != lock_free;
}

/* In the child of a fork, where whoever held the lock does not exist. */
static inline void lock_reset(struct lock *lock)
{
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

/* A spare word of the row's: if it has been wiped, so have the locks. */
static inline bool item_locks_have(const _Atomic uint32_t *word)
{
    return (uintptr_t)word - (uintptr_t)item_locks() < item_locks_bytes;
}

static inline struct lock *item_lock(const void *item)
{
    /* Objects are 16-byte aligned and at least 48 bytes apart; the multiplication spreads neighbours over the row. */
    uint64_t hash = ((uint64_t)(uintptr_t)item >> 4) * UINT64_C(0x9E3779B97F4A7C15);

    return &item_locks()[hash >> 58].lock;
}

/* Waits for whoever holds an item lock now to drop it. */
void item_locks_pass(void);

/* For fork: takes all item locks, drops them in the parent, resets them in the child. */
void item_locks_take_all(void);
void item_locks_drop_all(void);
void item_locks_reset_all(void);

#endif
