/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault cases L1 to L22 of loops, as far as no test of a rule covers them: races of stop, wake-up and thread exit, changes from inside
 * callbacks in all combinations, and calls back from schedule and cancel. Counts are a hundredth of what `make soak` does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"

static int rounds(int soak)
{
    return test_is_soak() ? soak : test_is_instrumented() ? soak / 1000 : soak / 100;
}

struct window {
    CFRunLoopRef loop;
    _Atomic int entered; /* how often BeforeWaiting was sent */
    int count;
};

static void enters_window(struct probe *probe)
{
    struct window *window = probe->context;
    window->entered++;
}

static void stops_in_window(void *context)
{
    struct window *window = context;
    for (int i = 1; i <= window->count; i++) {
        probe_await_count(&window->entered, i);
        CFRunLoopStop(window->loop);
    }
}

TEST_LIMIT(stress_stop_between_before_waiting_and_the_sleep, "57 64 L5", 300)
{
    static struct window window;
    static struct probe observer = {.name = "O", .action = enters_window, .logging = probe_is_silent, .context = &window};
    static struct probe idle = PROBE("idle", NULL);
    struct probe_thread other;
    window.loop = LOOP;
    window.count = rounds(200000);
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_thread_start(&other, stops_in_window, &window);
    for (int i = 0; i < window.count; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
        EXPECT_EQ(window.entered, i + 1);
    }
    probe_thread_join(&other);
}

/* L9: one thread's loop ends while another wakes, stops and signals. */
struct short_life {
    _Atomic(CFRunLoopRef) loop; /* retained for the waker */
    CFRunLoopSourceRef source;
};

static void lives_while_woken(void *context)
{
    struct short_life *life = context;
    CFRunLoopAddSource(LOOP, life->source, MODE);
    life->loop = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
    CFRunLoopRunInMode(MODE, 0.00005, true);
}

TEST_LIMIT(stress_wake_up_races_with_the_end_of_the_thread, "172 L9 L11", 120)
{
    static struct probe source = {.name = "S0", .logging = probe_is_silent};
    static struct short_life life;
    int count = test_is_soak() ? 1000000 : rounds(100000);
    life.source = probe_source(&source, 0);
    for (int i = 0; i < count; i++) {
        struct probe_thread thread;
        life.loop = NULL;
        probe_thread_start(&thread, lives_while_woken, &life);
        CFRunLoopRef loop = NULL;
        while (!(loop = life.loop)) {
            sched_yield(); /* where there is no other processor, the thread that is waited for needs this one */
        }
        for (int j = 0; j < 50; j++) {
            CFRunLoopSourceSignal(life.source);
            CFRunLoopWakeUp(loop);
            CFRunLoopStop(loop);
            (void)CFRunLoopIsWaiting(loop);
        }
        probe_thread_join(&thread);
        CFRunLoopWakeUp(loop);
        EXPECT(!CFRunLoopContainsSource(loop, life.source, MODE));
        CFRelease(loop);
    }
    EXPECT_EQ(source.cancels, count);
    CFRelease(life.source);
}

TEST(a_saturated_eventfd_counts_as_posted, "61 L10")
{
    int event = kernel.event_create();
    REQUIRE(event >= 0);
    uint64_t most = UINT64_MAX - 1;
    EXPECT_EQ(write(event, &most, sizeof most), 8);
    EXPECT_EQ(kernel.event_post(event), 0);
    kernel.counter_drain(event);
    EXPECT_EQ(kernel.event_post(event), 0);
    close(event);
}

TEST(an_empty_main_loop_finishes_without_dispatch, "54 180 L12")
{
    if (dlsym(RTLD_DEFAULT, "dispatch_async_f")) {
        SKIP("libdispatch is in the process");
    }
    int ends[2];
    int errors = dup(STDERR_FILENO);
    char text[512] = "";
    const char *sentence = "CFRunLoopRun: the main loop has no source, timer or block in its default mode";

    REQUIRE(pipe(ends) == 0 && errors >= 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    probe_run(kCFRunLoopDefaultMode, 1000, false);
    CFRunLoopRun();
    CFRunLoopRun();
    REQUIRE(dup2(errors, STDERR_FILENO) == STDERR_FILENO && close(ends[1]) == 0);
    EXPECT(read(ends[0], text, sizeof text - 1) > 0);
    REQUIRE(close(ends[0]) == 0 && close(errors) == 0);
    EXPECT(strstr(text, sentence) && !strstr(strstr(text, sentence) + 1, sentence)); /* once */
    EXPECT_LOG("F");
}

TEST(odd_timeouts, "43 L14")
{
    clock_start();
    static struct probe source = PROBE("S0", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    const double seconds[] = {-1, -1.0 / 0.0, 0.0 / 0.0, -0.0, 5e-324, 1e300, 1.0 / 0.0, 504911233.0};
    for (int i = 0; i < 8; i++) {
        CFRunLoopSourceSignal(a);
        probe_run(MODE, seconds[i], true);
        EXPECT_LOG("S0 HS");
    }
    probe_run(MODE, 5e-324, false);
    EXPECT_LOG("TO");
}

/* L15: invalidated from another thread while it performs. */
static _Atomic int performing;
static _Atomic int invalidated;

static void performs_until_invalidated(struct probe *probe)
{
    performing = 1;
    probe_await_count(&invalidated, 1);
    EXPECT(!probe_is_valid(probe));
    EXPECT_EQ(probe->releases, 0);
}

static void invalidates_while_performing(void *context)
{
    probe_await_count(&performing, 1);
    CFRunLoopSourceInvalidate(context);
    CFRelease(context);
    invalidated = 1;
}

TEST(a_source_invalidated_and_released_while_it_performs, "88 73 L15 L17")
{
    static struct probe source = {
        .name = "S0", .action = performs_until_invalidated, .logging = probe_logs_context | probe_logs_membership};
    struct probe_thread other;
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_thread_start(&other, invalidates_while_performing, a);
    probe_run(MODE, 0, false);
    probe_thread_join(&other);
    EXPECT_LOG("retain(S0) S0+test S0 S0-test release(S0) TO");
}

/* L16: each of four signalled sources does one of four things to its neighbour; 256 combinations, against a model. */
enum neighbour_action { does_nothing, removes_next, invalidates_next, removes_and_adds_all, neighbour_actions };

struct ring {
    struct probe probes[4];
    CFRunLoopSourceRef sources[4];
    enum neighbour_action actions[4];
};

static void acts_on_the_ring(struct probe *probe)
{
    struct ring *ring = probe->context;
    int self = (int)(probe - ring->probes);
    CFRunLoopSourceRef next = ring->sources[(self + 1) % 4];
    switch (ring->actions[self]) {
    case removes_next:
        CFRunLoopRemoveSource(LOOP, next, MODE);
        break;
    case invalidates_next:
        CFRunLoopSourceInvalidate(next);
        break;
    case removes_and_adds_all:
        for (int i = 0; i < 4; i++) {
            CFRunLoopRemoveSource(LOOP, ring->sources[i], MODE);
        }
        for (int i = 0; i < 4; i++) {
            CFRunLoopAddSource(LOOP, ring->sources[i], MODE);
        }
        break;
    default:
        break;
    }
}

static void try_ring(unsigned combination)
{
    struct ring ring;
    bool valid[4] = {true, true, true, true};
    int expected[4] = {0};
    for (int i = 0; i < 4; i++) {
        ring.probes[i] = (struct probe){.name = "S0", .action = acts_on_the_ring, .context = &ring, .logging = probe_is_silent};
        ring.actions[i] = (combination >> (2 * i)) & 3;
        ring.sources[i] = probe_source(&ring.probes[i], i);
        CFRunLoopAddSource(LOOP, ring.sources[i], MODE);
        CFRunLoopSourceSignal(ring.sources[i]);
    }
    for (int i = 0; i < 4; i++) {
        if (valid[i]) {
            expected[i] = 1;
            valid[(i + 1) % 4] = valid[(i + 1) % 4] && ring.actions[i] != invalidates_next;
        }
    }
    CFRunLoopRunInMode(MODE, 0, false);
    CFRunLoopRunInMode(MODE, 0, false); /* nothing is left over */
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(ring.probes[i].calls, expected[i]);
        EXPECT_EQ(CFRunLoopSourceIsValid(ring.sources[i]), valid[i]);
        CFRunLoopSourceInvalidate(ring.sources[i]);
        CFRelease(ring.sources[i]);
        EXPECT_EQ(ring.probes[i].schedules, ring.probes[i].cancels);
        EXPECT_EQ(ring.probes[i].releases, 1);
    }
}

TEST(sources_that_change_their_neighbours_in_all_combinations, "80 84 L16")
{
    clock_start();
    for (unsigned i = 0; i < 256; i++) {
        try_ring(i);
    }
}

/* L17: the last references go inside the callback. */
static void drops_the_last_reference(struct probe *probe)
{
    probe_removes_itself(probe);
    CFRelease(probe->item);
    EXPECT_EQ(probe->releases, 0);
    probe_log("goes-on");
}

TEST(the_last_reference_of_a_source_goes_in_its_perform, "L17 95")
{
    clock_start();
    static struct probe source = {.name = "S0", .action = drops_the_last_reference};
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, false);
    EXPECT_LOG("S0 goes-on TO");
    EXPECT_EQ(source.releases, 1);
}

TEST(the_last_reference_of_a_port_source_goes_in_its_perform, "L17 95")
{
    clock_start();
    static struct probe port = {.name = "S1", .action = drops_the_last_reference};
    int event = probe_event();
    CFRunLoopSourceRef p = probe_port_source(&port, 0, event);
    CFRunLoopAddSource(LOOP, p, MODE);
    probe_event_post(event);
    probe_run(MODE, 0, false);
    EXPECT_LOG("S1 goes-on TO");
    EXPECT_EQ(port.releases, 1);
    close(event);
}

TEST(the_last_reference_of_a_timer_goes_in_its_callback, "L17 117 137")
{
    clock_start();
    static struct probe timer = {.name = "T", .action = drops_the_last_reference};
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 1);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T goes-on TO");
    EXPECT_EQ(timer.releases, timer.retains);
}

TEST(the_last_reference_of_an_observer_goes_in_its_callback, "L17 153")
{
    clock_start();
    static struct probe observer = {.name = "O", .action = drops_the_last_reference};
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopBeforeTimers, true, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("O goes-on TO");
    EXPECT_EQ(observer.releases, 1);
}

TEST(an_observer_runs_nested_in_before_waiting, "151 L18")
{
    clock_start();
    static struct probe nester = PROBE("O", probe_runs_nested);
    static struct probe source = PROBE("S0", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    probe_observer_add(&nester, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("O { TO } TO");
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("S0 O { TO } TO");
}

/* L21: two threads run their own loops and change both. */
struct pair {
    CFRunLoopRef loops[2];
    CFRunLoopSourceRef shared;
    struct probe shared_probe;
    _Atomic int ready;
    _Atomic int done;
    int count;
};

struct pair_thread {
    struct pair *pair;
    int number;
    struct probe source;
    struct probe timer;
    struct probe observer;
};

static void nothing_much(void *info)
{
    (void)info;
}

static void changes_both(void *context)
{
    struct pair_thread *own = context;
    struct pair *pair = own->pair;
    pair->loops[own->number] = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
    pair->ready++;
    probe_await_count(&pair->ready, 2);
    for (int i = 0; i < pair->count; i++) {
        CFRunLoopRef loop = pair->loops[i % 2];
        CFRunLoopSourceRef a = probe_source(&own->source, i % 3);
        CFRunLoopTimerRef t = probe_timer(&own->timer, 0.00001, 0.00001);
        CFRunLoopObserverRef o = probe_observer(&own->observer, kCFRunLoopAllActivities, true, i % 3);
        CFRunLoopAddSource(loop, a, MODE);
        CFRunLoopAddSource(loop, a, kCFRunLoopCommonModes);
        CFRunLoopAddSource(pair->loops[(i + 1) % 2], a, MODE);
        CFRunLoopAddTimer(loop, t, MODE);
        CFRunLoopAddObserver(loop, o, MODE);
        CFRunLoopAddSource(loop, pair->shared, MODE);
        CFRunLoopSourceSignal(a);
        CFRunLoopSourceSignal(pair->shared);
        CRLRunLoopPerformFunction(loop, MODE, nothing_much, NULL, NULL);
        CFRunLoopWakeUp(loop);
        CFRunLoopRunInMode(MODE, 0, i % 5 == 0);
        CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent());
        CFRunLoopRemoveSource(loop, pair->shared, MODE);
        CFRunLoopRunInMode(MODE, 0, false);
        CFRunLoopTimerInvalidate(t);
        CFRunLoopObserverInvalidate(o);
        CFRunLoopSourceInvalidate(a);
        CFRelease(a);
        CFRelease(t);
        CFRelease(o);
    }
    pair->done++;
    while (pair->done < 2) { /* the other one still uses this loop */
        CFRunLoopRunInMode(MODE, 0.0001, false);
    }
}

TEST_LIMIT(stress_two_threads_change_each_others_loops, "5 L21", 120)
{
    static struct pair pair;
    static struct pair_thread owners[2];
    struct probe_thread threads[2];
    const struct probe silent = {.name = "silent", .logging = probe_is_silent};
    pair.count = rounds(300000);
    pair.shared_probe = silent;
    pair.shared = probe_source(&pair.shared_probe, 0);
    for (int i = 0; i < 2; i++) {
        owners[i] = (struct pair_thread){.pair = &pair, .number = i, .source = silent, .timer = silent, .observer = silent};
        probe_thread_start(&threads[i], changes_both, &owners[i]);
    }
    for (int i = 0; i < 2; i++) {
        probe_thread_join(&threads[i]);
    }
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(owners[i].source.schedules, owners[i].source.cancels);
        EXPECT_EQ(owners[i].source.releases, owners[i].source.retains);
        EXPECT_EQ(owners[i].timer.releases, owners[i].timer.retains);
        EXPECT_EQ(owners[i].observer.releases, owners[i].observer.retains);
        CFRelease(pair.loops[i]);
    }
    EXPECT_EQ(pair.shared_probe.schedules, pair.shared_probe.cancels);
    CFRelease(pair.shared);
}

/* L22: schedule and cancel change the same loop, and another one. */
static CFRunLoopSourceRef companion;

static void brings_companion(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    CFRunLoopAddSource(loop, companion, mode);
    CFRunLoopAddSource(CFRunLoopGetMain(), companion, CFSTR("elsewhere"));
    CFRunLoopWakeUp(loop);
}

static void takes_companion(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    CFRunLoopRemoveSource(loop, companion, mode);
    CFRunLoopRemoveSource(CFRunLoopGetMain(), companion, CFSTR("elsewhere"));
    CFRunLoopWakeUp(loop);
}

static void adds_and_removes_pairs(void *context)
{
    CFRunLoopSourceContext source = {.info = context, .schedule = brings_companion, .cancel = takes_companion};
    for (int i = 0; i < rounds(20000); i++) {
        CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &source);
        CFRunLoopAddSource(LOOP, a, MODE);
        CFRunLoopAddSource(CFRunLoopGetMain(), a, MODE);
        CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
        CFRunLoopRunInMode(MODE, 0, false);
        CFRunLoopRemoveSource(LOOP, a, MODE);
        CFRunLoopSourceInvalidate(a);
        CFRelease(a);
    }
}

TEST(stress_schedule_and_cancel_may_change_loops, "6 75 76 L22")
{
    static struct probe other = {.name = "C", .logging = probe_is_silent};
    struct probe_thread threads[2];
    companion = probe_source(&other, 9);
    for (int i = 0; i < 2; i++) {
        probe_thread_start(&threads[i], adds_and_removes_pairs, &threads[i]);
    }
    for (int i = 0; i < 2; i++) {
        probe_thread_join(&threads[i]);
    }
    CFRunLoopSourceInvalidate(companion);
    EXPECT_EQ(other.schedules, other.cancels);
    CFRelease(companion);
}

/* The guide's listing 3-6: cancel waits for the main thread. */
static _Atomic int main_has_answered;

static void answers(void *info)
{
    (void)info;
    main_has_answered = 1;
    CFRunLoopStop(LOOP);
}

static void cancel_waits_for_main(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)mode;
    CRLRunLoopPerformFunction(CFRunLoopGetMain(), MODE, answers, NULL, NULL);
    CFRelease(CFRunLoopCopyAllModes(loop));
    CFRunLoopWakeUp(CFRunLoopGetMain());
    probe_await_count(&main_has_answered, 1);
}

static void ends_with_a_waiting_source(void *context)
{
    (void)context;
    CFRunLoopSourceContext source = {.cancel = cancel_waits_for_main};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &source);
    CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
    CFRelease(a);
}

TEST(cancel_may_wait_for_another_thread, "6 L22")
{
    static struct probe idle = PROBE("idle", NULL);
    struct probe_thread other;
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_thread_start(&other, ends_with_a_waiting_source, NULL);
    while (!main_has_answered) {
        CFRunLoopRunInMode(MODE, 1, false);
    }
    probe_thread_join(&other);
}
