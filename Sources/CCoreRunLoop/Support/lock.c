/* SPDX-License-Identifier: Apache-2.0 */
/* The slow half of the locks, and the row of item locks. */
#include "Support/lock.h"

#include <stddef.h>

#include "Support/futex.h"

struct padded_lock item_locks[item_lock_count];

void lock_take_contended(struct lock *lock)
{
    /* Once asleep, a thread cannot know whether others sleep too, so from here it always leaves the mark that makes the holder wake
     * somebody. */
    while (atomic_exchange_explicit(&lock->state, lock_contended, memory_order_acquire) != lock_free) {
        (void)futex_wait(&lock->state, lock_contended, INT64_MAX);
    }
}

void lock_wake_waiter(struct lock *lock)
{
    (void)futex_wake(&lock->state);
}

void item_locks_pass(void)
{
    for (size_t i = 0; i < item_lock_count; i++) {
        lock_take(&item_locks[i].lock);
        lock_drop(&item_locks[i].lock);
    }
}

void item_locks_take_all(void)
{
    for (size_t i = 0; i < item_lock_count; i++) {
        lock_take(&item_locks[i].lock);
    }
}

void item_locks_drop_all(void)
{
    for (size_t i = 0; i < item_lock_count; i++) {
        lock_drop(&item_locks[i].lock);
    }
}

void item_locks_reset_all(void)
{
    for (size_t i = 0; i < item_lock_count; i++) {
        lock_reset(&item_locks[i].lock);
    }
}
