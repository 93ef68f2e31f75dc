/* SPDX-License-Identifier: Apache-2.0 */
/* Passes, signals, wake-ups, posts and descriptor events, on one thread (or on the one that the peer calls back on). */
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "peers/peer.h"

static struct peer_loop loop;

#if !defined(PEER_IS_RAW)

static struct peer_signal *signals;
static long signal_count;

static void do_nothing(void *info)
{
    (void)info;
}

static void add_signals(long number)
{
    signals = zeroed(number, sizeof *signals);
    signal_count = number;
    for (long i = 0; i < number; i++) {
        peer_signal_add(&loop, &signals[i], do_nothing, NULL);
    }
}

#endif

/* ---- what callbacks count, and waiting for a number of them ---- */

static volatile long performed;
static volatile long target;
static bool runs = !PEER_LOOKS; /* until the target is met; otherwise pass after pass */

static void count_one(void *info)
{
    (void)info;
    if (++performed == target && runs) {
        peer_stop(&loop);
    }
}

static void await_target(void)
{
    if (runs) {
        peer_run(&loop);
        return;
    }
#if PEER_LOOKS
    while (performed < target) {
        peer_look(&loop);
    }
#endif
}

/* ---- signals ---- */

#if !defined(PEER_IS_RAW)

static void prepare_coalesced(long number)
{
    peer_loop_begin(&loop);
    add_signals(number);
    peer_signal_send(signals);
}

static long send_again(long count)
{
    for (long i = 0; i < count; i++) {
        peer_signal_send(signals);
    }
    return count;
}

/* ---- posts ---- */

static void prepare_loop(long number)
{
    (void)number;
    peer_loop_begin(&loop);
}

static long post_in_batches(long count)
{
    const long batch = 1000;

    for (long done = 0; done < count; done += batch) {
        long size = count - done < batch ? count - done : batch;

        target = performed + size;
        for (long i = 0; i < size; i++) {
            peer_post(&loop, count_one, NULL);
        }
        await_target();
    }
    return count;
}

static long chain_left;

static void post_next(void *info)
{
    (void)info;
    if (chain_left-- == 0) {
        peer_stop(&loop);
        return;
    }
    peer_post(&loop, post_next, NULL);
#if defined(PEER_IS_CORE_FOUNDATION)
    peer_wake(&loop);
#endif
}

static long post_chain(long count)
{
    chain_left = count;
    post_next(NULL);
    peer_run(&loop);
    return count;
}

#endif

/* ---- descriptors ---- */

struct end {
    int read_from;
    int write_to;
    struct peer_watch watch;
};

static struct end *ends;
static long end_count;
static long active_count;

static void take_count(void *info)
{
    struct end *end = info;
    uint64_t value;

    if (!PEER_READS_EVENTS) {
        (void)!read(end->read_from, &value, sizeof value);
    }
    count_one(NULL);
}

static void take_message(void *info)
{
    struct end *end = info;
    char message[64];

    (void)!read(end->read_from, message, sizeof message);
    count_one(NULL);
}

/* A library may learn something about a descriptor at its first report. The cases ask what the later ones cost. */
static void have_each_reported(void)
{
    static const uint64_t one = 1;

    target = performed + end_count;
    for (long i = 0; i < end_count; i++) {
        (void)!write(ends[i].write_to, &one, sizeof one);
    }
    await_target();
}

static void watch_events(long number)
{
    peer_loop_begin(&loop);
    ends = zeroed(number, sizeof *ends);
    end_count = number;
    active_count = 1;
    for (long i = 0; i < number; i++) {
        ends[i].read_from = ends[i].write_to = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        require(ends[i].read_from >= 0, "eventfd");
        peer_event_add(&loop, &ends[i].watch, ends[i].read_from, take_count, &ends[i]);
    }
    have_each_reported();
}

static void watch_events_100(long number)
{
    watch_events(number);
    active_count = 100;
    runs = true;
}

static void watch_sockets(long number)
{
    peer_loop_begin(&loop);
    ends = zeroed(number, sizeof *ends);
    end_count = number;
    active_count = 1;
    for (long i = 0; i < number; i++) {
        int pair[2];

        require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
        ends[i].read_from = pair[0];
        ends[i].write_to = pair[1];
        peer_socket_add(&loop, &ends[i].watch, pair[0], take_message, &ends[i]);
    }
}

static void watch_sockets_100(long number)
{
    watch_sockets(number);
    active_count = 100;
    runs = true;
}

#if PEER_LOOKS

enum { more_events = 1000 };
static int *further_events;

static void prepare_further_events(long number)
{
    watch_events(number);
    further_events = zeroed(more_events, sizeof *further_events);
    for (long i = 0; i < more_events; i++) {
        further_events[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        require(further_events[i] >= 0, "eventfd");
    }
}

/* A poll ends it, because some libraries tell the kernel only then. */
static long watch_further_events(long count)
{
    struct peer_watch *watches = zeroed(count, sizeof *watches);

    for (long i = 0; i < count; i++) {
        peer_event_add(&loop, &watches[i], further_events[i], count_one, NULL);
    }
    peer_look(&loop);
    return count;
}

#endif

/* Each round makes `active_count` of them ready, spread over all, and runs the loop until they are served. */
static long ready_and_served(long count, unsigned long size)
{
    static const uint64_t message[8] = {1};
    long stride = end_count / active_count;
    long served;

    for (served = 0; served < count; served += active_count) {
        target = performed + active_count;
        for (long i = 0; i < active_count; i++) {
            long chosen = i * stride + (long)(next_random() % (unsigned long)stride);

            (void)!write(ends[chosen].write_to, message, size);
        }
        await_target();
    }
    return served;
}

static long events_served(long count)
{
    return ready_and_served(count, sizeof(uint64_t));
}

static long messages_served(long count)
{
    return ready_and_served(count, 64);
}

/* ---- passes ---- */

#if PEER_LOOKS

static long passes(long count)
{
    for (long i = 0; i < count; i++) {
        peer_look(&loop);
    }
    return count;
}

#endif

#if PEER_LOOKS && !defined(PEER_IS_RAW)

static void prepare_sources(long number)
{
    peer_loop_begin(&loop);
    add_signals(number);
}

static void prepare_timers(long number)
{
    struct peer_timer *timers = zeroed(number, sizeof *timers);

    peer_loop_begin(&loop);
    for (long i = 0; i < number; i++) {
        peer_timer_make(&loop, &timers[i], 1000 + (double)i, 0, do_nothing, NULL);
        peer_timer_add(&timers[i]);
    }
}

static long signal_and_pass(long count)
{
    for (long i = 0; i < count; i++) {
        peer_signal_send(&signals[next_random() % (unsigned long)signal_count]);
        peer_look(&loop);
    }
    return count;
}

#endif

/* ---- what only Core Foundation has ---- */

#if defined(PEER_IS_CORE_FOUNDATION)

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
}

static void add_observers(long number, CFOptionFlags activities)
{
    peer_loop_begin(&loop);
    for (long i = 0; i < number; i++) {
        CFRunLoopAddObserver(loop.handle, CFRunLoopObserverCreate(NULL, activities, true, 0, observe, NULL), peer_mode);
    }
}

static void prepare_observers(long number)
{
    add_observers(number, kCFRunLoopAllActivities);
}

static void prepare_other_observers(long number)
{
    add_observers(number, kCFRunLoopBeforeWaiting); /* a pass that does not wait has no such activity */
}

static CFRunLoopObserverRef visitor;

static void prepare_visitor(long number)
{
    add_observers(number, kCFRunLoopAllActivities);
    visitor = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, observe, NULL);
}

static long come_and_go(long count)
{
    for (long i = 0; i < count; i++) {
        CFRunLoopAddObserver(loop.handle, visitor, peer_mode);
        CFRunLoopRemoveObserver(loop.handle, visitor, peer_mode);
    }
    return count;
}

static CFStringRef *mode_names;
static long mode_count;

/* The names are other strings than those with which the modes were made, as they are where each call makes its own. */
static void prepare_modes(long number)
{
    peer_loop_begin(&loop);
    mode_names = zeroed(number, sizeof *mode_names);
    mode_count = number;
    for (long i = 0; i < number; i++) {
        CFStringRef name = CFStringCreateWithFormat(NULL, NULL, CFSTR("mode %ld"), i);

        CFRunLoopAddSource(loop.handle, loop.idle, name);
        CFRelease(name);
        mode_names[i] = CFStringCreateWithFormat(NULL, NULL, CFSTR("mode %ld"), i);
    }
}

static long run_in_modes(long count)
{
    for (long i = 0; i < count; i++) {
        (void)CFRunLoopRunInMode(mode_names[i % mode_count], 0, true);
    }
    return count;
}

static void prepare_limited_run(long number)
{
    peer_loop_begin(&loop);
    add_signals(number);
}

static long limited_runs(long count)
{
    for (long i = 0; i < count; i++) {
        CFRunLoopSourceSignal(signals[0].handle);
        (void)CFRunLoopRunInMode(peer_mode, 1000, true);
    }
    return count;
}

static long signal_only(long count)
{
    for (long i = 0; i < count; i++) {
        CFRunLoopSourceSignal(signals[0].handle);
    }
    return count;
}

#endif

const struct bench loop_benches[] = {
#if PEER_LOOKS && !defined(PEER_IS_RAW)
    {"pass-sources", "a poll with N sources, none signalled", "ns", {1, 100, 1000, 10000}, prepare_sources, passes,
     .most = PEER_SOURCES_MOST},
    {"pass-timers", "a poll with N timers, none due", "ns", {1, 100, 10000}, prepare_timers, passes, .most = PEER_TIMERS_MOST},
    {"signal-one-of", "signal one of N sources, and the poll that performs it", "ns", {1, 100, 1000, 10000}, prepare_sources,
     signal_and_pass, .most = PEER_SOURCES_MOST},
#endif
#if PEER_LOOKS
    {"pass-descriptors", "a poll with N descriptors, none ready", "ns", {1, 100, 10000}, watch_events, passes, .most = PEER_EVENTS_MOST},
#endif
#if defined(PEER_IS_CORE_FOUNDATION)
    {"pass-observers", "a poll with N observers of all activities", "ns", {1, 10}, prepare_observers, passes, .most = 0},
    {"pass-other-observers", "a poll with N observers of activities that do not come", "ns", {100}, prepare_other_observers, passes,
     .most = 0},
    {"observer-change", "add an observer of all activities to N others, and remove it", "ns", {1, 10, 100, 1000}, prepare_visitor,
     come_and_go, .most = 0},
    {"run-one-of", "a poll in one of N modes, by the text of its name", "ns", {1, 100, 1000}, prepare_modes, run_in_modes, .most = 0},
    {"run-limit", "a run with a time limit of 1000 s that returns after a signalled source", "ns", {1}, prepare_limited_run, limited_runs,
     .most = 0},
    {"signal-only", "signal a source that is signalled already, without waking", "ns", {1}, prepare_coalesced, signal_only, .most = 0},
#endif
#if !defined(PEER_IS_RAW)
    {"signal-coalesced", "signal what is signalled already, and wake its loop", "ns", {1}, prepare_coalesced, send_again, .most = 0},
    {"post-batch", "post a function, 1000 at a time, and perform it", "ns", {1}, prepare_loop, post_in_batches,
     .clock = PEER_LOOKS ? clock_of_thread : clock_of_process},
    {"post-chain", "a posted function that posts the next", "ns", {1}, prepare_loop, post_chain,
     .clock = PEER_LOOKS ? clock_of_thread : clock_of_process},
#endif
#if PEER_LOOKS
    {"event-add", "watch an eventfd beside N others, 1000 before a poll, and that poll", "ns", {1, 1000}, prepare_further_events,
     watch_further_events, .once = more_events, .most = PEER_EVENTS_MOST},
#endif
    {"event-1", "write an eventfd, one of N watched, and the poll that serves it", "ns", {1, 100, 1000, 10000}, watch_events, events_served,
     .clock = PEER_LOOKS ? clock_of_thread : clock_of_process, .most = PEER_EVENTS_MOST},
    {"event-100", "the same, 100 ready for each run", "ns", {100, 1000, 10000}, watch_events_100, events_served,
     .clock = PEER_LOOKS ? clock_of_thread : clock_of_process, .most = PEER_EVENTS_MOST},
    {"socket-1", "write to a socket, one of N watched, and the poll that serves it", "ns", {1, 100, 1000, 9500}, watch_sockets,
     messages_served, .clock = clock_of_process, .most = PEER_SOCKETS_MOST},
    {"socket-100", "the same, 100 ready for each run", "ns", {100, 1000, 9500}, watch_sockets_100, messages_served,
     .clock = clock_of_process, .most = PEER_SOCKETS_MOST},
    {.name = NULL},
};
