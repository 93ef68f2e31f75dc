/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which wake-ups are kept and which are dropped, what takes effect on a sleeping loop without one, and that none is lost: rules 61 to 71.
 * The stress of rule 65 sends 200,000 wake-ups from 8 threads, and 100 million in `make soak`.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "Loop/loop_trace.h"

static void logs_text(void *info)
{
    probe_log(info);
}

TEST(a_wake_up_outside_a_run_is_dropped, "62 L1")
{
    clock_start();
    probe_stage(MODE);
    CFRunLoopWakeUp(LOOP);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    CFRunLoopWakeUp(LOOP);
    CFRunLoopWakeUp(LOOP);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
}

TEST(a_signal_before_the_first_run_is_kept, "62 79 L1")
{
    clock_start();
    static struct probe source = PROBE("S0", NULL);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    CFRunLoopWakeUp(LOOP);
    probe_run(MODE, 1, true);
    EXPECT_LOG("S0 HS");
}

static void wake_up_in(CFRunLoopActivity activity, const char *expected)
{
    static struct probe waker = PROBE("wake", probe_wakes_loop);
    CFRunLoopObserverRef observer = probe_observer(&waker, activity, false, 0);
    CFRunLoopAddObserver(LOOP, observer, MODE);
    CFRelease(observer);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG(expected);
}

TEST(wake_ups_in_observers, "63 64")
{
    clock_start();
    probe_stage(MODE);
    wake_up_in(kCFRunLoopBeforeTimers, "E wake BT BS BW AW BT BS BW AW X TO");
    wake_up_in(kCFRunLoopBeforeSources, "E BT wake BS BW AW BT BS BW AW X TO");
    wake_up_in(kCFRunLoopBeforeWaiting, "E BT BS wake BW AW BT BS BW AW X TO");
    wake_up_in(kCFRunLoopAfterWaiting, "E BT BS BW wake AW X TO");
}

TEST(a_wake_up_in_exit_is_dropped, "62")
{
    clock_start();
    probe_stage(MODE);
    wake_up_in(kCFRunLoopExit, "E BT BS BW AW wake X TO");
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
}

TEST(wake_ups_after_the_wait_are_dropped, "63")
{
    clock_start();
    static struct probe timer = PROBE("T", probe_wakes_loop);
    static struct probe port = PROBE("S1", probe_wakes_loop);
    int event = probe_event();
    probe_stage(MODE);
    probe_timer_add(&timer, 0.01, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW T BT BS BW AW X TO");
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_event_post(event);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW S1 BT BS BW AW X TO");
    CFRunLoopSourceInvalidate(p);
    close(event);
}

static void wakes_in_block(void *info)
{
    (void)info;
    probe_log("B");
    CFRunLoopWakeUp(LOOP);
}

TEST(a_wake_up_in_a_block_before_the_wait_is_kept, "64")
{
    clock_start();
    probe_stage(MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, wakes_in_block, NULL, NULL);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS B BW AW BT BS BW AW X TO");
}

static void queues_waker(struct probe *probe)
{
    (void)probe;
    CRLRunLoopPerformFunction(LOOP, MODE, wakes_in_block, NULL, NULL);
}

TEST(a_wake_up_in_a_block_after_the_wait_is_dropped, "63")
{
    clock_start();
    static struct probe timer = PROBE("T", queues_waker);
    probe_stage(MODE);
    probe_timer_add(&timer, 0.01, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW T B BT BS BW AW X TO");
}

TEST(a_wake_up_in_a_source_is_taken_by_its_poll, "46 64")
{
    clock_start();
    static struct probe source = PROBE("S0", probe_wakes_loop);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS S0 BT BS BW AW X TO");
}

/*
 * Rule 65. Each signaller publishes a number, signals and wakes; the source takes note of all numbers. Nothing may stay unseen. Numbers are
 * published with a plain release store, as programs do that have no lock: signal and wake-up must order it themselves.
 */
enum { signaller_count = 8 };

enum flooder_kind { signals_and_wakes, waits_for_answers, only_signals, only_wakes };

struct flood {
    CFRunLoopRef loop;
    CFRunLoopSourceRef source;
    int rounds;
    _Atomic int published[signaller_count];
    _Atomic int acknowledged[signaller_count]; /* what the source, or for those that only wake the observer, has seen */
    _Atomic int finished;
};

struct flooder {
    struct flood *flood;
    int number;
    enum flooder_kind kind;
};

static enum flooder_kind kind_of(int number)
{
    static const enum flooder_kind kinds[signaller_count] = {waits_for_answers, waits_for_answers, waits_for_answers, signals_and_wakes,
                                                             signals_and_wakes, only_signals,      only_wakes,        only_wakes};
    return kinds[number];
}

static void acknowledge(struct flood *flood, bool by_source)
{
    for (int i = 0; i < signaller_count; i++) {
        if ((kind_of(i) != only_wakes) == by_source) {
            flood->acknowledged[i] = atomic_load_explicit(&flood->published[i], memory_order_acquire);
        }
    }
}

static void flood_performed(void *info)
{
    acknowledge(info, true);
}

static void flood_observed(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    acknowledge(info, false);
}

static void floods(void *context)
{
    struct flooder *flooder = context;
    struct flood *flood = flooder->flood;
    for (int i = 1; i <= flood->rounds; i++) {
        atomic_store_explicit(&flood->published[flooder->number], i, memory_order_release);
        if (flooder->kind != only_wakes) {
            CFRunLoopSourceSignal(flood->source);
        }
        if (flooder->kind != only_signals) {
            CFRunLoopWakeUp(flood->loop);
        }
        if ((flooder->kind == waits_for_answers && i % 16 == 0) || (flooder->kind == only_wakes && i % 4 == 0)) {
            probe_await_count(&flood->acknowledged[flooder->number], i); /* a lost wake-up hangs here, and the time limit tells */
        }
    }
    if (flooder->kind == only_signals) {
        CFRunLoopWakeUp(flood->loop);
    }
    probe_await_count(&flood->acknowledged[flooder->number], flood->rounds);
    if (++flood->finished == signaller_count) {
        CFRunLoopStop(flood->loop);
    }
}

static void flood_loop(bool with_descriptor)
{
    static struct flood flood;
    static struct probe port = PROBE("S1", NULL);
    struct flooder flooders[signaller_count];
    struct probe_thread threads[signaller_count];
    int event = probe_event();
    flood.rounds = (test_is_soak() ? 100000000 : test_is_instrumented() ? 20000 : 200000) / signaller_count;
    CFRunLoopSourceContext context = {.info = &flood, .perform = flood_performed};
    CFRunLoopObserverContext observer = {.info = &flood};
    flood.loop = LOOP;
    flood.source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, flood.source, MODE);
    CFRunLoopObserverRef o = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeSources, true, 0, flood_observed, &observer);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRelease(o);
    if (with_descriptor) { /* then the loop sleeps in epoll instead of a futex */
        probe_port_source_add(&port, 0, event, LOOP, MODE);
    }
    for (int i = 0; i < signaller_count; i++) {
        flooders[i] = (struct flooder){.flood = &flood, .number = i, .kind = kind_of(i)};
        probe_thread_start(&threads[i], floods, &flooders[i]);
    }
    CFRunLoopRunResult result = CFRunLoopRunInMode(MODE, 1e10, false);
    for (int i = 0; i < signaller_count; i++) {
        probe_thread_join(&threads[i]);
        EXPECT_EQ(flood.acknowledged[i], flood.rounds);
    }
    EXPECT_EQ(result, kCFRunLoopRunStopped);
    CFRunLoopSourceInvalidate(flood.source);
    CFRelease(flood.source);
    if (with_descriptor) {
        CFRunLoopSourceInvalidate(probe_source_of(&port));
    }
    close(event);
}

TEST_LIMIT(stress_no_wake_up_is_lost_in_a_futex_sleep, "65 L2", 300)
{
    flood_loop(false);
}

TEST_LIMIT(stress_no_wake_up_is_lost_in_an_epoll_sleep, "65 L2", 300)
{
    flood_loop(true);
}

/* One source in two loops; each signaller wakes both. Each round must be seen by one of them. */
struct shared_source {
    CFRunLoopRef loops[2];
    _Atomic int ready;
    CFRunLoopSourceRef source;
    _Atomic int published;
    _Atomic int seen;
};

static void shared_performed(void *info)
{
    struct shared_source *shared = info;
    int now = shared->published;
    int before = shared->seen;
    while (before < now && !atomic_compare_exchange_weak(&shared->seen, &before, now)) {
    }
}

struct shared_runner {
    struct shared_source *shared;
    int number;
};

static void runs_shared(void *context)
{
    struct shared_runner *runner = context;
    runner->shared->loops[runner->number] = LOOP;
    CFRunLoopAddSource(LOOP, runner->shared->source, MODE);
    runner->shared->ready++;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
}

TEST_LIMIT(stress_a_source_in_two_loops_loses_no_mark, "65 86 L20", 300)
{
    static struct shared_source shared;
    CFRunLoopSourceContext context = {.info = &shared, .perform = shared_performed};
    struct shared_runner runners[2] = {{&shared, 0}, {&shared, 1}};
    struct probe_thread threads[2];
    int rounds = test_is_soak() ? 1000000 : test_is_instrumented() ? 2000 : 20000;
    shared.source = CFRunLoopSourceCreate(NULL, 0, &context);
    for (int i = 0; i < 2; i++) {
        probe_thread_start(&threads[i], runs_shared, &runners[i]);
    }
    probe_await_count(&shared.ready, 2);
    for (int i = 0; i < 2; i++) {
        probe_await_sleep(shared.loops[i]);
    }
    for (int i = 1; i <= rounds; i++) {
        shared.published = i;
        CFRunLoopSourceSignal(shared.source);
        CFRunLoopWakeUp(shared.loops[i % 2]); /* one of them is enough: the other may take the mark first, but somebody does */
        probe_await_count(&shared.seen, i);
    }
    for (int i = 0; i < 2; i++) {
        CFRunLoopStop(shared.loops[i]);
        probe_thread_join(&threads[i]);
    }
    CFRelease(shared.source);
}

/* Signal safety: docs/threads.md, stronger than rule 66. A timer signal calls all four functions over whatever the thread is doing. */
static CFRunLoopRef handled_loop;
static CFRunLoopSourceRef handled_source;
static _Atomic int handler_calls;

static void wakes_in_handler(int number)
{
    (void)number;
    handler_calls++;
    CFRunLoopSourceSignal(handled_source);
    CFRunLoopWakeUp(handled_loop);
    (void)CFRunLoopIsWaiting(handled_loop);
}

static void does_nothing(void *info)
{
    (void)info;
}

static void start_interval_timer(long microseconds, void (*handler)(int))
{
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
    struct itimerval interval = {.it_interval = {.tv_usec = microseconds}, .it_value = {.tv_usec = microseconds}};
    setitimer(ITIMER_REAL, &interval, NULL);
}

static void stop_interval_timer(void)
{
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0}}, NULL);
    signal(SIGALRM, SIG_IGN);
}

TEST(signal_handlers_may_signal_and_wake, "66 L3")
{
    static struct probe source = {.name = "S0", .logging = probe_is_silent};
    static struct probe other = {.name = "O", .logging = probe_is_silent};
    handled_loop = LOOP;
    handled_source = probe_source_add(&source, 0, LOOP, MODE);
    start_interval_timer(200, wakes_in_handler);
    double until = probe_seconds() + 0.3;
    while (probe_seconds() < until) { /* the handler comes over calls that hold the loop's lock */
        CFRunLoopSourceRef added = probe_source_add(&other, 0, LOOP, MODE);
        CRLRunLoopPerformFunction(LOOP, MODE, does_nothing, NULL, NULL);
        CFRunLoopRunInMode(MODE, 0.0003, false);
        CFRunLoopSourceInvalidate(added);
    }
    stop_interval_timer();
    EXPECT(handler_calls > 10);
    EXPECT(source.calls > 0);
    while (CFRunLoopSourceIsSignalled(handled_source)) {
        CFRunLoopRunInMode(MODE, 0, false);
    }
    EXPECT(source.calls <= handler_calls);
}

static void stops_in_handler(int number)
{
    (void)number;
    CFRunLoopStop(handled_loop);
}

TEST(signal_handlers_may_stop, "66 L3")
{
    static struct probe idle = PROBE("idle", NULL);
    handled_loop = LOOP;
    probe_source_add(&idle, 0, LOOP, MODE);
    start_interval_timer(5000, stops_in_handler);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, false), kCFRunLoopRunStopped);
    stop_interval_timer();
}

static void changes_quietly(void *context)
{
    static struct probe source = PROBE("S0", NULL);
    static struct probe observer = PROBE("O", NULL);
    struct probe *old = context;
    CFRunLoopRef loop = old->context;
    CFRunLoopSourceSignal(probe_source_add(&source, 0, loop, MODE));
    CFRunLoopRemoveObserver(loop, probe_observer_add(&observer, kCFRunLoopEntry, 0, loop, MODE), MODE);
    CRLRunLoopPerformFunction(loop, CFSTR("elsewhere"), logs_text, (void *)(uintptr_t) "B", NULL);
    CRLRunLoopPerformFunction(loop, MODE, logs_text, (void *)(uintptr_t) "B", NULL);
    CFRunLoopSourceInvalidate(probe_source_of(old));
    note_done();
}

static bool sleeps_through_changes(void)
{
    static struct probe old = PROBE("old", NULL);
    struct probe_thread other;
    double due_s = probe_seconds() + long_enough_s();
    probe_stage(MODE);
    old.context = LOOP;
    CFRunLoopSourceRef source = probe_source_add(&old, 0, LOOP, MODE);
    CFRetain(source);
    probe_thread_when_waiting(&other, LOOP, changes_quietly, &old);
    bool was_in_time = run_beside(&other, long_enough_s(), due_s);
    CFRelease(source);
    return was_in_time;
}

TEST(changes_wake_nobody, "67 162")
{
    try_until_in_time(sleeps_through_changes);
    EXPECT_LOG("E BT BS BW AW B X TO"); /* one wait, ended by the timeout */
}

static void adds_timer_that_stops(void *context)
{
    static struct probe timer = PROBE("T", probe_stops_loop);
    probe_timer_add(&timer, 0.01, 0, context, MODE);
}

TEST(a_timer_added_to_a_sleeping_loop_fires_on_time, "68")
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, adds_timer_that_stops, LOOP);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW T X S");
}

static void sets_near_date(void *context)
{
    CFRunLoopTimerSetNextFireDate(context, CFAbsoluteTimeGetCurrent() + 0.01);
}

TEST(a_date_set_on_a_sleeping_loop_makes_no_extra_pass, "69 128")
{
    static struct probe timer = PROBE("T", probe_stops_loop);
    struct probe_thread other;
    probe_stage(MODE);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 1000, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, sets_near_date, t);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW T X S");
}

static void sets_far_date(void *context)
{
    CFRunLoopTimerSetNextFireDate(context, CFAbsoluteTimeGetCurrent() + 1000);
    note_done();
}

static bool sleeps_past_a_date_that_was(void)
{
    static struct probe timer = PROBE("T", NULL);
    struct probe_thread other;
    double due_s = probe_seconds() + long_enough_s();
    probe_stage(MODE);
    CFRunLoopTimerRef t = probe_timer(&timer, long_enough_s(), 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_thread_when_waiting(&other, LOOP, sets_far_date, t);
    bool was_in_time = run_beside(&other, 2 * long_enough_s(), due_s);
    CFRelease(t);
    return was_in_time;
}

TEST(a_date_moved_away_leaves_no_wake_up, "69 71")
{
    try_until_in_time(sleeps_past_a_date_that_was);
    EXPECT_LOG("E BT BS BW AW X TO");
}

static void brings_forward(void *context)
{
    CFRunLoopTimerSetNextFireDate(context, CFAbsoluteTimeGetCurrent() + 2 * long_enough_s());
}

/* In the heap it may stand for its first date meanwhile, which is before its last one; another timer's tolerance hides both. */
TEST(a_timer_put_off_and_brought_forward_while_asleep_fires_on_time, "68 69 127 140")
{
    static struct probe tolerant = PROBE("tolerant", NULL);
    static struct probe timer = PROBE("T", probe_stops_loop);
    struct probe_thread other;
    CFRunLoopTimerRef first = probe_timer_add(&tolerant, long_enough_s() / 2, 0, LOOP, MODE);
    CFRunLoopTimerRef t = probe_timer_add(&timer, long_enough_s(), 0, LOOP, MODE);

    CFRunLoopTimerSetTolerance(first, 1000);
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() + 1000);
    probe_thread_when_waiting(&other, LOOP, brings_forward, t);
    probe_run(MODE, 2000, false);
    probe_thread_join(&other);
    EXPECT_LOG("tolerant T S");
}

static void adds_port(void *context)
{
    struct probe *port = context;
    probe_port_source_add(port, 0, port->descriptor, port->context, MODE);
}

static void port_added_while_asleep(bool mode_has_descriptor)
{
    static struct probe port = PROBE("S1", NULL);
    static struct probe earlier = PROBE("earlier", NULL);
    struct probe_thread other;
    int events[2] = {probe_event(), probe_event()};
    probe_stage(MODE);
    if (mode_has_descriptor) {
        probe_port_source_add(&earlier, 0, events[1], LOOP, MODE);
    }
    port.context = LOOP;
    port.descriptor = events[0];
    probe_event_post(events[0]);
    probe_thread_when_waiting(&other, LOOP, adds_port, &port);
    probe_run(MODE, 1000, true);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW S1 X HS");
    CFRunLoopSourceInvalidate(probe_source_of(&port));
    if (mode_has_descriptor) {
        CFRunLoopSourceInvalidate(probe_source_of(&earlier));
    }
    close(events[0]);
    close(events[1]);
}

TEST(the_first_port_of_a_sleeping_mode_is_live, "70 103")
{
    port_added_while_asleep(false);
}

TEST(a_further_port_of_a_sleeping_mode_is_live, "70 103")
{
    port_added_while_asleep(true);
}

TEST(a_removed_timer_leaves_no_wake_up, "71")
{
    clock_start();
    static struct probe timers[] = {PROBE("T1", NULL), PROBE("T2", NULL)};
    probe_stage(MODE);
    CFRunLoopTimerInvalidate(probe_timer_add(&timers[0], 0.01, 0, LOOP, MODE));
    CFRunLoopTimerRef second = probe_timer(&timers[1], 0.02, 0);
    CFRunLoopAddTimer(LOOP, second, MODE);
    CFRunLoopRemoveTimer(LOOP, second, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    CFRelease(second);
}

static void removes_timer(void *context)
{
    struct probe *timer = context;
    CFRunLoopRemoveTimer(timer->context, probe_timer_of(timer), MODE);
    note_done();
}

static bool sleeps_past_the_date_of_a_removed_timer(void)
{
    static struct probe timer = PROBE("T", NULL);
    struct probe_thread other;
    double due_s = probe_seconds() + long_enough_s();
    probe_stage(MODE);
    timer.context = LOOP;
    CFRunLoopTimerRef t = probe_timer(&timer, long_enough_s(), 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_thread_when_waiting(&other, LOOP, removes_timer, &timer);
    bool was_in_time = run_beside(&other, 2 * long_enough_s(), due_s);
    CFRelease(t);
    return was_in_time;
}

TEST(a_timer_removed_while_asleep_leaves_no_wake_up, "68 71")
{
    try_until_in_time(sleeps_past_the_date_of_a_removed_timer);
    EXPECT_LOG("E BT BS BW AW X TO");
}
