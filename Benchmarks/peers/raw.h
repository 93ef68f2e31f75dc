/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's calls themselves as a peer, for the rows that they can do: what no library can be quicker than by much. It has one epoll
 * set, an eventfd that nobody reads back, and a timerfd; no locks, no modes, nothing that may change while it runs.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define PEER_LOOKS 1
#define PEER_IS_RAW 1
#define PEER_TIMERS_MOST 0
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 0
#define PEER_READS_EVENTS 0
#define PEER_SIGNAL_BYTES 0

struct peer_watch {
    int descriptor;
    peer_function function;
    void *info;
};

struct peer_loop {
    int set;
    bool is_stopped;
};

struct peer_signal {
    struct peer_watch watch;
};

struct peer_timer {
    struct peer_watch watch;
    struct peer_watch own;
    struct itimerspec dates;
    int set;
};

static void peer_loop_begin(struct peer_loop *loop)
{
    loop->set = epoll_create1(EPOLL_CLOEXEC);
    require(loop->set >= 0, "epoll_create1");
    loop->is_stopped = false;
}

static void raw_turn(struct peer_loop *loop, int limit)
{
    struct epoll_event events[256];
    int count = epoll_wait(loop->set, events, 256, limit);

    for (int i = 0; i < count; i++) {
        struct peer_watch *watch = events[i].data.ptr;

        watch->function(watch->info);
    }
}

static void peer_look(struct peer_loop *loop)
{
    raw_turn(loop, 0);
}

static void peer_run(struct peer_loop *loop)
{
    loop->is_stopped = false;
    while (!loop->is_stopped) {
        raw_turn(loop, -1);
    }
}

static void peer_stop(struct peer_loop *loop)
{
    loop->is_stopped = true;
}

static void raw_add(int set, struct peer_watch *watch, int descriptor, uint32_t events, peer_function function, void *info)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    *watch = (struct peer_watch){descriptor, function, info};
    require(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    raw_add(loop->set, &signal->watch, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), EPOLLIN | EPOLLET, function, info);
}

static void peer_signal_send(struct peer_signal *signal)
{
    const uint64_t one = 1;

    (void)!write(signal->watch.descriptor, &one, sizeof one);
}

static void raw_beat(void *info)
{
    struct peer_timer *timer = info;
    uint64_t count;

    (void)!read(timer->own.descriptor, &count, sizeof count);
    timer->watch.function(timer->watch.info);
}

static struct timespec raw_time(double seconds)
{
    double whole = seconds > 0 ? seconds : 1e-9;
    struct timespec time = {.tv_sec = (time_t)whole};

    time.tv_nsec = (long)((whole - (double)time.tv_sec) * 1e9);
    return time;
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    timer->watch = (struct peer_watch){-1, function, info};
    timer->dates.it_value = raw_time(seconds);
    timer->dates.it_interval = interval > 0 ? raw_time(interval) : (struct timespec){0, 0};
    timer->set = loop->set;
}

static void peer_timer_add(struct peer_timer *timer)
{
    int descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    raw_add(timer->set, &timer->own, descriptor, EPOLLIN, raw_beat, timer);
    (void)timerfd_settime(descriptor, 0, &timer->dates, NULL);
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    raw_add(loop->set, watch, descriptor, EPOLLIN, function, info);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    raw_add(loop->set, watch, descriptor, EPOLLIN, function, info);
}
