/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose stacks are known, compiled with frame pointers: the tests of `runloop trace --stacks` compare with what it says here.
 * Rules: 515 517 519
 *
 * usage: sampled [CASE]
 *
 * Without a case: a timer's callout `work`, which calls `work_much` and `work_little`, at 3 to 1, by `share_out`. With `crowd` the
 * loops of two threads, which have one processor, each call `compete`, which works; with `idle` a timer `tick` is due in a thread
 * that gets no processor while another one works. With `hang` a callout works until the process is killed; with `exec` the program
 * becomes itself without a case.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"

static volatile int called;

/* A part of its caller, which so needs a place on the stack: gcc makes no frame for one that needs none, and calls nobody. */
static inline __attribute__((always_inline)) void work_for(long turns)
{
    for (volatile long i = 0; i < turns; i++) {
    }
}

static double seconds_of_thread(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline)) static void work_much(void)
{
    work_for(300000);
}

__attribute__((noinline)) static void work_little(void)
{
    work_for(100000);
}

__attribute__((noinline)) static void share_out(void)
{
    for (double end = seconds_of_thread() + 0.4; seconds_of_thread() < end;) {
        work_much();
        work_little();
    }
}

__attribute__((noinline)) static void work(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    share_out();
    called++; /* a call at the end would leave no frame */
}

__attribute__((noinline)) static void hang(CFRunLoopTimerRef timer, void *info)
{
    const double end = seconds_of_thread() + 0.4;

    (void)timer, (void)info;
    for (bool is_told = false;; work_for(100000)) {
        if (!is_told && seconds_of_thread() > end) {
            (void)kill(getpid(), SIGKILL);
            is_told = true;
        }
    }
}

/* ---- two threads for one processor ---- */

static pthread_barrier_t together;

__attribute__((noinline)) static void compete(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    for (double end = seconds_of_thread() + 0.3; seconds_of_thread() < end;) {
        work_much();
    }
    called++;
}

static void run_timer(CFRunLoopTimerCallBack callback, CFTimeInterval delay)
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + delay, 0, 0, 0, callback, NULL);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, true);
    CFRelease(timer);
}

static void *compete_on_loop(void *info)
{
    (void)pthread_barrier_wait(&together);
    run_timer(compete, 0);
    return info;
}

/* New threads inherit it. */
static void keep_to_one_processor(void)
{
    cpu_set_t all, one;
    int number = 0;

    (void)sched_getaffinity(0, sizeof all, &all);
    while (!CPU_ISSET(number, &all)) {
        number++;
    }
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void crowd(void)
{
    pthread_t threads[2];

    keep_to_one_processor();
    (void)pthread_barrier_init(&together, NULL, 2);
    for (int i = 0; i < 2; i++) {
        (void)pthread_create(&threads[i], NULL, compete_on_loop, NULL);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

__attribute__((noinline)) static void tick(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    called++;
}

static void *work_besides(void *info)
{
    const struct timespec some = {0, 20000000}; /* the loop sleeps by then, or has no processor to go to sleep with */

    (void)nanosleep(&some, NULL);
    share_out();
    return info;
}

static void idle(void)
{
    const struct sched_param none = {.sched_priority = 0};
    pthread_t thread;

    keep_to_one_processor();
    (void)pthread_create(&thread, NULL, work_besides, NULL);
    (void)sched_setscheduler(0, SCHED_IDLE, &none);
    run_timer(tick, 0.05);
    (void)pthread_join(thread, NULL);
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "crowd") == 0) {
        crowd();
    } else if (count > 1 && strcmp(words[1], "idle") == 0) {
        idle();
    } else if (count > 1 && strcmp(words[1], "exec") == 0) {
        run_timer(tick, 0);
        (void)execl(words[0], words[0], (char *)NULL);
    } else {
        run_timer(count > 1 && strcmp(words[1], "hang") == 0 ? hang : work, 0);
    }
    return 0;
}
