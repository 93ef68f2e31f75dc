/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floods of signals and wake-ups: when they need no fence of their own any more but only tell, that the loop makes one for all when that
 * ends, and that nothing is lost meanwhile.
 */
#define _GNU_SOURCE
#include "Loop/flood.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"
#include "Loop/source.h"

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
    flood_record = (struct flood_record){0};
    kernel.fence_threads = fence;
    atomic_store(&flood_is_possible, true);
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

    signal_times(source, 1 + flood_from);
    EXPECT_EQ(state_of(source), mark_set_flooded);
    return source;
}

/* Which has been performed, so that it is told of what comes now. */
static CFRunLoopSourceRef source_in_flood(struct probe *probe)
{
    CFRunLoopSourceRef source = flooded_source(probe);

    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(state_of(source), mark_flooded);
    EXPECT_EQ(probe->calls, 1);
    return source;
}

TEST(many_signals_that_change_nothing_make_a_flood, "78 79")
{
    static struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);

    start(count_fence);
    signal_times(source, 1 + flood_from - 1);
    EXPECT_EQ(state_of(source), mark_set);
    signal_times(source, 1);
    EXPECT_EQ(state_of(source), mark_set_flooded);
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
    for (int times = 1; times < 5 * flood_from; times += 7) {
        signal_times(source, times);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunTimedOut);
        EXPECT(!CFRunLoopSourceIsSignalled(source));
    }
    EXPECT_EQ(probe.calls, (5 * flood_from + 5) / 7);
    trace_clear(&probe_trace);
}

TEST(a_flood_goes_on_while_each_pass_finds_something_told, "78 79 82")
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
    signal_times(source, flood_from); /* which need no fence */
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 S0 HS TO");
    EXPECT_EQ(fences, 1);
    signal_times(source, 1);
    EXPECT_EQ(state_of(source), mark_set_flooded);
    signal_times(source, flood_from - 1);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS TO"); /* one perform is for the mark and for what was told beside it */
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
    EXPECT_EQ(state_of(source), mark_flooded);
    CFRunLoopAddSource(LOOP, source, other);
    probe_run(other, 0, true);
    CFRunLoopRemoveSource(LOOP, source, other); /* with nothing told */
    CFRunLoopAddSource(LOOP, source, MODE);
    signal_times(source, 1);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 S0 HS S0 HS");
    EXPECT_EQ(fences, 0);
    CFRelease(source);
}

static void runs_mode_once(struct probe *probe)
{
    if (probe->calls == 2) { /* the second call; told during it, as it is in a flood */
        signal_times((CFRunLoopSourceRef)probe->item, 3);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    }
}

TEST(a_nested_run_hears_what_is_told_during_the_callout, "78 84")
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

TEST(a_source_may_be_invalidated_with_something_told, "88")
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
    struct mailbox *mailbox = LOOP->mailbox;

    clock_start();
    start(count_fence);
    probe_stage(MODE);
    wake_times(LOOP, flood_from - 1);
    EXPECT_EQ(mailbox_word(mailbox), wake_idle);
    wake_times(LOOP, 1);
    EXPECT_EQ(mailbox_word(mailbox), wake_idle | wake_flooded);
    wake_times(LOOP, 1);
    probe_run(MODE, 0, true);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(mailbox_word(mailbox), wake_idle | wake_flooded);
    wake_times(LOOP, 1);
    probe_run(MODE, 0.05, false); /* which sleeps, as what was told before it began is of no meaning to it */
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(mailbox_word(mailbox), wake_idle);
    EXPECT_LOG("E BT BS X TO E BT BS BW AW X TO");
}

/* What `function` makes of a word and of whether somebody has told. */
static uint32_t word_after(uint32_t word, bool is_told, void (*function)(struct mailbox *mailbox))
{
    struct mailbox *mailbox = mailbox_create();
    uint32_t after;

    REQUIRE(mailbox != NULL);
    fences = 0;
    atomic_store(&mailbox->word, word);
    atomic_store(&mailbox->told, is_told ? flood_name() : flood_untold);
    function(mailbox);
    after = mailbox_word(mailbox);
    atomic_store(&mailbox->word, wake_idle);
    atomic_store(&mailbox->told, flood_untold);
    mailbox_recycle(mailbox);
    return after;
}

static void arms(struct mailbox *mailbox)
{
    mailbox_arm(mailbox);
    EXPECT(!flood_is_told(&mailbox->told));
}

static void disarms(struct mailbox *mailbox)
{
    (void)mailbox_disarm(mailbox);
}

static void disarms_with_token(struct mailbox *mailbox)
{
    EXPECT(mailbox_ends_wait(mailbox));
    EXPECT(mailbox_disarm(mailbox));
}

static void disarms_without_token(struct mailbox *mailbox)
{
    EXPECT(!mailbox_ends_wait(mailbox));
    EXPECT(!mailbox_disarm(mailbox));
}

static void goes_to_sleep(struct mailbox *mailbox)
{
    uint32_t word = 0;
    bool sleeps = mailbox_sleep(mailbox, wake_futex, &word);

    EXPECT_EQ(sleeps, (mailbox_word(mailbox) & wake_token) == 0);
}

static void enters(struct mailbox *mailbox)
{
    (void)mailbox_enter(mailbox);
    EXPECT(!flood_is_told(&mailbox->told));
}

static void leaves_to_nobody(struct mailbox *mailbox)
{
    mailbox_leave(mailbox, wake_idle, false);
}

static void resumes(struct mailbox *mailbox)
{
    mailbox_resume(mailbox, wake_run | wake_armed, false);
}

static void wakes_in_vain(struct mailbox *mailbox)
{
    flood_record.fenced_wakes = flood_from - 1;
    mailbox_wake(mailbox);
}

TEST(a_loop_stays_flooded_while_that_pays, "62 64")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    flood_record.spared_wakes = flood_from;
    EXPECT_EQ(word_after(pass, false, mailbox_wake), pass | wake_token | wake_flooded);
    flood_record.spared_wakes = flood_from - 1;
    EXPECT_EQ(word_after(pass, false, mailbox_wake), pass | wake_token);
}

TEST(what_is_told_in_a_pass_is_its_token, "62 64")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    EXPECT_EQ(word_after(wake_run | wake_flooded, true, arms), pass | wake_flooded); /* before it began: of no meaning */
    EXPECT_EQ(word_after(pass | wake_flooded, true, disarms_with_token), wake_run | wake_flooded);
    EXPECT_EQ(word_after(pass | wake_flooded, false, disarms_without_token), wake_run | wake_flooded);
    EXPECT_EQ(word_after(pass | wake_flooded, true, goes_to_sleep), pass | wake_token | wake_flooded);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(word_after(wake_run | wake_flooded, true, leaves_to_nobody), wake_idle | wake_flooded);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(word_after(wake_idle | wake_flooded, true, enters), pass | wake_flooded);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(word_after(pass | wake_token | wake_flooded, false, disarms), wake_run | wake_flooded);
}

TEST(a_loop_that_sleeps_is_in_no_flood, "64 65")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    EXPECT_EQ(word_after(pass | wake_flooded, false, goes_to_sleep), wake_run | wake_futex);
    EXPECT_EQ(fences, 1);
}

static struct mailbox *told_late;

/* As a waker does whose store was late: the fence makes it visible. */
static int fence_that_tells(void)
{
    atomic_store(&told_late->told, flood_name());
    return count_fence();
}

static void goes_to_sleep_and_is_told(struct mailbox *mailbox)
{
    told_late = mailbox;
    goes_to_sleep(mailbox);
}

static void enters_and_is_told(struct mailbox *mailbox)
{
    told_late = mailbox;
    enters(mailbox);
}

static void resumes_and_is_told(struct mailbox *mailbox)
{
    told_late = mailbox;
    resumes(mailbox);
}

TEST(what_the_shared_fence_brings_to_light_is_a_wake_up, "64 65")
{
    const uint32_t pass = wake_run | wake_armed;

    start(fence_that_tells);
    EXPECT_EQ(word_after(pass | wake_flooded, false, goes_to_sleep_and_is_told), pass | wake_token);
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(word_after(pass | wake_flooded, false, enters_and_is_told), pass | wake_outer | wake_token);
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(word_after(pass | wake_flooded, false, resumes_and_is_told), pass | wake_token);
    EXPECT_EQ(fences, 1);
}

static CFRunLoopSourceRef source_told_late;

static int fence_that_signals(void)
{
    atomic_store(&source_told_late->told, flood_name());
    return count_fence();
}

TEST(what_the_shared_fence_brings_to_light_is_a_signal, "78 79")
{
    static struct probe probe = PROBE("S0", NULL);

    start(fence_that_signals);
    source_told_late = source_in_flood(&probe);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 S0 HS");
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(state_of(source_told_late), mark_clear);
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
    (void)atomic_fetch_or(&LOOP->mailbox->word, wake_flooded);
    probe_run(MODE, 0.001, true);
    EXPECT_LOG("TO");
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(locked_fences, 0);
}

static struct mailbox *awaited;
static int64_t looks_at_clock;
static int fences_when_told;

/* Goes on by 10 ns at each look, and tells in the middle of the two microseconds in which a loop waits for more. */
static int64_t slow_clock_that_tells(void)
{
    const int64_t when = 100;
    static int64_t begin_ns;

    if (looks_at_clock == 0) {
        begin_ns = kernel_linux.monotonic_ns();
    }
    if (++looks_at_clock == when) {
        fences_when_told = fences;
        atomic_store(&awaited->told, flood_name());
    }
    return begin_ns + 10 * looks_at_clock;
}

TEST(a_flood_goes_on_if_more_is_told_in_a_moment, "64 65")
{
    static struct probe probe = PROBE("S0", NULL);

    probe_source_add(&probe, 0, LOOP, MODE);
    probe_activities_add(LOOP, MODE);
    start(count_fence);
    awaited = LOOP->mailbox;
    (void)atomic_fetch_or(&awaited->word, wake_flooded);
    kernel.monotonic_ns = slow_clock_that_tells;
    probe_run(MODE, 0.00002, false);
    EXPECT_LOG("E BT BS BW AW BT BS BW AW X TO"); /* what was told in the wait was a wake-up */
    EXPECT_EQ(fences_when_told, 0);
    EXPECT_EQ(fences, 1);
}

/* Others keep its loop awake. */
TEST(a_loop_that_stays_awake_ends_no_flood, "64")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    EXPECT_EQ(word_after(pass | wake_flooded | wake_token, false, goes_to_sleep), pass | wake_flooded | wake_token);
    EXPECT_EQ(fences, 0);
}

/* What a nested run is told of late would be owed to the pass outside. */
TEST(a_nested_run_is_in_no_flood, "64 65")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    flood_record.spared_wakes = flood_from;
    EXPECT_EQ(word_after(pass | wake_outer, false, mailbox_wake), pass | wake_outer | wake_token);
    EXPECT_EQ(word_after(pass | wake_outer | wake_token, false, wakes_in_vain), pass | wake_outer | wake_token);
    EXPECT_EQ(word_after(pass | wake_flooded, false, enters), pass | wake_outer);
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(word_after(pass | wake_flooded, true, enters), pass | wake_outer | wake_token); /* carried in */
    EXPECT_EQ(word_after(pass | wake_flooded, false, resumes), pass);
    EXPECT_EQ(word_after(pass | wake_flooded, true, resumes), pass | wake_token);
}

/* ---- what callers tell ---- */

static void tells(void *context)
{
    _Atomic uint32_t word = wake_flooded;

    EXPECT(flood_finish_telling(flood_tell(context, &word, wake_flooded), context, &word, wake_flooded));
}

static void tell_on_another_thread(_Atomic uint32_t *told)
{
    struct probe_thread thread;

    probe_thread_start(&thread, tells, told);
    probe_thread_join(&thread);
}

TEST(who_tells_alone_stores_a_name_and_several_that_there_are_many, "79")
{
    static _Atomic uint32_t told;

    start(count_fence);
    tells(&told);
    EXPECT_EQ(atomic_load(&told), flood_name());
    tells(&told);
    EXPECT_EQ(atomic_load(&told), flood_name());
    tell_on_another_thread(&told);
    EXPECT_EQ(atomic_load(&told), flood_told_by_many);
    tell_on_another_thread(&told);
    tells(&told);
    EXPECT_EQ(atomic_load(&told), flood_told_by_many);
    EXPECT(flood_hear(&told));
    EXPECT(!flood_hear(&told));
    tell_on_another_thread(&told);
    EXPECT(flood_is_told(&told) && atomic_load(&told) != flood_told_by_many);
}

TEST(what_is_told_of_a_flood_that_is_over_is_taken_back, "79")
{
    static _Atomic uint32_t told;
    _Atomic uint32_t word = wake_idle;

    EXPECT_EQ(flood_tell(&told, &word, wake_flooded), flood_is_over);
    EXPECT(flood_is_told(&told));
    EXPECT(!flood_finish_telling(flood_is_over, &told, &word, wake_flooded)); /* has to begin again */
    EXPECT(!flood_is_told(&told));
    EXPECT(flood_finish_telling(flood_is_over, &told, &word, wake_flooded)); /* somebody has taken it */
}

static void finds_the_flood_over(struct mailbox *mailbox)
{
    mailbox_wake_in_flood(mailbox, flood_is_over);
}

/* Unless a loop, or another caller on behalf of both, has taken what it has told. */
TEST(who_finds_the_flood_over_begins_again, "65 78 79")
{
    static struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    source_signal_in_flood(source, flood_is_over);
    EXPECT(!CFRunLoopSourceIsSignalled(source));
    atomic_store(&source->told, flood_name());
    source_signal_in_flood(source, flood_is_over);
    EXPECT(CFRunLoopSourceIsSignalled(source));
    EXPECT(!flood_is_told(&source->told));
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS");
    EXPECT_EQ(word_after(pass, false, finds_the_flood_over), pass);
    EXPECT_EQ(word_after(pass, true, finds_the_flood_over), pass | wake_token);
}

/* As who has told of the flood that is over, and was held up before it took back what it and others had told. */
static void goes_on_with_the_signal(struct probe *probe)
{
    CFRunLoopSourceRef source = probe_source_of(probe->context);

    atomic_store(&source->told, flood_told_by_many);
    source_signal_in_flood(source, flood_is_over);
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
    EXPECT_EQ(flood_await_look(now_ns), 1001000);
    clock_readings = 0;
    EXPECT_EQ(flood_await_look(now_ns - 1000), 1001100); /* it has been so long already */
    EXPECT_EQ(clock_readings, 1);
    kernel.monotonic_ns = clock_that_stands;
    EXPECT_EQ(flood_await_look(now_ns), now_ns); /* and of a clock that stands still not for ever */
    kernel.monotonic_ns = clock;
}

/* ---- in runs ---- */

static void wakes_without_end(struct probe *probe)
{
    (void)probe;
    wake_times(LOOP, 3 * flood_from);
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
    EXPECT_EQ(mailbox_word(LOOP->mailbox), wake_idle);
}

TEST(a_pass_for_each_signal_shares_no_fence, "61 79")
{
    static struct probe probe = PROBE("S0", NULL);
    CFRunLoopSourceRef source = probe_source_add(&probe, 0, LOOP, MODE);

    start(count_fence);
    for (int i = 0; i < 10 * flood_from; i++) {
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
    atomic_store(&flood_is_possible, false);
    signal_times(source, 10 * flood_from);
    wake_times(LOOP, 10 * flood_from);
    EXPECT_EQ(state_of(source), mark_set);
    EXPECT_EQ(mailbox_word(LOOP->mailbox), wake_idle);
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
    signal_times(source, 10 * flood_from);
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
    for (int round = 0; round < sender->rounds; round++) {
        number = send_until(sender, number, number + 2 * flood_from);
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
    bool is_promised = atomic_load(&flood_is_possible);

    start(count_real_fence);
    atomic_store(&flood_is_possible, is_promised);
    sender->loop = LOOP;
    sender->processor = sched_getcpu() == 0 ? 1 : 0;
    sender->rounds = rounds;
    sender->source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, sender->source, MODE);
}

static void send_all(struct sender *sender)
{
    struct probe_thread thread;

    probe_thread_start(&thread, sends, sender);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    EXPECT(fences > 0 || !atomic_load(&flood_is_possible));
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

/* Either may take what is told, and either may end the flood. */
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
        bool is_over = fences == 1 && atomic_load(&flood_is_possible) && state_of(source) == mark_clear;

        _exit(is_heard && is_all && is_over ? 0 : 1);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    trace_clear(&probe_trace);
    CFRunLoopSourceInvalidate(source);
}
