/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floods of signals and wake-ups: when they need no fence of their own any more, that the loop then makes one for all, and that nothing is
 * lost meanwhile.
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

static uint64_t state_of(CFRunLoopSourceRef source)
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
    EXPECT_EQ(state_of(source), mark_flooded);
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
    EXPECT_EQ(state_of(source), mark_flooded);
    EXPECT(CFRunLoopSourceIsSignalled(source));
    EXPECT_EQ(fences, 0); /* signallers make none */
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS");
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(state_of(source), mark_clear);
    probe_run(MODE, 0, true);
    EXPECT_LOG("TO");
}

TEST(a_source_stays_flooded_while_that_pays, "78")
{
    static struct probe probe = PROBE("S0", NULL);

    start(count_fence);
    CFRunLoopSourceRef source = flooded_source(&probe);
    signal_times(source, flood_from); /* which need no fence */
    probe_run(MODE, 0, true);
    signal_times(source, 1);
    EXPECT_EQ(state_of(source), mark_flooded);
    signal_times(source, flood_from - 1);
    probe_run(MODE, 0, true);
    EXPECT_EQ(fences, 2);
    signal_times(source, 1);
    EXPECT_EQ(state_of(source), mark_set); /* one fewer was spared than a flood has */
    probe_run(MODE, 0, true);
    EXPECT_EQ(fences, 2);
    EXPECT_LOG("S0 HS S0 HS S0 HS");
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

TEST(many_wake_ups_that_change_nothing_make_a_flood, "62")
{
    struct mailbox *mailbox = LOOP->mailbox;

    start(count_fence);
    probe_stage(MODE);
    wake_times(LOOP, flood_from - 1);
    EXPECT_EQ(mailbox_word(mailbox), wake_idle);
    wake_times(LOOP, 1);
    EXPECT_EQ(mailbox_word(mailbox), wake_idle | wake_flooded);
    EXPECT_EQ(fences, 0);
    probe_run(MODE, 0, true);
    EXPECT_EQ(fences, 1);
    EXPECT_EQ(mailbox_word(mailbox), wake_idle);
    trace_clear(&probe_trace);
}

static uint32_t word_after(uint32_t word, void (*function)(struct mailbox *mailbox))
{
    struct mailbox *mailbox = mailbox_create();
    uint32_t after;

    REQUIRE(mailbox != NULL);
    atomic_store(&mailbox->word, word);
    function(mailbox);
    after = mailbox_word(mailbox);
    atomic_store(&mailbox->word, wake_idle);
    mailbox_recycle(mailbox);
    return after;
}

static void disarms(struct mailbox *mailbox)
{
    (void)mailbox_disarm(mailbox);
}

TEST(a_loop_stays_flooded_while_that_pays, "62 64")
{
    const uint32_t pass = wake_run | wake_armed;

    start(count_fence);
    flood_record.spared_wakes = flood_from;
    EXPECT_EQ(word_after(pass, mailbox_wake), pass | wake_token | wake_flooded);
    flood_record.spared_wakes = flood_from - 1;
    EXPECT_EQ(word_after(pass, mailbox_wake), pass | wake_token);
    EXPECT_EQ(word_after(pass | wake_token | wake_flooded, disarms), wake_run | wake_flooded);
    EXPECT_EQ(fences, 0);
    EXPECT_EQ(word_after(wake_run | wake_flooded, mailbox_arm), pass);
    EXPECT_EQ(fences, 1);
    /* From here a wake-up is owed to the pass outside, and has to be told of. */
    EXPECT_EQ(word_after(pass | wake_token | wake_flooded | wake_outer, disarms), wake_run | wake_outer);
    EXPECT_EQ(fences, 2);
}

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
    EXPECT_EQ(fences, 1);
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
    CFRunLoopSourceRef source = flooded_source(&probe);
    double before = probe_seconds();
    probe_run(MODE, 0, true);
    EXPECT(probe_seconds() - before >= 0.001);
    EXPECT_LOG("S0 HS");
    signal_times(source, 10 * flood_from);
    EXPECT_EQ(state_of(source), mark_set);
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 HS");
    EXPECT_EQ(fences, 1);
}

/* A number is published by a plain store, and the source signalled; after some the sender waits until the source has seen the last. */
struct sender {
    CFRunLoopRef loop;
    CFRunLoopSourceRef source;
    size_t processor;
    _Alignas(64) _Atomic int published;
    _Alignas(64) _Atomic int seen;
};

static void sees(void *info)
{
    struct sender *sender = info;

    atomic_store_explicit(&sender->seen, atomic_load_explicit(&sender->published, memory_order_relaxed), memory_order_relaxed);
}

static void sends(void *context)
{
    struct sender *sender = context;
    int rounds = test_is_soak() ? 100000000 : test_is_instrumented() ? 20000 : 10000000;
    int until_wait = 1;
    cpu_set_t processors;

    CPU_ZERO(&processors);
    CPU_SET(sender->processor, &processors);
    (void)sched_setaffinity(0, sizeof processors, &processors); /* where there is another one; a flood is when both run */
    for (int i = 1; i <= rounds; i++) {
        atomic_store_explicit(&sender->published, i, memory_order_relaxed);
        CFRunLoopSourceSignal(sender->source);
        CFRunLoopWakeUp(sender->loop);
        if (--until_wait == 0 || i == rounds) {
            probe_await_count(&sender->seen, i); /* a lost signal hangs here, and the time limit tells */
            until_wait = 1 + i % 997;
        }
    }
    CFRunLoopStop(sender->loop);
}

TEST_LIMIT(stress_a_flood_loses_nothing, "65 79", 300)
{
    static struct sender sender;
    struct probe_thread thread;
    CFRunLoopSourceContext context = {.info = &sender, .perform = sees};
    bool is_promised = atomic_load(&flood_is_possible);

    start(count_real_fence);
    atomic_store(&flood_is_possible, is_promised);
    sender.loop = LOOP;
    sender.processor = sched_getcpu() == 0 ? 1 : 0;
    sender.source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, sender.source, MODE);
    probe_thread_start(&thread, sends, &sender);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1e10, false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    EXPECT(fences > 0 || !is_promised);
    CFRunLoopSourceInvalidate(sender.source);
    CFRelease(sender.source);
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
        CFRunLoopRunResult result = CFRunLoopRunInMode(MODE, 0, true);

        bool is_over = fences == 1 && atomic_load(&flood_is_possible) && state_of(source) == mark_clear;

        _exit(result == kCFRunLoopRunHandledSource && is_over ? 0 : 1);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    trace_clear(&probe_trace);
    CFRunLoopSourceInvalidate(source);
}
