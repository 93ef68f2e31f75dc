/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: exclusion, sleeping and waking, resetting for forks; and the row of item locks. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Support/barrier.h"
#include "Support/lock.h"
#include "harness.h"

static struct lock lock;
static long counter; /* guarded by lock */

static uint32_t sleepers_on(const struct lock *one)
{
    return atomic_load(&lock_place_of(one)->sleepers) & ~lock_needs_no_fence;
}

static bool needs_fence(const struct lock *one)
{
    return (atomic_load(&lock_place_of(one)->sleepers) & lock_needs_no_fence) == 0;
}

static void *counts(void *context)
{
    for (long i = 0; i < (long)(intptr_t)context; i++) {
        lock_take(&lock);
        counter++;
        lock_drop(&lock);
    }
    return NULL;
}

static void expect_exclusion(void)
{
    enum { threads = 8 };
    pthread_t running[threads];
    long rounds = test_is_instrumented() ? 2000 : 50000;

    counter = 0;
    for (int i = 0; i < threads; i++) {
        pthread_create(&running[i], NULL, counts, (void *)(intptr_t)rounds);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
    }
    EXPECT_EQ(counter, threads * rounds);
    EXPECT_EQ(atomic_load(&lock.state), lock_free);
    EXPECT_EQ(sleepers_on(&lock), 0);
}

TEST(a_lock_excludes, "")
{
    expect_exclusion();
}

static void *takes(void *context)
{
    (void)context;
    lock_take(&lock);
    counter = 1;
    lock_drop(&lock);
    return NULL;
}

static void expect_a_waiter_to_sleep_until_the_lock_is_dropped(void)
{
    pthread_t thread;

    lock_take(&lock);
    pthread_create(&thread, NULL, takes, NULL);
    while (sleepers_on(&lock) == 0) {
        sched_yield();
    }
    EXPECT_EQ(counter, 0);
    lock_drop(&lock);
    pthread_join(thread, NULL);
    EXPECT_EQ(counter, 1);
    EXPECT_EQ(atomic_load(&lock.state), lock_free);
}

TEST(a_waiter_sleeps_until_the_lock_is_dropped, "")
{
    expect_a_waiter_to_sleep_until_the_lock_is_dropped();
}

/* From here on the kernel answers each membarrier of this process with an error, as the filters of some sandboxes do. */
static bool forbid_barrier_everywhere(void)
{
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof instructions / sizeof instructions[0], .filter = instructions};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           !barrier_everywhere();
}

TEST(a_filter_that_forbids_membarrier_leaves_locks_working, "")
{
    if (!forbid_barrier_everywhere()) {
        SKIP("there are no filters here");
    }
    expect_a_waiter_to_sleep_until_the_lock_is_dropped();
    EXPECT(needs_fence(&lock));
    expect_exclusion();
}

TEST(locks_are_dropped_without_a_fence_where_sleepers_can_make_it, "")
{
    EXPECT_EQ(needs_fence(&lock), !barrier_everywhere());
}

static bool child_succeeds(bool (*function)(void))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        _exit(function() ? 0 : 1);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(the_child_of_a_fork_makes_the_fence_too, "P2")
{
    EXPECT_EQ(child_succeeds(barrier_everywhere), barrier_everywhere());
}

/* A sleeper that never was there would make each drop a system call. */
TEST(who_slept_at_a_fork_does_not_in_the_child, "P2")
{
    bool fenced = needs_fence(&lock);

    atomic_fetch_add(&lock_place_of(&lock)->sleepers, 2);
    item_locks_take_all();
    item_locks_reset_all();
    EXPECT_EQ(sleepers_on(&lock), 0);
    EXPECT_EQ(needs_fence(&lock), fenced);
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
