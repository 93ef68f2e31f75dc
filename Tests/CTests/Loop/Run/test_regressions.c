/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defects that random programs (Tests/Model, make model-check) and the simulation (make sim) found, each in the smallest program that shows
 * it.
 *
 * Time is counted in ticks of 1/512 s, from a date near which doubles are exact. What is to happen while the loop sleeps happens inside the
 * fake kernel's wait, as if another thread did it.
 */
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/Wake/waker.h"
#include "Loop/loop_trace.h"
#include "Runtime/Value/wall_clock.h"
#include "fake_kernel.h"

enum { tick_ns = 1953125 };
static const int64_t start_s = 1000;

static int64_t wall_near_reference(void)
{
    return (INT64_C(978307200) + start_s) * 1000000000 + fake_kernel_elapsed_ns();
}

static void ticks_start(void)
{
    fake_kernel_install();
    kernel.wall_ns = wall_near_reference;
    runtime_wall_clock = wall_near_reference;
}

static double ticks(int count)
{
    return count / 512.0;
}

static CFAbsoluteTime in_ticks(int count)
{
    return (double)start_s + (double)(fake_kernel_elapsed_ns() / tick_ns + count) / 512;
}

static void spend_ticks(int count)
{
    fake_kernel_advance((int64_t)count * tick_ns);
}

/* A block that is a probe. */
static void queued_function(void *info)
{
    struct probe *probe = info;

    probe->calls++;
    if (probe->action) {
        probe->action(probe);
    }
}

static void probe_queue(struct probe *probe)
{
    CRLRunLoopPerformFunction(LOOP, MODE, queued_function, probe, NULL);
}

static void notes_ticks(struct probe *probe)
{
    probe_note("%s@%lld", probe->name, (long long)(fake_kernel_elapsed_ns() / tick_ns));
}

static void answer(long long value)
{
    probe_note("?%lld", value);
}

static void answer_date(CFAbsoluteTime date)
{
    answer((long long)((date - (double)start_s) * 512 + (date < (double)start_s ? -0.5 : 0.5)));
}

TEST(equal_dates_go_by_the_time_of_joining_the_mode, "134")
{
    static struct probe t1 = {.name = "T1", .action = notes_ticks, .logging = probe_is_silent};
    static struct probe t3 = {.name = "T3", .action = notes_ticks, .logging = probe_is_silent};

    ticks_start();
    CFRunLoopTimerRef first = probe_timer_at(&t1, in_ticks(3), 0);
    CFRunLoopAddTimer(LOOP, first, CFSTR("Y"));
    CFRunLoopTimerRef second = probe_timer_at(&t3, in_ticks(3), 0);
    CFRunLoopAddTimer(LOOP, second, MODE);
    spend_ticks(3);
    CFRunLoopAddTimer(LOOP, first, MODE);
    probe_run(MODE, ticks(1), false);
    EXPECT_LOG("T3@3 T1@3 F");
    CFRelease(first);
    CFRelease(second);
}

static void signals_and_adds(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopSourceSignal(probe_source_of(probe->context));
        CFRunLoopAddSource(LOOP, probe_source_of(probe->context), MODE);
    }
}

TEST(a_mark_found_at_a_join_comes_after_earlier_signals, "83")
{
    static struct probe s0 = PROBE("S0", NULL);
    static struct probe s3 = PROBE("S3", NULL);
    static struct probe o0 = {.name = "O0", .action = signals_and_adds, .context = &s3, .logging = probe_is_silent};

    ticks_start();
    probe_source_add(&s0, 0, LOOP, MODE);
    CFRunLoopSourceRef joiner = probe_source(&s3, 0);
    probe_observer_add(&o0, kCFRunLoopBeforeSources, 0, LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_of(&s0));
    probe_run(MODE, ticks(1), false);
    EXPECT_LOG("S0 S3 TO");
    CFRelease(joiner);
}

TEST(a_pending_source_joins_another_mode_behind_earlier_signals, "83")
{
    static struct probe s1 = PROBE("S1", NULL);
    static struct probe s2 = PROBE("S2", NULL);

    ticks_start();
    probe_source_add(&s1, 0, LOOP, MODE);
    probe_source_add(&s2, 0, LOOP, CFSTR("X"));
    CFRunLoopSourceSignal(probe_source_of(&s1));
    CFRunLoopSourceSignal(probe_source_of(&s2));
    CFRunLoopAddSource(LOOP, probe_source_of(&s1), CFSTR("X"));
    probe_run(CFSTR("X"), ticks(1), false);
    EXPECT_LOG("S2 S1 TO");
}

static void notes_ticks_and_runs_twice(struct probe *probe)
{
    notes_ticks(probe);
    probe_run(MODE, ticks(1), false);
    probe_run(CFSTR("X"), ticks(1), false);
}

TEST(a_timer_that_is_due_again_at_its_turn_fires, "132")
{
    static struct probe s0 = PROBE("S0", NULL);
    static struct probe t0 = {.name = "T0", .action = notes_ticks_and_runs_twice, .logging = probe_is_silent};
    static struct probe t1 = {.name = "T1", .action = notes_ticks, .logging = probe_is_silent};

    ticks_start();
    probe_source_add(&s0, 0, LOOP, CFSTR("X"));
    CFRunLoopTimerRef once = probe_timer_at(&t0, in_ticks(8), 0);
    CFRunLoopAddTimer(LOOP, once, MODE);
    CFRunLoopTimerRef ticking = probe_timer_at(&t1, in_ticks(7), ticks(1));
    CFRunLoopAddTimer(LOOP, ticking, MODE);
    probe_run(MODE, ticks(8), false);
    EXPECT_LOG("T1@7 T0@8 T1@8 T1@9 TO TO T1@10 TO");
    CFRelease(once);
    CFRelease(ticking);
}

static void moves_its_context_to_the_past(struct probe *probe)
{
    notes_ticks(probe);
    CFRunLoopTimerSetNextFireDate(probe_timer_of(probe->context), in_ticks(-5));
}

TEST(a_timer_that_is_moved_to_the_past_before_its_turn_fires, "132")
{
    static struct probe t1 = {.name = "T1", .action = notes_ticks, .logging = probe_is_silent};
    static struct probe t0 = {.name = "T0", .action = moves_its_context_to_the_past, .context = &t1, .logging = probe_is_silent};

    ticks_start();
    CFRunLoopTimerRef mover = probe_timer_at(&t0, in_ticks(1), 0);
    CFRunLoopAddTimer(LOOP, mover, MODE);
    CFRunLoopTimerRef moved = probe_timer_at(&t1, in_ticks(1), 0);
    CFRunLoopAddTimer(LOOP, moved, MODE);
    spend_ticks(1);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T0@1 T1@1 TO");
    CFRelease(mover);
    CFRelease(moved);
}

static void notes_next_date(struct probe *probe)
{
    notes_ticks(probe);
    answer_date(CFRunLoopGetNextTimerFireDate(LOOP, MODE));
}

TEST(the_next_date_is_that_of_the_timer_that_comes_first, "123 131")
{
    static struct probe t1 = {.name = "T1", .action = notes_next_date, .logging = probe_is_silent};
    static struct probe t2 = {.name = "T2", .action = notes_ticks, .logging = probe_is_silent};

    ticks_start();
    CFRunLoopTimerRef first = probe_timer_at(&t1, in_ticks(0), 0);
    CFRunLoopAddTimer(LOOP, first, MODE);
    CFRunLoopTimerRef second = probe_timer_at(&t2, in_ticks(-1), 0);
    CFRunLoopAddTimer(LOOP, second, MODE);
    probe_run(MODE, ticks(1), false);
    EXPECT_LOG("T1@0 ?0 T2@0 F");
    CFRelease(first);
    CFRelease(second);
}

TEST(adding_what_is_invalid_makes_no_mode, "11 141")
{
    static struct probe o3 = {.name = "O3", .logging = probe_is_silent};
    static struct probe t3 = {.name = "T3", .logging = probe_is_silent};

    ticks_start();
    CFRunLoopObserverRef observer = probe_observer(&o3, kCFRunLoopEntry, true, 0);
    CFRunLoopTimerRef timer = probe_timer_at(&t3, in_ticks(1), 0);
    probe_invalidate(&o3);
    probe_invalidate(&t3);
    CFRunLoopAddObserver(LOOP, observer, CFSTR("X"));
    CFRunLoopAddTimer(LOOP, timer, CFSTR("Y"));
    EXPECT(!probe_mode_exists(LOOP, CFSTR("X")));
    EXPECT(!probe_mode_exists(LOOP, CFSTR("Y")));
    CFRelease(observer);
    CFRelease(timer);
}

static void runs_another_mode(struct probe *probe)
{
    probe_notes_activity(probe);
    if (probe->activity == kCFRunLoopBeforeWaiting && probe->calls == 2) {
        probe_run(CFSTR("X"), ticks(1), true);
    }
}

TEST(a_signal_in_another_mode_does_not_end_the_outer_wait, "77 87")
{
    static struct probe s0 = {.name = "S0", .action = probe_signals_itself_once};
    static struct probe o1 = {.name = "O1", .action = runs_another_mode, .logging = probe_is_silent};
    static struct probe t2 = {.name = "T2", .action = notes_ticks, .logging = probe_is_silent};

    ticks_start();
    probe_source_add(&s0, 0, LOOP, CFSTR("X"));
    probe_observer_add(&o1, kCFRunLoopBeforeSources | kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    CFRunLoopTimerRef timer = probe_timer_at(&t2, in_ticks(1), 0);
    CFRunLoopAddTimer(LOOP, timer, MODE);
    CFRunLoopSourceSignal(probe_source_of(&s0));
    probe_run(MODE, ticks(1), false);
    EXPECT_LOG("O1:BS O1:BW S0 HS T2@1 TO");
    CFRelease(timer);
}

static void queue_and_wake(struct probe *probe)
{
    probe_queue(probe->context);
    CFRunLoopWakeUp(LOOP);
}

static void polls_another_mode_once(struct probe *probe)
{
    if (probe->calls == 1) {
        probe_run(CFSTR("X"), 0, false);
    }
}

TEST(a_wake_up_past_a_nested_wait_is_kept_for_the_outer_run, "64 65 L7")
{
    static struct probe idle = PROBE("S0", NULL);
    static struct probe b0 = {.name = "B0", .action = notes_ticks, .logging = probe_is_silent};
    static struct probe t1 = {.name = "T1", .action = queue_and_wake, .context = &b0};
    static struct probe o1 = {.name = "O1", .action = polls_another_mode_once, .logging = probe_is_silent};

    ticks_start();
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopTimerRef timer = probe_timer_at(&t1, in_ticks(0), 0);
    CFRunLoopAddTimer(LOOP, timer, CFSTR("X"));
    probe_observer_add(&o1, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_run(MODE, ticks(10), false);
    EXPECT_LOG("T1 TO B0@0 TO");
    CFRelease(timer);
}

static void stops_once(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopStop(LOOP);
    }
}

static void polls_the_mode_once(struct probe *probe)
{
    if (probe->calls == 1) {
        probe_run(MODE, 0, false);
    }
}

TEST(a_nested_run_that_takes_the_wake_up_leaves_the_stop, "37 55 57")
{
    static struct probe idle = PROBE("S0", NULL);
    static struct probe o2 = {.name = "O2", .action = stops_once, .logging = probe_is_silent};
    static struct probe o1 = {.name = "O1", .action = polls_the_mode_once, .logging = probe_is_silent};

    ticks_start();
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_observer_add(&o2, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_observer_add(&o1, kCFRunLoopBeforeSources, 0, LOOP, MODE);
    probe_run(MODE, ticks(10), false);
    EXPECT_LOG("TO S");
    EXPECT_EQ(fake_kernel_elapsed_ns(), 0);
}

/* The instant between two passes, which only another thread or a signal handler can meet (SPIN, Tests/Models/waker.pml). */
TEST(a_stop_between_two_passes_keeps_the_loop_from_sleeping, "55 57 L5")
{
    struct waker *waker = waker_create();
    uint32_t outer;
    uint32_t word;

    REQUIRE(waker != NULL);
    outer = waker_enter(waker);
    waker_arm(waker);
    EXPECT(!waker_disarm(waker));
    waker_stop(waker);
    waker_arm(waker);
    EXPECT(!waker_sleep(waker, wake_futex, &word));
    EXPECT(waker_is_stopped(waker));
    EXPECT(!waker_disarm(waker));
    waker_leave(waker, outer, false);
    EXPECT_EQ(waker_word(waker), wake_idle);
    waker_recycle(waker);
}

static void runs_on_first_call(struct probe *probe)
{
    if (probe->calls == 1) {
        probe_run(MODE, ticks(1), false);
    }
}

static void polls_on_second_call(struct probe *probe)
{
    probe_notes_activity(probe);
    if (probe->calls == 2) {
        probe_run(MODE, 0, false);
    }
}

static void notes_ticks_and_wakes_once(struct probe *probe)
{
    notes_ticks(probe);
    if (probe->calls == 1) {
        CFRunLoopWakeUp(LOOP);
    }
}

TEST(a_wake_up_owed_to_the_outermost_run_passes_by_the_others, "46 64")
{
    static struct probe o0 = {.name = "O0", .action = runs_on_first_call, .logging = probe_is_silent};
    static struct probe o3 = {.name = "O3", .action = polls_on_second_call, .logging = probe_is_silent};
    static struct probe t0 = {.name = "T0", .action = notes_ticks_and_wakes_once, .logging = probe_is_silent};

    ticks_start();
    probe_observer_add(&o0, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_observer_add(&o3, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    CFRunLoopTimerRef timer = probe_timer_at(&t0, in_ticks(0), ticks(2));
    CFRunLoopAddTimer(LOOP, timer, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("O3:BT T0@0 O3:BT TO TO O3:BT TO");
    CFRelease(timer);
}

static void spends_two_ticks(struct probe *probe)
{
    (void)probe;
    spend_ticks(2);
}

TEST(a_timer_that_is_always_due_starves_no_port, "35 T10 T20")
{
    static struct probe t0 = {.name = "T0", .action = spends_two_ticks, .logging = probe_is_silent};
    static struct probe p0 = {.name = "P0", .action = notes_ticks, .logging = probe_is_silent};

    ticks_start();
    p0.descriptor = probe_event();
    probe_port_source_add(&p0, 0, p0.descriptor, LOOP, MODE);
    CFRunLoopTimerRef timer = probe_timer_at(&t0, in_ticks(0), ticks(1));
    CFRunLoopAddTimer(LOOP, timer, MODE);
    static struct probe o0 = {.name = "O0", .action = spends_two_ticks, .logging = probe_is_silent};
    probe_observer_add(&o0, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_event_post(p0.descriptor);
    probe_run(MODE, ticks(40), false);
    EXPECT(p0.calls == 1);
    EXPECT(t0.calls >= 1);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    CFRunLoopSourceInvalidate(probe_source_of(&p0));
    close(p0.descriptor);
}

static void invalidates_once(struct probe *probe)
{
    (void)probe;
    probe_invalidate(probe->context);
}

TEST(a_port_invalidated_after_the_wait_is_not_performed, "88 L15")
{
    static struct probe p0 = {.name = "P0", .action = notes_ticks, .logging = probe_is_silent};
    static struct probe idle = PROBE("S0", NULL);
    static struct probe o0 = {.name = "O0", .action = invalidates_once, .context = &p0, .logging = probe_is_silent};

    ticks_start();
    probe_source_add(&idle, 0, LOOP, MODE);
    p0.descriptor = probe_event();
    probe_port_source_add(&p0, 0, p0.descriptor, LOOP, MODE);
    CFRetain(p0.item);
    probe_observer_add(&o0, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_event_post(p0.descriptor);
    probe_run(MODE, ticks(4), false);
    EXPECT_LOG("TO");
    CFRelease(p0.item);
    close(p0.descriptor);
}

static void removes_it(struct probe *probe)
{
    CFRunLoopRemoveSource(LOOP, probe_source_of(probe->context), MODE);
}

TEST(a_port_removed_after_the_wait_is_not_performed, "15")
{
    static struct probe p0 = {.name = "P0", .action = notes_ticks, .logging = probe_is_silent};
    static struct probe idle = PROBE("S0", NULL);
    static struct probe o0 = {.name = "O0", .action = removes_it, .context = &p0, .logging = probe_is_silent};

    ticks_start();
    probe_source_add(&idle, 0, LOOP, MODE);
    p0.descriptor = probe_event();
    probe_port_source_add(&p0, 0, p0.descriptor, LOOP, MODE);
    CFRetain(p0.item);
    probe_observer_add(&o0, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_event_post(p0.descriptor);
    probe_run(MODE, ticks(4), false);
    EXPECT_LOG("TO");
    CFRelease(p0.item);
    close(p0.descriptor);
}

TEST(a_port_in_the_common_modes_is_performed, "17 98")
{
    static struct probe p0 = PROBE("P0", NULL);

    ticks_start();
    p0.descriptor = probe_event();
    CFRunLoopAddCommonMode(LOOP, MODE);
    probe_port_source_add(&p0, 0, p0.descriptor, LOOP, kCFRunLoopCommonModes);
    probe_event_post(p0.descriptor);
    probe_run(MODE, 0, false);
    EXPECT_LOG("P0 TO");
    CFRunLoopSourceInvalidate(probe_source_of(&p0));
    close(p0.descriptor);
}

static struct probe *posted_in_wait;

/* The descriptor is ready first and the wake-up comes second, both before the wait ends: it reports both, in this order. */
static int wait_in_which_both_come(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    if (posted_in_wait) {
        probe_event_post(posted_in_wait->descriptor);
        CFRunLoopWakeUp(LOOP);
        posted_in_wait = NULL;
    }
    return kernel_linux.set_wait(set, events, capacity, deadline_ns);
}

TEST(a_poll_asks_the_kernel_when_what_was_reported_is_out_of_date, "30 43")
{
    static struct probe p0 = PROBE("P0", NULL);

    ticks_start();
    kernel.set_wait = wait_in_which_both_come;
    p0.descriptor = probe_event();
    probe_port_source_add(&p0, 0, p0.descriptor, LOOP, MODE);
    posted_in_wait = &p0;
    probe_run(MODE, ticks(40), true);
    probe_event_post(p0.descriptor);
    probe_run(MODE, 0, true); /* what is left of the report is the wake-up's */
    EXPECT_LOG("P0 HS P0 HS");
    CFRunLoopSourceInvalidate(probe_source_of(&p0));
    close(p0.descriptor);
}
