/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop whose sleeps another event loop does. test_hosting.c runs its scenarios with a companion as well and compares the traces; here is
 * what the companion itself sees.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CoreFoundation/CFFileDescriptor.h"
#include "Kernel/kernel.h"
#include "Loop/Run/host_wait.h"
#include "Loop/fake_companion.h"
#include "Loop/loop_trace.h"

static const CFStringRef other_mode = CFSTR("other");
static struct probe source;
static struct probe timer;
static struct probe other;

/* A source that is never signalled, so that the mode is not empty. */
static void begin(void)
{
    source = (struct probe)PROBE("s", NULL);
    timer = (struct probe)PROBE("t", NULL);
    probe_source_add(&source, 0, LOOP, MODE);
    fake_companion_begin(true);
}

/* ---- whose turn it is ---- */

TEST(a_companion_does_each_sleep_and_timers_fire_in_time, "800")
{
    double start = probe_seconds();

    begin();
    timer.action = probe_stops_loop;
    probe_timer_add(&timer, 0.02, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    EXPECT(probe_seconds() - start >= 0.0199);
    EXPECT(fake_companion.sleeps >= 1);
    EXPECT_EQ(fake_companion.looks, 0);
    EXPECT_LOG("t");
}

static bool names_the_mode(CFRunLoopMode mode, bool sleeps)
{
    probe_note_string(sleeps ? "sleeps" : "looks", mode);
    CFRunLoopStop(LOOP);
    return false;
}

TEST(a_companion_is_told_the_mode_of_the_run, "800")
{
    begin();
    fake_companion.action = names_the_mode;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    EXPECT_LOG("sleeps=test");
}

TEST(the_time_limit_of_a_run_ends_a_companions_sleep, "800")
{
    double start = probe_seconds();

    begin();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.02, false), kCFRunLoopRunTimedOut);
    EXPECT(probe_seconds() - start >= 0.0199);
    EXPECT(fake_companion.sleeps >= 1);
}

TEST(a_pass_that_does_not_sleep_gives_its_companion_one_turn, "801")
{
    begin();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(fake_companion.looks, 1);
    EXPECT_EQ(fake_companion.sleeps, 0);
}

/* Each of the source's calls takes 10 us of this clock. */
static int64_t clock_of_calls(void)
{
    return 1000000000 + source.calls * 10000;
}

static void signals_itself_a_hundred_times(struct probe *probe)
{
    if (probe->calls < 100) {
        CFRunLoopSourceSignal(probe_source_of(probe));
    } else {
        CFRunLoopStop(LOOP);
    }
}

TEST(a_source_that_is_always_signalled_leaves_the_companion_a_turn_each_50_us, "801")
{
    begin();
    kernel.monotonic_ns = clock_of_calls;
    source.action = signals_itself_a_hundred_times;
    CFRunLoopSourceSignal(probe_source_of(&source));
    (void)CFRunLoopRunInMode(MODE, 1e10, false);
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    EXPECT_EQ(source.calls, 100);
    EXPECT_EQ(fake_companion.looks, 20);
}

TEST(each_run_begins_with_a_turn_of_the_companion, "801")
{
    begin();
    kernel.monotonic_ns = clock_of_calls;
    for (int i = 0; i < 5; i++) {
        CFRunLoopSourceSignal(probe_source_of(&source));
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, true), kCFRunLoopRunHandledSource);
    }
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    EXPECT_EQ(fake_companion.looks, 5);
}

static bool signals_the_source_five_times(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    if (sleeps && fake_companion.sleeps <= 5) {
        CFRunLoopSourceSignal(probe_source_of(&source));
        CFRunLoopWakeUp(LOOP);
    } else {
        CFRunLoopStop(LOOP);
    }
    return false;
}

/* The passes after the sleeps perform the source without a sleep of their own. */
TEST(a_sleep_counts_as_a_turn_of_the_companion, "801")
{
    begin();
    fake_companion.action = signals_the_source_five_times;
    kernel.monotonic_ns = clock_of_calls;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    EXPECT_EQ(source.calls, 5);
    EXPECT_EQ(fake_companion.sleeps, 6);
    EXPECT_EQ(fake_companion.looks, 0);
}

/* ---- results of the run ---- */

static bool handles_a_source(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    return sleeps;
}

static bool handles_two_sources(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    if (fake_companion.sleeps == 3) {
        CFRunLoopStop(LOOP);
        return false;
    }
    return sleeps;
}

TEST(a_source_that_a_companion_handled_ends_a_run_that_returns_after_one, "802")
{
    begin();
    fake_companion.action = handles_a_source;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(fake_companion.sleeps, 1);
}

TEST(other_runs_go_on_after_a_source_of_the_companion, "802")
{
    begin();
    fake_companion.action = handles_two_sources;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    EXPECT_EQ(fake_companion.sleeps, 3);
}

static bool loses_its_items_at_the_third_turn(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    if (fake_companion.sleeps == 3) {
        fake_companion.has_items = false;
    }
    return sleeps && fake_companion.sleeps < 3;
}

TEST(a_mode_in_which_only_the_companion_has_items_can_be_run_until_they_are_gone, "803")
{
    fake_companion_begin(true);
    (void)LOOP;
    EXPECT_EQ(CFRunLoopRunInMode(other_mode, 1e10, false), kCFRunLoopRunFinished);
    EXPECT_EQ(fake_companion.sleeps, 0);
    fake_companion.has_items = true;
    fake_companion.action = loses_its_items_at_the_third_turn;
    companion_appear(false);
    EXPECT_EQ(CFRunLoopRunInMode(other_mode, 1e10, false), kCFRunLoopRunFinished);
    EXPECT_EQ(fake_companion.sleeps, 3);
}

static bool removes_the_source(CFRunLoopMode mode, bool sleeps)
{
    (void)mode, (void)sleeps;
    probe_remove(&source, LOOP, MODE);
    CFRunLoopWakeUp(LOOP);
    return false;
}

TEST(a_run_finishes_when_neither_loop_has_anything_left, "803")
{
    begin();
    fake_companion.action = removes_the_source;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunFinished);
    EXPECT_EQ(fake_companion.sleeps, 1);
}

/* ---- callbacks of the companion ---- */

static bool signals_the_source(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    if (sleeps && fake_companion.sleeps == 1) {
        CFRunLoopSourceSignal(probe_source_of(&source));
        CFRunLoopWakeUp(LOOP);
    }
    return false;
}

TEST(what_a_companions_callback_signals_is_performed_after_it, "800")
{
    begin();
    source.action = probe_stops_loop;
    fake_companion.action = signals_the_source;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    EXPECT_LOG("s");
}

static bool adds_a_timer(CFRunLoopMode mode, bool sleeps)
{
    if (sleeps && fake_companion.sleeps == 1) {
        probe_timer_add(&timer, 0.001, 0, LOOP, mode);
    }
    return false;
}

TEST(a_timer_that_a_companions_callback_adds_fires_in_the_same_sleep, "800")
{
    begin();
    timer.action = probe_stops_loop;
    fake_companion.action = adds_a_timer;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    EXPECT_LOG("t");
}

static bool runs_nested_sixty_deep(CFRunLoopMode mode, bool sleeps)
{
    if (sleeps && fake_companion.sleeps <= 60) {
        EXPECT_EQ(CFRunLoopRunInMode(mode, 1e10, true), kCFRunLoopRunHandledSource);
    }
    return sleeps;
}

TEST(runs_nest_sixty_deep_by_way_of_the_companion, "800")
{
    begin();
    fake_companion.action = runs_nested_sixty_deep;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(fake_companion.sleeps, 61);
}

static bool fired_in_inner_run;

/* On a busy machine the inner runs may fire the timer that the outer run waits for, which then has to be stopped. */
static bool runs_inside(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    if (sleeps && fake_companion.sleeps == 1) {
        EXPECT_EQ(CFRunLoopRunInMode(other_mode, 0.005, false), kCFRunLoopRunTimedOut);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
        fired_in_inner_run = timer.calls > 0;
        if (fired_in_inner_run) {
            CFRunLoopStop(LOOP);
        }
    }
    return false;
}

/* The inner run sets the shared descriptor up for itself. The outer sleep has to end for its own timer even so. */
TEST(a_nested_run_leaves_the_outer_sleep_its_timer, "800")
{
    double seconds = 0.03;

    begin();
    other = (struct probe)PROBE("o", NULL);
    probe_source_add(&other, 0, LOOP, other_mode);
    fake_companion.action = runs_inside;
    do {
        timer = (struct probe)PROBE("t", probe_stops_loop);
        fake_companion.sleeps = 0;
        probe_timer_add(&timer, seconds, 0, LOOP, MODE);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
        EXPECT_LOG("t");
        seconds *= 10;
    } while (fired_in_inner_run && seconds < test_patience_s());
    EXPECT(!fired_in_inner_run);
}

/* Wakes its loop when that is about to sleep, and stops it at the next time. */
static void wakes_then_stops(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopWakeUp(LOOP);
    } else {
        CFRunLoopStop(LOOP);
    }
}

static bool sleeps_in_another_mode(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    if (sleeps && fake_companion.sleeps == 1) {
        EXPECT_EQ(CFRunLoopRunInMode(other_mode, 0.005, false), kCFRunLoopRunTimedOut);
    }
    return false;
}

/* The outer sleep was refused, because a wake-up had come before it. The inner run must not make it wait. */
TEST(a_nested_run_leaves_the_outer_sleep_the_wake_up_that_it_had_found, "800")
{
    struct probe observer = PROBE("o", wakes_then_stops);

    begin();
    other = (struct probe)PROBE("s", NULL);
    probe_source_add(&other, 0, LOOP, other_mode);
    probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    fake_companion.action = sleeps_in_another_mode;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    EXPECT_EQ(observer.calls, 2);
    CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)observer.item);
}

static jmp_buf way_out;

static bool jumps_out(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    if (sleeps && fake_companion.sleeps == 1) {
        longjmp(way_out, 1);
    }
    return false;
}

TEST(a_loop_goes_on_after_a_jump_out_of_its_companions_callback, "800 101")
{
    begin();
    fake_companion.action = jumps_out;
    if (!setjmp(way_out)) {
        (void)CFRunLoopRunInMode(MODE, 1e10, false);
        FAIL("the callback jumps");
    }
    timer.action = probe_stops_loop;
    probe_timer_add(&timer, 0.001, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    EXPECT_LOG("t");
}

/* ---- who has a companion ---- */

TEST(a_loop_without_a_companion_calls_nobody, "804")
{
    fake_companion_begin(false);
    timer = (struct probe)PROBE("t", NULL);
    probe_timer_add(&timer, 0.001, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunFinished);
    EXPECT_EQ(fake_companion.sleeps + fake_companion.looks + fake_companion.joins, 0);
    EXPECT(!LOOP->host_waits);
}

static void runs_on_its_thread(void *context)
{
    (void)context;
    begin();
    (void)CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_EQ(fake_companion.looks, 1);
}

static void makes_its_loop_late(void *context)
{
    (void)context;
    fake_companion_begin(true);
    EXPECT_EQ(fake_companion.joins, 0);
    (void)LOOP;
    EXPECT_EQ(fake_companion.joins, 1);
    EXPECT(loop_waiter(LOOP) != NULL);
}

TEST(a_loop_joins_a_companion_that_is_older_or_younger, "804")
{
    probe_on_thread(runs_on_its_thread, NULL);
    probe_on_thread(makes_its_loop_late, NULL);
}

static void companion_of_main_appears(void *loop)
{
    (void)loop;
    companion_appear(true);
}

/* The main loop sleeps without a companion when another thread asks for the companion's main loop. */
TEST(a_companion_that_appears_ends_the_sleep_that_it_cannot_end_otherwise, "804")
{
    struct probe_thread helper;

    begin();
    fake_companion_end();
    fake_companion_begin(false);
    fake_companion.action = names_the_mode;
    probe_thread_when_waiting(&helper, LOOP, companion_of_main_appears, NULL);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    probe_thread_join(&helper);
    EXPECT_LOG("sleeps=test");
}

TEST(loops_part_from_a_companion_that_is_taken_away, "804")
{
    begin();
    fake_companion_end();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(fake_companion.sleeps, 0);
}

TEST(the_child_of_a_fork_has_no_companion, "805")
{
    int status = 0;
    pid_t child;

    begin();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut);
    child = fork();
    if (child == 0) {
        int before = fake_companion.sleeps;
        bool is_alone = CFRunLoopRunInMode(MODE, 0.001, false) == kCFRunLoopRunTimedOut && fake_companion.sleeps == before;

        _exit(is_alone ? 0 : 1);
    }
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(without_descriptors_a_companion_has_a_turn_in_each_pass, "806")
{
    struct rlimit limit;

    begin();
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 3;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut);
    limit.rlim_cur = limit.rlim_max;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    EXPECT_EQ(fake_companion.sleeps, 0);
    EXPECT(fake_companion.looks >= 1);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut);
    EXPECT(fake_companion.sleeps >= 1);
}
