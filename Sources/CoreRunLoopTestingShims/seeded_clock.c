/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of the C library, with which Swift's clocks and Foundation's dates are read. On the thread of a seeded run they show the time
 * of the clocks that are moved by hand; every other thread sees the kernel's, as before.
 *
 * The function stands in the test's program before that of the C library. It is weak, so that a program that contains another one can be
 * linked: the C library's own, or a sanitizer's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "CoreRunLoopShims.h"
#include "CoreRunLoopTestingShims.h"

typedef int (*clock_function)(clockid_t clock, struct timespec *ret_time);

static clock_function _Atomic clock_of_library;

static int read_by_call(clockid_t clock, struct timespec *ret_time)
{
    return (int)syscall(SYS_clock_gettime, clock, ret_time);
}

static clock_function find_library(void)
{
    void *found = dlsym(RTLD_NEXT, "clock_gettime");
    clock_function function = found ? (clock_function)found : read_by_call;

    atomic_store_explicit(&clock_of_library, function, memory_order_release);
    return function;
}

/* Stores the seeded thread's time by a clock; false for a clock that the run leaves alone, as those of processor time. */
static bool read_by_hand(clockid_t clock, struct timespec *ret_time)
{
    const int64_t second_ns = 1000000000;
    const int64_t seconds_until_2001 = 978307200;
    int64_t now_ns;

    switch (clock) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
        now_ns = shim_monotonic_ns();
        break;
    case CLOCK_BOOTTIME:
        now_ns = shim_elapsed_ns();
        break;
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        now_ns = shim_wall_ns() + seconds_until_2001 * second_ns;
        break;
    default:
        return false;
    }
    *ret_time = (struct timespec){.tv_sec = (time_t)(now_ns / second_ns), .tv_nsec = (long)(now_ns % second_ns)};
    return true;
}

static int read_clock(clockid_t clock, struct timespec *ret_time)
{
    clock_function library;

    if (seeded_thread_run() && read_by_hand(clock, ret_time)) {
        return 0;
    }
    library = atomic_load_explicit(&clock_of_library, memory_order_acquire);
    return (library ? library : find_library())(clock, ret_time);
}

int clock_gettime(clockid_t clock, struct timespec *ret_time) __attribute__((weak, alias("read_clock")));

bool seeded_clocks_are_read_here(void)
{
    return clock_gettime == read_clock;
}
