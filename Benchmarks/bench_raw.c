/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds beside the raw peer's epoll set: two threads on futexes, a fence and a load, the time of malloc. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

static _Atomic uint32_t turn;

static void await_turn(uint32_t mine, uint32_t other)
{
    while (atomic_load(&turn) != mine) {
        (void)syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, other, NULL, NULL, 0);
    }
}

static void give_turn(uint32_t other)
{
    atomic_store(&turn, other);
    (void)syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

struct player {
    uint32_t number;
    int processor;
    long rounds;
};

static void *play(void *info)
{
    const struct player *player = info;

    stay_on(player->processor);
    for (long i = 0; i < player->rounds; i++) {
        await_turn(player->number, 1 - player->number);
        give_turn(1 - player->number);
    }
    return NULL;
}

static double ping_pong(int other_processor, enum bench_clock clock)
{
    long rounds = iterations(20000);
    struct player players[2] = {{0, 0, rounds}, {1, other_processor, rounds}};
    pthread_t threads[2];
    double start = clock_ns(clock);

    for (int i = 0; i < 2; i++) {
        (void)pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return (clock_ns(clock) - start) / (double)rounds;
}

static double on_one_processor(long number)
{
    (void)number;
    return ping_pong(0, clock_of_process);
}

static double on_two_processors(long number)
{
    (void)number;
    return ping_pong(1, clock_on_wall);
}

static volatile uint32_t is_signalled = 1;
static _Atomic uint32_t line;

static void prepare_nothing(long number)
{
    (void)number;
}

static long look_twice(long count)
{
    for (long i = 0; i < count; i++) {
        (void)atomic_fetch_add(&line, 0);
        if (!is_signalled) {
            abort();
        }
    }
    return count;
}

static long allocate(long count)
{
    for (long i = 0; i < count; i++) {
        void *volatile memory = malloc(32);

        free(memory);
    }
    return count;
}

const struct bench thread_benches[] = {
    {"ping-pong-1", "a round trip between two threads on one processor by futexes", "ns", {1}, .figure = on_one_processor},
    {"ping-pong-2", "a round trip between two threads on two processors by futexes", "ns", {1}, .figure = on_two_processors},
    {"signal-coalesced", "a fence and a load", "ns", {1}, prepare_nothing, look_twice, .most = 0},
    {"post-batch", "what malloc and free take", "ns", {1}, prepare_nothing, allocate, .most = 0},
    {.name = NULL},
};

const struct bench memory_benches[] = {{.name = NULL}};
