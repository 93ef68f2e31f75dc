/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that part: the system is suspended, or somebody sets the wall clock (rules 1200 to 1209). On the virtual clocks, where a
 * suspension of hours takes no time; and what the real kernel promises, as far as a process may ask for it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Loop/Core/loop.h"
#include "Loop/Run/quiet_wait.h"
#include "Loop/Timer/timer.h"
#include "Loop/Watch/watch.h"
#include "Runtime/Value/wall_clock.h"
#include "Loop/fake_companion.h"
#include "Loop/loop_trace.h"
#include "fake_kernel.h"
#include "older_glibc.h"

static const int64_t second_ns = 1000000000;
static const int64_t hour_ns = INT64_C(3600) * 1000000000;

#define TIMED(name_) {.name = (name_), .action = probe_notes_ms, .logging = probe_is_silent}

static struct probe timer = TIMED("T");
static struct probe other = TIMED("U");

static void add_at(struct probe *probe, CFAbsoluteTime date)
{
    CFRunLoopTimerRef added = probe_timer_at(probe, date, 0);

    CFRunLoopAddTimer(LOOP, added, MODE);
    CFRelease(added);
}

/* ---- what is due after a suspension ---- */

TEST(a_timer_whose_date_has_passed_in_a_suspension_is_due_at_the_next_look, "1200 112")
{
    CFAbsoluteTime date;

    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    fake_kernel_suspend(hour_ns);
    date = CFRunLoopGetNextTimerFireDate(LOOP, MODE);
    EXPECT_NEAR(date, CFAbsoluteTimeGetCurrent() - 3000, 1e-3); /* past, but it is due */
    probe_run(MODE, 0, false);
    EXPECT_LOG("T@0 TO");
    probe_run(MODE, 3600, false);
    EXPECT_LOG("F");
}

TEST(a_series_fires_once_for_a_suspension_and_keeps_its_phase, "1200 118")
{
    CFRunLoopTimerRef repeating;
    CFAbsoluteTime first;

    clock_start();
    repeating = probe_timer_add(&timer, 10, 60, LOOP, MODE);
    first = CFRunLoopTimerGetNextFireDate(repeating);
    fake_kernel_suspend(hour_ns + 25 * second_ns); /* 10 s, and each whole minute after that, have passed; the next is at 3,610 s + 60 */
    probe_run(MODE, 50, false);
    EXPECT_LOG("T@0 T@45000 TO");
    EXPECT_NEAR(CFRunLoopTimerGetNextFireDate(repeating), first + 3720, 1e-3);
}

TEST(a_timer_that_is_still_to_come_after_a_suspension_comes_at_its_date, "1200")
{
    CFAbsoluteTime date;

    clock_start();
    probe_timer_add(&timer, 7200, 0, LOOP, MODE);
    date = CFRunLoopGetNextTimerFireDate(LOOP, MODE);
    fake_kernel_suspend(hour_ns);
    EXPECT(CFRunLoopGetNextTimerFireDate(LOOP, MODE) == date);
    probe_run(MODE, 7200, false);
    EXPECT_LOG("T@3600000 F");
    EXPECT_NEAR(CFAbsoluteTimeGetCurrent(), date, 1e-3);
}

TEST(a_date_given_after_a_suspension_counts_from_then, "1205 134")
{
    CFAbsoluteTime date;

    clock_start();
    probe_timer_add(&timer, 100, 0, LOOP, MODE);
    fake_kernel_suspend(50 * second_ns);
    date = CFAbsoluteTimeGetCurrent() + 50;
    add_at(&other, date); /* the same instant as the other's, but for what a date rounds */
    probe_run(MODE, 60, false);
    EXPECT_LOG("T@50000 U@50000 F");
}

/* ---- a loop that sleeps meanwhile ---- */

TEST(a_sleeping_loop_notices_that_the_system_resumes, "1201 T12")
{
    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("T@20000 F");
}

TEST(a_loop_beside_a_descriptor_notices_it_too, "1201")
{
    int event = probe_event();

    clock_start();
    probe_port_source_add(&other, 0, event, LOOP, MODE);
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("T@20000 TO");
    EXPECT_EQ(clock_ms(), 1000000); /* the limit of the run counts the time awake (rule 1206) */
    (void)close(event);
}

TEST(a_second_suspension_is_noticed_as_the_first_was, "1201")
{
    clock_start();
    probe_timer_add(&timer, 600, 600, LOOP, MODE);
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, 590 * second_ns);
    probe_run(MODE, 30, false);
    fake_kernel_in(10 * second_ns, fake_kernel_suspend, 600 * second_ns);
    probe_run(MODE, 30, false);
    EXPECT_LOG("T@20000 TO T@40000 TO");
}

TEST(a_resumption_that_makes_nothing_due_is_no_pass, "1202 44")
{
    clock_start();
    probe_activities_add(LOOP, MODE);
    probe_timer_add(&timer, 7200, 0, LOOP, MODE);
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 60, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    EXPECT_EQ(clock_ms(), 60000);
    EXPECT(fake_kernel_sleeps() <= 4);
}

TEST(a_sleep_of_seconds_needs_no_descriptor_for_it, "1201 14")
{
    clock_start();
    probe_timer_add(&timer, 4, 0, LOOP, MODE);
    fake_kernel_in(second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 60, false);
    EXPECT_LOG("T@4000 F"); /* as late as the sleep had left, and no later */
    EXPECT_EQ(LOOP->resume, -1);
}

TEST(a_timer_of_next_year_needs_no_descriptor_either, "1201 14")
{
    clock_start();
    probe_timer_add(&timer, 400.0 * 86400, 0, LOOP, MODE);
    probe_timer_add(&other, 1e10, 0, LOOP, MODE);
    probe_run(MODE, 1e6, false);
    EXPECT_LOG("TO");
    EXPECT_EQ(LOOP->resume, -1);
    fake_kernel_suspend(400 * 24 * hour_ns); /* the next look knows all the same */
    probe_run(MODE, 0, false);
    EXPECT_LOG("T@1000000000 TO");
}

TEST(a_limit_of_seconds_needs_none, "1201 14")
{
    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    for (int i = 0; i < 3; i++) {
        probe_run(MODE, 4, false);
    }
    EXPECT_LOG("TO TO TO");
    EXPECT_EQ(LOOP->resume, -1);
}

TEST(the_modes_of_a_loop_share_one_descriptor, "1202")
{
    int resume;

    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    probe_timer_add(&other, 600, 0, LOOP, CFSTR("another"));
    probe_run(MODE, 10, false);
    resume = LOOP->resume;
    EXPECT(resume >= 0);
    probe_run(CFSTR("another"), 10, false);
    EXPECT_EQ(LOOP->resume, resume);
    fake_kernel_in(second_ns, fake_kernel_suspend, hour_ns);
    probe_run(CFSTR("another"), 60, false);
    probe_run(MODE, 60, false);
    EXPECT_LOG("TO TO U@21000 F T@21000 F");
}

static int refuses_resume(void)
{
    return -EINVAL;
}

TEST(without_the_descriptor_a_loop_goes_on_as_before, "1202")
{
    clock_start();
    kernel.resume_open = refuses_resume;
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("T@600000 F");
    probe_timer_add(&other, 600, 0, LOOP, MODE);
    fake_kernel_suspend(hour_ns);
    probe_run(MODE, 0, false); /* a look needs none */
    EXPECT_LOG("U@600000 TO");
}

TEST(a_descriptor_that_the_program_has_closed_is_made_anew, "1202 F16")
{
    int event = probe_event();
    int resume;

    clock_start();
    probe_port_source_add(&other, 0, event, LOOP, MODE);
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    probe_run(MODE, 10, false);
    REQUIRE(LOOP->resume >= 0);
    REQUIRE(close(LOOP->resume) == 0 && close(mode_find(LOOP, MODE)->watches->set) == 0);
    REQUIRE(dup2(event, LOOP->resume) >= 0); /* another file gets the number, and must stay open */
    resume = LOOP->resume;
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 0, false);
    probe_run(MODE, 100, false);
    EXPECT_LOG("TO TO T@30000 TO");
    EXPECT(LOOP->resume >= 0 && LOOP->resume != resume);
    EXPECT_EQ(close(resume), 0);
    (void)close(event);
}

static void close_numbers_of_loop(void)
{
    REQUIRE(LOOP->resume >= 0);
    REQUIRE(close(LOOP->resume) == 0 && close(mode_find(LOOP, MODE)->watches->set) == 0 && close(loop_event(LOOP)) == 0);
}

/* A mode without descriptors has nothing else that would look whether its set is still there. */
TEST(a_closed_set_that_has_nothing_else_in_it_is_made_anew, "1202 F16")
{
    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    probe_run(MODE, 10, false);
    close_numbers_of_loop();
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 100, false);
    EXPECT_LOG("TO T@30000 F");
    EXPECT(fake_kernel_sleeps() < 10); /* it did not go round and round meanwhile */
}

TEST(a_descriptor_that_the_program_has_closed_tells_no_other_mode, "1202 F16")
{
    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    probe_timer_add(&other, 600, 0, LOOP, CFSTR("another"));
    probe_run(MODE, 10, false);
    close_numbers_of_loop();
    probe_run(CFSTR("another"), 10, false);
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 100, false);
    probe_run(CFSTR("another"), 0, false);
    EXPECT_LOG("TO TO T@40000 F U@40000 TO");
}

static int (*opens_resume)(void);

static int opens_resume_after_a_suspension(void)
{
    fake_kernel_suspend(hour_ns);
    return opens_resume();
}

TEST(a_suspension_just_before_the_descriptor_is_there_is_noticed, "1201")
{
    clock_start();
    opens_resume = kernel.resume_open;
    kernel.resume_open = opens_resume_after_a_suspension;
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("T@0 F");
}

static int refusals;

/* Refuses the eventfd once, and the descriptor for resumptions always. */
static int refuses_edges(int set, int descriptor, uint64_t token)
{
    return refusals++ == 0 || token == watch_token_resume ? -ENOSPC : kernel_linux.set_add_edge(set, descriptor, token);
}

static int posted;

static void post(int64_t unused)
{
    (void)unused;
    probe_event_post(posted);
}

TEST(a_set_that_cannot_tell_of_resumptions_tells_of_descriptors, "1202")
{
    posted = probe_event();
    clock_start();
    kernel.set_add_edge = refuses_edges;
    probe_port_source_add(&other, 0, posted, LOOP, MODE);
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    fake_kernel_in(20 * second_ns, post, 0);
    probe_run(MODE, 1000, true);
    EXPECT_LOG("U@20000 HS");
    (void)close(posted);
}

/* A quiet wait cannot notice it: where one would have to, the caller begins a run. */
TEST(a_long_quiet_wait_beside_a_timer_gives_way_to_a_run, "1201 214")
{
    static _Atomic uint32_t awaited;
    struct quiet_wait request = {.awaited = &awaited};
    uint64_t sleeps;

    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    request.deadline_ns = kernel.monotonic_ns() + 100 * second_ns;
    sleeps = fake_kernel_sleeps();
    EXPECT(!quiet_wait_run(LOOP, MODE, &request));
    EXPECT_EQ(fake_kernel_sleeps(), sleeps);
    request.deadline_ns = kernel.monotonic_ns() + 2 * second_ns;
    EXPECT(!quiet_wait_run(LOOP, MODE, &request));
    EXPECT(fake_kernel_sleeps() > sleeps);
}

/* ---- hosts ---- */

TEST(a_host_is_told_that_the_system_resumes, "1208")
{
    struct pollfd host = {.events = POLLIN};

    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    host.fd = CRLRunLoopGetDescriptor(LOOP);
    REQUIRE(host.fd >= 0 && CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(poll(&host, 1, 0), 0);
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), 600 * second_ns);
    fake_kernel_suspend(500 * second_ns);
    EXPECT_EQ(poll(&host, 1, 0), 1);
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), 100 * second_ns);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0); /* nothing is due yet */
    EXPECT_LOG("");
    REQUIRE(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(poll(&host, 1, 0), 0); /* it need not look again and again */
    fake_kernel_suspend(hour_ns);
    EXPECT_EQ(poll(&host, 1, 0), 1);
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), 0);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), kCFRunLoopRunFinished);
    EXPECT_LOG("T@0");
    CRLRunLoopLeave(LOOP);
}

/* Forks a child that ends with 0 if all is right there. */
static void expect_in_child(int (*status)(void))
{
    int result;
    pid_t child = fork();

    REQUIRE(child >= 0);
    if (child == 0) {
        _exit(status());
    }
    REQUIRE(waitpid(child, &result, 0) == child);
    EXPECT(WIFEXITED(result));
    EXPECT_EQ(WEXITSTATUS(result), 0);
}

static int status_of_sleeping_child(void)
{
    fake_kernel_in(20 * second_ns, fake_kernel_suspend, hour_ns);
    return CFRunLoopRunInMode(MODE, 100, false) == kCFRunLoopRunFinished && timer.calls == 1 && clock_ms() == 30000 ? 0 : 2;
}

TEST(the_child_of_a_fork_notices_it_by_a_descriptor_of_its_own, "1202")
{
    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    probe_run(MODE, 10, false);
    REQUIRE(LOOP->resume >= 0);
    expect_in_child(status_of_sleeping_child);
    fake_kernel_in(second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 100, false);
    EXPECT_LOG("TO T@11000 F"); /* the parent's tells as before */
}

static bool is_suspended_in_sleep(CFRunLoopMode mode, bool sleeps)
{
    (void)mode;
    if (sleeps) {
        fake_kernel_suspend(hour_ns); /* the companion expects its descriptor to become readable */
    }
    return false;
}

TEST(a_companion_that_sleeps_for_the_loop_is_told_that_the_system_resumes, "1208")
{
    clock_start();
    fake_companion_begin(true);
    fake_companion.action = is_suspended_in_sleep;
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("T@0 F");
    EXPECT_EQ(fake_companion.sleeps, 1);
    fake_companion_end();
}

TEST(a_host_is_told_of_a_resumption_that_makes_nothing_due_and_no_observer_is, "1202 1208")
{
    clock_start();
    probe_activities_add(LOOP, MODE);
    probe_timer_add(&timer, 7200, 0, LOOP, MODE);
    REQUIRE(CRLRunLoopGetDescriptor(LOOP) >= 0 && CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_LOG("E BT BS BW");
    fake_kernel_suspend(hour_ns);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    EXPECT_LOG("");
    fake_kernel_suspend(hour_ns);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), kCFRunLoopRunFinished);
    EXPECT_LOG("AW T@0");
    CRLRunLoopLeave(LOOP);
}

static int status_of_hosted_child(void)
{
    struct pollfd host = {.fd = CRLRunLoopGetDescriptor(LOOP), .events = POLLIN};

    if (host.fd < 0 || poll(&host, 1, 0) != 0) {
        return 2;
    }
    fake_kernel_suspend(hour_ns);
    return poll(&host, 1, 0) == 1 && CRLRunLoopDispatch(LOOP) == kCFRunLoopRunFinished && timer.calls == 1 ? 0 : 3;
}

TEST(the_child_of_a_fork_tells_its_host_that_the_system_resumes, "1208")
{
    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    REQUIRE(CRLRunLoopGetDescriptor(LOOP) >= 0 && CRLRunLoopPrepare(LOOP, MODE));
    expect_in_child(status_of_hosted_child);
    CRLRunLoopLeave(LOOP);
}

/* Another loop may watch the descriptor, and that of a host may be in a set again. */
TEST(a_set_with_the_descriptor_of_a_hosted_loop_reports_each_resumption_once, "1208")
{
    int outer = kernel_linux.set_create();
    struct kernel_event report;

    clock_start();
    probe_timer_add(&timer, 7200, 0, LOOP, MODE);
    REQUIRE(kernel_linux.set_add_edge(outer, CRLRunLoopGetDescriptor(LOOP), 7) == 0 && CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(kernel_linux.set_wait(outer, &report, 1, 0), 0);
    for (int i = 0; i < 2; i++) {
        fake_kernel_suspend(hour_ns);
        EXPECT_EQ(kernel_linux.set_wait(outer, &report, 1, 0), 1);
        EXPECT_EQ(CRLRunLoopDispatch(LOOP), i == 0 ? 0 : kCFRunLoopRunFinished);
        EXPECT_EQ(kernel_linux.set_wait(outer, &report, 1, 0), 0);
    }
    EXPECT_LOG("T@0");
    CRLRunLoopLeave(LOOP);
    (void)kernel_linux.close(outer);
}

/* ---- the wall clock alone ---- */

static void step_under_a_timer(int64_t ns)
{
    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    fake_kernel_in(20 * second_ns, fake_kernel_step_wall, ns); /* it wakes the loop, which sleeps on */
    probe_run(MODE, 1000, false);
    EXPECT_LOG("T@600000 F");
}

TEST(a_step_forward_makes_nothing_due, "1203 110 T11")
{
    step_under_a_timer(hour_ns);
}

TEST(a_step_back_puts_nothing_off, "1203 110 T11")
{
    step_under_a_timer(-hour_ns);
}

TEST(a_date_is_not_past_while_the_timer_is_not_due, "1204 145 T12")
{
    CFRunLoopTimerRef once;

    clock_start();
    once = probe_timer_add(&timer, 600, 0, LOOP, MODE);
    fake_kernel_step_wall(hour_ns);
    EXPECT_NEAR(CFRunLoopGetNextTimerFireDate(LOOP, MODE), CFAbsoluteTimeGetCurrent() + 600, 1e-3);
    EXPECT_NEAR(CFRunLoopTimerGetNextFireDate(once), CFAbsoluteTimeGetCurrent() + 600, 1e-3);
    fake_kernel_advance(600 * second_ns);
    EXPECT_NEAR(CFRunLoopTimerGetNextFireDate(once), CFAbsoluteTimeGetCurrent() - 3600, 1e-3); /* as it was given: now it is due */
}

TEST(a_suspension_and_a_step_at_once_are_told_apart, "1200 1203 1205")
{
    CFAbsoluteTime date;

    clock_start();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    fake_kernel_step_wall(-hour_ns); /* as a clock that stood still, too, and is set right later */
    fake_kernel_suspend(hour_ns);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T@0 TO");
    fake_kernel_step_wall(hour_ns);
    date = CFAbsoluteTimeGetCurrent() + 1;
    add_at(&other, date);
    probe_run(MODE, 10, false);
    EXPECT_LOG("U@1000 F");
}

static int64_t (*read_at_once)(void);

static int64_t read_late(void)
{
    return read_at_once() + 50;
}

TEST(a_distance_between_the_clocks_that_is_read_late_moves_no_instant, "1200 1203")
{
    const int64_t wall_ns = INT64_C(2000000000) * second_ns;
    int64_t before;

    clock_start();
    fake_kernel_suspend(hour_ns);
    before = instant_of_wall(wall_ns);
    read_at_once = kernel.elapsed_ns;
    kernel.elapsed_ns = read_late;
    fake_kernel_step_wall(second_ns); /* has the distance found anew */
    EXPECT_EQ(instant_of_wall(wall_ns + second_ns), before);
}

/* ---- timers that follow the wall clock ---- */

static CFRunLoopTimerRef add_wall_timer(struct probe *probe, double from_now, double interval)
{
    CFRunLoopTimerRef added = probe_timer_at(probe, CFAbsoluteTimeGetCurrent() + from_now, interval);

    timer_follow_wall(added);
    CFRunLoopAddTimer(LOOP, added, MODE);
    CFRelease(added);
    return added;
}

TEST(a_timer_that_follows_the_wall_clock_fires_when_it_shows_the_date, "1209")
{
    clock_start();
    add_wall_timer(&timer, 600, 0);
    probe_timer_add(&other, 700, 0, LOOP, MODE);
    fake_kernel_in(20 * second_ns, fake_kernel_step_wall, hour_ns);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("T@20000 U@700000 F");
}

TEST(a_timer_that_follows_the_wall_clock_waits_when_it_is_set_back, "1209")
{
    clock_start();
    add_wall_timer(&timer, 600, 0);
    add_wall_timer(&other, 500, 1000);
    fake_kernel_in(20 * second_ns, fake_kernel_step_wall, -100 * second_ns);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("U@600000 T@700000 TO");
    fake_kernel_in(20 * second_ns, fake_kernel_step_wall, -second_ns); /* its series follows, too */
    probe_run(MODE, 1000, false);
    EXPECT_LOG("U@1601000 TO");
}

TEST(a_timer_that_follows_the_wall_clock_is_told_of_a_step_before_it_was_added, "1209")
{
    CFRunLoopTimerRef late;

    clock_start();
    add_wall_timer(&other, 500, 0);
    probe_run(MODE, 0, false);
    late = probe_timer_at(&timer, CFAbsoluteTimeGetCurrent() + 600, 0);
    timer_follow_wall(late);
    fake_kernel_step_wall(100 * second_ns);
    probe_run(MODE, 0, false); /* the loop takes note of the step */
    CFRunLoopAddTimer(LOOP, late, MODE);
    CFRelease(late);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("TO TO U@400000 T@500000 F");
}

static void steps_in_callout(struct probe *probe)
{
    probe_notes_ms(probe);
    CFRunLoopTimerSetNextFireDate((CFRunLoopTimerRef)(uintptr_t)probe->item, CFAbsoluteTimeGetCurrent() + 5);
    fake_kernel_step_wall(2 * second_ns);
    probe_run(MODE, 0, false); /* the loop takes note of the step, while the timer is in its callout */
    probe->action = probe_notes_ms;
}

TEST(a_timer_that_follows_the_wall_clock_is_told_of_a_step_in_its_callout, "1209")
{
    clock_start();
    timer.action = steps_in_callout;
    add_wall_timer(&timer, 10, 5000);
    add_wall_timer(&other, 10000, 0);
    probe_run(MODE, 100, false);
    EXPECT_LOG("T@10000 TO T@13000 TO");
}

static int64_t (*reads_ticks)(int64_t *ret_wall_ns);
static long tick_readings;

static int64_t counts_tick_readings(int64_t *ret_wall_ns)
{
    tick_readings++;
    return reads_ticks(ret_wall_ns);
}

static long readings_for_a_step(int64_t ns)
{
    tick_readings = 0;
    fake_kernel_step_wall(ns);
    probe_run(MODE, 0, false);
    return tick_readings;
}

TEST(a_step_looks_at_each_timer_that_follows_the_wall_clock_a_few_times, "1209")
{
    enum { many = 500, few = 4 };

    clock_start();
    for (int i = 0; i < many; i++) {
        add_wall_timer(&timer, 1000 + (i * 7) % many, 0);
    }
    probe_run(MODE, 0, false);
    reads_ticks = kernel.tick_ns;
    kernel.tick_ns = counts_tick_readings;
    EXPECT(readings_for_a_step(100 * second_ns) < few * many);
    EXPECT(readings_for_a_step(-200 * second_ns) < few * many);
    kernel.tick_ns = reads_ticks;
    trace_clear(&probe_trace);
    timer.action = NULL;
    probe_run(MODE, 1099.5, false); /* the first is due after 1,100 s now */
    EXPECT_LOG("TO");
    probe_run(MODE, many + 1, false);
    EXPECT_LOG("F");
    EXPECT_EQ(timer.calls, many);
}

/* One thousand steps in a second, there and back. */
static void steps_again(int64_t ns)
{
    fake_kernel_step_wall(ns);
    fake_kernel_in(second_ns / 1000, steps_again, -ns);
}

TEST(a_storm_of_steps_makes_no_timer_late, "1203 1209 T11")
{
    static struct probe short_one = {.name = "S", .logging = probe_is_silent};
    int event = probe_event();

    clock_start();
    probe_port_source_add(&other, 0, event, LOOP, MODE);
    probe_timer_add(&timer, 600, 0, LOOP, MODE); /* the set tells of each step */
    probe_run(MODE, 10, false);
    REQUIRE(LOOP->resume >= 0);
    probe_timer_add(&short_one, 0.0105, 0.01, LOOP, MODE);
    add_wall_timer(&other, 0.5, 0);
    fake_kernel_in(second_ns / 1000, steps_again, hour_ns);
    probe_run(MODE, 1, false);
    EXPECT_EQ(short_one.calls, 99);
    EXPECT_LOG("TO U@10001 TO"); /* at the first step, which was past its date */
    (void)close(event);
}

TEST(a_due_timer_that_follows_the_wall_clock_stays_due, "1209")
{
    clock_start();
    add_wall_timer(&timer, -1, 0);
    add_wall_timer(&other, 1, 0);
    fake_kernel_step_wall(hour_ns);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T@0 U@0 TO");
}

/* ---- other users of time ---- */

TEST(a_suspension_uses_up_no_limit_of_a_run, "1206 41")
{
    clock_start();
    probe_source_add(&other, 0, LOOP, MODE);
    fake_kernel_in(second_ns, fake_kernel_suspend, hour_ns);
    probe_run(MODE, 10, false);
    EXPECT_LOG("TO");
    EXPECT_EQ(clock_ms(), 10000);
}

/* A limit that ends after the timer does, but before it by the clock of timers. */
TEST(a_timer_that_comes_during_a_limited_sleep_is_not_missed_after_a_suspension, "1200 71")
{
    clock_start();
    probe_source_add(&other, 0, LOOP, MODE);
    fake_kernel_suspend(hour_ns); /* the two clocks are apart from now on */
    probe_timer_add(&timer, 2, 0, LOOP, MODE);
    probe_run(MODE, 10, false);
    EXPECT_LOG("T@2000 TO");
}

/* ---- the real kernel ---- */

TEST(the_kernel_tells_when_it_resumes, "1201")
{
    int resume = kernel.resume_open();

    if (resume == -EINVAL) {
        SKIP("this kernel cannot tell");
    }
    REQUIRE(resume >= 0);
    EXPECT(fcntl(resume, F_GETFD) & FD_CLOEXEC);
    EXPECT(kernel.alarm_is_own(resume));
    EXPECT_EQ(kernel.descriptor_ready(resume, kernel_readable), 0);
    EXPECT_EQ(kernel.close(resume), 0);
}

TEST(the_clock_of_timers_goes_as_the_kernels_does, "1200")
{
    struct timespec before;
    struct timespec after;
    int64_t elapsed_ns;

    REQUIRE(clock_gettime(CLOCK_BOOTTIME, &before) == 0);
    elapsed_ns = kernel.elapsed_ns();
    REQUIRE(clock_gettime(CLOCK_BOOTTIME, &after) == 0);
    EXPECT(elapsed_ns >= (int64_t)before.tv_sec * second_ns + before.tv_nsec);
    EXPECT(elapsed_ns <= (int64_t)after.tv_sec * second_ns + after.tv_nsec);
}

/* What a suspension has added to the real clocks that go on in it. */
static _Atomic int64_t added_ns;

static int64_t elapsed_with_added(void)
{
    return kernel_linux.elapsed_ns() + added_ns;
}

static int64_t wall_with_added(void)
{
    return kernel_linux.wall_ns() + added_ns;
}

static int64_t tick_with_added(int64_t *ret_wall_ns)
{
    int64_t tick_ns = kernel_linux.tick_ns(ret_wall_ns);

    *ret_wall_ns += added_ns;
    return tick_ns;
}

static void use_added_clocks(void)
{
    kernel.elapsed_ns = elapsed_with_added;
    kernel.wall_ns = wall_with_added;
    kernel.tick_ns = tick_with_added;
    runtime_wall_clock = wall_with_added;
}

static void resume_after_an_hour(void *loop)
{
    int resume;

    loop_lock(loop);
    resume = ((CFRunLoopRef)loop)->resume;
    loop_unlock(loop);
    added_ns = hour_ns;
    EXPECT_EQ(kernel_linux.alarm_set(resume, 1), 0); /* becomes readable, as the kernel would make it */
}

TEST(a_loop_that_sleeps_in_the_kernel_is_woken_by_the_descriptor, "1201")
{
    struct probe_thread helper;
    int resume = kernel.resume_open();

    if (resume == -EINVAL) {
        SKIP("this kernel cannot tell");
    }
    (void)kernel.close(resume);
    use_added_clocks();
    probe_timer_add(&timer, 3000, 0, LOOP, MODE);
    probe_thread_when_waiting(&helper, LOOP, resume_after_an_hour, LOOP);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunFinished); /* otherwise the test's own limit comes */
    probe_thread_join(&helper);
    EXPECT_EQ(timer.calls, 1);
}

static bool write_offsets(const char *text)
{
    int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    bool is_written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

    if (file >= 0) {
        (void)close(file);
    }
    return is_written;
}

/* Returns 0 if a timer fires at its date: not before, and before a limit that is long after. */
static int status_in_namespace(void)
{
    static struct probe quick = {.name = "Q", .action = probe_stops_loop, .logging = probe_is_silent};
    const CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() + 0.05;

    if (kernel.elapsed_ns() - kernel.monotonic_ns() < 900 * second_ns) {
        return 2; /* the offsets are not there */
    }
    add_at(&quick, date);
    probe_timer_add(&other, 900, 0, LOOP, MODE);
    if (CFRunLoopRunInMode(MODE, test_patience_s(), false) != kCFRunLoopRunStopped) {
        return 3;
    }
    return CFAbsoluteTimeGetCurrent() < date ? 4 : other.calls > 0 ? 5 : 0;
}

/* The system is suspended for an hour: one of two timers is due at the next look, and the other is told to be to come. */
static int status_after_suspension(void)
{
    CFAbsoluteTime next;

    use_added_clocks();
    probe_timer_add(&timer, 600, 0, LOOP, MODE);
    probe_timer_add(&other, 7200, 0, LOOP, MODE);
    added_ns = hour_ns;
    if (CFRunLoopRunInMode(MODE, 0, false) != kCFRunLoopRunTimedOut || timer.calls != 1 || other.calls != 0) {
        return 6;
    }
    next = CFRunLoopGetNextTimerFireDate(LOOP, MODE) - CFAbsoluteTimeGetCurrent();
    return next > 3600 - test_patience_s() && next <= 3600.001 ? 0 : 7;
}

static int status_of_offsets(void)
{
    int status = status_in_namespace();

    if (status == 0) {
        CFRunLoopTimerInvalidate((CFRunLoopTimerRef)(uintptr_t)other.item);
        status = status_after_suspension();
    }
    return status;
}

TEST(the_offsets_of_a_time_namespace_change_nothing, "1207 1200 1204")
{
    if (unshare(CLONE_NEWTIME) < 0 || !write_offsets("monotonic 500 0\nboottime 1500 0\n")) {
        SKIP("no time namespace can be made here");
    }
    expect_in_child(status_of_offsets); /* the namespace is its children's */
}
