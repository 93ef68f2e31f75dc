/* SPDX-License-Identifier: Apache-2.0 */
/* libev as a peer; see peer.h. It has no locks: one thread may touch a loop, but for ev_async_send. */
#include <ev.h>

#include "peers/post_queue.h"

#define PEER_LOOKS 1
#define PEER_TIMERS_MOST 0
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 0
#define PEER_READS_EVENTS 0
#define PEER_SIGNAL_BYTES sizeof(ev_async)

struct peer_loop {
    struct ev_loop *handle;
    ev_async posts;
    struct post_queue queue;
};

struct peer_signal {
    ev_async handle;
    peer_function function;
    struct ev_loop *loop;
};

struct peer_timer {
    struct ev_loop *loop;
    struct one_timer *one;
};

/* As a user would hold it: with what its callback needs, in a piece of memory of its own. */
struct one_timer {
    ev_timer handle;
    peer_function function;
};

struct peer_watch {
    ev_io handle;
    peer_function function;
};

static void ev_posts(struct ev_loop *loop, ev_async *handle, int events)
{
    (void)loop, (void)events;
    post_queue_run(handle->data);
}

static void peer_loop_begin(struct peer_loop *loop)
{
    loop->handle = ev_loop_new(0);
    post_queue_begin(&loop->queue);
    ev_async_init(&loop->posts, ev_posts);
    loop->posts.data = &loop->queue;
    ev_async_start(loop->handle, &loop->posts);
}

static void peer_look(struct peer_loop *loop)
{
    (void)ev_run(loop->handle, EVRUN_NOWAIT);
}

static void peer_run(struct peer_loop *loop)
{
    (void)ev_run(loop->handle, 0);
}

static void peer_stop(struct peer_loop *loop)
{
    ev_break(loop->handle, EVBREAK_ALL);
}

static void ev_signalled(struct ev_loop *loop, ev_async *handle, int events)
{
    (void)loop, (void)events;
    ((struct peer_signal *)(void *)handle)->function(handle->data);
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    signal->function = function;
    signal->loop = loop->handle;
    ev_async_init(&signal->handle, ev_signalled);
    signal->handle.data = info;
    ev_async_start(loop->handle, &signal->handle);
}

static void peer_signal_send(struct peer_signal *signal)
{
    ev_async_send(signal->loop, &signal->handle);
}

static void peer_post(struct peer_loop *loop, peer_function function, void *info)
{
    post_queue_push(&loop->queue, function, info);
    ev_async_send(loop->handle, &loop->posts);
}

static void ev_fired(struct ev_loop *loop, ev_timer *handle, int events)
{
    (void)loop, (void)events;
    ((struct one_timer *)(void *)handle)->function(handle->data);
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    timer->loop = loop->handle;
    timer->one = malloc(sizeof *timer->one);
    timer->one->function = function;
    ev_timer_init(&timer->one->handle, ev_fired, seconds > 0 ? seconds : 0, interval);
    timer->one->handle.data = info;
}

static void peer_timer_add(struct peer_timer *timer)
{
    ev_timer_start(timer->loop, &timer->one->handle);
}

/* The quickest way that its manual knows. */
static void peer_timer_move(struct peer_timer *timer, double seconds)
{
    timer->one->handle.repeat = seconds;
    ev_timer_again(timer->loop, &timer->one->handle);
}

static void peer_timer_cancel(struct peer_timer *timer)
{
    ev_timer_stop(timer->loop, &timer->one->handle);
    free(timer->one);
}

static void ev_readable(struct ev_loop *loop, ev_io *handle, int events)
{
    (void)loop, (void)events;
    ((struct peer_watch *)(void *)handle)->function(handle->data);
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    watch->function = function;
    ev_io_init(&watch->handle, ev_readable, descriptor, EV_READ);
    watch->handle.data = info;
    ev_io_start(loop->handle, &watch->handle);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    peer_event_add(loop, watch, descriptor, function, info);
}
