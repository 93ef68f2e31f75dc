/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that do not return, fault case P11: a callback ends its thread, or jumps out of the run as an exception that is thrown through it
 * does. What is left must not be looked at any more, by other threads, by the destructors of the ending one, or by a run around it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Loop/loop_trace.h"

static const CFStringRef inner_mode = CFSTR("inner");

static bool has_current_mode(CFRunLoopRef loop)
{
    CFStringRef mode = CFRunLoopCopyCurrentMode(loop);
    bool has_mode = mode != NULL;

    if (mode) {
        CFRelease(mode);
    }
    return has_mode;
}

/* As calls do that come after a run which was left: nothing of it is where it was. */
static __attribute__((noinline)) void write_over_the_stack(void)
{
    volatile char bytes[32768];

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 0x55;
    }
}

/* ---- threads that end in callbacks ---- */

static void ends_its_thread(struct probe *probe)
{
    (void)probe;
    pthread_exit(NULL);
}

static void ends_its_thread_nested(struct probe *probe)
{
    static struct probe last = {.name = "S1", .action = ends_its_thread, .logging = probe_is_silent};

    if (probe->calls == 1) {
        CFRunLoopSourceSignal(probe_source_add(&last, 0, LOOP, inner_mode));
        CFRunLoopRunInMode(inner_mode, 10, false);
    }
}

static pthread_key_t destructor_key;

/* In an early round of the destructors: the loop is still there, and its runs have been left in the middle. */
static void runs_the_loop_again(void *loop)
{
    static struct probe late = {.name = "late", .logging = probe_is_silent};

    write_over_the_stack();
    EXPECT(LOOP == loop);
    EXPECT(has_current_mode(loop)); /* that of the run that was left, until the loop's end */
    CFRunLoopSourceSignal(probe_source_add(&late, 0, LOOP, MODE));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(late.calls, 1);
}

static void ends_in_a_nested_run(void *ret_loop)
{
    static struct probe first = {.name = "S0", .action = ends_its_thread_nested, .logging = probe_is_silent};

    *(CFRunLoopRef *)ret_loop = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
    EXPECT_EQ(pthread_setspecific(destructor_key, LOOP), 0);
    CFRunLoopSourceSignal(probe_source_add(&first, 0, LOOP, MODE));
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(a_thread_that_ends_in_a_nested_run_leaves_no_mode, "170 171 172 P11")
{
    CFRunLoopRef loop = NULL;

    EXPECT_EQ(pthread_key_create(&destructor_key, runs_the_loop_again), 0);
    probe_on_thread(ends_in_a_nested_run, &loop);
    EXPECT(!has_current_mode(loop));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunFinished);
    CFRelease(loop);
    pthread_key_delete(destructor_key);
}

static void fires_last(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    pthread_exit(NULL);
}

static void count_release(const void *info)
{
    ++*(_Atomic int *)(uintptr_t)info;
}

static CFRunLoopTimerRef fired_timer;

static void ends_in_a_one_shot_timer(void *context)
{
    fired_timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, fires_last, context);
    CFRunLoopAddTimer(LOOP, fired_timer, MODE);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(a_timer_whose_callout_ends_the_thread_has_fired, "124 170")
{
    _Atomic int releases = 0;
    CFRunLoopTimerContext context = {.info = &releases, .release = count_release};

    probe_on_thread(ends_in_a_one_shot_timer, &context);
    EXPECT_EQ(releases, 1);
    EXPECT(!CFRunLoopTimerIsValid(fired_timer));
    EXPECT_EQ(CFGetRetainCount(fired_timer), 1);
    CFRelease(fired_timer);
}

static void moves_and_ends(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopRef other = probe->context;

        CFRunLoopRemoveTimer(LOOP, probe_timer_of(probe), MODE);
        CFRunLoopAddTimer(other, probe_timer_of(probe), MODE);
        pthread_exit(NULL);
    }
}

static void fires_a_timer_that_moves(void *probe)
{
    probe_timer_add(probe, 0, 0.001, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(a_timer_goes_on_in_the_loop_to_which_its_last_callout_has_moved_it, "121 132 170 P11")
{
    static struct probe timer = {.name = "T", .action = moves_and_ends, .logging = probe_is_silent};
    static struct probe other = {.name = "U", .logging = probe_is_silent};

    timer.context = LOOP;
    probe_timer_add(&other, 0.002, 1000, LOOP, MODE);
    probe_on_thread(fires_a_timer_that_moves, &timer);
    EXPECT(CFRunLoopGetNextTimerFireDate(LOOP, MODE) <= CFAbsoluteTimeGetCurrent() + 1);
    while (timer.calls < 3 || other.calls < 1) {
        REQUIRE(CFRunLoopRunInMode(MODE, 0.01, false) == kCFRunLoopRunTimedOut);
    }
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
    EXPECT_EQ(CFRunLoopGetNextTimerFireDate(LOOP, MODE), CFRunLoopTimerGetNextFireDate(probe_timer_of(&other)));
}

static void ends_in_an_observer(void *probe)
{
    CFRunLoopObserverRef observer = probe_observer(probe, kCFRunLoopEntry, true, 0);
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};

    CFRunLoopAddObserver(LOOP, observer, MODE);
    CFRelease(observer);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(an_observer_whose_callout_ends_the_thread_is_released, "170 150")
{
    static struct probe probe = {.name = "O", .action = ends_its_thread, .logging = probe_is_silent};

    probe_on_thread(ends_in_an_observer, &probe);
    EXPECT_EQ(probe.calls, 1);
    EXPECT_EQ(probe.releases, 1);
}

/* ---- what the passes that did not return have held ---- */

enum { many = 40 }; /* more than a pass has in hand without asking for memory */

static struct probe held[many];

static void ends_in_the_first_of_many_sources(void *context)
{
    (void)context;
    for (int i = 0; i < many; i++) {
        held[i] = (struct probe){.name = "S", .action = ends_its_thread, .logging = probe_is_silent};
        CFRunLoopSourceSignal(probe_source_add(&held[i], i, LOOP, MODE));
    }
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

static int count_calls(void)
{
    int calls = 0;

    for (int i = 0; i < many; i++) {
        calls += held[i].calls;
    }
    return calls;
}

TEST(the_sources_of_a_pass_that_ends_the_thread_are_let_go_of, "73 82 170 P11")
{
    probe_on_thread(ends_in_the_first_of_many_sources, NULL);
    EXPECT_EQ(count_calls(), 1);
    for (int i = 0; i < many; i++) {
        EXPECT_EQ(held[i].releases, 1);
    }
}

static void ends_in_the_first_of_many_timers(void *context)
{
    (void)context;
    for (int i = 0; i < many; i++) {
        held[i] = (struct probe){.name = "T", .action = ends_its_thread, .logging = probe_is_silent};
        probe_timer_add(&held[i], 0, 1000, LOOP, MODE);
    }
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(the_timers_of_a_pass_that_ends_the_thread_are_let_go_of, "34 135 170 P11")
{
    probe_on_thread(ends_in_the_first_of_many_timers, NULL);
    EXPECT_EQ(count_calls(), 1);
    for (int i = 0; i < many; i++) {
        EXPECT_EQ(held[i].retains, held[i].calls + 1);
        EXPECT_EQ(held[i].releases, held[i].retains);
    }
}

static _Atomic int functions_called;

static void ends_the_thread(void *info)
{
    (void)info;
    functions_called++;
    pthread_exit(NULL);
}

static void count_release_of_function(void *info)
{
    count_release(info);
}

static void ends_in_the_first_of_many_blocks(void *releases)
{
    for (int i = 0; i < many; i++) {
        CRLRunLoopPerformFunction(LOOP, i % 2 == 0 ? MODE : kCFRunLoopCommonModes, ends_the_thread, releases, count_release_of_function);
    }
    CFRunLoopAddCommonMode(LOOP, MODE);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(the_functions_of_a_pass_that_ends_the_thread_are_released, "167 168 170 P11")
{
    _Atomic int releases = 0;

    probe_on_thread(ends_in_the_first_of_many_blocks, &releases);
    EXPECT_EQ(functions_called, 1);
    EXPECT_EQ(releases, many);
}

static void ends_in_a_port_of_a_nested_run(struct probe *probe)
{
    static struct probe port = {.name = "P", .action = ends_its_thread, .logging = probe_is_silent};

    (void)probe;
    port.descriptor = held[0].descriptor;
    probe_port_source_add(&port, 0, port.descriptor, LOOP, inner_mode);
    CFRunLoopRunInMode(inner_mode, 10, false);
}

static void ends_in_a_port_within_a_port(void *probe)
{
    probe_port_source_add(probe, 0, ((struct probe *)probe)->descriptor, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 10, false);
    FAIL("the run has returned");
}

TEST(the_ports_of_runs_that_end_the_thread_are_let_go_of, "73 170 P11")
{
    static struct probe port = {.name = "P", .action = ends_in_a_port_of_a_nested_run, .logging = probe_is_silent};

    port.descriptor = probe_event();
    held[0].descriptor = probe_event();
    probe_event_post(port.descriptor);
    probe_event_post(held[0].descriptor);
    probe_on_thread(ends_in_a_port_within_a_port, &port);
    EXPECT_EQ(port.releases, 1);
    close(port.descriptor);
    close(held[0].descriptor);
}

/* ---- jumps ---- */

static jmp_buf way_out;

static void jumps_out(struct probe *probe)
{
    (void)probe;
    longjmp(way_out, 1);
}

static void catches_what_a_nested_run_throws(struct probe *probe)
{
    static struct probe thrower = {.name = "S1", .action = jumps_out, .logging = probe_is_silent};

    if (probe->calls == 1 && setjmp(way_out) == 0) {
        CFRunLoopSourceSignal(probe_source_add(&thrower, 0, LOOP, inner_mode));
        CFRunLoopRunInMode(inner_mode, 10, false);
        FAIL("the run has returned");
    }
}

static void notes_the_mode(struct probe *probe)
{
    if (probe->activity == kCFRunLoopAfterWaiting) {
        probe_note_current_mode("mode", LOOP);
    }
}

static void wakes(void *loop)
{
    CFRunLoopWakeUp(loop);
}

static void stops(void *loop)
{
    CFRunLoopStop(loop);
}

static void woken_then_stopped(struct probe *probe)
{
    struct probe_thread *thread = probe->context;

    if (probe->activity == kCFRunLoopBeforeWaiting) {
        probe_thread_when_waiting(&thread[probe->calls - 1], LOOP, probe->calls == 1 ? wakes : stops, LOOP);
    }
}

TEST(a_run_goes_on_after_a_nested_one_was_jumped_out_of, "45 55 63 P11")
{
    static struct probe_thread threads[2];
    static struct probe source = {.name = "S0", .action = catches_what_a_nested_run_throws, .logging = probe_is_silent};
    static struct probe waker = {.name = "O", .action = woken_then_stopped, .context = threads, .logging = probe_is_silent};
    static struct probe mode = {.name = "M", .action = notes_the_mode, .logging = probe_is_silent};

    probe_observer_add(&waker, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_observer_add(&mode, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 1000, false);
    EXPECT_LOG("mode=test mode=test S");
    EXPECT(!has_current_mode(LOOP));
    probe_thread_join(&threads[0]);
    probe_thread_join(&threads[1]);
}

static void catches_in_a_timer(struct probe *probe)
{
    catches_what_a_nested_run_throws(probe);
    CFRunLoopStop(LOOP);
}

TEST(a_run_may_end_by_the_callback_that_has_caught_a_nested_ones_jump, "45 55")
{
    static struct probe timer = {.name = "T", .action = catches_in_a_timer, .logging = probe_is_silent};
    static struct probe source = PROBE("S2", NULL);

    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    probe_source_add(&source, 0, LOOP, MODE);
    probe_run(MODE, 1000, false);
    EXPECT(!has_current_mode(LOOP));
    CFRunLoopSourceSignal(probe_source_of(&source));
    probe_run(MODE, 1000, true);
    EXPECT_LOG("S S2 HS");
}

TEST(the_loop_can_be_run_after_an_outermost_run_was_jumped_out_of, "45 55 P11")
{
    static struct probe thrower = {.name = "S0", .action = jumps_out, .logging = probe_is_silent};
    static struct probe source = PROBE("S2", NULL);

    CFRunLoopSourceSignal(probe_source_add(&thrower, 0, LOOP, MODE));
    for (volatile int i = 0; i < 3; i++) {
        CFRunLoopSourceSignal(probe_source_of(&thrower));
        if (setjmp(way_out) == 0) {
            CFRunLoopRunInMode(MODE, 10, false);
            FAIL("the run has returned");
        }
        write_over_the_stack();
        EXPECT(has_current_mode(LOOP)); /* nobody knows that the run was left, until the next begins */
    }
    CFRunLoopSourceInvalidate(probe_source_of(&thrower));
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 1000, true);
    probe_run(MODE, 0.001, true);
    EXPECT_LOG("S2 HS TO");
}

static struct probe woken_thrower = {.name = "S1", .action = jumps_out, .logging = probe_is_silent};

static void signals_and_wakes(void *source)
{
    CFRunLoopSourceSignal(source);
    CFRunLoopSourceSignal(probe_source_of(&woken_thrower));
    CFRunLoopWakeUp(CFRunLoopGetMain());
}

static void leaves_a_run_that_was_woken(struct probe *probe)
{
    static struct probe_thread thread;

    if (probe->calls == 1 && setjmp(way_out) == 0) {
        probe_source_add(&woken_thrower, 0, LOOP, inner_mode);
        probe_thread_when_waiting(&thread, LOOP, signals_and_wakes, probe->context);
        CFRunLoopRunInMode(inner_mode, 10, false);
        FAIL("the run has returned");
    }
    if (probe->calls == 1) {
        probe_thread_join(&thread);
    }
}

TEST(a_wake_up_that_a_run_took_which_was_jumped_out_of_is_given_back, "45 64 P11")
{
    static struct probe observer = {.name = "BW", .action = leaves_a_run_that_was_woken, .logging = probe_is_silent};
    static struct probe source = PROBE("S0", NULL);

    observer.context = probe_source_add(&source, 0, LOOP, MODE);
    probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_run(MODE, 1, true);
    EXPECT_LOG("S0 HS");
}

static void jumps_out_of_a_timer(struct probe *probe)
{
    if (probe->calls == 1) {
        longjmp(way_out, 1);
    }
}

static void catches_what_a_timer_throws(struct probe *probe)
{
    static struct probe timer = {.name = "T", .action = jumps_out_of_a_timer, .logging = probe_is_silent};

    if (probe->calls == 1 && setjmp(way_out) == 0) {
        probe_timer_add(&timer, 0, 0.001, LOOP, inner_mode);
        CFRunLoopRunInMode(inner_mode, 10, false);
        FAIL("the run has returned");
    }
    probe->context = &timer;
}

TEST(a_timer_fires_again_after_its_callout_was_jumped_out_of, "45 118 135 P11")
{
    static struct probe source = {.name = "S0", .action = catches_what_a_timer_throws, .logging = probe_is_silent};
    const struct probe *timer;

    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, false);
    timer = source.context;
    EXPECT_EQ(timer->calls, 1);
    while (timer->calls < 3) {
        REQUIRE(CFRunLoopRunInMode(inner_mode, 0.01, false) == kCFRunLoopRunTimedOut);
    }
    CFRunLoopTimerInvalidate(probe_timer_of(timer));
    EXPECT_EQ(timer->retains, timer->calls + 1);
    EXPECT_EQ(timer->releases, timer->retains);
}

static void jumps_out_once(struct probe *probe)
{
    if (probe->calls == 1) {
        longjmp(way_out, 1);
    }
}

static void catches_what_an_observer_throws(struct probe *probe)
{
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};

    (void)probe;
    if (setjmp(way_out) == 0) {
        probe_source_add(&idle, 0, LOOP, inner_mode);
        CFRunLoopRunInMode(inner_mode, 10, false);
        FAIL("the run has returned");
    }
}

TEST(an_observer_is_called_again_after_its_callout_was_jumped_out_of, "45 150 151 P11")
{
    static struct probe source = {.name = "S0", .action = catches_what_an_observer_throws, .logging = probe_is_silent};
    static struct probe observer = {.name = "O", .action = jumps_out_once, .logging = probe_is_silent};

    probe_observer_add(&observer, kCFRunLoopBeforeTimers, 0, LOOP, inner_mode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, false);
    EXPECT_EQ(CFRunLoopRunInMode(inner_mode, 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(observer.calls, 2);
    probe_invalidate(&observer);
    EXPECT_EQ(observer.releases, observer.retains);
}

TEST(an_observer_that_does_not_repeat_is_over_once_it_was_jumped_out_of, "45 152 P11")
{
    static struct probe source = {.name = "S0", .action = catches_what_an_observer_throws, .logging = probe_is_silent};
    static struct probe observer = {.name = "O", .action = jumps_out_once, .logging = probe_is_silent};
    CFRunLoopObserverRef once = probe_observer(&observer, kCFRunLoopBeforeTimers, false, 0);

    CFRunLoopAddObserver(LOOP, once, inner_mode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, false);
    EXPECT_EQ(CFRunLoopRunInMode(inner_mode, 0, false), kCFRunLoopRunTimedOut);
    EXPECT(!CFRunLoopObserverIsValid(once));
    EXPECT_EQ(observer.calls, 1);
    EXPECT_EQ(observer.releases, 1);
    CFRelease(once);
}

static void invalidates_and_jumps_out(struct probe *probe)
{
    struct probe_thread thread;

    probe_thread_start(&thread, (void (*)(void *))CFRunLoopObserverInvalidate, probe_observer_of(probe));
    probe_thread_join(&thread);
    EXPECT_EQ(probe->releases, 0);
    longjmp(way_out, 1);
}

TEST(the_info_of_an_observer_made_invalid_meanwhile_is_released_after_the_jump, "45 153 P11")
{
    static struct probe source = {.name = "S0", .action = catches_what_an_observer_throws, .logging = probe_is_silent};
    static struct probe observer = {.name = "O", .action = invalidates_and_jumps_out, .logging = probe_is_silent};

    probe_observer_add(&observer, kCFRunLoopBeforeTimers, 0, LOOP, inner_mode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, false);
    EXPECT_EQ(observer.releases, 1);
}

static void is_caught_in_an_observer(struct probe *probe)
{
    static struct probe thrower = {.name = "T", .action = jumps_out_once, .logging = probe_is_silent};

    if (probe->calls == 1) {
        probe_observer_add(&thrower, kCFRunLoopBeforeTimers, 1, LOOP, MODE);
        if (setjmp(way_out) == 0) {
            CFRunLoopRunInMode(MODE, 10, false);
            FAIL("the run has returned");
        }
    }
    probe->context = &thrower;
}

TEST(the_array_of_observers_that_two_runs_walk_outlasts_the_one_that_is_left, "45 151 P11")
{
    static struct probe outer = {.name = "O", .action = is_caught_in_an_observer, .logging = probe_is_silent};
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};
    struct probe *thrower;

    probe_source_add(&idle, 0, LOOP, MODE);
    probe_observer_add(&outer, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0, false);
    thrower = outer.context;
    EXPECT_EQ(outer.calls, 2);
    EXPECT_EQ(thrower->calls, 2);
    probe_invalidate(&outer);
    probe_invalidate(thrower);
    EXPECT_EQ(outer.releases + thrower->releases, 2);
}

static void throws_within_a_timer(struct probe *probe)
{
    catches_what_a_timer_throws(probe);
    CFRunLoopStop(LOOP);
}

TEST(a_timer_fires_again_after_it_was_jumped_out_of_in_the_callout_of_another, "45 118 P11")
{
    static struct probe outer = {.name = "T0", .action = throws_within_a_timer, .logging = probe_is_silent};
    struct probe *inner;

    probe_timer_add(&outer, 0, 0.001, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, false), kCFRunLoopRunStopped);
    probe_invalidate(&outer);
    inner = outer.context;
    for (int i = 0; i < 10000 && inner->calls < 3; i++) {
        REQUIRE(CFRunLoopRunInMode(inner_mode, 0.01, false) == kCFRunLoopRunTimedOut);
    }
    EXPECT(inner->calls >= 3);
    probe_invalidate(inner);
    EXPECT_EQ(inner->releases, inner->retains);
}

static void notes_the_mode_after_it(struct probe *probe)
{
    (void)probe;
    probe_note_current_mode("mode", LOOP);
}

TEST(callbacks_after_the_one_that_has_caught_a_jump_are_in_their_own_mode, "8 45 P11")
{
    static struct probe source = {.name = "S0", .action = catches_what_a_nested_run_throws, .logging = probe_is_silent};
    static struct probe other = {.name = "S1", .action = notes_the_mode_after_it, .logging = probe_is_silent};

    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&other, 1, LOOP, MODE));
    probe_run(MODE, 0, false);
    EXPECT_LOG("mode=test TO");
}

static void stop_the_loop(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    CFRunLoopStop(LOOP);
}

TEST(a_timer_fires_again_after_it_was_jumped_out_of_from_an_outermost_run, "45 118 135 P11")
{
    static struct probe timer = {.name = "T", .action = jumps_out_once, .logging = probe_is_silent};
    CFRunLoopTimerRef end = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, stop_the_loop, NULL);

    probe_timer_add(&timer, 0, 0.001, LOOP, MODE);
    if (setjmp(way_out) == 0) {
        CFRunLoopRunInMode(MODE, 10, false);
        FAIL("the run has returned");
    }
    write_over_the_stack();
    while (timer.calls < 3) {
        REQUIRE(CFRunLoopRunInMode(MODE, 0.01, false) == kCFRunLoopRunTimedOut);
        EXPECT(!has_current_mode(LOOP));
    }
    CFRunLoopAddTimer(LOOP, end, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 10, false), kCFRunLoopRunStopped);
    probe_invalidate(&timer);
    EXPECT_EQ(timer.releases, timer.retains);
    CFRelease(end);
}

static void is_left_in_a_callback(struct probe *probe)
{
    static struct probe thrower = {.name = "T", .action = jumps_out_once, .logging = probe_is_silent};
    static struct probe port = PROBE("P", NULL);

    if (probe->calls == 1 && setjmp(way_out) == 0) {
        CFRunLoopSourceSignal(probe_source_add(&thrower, 0, LOOP, inner_mode));
        CFRunLoopRunInMode(inner_mode, 10, false);
        FAIL("the run has returned");
    }
    probe_source_add(&port, 0, LOOP, inner_mode);
    CFRunLoopSourceInvalidate(probe_source_of(&thrower));
    EXPECT_EQ(thrower.releases, 0); /* the run that was left has it */
    CFRunLoopSourceSignal(probe_source_of(&port));
    EXPECT_EQ(CFRunLoopRunInMode(inner_mode, 10, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(thrower.releases, 1);
    probe_note_current_mode("mode", LOOP);
}

TEST(a_run_that_was_left_is_over_when_its_callback_begins_another, "8 45 P11")
{
    static struct probe source = {.name = "S0", .action = is_left_in_a_callback, .logging = probe_is_silent};

    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 10, true);
    EXPECT_LOG("P mode=test HS");
}

/* ---- hosts ---- */

/* Runs a mode as its source jumps out. */
static void leaves_a_run(void)
{
    static struct probe thrower = {.name = "T", .action = jumps_out, .logging = probe_is_silent};

    if (setjmp(way_out) == 0) {
        CFRunLoopSourceSignal(probe_source_add(&thrower, 0, LOOP, inner_mode));
        CFRunLoopRunInMode(inner_mode, 10, false);
        FAIL("the run has returned");
    }
    probe_invalidate(&thrower);
}

TEST(a_host_goes_on_after_a_run_between_its_calls_was_jumped_out_of, "45 P11")
{
    static struct probe source = PROBE("S0", NULL);

    probe_source_add(&source, 0, LOOP, MODE);
    leaves_a_run();
    EXPECT(has_current_mode(LOOP));
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    leaves_a_run();
    EXPECT(CRLRunLoopGetTimeout(LOOP) != 0); /* nothing is ready */
    CFRunLoopSourceSignal(probe_source_of(&source));
    CFRunLoopWakeUp(LOOP);
    leaves_a_run();
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_LOG("S0");
    leaves_a_run();
    CRLRunLoopLeave(LOOP);
    EXPECT(!has_current_mode(LOOP));
}

static int leavings;

static void leaves_the_host(const void *info)
{
    leavings++;
    CRLRunLoopLeave((CFRunLoopRef)(uintptr_t)info);
}

static void jumps_out_of_its_source(void *info)
{
    (void)info;
    longjmp(way_out, 1);
}

TEST(what_a_left_run_held_may_end_the_hosts_run_by_its_release, "45 P11")
{
    static struct probe observer = {.name = "O", .logging = probe_is_silent};
    CFRunLoopSourceContext context = {.info = LOOP, .release = leaves_the_host, .perform = jumps_out_of_its_source};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);

    probe_stage(MODE);
    probe_observer_add(&observer, kCFRunLoopExit, 0, LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    CFRunLoopAddSource(LOOP, source, inner_mode);
    CFRunLoopSourceSignal(source);
    if (setjmp(way_out) == 0) {
        CFRunLoopRunInMode(inner_mode, 10, false);
        FAIL("the run has returned");
    }
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    EXPECT_EQ(leavings, 0); /* the run that was left has it */
    CRLRunLoopLeave(LOOP);
    EXPECT_EQ(leavings, 1);
    EXPECT_EQ(observer.calls, 1);
    EXPECT(!has_current_mode(LOOP));
}

/* ---- stacks of the program's own ---- */

static void runs_on_another_stack(int number)
{
    static struct probe inner = PROBE("S1", NULL);

    (void)number;
    CFRunLoopSourceSignal(probe_source_add(&inner, 0, LOOP, inner_mode));
    probe_run(inner_mode, 10, true);
    probe_note_current_mode("mode", LOOP);
}

static void changes_the_stack(struct probe *probe)
{
    (void)probe;
    raise(SIGUSR1);
}

static void *runs_below_another_stack(void *context)
{
    static struct probe source = {.name = "S0", .action = changes_the_stack, .logging = probe_is_silent};
    const stack_t *other = context;

    REQUIRE(sigaltstack(other, NULL) == 0);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 10, true);
    return NULL;
}

/* Addresses on another stack may be above those of a run around it, which is there all the same. */
TEST(a_run_on_a_stack_of_the_programs_own_leaves_the_one_around_it, "8 45 P11")
{
    const size_t size = (size_t)1 << 20;
    char *stacks = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_handler = runs_on_another_stack, .sa_flags = SA_ONSTACK};
    stack_t other = {.ss_sp = stacks + size, .ss_size = size};
    pthread_attr_t attributes;
    pthread_t thread;

    if (test_is_instrumented()) {
        SKIP("the run is in a signal handler, where instruments allow less than the kernel does for one that was raised");
    }
    REQUIRE(stacks != MAP_FAILED);
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    REQUIRE(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stacks, size) == 0);
    REQUIRE(pthread_create(&thread, &attributes, runs_below_another_stack, &other) == 0);
    (void)pthread_join(thread, NULL);
    (void)pthread_attr_destroy(&attributes);
    EXPECT_LOG("S1 HS mode=test HS");
    (void)munmap(stacks, 2 * size);
}

static void is_hosted_and_left(struct probe *probe)
{
    if (probe->calls == 1) {
        EXPECT(CRLRunLoopPrepare(LOOP, inner_mode));
    }
}

TEST(a_hosted_run_that_a_callback_begins_and_leaves_behind_can_be_begun_anew, "45")
{
    static struct probe source = {.name = "S0", .action = is_hosted_and_left, .logging = probe_is_silent};
    static struct probe other = PROBE("S1", NULL);

    probe_source_add(&other, 0, LOOP, inner_mode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0.001, false);
    EXPECT(!has_current_mode(LOOP));
    CFRunLoopSourceSignal(probe_source_of(&other));
    EXPECT(CRLRunLoopPrepare(LOOP, inner_mode));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    CRLRunLoopLeave(LOOP);
    EXPECT(!has_current_mode(LOOP));
    EXPECT_LOG("TO S1");
}
