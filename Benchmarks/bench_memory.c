/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What things weigh: bytes that malloc has given away, with all that belongs to the thing once it is in a loop. One
 * arena, so that all threads count.
 */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

static double allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double)info.uordblks + (double)info.hblkhd;
}

static double bytes_per_source(long number)
{
    double before;

    (void)idle_source(bench_mode());
    before = allocated();
    for (long i = 0; i < number; i++) {
        (void)idle_source(bench_mode());
    }
    return (allocated() - before) / (double)number;
}

static double bytes_per_timer(long number)
{
    double before;

    (void)idle_source(bench_mode());
    before = allocated();
    for (long i = 0; i < number; i++) {
        CFRunLoopAddTimer(CFRunLoopGetCurrent(), far_timer(1e6 + (double)i), bench_mode());
    }
    return (allocated() - before) / (double)number;
}

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
}

static double bytes_per_observer(long number)
{
    double before;

    (void)idle_source(bench_mode());
    before = allocated();
    for (long i = 0; i < number; i++) {
        CFRunLoopAddObserver(CFRunLoopGetCurrent(), CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, observe, NULL),
                             bench_mode());
    }
    return (allocated() - before) / (double)number;
}

/* ---- loops ---- */

static pthread_barrier_t all_there;
static pthread_barrier_t all_measured;
static bool has_loop;

static void *live(void *info)
{
    if (has_loop) {
        (void)idle_source(bench_mode());
        (void)CFRunLoopRunInMode(bench_mode(), 0.001, false); /* sleeps once: what a sleep needs is there */
    }
    (void)pthread_barrier_wait(&all_there);
    (void)pthread_barrier_wait(&all_measured);
    return info;
}

static double descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    double count = 0;

    while (folder && readdir(folder)) {
        count++;
    }
    if (folder) {
        (void)closedir(folder);
    }
    return count;
}

static double per_thread(long number, bool with_loop, double (*quantity)(void))
{
    pthread_t *threads = malloc((size_t)number * sizeof *threads);
    double before = quantity();
    double there;

    has_loop = with_loop;
    (void)pthread_barrier_init(&all_there, NULL, (unsigned)number + 1);
    (void)pthread_barrier_init(&all_measured, NULL, (unsigned)number + 1);
    for (long i = 0; i < number; i++) {
        (void)pthread_create(&threads[i], NULL, live, NULL);
    }
    (void)pthread_barrier_wait(&all_there);
    there = quantity() - before;
    (void)pthread_barrier_wait(&all_measured);
    for (long i = 0; i < number; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(threads);
    return there / (double)number;
}

static double bytes_per_loop(long number)
{
    double of_threads;

    (void)mallopt(M_ARENA_MAX, 1);
    (void)idle_source(bench_mode());
    of_threads = per_thread(number, false, allocated);
    return per_thread(number, true, allocated) - of_threads;
}

static double descriptors_per_loop(long number)
{
    (void)idle_source(bench_mode());
    (void)CFRunLoopRunInMode(bench_mode(), 0.001, false);
    return per_thread(number, true, descriptors);
}

const struct bench memory_benches[] = {
    {"bytes-source", "a version-0 source in a loop", "bytes", {10000}, 0, bytes_per_source},
    {"bytes-timer", "a timer in a loop", "bytes", {10000}, 0, bytes_per_timer},
    {"bytes-observer", "an observer in a loop", "bytes", {1000}, 0, bytes_per_observer},
    {"bytes-loop", "a loop with two modes that has slept, with one source", "bytes", {100}, 0, bytes_per_loop},
    {"descriptors-loop", "open descriptors of such a loop", "descriptors", {100}, 0, descriptors_per_loop},
    {.name = NULL},
};
