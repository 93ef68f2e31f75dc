/* SPDX-License-Identifier: Apache-2.0 */
/* The slow half of the locks, who sleeps on them, and the row of item locks. */
#include "Support/lock.h"

#include <stddef.h>
#include <time.h>

#include "Support/barrier.h"
#include "Support/futex.h"

struct lock_place lock_places[lock_place_count];
struct padded_lock item_lock_space[2 * item_lock_count - 1];

/* Before any thread can sleep on a lock. */
static __attribute__((constructor)) void begin_without_fences(void)
{
    if (barrier_enable_everywhere()) {
        for (size_t i = 0; i < lock_place_count; i++) {
            (void)atomic_fetch_or_explicit(&lock_places[i].sleepers, lock_needs_no_fence, memory_order_relaxed);
        }
    }
}

#if defined(CRL_TESTING)

enum { noted_max = 32 };

static __thread const struct lock *noted[noted_max];
static __thread unsigned noted_count;
static __thread unsigned unnoted_count; /* locks taken while the list was full */

void lock_note_taken(const struct lock *lock)
{
    if (noted_count < noted_max) {
        noted[noted_count++] = lock;
    } else {
        unnoted_count++;
    }
}

void lock_note_dropped(const struct lock *lock)
{
    for (unsigned i = noted_count; i-- > 0;) {
        if (noted[i] == lock) {
            noted[i] = noted[--noted_count];
            return;
        }
    }
    if (unnoted_count > 0) {
        unnoted_count--;
    }
}

bool lock_is_mine(const struct lock *lock)
{
    for (unsigned i = 0; i < noted_count; i++) {
        if (noted[i] == lock) {
            return true;
        }
    }
    return unnoted_count > 0;
}

#endif

static void return_to_fences(void)
{
    for (size_t i = 0; i < lock_place_count; i++) {
        (void)atomic_fetch_and_explicit(&lock_places[i].sleepers, ~lock_needs_no_fence, memory_order_relaxed);
    }
}

/* While somebody may still be dropping a lock without a fence, and so without a look at who sleeps. */
static int64_t short_while_ns(void)
{
    const int64_t second_ns = 1000000000;
    const int64_t while_ns = 1000000;
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * second_ns + now.tv_nsec + while_ns;
}

/* Looks for as long as going to sleep would take: locks are held for less, unless their holder has lost its processor. */
static bool take_soon(struct lock *lock)
{
    enum { looks = 40 };

    for (int i = 0; i < looks; i++) {
        uint32_t expected = lock_free;

        barrier_pause();
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == lock_free &&
            atomic_compare_exchange_weak_explicit(&lock->state, &expected, lock_held, memory_order_acquire, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void lock_take_contended(struct lock *lock)
{
    _Atomic uint32_t *sleepers = &lock_place_of(lock)->sleepers;
    bool is_seen;

    if (take_soon(lock)) {
        return;
    }
    (void)atomic_fetch_add_explicit(sleepers, 1, memory_order_relaxed);
    barrier_full();
    is_seen = barrier_everywhere();
    if (!is_seen) {
        return_to_fences(); /* a filter has come to forbid it, or it was never to be had */
    }
    /*
     * A thread that drops the lock from here on sees the sleeper, and this one sees that it was dropped before. A thread that has slept
     * cannot know whether others sleep too: so it leaves the mark that makes the holder wake somebody.
     */
    while (atomic_exchange_explicit(&lock->state, lock_contended, memory_order_acquire) != lock_free) {
        (void)futex_wait(&lock->state, lock_contended, is_seen ? INT64_MAX : short_while_ns());
    }
    (void)atomic_fetch_sub_explicit(sleepers, 1, memory_order_relaxed);
}

void lock_drop_contended(struct lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, lock_free, memory_order_release) == lock_contended) {
        (void)futex_wake(&lock->state);
    }
}

/* The lock is free already, its memory perhaps gone; nobody minds being woken in vain. */
void lock_wake_sleeper(struct lock *lock)
{
    (void)futex_wake(&lock->state);
}

NOT_CHECKED void item_locks_pass(void)
{
    for (size_t i = 0; i < item_lock_count; i++) {
        lock_take(&item_locks()[i].lock);
        lock_drop(&item_locks()[i].lock);
    }
}

NOT_CHECKED void item_locks_take_all(void)
{
    for (size_t i = 0; i < item_lock_count; i++) {
        lock_take(&item_locks()[i].lock);
    }
}

NOT_CHECKED void item_locks_drop_all(void)
{
    for (size_t i = 0; i < item_lock_count; i++) {
        lock_drop(&item_locks()[i].lock);
    }
}

void item_locks_reset_all(void)
{
    for (size_t i = 0; i < item_lock_count; i++) {
        lock_reset(&item_locks()[i].lock);
    }
    for (size_t i = 0; i < lock_place_count; i++) { /* who slept does not exist here */
        (void)atomic_fetch_and_explicit(&lock_places[i].sleepers, lock_needs_no_fence, memory_order_relaxed);
    }
}
