/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coalescing in a flood of signals or wake-ups: when callers only announce their calls and make no fence, how the loop makes one fence for
 * all of them at the end of the burst, and that nothing is lost meanwhile.
 */
#define _GNU_SOURCE
#include "Loop/Wake/coalesce.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"
#include "Loop/Signal/source.h"

static _Atomic int fences;

static int count_fence(void)
{
    fences++;
    return 0;
}

static int count_real_fence(void)
{
    fences++;
    return kernel_linux.fence_threads();
}

static int refuse_fence(void)
{
    fences++;
    return -1;
}

/* As if the kernel had promised shared fences, which `fence` makes. */
static void start(int (*fence)(void))
{
    fences = 0;
    coalesce_record = (struct coalesce_record){0};
    kernel.fence_threads = fence;
    atomic_store(&coalesce_is_possible, true);
}

static uint32_t state_of(CFRunLoopSourceRef source)
{
    return source_mark_state(atomic_load(&source->mark));
}

static void signal_times(CFRunLoopSourceRef source, int times)
{
    for (int i = 0; i < times; i++) {
        CFRunLoopSourceSignal(source);
    }
}

static void wake_times(CFRunLoopRef loop, int times)
{
    for (int i = 0; i < times; i++) {
        CFRunLoopWakeUp(loop);
    }
}

static CFRunLoopSourceRef flooded_source(struct probe *probe)
{
    CFRunLoopSourceRef source = probe_source_add(probe, 0, LOOP, MODE);

    signal_times(source, 1 + coalesce_threshold);
    EXPECT_EQ(state_of(source), mark_set_coalesced);
    return source;
}

/* Which has been performed, so that it is announced of what comes now. */
static CFRunLoopSourceRef source_in_flood(struct probe *probe)
{
    CFRunLoopSourceRef source = flooded_source(probe);

    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(state_of(source), mark_coalesced);
    EXPECT_EQ(probe->calls, 1);
    return source;
}

TEST(many_signals_that_change_nothing_make_a_flood, "78 79")
{
    static struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);

    start(count_fence);
    signal_times(source, 1 + coalesce_threshold - 1);
    EXPECT_EQ(state_of(source), mark_set);
    signal_times(source, 1);
    EXPECT_EQ(state_of(source), mark_set_coalesced);
    EXPECT(CFRunLoopSourceIsSignalled(source));
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS");
    EXPECT(!CFRunLoopSourceIsSignalled(source));
    EXPECT_EQ(fences, 0); /* nor does the loop, while it goes on */
    probe_run(MODE, 0, true);
    EXPECT_LOG("TO");
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(state_of(source), mark_clear);
}

TEST(all_signals_before_a_perform_are_one, "78")
{
    static struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);

    start(count_fence);
    for (int times = 1; times < 5 * coalesce_threshold; times += 7) {
        signal_times(source, times);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunTimedOut);
        EXPECT(!CFRunLoopSourceIsSignalled(source));
    }
    EXPECT_EQ(probe.calls, (5 * coalesce_threshold + 5) / 7);
    trace_clear(&probe_trace);
}

TEST(a_flood_goes_on_while_each_pass_finds_an_announcement, "78 79 82")
{
    static struct probe probe = PROBE("S0", NULL);
    static struct probe other = PROBE("S1", NULL);
    CFRunLoopSourceRef plain = probe_source_add(&other, 0, LOOP, MODE);

    start(count_fence);
    CFRunLoopSourceRef source = source_in_flood(&probe);
    trace_clear(&probe_trace);
    for (int i = 0; i < 3; i++) {
        signal_times(source, 2);
        EXPECT(CFRunLoopSourceIsSignalled(source));
        probe_run(MODE, 0, true);
        EXPECT_LOG("S0 HS");
        EXPECT(!CFRunLoopSourceIsSignalled(source));
    }
    signal_times(source, 1);
    CFRunLoopSourceSignal(plain);
    probe_run(MODE, 0, false); /* all of a snapshot */
    EXPECT_LOG("S0 S1 TO");
    EXPECT_EQ(fences, 0);
    CFRunLoopSourceSignal(plain);
    probe_run(MODE, 0, false);
    EXPECT_LOG("S1 TO");
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(state_of(source), mark_clear);
}

TEST(a_source_stays_flooded_while_that_pays, "78")
{
    static struct probe probe = PROBE("S0", NULL);

    start(count_fence);
    CFRunLoopSourceRef source = source_in_flood(&probe);
    signal_times(source, coalesce_threshold); /* which need no fence */
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 S0 HS TO");
    EXPECT_EQ(fences, 1);
    signal_times(source, 1);
    EXPECT_EQ(state_of(source), mark_set_coalesced);
    signal_times(source, coalesce_threshold - 1);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS TO"); /* one perform is for the mark and for what was announced beside it */
    EXPECT_EQ(fences, 2);
    signal_times(source, 1);
    EXPECT_EQ(state_of(source), mark_set); /* one fewer was spared than a flood has */
    probe_run(MODE, 0, true);
    EXPECT_EQ(fences, 2);
    EXPECT_LOG("S0 HS");
}

/* Signallers rely on every loop that the source comes to. */
TEST(a_flooded_source_is_heard_in_the_mode_that_it_moves_to, "78 79 80")
{
    static struct probe probe = PROBE("S0", NULL);
    const CFStringRef other = CFSTR("other");

    start(count_fence);
    CFRunLoopSourceRef source = source_in_flood(&probe);
    CFRetain(source);
    CFRunLoopRemoveSource(LOOP, source, MODE);
    signal_times(source, 1);
    EXPECT_EQ(state_of(source), mark_coalesced);
    CFRunLoopAddSource(LOOP, source, other);
    probe_run(other, 0, true);
    CFRunLoopRemoveSource(LOOP, source, other); /* with nothing announced */
    CFRunLoopAddSource(LOOP, source, MODE);
    signal_times(source, 1);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 S0 HS S0 HS");
    EXPECT_EQ(fences, 0);
    CFRelease(source);
}

static void runs_mode_once(struct probe *probe)
{
    if (probe->calls == 2) { /* the second call; announced during it, as it is in a flood */
        signal_times((CFRunLoopSourceRef)probe->item, 3);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    }
}

TEST(a_nested_run_takes_what_is_announced_during_the_callout, "78 84")
{
    static struct probe probe = PROBE("S0", runs_mode_once);

    start(count_fence);
    CFRunLoopSourceRef source = source_in_flood(&probe);
    signal_times(source, 1);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 S0 S0 HS");
    probe_run(MODE, 0, true);
    EXPECT_LOG("TO");
}

TEST(a_flooded_source_may_be_invalidated, "88")
{
    static struct probe probe = PROBE("S0", NULL);

    start(count_fence);
    CFRunLoopSourceInvalidate(flooded_source(&probe));
    EXPECT_EQ(probe.releases, 1);
    probe_stage(MODE);
    probe_run(MODE, 0, true);
    EXPECT_LOG("E BT BS X TO");
    EXPECT_EQ(fences, 0);
}

TEST(a_source_may_be_invalidated_with_something_announced, "88")
{
    static struct probe probe = PROBE("S0", NULL);

    start(count_fence);
    CFRunLoopSourceRef source = source_in_flood(&probe);
    CFRetain(source);
    signal_times(source, 1);
    CFRunLoopSourceInvalidate(source);
    signal_times(source, 1);
    EXPECT(!CFRunLoopSourceIsSignalled(source));
    EXPECT_EQ(probe.releases, 0);
    CFRelease(source);
    EXPECT_EQ(probe.releases, 1);
    probe_stage(MODE);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 E BT BS X TO");
}

TEST(many_wake_ups_that_change_nothing_make_a_flood, "62")
{
    struct waker *waker = LOOP->waker;

    clock_start();
    start(count_fence);
    probe_stage(MODE);
    wake_times(LOOP, coalesce_threshold - 1);
    EXPECT_EQ(waker_word(waker), wake_idle);
    wake_times(LOOP, 1);
    EXPECT_EQ(waker_word(waker), wake_idle | wake_coalesced);
    wake_times(LOOP, 1);
    probe_run(MODE, 0, true);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(waker_word(waker), wake_idle | wake_coalesced);
    wake_times(LOOP, 1);
    probe_run(MODE, 0.05, false); /* which sleeps, as what was announced before it began is of no meaning to it */
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(waker_word(waker), wake_idle);
    EXPECT_LOG("E BT BS X TO E BT BS BW AW X TO");
}

/* What `function` makes of a word and of whether somebody has announced. */
static uint32_t word_after(uint32_t word, bool is_announced, void (*function)(struct waker *waker))
{
    struct waker *waker = waker_create();
    uint32_t after;

    REQUIRE(waker != NULL);
    fences = 0;
    atomic_store(&waker->word, word);
    atomic_store(&waker->announced, is_announced ? coalesce_thread_tag() : announced_by_nobody);
    function(waker);
    after = waker_word(waker);
    atomic_store(&waker->word, wake_idle);
    atomic_store(&waker->announced, announced_by_nobody);
    waker_recycle(waker);
    return after;
}

static void arms(struct waker *waker)
{
    waker_arm(waker);
    EXPECT(!coalesce_is_announced(&waker->announced));
}

static void disarms(struct waker *waker)
{
    (void)waker_disarm(waker);
}

static void disarms_with_token(struct waker *waker)
{
    EXPECT(waker_ends_wait(waker));
    EXPECT(waker_disarm(waker));
}

static void disarms_without_token(struct waker *waker)
{
    EXPECT(!waker_ends_wait(waker));
    EXPECT(!waker_disarm(waker));
}

static void goes_to_sleep(struct waker *waker)
{
    uint32_t word = 0;
    bool sleeps = waker_sleep(waker, wake_futex, &word);

    EXPECT_EQ(sleeps, (waker_word(waker) & wake_token) == 0);
}

static void enters(struct waker *waker)
{
    (void)waker_enter(waker);
    EXPECT(!coalesce_is_announced(&waker->announced));
}

static void leaves_to_nobody(struct waker *waker)
{
    waker_leave(waker, wake_idle, false);
}

static void resumes(struct waker *waker)
{
    waker_resume(waker, wake_run | wake_armed, false);
}

static void wakes_in_vain(struct waker *waker)
{
    coalesce_record.redundant_wakes = coalesce_threshold - 1;
    waker_wake(waker);
}

TEST(a_loop_stays_flooded_while_that_pays, "62 64")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    coalesce_record.unfenced_wakes = coalesce_threshold;
    EXPECT_EQ(word_after(pass, false, waker_wake), pass | wake_token | wake_coalesced);
    coalesce_record.unfenced_wakes = coalesce_threshold - 1;
    EXPECT_EQ(word_after(pass, false, waker_wake), pass | wake_token);
}

TEST(what_is_announced_in_a_pass_is_its_token, "62 64")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    EXPECT_EQ(word_after(wake_run | wake_coalesced, true, arms), pass | wake_coalesced); /* before it began: of no meaning */
    EXPECT_EQ(word_after(pass | wake_coalesced, true, disarms_with_token), wake_run | wake_coalesced);
    EXPECT_EQ(word_after(pass | wake_coalesced, false, disarms_without_token), wake_run | wake_coalesced);
    EXPECT_EQ(word_after(pass | wake_coalesced, true, goes_to_sleep), pass | wake_token | wake_coalesced);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(word_after(wake_run | wake_coalesced, true, leaves_to_nobody), wake_idle | wake_coalesced);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(word_after(wake_idle | wake_coalesced, true, enters), pass | wake_coalesced);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(word_after(pass | wake_token | wake_coalesced, false, disarms), wake_run | wake_coalesced);
}

TEST(a_loop_that_sleeps_is_in_no_flood, "64 65")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    EXPECT_EQ(word_after(pass | wake_coalesced, false, goes_to_sleep), wake_run | wake_futex);
    EXPECT_EQ(fences, 1);
}

static struct waker *late_waker;

/* As a waker does whose store was late: the fence makes it visible. */
static int fence_that_announces(void)
{
    atomic_store(&late_waker->announced, coalesce_thread_tag());
    return count_fence();
}

static void sleeps_during_an_announcement(struct waker *waker)
{
    late_waker = waker;
    goes_to_sleep(waker);
}

static void enters_during_an_announcement(struct waker *waker)
{
    late_waker = waker;
    enters(waker);
}

static void resumes_during_an_announcement(struct waker *waker)
{
    late_waker = waker;
    resumes(waker);
}

TEST(what_the_shared_fence_brings_to_light_is_a_wake_up, "64 65")
{
    const uint32_t pass = wake_run | wake_armed;

    start(fence_that_announces);
    EXPECT_EQ(word_after(pass | wake_coalesced, false, sleeps_during_an_announcement), pass | wake_token);
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(word_after(pass | wake_coalesced, false, enters_during_an_announcement), pass | wake_outer | wake_token);
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(word_after(pass | wake_coalesced, false, resumes_during_an_announcement), pass | wake_token);
    EXPECT_EQ(fences, 1);
}

static CFRunLoopSourceRef late_source;

static int fence_that_signals(void)
{
    atomic_store(&late_source->announced, coalesce_thread_tag());
    return count_fence();
}

TEST(what_the_shared_fence_brings_to_light_is_a_signal, "78 79")
{
    static struct probe probe = PROBE("S0", NULL);

    start(fence_that_signals);
    late_source = source_in_flood(&probe);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 S0 HS");
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(state_of(late_source), mark_clear);
    probe_run(MODE, 0, true);
    EXPECT_LOG("TO");
}

static _Atomic int locked_fences;

static int fence_without_lock(void)
{
    locked_fences += lock_is_taken(&LOOP->lock);
    return count_fence();
}

/* It takes microseconds, and those who flood the loop may want its lock. */
TEST(a_loop_ends_a_flood_without_its_lock, "64 65")
{
    clock_start(); /* a run whose time is over before it sleeps ends no flood */
    static struct probe probe = PROBE("S0", NULL);

    probe_source_add(&probe, 0, LOOP, MODE);
    start(fence_without_lock);
    (void)atomic_fetch_or(&LOOP->waker->word, wake_coalesced);
    probe_run(MODE, 0.001, true);
    EXPECT_LOG("TO");
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(locked_fences, 0);
}

static struct waker *awaited;
static int64_t looks_at_clock;
static int fences_when_announced;

/* Goes on by 10 ns at each look, and announces a wake-up in the middle of the two microseconds in which a loop waits for more. */
static int64_t slow_clock_that_announces(void)
{
    const int64_t when = 100;
    static int64_t begin_ns;

    if (looks_at_clock == 0) {
        begin_ns = kernel_linux.monotonic_ns();
    }
    if (++looks_at_clock == when) {
        fences_when_announced = fences;
        atomic_store(&awaited->announced, coalesce_thread_tag());
    }
    return begin_ns + 10 * looks_at_clock;
}

TEST(a_flood_goes_on_if_more_is_announced_in_a_moment, "64 65")
{
    static struct probe probe = PROBE("S0", NULL);

    probe_source_add(&probe, 0, LOOP, MODE);
    probe_activities_add(LOOP, MODE);
    start(count_fence);
    awaited = LOOP->waker;
    (void)atomic_fetch_or(&awaited->word, wake_coalesced);
    kernel.monotonic_ns = slow_clock_that_announces;
    probe_run(MODE, 0.00002, false);
    EXPECT_LOG("E BT BS BW AW BT BS BW AW X TO"); /* what was announced in the wait was a wake-up */
    EXPECT_EQ(fences_when_announced, 0);
    EXPECT_EQ(fences, 1);
}

/* Others keep its loop awake. */
TEST(a_loop_that_stays_awake_ends_no_flood, "64")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    EXPECT_EQ(word_after(pass | wake_coalesced | wake_token, false, goes_to_sleep), pass | wake_coalesced | wake_token);
    EXPECT_EQ(fences, 0);
}

/* What a nested run is announced of late would be owed to the pass outside. */
TEST(a_nested_run_is_in_no_flood, "64 65")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    coalesce_record.unfenced_wakes = coalesce_threshold;
    EXPECT_EQ(word_after(pass | wake_outer, false, waker_wake), pass | wake_outer | wake_token);
    EXPECT_EQ(word_after(pass | wake_outer | wake_token, false, wakes_in_vain), pass | wake_outer | wake_token);
    EXPECT_EQ(word_after(pass | wake_coalesced, false, enters), pass | wake_outer);
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(word_after(pass | wake_coalesced, true, enters), pass | wake_outer | wake_token); /* carried in */
    EXPECT_EQ(word_after(pass | wake_coalesced, false, resumes), pass);
    EXPECT_EQ(word_after(pass | wake_coalesced, true, resumes), pass | wake_token);
}

/* ---- what callers announce ---- */

static void announce_a_call(void *context)
{
    _Atomic uint32_t word = wake_coalesced;

    EXPECT(coalesce_finish_announcing(coalesce_announce(context, &word, wake_coalesced), context, &word, wake_coalesced));
}

static void announce_on_another_thread(_Atomic uint32_t *announced)
{
    struct probe_thread thread;

    probe_thread_start(&thread, announce_a_call, announced);
    probe_thread_join(&thread);
}

TEST(a_lone_caller_stores_its_tag_and_several_that_there_are_many, "79")
{
    static _Atomic uint32_t announced;

    start(count_fence);
    announce_a_call(&announced);
    EXPECT_EQ(atomic_load(&announced), coalesce_thread_tag());
    announce_a_call(&announced);
    EXPECT_EQ(atomic_load(&announced), coalesce_thread_tag());
    announce_on_another_thread(&announced);
    EXPECT_EQ(atomic_load(&announced), announced_by_many);
    announce_on_another_thread(&announced);
    announce_a_call(&announced);
    EXPECT_EQ(atomic_load(&announced), announced_by_many);
    EXPECT(coalesce_take_announced(&announced));
    EXPECT(!coalesce_take_announced(&announced));
    announce_on_another_thread(&announced);
    EXPECT(coalesce_is_announced(&announced) && atomic_load(&announced) != announced_by_many);
}

TEST(what_is_announced_after_a_burst_is_taken_back, "79")
{
    static _Atomic uint32_t announced;
    _Atomic uint32_t word = wake_idle;

    EXPECT_EQ(coalesce_announce(&announced, &word, wake_coalesced), coalesce_is_over);
    EXPECT(coalesce_is_announced(&announced));
    EXPECT(!coalesce_finish_announcing(coalesce_is_over, &announced, &word, wake_coalesced)); /* has to begin again */
    EXPECT(!coalesce_is_announced(&announced));
    EXPECT(coalesce_finish_announcing(coalesce_is_over, &announced, &word, wake_coalesced)); /* somebody has taken it */
}

static void finds_the_flood_over(struct waker *waker)
{
    waker_wake_coalesced(waker, coalesce_is_over);
}

/* Unless a loop, or another caller on behalf of both, has taken what it has announced. */
TEST(who_finds_the_flood_over_begins_again, "65 78 79")
{
    static struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    source_signal_coalesced(source, coalesce_is_over);
    EXPECT(!CFRunLoopSourceIsSignalled(source));
    atomic_store(&source->announced, coalesce_thread_tag());
    source_signal_coalesced(source, coalesce_is_over);
    EXPECT(CFRunLoopSourceIsSignalled(source));
    EXPECT(!coalesce_is_announced(&source->announced));
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS");
    EXPECT_EQ(word_after(pass, false, finds_the_flood_over), pass);
    EXPECT_EQ(word_after(pass, true, finds_the_flood_over), pass | wake_token);
}

/* As who has announced of the flood that is over, and was held up before it took back what it and others had announced. */
static void goes_on_with_the_signal(struct probe *probe)
{
    CFRunLoopSourceRef source = probe_source_of(probe->context);

    atomic_store(&source->announced, announced_by_many);
    source_signal_coalesced(source, coalesce_is_over);
}

/* Their wake-ups have come and gone: the loop may have slept by the time that the mark is there again. */
TEST(who_begins_again_for_others_wakes_the_loop_for_them, "65 78 79")
{
    clock_start();
    static struct probe probe = PROBE("S0", NULL);
    static struct probe late = {.name = "late", .action = goes_on_with_the_signal, .context = &probe};

    start(count_fence);
    probe_activities_add(LOOP, MODE);
    (void)probe_source_add(&probe, 0, LOOP, MODE);
    CFRunLoopObserverRef observer = probe_observer(&late, kCFRunLoopBeforeWaiting, false, 0);
    CFRunLoopAddObserver(LOOP, observer, MODE);
    CFRelease(observer);
    probe_run(MODE, 1, true);
    EXPECT_LOG("E BT BS late BW AW BT BS S0 X HS");
}

static int64_t now_ns;
static int clock_readings;

static int64_t clock_that_goes(void)
{
    clock_readings++;
    return now_ns += 100;
}

static int64_t clock_that_stands(void)
{
    clock_readings++;
    return now_ns;
}

TEST(looks_at_a_flood_are_a_microsecond_apart, "79")
{
    int64_t (*clock)(void) = kernel.monotonic_ns;

    kernel.monotonic_ns = clock_that_goes;
    now_ns = 1000000;
    EXPECT_EQ(coalesce_await_look(now_ns), 1001000);
    clock_readings = 0;
    EXPECT_EQ(coalesce_await_look(now_ns - 1000), 1001100); /* it has been so long already */
    EXPECT_EQ(clock_readings, 1);
    kernel.monotonic_ns = clock_that_stands;
    EXPECT_EQ(coalesce_await_look(now_ns), now_ns); /* and of a clock that stands still not for ever */
    kernel.monotonic_ns = clock;
}

/* ---- in runs ---- */

static void wakes_without_end(struct probe *probe)
{
    (void)probe;
    wake_times(LOOP, 3 * coalesce_threshold);
}

/* The flood ends with the token: the second pass waits. */
TEST(a_flood_of_wake_ups_before_the_wait_is_one_token, "64")
{
    clock_start();
    static struct probe waker = PROBE("wake", wakes_without_end);
    CFRunLoopObserverRef observer = probe_observer(&waker, kCFRunLoopBeforeWaiting, false, 0);

    start(count_fence);
    probe_stage(MODE);
    CFRunLoopAddObserver(LOOP, observer, MODE);
    CFRelease(observer);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS wake BW AW BT BS BW AW X TO");
    EXPECT_EQ(fences, 1);
}

static void runs_and_is_flooded(struct probe *probe)
{
    (void)probe;
    (void)CFRunLoopRunInMode(CFSTR("inner"), 0, true);
    wake_times(LOOP, 1);
}

/* The outer pass is past its looking: what wakes the loop after the nested run is not what the nested one was flooded with. */
TEST(a_flood_in_a_nested_run_hides_no_later_wake_up, "64 65")
{
    clock_start();
    static struct probe outer = PROBE("run", runs_and_is_flooded);
    static struct probe inner = PROBE("flood", wakes_without_end);
    static struct probe none = PROBE("none", NULL);
    CFRunLoopObserverRef outside = probe_observer(&outer, kCFRunLoopBeforeWaiting, false, 0);
    CFRunLoopObserverRef inside = probe_observer(&inner, kCFRunLoopExit, false, 0);

    start(count_fence);
    probe_stage(MODE);
    probe_source_add(&none, 0, LOOP, CFSTR("inner"));
    CFRunLoopAddObserver(LOOP, outside, MODE);
    CFRunLoopAddObserver(LOOP, inside, CFSTR("inner"));
    CFRelease(outside);
    CFRelease(inside);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS run flood BW AW BT BS BW AW X TO");
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(waker_word(LOOP->waker), wake_idle);
}

TEST(a_pass_for_each_signal_shares_no_fence, "61 79")
{
    static struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);

    start(count_fence);
    for (int i = 0; i < 10 * coalesce_threshold; i++) {
        CFRunLoopSourceSignal(source);
        CFRunLoopWakeUp(LOOP);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    }
    EXPECT_EQ(fences, 0);
    trace_clear(&probe_trace);
}

TEST(without_the_kernels_promise_nothing_is_flooded, "79")
{
    static struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);

    start(count_fence);
    atomic_store(&coalesce_is_possible, false);
    signal_times(source, 10 * coalesce_threshold);
    wake_times(LOOP, 10 * coalesce_threshold);
    EXPECT_EQ(state_of(source), mark_set);
    EXPECT_EQ(waker_word(LOOP->waker), wake_idle);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS");
    EXPECT_EQ(fences, 0);
}

TEST(a_promise_that_is_broken_costs_a_moment_once, "79")
{
    static struct probe probe = PROBE("S0", NULL);

    start(refuse_fence);
    CFRunLoopSourceRef source = source_in_flood(&probe);
    double before = probe_seconds();
    probe_run(MODE, 0, true);
    EXPECT(probe_seconds() - before >= 0.001);
    EXPECT_LOG("S0 TO");
    signal_times(source, 10 * coalesce_threshold);
    EXPECT_EQ(state_of(source), mark_set);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS");
    EXPECT_EQ(fences, 1);
}

/*
 * A number is published by a plain store, and the source signalled; then the sender waits until the source has seen it. Each round is a
 * flood, and after a moment that is another each time one signal more: many of these meet the loop as it ends the flood.
 */
struct sender {
    CFRunLoopRef loop;
    CFRunLoopRef other; /* NULL, or one that the source is in, too */
    CFRunLoopSourceRef source;
    size_t processor;
    int rounds;
    double until_s; /* a machine that seldom lets both threads run makes fewer */
    _Atomic int others;
    _Alignas(64) _Atomic int published;
    _Alignas(64) _Atomic int seen;
};

static void sees(void *info)
{
    struct sender *sender = info;
    int published = atomic_load_explicit(&sender->published, memory_order_relaxed);
    int seen = atomic_load_explicit(&sender->seen, memory_order_relaxed);

    while (seen < published &&
           !atomic_compare_exchange_weak_explicit(&sender->seen, &seen, published, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void wake_all(const struct sender *sender, void (*wake)(CFRunLoopRef loop))
{
    wake(sender->loop);
    if (sender->other) {
        wake(sender->other);
    }
}

enum { most_pauses = 211 }; /* a few microseconds: a pass of a flood, and the end of one */

/* Sends the numbers after `number` up to `last`; a lost signal hangs here, and the time limit tells. */
static int send_until(struct sender *sender, int number, int last)
{
    while (number < last) {
        atomic_store_explicit(&sender->published, ++number, memory_order_relaxed);
        CFRunLoopSourceSignal(sender->source);
        wake_all(sender, CFRunLoopWakeUp);
    }
    probe_await_count(&sender->seen, last);
    return last;
}

static void sends(void *context)
{
    struct sender *sender = context;
    cpu_set_t processors;
    int number = 0;

    CPU_ZERO(&processors);
    CPU_SET(sender->processor, &processors);
    (void)sched_setaffinity(0, sizeof processors, &processors); /* where there is another one; a flood is when both run */
    for (int round = 0; round < sender->rounds && probe_seconds() < sender->until_s; round++) {
        number = send_until(sender, number, number + 2 * coalesce_threshold);
        for (int i = 0; i < round % most_pauses; i++) {
            barrier_pause();
        }
        number = send_until(sender, number, number + 1);
    }
    wake_all(sender, CFRunLoopStop);
}

static void prepare_sender(struct sender *sender, int rounds)
{
    CFRunLoopSourceContext context = {.info = sender, .perform = sees};
    bool is_promised = atomic_load(&coalesce_is_possible);

    start(count_real_fence);
    atomic_store(&coalesce_is_possible, is_promised);
    sender->loop = LOOP;
    sender->processor = sched_getcpu() == 0 ? 1 : 0;
    sender->rounds = rounds;
    sender->until_s = test_is_soak() ? INFINITY : probe_seconds() + 60;
    sender->source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, sender->source, MODE);
}

static void send_all(struct sender *sender)
{
    struct probe_thread thread;

    probe_thread_start(&thread, sends, sender);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    EXPECT(fences > 0 || !atomic_load(&coalesce_is_possible) || probe_seconds() >= sender->until_s);
}

static void end_sender(const struct sender *sender)
{
    CFRunLoopSourceInvalidate(sender->source);
    CFRelease(sender->source);
}

TEST_LIMIT(stress_a_flood_loses_nothing, "65 79", 300)
{
    static struct sender sender;

    prepare_sender(&sender, test_is_soak() ? 10000000 : test_is_instrumented() ? 500 : 200000);
    send_all(&sender);
    end_sender(&sender);
}

static void serves_too(void *context)
{
    struct sender *sender = context;

    sender->other = CFRunLoopGetCurrent();
    CFRunLoopAddSource(sender->other, sender->source, MODE);
    sender->others = 1;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
}

/* Either may take what is announced, and either may end the flood. */
TEST_LIMIT(stress_a_flood_of_a_source_in_two_loops_loses_nothing, "65 79 86", 300)
{
    static struct sender sender;
    struct probe_thread thread;

    prepare_sender(&sender, test_is_soak() ? 2000000 : test_is_instrumented() ? 300 : 50000);
    probe_thread_start(&thread, serves_too, &sender);
    probe_await_count(&sender.others, 1);
    probe_await_sleep(sender.other);
    send_all(&sender);
    probe_thread_join(&thread);
    end_sender(&sender);
}

/* The child has one thread, and makes more. */
TEST(a_flood_may_outlive_a_fork, "176")
{
    static struct probe probe = PROBE("S0", NULL);
    int status = -1;
    pid_t child;

    start(count_real_fence);
    if (kernel_linux.fence_threads() < 0) {
        SKIP("no shared fences here");
    }
    CFRunLoopSourceRef source = flooded_source(&probe);
    child = fork();
    if (child == 0) {
        bool is_heard = CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunHandledSource;
        bool is_all = CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunTimedOut;
        bool is_over = fences == 1 && atomic_load(&coalesce_is_possible) && state_of(source) == mark_clear;

        _exit(is_heard && is_all && is_over ? 0 : 1);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    trace_clear(&probe_trace);
    CFRunLoopSourceInvalidate(source);
}
