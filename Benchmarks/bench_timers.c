/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: adding, moving, cancelling and firing among N, and how late a repeating one is. Dates are random, far in the future unless they
 * are to fire. A thousand are added, moved or cancelled, chosen at random, for otherwise a peer that searches would never come to an end.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "bench.h"
#include "peers/peer.h"

enum { sample_most = 1000 };

static struct peer_loop loop;

#if !defined(PEER_IS_RAW)

static struct peer_timer *crowd;
static long *order; /* of touching them */
static struct peer_timer *more; /* beside the crowd */
static long more_count;
static long crowd_count;
static long next_watchdog;

static volatile long fired;
static volatile long target;

static void fire(void *info)
{
    (void)info;
    if (++fired == target && !PEER_LOOKS) {
        peer_stop(&loop);
    }
}

static double far_away(void)
{
    return 1e6 + (double)(next_random() % 1000000000) / 1e3;
}

static void make(struct peer_timer *timer)
{
    peer_timer_make(&loop, timer, far_away(), 0, fire, NULL);
}

static void stop(void *info)
{
    (void)info;
    peer_stop(&loop);
}

/* Some libraries take in what is added only when they run. */
static void run_once(void)
{
    peer_post(&loop, stop, NULL);
    peer_run(&loop);
}

static void prepare_crowd(long number)
{
    peer_loop_begin(&loop);
    crowd = zeroed(number, sizeof *crowd);
    order = zeroed(number, sizeof *order);
    for (long i = 0; i < number; i++) {
        make(&crowd[i]);
        peer_timer_add(&crowd[i]);
        order[i] = i;
    }
    run_once();
    shuffle(order, number);
    more_count = iterations(sample_most);
    more = zeroed(more_count, sizeof *more);
    memset(more, 0, (size_t)more_count * sizeof *more); /* the pages of zeroed memory come when they are touched */
}

/* To be gone through in the order in which they were made, as time-outs of requests are that are answered in their order. */
static void prepare_row(long number)
{
    prepare_crowd(number);
    for (long i = 0; i < number; i++) {
        order[i] = i;
    }
}

static void prepare_to_add(long number)
{
    prepare_crowd(number);
    for (long i = 0; i < more_count; i++) {
        make(&more[i]);
    }
}

static long make_and_add(long count)
{
    for (long i = 0; i < count; i++) {
        make(&more[i]);
        peer_timer_add(&more[i]);
    }
    return count;
}

static long add(long count)
{
    for (long i = 0; i < count; i++) {
        peer_timer_add(&more[i]);
    }
    return count;
}

static long rearm(long count)
{
    for (long i = 0; i < count; i++) {
        peer_timer_move(&crowd[order[i]], far_away());
    }
    return count;
}

enum { dates_a_look = 100 };

/* What a library leaves to the next look is in the figure, too. */
static long rearm_and_look(long count)
{
    for (long i = 0; i < count; i++) {
        peer_timer_move(&crowd[order[i]], far_away());
#if PEER_LOOKS
        if ((i + 1) % dates_a_look == 0) {
            peer_look(&loop);
        }
#endif
    }
    return count;
}

static const double patience = 30; /* seconds */

/* Dates one after the other, as connections come. */
static void prepare_watchdogs(long number)
{
    peer_loop_begin(&loop);
    crowd = zeroed(number, sizeof *crowd);
    order = zeroed(number, sizeof *order);
    for (long i = 0; i < number; i++) {
        peer_timer_make(&loop, &crowd[i], patience, 0, fire, NULL);
        peer_timer_add(&crowd[i]);
        order[i] = i;
    }
    run_once();
    shuffle(order, number);
    crowd_count = number;
}

/* As a server does at each packet, looking for more after some of them. */
static long put_off(long count)
{
    for (long i = 0; i < count; i++) {
        peer_timer_move(&crowd[order[next_watchdog]], patience);
        next_watchdog = next_watchdog + 1 < crowd_count ? next_watchdog + 1 : 0;
#if PEER_LOOKS
        if (i % dates_a_look == 0) {
            peer_look(&loop);
        }
#endif
    }
    return count;
}

static long cancel(long count)
{
    for (long i = 0; i < count; i++) {
        peer_timer_cancel(&crowd[order[i]]);
    }
    return count;
}

static void prepare_due(long number)
{
    prepare_crowd(number);
    target = more_count;
    for (long i = 0; i < more_count; i++) {
        peer_timer_make(&loop, &more[i], -1 + (double)i * 1e-6, 0, fire, NULL);
        if (PEER_LOOKS) {
            peer_timer_add(&more[i]); /* elsewhere it would fire at once */
        }
    }
}

static long serve_due(long count)
{
#if PEER_LOOKS
    while (fired < target) {
        peer_look(&loop);
    }
#else
    for (long i = 0; i < more_count; i++) {
        peer_timer_add(&more[i]);
    }
    peer_run(&loop);
#endif
    return count;
}

#endif

/* ---- a repeating timer ---- */

static double period_ns = 1e6;
static double *late_ns;
static double first_ns;
static long beat_count;
static long beats_wanted;

static void beat(void *info)
{
    double since = clock_ns(clock_on_wall) - first_ns;

    (void)info;
    if (beat_count < beats_wanted) {
        long period = since > 0 ? (long)(since / period_ns) : 0;

        late_ns[beat_count++] = since - (double)period * period_ns;
    }
    if (beat_count == beats_wanted) {
        beats_wanted = -1;
        peer_stop(&loop);
    }
}

static long beats(long count)
{
    struct peer_timer *timer = zeroed(1, sizeof *timer);

    late_ns = zeroed(count, sizeof *late_ns);
    beats_wanted = count;
    first_ns = clock_ns(clock_on_wall) + period_ns;
    peer_timer_make(&loop, timer, period_ns / 1e9, period_ns / 1e9, beat, NULL);
    peer_timer_add(timer);
    peer_run(&loop);
    return count;
}

static int compare(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;

    return difference < 0 ? -1 : difference > 0;
}

static double lateness(double part)
{
    long count = iterations(500);

    (void)beats(count);
    qsort(late_ns, (size_t)count, sizeof *late_ns, compare);
    return late_ns[(long)((double)count * part)];
}

/* Of the first 500 dates those at which no callback came. */
static double missed_dates(void)
{
    long count = iterations(500);
    double taken;

    (void)beats(count);
    taken = clock_ns(clock_on_wall) - first_ns;
    return (double)(long)(taken / period_ns) - (double)(count - 1);
}

static double lateness_p50(long number)
{
    (void)number;
    peer_loop_begin(&loop);
    return lateness(0.5);
}

static double lateness_p99(long number)
{
    (void)number;
    peer_loop_begin(&loop);
    return lateness(0.99);
}

static double missed(long number)
{
    (void)number;
    peer_loop_begin(&loop);
    return missed_dates();
}

static void never_ready(void *info)
{
    (void)info;
    require(false, "a counter that nobody writes");
}

/* As most programs have their timers: beside what they watch. */
static void prepare_beside(long microseconds)
{
    struct peer_watch *watch = zeroed(1, sizeof *watch);

    period_ns = (double)microseconds * 1e3;
    peer_loop_begin(&loop);
    peer_event_add(&loop, watch, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), never_ready, NULL);
}

static double lateness_beside(long microseconds)
{
    prepare_beside(microseconds);
    return lateness(0.5);
}

static double missed_beside(long microseconds)
{
    prepare_beside(microseconds);
    return missed_dates();
}

#define CROWDS {1000, 10000, 100000, 1000000}
#define TIMER_CLOCK (PEER_LOOKS ? clock_of_thread : clock_of_process)

const struct bench timer_benches[] = {
#if !defined(PEER_IS_RAW)
    {"timer-make", "create a timer and add it to N others, at a random date", "ns", CROWDS, prepare_crowd, make_and_add,
     .once = sample_most, .clock = TIMER_CLOCK, .most = PEER_TIMERS_MOST},
    {"timer-add", "add a timer that is there to N others, at a random date", "ns", CROWDS, prepare_to_add, add, .once = sample_most,
     .clock = TIMER_CLOCK, .most = PEER_TIMERS_MOST},
    {"timer-rearm", "give one of N timers another date", "ns", CROWDS, prepare_crowd, rearm, .once = sample_most, .clock = TIMER_CLOCK,
     .most = PEER_TIMERS_MOST},
    {"timer-rearm-looking", "the same, looking once in 100 times", "ns", CROWDS, prepare_crowd, rearm_and_look, .once = sample_most,
     .clock = TIMER_CLOCK, .most = PEER_TIMERS_MOST},
    {"timer-put-off", "put off one of N timers of 30 s, looking once in 100 times", "ns", CROWDS, prepare_watchdogs, put_off,
     .clock = TIMER_CLOCK, .most = PEER_TIMERS_MOST},
    {"timer-cancel", "cancel one of N timers", "ns", CROWDS, prepare_crowd, cancel, .once = sample_most, .clock = TIMER_CLOCK,
     .most = PEER_TIMERS_MOST},
    {"timer-cancel-oldest", "cancel the oldest of N timers", "ns", CROWDS, prepare_row, cancel, .once = sample_most, .clock = TIMER_CLOCK,
     .most = PEER_TIMERS_MOST},
    {"timer-fire", "fire a one-shot timer that is due, with N that are not", "ns", CROWDS, prepare_due, serve_due, .once = sample_most,
     .clock = TIMER_CLOCK, .most = PEER_TIMERS_MOST},
#endif
    {"timer-late-p50", "how late a timer of 1 ms is, median", "ns", {1}, .figure = lateness_p50},
    {"timer-late-p99", "how late a timer of 1 ms is, 99th percentile", "ns", {1}, .figure = lateness_p99},
    {"timer-missed", "dates that a timer of 1 ms misses until it has fired 500 times", "dates", {1}, .figure = missed},
    {"timer-beside-p50", "how late a timer of N µs is beside a watched eventfd, median", "ns", {100, 1000}, .figure = lateness_beside},
    {"timer-beside-missed", "dates that a timer of N µs misses there until it has fired 500 times", "dates", {100, 1000},
     .figure = missed_beside},
    {.name = NULL},
};
