/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a test in which an invariant does not hold, and what locks a thread is known to hold. */
#include <pthread.h>

#include "Support/invariant.h"
#include "Support/lock.h"
#include "harness.h"

static struct lock lock;

TEST(a_broken_invariant_stops_the_test_with_its_condition, "")
{
    int one = 1;

    invariant(one == 1);
    EXPECT_STOPS("CoreRunLoop: invariant: " __FILE__ ":16: one == 2\n", { invariant(one == 2); });
}

static void *holds(void *result)
{
    *(bool *)result = lock_is_mine(&lock);
    return NULL;
}

TEST(a_lock_is_its_holders_until_it_is_dropped, "")
{
    pthread_t other;
    bool is_others = true;

    EXPECT(!lock_is_mine(&lock));
    lock_take(&lock);
    EXPECT(lock_is_mine(&lock));
    EXPECT_EQ(pthread_create(&other, NULL, holds, &is_others), 0);
    EXPECT_EQ(pthread_join(other, NULL), 0);
    EXPECT(!is_others);
    lock_drop(&lock);
    EXPECT(!lock_is_mine(&lock));
}

TEST(more_locks_than_the_list_holds_count_as_held, "")
{
    enum { many = 300 };
    static struct lock locks[many];

    for (int i = 0; i < many; i++) {
        lock_take(&locks[i]);
    }
    EXPECT(lock_is_mine(&locks[0]) && lock_is_mine(&locks[many - 1]));
    for (int i = many; i-- > 0;) {
        lock_drop(&locks[i]);
    }
    EXPECT(!lock_is_mine(&locks[0]) && !lock_is_mine(&locks[many - 1]));
}
