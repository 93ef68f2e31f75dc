/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run returns, and when it ends: rules 47 to 60. On the virtual clock where a time matters.
 */
#include <unistd.h>

#include "Loop/loop_trace.h"

static CFRunLoopSourceRef add_signalled(struct probe *probe, CFIndex order, CFStringRef mode)
{
    CFRunLoopSourceRef source = probe_source_add(probe, order, LOOP, mode);
    CFRunLoopSourceSignal(source);
    return source;
}

TEST(result_values, "47")
{
    EXPECT_EQ(kCFRunLoopRunFinished, 1);
    EXPECT_EQ(kCFRunLoopRunStopped, 2);
    EXPECT_EQ(kCFRunLoopRunTimedOut, 3);
    EXPECT_EQ(kCFRunLoopRunHandledSource, 4);
}

static bool stops_too;
static bool empties_too;
static bool outlasts_too;

static void does_several(struct probe *probe)
{
    if (stops_too) {
        CFRunLoopStop(LOOP);
    }
    if (outlasts_too) {
        clock_spend_ms(200);
    }
    if (empties_too) {
        CFRunLoopSourceInvalidate(probe_source_of(probe));
    }
}

TEST(precedence_of_results, "48 58")
{
    clock_start();
    static struct probe source = {.name = "S0", .action = does_several, .logging = probe_is_silent};
    for (int i = 0; i < 16; i++) {
        bool handles = i & 1;
        outlasts_too = i & 2;
        stops_too = i & 4;
        empties_too = i & 8;
        CFRunLoopSourceRef a = probe_source(&source, 0);
        CFRunLoopAddSource(LOOP, a, MODE);
        CFRunLoopSourceSignal(a);
        CFRunLoopRunResult expected = handles        ? kCFRunLoopRunHandledSource
                                      : outlasts_too ? kCFRunLoopRunTimedOut
                                      : stops_too    ? kCFRunLoopRunStopped
                                      : empties_too  ? kCFRunLoopRunFinished
                                                     : kCFRunLoopRunTimedOut; /* after another pass */
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.1, handles), expected);
        CFRunLoopSourceInvalidate(a);
        CFRelease(a);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.1, false), kCFRunLoopRunFinished); /* nothing is left of the stop */
    }
}

TEST(one_source_is_performed_when_returning_after_one, "49")
{
    clock_start();
    static struct probe probes[] = {PROBE("s3", NULL), PROBE("s1", NULL), PROBE("s2", NULL)};
    const CFIndex orders[] = {3, 1, 2};
    for (int i = 0; i < 3; i++) {
        add_signalled(&probes[i], orders[i], MODE);
    }
    probe_run(MODE, 0, true);
    EXPECT(CFRunLoopSourceIsSignalled(probe_source_of(&probes[0])));
    EXPECT(!CFRunLoopSourceIsSignalled(probe_source_of(&probes[1])));
    probe_run(MODE, 1, true);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    EXPECT_LOG("s1 HS s2 HS s3 HS TO");
}

TEST(all_signalled_sources_are_performed_otherwise, "50 82")
{
    clock_start();
    static struct probe probes[] = {PROBE("s5", NULL), PROBE("s-1", NULL), PROBE("s3", NULL), PROBE("s0", NULL)};
    const CFIndex orders[] = {5, -1, 3, 0};
    probe_stage(MODE);
    for (int i = 0; i < 4; i++) {
        add_signalled(&probes[i], orders[i], MODE);
    }
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS s-1 s0 s3 s5 X TO");
}

static void logs_text(void *info)
{
    probe_log(info);
}

TEST(timers_blocks_and_observers_are_no_sources, "51 155")
{
    clock_start();
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_timer_add(&timer, 0.01, 0, LOOP, MODE);
    probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, logs_text, (void *)(uintptr_t)"B", NULL);
    probe_run(MODE, 0.1, true);
    EXPECT_LOG("B O T O TO");
    EXPECT_EQ(clock_ms(), 100);
}

TEST(a_poll_does_all_sources_and_one_wake_cause, "52")
{
    clock_start();
    static struct probe sources[] = {PROBE("S", NULL), PROBE("S", NULL)};
    static struct probe timers[] = {PROBE("T", NULL), PROBE("T", NULL)};
    for (int i = 0; i < 2; i++) {
        add_signalled(&sources[i], 0, MODE);
        probe_timer_add(&timers[i], -1, 0, LOOP, MODE);
    }
    probe_run(MODE, 0, false);
    EXPECT_LOG("S S T T TO");
}

TEST(a_poll_without_work_times_out, "53 L13")
{
    clock_start();
    static struct probe source = PROBE("S0", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0, true);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    EXPECT_LOG("TO TO S0 HS");
}

static void runs_empty_loop(void *context)
{
    (void)context;
    CFRunLoopRun();
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1000, false), kCFRunLoopRunFinished);
    probe_log("returned");
}

TEST(an_empty_loop_returns_at_once, "54 L12")
{
    probe_on_thread(runs_empty_loop, NULL);
    EXPECT_LOG("returned");
}

static void stops_at_the_third(struct probe *probe)
{
    if (probe->calls == 3) {
        CFRunLoopStop(LOOP);
    }
}

static void runs_until_stopped(void *context)
{
    (void)context;
    static struct probe timer = PROBE("T", stops_at_the_third);
    static struct probe source = PROBE("S0", NULL);
    add_signalled(&source, 0, kCFRunLoopDefaultMode);
    probe_timer_add(&timer, 0.001, 0.001, LOOP, kCFRunLoopDefaultMode);
    CFRunLoopRun();
    probe_log("stopped");
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
    source.action = probe_removes_itself;
    CFRunLoopSourceSignal(probe_source_of(&source));
    CFRunLoopRun();
    probe_log("finished");
}

TEST(run_ends_when_stopped_or_empty, "54 60")
{
    probe_on_thread(runs_until_stopped, NULL);
    EXPECT_LOG("S0 T T T stopped S0 finished");
}

static void stops_nested(struct probe *probe)
{
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    (void)probe;
    probe_timer_add(&stopper, 0.01, 0, LOOP, CFSTR("inner"));
    probe_run(CFSTR("inner"), 1000, false);
}

TEST(stop_ends_the_innermost_run_only, "55 L6")
{
    clock_start();
    static struct probe source = PROBE("S0", stops_nested);
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, CFSTR("inner"));
    add_signalled(&source, 0, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("S0 stop S TO");
    EXPECT_EQ(clock_ms(), 50);
}

static void stops_the_loop(void *loop)
{
    CFRunLoopStop(loop);
}

static void runs_another_until_stopped(struct probe *probe)
{
    if (probe->calls == 1) {
        struct probe_thread thread;

        probe_thread_when_waiting(&thread, LOOP, stops_the_loop, LOOP);
        EXPECT_EQ(CFRunLoopRunInMode(CFSTR("inner"), 10, false), kCFRunLoopRunStopped);
        probe_thread_join(&thread);
    }
}

TEST(the_stop_of_a_nested_run_does_not_wake_the_outer_one, "45 55 64")
{
    static struct probe observer = PROBE("BW", runs_another_until_stopped);
    static struct probe idle = PROBE("idle", NULL);
    static struct probe inner = PROBE("inner", NULL);

    probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_source_add(&inner, 0, LOOP, CFSTR("inner"));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.05, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(observer.calls, 1); /* the outer run makes no second pass */
}

TEST(stop_before_a_run_is_forgotten, "56 L4")
{
    clock_start();
    probe_stage(MODE);
    CFRunLoopStop(LOOP);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    CFRunLoopStop(LOOP);
    CFRunLoopWakeUp(LOOP);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
}

static void stops(void *context)
{
    CFRunLoopStop(context);
}

TEST(stop_from_another_thread_wakes, "57")
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, stops, LOOP);
    double start = probe_seconds();
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT(probe_seconds() - start < test_patience_s());
    EXPECT_LOG("E BT BS BW AW X S");
}

TEST(stop_in_exit_is_forgotten, "58")
{
    clock_start();
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    probe_stage(MODE);
    probe_observer_add(&stopper, kCFRunLoopExit, 0, LOOP, MODE);
    probe_run(MODE, 0.01, false);
    probe_run(MODE, 0.01, false);
    EXPECT_LOG("E BT BS BW AW stop X TO E BT BS BW AW stop X TO");
}

TEST(stop_does_not_cut_short, "59")
{
    clock_start();
    static struct probe sources[] = {PROBE("A", probe_stops_loop), PROBE("B", NULL)};
    static struct probe timers[] = {PROBE("T1", probe_stops_loop), PROBE("T2", NULL)};
    probe_stage(MODE);
    for (int i = 0; i < 2; i++) {
        add_signalled(&sources[i], i, MODE);
        probe_timer_add(&timers[i], 0.001 * (i + 1), 0, LOOP, MODE);
    }
    clock_spend_ms(10);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("E BT BS A B T1 T2 X S");
}

TEST(ports_count_as_sources, "48 37")
{
    clock_start();
    static struct probe port = PROBE("S1", probe_stops_loop);
    int event = probe_event();
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 1, true);
    probe_event_post(event);
    probe_run(MODE, 1, false);
    EXPECT_LOG("S1 HS S1 S");
    CFRunLoopSourceInvalidate(p);
    close(event);
}
