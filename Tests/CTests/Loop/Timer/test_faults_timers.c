/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault cases T1 to T20 of timers, as far as no test of a rule covers them: dates that are no numbers, kernels that wake early, clocks that
 * jump, many timers, and races of invalidation.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Loop/loop_trace.h"
#include "fake_kernel.h"

#define TIMED(name_) {.name = (name_), .action = probe_notes_ms, .logging = probe_is_silent}

TEST(a_fire_date_that_is_no_number_never_comes, "T2")
{
    clock_start();
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopTimerRef t = probe_timer_at(&timer, NAN, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 1000, false);
    EXPECT(CFRunLoopTimerIsValid(t));
    EXPECT_LOG("TO");
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent());
    probe_run(MODE, 1000, false);
    EXPECT_LOG("T F");
    CFRelease(t);
}

static void sets_nan(struct probe *probe)
{
    CFRunLoopTimerSetNextFireDate(probe_timer_of(probe), NAN);
}

TEST(a_date_that_is_no_number_set_in_the_callback_never_comes, "T7")
{
    clock_start();
    static struct probe timer = PROBE("T", sets_nan);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 0.1, 0.1, LOOP, MODE);
    probe_run(MODE, 1000, false);
    EXPECT(CFRunLoopTimerIsValid(t));
    EXPECT_LOG("T TO");
}

TEST(a_kernel_that_wakes_early_fires_nothing_early, "114 T9")
{
    clock_start();
    static struct probe timer = TIMED("T");
    static struct probe passes = {.name = "AW", .logging = probe_is_silent};
    probe_observer_add(&passes, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_timer_add(&timer, 0.1, 0.1, LOOP, MODE);
    fake_kernel_wake_early(3, 20000000);
    probe_run(MODE, 0.25, false);
    EXPECT_LOG("T@100 T@200 TO");
    EXPECT_EQ(clock_ms(), 250);
    EXPECT_EQ(passes.calls, 3); /* an early end of the wait is no wake-up */
}

/* Only sleeps move the clock, so a wait that polls for a time that has passed would never end. */
TEST(a_slack_that_has_gone_is_counted_on_once_more_at_most, "44 114 T9")
{
    fake_kernel_install();
    fake_kernel_set_slack(50000);
    static struct probe timer = TIMED("T");
    probe_timer_add(&timer, 0.1, 0.1, LOOP, MODE);
    fake_kernel_set_slack(0); /* a real-time thread has no slack */
    probe_run(MODE, 0.25, false);
    EXPECT_LOG("T@100 T@200 TO");
    EXPECT_EQ(fake_kernel_sleeps(), 4);
}

TEST(a_slack_that_was_asked_for_is_given, "44 T9")
{
    fake_kernel_install();
    fake_kernel_set_slack(50000);
    loop_note_slack(LOOP);
    EXPECT_EQ(LOOP->slack_ns, 50000);
    fake_kernel_set_slack(10000000);
    loop_note_slack(LOOP);
    EXPECT_EQ(LOOP->slack_ns, 50000); /* so that a wait is not asked to end 10 ms before its time, and then again */
    fake_kernel_set_slack(1);
    loop_note_slack(LOOP);
    EXPECT_EQ(LOOP->slack_ns, 1);
}

/* The kernel is asked for the last bit of the wait at a time that has passed, and takes as long as the slack. */
TEST(a_slack_that_stays_ends_the_wait_at_its_limit, "44 T9")
{
    static struct probe timer = TIMED("T");

    fake_kernel_install();
    fake_kernel_set_slack(50000);
    loop_note_slack(LOOP);
    probe_timer_add(&timer, 0.1, 0.1, LOOP, MODE);
    probe_run(MODE, 0.25, false);
    EXPECT_LOG("T@100 T@200 TO");
    EXPECT_EQ(fake_kernel_sleeps(), 6);
}

/* ---- the last bit of a wait beside descriptors, which the kernel may end late by the slack ---- */

static int alarms_refused;

static int refuse_alarm(void)
{
    alarms_refused++;
    return -EMFILE;
}

/* A timer of 30 µs beside a port, for 310 µs, on a kernel that is as late as it says that it may be. Returns how often it fired. */
static int run_beside_a_port(int64_t late_ns)
{
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    static struct probe port = PROBE("S1", NULL);
    int event = probe_event();

    fake_kernel_set_slack(late_ns);
    fake_kernel_be_late(late_ns);
    loop_note_slack(LOOP);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_timer_add(&timer, 30e-6, 30e-6, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 310e-6, false), kCFRunLoopRunTimedOut);
    probe_invalidate(&timer);
    close(event);
    return timer.calls;
}

TEST(what_is_nearer_than_the_slack_is_waited_out_to_its_date, "44 114 T9")
{
    fake_kernel_install();
    EXPECT_EQ(run_beside_a_port(50000), 10);
    EXPECT_EQ(fake_kernel_sleeps(), 11);
    EXPECT_EQ(fake_kernel_elapsed_ns() / 1000, 310);
}

TEST(what_is_nearer_than_the_slack_is_late_without_an_alarm, "44 114 T9")
{
    fake_kernel_install();
    kernel.alarm_create = refuse_alarm;
    EXPECT_EQ(run_beside_a_port(50000), 5); /* 80, 140, 200, 260 and 320 µs after the beginning */
    EXPECT_EQ(fake_kernel_sleeps(), 5);
    EXPECT_EQ(alarms_refused, 5);
}

TEST(a_thread_without_slack_needs_no_alarm, "44 114 T9")
{
    fake_kernel_install();
    kernel.alarm_create = refuse_alarm;
    EXPECT_EQ(run_beside_a_port(0), 10);
    EXPECT_EQ(alarms_refused, 0);
}

TEST(a_niced_thread_is_not_late_beside_a_port, "41 114 T9")
{
    static struct probe timer = TIMED("T");
    static struct probe port = PROBE("S1", NULL);
    int event = probe_event();

    clock_start();
    fake_kernel_be_nice();
    loop_note_slack(LOOP);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_timer_add(&timer, 10, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 15, true), kCFRunLoopRunTimedOut);
    EXPECT_LOG("T@10000");
    EXPECT_EQ(clock_ms(), 15000);
    CFRunLoopSourceInvalidate(probe_source_of(&port));
    close(event);
}

static void is_due_again_at_once(struct probe *probe)
{
    CFRunLoopTimerSetNextFireDate(probe_timer_of(probe), CFAbsoluteTimeGetCurrent());
    if (probe->calls % 10 == 0) {
        clock_spend_ms(1);
    }
}

TEST(a_timer_that_is_always_due_starves_nobody, "35 126 T10")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = is_due_again_at_once, .logging = probe_is_silent};
    static struct probe other = {.name = "U", .logging = probe_is_silent};
    static struct probe port = {.name = "S1", .logging = probe_is_silent};
    static struct probe source = {.name = "S0", .action = probe_stops_loop, .logging = probe_is_silent};
    int event = probe_event();
    probe_timer_add(&timer, 0, 1000, LOOP, MODE);
    probe_timer_add(&other, 0.01, 0.01, LOOP, MODE);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.2, false), kCFRunLoopRunTimedOut);
    EXPECT(timer.calls >= 1000);
    EXPECT(other.calls >= 15);
    EXPECT_EQ(port.calls, 1);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, false), kCFRunLoopRunStopped);
    CFRunLoopSourceInvalidate(p);
    close(event);
}

TEST(wall_clock_jumps_move_no_timer, "110 T11")
{
    const int64_t steps_s[] = {3600, -3600, 50LL * 365 * 86400, -25LL * 365 * 86400};
    clock_start();
    for (int i = 0; i < 4; i++) {
        struct probe timer = TIMED("T");
        CFRunLoopTimerRef t = probe_timer(&timer, 1, 0);
        CFRunLoopAddTimer(LOOP, t, MODE);
        long start = clock_ms();
        fake_kernel_step_wall(steps_s[i] * 1000000000);
        CFRunLoopRunInMode(MODE, 100, false);
        EXPECT_EQ(timer.calls, 1);
        EXPECT_EQ(clock_ms() - start, 1000);
        EXPECT(!CFRunLoopContainsTimer(LOOP, t, MODE));
        CFRelease(t);
    }
}

TEST(a_jump_of_the_wall_clock_does_not_make_the_loop_spin, "110 1204 T12")
{
    clock_start();
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    probe_timer_add(&timer, 100, 0, LOOP, MODE);
    fake_kernel_step_wall(3600LL * 1000000000); /* the date that was given is past, the instant is not */
    EXPECT(CFRunLoopGetNextTimerFireDate(LOOP, MODE) > CFAbsoluteTimeGetCurrent());
    uint64_t sleeps = fake_kernel_sleeps();
    CFRunLoopRunInMode(MODE, 50, false);
    EXPECT_EQ(timer.calls, 0);
    EXPECT(fake_kernel_sleeps() - sleeps <= 3);
    CFRunLoopRunInMode(MODE, 100, false);
    EXPECT_EQ(timer.calls, 1);
}

/* T13: this program's clock_getres says a millisecond while the flag is set. Nothing may be scaled by it. */
static _Atomic bool clock_is_coarse;

int clock_getres(clockid_t clock, struct timespec *resolution)
{
    static int (*original)(clockid_t, struct timespec *);
    if (!original) {
        *(void **)&original = dlsym(RTLD_NEXT, "clock_getres");
    }
    int result = original ? original(clock, resolution) : -1;
    if (result == 0 && clock_is_coarse && resolution) {
        resolution->tv_nsec = 1000000;
    }
    return result;
}

TEST(a_coarse_clock_resolution_scales_nothing, "42 T13")
{
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    clock_is_coarse = true;
    double start = probe_seconds();
    probe_timer_add(&timer, 0.02, 0, LOOP, MODE);
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.1, false), kCFRunLoopRunTimedOut);
    double took = probe_seconds() - start;
    EXPECT_EQ(timer.calls, 1);
    EXPECT(took >= 0.1 && took < 0.1 + test_patience_s());
}

TEST(an_alarm_for_a_past_instant_is_due, "T14")
{
    int alarm = kernel.alarm_create();
    REQUIRE(alarm >= 0);
    const int64_t instants[] = {0, -5, 1, kernel.monotonic_ns()};
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(kernel.alarm_set(alarm, instants[i]), 0);
        struct pollfd ready = {.fd = alarm, .events = POLLIN};
        EXPECT_EQ(poll(&ready, 1, 1000), 1);
        EXPECT_EQ(kernel.alarm_set(alarm, kernel_never), 0);
    }
    close(alarm);
}

/* T15: against a model that knows each timer's date. */
TEST_LIMIT(stress_many_timers_added_moved_and_removed, "131 132 T15", 120)
{
    clock_start();
    enum { most = 100000 };
    static struct probe probes[most];
    static double dates[most]; /* 0: not in the loop */
    int count = test_is_soak() ? most : test_is_instrumented() ? 2000 : 20000;
    CFAbsoluteTime now = CFAbsoluteTimeGetCurrent();
    srandom(7);
    for (int i = 0; i < count; i++) {
        probes[i] = (struct probe){.name = "T", .logging = probe_is_silent | probe_has_no_context_calls};
        dates[i] = now + 1 + (double)(random() % 1000000) / 1000;
        CFRunLoopTimerRef t = probe_timer_at(&probes[i], dates[i], 0);
        CFRunLoopAddTimer(LOOP, t, MODE);
        CFRelease(t);
    }
    for (int i = 0; i < count; i++) {
        int chosen = (int)(random() % count);
        if (dates[chosen] == 0) {
            continue;
        }
        if (random() % 3 == 0) {
            CFRunLoopTimerInvalidate(probe_timer_of(&probes[chosen]));
            dates[chosen] = 0;
        } else {
            dates[chosen] = now + 1 + (double)(random() % 1000000) / 1000;
            CFRunLoopTimerSetNextFireDate(probe_timer_of(&probes[chosen]), dates[chosen]);
        }
    }
    CFAbsoluteTime earliest = INFINITY;
    for (int i = 0; i < count; i++) {
        earliest = dates[i] != 0 && dates[i] < earliest ? dates[i] : earliest;
    }
    EXPECT_NEAR(CFRunLoopGetNextTimerFireDate(LOOP, MODE), earliest, 1e-4);
    CFRunLoopRunInMode(MODE, 500, false);
    for (int i = 0; i < count; i++) {
        if (fabs(dates[i] - now - 500) > 0.01) {
            EXPECT_EQ(probes[i].calls, dates[i] != 0 && dates[i] < now + 500);
        }
    }
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, false), kCFRunLoopRunFinished);
    for (int i = 0; i < count; i++) {
        EXPECT_EQ(probes[i].calls, dates[i] != 0);
    }
}

enum { crowd_most = 700, crowd_dates = 90 };

struct due_timer {
    CFAbsoluteTime date;
    int number; /* in order of adding */
};

static struct due_timer last_fired;
static int fired_count;

/* Orders by date, and equal dates by the order of adding. */
static void fires_in_turn(CFRunLoopTimerRef timer, void *info)
{
    const struct due_timer *due = info;

    (void)timer;
    EXPECT(due->date > last_fired.date || (due->date == last_fired.date && due->number > last_fired.number));
    last_fired = *due;
    fired_count++;
}

TEST(many_due_timers_fire_in_order_of_date_and_adding, "34 132 134 T15")
{
    static struct due_timer due[crowd_most];
    CFAbsoluteTime now;

    clock_start();
    srand(1);
    now = CFAbsoluteTimeGetCurrent();
    for (int size = 1; size <= crowd_most; size = size * 2 + 1) {
        for (int i = 0; i < size; i++) {
            CFRunLoopTimerContext context = {.info = &due[i]};
            CFRunLoopTimerRef timer;

            due[i] = (struct due_timer){now + 1 + (double)(rand() % crowd_dates) / 8, i};
            timer = CFRunLoopTimerCreate(NULL, due[i].date, 0, 0, 0, fires_in_turn, &context);
            CFRunLoopAddTimer(LOOP, timer, MODE);
            CFRelease(timer);
        }
        clock_spend_ms(20000); /* all are due in one pass */
        now += 20;
        last_fired = (struct due_timer){0, 0};
        fired_count = 0;
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
        EXPECT_EQ(fired_count, size);
    }
}

/* T16: the timer fires all the time on one thread and is invalidated by another. */
struct victim {
    struct probe probe;
    _Atomic(CFRunLoopTimerRef) timer;
    _Atomic int may_end;
};

static void has_a_busy_timer(void *context)
{
    struct victim *victim = context;
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopTimerRef t = probe_timer(&victim->probe, 0, 0.000001);
    CFRunLoopAddTimer(LOOP, t, MODE);
    victim->timer = t;
    while (!victim->may_end) {
        CFRunLoopRunInMode(MODE, 0.0005, false);
    }
    CFRelease(t);
}

TEST(stress_invalidation_from_another_thread_leaves_one_callout_at_most, "129 T16")
{
    for (int i = 0; i < (test_is_soak() ? 5000 : 50); i++) {
        struct victim victim = {.probe = {.name = "T", .logging = probe_is_silent}};
        struct probe_thread thread;
        probe_thread_start(&thread, has_a_busy_timer, &victim);
        probe_await_count(&victim.probe.calls, 3);
        CFRunLoopTimerRef t = victim.timer;
        CFRunLoopTimerInvalidate(t);
        int calls = victim.probe.calls;
        EXPECT(!CFRunLoopTimerIsValid(t));
        victim.may_end = 1;
        probe_thread_join(&thread);
        EXPECT(victim.probe.calls - calls <= 1);
        EXPECT_EQ(victim.probe.releases, victim.probe.retains);
    }
}

/* Timers that loops of short life pass on to each other, while another thread changes them wherever they are. */
enum { baton_count = 3 };

struct relay {
    CFRunLoopTimerRef batons[baton_count];
    _Atomic int may_end;
};

static void holds_the_batons_for_a_while(void *context)
{
    struct relay *relay = context;

    for (int i = 0; i < baton_count; i++) {
        CFRunLoopAddTimer(LOOP, relay->batons[i], MODE);
    }
    (void)CFRunLoopRunInMode(MODE, 0, false);
    CFRunLoopRemoveTimer(LOOP, relay->batons[0], MODE); /* the others leave with the thread */
}

static void meddles_with_the_batons(void *context)
{
    struct relay *relay = context;

    for (int i = 0; !relay->may_end; i++) {
        CFRunLoopTimerRef baton = relay->batons[i % baton_count];

        CFRunLoopTimerSetNextFireDate(baton, i % 2 ? 0 : CFAbsoluteTimeGetCurrent() + 1000);
        CFRunLoopTimerSetTolerance(baton, i % 5);
        EXPECT(CFRunLoopTimerIsValid(baton));
        EXPECT(CFRunLoopTimerGetTolerance(baton) < 5);
        (void)CFRunLoopTimerGetNextFireDate(baton);
        if (i % 4 == 0) {
            (void)sched_yield(); /* valgrind runs one thread at a time: without this the others would never run */
        }
    }
}

TEST_LIMIT(stress_timers_change_hands_between_threads_that_end, "115 116 128 172 T15", 120)
{
    static struct probe probe = {.name = "T", .logging = probe_is_silent};
    static struct relay relay;
    struct probe_thread meddler;

    for (int i = 0; i < baton_count; i++) {
        relay.batons[i] = probe_timer(&probe, 1000, 1000);
    }
    probe_thread_start(&meddler, meddles_with_the_batons, &relay);
    for (int i = 0; i < (test_is_soak() ? 200000 : 1000); i++) {
        struct probe_thread threads[2];

        probe_thread_start(&threads[0], holds_the_batons_for_a_while, &relay);
        probe_thread_start(&threads[1], holds_the_batons_for_a_while, &relay);
        probe_thread_join(&threads[0]);
        probe_thread_join(&threads[1]);
    }
    relay.may_end = 1;
    probe_thread_join(&meddler);
    for (int i = 0; i < baton_count; i++) {
        CFRunLoopAddTimer(LOOP, relay.batons[i], MODE); /* free, once its loop has ended */
        EXPECT(CFRunLoopContainsTimer(LOOP, relay.batons[i], MODE));
        CFRunLoopTimerInvalidate(relay.batons[i]);
        CFRelease(relay.batons[i]);
    }
    EXPECT_EQ(probe.releases, probe.retains);
}

static void redates_the_first_baton(void *context)
{
    struct relay *relay = context;

    while (!relay->may_end) {
        CFRunLoopTimerSetNextFireDate(relay->batons[0], CFAbsoluteTimeGetCurrent() + 1000);
        (void)sched_yield();
    }
}

TEST(a_timer_that_another_thread_changes_is_added_all_the_same, "115 128")
{
    static struct probe probe = {.name = "T", .logging = probe_is_silent};
    static struct relay relay;
    struct probe_thread other;

    relay.batons[0] = probe_timer(&probe, 1000, 1000);
    probe_thread_start(&other, redates_the_first_baton, &relay);
    for (int i = 0; i < 20000; i++) {
        CFRunLoopAddTimer(LOOP, relay.batons[0], MODE);
        REQUIRE(CFRunLoopContainsTimer(LOOP, relay.batons[0], MODE));
        CFRunLoopRemoveTimer(LOOP, relay.batons[0], MODE);
        REQUIRE(!CFRunLoopContainsTimer(LOOP, relay.batons[0], MODE));
    }
    relay.may_end = 1;
    probe_thread_join(&other);
    CFRunLoopTimerInvalidate(relay.batons[0]);
    CFRelease(relay.batons[0]);
}

static void is_busy_for_10_s(struct probe *probe)
{
    probe_notes_ms(probe);
    if (probe->calls == 1) {
        clock_spend_ms(10000);
    }
}

TEST(a_busy_callback_lets_other_timers_fire_once, "118 T17")
{
    clock_start();
    static struct probe busy = {.name = "B", .action = is_busy_for_10_s, .logging = probe_is_silent};
    static struct probe timer = TIMED("T");
    probe_timer_add(&busy, 0.05, 0, LOOP, MODE);
    probe_timer_add(&timer, 0.1, 0.1, LOOP, MODE);
    probe_run(MODE, 10.25, false);
    EXPECT_LOG("B@50 T@10050 T@10100 T@10200 TO");
}

TEST(a_thousand_due_timers_and_a_ready_port, "35 T20")
{
    clock_start();
    static struct probe timers[1000];
    static struct probe port = {.name = "S1", .logging = probe_is_silent};
    int event = probe_event();
    for (int i = 0; i < 1000; i++) {
        timers[i] = (struct probe){.name = "T", .logging = probe_is_silent};
        probe_timer_add(&timers[i], -1, 1e-6, LOOP, MODE); /* due again in every pass */
    }
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    for (int i = 0; i < 10; i++) {
        int fired = timers[0].calls;
        int served = port.calls;
        probe_event_post(event);
        clock_spend_ms(1);
        CFRunLoopRunInMode(MODE, 0, false);
        CFRunLoopRunInMode(MODE, 0, false);
        EXPECT(timers[0].calls > fired && timers[999].calls > fired);
        EXPECT(port.calls > served);
    }
    CFRunLoopSourceInvalidate(p);
    close(event);
}
