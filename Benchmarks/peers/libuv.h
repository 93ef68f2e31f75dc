/* SPDX-License-Identifier: Apache-2.0 */
/* libuv as a peer; see peer.h. Its dates are whole milliseconds. */
#include <uv.h>

#include "peers/post_queue.h"

#define PEER_LOOKS 1
#define PEER_TIMERS_MOST 0
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 0
#define PEER_READS_EVENTS 0
#define PEER_SIGNAL_BYTES sizeof(uv_async_t)

struct peer_loop {
    uv_loop_t handle;
    uv_async_t posts;
    struct post_queue queue;
};

struct peer_signal {
    uv_async_t handle;
    peer_function function;
};

struct peer_timer {
    struct one_timer *one;
    uint64_t after_ms;
    uint64_t interval_ms;
};

/* As a user would hold it: with what its callback needs, in a piece of memory of its own. */
struct one_timer {
    uv_timer_t handle;
    peer_function function;
};

struct peer_watch {
    uv_poll_t handle;
    peer_function function;
};

static void uv_posts(uv_async_t *handle)
{
    post_queue_run(handle->data);
}

static void peer_loop_begin(struct peer_loop *loop)
{
    (void)uv_loop_init(&loop->handle);
    post_queue_begin(&loop->queue);
    (void)uv_async_init(&loop->handle, &loop->posts, uv_posts);
    loop->posts.data = &loop->queue;
}

static void peer_look(struct peer_loop *loop)
{
    (void)uv_run(&loop->handle, UV_RUN_NOWAIT);
}

static void peer_run(struct peer_loop *loop)
{
    (void)uv_run(&loop->handle, UV_RUN_DEFAULT);
}

static void peer_stop(struct peer_loop *loop)
{
    uv_stop(&loop->handle);
}

static void uv_signalled(uv_async_t *handle)
{
    ((struct peer_signal *)(void *)handle)->function(handle->data);
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    signal->function = function;
    (void)uv_async_init(&loop->handle, &signal->handle, uv_signalled);
    signal->handle.data = info;
}

static void peer_signal_send(struct peer_signal *signal)
{
    (void)uv_async_send(&signal->handle);
}

static void peer_post(struct peer_loop *loop, peer_function function, void *info)
{
    post_queue_push(&loop->queue, function, info);
    (void)uv_async_send(&loop->posts);
}

static void uv_fired(uv_timer_t *handle)
{
    ((struct one_timer *)(void *)handle)->function(handle->data);
}

/* An interval of 0 would be none. */
static uint64_t uv_milliseconds(double seconds)
{
    return seconds <= 0 ? 0 : seconds < 1e-3 ? 1 : (uint64_t)(seconds * 1e3);
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    timer->one = malloc(sizeof *timer->one);
    timer->one->function = function;
    timer->after_ms = uv_milliseconds(seconds);
    timer->interval_ms = uv_milliseconds(interval);
    (void)uv_timer_init(&loop->handle, &timer->one->handle);
    timer->one->handle.data = info;
}

static void peer_timer_add(struct peer_timer *timer)
{
    (void)uv_timer_start(&timer->one->handle, uv_fired, timer->after_ms, timer->interval_ms);
}

static void peer_timer_move(struct peer_timer *timer, double seconds)
{
    (void)uv_timer_start(&timer->one->handle, uv_fired, uv_milliseconds(seconds), timer->interval_ms);
}

static void uv_closed(uv_handle_t *handle)
{
    free(handle);
}

static void peer_timer_cancel(struct peer_timer *timer)
{
    (void)uv_timer_stop(&timer->one->handle);
    uv_close((uv_handle_t *)&timer->one->handle, uv_closed);
}

static void uv_readable(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    ((struct peer_watch *)(void *)handle)->function(handle->data);
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    watch->function = function;
    (void)uv_poll_init(&loop->handle, &watch->handle, descriptor);
    watch->handle.data = info;
    (void)uv_poll_start(&watch->handle, UV_READABLE, uv_readable);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    peer_event_add(loop, watch, descriptor, function, info);
}
