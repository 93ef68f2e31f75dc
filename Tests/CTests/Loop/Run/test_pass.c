/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of one run: rules 27 to 46. The canonical sequences 37a to 37u are named in the tests' names; 37u, the main
 * dispatch queue, is a conformance case. Most tests run on the virtual clock, so that the time a run takes is exact.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "Loop/loop_trace.h"

static void logs_text(void *info)
{
    probe_log(info);
}

static void queue_text(CFStringRef mode, const char *text)
{
    CRLRunLoopPerformFunction(LOOP, mode, logs_text, (void *)(uintptr_t)text, NULL);
}

static CFRunLoopSourceRef add_signalled(struct probe *probe, CFIndex order)
{
    CFRunLoopSourceRef source = probe_source_add(probe, order, LOOP, MODE);
    CFRunLoopSourceSignal(source);
    return source;
}

TEST(sequence_37a_only_observers, "27 37")
{
    probe_activities_add(LOOP, MODE);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("F");
}

TEST(sequence_37b_idle_poll, "37 43 53")
{
    clock_start();
    probe_stage(MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS X TO");
    probe_run(MODE, -1, true);
    EXPECT_LOG("E BT BS X TO");
    probe_run(MODE, -1.0 / 0.0, true);
    EXPECT_LOG("E BT BS X TO");
    EXPECT_EQ(clock_ms(), 0);
}

TEST(sequence_37c_idle_wait, "37 41")
{
    clock_start();
    probe_stage(MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    EXPECT_EQ(clock_ms(), 50);
}

TEST(sequences_37d_to_37f_signalled_source, "37 30 47 49")
{
    clock_start();
    static struct probe source = PROBE("S0", NULL);
    probe_stage(MODE);
    CFRunLoopSourceRef a = add_signalled(&source, 0);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS S0 X TO");
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    EXPECT_LOG("E BT BS S0 X HS");
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS S0 BT BS BW AW X TO");
    EXPECT_EQ(clock_ms(), 50);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0.05, true);
    EXPECT_LOG("E BT BS S0 X HS");
    EXPECT_EQ(clock_ms(), 50);
}

static void signals_and_wakes(void *context)
{
    struct probe *probe = context;
    CFRunLoopSourceSignal(probe_source_of(probe));
    CFRunLoopWakeUp(probe->context);
}

TEST(sequence_37g_signalled_while_asleep, "37 61")
{
    static struct probe source = PROBE("S0", NULL);
    struct probe_thread other;
    probe_stage(MODE);
    source.context = LOOP;
    probe_source_add(&source, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, signals_and_wakes, &source);
    probe_run(MODE, 1000, true);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW BT BS S0 X HS");
}

static void wakes(void *context)
{
    CFRunLoopWakeUp(context);
}

static void stops_in_the_second_sleep(struct probe *probe)
{
    if (probe->calls == 2) {
        CFRunLoopStop(LOOP);
    }
}

TEST(sequence_37h_explicit_wake_up, "37 61")
{
    static struct probe stopper = {.name = "O", .action = stops_in_the_second_sleep, .logging = probe_is_silent};
    struct probe_thread other;
    probe_stage(MODE);
    probe_observer_add(&stopper, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, wakes, LOOP);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW BT BS BW AW X S");
}

static void stops(void *context)
{
    CFRunLoopStop(context);
}

TEST(sequence_37i_stop_while_asleep, "37 57")
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, stops, LOOP);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW X S");
}

TEST(sequences_37j_37l_37n_timers, "37 51 59")
{
    clock_start();
    static struct probe timer = PROBE("T", NULL);
    static struct probe stopper = PROBE("T", probe_stops_loop);
    static struct probe only = PROBE("T", NULL);
    probe_stage(MODE);
    probe_timer_add(&timer, 0.05, 0, LOOP, MODE);
    probe_run(MODE, 0.1, true);
    EXPECT_LOG("E BT BS BW AW T BT BS BW AW X TO");
    EXPECT_EQ(clock_ms(), 100);
    probe_timer_add(&stopper, 0.05, 0, LOOP, MODE);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("E BT BS BW AW T X S");
    EXPECT_EQ(clock_ms(), 150);
    probe_activities_add(LOOP, CFSTR("timer only"));
    probe_timer_add(&only, 1, 0, LOOP, CFSTR("timer only"));
    probe_run(CFSTR("timer only"), 1000, false);
    EXPECT_LOG("E BT BS BW AW T X F");
    EXPECT_EQ(clock_ms(), 1150);
}

TEST(sequence_37k_overdue_timer_poll, "37")
{
    clock_start();
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS T X TO");
}

TEST(sequence_37m_port_source, "37 32")
{
    clock_start();
    static struct probe port = PROBE("S1", NULL);
    int event = probe_event();
    probe_stage(MODE);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW S1 BT BS BW AW X TO");
    probe_event_post(event);
    probe_run(MODE, 0.05, true);
    EXPECT_LOG("E BT BS BW AW S1 X HS");
    EXPECT_EQ(clock_ms(), 50);
    probe_event_post(event);
    probe_run(MODE, 0, true);
    EXPECT_LOG("E BT BS S1 X HS");
    CFRunLoopSourceInvalidate(p);
    close(event);
}

TEST(sequence_37o_block_poll, "37 51")
{
    clock_start();
    probe_stage(MODE);
    queue_text(MODE, "B");
    probe_run(MODE, 0, true);
    EXPECT_LOG("E BT BS B X TO");
}

static void queues_and_wakes(void *context)
{
    CRLRunLoopPerformFunction(context, MODE, logs_text, (void *)(uintptr_t)"B", NULL);
    CFRunLoopWakeUp(context);
}

TEST(sequence_37p_block_while_asleep, "37 162")
{
    static struct probe stopper = {.name = "O", .action = stops_in_the_second_sleep, .logging = probe_is_silent};
    struct probe_thread other;
    probe_stage(MODE);
    probe_observer_add(&stopper, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, queues_and_wakes, LOOP);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW B BT BS BW AW X S");
}

TEST(sequence_37q_timers_and_source_poll, "37 34 52")
{
    clock_start();
    static struct probe first = PROBE("T1", NULL);
    static struct probe second = PROBE("T2", NULL);
    static struct probe source = PROBE("S0", NULL);
    probe_stage(MODE);
    probe_timer_add(&second, 0.002, 0, LOOP, MODE);
    probe_timer_add(&first, 0.001, 0, LOOP, MODE);
    add_signalled(&source, 0);
    clock_spend_ms(10);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS S0 T1 T2 X TO");
}

static void runs_nested_in_block(void *info)
{
    (void)info;
    probe_log("B{");
    probe_run(MODE, 0, false);
    probe_log("}");
}

TEST(sequence_37r_nested_run_in_a_block, "37 45")
{
    clock_start();
    probe_stage(MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, runs_nested_in_block, NULL, NULL);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS B{ E BT BS X TO } X TO");
}

TEST(sequence_37s_source_removes_itself, "37")
{
    static struct probe source = PROBE("S0", probe_removes_itself);
    probe_activities_add(LOOP, MODE);
    add_signalled(&source, 0);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("E BT BS S0 X F");
}

static void stop_in(CFRunLoopActivity activity, const char *expected)
{
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    CFRunLoopObserverRef observer = probe_observer_add(&stopper, activity, 0, LOOP, MODE);
    probe_run(MODE, 1000, false);
    EXPECT_LOG(expected);
    CFRunLoopObserverInvalidate(observer);
}

TEST(sequence_37t_stop_in_observers, "29 37 160")
{
    clock_start();
    probe_stage(MODE);
    stop_in(kCFRunLoopEntry, "stop E X S");
    stop_in(kCFRunLoopBeforeTimers, "E stop BT BS BW AW X S");
    stop_in(kCFRunLoopBeforeSources, "E BT stop BS BW AW X S");
    stop_in(kCFRunLoopBeforeWaiting, "E BT BS stop BW AW X S");
    EXPECT_EQ(clock_ms(), 0);
}

TEST(stop_in_after_waiting_ends_the_pass, "28 160")
{
    clock_start();
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    probe_timer_add(&timer, 0.01, 0, LOOP, MODE);
    probe_observer_add(&stopper, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_run(MODE, 1000, false);
    EXPECT_LOG("E BT BS BW stop AW T X S");
}

TEST(leaving_by_any_route_sends_exit_in_the_mode, "31")
{
    clock_start();
    static struct probe source = PROBE("S0", NULL);
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    static struct probe mode = {.name = "O", .logging = probe_is_silent};
    probe_observer_add(&mode, kCFRunLoopExit, 0, LOOP, MODE);
    CFRunLoopSourceRef a = add_signalled(&source, 0);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, false);
    probe_timer_add(&stopper, -1, 0, LOOP, MODE);
    probe_run(MODE, 1000, false);
    source.action = probe_removes_itself;
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 1000, false);
    EXPECT_EQ(mode.calls, 4);
    EXPECT_LOG("S0 HS TO stop S S0 F");
}

TEST(the_whole_pass_in_order, "30 38")
{
    clock_start();
    static struct probe source = PROBE("S0", NULL);
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    add_signalled(&source, 0);
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    queue_text(MODE, "B");
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS B S0 T BT BS BW AW X TO");
}

static void queues_next(void *info)
{
    const char *text = info;
    probe_log(text);
    if (text[1] < '3') {
        CRLRunLoopPerformFunction(LOOP, MODE, queues_next, (void *)(uintptr_t)(text + 3), NULL);
    }
}

TEST(blocks_have_three_slots_in_a_pass, "30 166")
{
    clock_start();
    static struct probe source = PROBE("S0", NULL);
    static char texts[] = "B1\0B2\0B3";
    probe_stage(MODE);
    add_signalled(&source, 0);
    CRLRunLoopPerformFunction(LOOP, MODE, queues_next, texts, NULL);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS B1 S0 B2 B3 X TO");
}

TEST(a_ready_port_does_not_skip_the_sleep_notifications, "32")
{
    clock_start();
    static struct probe port = PROBE("S1", NULL);
    static struct probe timer = PROBE("T", NULL);
    int event = probe_event();
    probe_stage(MODE);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 0.05, true);
    EXPECT_LOG("E BT BS BW AW S1 X HS");
    probe_timer_add(&timer, -1, 0, LOOP, MODE);
    probe_run(MODE, 0.05, true);
    EXPECT_LOG("E BT BS BW AW T BT BS BW AW X TO");
    CFRunLoopSourceInvalidate(p);
    close(event);
}

static void adds_signalled_source(void *context)
{
    static struct probe source = PROBE("S0", NULL);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, context, MODE));
    CFRunLoopStop(context);
}

TEST(adding_a_source_does_not_wake, "33 67")
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, adds_signalled_source, LOOP);
    probe_run(MODE, 1000, false); /* woken by the stop: otherwise there would be a pass for the source */
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW X S");
    probe_run(MODE, 0, true);
    EXPECT_LOG("E BT BS S0 X HS");
}

TEST(all_due_timers_and_one_port_at_a_time, "34 102")
{
    clock_start();
    static struct probe timers[] = {PROBE("T0", NULL), PROBE("T1", NULL), PROBE("T2", NULL)};
    static struct probe ports[] = {PROBE("S1", NULL), PROBE("S1", NULL)};
    int events[2];
    probe_stage(MODE);
    for (int i = 0; i < 3; i++) {
        probe_timer_add(&timers[i], 0.01 * (3 - i), 0, LOOP, MODE);
    }
    clock_spend_ms(100);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS T2 T1 T0 X TO");
    for (int i = 0; i < 2; i++) {
        events[i] = probe_event();
        probe_event_post(events[i]);
        probe_port_source_add(&ports[i], 0, events[i], LOOP, MODE);
    }
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS S1 X TO");
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS S1 X TO");
    EXPECT_EQ(ports[0].calls, 1);
    EXPECT_EQ(ports[1].calls, 1);
    for (int i = 0; i < 2; i++) {
        CFRunLoopSourceInvalidate(probe_source_of(&ports[i]));
        close(events[i]);
    }
}

static void posts_again(struct probe *probe)
{
    probe_event_post(probe->descriptor);
}

TEST(timers_and_ports_do_not_starve_each_other, "35")
{
    clock_start();
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    static struct probe port = {.name = "S1", .action = posts_again, .logging = probe_is_silent};
    int event = probe_event();
    probe_timer_add(&timer, 0, 1e-9, LOOP, MODE); /* due in every pass */
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE); /* ready in every pass */
    probe_event_post(event);
    for (int i = 0; i < 20; i++) {
        clock_spend_ms(1);
        CFRunLoopRunInMode(MODE, 0, false);
    }
    EXPECT(timer.calls >= 8);
    EXPECT(port.calls >= 8);
    EXPECT(timer.calls + port.calls >= 20);
    CFRunLoopSourceInvalidate(p);
    close(event);
}

static void signals_itself_for_a_while(struct probe *probe)
{
    clock_spend_ms(1);
    probe_signals_itself(probe);
}

TEST(a_source_that_signals_itself_starves_nobody, "36 78")
{
    clock_start();
    static struct probe source = {.name = "S0", .action = signals_itself_for_a_while, .logging = probe_is_silent};
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    static struct probe port = {.name = "S1", .logging = probe_is_silent};
    int event = probe_event();
    add_signalled(&source, 0);
    probe_timer_add(&timer, 0.005, 0.005, LOOP, MODE);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.1, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(source.calls, 100);
    EXPECT(timer.calls >= 18 && timer.calls <= 20);
    EXPECT_EQ(port.calls, 1);
    CFRunLoopSourceInvalidate(p);
    close(event);
}

TEST(a_mode_with_only_a_block_runs_it_and_sleeps, "39")
{
    clock_start();
    probe_activities_add(LOOP, MODE);
    queue_text(MODE, "B");
    probe_run(MODE, 1, false);
    EXPECT_LOG("E BT BS B BW AW X TO");
    EXPECT_EQ(clock_ms(), 1000);
    probe_run(MODE, 1, false);
    EXPECT_LOG("F");
}

static void removes_and_wakes(void *context)
{
    struct probe *probe = context;
    CFRunLoopRemoveSource(probe->context, probe_source_of(probe), MODE);
    EXPECT(CFRunLoopIsWaiting(probe->context));
    CFRunLoopWakeUp(probe->context);
}

TEST(a_mode_emptied_while_asleep_finishes_when_woken, "40 67")
{
    static struct probe source = PROBE("S0", NULL);
    struct probe_thread other;
    source.context = LOOP;
    probe_activities_add(LOOP, MODE);
    probe_source_add(&source, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, removes_and_wakes, &source);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW X F");
}

TEST(the_timeout_is_never_early, "41 114")
{
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    for (int i = 1; i <= 20; i++) {
        double seconds = 0.0007 * i;
        double start = probe_seconds();
        EXPECT_EQ(CFRunLoopRunInMode(MODE, seconds, false), kCFRunLoopRunTimedOut);
        EXPECT(probe_seconds() - start >= seconds);
    }
}

TEST(the_timeout_counts_from_the_start_of_the_run, "41")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = probe_notes_ms, .logging = probe_is_silent};
    probe_timer_add(&timer, 0.03, 0.03, LOOP, MODE);
    probe_run(MODE, 0.1, false);
    EXPECT_LOG("T@30 T@60 T@90 TO");
    EXPECT_EQ(clock_ms(), 100);
}

static void spends_200_ms(struct probe *probe)
{
    (void)probe;
    clock_spend_ms(200);
}

static void runs_another_mode_for_200_ms(struct probe *probe)
{
    (void)probe;
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("another"), 0.2, false), kCFRunLoopRunTimedOut);
}

/* One that stays, and one that is gone when Entry is over. */
TEST(observers_of_entry_take_nothing_of_the_time, "28 41 152")
{
    static struct probe sleeper = {.name = "O", .action = spends_200_ms, .logging = probe_is_silent};
    static struct probe runner = {.name = "R", .action = runs_another_mode_for_200_ms, .logging = probe_is_silent};
    static struct probe idle = PROBE("idle", NULL);
    static struct probe timer = {.name = "T", .action = probe_notes_ms, .logging = probe_is_silent};
    CFRunLoopObserverRef once;
    clock_start();
    probe_source_add(&idle, 0, LOOP, CFSTR("another"));
    probe_timer_add(&timer, 0.23, 0, LOOP, MODE);
    probe_stage(MODE);
    probe_observer_add(&sleeper, kCFRunLoopEntry, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW T@230 BT BS BW AW X TO");
    EXPECT_EQ(clock_ms(), 250);
    CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)sleeper.item);
    once = probe_observer(&runner, kCFRunLoopEntry, false, 0);
    CFRunLoopAddObserver(LOOP, once, MODE);
    CFRelease(once);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    EXPECT_EQ(clock_ms(), 500);
}

TEST(a_far_timeout_is_none, "43")
{
    const double seconds[] = {504911233.0, 1e300, 1.0 / 0.0};
    probe_stage(MODE);
    for (int i = 0; i < 3; i++) {
        struct probe_thread other;
        probe_thread_when_waiting(&other, LOOP, stops, LOOP);
        probe_run(MODE, seconds[i], false);
        probe_thread_join(&other);
        EXPECT_LOG("E BT BS BW AW X S");
    }
}

static void runs_nan(void)
{
    for (int i = 0; i < 3; i++) {
        probe_run(MODE, 0.0 / 0.0, false);
    }
}

TEST(a_timeout_that_is_no_number_is_0, "43 L14")
{
    clock_start();
    probe_stage(MODE);
    EXPECT_EQ(logged_lines("CFRunLoopRunInMode", runs_nan), 1);
    EXPECT_LOG("E BT BS X TO E BT BS X TO E BT BS X TO");
}

static void on_signal(int number)
{
    (void)number;
}

struct storm {
    pthread_t target;
    _Atomic int ends;
};

static void interrupts(void *context)
{
    struct storm *storm = context;
    while (!storm->ends) {
        pthread_kill(storm->target, SIGUSR1);
        double until = probe_seconds() + 0.0005;
        while (probe_seconds() < until) {
        }
    }
}

TEST(interrupted_waits_go_on, "44 F12")
{
    static struct storm storm;
    struct probe_thread other;
    storm.target = pthread_self();
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
    probe_stage(MODE);
    probe_thread_start(&other, interrupts, &storm);
    double start = probe_seconds();
    probe_run(MODE, 0.1, false);
    double took = probe_seconds() - start;
    storm.ends = 1;
    probe_thread_join(&other);
    EXPECT(took >= 0.1);
    EXPECT_LOG("E BT BS BW AW X TO");
}

static void runs_nested_with_a_stop(struct probe *probe)
{
    static struct probe stopper = PROBE("stop", probe_stops_loop);
    (void)probe;
    probe_timer_add(&stopper, 0.01, 0, LOOP, MODE);
    probe_log("{");
    probe_run(MODE, 1000, false);
    probe_log("}");
}

TEST(each_run_has_its_own_stop_and_timeout, "28 45 55")
{
    clock_start();
    static struct probe source = PROBE("S0", runs_nested_with_a_stop);
    probe_stage(MODE);
    add_signalled(&source, 0);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS S0 { E BT BS BW AW stop X S } BT BS BW AW X TO");
    EXPECT_EQ(clock_ms(), 50);
}

static void wakes_five_times(struct probe *probe)
{
    if (probe->calls == 1) {
        for (int i = 0; i < 5; i++) {
            CFRunLoopWakeUp(LOOP);
        }
    }
}

TEST(five_wake_ups_are_one, "46 61")
{
    clock_start();
    static struct probe waker = {.name = "wake", .action = wakes_five_times, .logging = probe_is_silent};
    probe_stage(MODE);
    probe_observer_add(&waker, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW BT BS BW AW X TO");
}

static void wakes_once(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopWakeUp(LOOP);
    }
}

static void runs_inner_once(struct probe *probe)
{
    if (probe->calls == 1) {
        probe_log("{");
        probe_run(CFSTR("inner"), 0.05, false);
        probe_log("}");
    }
}

static void wake_then_nest(CFRunLoopActivity activity, const char *expected)
{
    static struct probe waker = {.name = "wake", .action = wakes_once, .logging = probe_is_silent};
    static struct probe nester = {.name = "nest", .action = runs_inner_once, .logging = probe_is_silent};
    probe_stage(MODE);
    probe_stage(CFSTR("inner"));
    probe_observer_add(&waker, activity, 0, LOOP, MODE);
    probe_observer_add(&nester, activity, 1, LOOP, MODE);
    probe_run(MODE, 0.2, false);
    EXPECT_LOG(expected);
}

static void runs_inner_twice(struct probe *probe)
{
    if (probe->calls == 1) {
        probe_log("{");
        probe_run(CFSTR("inner"), 0.05, false);
        probe_run(CFSTR("inner"), 0.05, false);
        probe_log("}");
    }
}

TEST(a_wake_up_taken_inside_before_waiting_ends_no_second_wait_there, "46 64")
{
    clock_start();
    static struct probe waker = {.name = "wake", .action = wakes_once, .logging = probe_is_silent};
    static struct probe nester = {.name = "nest", .action = runs_inner_twice, .logging = probe_is_silent};
    probe_stage(MODE);
    probe_stage(CFSTR("inner"));
    probe_observer_add(&waker, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_observer_add(&nester, kCFRunLoopBeforeWaiting, 1, LOOP, MODE);
    probe_run(MODE, 0.2, false);
    EXPECT_LOG("E BT BS { E BT BS BW AW BT BS BW AW X TO E BT BS BW AW X TO } BW AW BT BS BW AW X TO");
}

TEST(a_wake_up_is_taken_by_one_wait, "46")
{
    clock_start();
    wake_then_nest(kCFRunLoopBeforeTimers, "E { E BT BS BW AW BT BS BW AW X TO } BT BS BW AW X TO");
}

TEST(a_wake_up_taken_inside_before_waiting_is_given_back, "46 64")
{
    clock_start();
    wake_then_nest(kCFRunLoopBeforeWaiting, "E BT BS { E BT BS BW AW BT BS BW AW X TO } BW AW BT BS BW AW X TO");
}
