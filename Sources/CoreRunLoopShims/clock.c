/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that tests move by hand, for CoreRunLoopTesting. A thread has the kernel's clocks, or a hand-moved pair that it shares with the
 * threads that it starts.
 *
 * The first use replaces the clocks of the process for good (overlay_replace_clock). Threads without a hand-moved clock see the kernel's
 * clocks as before.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "CoreRunLoopShims.h"
#include "Overlay/overlay.h"

/* Lives as long as the process: threads of an ended test may still look at it. */
struct shim_clock {
    _Atomic int64_t ahead_ns; /* how far the clocks were moved */
    _Atomic int64_t suspended_ns; /* how far all but the monotonic clock were moved */
    _Atomic int64_t wall_step_ns; /* how far the wall clock was moved by itself */
    int64_t start_monotonic_ns;
    int64_t start_wall_ns;
    struct shim_clock *older; /* constant once shared; every clock stays reachable, for leak checkers */
};

static _Thread_local struct shim_clock *thread_clock;
static _Thread_local bool thread_skips_waits; /* and not the threads that it starts */
static struct shim_clock *_Atomic newest;
static struct overlay_clock kernel_clock; /* constant once the clocks have been replaced */

static int64_t hand_monotonic_ns(void)
{
    return thread_clock ? thread_clock->start_monotonic_ns + atomic_load(&thread_clock->ahead_ns) : kernel_clock.monotonic_ns();
}

static int64_t hand_elapsed_ns(void)
{
    return thread_clock ? hand_monotonic_ns() + atomic_load(&thread_clock->suspended_ns) : kernel_clock.elapsed_ns();
}

static int64_t wall_at(int64_t ahead_ns)
{
    return thread_clock->start_wall_ns + ahead_ns + atomic_load(&thread_clock->suspended_ns) + atomic_load(&thread_clock->wall_step_ns);
}

static int64_t hand_wall_ns(void)
{
    return thread_clock ? wall_at(atomic_load(&thread_clock->ahead_ns)) : kernel_clock.wall_ns();
}

static int64_t hand_tick_ns(int64_t *ret_wall_ns)
{
    int64_t ahead_ns;

    if (!thread_clock) {
        return kernel_clock.tick_ns(ret_wall_ns);
    }
    ahead_ns = atomic_load(&thread_clock->ahead_ns);
    *ret_wall_ns = wall_at(ahead_ns);
    return thread_clock->start_monotonic_ns + ahead_ns;
}

static bool is_by_hand(void)
{
    return thread_clock != NULL;
}

static bool skips_waits(void)
{
    return thread_skips_waits;
}

static void skip_to(int64_t deadline_ns)
{
    (void)shim_clock_advance(deadline_ns - hand_monotonic_ns());
}

static void install(void)
{
    static const struct overlay_clock hand_clock = {
        .monotonic_ns = hand_monotonic_ns,
        .elapsed_ns = hand_elapsed_ns,
        .wall_ns = hand_wall_ns,
        .tick_ns = hand_tick_ns,
        .is_by_hand = is_by_hand,
        .skips_waits = skips_waits,
        .skip_to = skip_to,
    };

    overlay_replace_clock(&hand_clock, &kernel_clock);
}

static void clocks_need_hands(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, install);
}

static void begin(int64_t monotonic_ns, int64_t wall_ns)
{
    struct shim_clock *clock = calloc(1, sizeof *clock);

    if (!clock) {
        abort();
    }
    clocks_need_hands();
    clock->start_monotonic_ns = monotonic_ns;
    clock->start_wall_ns = wall_ns;
    clock->older = atomic_load(&newest);
    while (!atomic_compare_exchange_weak(&newest, &clock->older, clock)) {
    }
    thread_clock = clock;
}

void shim_clock_begin_skipping(int64_t monotonic_ns, int64_t wall_ns)
{
    begin(monotonic_ns, wall_ns);
    thread_skips_waits = true;
}

void shim_clock_begin(void)
{
    clocks_need_hands();
    /* Whole seconds, which a 64-bit date holds exactly, so that a timer after whole seconds is due exactly then. */
    begin(kernel_clock.monotonic_ns(), kernel_clock.wall_ns() / 1000000000 * 1000000000);
}

/* How far clocks go: a start and all three displacements must fit into 64 bits. */
static const int64_t farthest_ns = INT64_MAX / 3;
static const int64_t farthest_suspended_ns = INT64_MAX / 8;

/* Adds to a clock's displacement, but clamps it. */
static void move(_Atomic int64_t *way_ns, int64_t ns, int64_t most_ns)
{
    int64_t old_ns = atomic_load(way_ns);
    int64_t new_ns;

    do {
        if (__builtin_add_overflow(old_ns, ns, &new_ns) || new_ns > most_ns || new_ns < -most_ns) {
            new_ns = ns < 0 ? -most_ns : most_ns;
        }
    } while (!atomic_compare_exchange_weak(way_ns, &old_ns, new_ns));
}

bool shim_clock_advance(int64_t ns)
{
    if (thread_clock) {
        move(&thread_clock->ahead_ns, ns, farthest_ns);
    }
    return thread_clock != NULL;
}

bool shim_clock_suspend(int64_t ns)
{
    if (thread_clock) {
        move(&thread_clock->suspended_ns, ns, farthest_suspended_ns);
    }
    return thread_clock != NULL;
}

bool shim_clock_step_wall(int64_t ns)
{
    if (thread_clock) {
        move(&thread_clock->wall_step_ns, ns, farthest_ns);
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
