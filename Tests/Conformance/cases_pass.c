/* SPDX-License-Identifier: Apache-2.0 */
/* One run and its passes, and what a run returns: rules 27 to 60. The names of the canonical sequences are those of rule 37. */
#define CONFORMANCE_GROUP "pass"
#include "conformance.h"

#include <sched.h>
#include <signal.h>

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

static void stops(void *context)
{
    CFRunLoopStop(context);
}

static void wakes(void *context)
{
    CFRunLoopWakeUp(context);
}

static void signals_and_wakes(void *context)
{
    struct probe *probe = context;
    CFRunLoopSourceSignal((CFRunLoopSourceRef)(uintptr_t)probe->item);
    CFRunLoopWakeUp(probe->context);
}

static void stop_in_activity(CFRunLoopActivity activity)
{
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    probe_stage(MODE);
    probe_observer_add(&stopper, activity, 0, LOOP, MODE);
    probe_run(MODE, 0.5, false);
    probe_note_bool("stopped-once", stopper.calls == 1);
}

CASE(stop_in_entry, "29 160", on_thread)
{
    stop_in_activity(kCFRunLoopEntry);
}

CASE(stop_in_before_timers, "37 160", on_thread) /* 37t */
{
    stop_in_activity(kCFRunLoopBeforeTimers);
}

CASE(stop_in_before_sources, "37 160", on_thread) /* 37t */
{
    stop_in_activity(kCFRunLoopBeforeSources);
}

CASE(stop_in_before_waiting, "37 160", on_thread) /* 37t */
{
    stop_in_activity(kCFRunLoopBeforeWaiting);
}

CASE(stop_in_exit_is_forgotten, "58", on_thread)
{
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    probe_stage(MODE);
    probe_observer_add(&stopper, kCFRunLoopExit, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0.02, false);
}

CASE(seq_37b_idle_poll, "37 43 53", on_thread)
{
    probe_stage(MODE);
    probe_run(MODE, 0, false);
    probe_run(MODE, -5, false);
    probe_run(MODE, 0, true);
}

static void runs_another_mode(struct probe *probe)
{
    (void)probe;
    CFRunLoopRunInMode(CFSTR("another"), 0.1, false);
}

/* The timer is due after the limit, if that counts from before Entry, and before it otherwise. */
CASE(the_limit_counts_from_behind_entry, "41", on_thread)
{
    static struct probe idle = PROBE("idle", NULL);
    static struct probe runner = PROBE("nest", runs_another_mode);
    static struct probe timer = PROBE("T", NULL);
    probe_source_add(&idle, 0, LOOP, CFSTR("another"));
    probe_stage(MODE);
    probe_timer_add(&timer, 0.3, 0, LOOP, MODE);
    probe_observer_add(&runner, kCFRunLoopEntry, 0, LOOP, MODE);
    probe_run(MODE, 0.25, false);
}

CASE(seq_37c_idle_wait, "37 41", on_thread)
{
    probe_stage(MODE);
    mark_time();
    probe_run(MODE, 0.05, false);
    probe_note_bool("not-early", probe_seconds() > 0 && steps_since_mark(0.05) >= 1);
}

static void run_signalled(CFTimeInterval seconds, bool return_after_source)
{
    static struct probe source = PROBE("S0", NULL);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, seconds, return_after_source);
}

CASE(seq_37d_signalled_poll, "37 50", on_thread)
{
    run_signalled(0, false);
}

CASE(seq_37d_signalled_poll_one, "37 47", on_thread)
{
    run_signalled(0, true);
}

CASE(seq_37e_signalled_wait, "37 30", on_thread)
{
    run_signalled(0.05, false);
}

CASE(seq_37f_signalled_wait_one, "37 47", on_thread)
{
    run_signalled(10, true);
}

CASE(seq_37g_signalled_while_asleep, "37 61", on_thread)
{
    static struct probe source = PROBE("S0", NULL);
    struct probe_thread other;
    probe_stage(MODE);
    source.context = LOOP;
    probe_source_add(&source, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, signals_and_wakes, &source);
    probe_run(MODE, 100, true);
    probe_thread_join(&other);
}

CASE(seq_37h_explicit_wake_up, "37 61", on_thread)
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, wakes, LOOP);
    probe_run(MODE, 0.3, false);
    probe_thread_join(&other);
}

CASE(seq_37i_stop_while_asleep, "37 57", on_thread)
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, stops, LOOP);
    probe_run(MODE, 100, false);
    probe_thread_join(&other);
}

CASE(seq_37j_timers_are_no_sources, "37 51", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    probe_timer_add(&timer, 0.05, 0, LOOP, MODE);
    probe_run(MODE, 0.2, true);
}

CASE(seq_37k_overdue_timer_poll, "37", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
}

CASE(seq_37l_timer_stops, "37 59", on_thread)
{
    static struct probe timer = PROBE("T", probe_stops_loop);
    probe_stage(MODE);
    probe_timer_add(&timer, 0.02, 0, LOOP, MODE);
    probe_run(MODE, 100, false);
}

static void run_with_port(CFTimeInterval seconds, bool return_after_source)
{
    static struct probe port = PROBE("S1", NULL);
    int event = probe_event();
    probe_stage(MODE);
    probe_event_post(event);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_run(MODE, seconds, return_after_source);
}

CASE(seq_37m_port_ready, "37 32", on_thread)
{
    run_with_port(0.05, false);
}

CASE(seq_37m_port_ready_one, "37 32", on_thread)
{
    run_with_port(100, true);
}

CASE(port_ready_poll, "30 32 48", on_thread)
{
    run_with_port(0, false);
}

CASE(port_ready_poll_one, "30 32 48", on_thread)
{
    run_with_port(0, true);
}

CASE(seq_37n_last_timer_fires, "37", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    probe_activities_add(LOOP, MODE);
    probe_timer_add(&timer, 0.05, 0, LOOP, MODE);
    probe_run(MODE, 100, false);
}

CASE(seq_37q_due_timers_and_source_poll, "37 34 52", on_thread)
{
    static struct probe first = PROBE("T1", NULL);
    static struct probe second = PROBE("T2", NULL);
    probe_timer_add(&second, -1, 0, LOOP, MODE);
    CFRunLoopTimerSetNextFireDate((CFRunLoopTimerRef)(uintptr_t)second.item, CFAbsoluteTimeGetCurrent() + 0.002);
    probe_timer_add(&first, -1, 0, LOOP, MODE);
    mark_time();
    while (steps_since_mark(0.01) < 1) {
    }
    run_signalled(0, false);
}

CASE(seq_37s_source_removes_itself, "37", on_thread)
{
    static struct probe source = PROBE("S0", probe_removes_itself);
    probe_activities_add(LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 100, false);
}

#if defined(__BLOCKS__)
CASE(seq_37o_block_poll, "37 51", on_thread)
{
    probe_stage(MODE);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("B");
    });
    probe_run(MODE, 0, true);
}

CASE(seq_37p_block_while_asleep, "37 162", on_thread)
{
    static CFRunLoopRef loop;
    struct probe_thread other;
    probe_stage(MODE);
    loop = LOOP;
    probe_thread_when_waiting(&other, loop, wakes, loop);
    CFRunLoopObserverRef observer =
        CFRunLoopObserverCreateWithHandler(NULL, kCFRunLoopBeforeWaiting, false, 0, ^(CFRunLoopObserverRef it, CFRunLoopActivity activity) {
            (void)it;
            (void)activity;
            CFRunLoopPerformBlock(loop, MODE, ^{
                probe_log("B");
            });
        });
    CFRunLoopAddObserver(loop, observer, MODE);
    CFRelease(observer);
    probe_run(MODE, 0.3, false);
    probe_thread_join(&other);
}

CASE(seq_37r_nested_run_in_block, "37 45", on_thread)
{
    probe_stage(MODE);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("B{");
        probe_run(MODE, 0, false);
        probe_log("}");
    });
    probe_run(MODE, 0, false);
}

CASE(mode_with_one_block_still_sleeps, "39", on_thread)
{
    probe_activities_add(LOOP, MODE);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("B");
    });
    probe_run(MODE, 0.1, false);
    probe_run(MODE, 0.1, false);
}

CASE(blocks_have_two_slots_before_the_wait, "30", on_thread)
{
    static struct probe source = PROBE("S0", NULL);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("B1");
        CFRunLoopPerformBlock(LOOP, MODE, ^{
            probe_log("B2");
            CFRunLoopPerformBlock(LOOP, MODE, ^{
                probe_log("B3");
            });
        });
    });
    probe_run(MODE, 0, false);
}
#endif

static void removes_last_source(void *context)
{
    struct probe *probe = context;
    CFRunLoopRef loop = probe->context;
    CFRunLoopRemoveSource(loop, (CFRunLoopSourceRef)(uintptr_t)probe->item, MODE);
    CFRunLoopWakeUp(loop);
}

CASE(last_source_removed_while_asleep, "40", on_thread)
{
    static struct probe source = PROBE("S0", NULL);
    struct probe_thread other;
    source.context = LOOP;
    probe_activities_add(LOOP, MODE);
    probe_source_add(&source, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, removes_last_source, &source);
    probe_run(MODE, 100, false);
    probe_thread_join(&other);
}

static void removes_last_source_silently(void *context)
{
    struct probe *probe = context;
    CFRunLoopRemoveSource(probe->context, (CFRunLoopSourceRef)(uintptr_t)probe->item, MODE);
}

CASE(removal_alone_does_not_wake, "40 67", on_thread)
{
    static struct probe source = PROBE("S0", NULL);
    struct probe_thread other;
    source.context = LOOP;
    probe_activities_add(LOOP, MODE);
    probe_source_add(&source, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, removes_last_source_silently, &source);
    probe_run(MODE, 0.3, false);
    probe_thread_join(&other);
}

CASE(everything_in_one_pass, "30 38", on_thread)
{
    static struct probe source = PROBE("S0", NULL);
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    probe_run(MODE, 0.1, false);
}

CASE(nested_runs_send_their_own_activities, "45 31", on_thread)
{
    static struct probe source = PROBE("S0", probe_runs_nested);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, false);
}

static void runs_nested_and_stops(struct probe *probe)
{
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    (void)probe;
    probe_timer_add(&stopper, -1, 0, LOOP, CFSTR("inner"));
    probe_run(CFSTR("inner"), 100, false);
}

CASE(stop_ends_the_innermost_only, "55 45", on_thread)
{
    static struct probe source = PROBE("S0", runs_nested_and_stops);
    static struct probe idle = PROBE("idle", NULL);
    probe_stage(MODE);
    probe_activities_add(LOOP, CFSTR("inner"));
    probe_source_add(&idle, 1, LOOP, CFSTR("inner"));
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0.05, false);
}

static void stops_then_runs_nested(struct probe *probe)
{
    (void)probe;
    CFRunLoopStop(LOOP);
    probe_run(MODE, 0.02, false);
}

CASE(stop_of_the_outer_run_spares_a_later_inner_run, "28 45 55", on_thread)
{
    static struct probe source = PROBE("S0", stops_then_runs_nested);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 100, false);
}

static void wakes_five_times(void *context)
{
    for (int i = 0; i < 5; i++) {
        CFRunLoopWakeUp(context);
    }
}

static void wakes_five_times_here(struct probe *probe)
{
    (void)probe;
    wakes_five_times(LOOP);
}

CASE(wake_ups_in_a_row_make_one_pass, "46 61", on_thread)
{
    static struct probe waker = PROBE("wake", wakes_five_times_here);
    probe_stage(MODE);
    CFRunLoopObserverRef observer = probe_observer(&waker, kCFRunLoopBeforeWaiting, false, 0);
    CFRunLoopAddObserver(LOOP, observer, MODE);
    CFRelease(observer);
    probe_run(MODE, 0.05, false);
}

CASE(returning_after_one_source_leaves_the_others, "49", on_thread)
{
    static struct probe third = PROBE("S3", NULL);
    static struct probe first = PROBE("S1", NULL);
    static struct probe second = PROBE("S2", NULL);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&third, 3, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&first, 1, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&second, 2, LOOP, MODE));
    for (int i = 0; i < 4; i++) {
        probe_run(MODE, 0, true);
    }
}

CASE(all_signalled_sources_in_one_pass, "50 82", on_thread)
{
    static struct probe probes[] = {PROBE("S5", NULL), PROBE("S-1", NULL), PROBE("S3", NULL), PROBE("S0", NULL)};
    const CFIndex orders[] = {5, -1, 3, 0};
    probe_stage(MODE);
    for (int i = 0; i < 4; i++) {
        CFRunLoopSourceSignal(probe_source_add(&probes[i], orders[i], LOOP, MODE));
    }
    probe_run(MODE, 0, false);
}

static void stops_and_outlasts_the_run(struct probe *probe)
{
    (void)probe;
    CFRunLoopStop(LOOP);
    mark_time();
    while (steps_since_mark(0.06) < 1) {
    }
}

static void run_with_late_stop(bool return_after_source)
{
    static struct probe source = PROBE("S0", stops_and_outlasts_the_run);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0.03, return_after_source);
}

CASE(timed_out_before_stopped, "48 58", on_thread)
{
    run_with_late_stop(false);
}

CASE(handled_before_timed_out, "48", on_thread)
{
    run_with_late_stop(true);
}

static void stops_and_removes_itself(struct probe *probe)
{
    CFRunLoopStop(LOOP);
    probe_removes_itself(probe);
}

CASE(stopped_before_finished, "48", on_thread)
{
    static struct probe source = PROBE("S0", stops_and_removes_itself);
    probe_activities_add(LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 100, false);
}

CASE(run_on_an_empty_loop_returns, "54", on_thread)
{
    CFRunLoopRun();
    probe_log("returned");
}

static int countdown;

static void stops_after_three(struct probe *probe)
{
    (void)probe;
    if (++countdown == 3) {
        CFRunLoopStop(LOOP);
    }
}

CASE(run_until_stopped, "54 60", on_thread)
{
    static struct probe timer = PROBE("T", stops_after_three);
    probe_stage(MODE);
    probe_timer_add(&timer, 0.02, 0.02, LOOP, MODE);
    CFRunLoopRun();
    probe_log("returned");
}

CASE(run_goes_on_after_a_source, "54 60", on_thread)
{
    static struct probe source = PROBE("S0", probe_signals_itself_once);
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_timer_add(&timer, 0.02, 0, LOOP, MODE);
    timer.action = stops_after_three;
    countdown = 2;
    CFRunLoopRun();
    probe_log("returned");
}

CASE(stop_before_a_run_is_forgotten, "56", on_thread)
{
    probe_stage(MODE);
    CFRunLoopStop(LOOP);
    probe_run(MODE, 0.02, false);
}

CASE(stop_does_not_cut_the_batch_short, "59", on_thread)
{
    static struct probe first = PROBE("T1", probe_stops_loop);
    static struct probe second = PROBE("T2", NULL);
    static struct probe a = PROBE("A", probe_stops_loop);
    static struct probe b = PROBE("B", NULL);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&b, 1, LOOP, MODE));
    probe_timer_add(&first, -2, 0, LOOP, MODE);
    probe_timer_add(&second, -1, 0, LOOP, MODE);
    probe_run(MODE, 100, false);
}

static void interrupts(void *context)
{
    for (int i = 0; i < 20; i++) {
        pthread_kill(*(pthread_t *)context, SIGUSR1);
        double until = probe_seconds() + 0.002;
        while (probe_seconds() < until) {
            sched_yield();
        }
    }
}

static void on_signal(int number)
{
    (void)number;
}

CASE(signals_do_not_end_the_wait, "44", on_thread)
{
    struct probe_thread other;
    pthread_t self = pthread_self();
    signal(SIGUSR1, on_signal);
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, interrupts, &self);
    mark_time();
    probe_run(MODE, 0.1, false);
    probe_note_bool("full-time", steps_since_mark(0.1) == 1);
    probe_thread_join(&other);
}

CASE(a_busy_source_starves_nobody, "36", on_thread)
{
    static struct probe source = {.name = "S0", .action = probe_signals_itself, .logging = probe_is_silent};
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    int event = probe_event();
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_timer_add(&timer, 0.005, 0.005, LOOP, MODE);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 0.2, false);
    probe_note_bool("source", source.calls > 100);
    probe_note_bool("timer", timer.calls >= 5);
    probe_note_bool("port", port.calls == 1);
}

CASE(due_timer_and_ready_port_both_come, "35", on_thread)
{
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    int event = probe_event();
    probe_event_post(event);
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0, false);
    probe_note("T%d P%d", timer.calls, port.calls);
}

CASE(long_timeouts_are_no_timeout, "43", on_thread)
{
    struct probe_thread other;
    probe_stage(MODE);
    for (int i = 0; i < 2; i++) {
        probe_thread_when_waiting(&other, LOOP, stops, LOOP);
        probe_run(MODE, i == 0 ? 1e300 : 1.0 / 0.0, false);
        probe_thread_join(&other);
    }
    probe_run(MODE, -1.0 / 0.0, false);
}
