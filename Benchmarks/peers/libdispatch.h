/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdispatch as a peer: a serial queue stands for the loop; see peer.h. Its callbacks come on threads of its own, so there is no pass to
 * ask for, and two queues may well share one thread.
 */
#include <dispatch/dispatch.h>

#define PEER_LOOKS 0
#define PEER_TIMERS_MOST 100000
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 0
#define PEER_READS_EVENTS 0
#define PEER_SIGNAL_BYTES 0
#if defined(__BLOCKS__)
#define PEER_POSTS_BLOCKS 1
#endif

struct peer_loop {
    dispatch_queue_t queue;
    dispatch_semaphore_t stopped;
};

struct peer_signal {
    dispatch_source_t handle;
};

struct peer_timer {
    dispatch_source_t handle;
    uint64_t interval_ns;
};

struct peer_watch {
    dispatch_source_t handle;
};

static void peer_loop_begin(struct peer_loop *loop)
{
    loop->queue = dispatch_queue_create("bench", NULL);
    loop->stopped = dispatch_semaphore_create(0);
}

static void peer_run(struct peer_loop *loop)
{
    (void)dispatch_semaphore_wait(loop->stopped, DISPATCH_TIME_FOREVER);
}

static void peer_stop(struct peer_loop *loop)
{
    (void)dispatch_semaphore_signal(loop->stopped);
}

static dispatch_source_t dispatch_source_for(dispatch_source_type_t type, uintptr_t handle, struct peer_loop *loop, peer_function function,
                                             void *info)
{
    dispatch_source_t source = dispatch_source_create(type, handle, 0, loop->queue);

    dispatch_set_context(source, info);
    dispatch_source_set_event_handler_f(source, function);
    return source;
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    signal->handle = dispatch_source_for(DISPATCH_SOURCE_TYPE_DATA_OR, 0, loop, function, info);
    dispatch_resume(signal->handle);
}

static void peer_signal_send(struct peer_signal *signal)
{
    dispatch_source_merge_data(signal->handle, 1);
}

static void peer_post(struct peer_loop *loop, peer_function function, void *info)
{
    dispatch_async_f(loop->queue, info, function);
}

#if defined(PEER_POSTS_BLOCKS)
static void peer_post_block(struct peer_loop *loop, peer_function function, void *info)
{
    dispatch_async(loop->queue, ^{
        function(info);
    });
}
#endif

static dispatch_time_t dispatch_date(double seconds)
{
    return dispatch_time(DISPATCH_TIME_NOW, (int64_t)(seconds * 1e9));
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    timer->handle = dispatch_source_for(DISPATCH_SOURCE_TYPE_TIMER, 0, loop, function, info);
    timer->interval_ns = interval > 0 ? (uint64_t)(interval * 1e9) : DISPATCH_TIME_FOREVER;
    dispatch_source_set_timer(timer->handle, dispatch_date(seconds), timer->interval_ns, 0);
}

static void peer_timer_add(struct peer_timer *timer)
{
    dispatch_resume(timer->handle);
}

static void peer_timer_move(struct peer_timer *timer, double seconds)
{
    dispatch_source_set_timer(timer->handle, dispatch_date(seconds), timer->interval_ns, 0);
}

static void peer_timer_cancel(struct peer_timer *timer)
{
    dispatch_source_cancel(timer->handle);
    dispatch_release(timer->handle);
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    watch->handle = dispatch_source_for(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)descriptor, loop, function, info);
    dispatch_resume(watch->handle);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    peer_event_add(loop, watch, descriptor, function, info);
}
