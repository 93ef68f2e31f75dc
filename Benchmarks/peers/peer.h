/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peer that this program is built for: PEER_HEADER names its header, which defines all that is declared here, as a user of that library
 * would write it. Callbacks get `info` and nothing else.
 *
 *   PEER_LOOKS          1 if a thread can run a pass that does not wait; otherwise callbacks come on threads of the library's own
 *   PEER_TIMERS_MOST    and the like: more would take this peer longer than anybody waits; 0: no limit
 *   PEER_SIGNAL_BYTES   what the user himself must hold for one, besides what the library allocates
 *   PEER_POSTS_ALONE    defined if only the loop's own thread may post
 *   PEER_POSTS_BLOCKS   defined if it can call blocks (peer_post_block)
 *   PEER_STAYS_AWAKE    defined if a loop can wait without sleeping (peer_stay_awake, before it runs)
 *   PEER_READS_EVENTS   1 if the loop itself reads the counters that peer_event_add watches
 */
#ifndef PEER_H
#define PEER_H

#pragma GCC diagnostic ignored "-Wunused-function" /* each file uses some of them */

typedef void (*peer_function)(void *info);

struct peer_loop;
struct peer_signal;
struct peer_timer;
struct peer_watch;

/* The loop of the calling thread; later calls are made on that thread unless they say otherwise. */
static void peer_loop_begin(struct peer_loop *loop);
/* One pass that does not wait. */
static void peer_look(struct peer_loop *loop);
/* Runs, and waits, until a callback of it calls peer_stop. */
static void peer_run(struct peer_loop *loop);
static void peer_stop(struct peer_loop *loop);

/* What any thread may signal, and the loop then wakes and calls back. */
static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info);
static void peer_signal_send(struct peer_signal *signal);

/* Has the loop call a function soon, once. As each library offers it to any thread. */
static void peer_post(struct peer_loop *loop, peer_function function, void *info);

/* Dates are seconds from now; an interval of 0 is a timer that fires once. */
static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info);
static void peer_timer_add(struct peer_timer *timer);
static void peer_timer_move(struct peer_timer *timer, double seconds);
static void peer_timer_cancel(struct peer_timer *timer);

/* Called back while the descriptor can be read: a counter (eventfd), or a socket. */
static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info);
static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info);

#include PEER_HEADER

#endif
