/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that tests move by hand, for CoreRunLoopTesting. A thread has the kernel's clocks, or a hand-moved pair that it shares with the
 * threads that it starts. A wait of such a thread that would sleep until a deadline looks again every millisecond whether the clock was
 * moved.
 *
 * The kernel table is replaced at the first use and stays so: threads without a hand-moved clock get what they got before.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "CoreRunLoopShims.h"
#include "Kernel/kernel.h"
#include "Runtime/wall_clock.h"

/* Lives as long as the process: threads of an ended test may still look at it. */
struct shim_clock {
    _Atomic int64_t ahead_ns; /* how far both clocks were moved */
    _Atomic int64_t wall_step_ns; /* how far the wall clock was moved by itself */
    int64_t start_monotonic_ns;
    int64_t start_wall_ns;
    struct shim_clock *older; /* constant once shared; every clock stays reachable, for leak checkers */
};

static _Thread_local struct shim_clock *thread_clock;
static struct shim_clock *_Atomic newest;
static struct kernel replaced; /* constant once it has been */

static int64_t hand_monotonic_ns(void)
{
    return thread_clock ? thread_clock->start_monotonic_ns + atomic_load(&thread_clock->ahead_ns) : replaced.monotonic_ns();
}

static int64_t wall_at(int64_t ahead_ns)
{
    return thread_clock->start_wall_ns + ahead_ns + atomic_load(&thread_clock->wall_step_ns);
}

static int64_t hand_wall_ns(void)
{
    return thread_clock ? wall_at(atomic_load(&thread_clock->ahead_ns)) : replaced.wall_ns();
}

static int64_t hand_tick_ns(int64_t *ret_wall_ns)
{
    int64_t ahead_ns;

    if (!thread_clock) {
        return replaced.tick_ns(ret_wall_ns);
    }
    ahead_ns = atomic_load(&thread_clock->ahead_ns);
    *ret_wall_ns = wall_at(ahead_ns);
    return thread_clock->start_monotonic_ns + ahead_ns;
}

/* The real instant at which a wait for `deadline_ns` of the hand-moved clock looks again. */
static int64_t look_again(int64_t deadline_ns)
{
    return deadline_ns <= hand_monotonic_ns() ? 0 : replaced.monotonic_ns() + 1000000;
}

static int hand_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    int error;

    if (!thread_clock || deadline_ns == kernel_never) {
        return replaced.futex_wait(word, expected, deadline_ns);
    }
    do {
        error = replaced.futex_wait(word, expected, look_again(deadline_ns));
    } while (error == -ETIMEDOUT && deadline_ns > hand_monotonic_ns());
    return error;
}

static int hand_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count;

    if (!thread_clock || deadline_ns == kernel_never || deadline_ns <= 0) {
        return replaced.set_wait(set, events, capacity, deadline_ns);
    }
    do {
        count = replaced.set_wait(set, events, capacity, look_again(deadline_ns));
    } while (count == 0 && deadline_ns > hand_monotonic_ns());
    return count;
}

/* The kernel's alarms are for its own clock: one for a hand-moved clock goes off when a wait would look again. */
static int hand_alarm_set(int alarm, int64_t deadline_ns)
{
    bool is_by_hand = thread_clock && deadline_ns != kernel_never;

    return replaced.alarm_set(alarm, is_by_hand ? look_again(deadline_ns) : deadline_ns);
}

static void install(void)
{
    replaced = kernel;
    kernel.monotonic_ns = hand_monotonic_ns;
    kernel.wall_ns = hand_wall_ns;
    kernel.tick_ns = hand_tick_ns;
    runtime_wall_clock = hand_wall_ns;
    kernel.futex_wait = hand_futex_wait;
    kernel.set_wait = hand_set_wait;
    kernel.alarm_set = hand_alarm_set;
}

void shim_clock_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct shim_clock *clock = calloc(1, sizeof *clock);

    if (!clock) {
        abort();
    }
    (void)pthread_once(&once, install);
    clock->start_monotonic_ns = replaced.monotonic_ns();
    /* Whole seconds, which a date of 64 bits holds exactly: what is to come after whole seconds is due exactly then. */
    clock->start_wall_ns = replaced.wall_ns() / 1000000000 * 1000000000;
    clock->older = atomic_load(&newest);
    while (!atomic_compare_exchange_weak(&newest, &clock->older, clock)) {
    }
    thread_clock = clock;
}

/* Adds to how far a clock was moved, so far that a start and two such ways are still less than 64 bits say. */
static void move(_Atomic int64_t *way_ns, int64_t ns)
{
    const int64_t farthest_ns = INT64_MAX / 3;
    int64_t old_ns = atomic_load(way_ns);
    int64_t new_ns;

    do {
        if (__builtin_add_overflow(old_ns, ns, &new_ns) || new_ns > farthest_ns || new_ns < -farthest_ns) {
            new_ns = ns < 0 ? -farthest_ns : farthest_ns;
        }
    } while (!atomic_compare_exchange_weak(way_ns, &old_ns, new_ns));
}

bool shim_clock_advance(int64_t ns)
{
    if (thread_clock) {
        move(&thread_clock->ahead_ns, ns);
    }
    return thread_clock != NULL;
}

bool shim_clock_step_wall(int64_t ns)
{
    if (thread_clock) {
        move(&thread_clock->wall_step_ns, ns);
    }
    return thread_clock != NULL;
}

void *shim_clock_of_thread(void)
{
    return thread_clock;
}

void shim_clock_inherit(void *clock)
{
    thread_clock = clock;
}
