/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds threads up at their schedule points: by a draw from SCHEDULE_SEED and the thread's own number it lets others go first, or sleeps
 * for some microseconds. What the schedule then is, is the kernel's; the seed only makes it another one.
 */
#define _GNU_SOURCE
#include "schedule_point.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { yield_one_in = 16, sleep_one_in = 512, longest_sleep_ns = 60000 };

static uint64_t seed;
static uint32_t thread_count; /* by the compiler's atomics: C11's would be points themselves */
static __thread uint64_t state;

__attribute__((constructor)) static void read_seed(void)
{
    const char *text = getenv("SCHEDULE_SEED");
    char *rest = NULL;

    if (!text) {
        return;
    }
    errno = 0;
    seed = strtoull(text, &rest, 10);
    if (*text < '0' || *text > '9' || *rest || errno) {
        (void)fprintf(stderr, "schedule: SCHEDULE_SEED '%s' is not a whole number\n", text);
        exit(2);
    }
}

static uint64_t draw(void)
{
    if (state == 0) {
        state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) + __atomic_add_fetch(&thread_count, 1, __ATOMIC_RELAXED);
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 16;
}

void schedule_point(void)
{
    int saved = errno;
    uint64_t drawn = draw();

    if (drawn % sleep_one_in == 0) {
        struct timespec duration = {0, (long)(drawn / sleep_one_in % longest_sleep_ns)};
        int cancel_state;

        /* The library is no cancellation point, and no point within it may be one. */
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
        (void)nanosleep(&duration, NULL);
        (void)pthread_setcancelstate(cancel_state, NULL);
    } else if (drawn % yield_one_in == 0) {
        (void)sched_yield();
    }
    errno = saved;
}
