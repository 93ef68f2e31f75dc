/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the bytes that malloc gives away for a thing in a loop, with everything that belongs to it, and the bytes that the user must hold
 * for it. malloc has one arena, so that all threads count.
 */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"
#include "peers/peer.h"

static struct peer_loop loop;

static void do_nothing(void *info)
{
    (void)info;
}

static double allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double)info.uordblks + (double)info.hblkhd;
}

static double bytes_per_source(long number)
{
    struct peer_signal *signals = zeroed(number + 1, sizeof *signals);
    double before;

    peer_loop_begin(&loop);
    peer_signal_add(&loop, &signals[number], do_nothing, NULL);
    before = allocated();
    for (long i = 0; i < number; i++) {
        peer_signal_add(&loop, &signals[i], do_nothing, NULL);
    }
    return (allocated() - before) / (double)number + (double)PEER_SIGNAL_BYTES;
}

static double bytes_per_timer(long number)
{
    struct peer_timer *timers = zeroed(number, sizeof *timers);
    double before;

    peer_loop_begin(&loop);
    before = allocated();
    for (long i = 0; i < number; i++) {
        peer_timer_make(&loop, &timers[i], 1e6 + (double)i, 0, do_nothing, NULL);
        peer_timer_add(&timers[i]);
    }
    return (allocated() - before) / (double)number;
}

#if defined(PEER_IS_CORE_FOUNDATION)

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
}

static double bytes_per_observer(long number)
{
    double before;

    peer_loop_begin(&loop);
    before = allocated();
    for (long i = 0; i < number; i++) {
        CFRunLoopAddObserver(loop.handle, CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, observe, NULL), peer_mode);
    }
    return (allocated() - before) / (double)number;
}

#endif

/* ---- loops ---- */

static pthread_barrier_t all_there;
static pthread_barrier_t all_measured;
static bool has_loop;
static struct peer_loop *loops;

static void stop(void *info)
{
    peer_stop(info);
}

static void *live(void *info)
{
    if (has_loop) {
        struct peer_timer *timer = zeroed(1, sizeof *timer);

        peer_loop_begin(info);
        peer_timer_make(info, timer, 0.001, 0, stop, info);
        peer_timer_add(timer);
        peer_run(info); /* sleeps once: what a sleep needs is there */
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
    pthread_t *threads = zeroed(number, sizeof *threads);
    double before;
    double there;

    loops = zeroed(number, sizeof *loops);
    before = quantity();
    has_loop = with_loop;
    (void)pthread_barrier_init(&all_there, NULL, (unsigned)number + 1);
    (void)pthread_barrier_init(&all_measured, NULL, (unsigned)number + 1);
    for (long i = 0; i < number; i++) {
        (void)pthread_create(&threads[i], NULL, live, &loops[i]);
    }
    (void)pthread_barrier_wait(&all_there);
    there = quantity() - before;
    (void)pthread_barrier_wait(&all_measured);
    for (long i = 0; i < number; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return there / (double)number;
}

static double bytes_per_loop(long number)
{
    double of_threads;

    (void)mallopt(M_ARENA_MAX, 1);
    peer_loop_begin(&loop);
    of_threads = per_thread(number, false, allocated);
    return per_thread(number, true, allocated) - of_threads;
}

static double descriptors_per_loop(long number)
{
    has_loop = true;
    loops = zeroed(1, sizeof *loops);
    peer_loop_begin(&loop);
    return per_thread(number, true, descriptors);
}

const struct bench memory_benches[] = {
    {"bytes-source", "a source in a loop", "bytes", {10000}, .figure = bytes_per_source},
    {"bytes-timer", "a timer in a loop", "bytes", {10000, 100000}, .figure = bytes_per_timer},
#if defined(PEER_IS_CORE_FOUNDATION)
    {"bytes-observer", "an observer in a loop", "bytes", {1000}, .figure = bytes_per_observer},
#endif
    {"bytes-loop", "a loop that has slept and had a timer", "bytes", {100}, .figure = bytes_per_loop},
    {"descriptors-loop", "open descriptors of such a loop", "descriptors", {100}, .figure = descriptors_per_loop},
    {.name = NULL},
};
