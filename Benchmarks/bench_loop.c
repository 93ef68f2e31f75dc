/* SPDX-License-Identifier: Apache-2.0 */
/* Passes, signals, wake-ups, posts and descriptor events, on one thread. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench.h"

#if !defined(__BLOCKS__)
#include <CRLRunLoop.h>
#endif

static CFRunLoopSourceRef source;
static CFRunLoopRef loop;

static void passes(long count)
{
    CFStringRef mode = bench_mode();

    for (long i = 0; i < count; i++) {
        (void)look(mode);
    }
}

static double pass_with_sources(long number)
{
    for (long i = 0; i < number; i++) {
        (void)idle_source(bench_mode());
    }
    return measure(passes);
}

static double pass_with_timers(long number)
{
    (void)idle_source(bench_mode());
    for (long i = 0; i < number; i++) {
        CFRunLoopAddTimer(CFRunLoopGetCurrent(), far_timer(1000 + (double)i), bench_mode());
    }
    return measure(passes);
}

/* ---- descriptors: version-1 sources on eventfds, which both libraries have ---- */

static int *events;
static long event_count;
static long active_count;
static long performed;

static int port_of(void *info)
{
    return *(int *)info;
}

static void count_perform(void *info)
{
    (void)info;
    performed++;
}

static void watch_events(long number)
{
    events = malloc((size_t)number * sizeof *events);
    event_count = number;
    for (long i = 0; i < number; i++) {
        CFRunLoopSourceContext1 context = {.version = 1, .info = &events[i], .perform = count_perform};

        context.getPort = (void *)port_of;
        events[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (events[i] < 0) {
            perror("eventfd");
            exit(1);
        }
        CFRunLoopAddSource(CFRunLoopGetCurrent(), CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context), bench_mode());
    }
}

static double pass_with_descriptors(long number)
{
    watch_events(number);
    return measure(passes);
}

/* Each round makes `active_count` of them ready and runs the loop until they are served. */
static void descriptor_events(long count)
{
    const uint64_t one = 1;

    for (long served = 0; served < count; served += active_count) {
        long target = performed + active_count;

        for (long i = 0; i < active_count; i++) {
            (void)!write(
                events[next_random() % (unsigned long)(event_count / active_count) + (unsigned long)(i * (event_count / active_count))],
                &one, sizeof one);
        }
        while (performed < target) {
            (void)look(bench_mode());
        }
    }
}

static double one_event_of(long number)
{
    watch_events(number);
    active_count = 1;
    return measure(descriptor_events);
}

static double hundred_events_of(long number)
{
    watch_events(number);
    active_count = 100;
    return measure(descriptor_events);
}

/* ---- signals and wake-ups ---- */

static void signals(long count)
{
    for (long i = 0; i < count; i++) {
        CFRunLoopSourceSignal(source);
    }
}

static double coalesced_signal(long number)
{
    (void)number;
    source = idle_source(bench_mode());
    CFRunLoopSourceSignal(source);
    return measure(signals);
}

static void wake_ups(long count)
{
    for (long i = 0; i < count; i++) {
        CFRunLoopWakeUp(loop);
    }
}

static double wake_up_cost;

static void wakes_in_perform(void *info)
{
    (void)info;
    wake_up_cost = measure(wake_ups);
}

static double wake_of_an_awake_loop(long number)
{
    CFRunLoopSourceContext context = {.perform = wakes_in_perform};

    (void)number;
    loop = CFRunLoopGetCurrent();
    source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(loop, source, bench_mode());
    CFRunLoopSourceSignal(source);
    (void)look(bench_mode());
    return wake_up_cost;
}

static CFRunLoopSourceRef *many;
static long many_count;

static void signals_one_and_looks(long count)
{
    for (long i = 0; i < count; i++) {
        CFRunLoopSourceSignal(many[next_random() % (unsigned long)many_count]);
        (void)look(bench_mode());
    }
}

static double signal_one_of(long number)
{
    many = malloc((size_t)number * sizeof *many);
    many_count = number;
    for (long i = 0; i < number; i++) {
        many[i] = idle_source(bench_mode());
    }
    return measure(signals_one_and_looks);
}

/* ---- runs with a time limit ---- */

static void limited_runs(long count)
{
    for (long i = 0; i < count; i++) {
        CFRunLoopSourceSignal(source);
        (void)CFRunLoopRunInMode(bench_mode(), 1000, true);
    }
}

static double run_with_a_limit(long number)
{
    (void)number;
    source = idle_source(bench_mode());
    return measure(limited_runs);
}

/* ---- posts ---- */

static void count_call(void *info)
{
    (void)info;
    performed++;
}

static void post(CFRunLoopRef target)
{
#if defined(__BLOCKS__)
    CFRunLoopPerformBlock(target, bench_mode(), ^{
        count_call(NULL);
    });
#else
    CRLRunLoopPerformFunction(target, bench_mode(), count_call, NULL, NULL);
#endif
}

static void posts(long count)
{
    const long batch = 1000;

    for (long done = 0; done < count; done += batch) {
        for (long i = 0; i < batch && done + i < count; i++) {
            post(loop);
        }
        (void)look(bench_mode());
    }
}

static double post_in_batches(long number)
{
    (void)number;
    loop = CFRunLoopGetCurrent();
    (void)idle_source(bench_mode());
    return measure(posts);
}

static void post_next(void *info);
static long chain_left;

static void post_link(void)
{
#if defined(__BLOCKS__)
    CFRunLoopPerformBlock(loop, bench_mode(), ^{
        post_next(NULL);
    });
#else
    CRLRunLoopPerformFunction(loop, bench_mode(), post_next, NULL, NULL);
#endif
    CFRunLoopWakeUp(loop);
}

static void post_next(void *info)
{
    (void)info;
    if (--chain_left > 0) {
        post_link();
    } else {
        CFRunLoopStop(loop);
    }
}

static void chain(long count)
{
    chain_left = count;
    post_link();
    (void)CFRunLoopRunInMode(bench_mode(), 1e10, false);
}

static double post_chain(long number)
{
    (void)number;
    loop = CFRunLoopGetCurrent();
    (void)idle_source(bench_mode());
    return measure(chain);
}

/* ---- observers ---- */

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
}

static double pass_with_observers(long number)
{
    (void)idle_source(bench_mode());
    for (long i = 0; i < number; i++) {
        CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, observe, NULL);

        CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, bench_mode());
    }
    return measure(passes);
}

const struct bench loop_benches[] = {
    {"pass-sources", "a poll with N version-0 sources, none signalled", "ns", {1, 100, 10000}, 0, pass_with_sources},
    {"pass-timers", "a poll with N timers, none due", "ns", {1, 100, 10000}, 0, pass_with_timers},
    {"pass-descriptors", "a poll with N descriptors, none ready", "ns", {1, 100, 10000}, 0, pass_with_descriptors},
    {"pass-observers", "a poll with N observers of all activities", "ns", {1, 10}, 0, pass_with_observers},
    {"signal-coalesced", "signal a source that is signalled already", "ns", {1}, 0, coalesced_signal},
    {"signal-one-of", "signal one of N sources, and the poll that performs it", "ns", {1, 10000}, 0, signal_one_of},
    {"wake-awake", "wake a loop that is awake", "ns", {1}, 0, wake_of_an_awake_loop},
    {"run-limit", "a run with a time limit of 1000 s that returns after a signalled source", "ns", {1}, 0, run_with_a_limit},
    {"post-batch", "queue a block, 1000 at a time, and perform it", "ns", {1}, 0, post_in_batches},
    {"post-chain", "a block that queues the next and wakes", "ns", {1}, 0, post_chain},
    {"event-1", "write an eventfd, one of N watched, and the poll that serves it", "ns", {1, 100, 1000, 10000}, 0, one_event_of},
    {"event-100", "the same, 100 ready at a time, for each", "ns", {1000, 10000}, 0, hundred_events_of},
    {.name = NULL},
};
