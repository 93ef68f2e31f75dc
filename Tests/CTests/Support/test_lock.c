/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: exclusion, sleeping and waking, resetting for forks; and the row of item locks. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "Support/lock.h"
#include "harness.h"

static struct lock lock;
static long counter; /* guarded by lock */

static void *counts(void *context)
{
    for (long i = 0; i < (long)(intptr_t)context; i++) {
        lock_take(&lock);
        counter++;
        lock_drop(&lock);
    }
    return NULL;
}

TEST_LIMIT(a_lock_excludes, "", 60)
{
    enum { threads = 8 };
    pthread_t running[threads];
    long rounds = test_is_instrumented() ? 2000 : 50000;

    for (int i = 0; i < threads; i++) {
        pthread_create(&running[i], NULL, counts, (void *)(intptr_t)rounds);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
    }
    EXPECT_EQ(counter, threads * rounds);
    EXPECT_EQ(atomic_load(&lock.state), lock_free);
}

static void *takes(void *context)
{
    (void)context;
    lock_take(&lock);
    counter = 1;
    lock_drop(&lock);
    return NULL;
}

TEST(a_waiter_sleeps_until_the_lock_is_dropped, "")
{
    pthread_t thread;

    lock_take(&lock);
    pthread_create(&thread, NULL, takes, NULL);
    while (atomic_load(&lock.state) != lock_contended) {
        sched_yield();
    }
    EXPECT_EQ(counter, 0);
    lock_drop(&lock);
    pthread_join(thread, NULL);
    EXPECT_EQ(counter, 1);
    EXPECT_EQ(atomic_load(&lock.state), lock_free);
}

TEST(a_lock_can_be_set_free, "P2")
{
    lock_take(&lock);
    lock_reset(&lock);
    lock_take(&lock); /* would wait for ever */
    lock_drop(&lock);
}

TEST(an_items_lock_is_always_the_same, "")
{
    enum { items = 1000, most = 200 };
    struct lock *found[most];
    int different = 0;
    char *memory = malloc(items * 64);

    for (int i = 0; i < items; i++) {
        struct lock *of_item = item_lock(memory + i * 64);
        int known = 0;

        EXPECT(of_item == item_lock(memory + i * 64));
        while (known < different && found[known] != of_item) {
            known++;
        }
        if (known == different && different < most) {
            found[different++] = of_item;
        }
    }
    EXPECT(different > 32 && different <= 64); /* neighbours are spread over the row */
    free(memory);
}

TEST(all_item_locks_are_taken_for_a_fork, "P2")
{
    char item = 0;

    item_locks_take_all();
    EXPECT_EQ(atomic_load(&item_lock(&item)->state), lock_held);
    item_locks_drop_all();
    EXPECT_EQ(atomic_load(&item_lock(&item)->state), lock_free);
    item_locks_take_all();
    item_locks_reset_all();
    lock_take(item_lock(&item));
    lock_drop(item_lock(&item));
}
