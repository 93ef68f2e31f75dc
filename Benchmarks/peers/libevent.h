/* SPDX-License-Identifier: Apache-2.0 */
/* libevent as a peer, with its locks; see peer.h. */
#include <event2/event.h>
#include <event2/thread.h>
#include <sys/time.h>

#define PEER_LOOKS 1
#define PEER_TIMERS_MOST 0
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 0
#define PEER_READS_EVENTS 0
#define PEER_SIGNAL_BYTES 0

struct peer_loop {
    struct event_base *handle;
};

struct peer_callback {
    peer_function function;
    void *info;
};

struct peer_signal {
    struct event *handle;
    struct peer_callback callback;
};

struct peer_timer {
    struct event *handle;
    struct peer_callback callback;
    struct timeval after;
    bool repeats;
};

struct peer_watch {
    struct event *handle;
    struct peer_callback callback;
};

static void peer_loop_begin(struct peer_loop *loop)
{
    struct event_config *config;

    (void)evthread_use_pthreads();
    config = event_config_new();
    (void)event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    loop->handle = event_base_new_with_config(config);
    event_config_free(config);
    (void)evthread_make_base_notifiable(loop->handle);
}

static void peer_look(struct peer_loop *loop)
{
    (void)event_base_loop(loop->handle, EVLOOP_NONBLOCK | EVLOOP_NO_EXIT_ON_EMPTY);
}

static void peer_run(struct peer_loop *loop)
{
    (void)event_base_loop(loop->handle, EVLOOP_NO_EXIT_ON_EMPTY);
}

static void peer_stop(struct peer_loop *loop)
{
    (void)event_base_loopbreak(loop->handle);
}

static void event_happened(evutil_socket_t descriptor, short events, void *info)
{
    struct peer_callback *callback = info;

    (void)descriptor, (void)events;
    callback->function(callback->info);
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    signal->callback = (struct peer_callback){function, info};
    signal->handle = event_new(loop->handle, -1, EV_PERSIST, event_happened, &signal->callback);
    (void)event_add(signal->handle, NULL);
}

static void peer_signal_send(struct peer_signal *signal)
{
    event_active(signal->handle, EV_READ, 0);
}

static void event_posted(evutil_socket_t descriptor, short events, void *info)
{
    (void)descriptor, (void)events;
    ((peer_function)info)(NULL);
}

/* All posted functions of the cases take no information, so the function itself can be it. */
static void peer_post(struct peer_loop *loop, peer_function function, void *info)
{
    (void)info;
    (void)event_base_once(loop->handle, -1, EV_TIMEOUT, event_posted, (void *)function, NULL);
}

static struct timeval event_time(double seconds)
{
    struct timeval time = {0, 0};

    if (seconds > 0) {
        time.tv_sec = (time_t)seconds;
        time.tv_usec = (suseconds_t)((seconds - (double)time.tv_sec) * 1e6);
    }
    return time;
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    timer->callback = (struct peer_callback){function, info};
    timer->handle = event_new(loop->handle, -1, interval > 0 ? EV_PERSIST : 0, event_happened, &timer->callback);
    timer->after = event_time(interval > 0 ? interval : seconds);
}

static void peer_timer_add(struct peer_timer *timer)
{
    (void)event_add(timer->handle, &timer->after);
}

static void peer_timer_move(struct peer_timer *timer, double seconds)
{
    struct timeval after = event_time(seconds);

    (void)event_add(timer->handle, &after);
}

static void peer_timer_cancel(struct peer_timer *timer)
{
    (void)event_del(timer->handle);
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    watch->callback = (struct peer_callback){function, info};
    watch->handle = event_new(loop->handle, descriptor, EV_READ | EV_PERSIST, event_happened, &watch->callback);
    (void)event_add(watch->handle, NULL);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    peer_event_add(loop, watch, descriptor, function, info);
}
