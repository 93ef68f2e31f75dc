/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two loops on two threads that wake each other: on one processor, where the library's own work shows, and on two,
 * where the kernel's wake-up does.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench.h"

struct player {
    CFRunLoopRef loop;
    CFRunLoopSourceRef source;
    struct player *other;
    int processor;
    long left;
};

static struct player players[2];
static pthread_barrier_t ready;
static double taken_ns;

static void hit(struct player *player)
{
    CFRunLoopSourceSignal(player->source);
    CFRunLoopWakeUp(player->loop);
}

static void perform(void *info)
{
    struct player *player = info;

    if (player->left-- > 0) {
        hit(player->other);
    }
    if (player->left < 0 || (player == &players[1] && player->left == 0)) {
        CFRunLoopStop(player->loop);
    }
}

static void stay_on(int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void *play(void *info)
{
    struct player *player = info;
    CFRunLoopSourceContext context = {.info = player, .perform = perform};

    stay_on(player->processor);
    player->loop = CFRunLoopGetCurrent();
    player->source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(player->loop, player->source, bench_mode());
    (void)pthread_barrier_wait(&ready);
    if (player == &players[0]) {
        double start;

        while (!CFRunLoopIsWaiting(player->other->loop)) {
            (void)sched_yield();
        }
        start = wall_ns();
        hit(player->other);
        (void)CFRunLoopRunInMode(bench_mode(), 1e10, false);
        taken_ns = wall_ns() - start;
    } else {
        (void)CFRunLoopRunInMode(bench_mode(), 1e10, false);
    }
    return NULL;
}

static double ping_pong(int other_processor)
{
    long rounds = iterations(20000);
    pthread_t threads[2];

    (void)pthread_barrier_init(&ready, NULL, 2);
    for (int i = 0; i < 2; i++) {
        players[i].other = &players[1 - i];
        players[i].processor = i ? other_processor : 0;
        players[i].left = rounds;
    }
    players[0].left = rounds - 1; /* the first hit is made outside */
    for (int i = 0; i < 2; i++) {
        (void)pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return taken_ns / (double)rounds;
}

static double on_one_processor(long number)
{
    (void)number;
    return ping_pong(0);
}

static double on_two_processors(long number)
{
    (void)number;
    return ping_pong(1);
}

/* Signals and wake-ups from outside, as fast as they can be made, while the loop serves them. */
static long performed;

static void count(void *info)
{
    (void)info;
    performed++;
}

static void *serve(void *info)
{
    struct player *player = info;
    CFRunLoopSourceContext context = {.info = player, .perform = count};

    player->loop = CFRunLoopGetCurrent();
    player->source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(player->loop, player->source, bench_mode());
    (void)pthread_barrier_wait(&ready);
    (void)CFRunLoopRunInMode(bench_mode(), 1e10, false);
    return NULL;
}

static double flood(long number)
{
    long rounds = iterations(500000);
    pthread_t thread;
    double start;
    double taken;

    (void)number;
    (void)pthread_barrier_init(&ready, NULL, 2);
    (void)pthread_create(&thread, NULL, serve, &players[0]);
    (void)pthread_barrier_wait(&ready);
    while (!CFRunLoopIsWaiting(players[0].loop)) {
        (void)sched_yield();
    }
    start = thread_ns();
    for (long i = 0; i < rounds; i++) {
        hit(&players[0]);
    }
    taken = thread_ns() - start;
    CFRunLoopStop(players[0].loop);
    (void)pthread_join(thread, NULL);
    return taken / (double)rounds;
}

const struct bench thread_benches[] = {
    {"ping-pong-1", "a round trip between two loops on one processor (time on the wall)", "ns", {1}, 0, on_one_processor},
    {"ping-pong-2", "a round trip between two loops on two processors (time on the wall)", "ns", {1}, 0, on_two_processors},
    {"flood", "signal and wake a loop on another thread that serves, one after the other", "ns", {1}, 0, flood},
    {.name = NULL},
};
