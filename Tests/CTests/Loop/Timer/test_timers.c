/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: rules 109 to 145, on the virtual clock: a callback that takes long is clock_spend_ms, and every firing has an exact time.
 */
#include <math.h>

#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Loop/loop_trace.h"
#include "fake_kernel.h"

static void add_idle(CFStringRef mode)
{
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, mode);
}

static CFRunLoopTimerRef add_timer(struct probe *probe, long from_now_ms, long interval_ms)
{
    return probe_timer_add(probe, (double)from_now_ms / 1000, (double)interval_ms / 1000, LOOP, MODE);
}

#define TIMED(name_) {.name = (name_), .action = probe_notes_ms, .logging = probe_is_silent}

static void expect_date(CFAbsoluteTime date, CFAbsoluteTime expected)
{
    EXPECT_NEAR(date, expected, 1e-4);
}

TEST(an_interval_of_0_or_less_is_one_shot, "109 139")
{
    static struct probe timer = PROBE("T", NULL);
    const CFTimeInterval given[] = {0, -1, -INFINITY, 0.25, 1e300};
    const CFTimeInterval kept[] = {0, 0, 0, 0.25, 1e300};
    for (int i = 0; i < 5; i++) {
        CFRunLoopTimerRef t = probe_timer(&timer, 100, given[i]);
        EXPECT(CFRunLoopTimerGetInterval(t) == kept[i] || (i == 4 && CFRunLoopTimerGetInterval(t) >= 504911232.0));
        EXPECT_EQ(CFRunLoopTimerDoesRepeat(t), kept[i] > 0);
        CFRelease(t);
    }
}

static void creates_nan_intervals(void)
{
    static struct probe timer = PROBE("T", NULL);
    for (int i = 0; i < 3; i++) {
        CFRunLoopTimerRef t = probe_timer(&timer, 0, NAN);
        EXPECT(CFRunLoopTimerGetInterval(t) == 0);
        EXPECT(!CFRunLoopTimerDoesRepeat(t));
        CFRunLoopAddTimer(LOOP, t, MODE);
        CFRelease(t);
    }
}

TEST(an_interval_that_is_no_number_is_one_shot, "109 T1")
{
    clock_start();
    EXPECT_EQ(logged_lines("CFRunLoopTimerCreate", creates_nan_intervals), 1);
    probe_run(MODE, 1, false);
    EXPECT_LOG("T T T F");
}

TEST(the_firing_instant_is_fixed, "110 145 T11")
{
    clock_start();
    static struct probe timer = TIMED("T");
    CFRunLoopTimerRef t = add_timer(&timer, 1000, 1000);
    expect_date(CFRunLoopTimerGetNextFireDate(t), CFAbsoluteTimeGetCurrent() + 1);
    fake_kernel_step_wall(3600LL * 1000000000);
    expect_date(CFRunLoopTimerGetNextFireDate(t), CFAbsoluteTimeGetCurrent() + 1);
    probe_run(MODE, 1.5, false);
    fake_kernel_step_wall(-7200LL * 1000000000);
    probe_run(MODE, 1, false);
    EXPECT_LOG("T@1000 TO T@2000 TO");
    /* after a firing the date follows the wall clock: half a second is left */
    fake_kernel_step_wall(50LL * 365 * 86400 * 1000000000);
    probe_run(MODE, 1, false);
    EXPECT_LOG("T@3000 TO");
    expect_date(CFRunLoopTimerGetNextFireDate(t), CFAbsoluteTimeGetCurrent() + 0.5);
}

TEST(a_date_set_after_a_wall_step_counts_from_the_new_wall_time, "110 127")
{
    clock_start();
    static struct probe timer = TIMED("T");
    CFRunLoopTimerRef t = add_timer(&timer, 1000000, 0);
    fake_kernel_step_wall(-3600LL * 1000000000);
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() + 0.25);
    probe_run(MODE, 1, false);
    EXPECT_LOG("T@250 F");
}

TEST(a_past_date_is_due_at_once, "111")
{
    clock_start();
    static struct probe timer = TIMED("T");
    CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() - 30;
    CFRunLoopTimerRef t = probe_timer_at(&timer, date, 100);
    expect_date(CFRunLoopTimerGetNextFireDate(t), date);
    CFRunLoopAddTimer(LOOP, t, MODE);
    expect_date(CFRunLoopTimerGetNextFireDate(t), date);
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), date);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T@0 TO");
    CFRelease(t);
}

TEST(a_past_date_anchors_at_the_creation, "112")
{
    clock_start();
    static struct probe timer = TIMED("T");
    add_timer(&timer, -30, 100);
    clock_spend_ms(20);
    probe_run(MODE, 0.3, false);
    EXPECT_LOG("T@20 T@100 T@200 T@300 TO");
}

TEST(the_guides_absolute_date_fires_at_once, "112 111")
{
    clock_start();
    static struct probe timer = TIMED("T");
    CFRunLoopTimerRef t = probe_timer_at(&timer, 0.1, 0.3);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRelease(t);
    probe_run(MODE, 1, false);
    EXPECT_LOG("T@0 T@300 T@600 T@900 TO");
}

TEST(dates_have_limits, "113 T3")
{
    clock_start();
    static struct probe timer = PROBE("T", NULL);
    const CFAbsoluteTime dates[] = {1e300, INFINITY, 4039289857.0, -1e300, -INFINITY};
    for (int i = 0; i < 5; i++) {
        CFRunLoopTimerRef t = probe_timer_at(&timer, dates[i], 0);
        EXPECT(CFRunLoopTimerIsValid(t));
        if (dates[i] > 0) {
            EXPECT_NEAR(CFRunLoopTimerGetNextFireDate(t), 4039289856.0, 0);
        }
        CFRunLoopAddTimer(LOOP, t, MODE);
        probe_run(MODE, 0, false);
        CFRunLoopTimerInvalidate(t);
        CFRelease(t);
    }
    EXPECT_LOG("TO TO TO T TO T TO");
}

TEST(a_huge_interval_fires_once_and_stays, "113 T4")
{
    clock_start();
    static struct probe timers[] = {TIMED("T"), TIMED("U")};
    const CFTimeInterval intervals[] = {1e300, INFINITY};
    for (int i = 0; i < 2; i++) {
        CFRunLoopTimerRef t = probe_timer_add(&timers[i], 0.01, intervals[i], LOOP, MODE);
        EXPECT(CFRunLoopTimerDoesRepeat(t));
        probe_run(MODE, 100, false);
        EXPECT(CFRunLoopTimerIsValid(t));
        EXPECT(CFRunLoopTimerGetNextFireDate(t) > CFAbsoluteTimeGetCurrent() + 504000000.0);
        CFRunLoopTimerInvalidate(t);
    }
    EXPECT_LOG("T@10 TO U@100010 TO");
}

TEST(timers_never_fire_early, "114 143 T8")
{
    static struct probe timer = PROBE("T", probe_stops_loop);
    for (int i = 1; i <= 30; i++) {
        double seconds = 0.0003 * i;
        double start = probe_seconds();
        probe_timer_add(&timer, seconds, 0, LOOP, MODE);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, false), kCFRunLoopRunStopped);
        EXPECT(probe_seconds() - start >= seconds - 1e-6); /* a CFAbsoluteTime has a precision of about 0.1 us */
    }
}

static CFRunLoopRef loop_of_another_thread;
static _Atomic int another_is_ready;
static _Atomic int another_may_end;

static void offers_loop(void *context)
{
    (void)context;
    loop_of_another_thread = LOOP;
    another_is_ready = 1;
    probe_await_count(&another_may_end, 1);
}

TEST(a_timer_is_in_one_loop, "115 116 T19")
{
    static struct probe timer = PROBE("T", NULL);
    struct probe_thread thread;
    probe_thread_start(&thread, offers_loop, NULL);
    probe_await_count(&another_is_ready, 1);
    CFRunLoopRef other = loop_of_another_thread;
    CFRunLoopTimerRef t = probe_timer(&timer, 100, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(LOOP, t, CFSTR("M"));
    CFRunLoopAddTimer(other, t, MODE);
    EXPECT(!CFRunLoopContainsTimer(other, t, MODE));
    EXPECT(CFRunLoopContainsTimer(LOOP, t, CFSTR("M")));
    CFRunLoopRemoveTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(other, t, MODE);
    EXPECT(!CFRunLoopContainsTimer(other, t, MODE));
    CFAbsoluteTime date = CFRunLoopTimerGetNextFireDate(t);
    CFRunLoopRemoveTimer(LOOP, t, CFSTR("M"));
    EXPECT(CFRunLoopTimerIsValid(t));
    expect_date(CFRunLoopTimerGetNextFireDate(t), date);
    CFRunLoopAddTimer(other, t, MODE);
    EXPECT(CFRunLoopContainsTimer(other, t, MODE));
    CFRunLoopTimerInvalidate(t);
    EXPECT(!CFRunLoopContainsTimer(other, t, MODE));
    CFRelease(t);
    another_may_end = 1;
    probe_thread_join(&thread);
}

TEST(the_loop_retains_its_timers, "117")
{
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, LOOP, MODE);
    EXPECT(CFRunLoopTimerIsValid(t));
    EXPECT_LOG("retain(T)");
    CFIndex references = CFGetRetainCount(LOOP);
    CFRunLoopRemoveTimer(LOOP, t, MODE);
    EXPECT_LOG("release(T)");
    EXPECT_EQ(CFGetRetainCount(LOOP), references);
}

static void takes_250_ms_once(struct probe *probe)
{
    probe_notes_ms(probe);
    if (probe->calls == 1) {
        clock_spend_ms(250);
    }
}

TEST(missed_periods_are_one_firing_on_the_grid, "118 119 T6")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = takes_250_ms_once, .logging = probe_is_silent};
    add_timer(&timer, 100, 100);
    probe_run(MODE, 0.6, false);
    EXPECT_LOG("T@100 T@400 T@500 T@600 TO");
}

TEST(a_stalled_loop_fires_once, "118 T17")
{
    clock_start();
    static struct probe timer = TIMED("T");
    add_timer(&timer, 100, 100);
    clock_spend_ms(10050);
    probe_run(MODE, 0.2, false);
    EXPECT_LOG("T@10050 T@10100 T@10200 TO");
}

static void takes_exactly_one_interval(struct probe *probe)
{
    probe_notes_ms(probe);
    clock_spend_ms(100);
}

TEST(a_callback_as_long_as_the_interval_skips_every_second, "118 119")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = takes_exactly_one_interval, .logging = probe_is_silent};
    add_timer(&timer, 100, 100);
    probe_run(MODE, 0.75, false);
    EXPECT_LOG("T@100 T@300 T@500 T@700 TO"); /* the next date is strictly later than now */
}

static void spends_an_hour_once(struct probe *probe)
{
    if (probe->calls == 1) {
        clock_spend_ms(3600 * 1000);
    } else {
        CFRunLoopTimerInvalidate(probe_timer_of(probe));
    }
}

TEST(catching_up_takes_no_steps, "120 T6")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = spends_an_hour_once, .logging = probe_is_silent};
    double start = probe_seconds();
    probe_timer_add(&timer, 0, 1e-9, LOOP, MODE);
    probe_run(MODE, 1e10, false); /* 3.6e12 periods are missed */
    EXPECT_EQ(timer.calls, 2);
    EXPECT(probe_seconds() - start < test_patience_s());
}

static void creates_tiny_intervals(void)
{
    static struct probe timer = PROBE("T", NULL);
    const CFTimeInterval intervals[] = {1e-10, 1e-300, 5e-324};
    for (int i = 0; i < 3; i++) {
        CFRunLoopTimerRef t = probe_timer(&timer, 100, intervals[i]);
        EXPECT(CFRunLoopTimerDoesRepeat(t));
        EXPECT_NEAR(CFRunLoopTimerGetInterval(t), 1e-9, 1e-12);
        CFRelease(t);
    }
}

TEST(a_tiny_interval_is_a_nanosecond, "121 T5")
{
    EXPECT_EQ(logged_lines("CFRunLoopTimerCreate", creates_tiny_intervals), 1);
}

TEST(a_tiny_interval_fires, "121 T5")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = spends_an_hour_once, .logging = probe_is_silent};
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 1e-300);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 1e10, false);
    EXPECT_EQ(timer.calls, 2);
    CFRelease(t);
}

static void runs_nested_for_350_ms_once(struct probe *probe)
{
    probe_notes_ms(probe);
    if (probe->calls == 1) {
        probe_log("{");
        probe_run(MODE, 0.35, false);
        probe_log("}");
    }
}

TEST(a_firing_timer_is_skipped_by_nested_runs, "122")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = runs_nested_for_350_ms_once, .logging = probe_is_silent};
    static struct probe other = TIMED("U");
    add_timer(&timer, 100, 100);
    add_timer(&other, 250, 0);
    probe_run(MODE, 0.65, false);
    EXPECT_LOG("T@100 { U@250 TO } T@500 T@600 TO");
}

static CFAbsoluteTime firing_date;

static void checks_dates(struct probe *probe)
{
    expect_date(CFRunLoopTimerGetNextFireDate(probe_timer_of(probe)), firing_date);
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), firing_date);
}

TEST(dates_in_the_callback_are_the_ones_being_served, "123 131")
{
    clock_start();
    static struct probe timer = PROBE("T", checks_dates);
    firing_date = CFAbsoluteTimeGetCurrent() + 0.1;
    CFRunLoopTimerRef t = add_timer(&timer, 100, 100);
    probe_run(MODE, 0.15, false);
    EXPECT_EQ(timer.calls, 1);
    expect_date(CFRunLoopTimerGetNextFireDate(t), firing_date + 0.1);
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), firing_date + 0.1);
}

static void is_valid_now(struct probe *probe)
{
    EXPECT(probe_is_valid(probe));
}

TEST(a_one_shot_is_invalid_after_its_callback, "124")
{
    clock_start();
    static struct probe timer = PROBE("T", is_valid_now);
    CFRunLoopTimerRef t = probe_timer(&timer, 0.1, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 1, false);
    EXPECT(!CFRunLoopTimerIsValid(t));
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, MODE));
    EXPECT_LOG("T F");
    CFRelease(t);
}

static double offset_of_new_date;

static void sets_date_once(struct probe *probe)
{
    probe_notes_ms(probe);
    if (probe->calls == 1) {
        CFRunLoopTimerSetNextFireDate(probe_timer_of(probe), CFAbsoluteTimeGetCurrent() + offset_of_new_date);
    }
}

TEST(a_date_set_in_a_one_shots_callback_has_no_effect, "125")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = sets_date_once, .logging = probe_is_silent};
    offset_of_new_date = 0.05;
    add_idle(MODE);
    add_timer(&timer, 100, 0);
    probe_run(MODE, 1, false);
    EXPECT_LOG("T@100 TO");
}

TEST(a_later_date_set_in_the_callback_restarts_the_phase, "126 T7")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = sets_date_once, .logging = probe_is_silent};
    offset_of_new_date = 0.17;
    add_timer(&timer, 50, 100);
    probe_run(MODE, 0.5, false);
    EXPECT_LOG("T@50 T@220 T@320 T@420 TO");
}

TEST(a_past_date_set_in_the_callback_fires_again_at_once, "126 T7")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = sets_date_once, .logging = probe_is_silent};
    offset_of_new_date = -1;
    add_timer(&timer, 50, 100);
    probe_run(MODE, 0.3, false);
    EXPECT_LOG("T@50 T@50 T@150 T@250 TO");
}

TEST(a_date_set_outside_restarts_the_phase, "127 128")
{
    clock_start();
    static struct probe timer = TIMED("T");
    CFRunLoopTimerRef t = add_timer(&timer, 50, 100);
    probe_run(MODE, 0.2, false);
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() + 0.03);
    probe_run(MODE, 0.25, false);
    EXPECT_LOG("T@50 T@150 TO T@230 T@330 T@430 TO");
}

TEST(a_past_date_set_outside_fires_at_once, "127")
{
    clock_start();
    static struct probe timer = TIMED("T");
    CFRunLoopTimerRef t = add_timer(&timer, 500, 100);
    clock_spend_ms(30);
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() - 5);
    probe_run(MODE, 0.25, false);
    EXPECT_LOG("T@30 T@130 T@230 TO");
}

static void sets_far_date(void *context)
{
    CFRunLoopTimerSetNextFireDate(context, CFAbsoluteTimeGetCurrent() + 500);
}

TEST(a_date_may_be_set_from_any_thread_and_outside_of_loops, "128 131")
{
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopTimerRef t = probe_timer(&timer, 1000, 0);
    probe_on_thread(sets_far_date, t);
    CFAbsoluteTime date = CFRunLoopTimerGetNextFireDate(t);
    EXPECT_NEAR(date, CFAbsoluteTimeGetCurrent() + 500, 30);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(LOOP, t, CFSTR("M"));
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), date);
    date = CFAbsoluteTimeGetCurrent() + 100;
    CFRunLoopTimerSetNextFireDate(t, date);
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), date);
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, CFSTR("M")), date);
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() - 1);
    probe_run(CFSTR("M"), 0, false);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T TO F");
    CFRelease(t);
}

TEST(an_invalid_timer_is_inert, "127 129 130 141")
{
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 1);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(LOOP, t, CFSTR("M"));
    CFRunLoopTimerInvalidate(t);
    CFRunLoopTimerInvalidate(t);
    EXPECT_LOG("retain(T) release(T)");
    CFRunLoopTimerContext context = {.version = 0, .info = &timer};
    CFRunLoopTimerGetContext(t, &context);
    EXPECT(context.info == NULL);
    EXPECT(!CFRunLoopTimerIsValid(t));
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, MODE));
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, CFSTR("M")));
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent());
    EXPECT(CFRunLoopTimerGetNextFireDate(t) == 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, MODE));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunFinished);
    CFRelease(t);
    EXPECT_LOG("");
}

static void invalidates_timer(void *context)
{
    CFRunLoopTimerInvalidate(context);
}

TEST(a_timer_may_be_invalidated_from_any_thread, "129")
{
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRunLoopTimerRef t = probe_timer(&timer, 100, 1);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_on_thread(invalidates_timer, t);
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, MODE));
    EXPECT_LOG("retain(T) release(T)");
    CFRelease(t);
}

TEST(the_next_date_of_a_mode_is_the_earliest, "131")
{
    clock_start();
    static struct probe probes[] = {PROBE("T1", NULL), PROBE("T2", NULL), PROBE("T3", NULL)};
    const double offsets[] = {300, 100, 200};
    CFAbsoluteTime now = CFAbsoluteTimeGetCurrent();
    EXPECT(CFRunLoopGetNextTimerFireDate(LOOP, MODE) == 0);
    for (int i = 0; i < 3; i++) {
        probe_timer_add(&probes[i], offsets[i], 0, LOOP, MODE);
    }
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), now + 100);
    CFRunLoopTimerInvalidate(probe_timer_of(&probes[1]));
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), now + 200);
    CFRunLoopTimerInvalidate(probe_timer_of(&probes[2]));
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), now + 300);
    CFRunLoopTimerInvalidate(probe_timer_of(&probes[0]));
    EXPECT(CFRunLoopGetNextTimerFireDate(LOOP, MODE) == 0);
}

static void postpones_its_context(struct probe *probe)
{
    CFRunLoopTimerSetNextFireDate(probe_timer_of(probe->context), CFAbsoluteTimeGetCurrent() + 1000);
}

static void adds_due_timer(struct probe *probe)
{
    static struct probe late = PROBE("late", NULL);
    (void)probe;
    probe_timer_add(&late, -1, 0, LOOP, MODE);
}

static void three_due_timers(void (*action)(struct probe *), const char *expected)
{
    static struct probe second = PROBE("T2", NULL);
    static struct probe first = {.name = "T1", .context = &second};
    static struct probe third = PROBE("T3", NULL);
    first.action = action;
    CFRunLoopTimerRef t = probe_timer(&second, 0.002, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    add_timer(&third, 3, 0);
    add_timer(&first, 1, 0);
    clock_spend_ms(10);
    probe_run(MODE, 0, false);
    EXPECT_LOG(expected);
    CFRunLoopTimerInvalidate(t);
    CFRelease(t);
}

TEST(due_timers_fire_in_order_of_date, "34 132")
{
    clock_start();
    three_due_timers(NULL, "T1 T2 T3 TO");
}

TEST(a_due_timer_invalidated_by_an_earlier_one_does_not_fire, "132")
{
    clock_start();
    three_due_timers(probe_invalidates_its_context, "T1 T3 TO");
}

TEST(a_due_timer_removed_by_an_earlier_one_does_not_fire, "132")
{
    clock_start();
    three_due_timers(probe_removes_its_context, "T1 T3 TO");
}

TEST(a_due_timer_postponed_by_an_earlier_one_does_not_fire, "132 128")
{
    clock_start();
    three_due_timers(postpones_its_context, "T1 T3 TO");
}

TEST(a_due_timer_added_by_an_earlier_one_waits_for_the_next_pass, "132")
{
    clock_start();
    three_due_timers(adds_due_timer, "T1 T2 T3 TO");
    probe_run(MODE, 0, false);
    EXPECT_LOG("late TO");
}

TEST(a_nested_run_fires_the_other_due_timers, "122 132")
{
    clock_start();
    three_due_timers(probe_runs_nested, "T1 { T2 T3 TO } TO");
}

TEST(the_order_of_a_timer_is_kept_and_has_no_effect, "133")
{
    clock_start();
    CFRunLoopTimerRef t = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0, 7, -9, NULL, NULL);
    EXPECT_EQ(CFRunLoopTimerGetOrder(t), -9);
    CFRunLoopAddTimer(LOOP, t, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut); /* a NULL callout does nothing */
    EXPECT(!CFRunLoopTimerIsValid(t));
    CFRelease(t);
}

TEST(equal_dates_fire_in_order_of_adding, "134")
{
    clock_start();
    enum { count = 8 };
    static struct probe probes[count];
    static const char *const names[count] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    const int adding[count] = {5, 2, 7, 0, 3, 6, 1, 4};
    CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() + 0.1;
    for (int i = 0; i < count; i++) {
        probes[i] = (struct probe)PROBE(names[i], NULL);
        probe_timer_at(&probes[i], date, 0);
        fake_kernel_advance(100); /* time goes on between the creations */
    }
    for (int i = 0; i < count; i++) {
        CFRunLoopAddTimer(LOOP, probe_timer_of(&probes[adding[i]]), MODE);
        CFRelease(probe_timer_of(&probes[adding[i]]));
    }
    probe_run(MODE, 1, false);
    EXPECT_LOG("5 2 7 0 3 6 1 4 F");
}

TEST(equal_dates_on_the_real_clock_fire_in_order_of_adding, "134")
{
    enum { count = 8 };
    static struct probe probes[count];
    static const char *const names[count] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() + 0.002;
    for (int i = 0; i < count; i++) {
        probes[i] = (struct probe)PROBE(names[i], NULL);
        CFRunLoopTimerRef t = probe_timer_at(&probes[i], date, 0);
        CFRunLoopAddTimer(LOOP, t, MODE);
        CFRelease(t);
    }
    double until = probe_seconds() + 0.005;
    while (probe_seconds() < until) {
    }
    probe_run(MODE, 0, false);
    EXPECT_LOG("0 1 2 3 4 5 6 7 TO");
}

TEST(a_timers_context_is_bracketed_around_its_callback, "135")
{
    clock_start();
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    EXPECT_LOG("retain(T)");
    probe_run(MODE, 0, false);
    EXPECT_LOG("retain(T) T release(T) release(T) TO");
    CFRelease(t);
    EXPECT_LOG("");
}

TEST(a_repeating_timers_context, "135")
{
    clock_start();
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    add_timer(&timer, 100, 100);
    probe_run(MODE, 0.25, false);
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
    EXPECT_LOG("retain(T) retain(T) T release(T) retain(T) T release(T) TO release(T)");
}

static const void *retains_next(const void *info)
{
    return (const char *)info + 1;
}

static void expects_twice_retained(CFRunLoopTimerRef timer, void *info)
{
    CFRunLoopTimerContext context = {.version = 0};
    CFRunLoopTimerGetContext(timer, &context);
    EXPECT(context.info != NULL);
    EXPECT_EQ((char *)info - (char *)context.info, 1);
    probe_log("T");
}

TEST(the_callback_receives_what_retain_returned, "135 186")
{
    clock_start();
    static char infos[4];
    CFRunLoopTimerContext context = {.info = infos, .retain = retains_next};
    CFRunLoopTimerRef t = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0, 0, 0, expects_twice_retained, &context);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopTimerGetContext(t, &context);
    EXPECT(context.info == infos + 1);
    EXPECT(context.retain == retains_next);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T TO");
    CFRelease(t);
}

static void invalidates_itself_and_goes_on(struct probe *probe)
{
    CFRunLoopTimerInvalidate(probe_timer_of(probe));
    EXPECT(!probe_is_valid(probe));
    probe_log("goes-on");
}

TEST(a_timer_may_invalidate_itself, "129 136 L17")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = invalidates_itself_and_goes_on, .logging = probe_logs_context};
    add_timer(&timer, 0, 100);
    probe_run(MODE, 1, false);
    EXPECT_LOG("retain(T) retain(T) T release(T) goes-on release(T) F");
}

TEST(an_unused_timer_releases_its_context, "137")
{
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRelease(probe_timer(&timer, 100, 1));
    EXPECT_LOG("retain(T) release(T)");
}

static void function_fired(CFRunLoopTimerRef timer, void *info)
{
    EXPECT(CFRunLoopTimerIsValid(timer));
    probe_log(info);
    CFRunLoopTimerInvalidate(timer);
    probe_log("goes-on");
}

static void info_released(void *info)
{
    probe_note("release(%s)", (const char *)info);
}

TEST(a_timer_with_a_function, "138")
{
    clock_start();
    char name[] = "F1";
    CFRunLoopTimerRef t = CRLRunLoopTimerCreateWithFunction(NULL, CFAbsoluteTimeGetCurrent(), 1, 0, 0, function_fired, name, info_released);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("F1 goes-on release(F1) TO");
    CFRelease(t);
    EXPECT(CRLRunLoopTimerCreateWithFunction(NULL, 0, 1, 0, 0, NULL, name, info_released) == NULL);
    CFRelease(CRLRunLoopTimerCreateWithFunction(NULL, CFAbsoluteTimeGetCurrent(), 1, 0, 0, function_fired, name, info_released));
    EXPECT_LOG("release(F1)");
}

TEST(a_tolerance_is_kept_within_limits, "140 T18")
{
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopTimerRef repeating = probe_timer(&timer, 100, 2);
    CFRunLoopTimerRef once = probe_timer(&timer, 100, 0);
    EXPECT(CFRunLoopTimerGetTolerance(repeating) == 0);
    const CFTimeInterval given[] = {0.5, 1, 5, INFINITY, -1, -INFINITY, NAN};
    const CFTimeInterval kept[] = {0.5, 1, 1, 1, 0, 0, 0};
    for (int i = 0; i < 7; i++) {
        CFRunLoopTimerSetTolerance(repeating, given[i]);
        EXPECT_NEAR(CFRunLoopTimerGetTolerance(repeating), kept[i], 1e-9);
    }
    CFRunLoopTimerSetTolerance(once, 5);
    EXPECT_NEAR(CFRunLoopTimerGetTolerance(once), 5, 1e-9);
    CFRunLoopTimerSetTolerance(once, -5);
    EXPECT_NEAR(CFRunLoopTimerGetTolerance(once), 0, 0);
    CFRunLoopTimerInvalidate(once);
    CFRunLoopTimerSetTolerance(once, 1); /* no harm */
    CFRelease(repeating);
    CFRelease(once);
}

static void gets_a_tolerance(CFRunLoopTimerRef timer, void *info)
{
    ++*(int *)info;
    CFRunLoopTimerSetTolerance(timer, 0.01);
}

TEST(a_plain_context_outlives_a_tolerance_given_later, "129 135 140")
{
    int calls = 0;
    CFRunLoopTimerContext context = {.info = &calls};
    CFRunLoopTimerRef t;

    clock_start();
    t = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 0.1, 0.1, 0, 0, gets_a_tolerance, &context);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(LOOP, t, CFSTR("other"));
    probe_run(MODE, 0.35, false);
    EXPECT_EQ(calls, 3);
    EXPECT_NEAR(CFRunLoopTimerGetTolerance(t), 0.01, 1e-9);
    CFRunLoopTimerGetContext(t, &context);
    EXPECT(context.info == &calls);
    EXPECT(CFRunLoopContainsTimer(LOOP, t, CFSTR("other")));
    CFRunLoopTimerInvalidate(t);
    CFRunLoopTimerGetContext(t, &context);
    EXPECT(context.info == NULL);
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, CFSTR("other")));
    CFRelease(t);
}

TEST(tolerant_timers_share_a_wake_up, "140")
{
    clock_start();
    static struct probe first = TIMED("T");
    static struct probe second = TIMED("U");
    static struct probe passes = {.name = "AW", .logging = probe_is_silent};
    probe_observer_add(&passes, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    CFRunLoopTimerRef t = add_timer(&first, 100, 100);
    CFRunLoopTimerSetTolerance(t, 0.05);
    CFRunLoopTimerRef u = add_timer(&second, 130, 100);
    probe_run(MODE, 0.35, false);
    EXPECT_LOG("T@130 U@130 T@230 U@230 T@330 U@330 TO"); /* later than its date, never later than its tolerance, always on its grid */
    EXPECT_EQ(passes.calls, 4);
    CFRunLoopTimerInvalidate(t);
    CFRunLoopTimerInvalidate(u);
}

TEST(a_lone_tolerant_timer_fires_within_its_tolerance, "140 114")
{
    clock_start();
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    timer.action = probe_stops_loop;
    CFRunLoopTimerRef t = add_timer(&timer, 100, 100);
    CFRunLoopTimerSetTolerance(t, 0.02);
    for (int i = 1; i <= 5; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, false), kCFRunLoopRunStopped);
        EXPECT(clock_ms() >= 100 * i && clock_ms() <= 100 * i + 20);
    }
    CFRunLoopTimerInvalidate(t);
}

TEST(a_timer_in_no_mode_never_fires, "144")
{
    clock_start();
    static struct probe timer = TIMED("T");
    add_idle(MODE);
    CFRunLoopTimerRef t = probe_timer(&timer, 0.01, 0.01);
    probe_run(MODE, 1, false);
    EXPECT_LOG("TO");
    CFRelease(t);
}

TEST(a_due_timer_waits_for_its_mode_and_fires_once, "142 15")
{
    clock_start();
    static struct probe timer = TIMED("T");
    add_idle(CFSTR("other"));
    add_timer(&timer, 100, 100);
    probe_run(CFSTR("other"), 0.55, false);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0.1, false);
    EXPECT_LOG("TO T@550 TO TO T@600 TO");
}

TEST(a_removed_timer_keeps_its_date, "116")
{
    clock_start();
    static struct probe timer = TIMED("T");
    add_idle(MODE);
    CFRunLoopTimerRef t = probe_timer(&timer, 0.1, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopRemoveTimer(LOOP, t, MODE);
    probe_run(MODE, 0.05, false);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 0.1, false);
    EXPECT_LOG("TO T@100 TO");
    CFRelease(t);
}

TEST(a_timer_in_two_modes_has_one_date, "115 T19")
{
    clock_start();
    static struct probe timer = TIMED("T");
    CFRunLoopTimerRef t = add_timer(&timer, 100, 100);
    CFRunLoopAddTimer(LOOP, t, CFSTR("other"));
    probe_run(MODE, 0.1, false);
    probe_run(CFSTR("other"), 0, false);
    probe_run(CFSTR("other"), 0.1, false);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T@100 TO TO T@200 TO TO");
}

static double shortest_gap_s = 1;

static void measures_gap(struct probe *probe)
{
    static double last_s;
    double now_s = probe_seconds();
    if (probe->calls > 1 && now_s - last_s < shortest_gap_s) {
        shortest_gap_s = now_s - last_s;
    }
    last_s = now_s;
}

TEST(waits_have_nanosecond_resolution, "143")
{
    static struct probe timer = {.name = "T", .action = measures_gap, .logging = probe_is_silent};
    probe_timer_add(&timer, 0.0002, 0.0002, LOOP, MODE);
    while (timer.calls < 2000 && shortest_gap_s > 0.0008) {
        CFRunLoopRunInMode(MODE, 0.01, false);
    }
    EXPECT(shortest_gap_s <= 0.0008); /* a wait in milliseconds, rounded up so as not to be early, never gives less than one */
}

static CFRunLoopTimerRef asked_timer;

static void asks_for_the_next(struct probe *probe)
{
    CFAbsoluteTime others = *(const CFAbsoluteTime *)probe->context;

    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, CFSTR("other")), 0);
    CFRunLoopTimerSetNextFireDate(asked_timer, others + 1000);
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), others);
    CFRunLoopTimerInvalidate(asked_timer);
    expect_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE), others);
}

TEST(the_next_date_leaves_out_a_callouts_timer_that_comes_later_or_not_at_all, "123 131")
{
    static CFAbsoluteTime others;
    static struct probe timer = {.name = "T", .action = asks_for_the_next, .context = &others};
    static struct probe other = PROBE("O", NULL);
    CFRunLoopTimerRef later;

    clock_start();
    later = add_timer(&other, 50000, 0);
    others = CFRunLoopTimerGetNextFireDate(later);
    add_idle(CFSTR("other"));
    asked_timer = add_timer(&timer, 10, 10);
    probe_run(MODE, 0.015, false);
    EXPECT_LOG("T TO");
}

static int plain_calls;

static void counts_calls(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    EXPECT(info == &plain_calls);
    plain_calls++;
}

static const void *info_is_kept(const void *info)
{
    return info;
}

static void info_is_given_back(const void *info)
{
    EXPECT(info == &plain_calls);
}

static CFStringRef info_has_no_text(const void *info)
{
    (void)info;
    return NULL;
}

TEST(a_context_may_have_any_of_its_functions, "135")
{
    clock_start();
    for (int i = 0; i < 8; i++) {
        CFRunLoopTimerContext context = {.info = &plain_calls};
        CFRunLoopTimerRef timer;

        context.release = i & 1 ? info_is_given_back : NULL;
        context.copyDescription = i & 2 ? info_has_no_text : NULL;
        context.retain = i & 4 ? info_is_kept : NULL;
        timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0, 0, 0, counts_calls, &context);
        CFRunLoopAddTimer(LOOP, timer, MODE);
        CFRelease(timer);
    }
    (void)CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_EQ(plain_calls, 8);
}

TEST(many_tolerant_timers_keep_their_limits, "140")
{
    enum { count = 200 };
    static struct probe timers[count];

    clock_start();
    add_idle(MODE);
    for (int i = 0; i < count; i++) { /* more than are looked at before a sleep, and none may wait for another's tolerance */
        timers[i] = (struct probe){.name = "T", .logging = probe_is_silent};
        CFRunLoopTimerSetTolerance(add_timer(&timers[i], 1000 + i, 0), 50);
    }
    static struct probe strict = TIMED("S");
    add_timer(&strict, 1100, 0);
    probe_run(MODE, 52, false);
    EXPECT_LOG("S@1100 TO");
    for (int i = 0; i < count; i++) {
        EXPECT_EQ(timers[i].calls, 1);
    }
}

static int readings_before_a_tick = -1;

/* A tick comes once, between the two halves of a reading. */
static int64_t tick_with_another_behind_it(int64_t *ret_wall_ns)
{
    int64_t tick_ns = kernel.monotonic_ns();

    if (readings_before_a_tick >= 0 && readings_before_a_tick-- == 0) {
        fake_kernel_advance(4000000);
    }
    *ret_wall_ns = kernel.wall_ns();
    return tick_ns;
}

TEST(a_tick_that_comes_while_clocks_are_read_leaves_equal_dates_equal, "134")
{
    int64_t instant_ns;
    CFAbsoluteTime date;

    fake_kernel_install();
    kernel.tick_ns = tick_with_another_behind_it;
    for (int readings = 0; readings < 4; readings++) {
        date = date_of_instant(kernel.monotonic_ns()) + 3600;
        instant_ns = instant_of_date(date);
        readings_before_a_tick = readings;
        EXPECT_EQ(instant_of_date(date), instant_ns);
        EXPECT_EQ(instant_of_date(date), instant_ns);
    }
}

TEST(the_smallest_step_of_the_wall_clock_counts, "110")
{
    CFAbsoluteTime date;
    int64_t instant_ns;

    fake_kernel_install();
    date = date_of_instant(kernel.monotonic_ns()) + 3600;
    instant_ns = instant_of_date(date);
    fake_kernel_step_wall(1);
    EXPECT_EQ(instant_of_date(date), instant_ns - 1);
}

TEST(an_interval_is_as_many_nanoseconds_as_are_meant, "118")
{
    int64_t wrong = 0;

    for (int64_t microseconds = 1; microseconds <= 1000000; microseconds++) {
        wrong += instant_interval_ns((double)microseconds / 1e6) != microseconds * 1000;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(instant_interval_ns(1e-10), 1);
}

TEST(an_instant_has_the_date_that_the_wall_clock_shows_then, "110")
{
    fake_kernel_install();
    for (int64_t step_ns = 1; step_ns < 10000000; step_ns += 12347) {
        fake_kernel_advance(step_ns);
        EXPECT_EQ(date_of_instant(kernel.monotonic_ns()), CFAbsoluteTimeGetCurrent());
    }
    EXPECT_EQ(date_of_instant(kernel_never), INSTANT_LATEST_DATE);
}

/* A kernel whose clocks of ticks are those of now, and a thread that is held up once, between the two halves of a reading. */
static int64_t moving_monotonic_ns(void)
{
    fake_kernel_advance(50);
    if (readings_before_a_tick >= 0 && readings_before_a_tick-- == 0) {
        fake_kernel_advance(1000000);
    }
    return fake_kernel_elapsed_ns();
}

TEST(clocks_without_ticks_leave_equal_dates_equal, "110 134")
{
    int64_t instant_ns;
    CFAbsoluteTime date;

    fake_kernel_install();
    kernel.monotonic_ns = moving_monotonic_ns;
    date = date_of_instant(kernel.monotonic_ns()) + 3600;
    instant_ns = instant_of_date(date);
    for (int readings = 0; readings < 12; readings++) {
        readings_before_a_tick = readings;
        EXPECT_EQ(instant_of_date(date), instant_ns);
    }
    fake_kernel_step_wall(INT64_C(60) * 1000000000); /* a step counts */
    EXPECT_NEAR((double)(instant_ns - instant_of_date(date)), 60e9, 1e3);
}

static int64_t stale_by_ns;

static int64_t stale_tick_ns(int64_t *ret_wall_ns)
{
    *ret_wall_ns = kernel.wall_ns() - stale_by_ns;
    return kernel.monotonic_ns() - stale_by_ns;
}

TEST(a_date_that_passed_since_the_last_tick_is_past, "112")
{
    CFAbsoluteTime now;

    fake_kernel_install();
    kernel.tick_ns = stale_tick_ns;
    stale_by_ns = 10000000;
    now = date_of_instant(kernel.monotonic_ns());
    EXPECT_EQ(instant_of_date(now - 0.002), kernel.monotonic_ns());
    EXPECT_NEAR((double)(instant_of_date(now + 0.002) - kernel.monotonic_ns()), 2e6, 1e3);
    EXPECT_EQ(instant_of_date(4e9), kernel.monotonic_ns() + INT64_C(504911232) * 1000000000); /* from now, not from the tick */
}
