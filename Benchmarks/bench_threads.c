/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two loops on two threads that wake each other: on one processor, where the library's own work shows, and on two, where the kernel's
 * wake-up does. And one thread that signals, or posts to, a loop that runs beside it, without pause.
 */
#include <pthread.h>
#include <sched.h>

#include "bench.h"
#include "peers/peer.h"

struct player {
    struct peer_loop loop;
    struct peer_signal signal;
    struct player *other;
    int processor;
    bool is_awake; /* it waits without sleeping, if the library can */
    long left;
};

static struct player players[2];
static pthread_barrier_t ready;

static void hit_back(void *info)
{
    struct player *player = info;

    if (player->left-- > 0) {
        peer_signal_send(&player->other->signal);
    }
    if (player->left < 0 || (player == &players[1] && player->left == 0)) {
        peer_stop(&player->loop);
    }
}

static void *play(void *info)
{
    struct player *player = info;

    stay_on(player->processor);
    peer_loop_begin(&player->loop);
#if defined(PEER_STAYS_AWAKE)
    if (player->is_awake) {
        peer_stay_awake(&player->loop);
    }
#endif
    peer_signal_add(&player->loop, &player->signal, hit_back, player);
    (void)pthread_barrier_wait(&ready);
    if (player == &players[0]) {
        peer_signal_send(&player->other->signal);
    }
    peer_run(&player->loop);
    return NULL;
}

static double ping_pong(int other_processor, bool is_awake, enum bench_clock clock)
{
    long rounds = iterations(20000);
    pthread_t threads[2];
    double start;

    stay_on(0); /* threads of the peer's own are made by this one */
    (void)pthread_barrier_init(&ready, NULL, 3);
    for (int i = 0; i < 2; i++) {
        players[i].other = &players[1 - i];
        players[i].processor = i ? other_processor : 0;
        players[i].is_awake = is_awake;
        players[i].left = rounds;
    }
    players[0].left = rounds - 1; /* the first hit is made outside */
    for (int i = 0; i < 2; i++) {
        (void)pthread_create(&threads[i], NULL, play, &players[i]);
    }
    start = clock_ns(clock);
    (void)pthread_barrier_wait(&ready);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return (clock_ns(clock) - start) / (double)rounds;
}

static double on_one_processor(long number)
{
    (void)number;
    return ping_pong(0, false, clock_of_process); /* one of the two always runs */
}

static double on_two_processors(long number)
{
    (void)number;
    return ping_pong(1, false, clock_on_wall);
}

#if defined(PEER_STAYS_AWAKE)
static double awake_on_one_processor(long number)
{
    (void)number;
    return ping_pong(0, true, clock_of_process);
}

static double awake_on_two_processors(long number)
{
    (void)number;
    return ping_pong(1, true, clock_on_wall);
}
#endif

/* ---- the flood ---- */

static volatile bool is_flooded;
static long performed;

static void serve_one(void *info)
{
    struct player *player = info;

    performed++;
    if (is_flooded) {
        peer_stop(&player->loop);
    }
}

static void *serve(void *info)
{
    struct player *player = info;

    stay_on(1);
    peer_loop_begin(&player->loop);
    peer_signal_add(&player->loop, &player->signal, serve_one, player);
    (void)pthread_barrier_wait(&ready);
    peer_run(&player->loop);
    return NULL;
}

static double flood_by(enum bench_clock clock)
{
    long rounds = iterations(1000000);
    pthread_t thread;
    double start;
    double taken;

    (void)pthread_barrier_init(&ready, NULL, 2);
    (void)pthread_create(&thread, NULL, serve, &players[0]);
    (void)pthread_barrier_wait(&ready);
    stay_on(0);
    start = clock_ns(clock);
    for (long i = 0; i < rounds; i++) {
        peer_signal_send(&players[0].signal);
    }
    taken = clock_ns(clock) - start;
    is_flooded = true;
    peer_signal_send(&players[0].signal);
    (void)pthread_join(thread, NULL);
    return taken / (double)rounds;
}

static double flood(long number)
{
    (void)number;
    return flood_by(clock_of_process);
}

static double flood_producer(long number)
{
    (void)number;
    return flood_by(clock_of_thread);
}

/* ---- posts to a loop beside ---- */

#if !defined(PEER_POSTS_ALONE)

static long posts_left;

static void take_post(void *info)
{
    (void)info; /* which not every peer's posts carry */
    if (--posts_left == 0) {
        peer_stop(&players[0].loop);
    }
}

static void *take_posts(void *info)
{
    struct player *player = info;

    stay_on(1);
    peer_loop_begin(&player->loop);
    (void)pthread_barrier_wait(&ready);
    peer_run(&player->loop);
    return NULL;
}

static double post_beside(void (*post)(struct peer_loop *loop, peer_function function, void *info))
{
    struct peer_loop *loop = &players[0].loop;
    long count = iterations(300000);
    pthread_t thread;
    double start;

    posts_left = count;
    (void)pthread_barrier_init(&ready, NULL, 2);
    (void)pthread_create(&thread, NULL, take_posts, &players[0]);
    (void)pthread_barrier_wait(&ready);
    if (PEER_LOOKS) {
        stay_on(0); /* threads of a peer's own would be made here, and stay here with it */
    }
    start = clock_ns(clock_of_process);
    for (long i = 0; i < count; i++) {
        post(loop, take_post, &players[0]);
#if defined(PEER_IS_CORE_FOUNDATION)
        peer_wake(loop);
#endif
    }
    (void)pthread_join(thread, NULL);
    return (clock_ns(clock_of_process) - start) / (double)count;
}

static double post_functions(long number)
{
    (void)number;
    return post_beside(peer_post);
}

#if defined(PEER_POSTS_BLOCKS)
static double post_blocks(long number)
{
    (void)number;
    return post_beside(peer_post_block);
}
#endif

#endif

const struct bench thread_benches[] = {
    {"ping-pong-1", "a round trip between two loops on one processor", "ns", {1}, .figure = on_one_processor},
    {"ping-pong-2", "a round trip between two loops on two processors (time on the wall)", "ns", {1}, .figure = on_two_processors},
#if defined(PEER_STAYS_AWAKE)
    {"ping-pong-1-awake", "the first of these, with loops that wait awake for 50 µs at most", "ns", {1}, .figure = awake_on_one_processor},
    {"ping-pong-2-awake", "the second, with such loops", "ns", {1}, .figure = awake_on_two_processors},
#endif
    {"flood", "signal without pause a loop that runs beside: both threads, for each signal", "ns", {1}, .figure = flood},
    {"flood-producer", "the same: the signalling thread alone", "ns", {1}, .figure = flood_producer},
#if !defined(PEER_POSTS_ALONE)
    {"post-beside", "post functions without pause to a loop that runs beside, and wake it: both threads, for each", "ns", {1},
     .figure = post_functions},
#endif
#if defined(PEER_POSTS_BLOCKS)
    {"post-blocks-beside", "the same with blocks that capture something", "ns", {1}, .figure = post_blocks},
#endif
    {.name = NULL},
};
