/* SPDX-License-Identifier: Apache-2.0 */
/* sd-event as a peer; see peer.h. It is for one thread: what another may signal is an eventfd of its own. */
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#define PEER_LOOKS 1
#define PEER_POSTS_ALONE 1
#define PEER_TIMERS_MOST 100000
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 0
#define PEER_READS_EVENTS 0
#define PEER_SIGNAL_BYTES 0

struct peer_loop {
    sd_event *handle;
    bool is_stopped;
};

struct peer_callback {
    peer_function function;
    void *info;
};

struct peer_signal {
    sd_event_source *handle;
    struct peer_callback callback;
    int descriptor;
};

struct peer_timer {
    sd_event_source *handle;
    struct peer_callback callback;
    sd_event *event;
    uint64_t date_us;
    uint64_t interval_us;
};

struct peer_watch {
    sd_event_source *handle;
    struct peer_callback callback;
};

static void peer_loop_begin(struct peer_loop *loop)
{
    require(sd_event_new(&loop->handle) >= 0, "sd_event_new");
    loop->is_stopped = false;
}

static void peer_look(struct peer_loop *loop)
{
    (void)sd_event_run(loop->handle, 0);
}

static void peer_run(struct peer_loop *loop)
{
    loop->is_stopped = false;
    while (!loop->is_stopped) {
        (void)sd_event_run(loop->handle, UINT64_MAX);
    }
}

static void peer_stop(struct peer_loop *loop)
{
    loop->is_stopped = true;
}

static int sd_signalled(sd_event_source *source, int descriptor, uint32_t events, void *info)
{
    struct peer_callback *callback = info;
    uint64_t count;

    (void)source, (void)events;
    (void)!read(descriptor, &count, sizeof count);
    callback->function(callback->info);
    return 0;
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    signal->callback = (struct peer_callback){function, info};
    signal->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    require(sd_event_add_io(loop->handle, &signal->handle, signal->descriptor, EPOLLIN, sd_signalled, &signal->callback) >= 0,
            "sd_event_add_io");
}

static void peer_signal_send(struct peer_signal *signal)
{
    const uint64_t one = 1;

    (void)!write(signal->descriptor, &one, sizeof one);
}

static int sd_posted(sd_event_source *source, void *info)
{
    (void)sd_event_source_disable_unref(source);
    ((peer_function)info)(NULL);
    return 0;
}

static void peer_post(struct peer_loop *loop, peer_function function, void *info)
{
    sd_event_source *source;

    (void)info;
    (void)sd_event_add_defer(loop->handle, &source, sd_posted, (void *)function);
}

static uint64_t sd_date(double seconds)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)((double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3 + seconds * 1e6);
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    timer->callback = (struct peer_callback){function, info};
    timer->event = loop->handle;
    timer->date_us = sd_date(seconds);
    timer->interval_us = (uint64_t)(interval * 1e6);
}

static int sd_fired(sd_event_source *source, uint64_t date_us, void *info)
{
    struct peer_timer *timer = info;

    if (timer->interval_us) {
        (void)sd_event_source_set_time(source, date_us + timer->interval_us);
        (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    }
    timer->callback.function(timer->callback.info);
    return 0;
}

/* Making one adds it. */
static void peer_timer_add(struct peer_timer *timer)
{
    require(sd_event_add_time(timer->event, &timer->handle, CLOCK_MONOTONIC, timer->date_us, 1, sd_fired, timer) >= 0, "sd_event_add_time");
}

static void peer_timer_move(struct peer_timer *timer, double seconds)
{
    (void)sd_event_source_set_time(timer->handle, sd_date(seconds));
}

static void peer_timer_cancel(struct peer_timer *timer)
{
    (void)sd_event_source_disable_unref(timer->handle);
}

static int sd_readable(sd_event_source *source, int descriptor, uint32_t events, void *info)
{
    struct peer_callback *callback = info;

    (void)source, (void)descriptor, (void)events;
    callback->function(callback->info);
    return 0;
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    watch->callback = (struct peer_callback){function, info};
    require(sd_event_add_io(loop->handle, &watch->handle, descriptor, EPOLLIN, sd_readable, &watch->callback) >= 0, "sd_event_add_io");
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    peer_event_add(loop, watch, descriptor, function, info);
}
