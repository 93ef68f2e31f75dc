/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: adding, moving, cancelling and firing among N. Dates are random, far in the future unless they are to
 * fire. Of a large crowd a thousand are moved
 * or cancelled, chosen at random, for otherwise a library that searches would never come to an end.
 */
#include <stdlib.h>

#include "bench.h"

enum { sample_most = 1000 };

static CFRunLoopTimerRef *timers;

static double far_away(void)
{
    return 1e6 + (double)(next_random() % 1000000000) / 1e3;
}

static void make(long number)
{
    timers = malloc((size_t)number * sizeof *timers);
    for (long i = 0; i < number; i++) {
        timers[i] = far_timer(far_away());
    }
}

static void add(long number)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    for (long i = 0; i < number; i++) {
        CFRunLoopAddTimer(loop, timers[i], bench_mode());
    }
}

static double timer_made(long number)
{
    double start;

    (void)CFRunLoopGetCurrent();
    start = thread_ns();
    make(number);
    return (thread_ns() - start) / (double)number;
}

static double timer_added(long number)
{
    double start;

    make(number);
    (void)idle_source(bench_mode());
    start = thread_ns();
    add(number);
    return (thread_ns() - start) / (double)number;
}

/* A crowd of `number`, in the loop, in random order; how many of them to use. */
static long crowd(long number)
{
    (void)idle_source(bench_mode());
    make(number);
    add(number);
    shuffle((void **)timers, number);
    return number < sample_most ? number : sample_most;
}

static double timer_rearm(long number)
{
    long sample = crowd(number);
    CFAbsoluteTime now = CFAbsoluteTimeGetCurrent();
    double start = thread_ns();

    for (long i = 0; i < sample; i++) {
        CFRunLoopTimerSetNextFireDate(timers[i], now + far_away());
    }
    return (thread_ns() - start) / (double)sample;
}

static double timer_cancel(long number)
{
    long sample = crowd(number);
    double start = thread_ns();

    for (long i = 0; i < sample; i++) {
        CFRunLoopTimerInvalidate(timers[i]);
    }
    return (thread_ns() - start) / (double)sample;
}

static long fired;

static void fire(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    fired++;
}

/* A thousand that are due among N that are not. */
static double timer_fire(long number)
{
    long due = number < sample_most ? number : sample_most;
    CFAbsoluteTime now = CFAbsoluteTimeGetCurrent();
    double start;

    (void)crowd(number);
    for (long i = 0; i < due; i++) {
        CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, now - 1 + (double)i * 1e-6, 0, 0, 0, fire, NULL);

        CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, bench_mode());
    }
    start = thread_ns();
    while (fired < due) {
        (void)CFRunLoopRunInMode(bench_mode(), 0, false);
    }
    return (thread_ns() - start) / (double)due;
}

const struct bench timer_benches[] = {
    {"timer-create", "create one of N timers", "ns", {100000}, 0, timer_made},
    {"timer-add", "add one of N timers, at random dates", "ns", {1000, 10000, 100000, 1000000}, 100000, timer_added},
    {"timer-rearm", "give one of N timers another date", "ns", {1000, 10000, 100000, 1000000}, 100000, timer_rearm},
    {"timer-cancel", "invalidate one of N timers", "ns", {1000, 10000, 100000, 1000000}, 100000, timer_cancel},
    {"timer-fire", "fire a one-shot timer that is due, with N that are not", "ns", {1000, 10000, 100000, 1000000}, 10000, timer_fire},
    {.name = NULL},
};
