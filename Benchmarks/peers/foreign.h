/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer of another language; see peer.h. Its code is a file of its own (asio.cpp, qt.cpp, tokio/lib.rs), which defines the functions that
 * foreign_calls.h declares for C. A handle is a pointer whose meaning only that file knows. The header that includes this one defines the
 * peer's PEER_ constants.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "peers/foreign_calls.h"

#define PEER_READS_EVENTS 0
#define PEER_SIGNAL_BYTES 0

struct peer_loop {
    void *handle;
};

struct peer_signal {
    void *handle;
};

struct peer_timer {
    void *handle;
};

struct peer_watch {
    void *handle;
};

static void peer_loop_begin(struct peer_loop *loop)
{
    loop->handle = foreign_loop_begin();
}

static void peer_look(struct peer_loop *loop)
{
    foreign_look(loop->handle);
}

static void peer_run(struct peer_loop *loop)
{
    foreign_run(loop->handle);
}

static void peer_stop(struct peer_loop *loop)
{
    foreign_stop(loop->handle);
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    signal->handle = foreign_signal_add(loop->handle, function, info);
}

static void peer_signal_send(struct peer_signal *signal)
{
    foreign_signal_send(signal->handle);
}

static void peer_post(struct peer_loop *loop, peer_function function, void *info)
{
    foreign_post(loop->handle, function, info);
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    timer->handle = foreign_timer_make(loop->handle, seconds, interval, function, info);
}

static void peer_timer_add(struct peer_timer *timer)
{
    foreign_timer_add(timer->handle);
}

static void peer_timer_move(struct peer_timer *timer, double seconds)
{
    foreign_timer_move(timer->handle, seconds);
}

static void peer_timer_cancel(struct peer_timer *timer)
{
    foreign_timer_cancel(timer->handle);
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    watch->handle = foreign_watch_add(loop->handle, descriptor, function, info);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    peer_event_add(loop, watch, descriptor, function, info);
}

#endif
