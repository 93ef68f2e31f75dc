/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queued blocks: rules 161 to 169. The function form shares one queue with the blocks, so it stands for them; where the compiler has
 * blocks, they are tried, too.
 */
#include <sched.h>

#include "Loop/Block/block.h"
#include "Loop/loop_trace.h"

static void logs_text(void *info)
{
    probe_log(info);
}

static void text_released(void *info)
{
    probe_note("free(%s)", (const char *)info);
}

static char *text(const char *literal)
{
    return (char *)(uintptr_t)literal;
}

static void queue(CFTypeRef mode, const char *token)
{
    CRLRunLoopPerformFunction(LOOP, mode, logs_text, text(token), NULL);
}

static void queue_releasing(CFTypeRef mode, const char *token)
{
    CRLRunLoopPerformFunction(LOOP, mode, logs_text, text(token), text_released);
}

TEST(a_block_for_one_mode, "161 51")
{
    clock_start();
    probe_stage(MODE);
    queue(MODE, "B");
    probe_run(MODE, 0, true);
    EXPECT_LOG("E BT BS B X TO");
}

TEST(a_block_for_several_modes_runs_once, "161 164 26")
{
    clock_start();
    const void *names[] = {MODE, CFSTR("M"), CFSTR("N")};
    CFArrayRef array = CFArrayCreate(NULL, names, 3, &kCFTypeArrayCallBacks);
    CFSetRef set = CFSetCreate(NULL, names, 3, &kCFTypeSetCallBacks);
    queue(array, "A");
    queue(set, "S");
    CFRelease(array);
    CFRelease(set);
    probe_run(CFSTR("O"), 0, false);
    probe_run(CFSTR("N"), 0, false);
    probe_run(MODE, 0, false);
    probe_run(CFSTR("M"), 0, false);
    EXPECT_LOG("F A S TO F F");
}

TEST(a_block_for_something_else_is_ignored, "161")
{
    int five = 5;
    CFNumberRef number = CFNumberCreate(NULL, kCFNumberIntType, &five);
    CFArrayRef numbers = CFArrayCreate(NULL, (const void **)&number, 1, &kCFTypeArrayCallBacks);
    queue_releasing(number, "N");
    CRLRunLoopPerformFunction(LOOP, MODE, NULL, text("F"), text_released);
    queue_releasing(NULL, "0");
    EXPECT_LOG("free(N) free(F) free(0)");
    queue(numbers, "L");
    probe_run(MODE, 0, false);
    EXPECT_LOG("F");
    CFRelease(numbers);
    CFRelease(number);
}

static void queues_from_outside(void *context)
{
    CRLRunLoopPerformFunction(context, MODE, logs_text, text("B"), NULL);
    CFRunLoopStop(context);
}

TEST(queueing_does_not_wake, "162 L7")
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, queues_from_outside, LOOP);
    probe_run(MODE, 1000, false); /* the stop wakes: were it the block, there would be a pass more */
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW B X S");
}

TEST(runnable_blocks_go_in_order_and_others_keep_their_place, "163")
{
    clock_start();
    CFRunLoopAddCommonMode(LOOP, MODE);
    const void *names[] = {MODE, CFSTR("M")};
    CFArrayRef both = CFArrayCreate(NULL, names, 2, &kCFTypeArrayCallBacks);
    queue(CFSTR("M"), "m1");
    queue(MODE, "d1");
    queue(both, "b1");
    queue(kCFRunLoopCommonModes, "c1");
    queue(CFSTR("M"), "m2");
    queue(MODE, "d2");
    queue(kCFRunLoopCommonModes, "c2");
    probe_run(MODE, 0, false);
    EXPECT_LOG("d1 b1 c1 d2 c2 TO");
    queue(both, "b2");
    queue(CFSTR("M"), "m3");
    probe_run(CFSTR("M"), 0, false);
    EXPECT_LOG("m1 m2 b2 m3 TO");
    CFRelease(both);
}

TEST(common_modes_are_those_of_the_time_of_running, "165 26")
{
    clock_start();
    const void *names[] = {kCFRunLoopCommonModes};
    CFArrayRef common = CFArrayCreate(NULL, names, 1, &kCFTypeArrayCallBacks);
    queue(kCFRunLoopCommonModes, "C1");
    queue(common, "C2");
    queue(MODE, "M");
    probe_run(MODE, 0, false);
    EXPECT_LOG("M TO");
    probe_run(MODE, 0, false);
    EXPECT_LOG("F");
    CFRunLoopAddCommonMode(LOOP, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("C1 C2 TO");
    CFRelease(common);
}

static void logs_and_makes_common(void *info)
{
    (void)info;
    probe_log("B");
    CFRunLoopAddCommonMode(LOOP, MODE);
    queue(kCFRunLoopCommonModes, "c3");
}

TEST(a_mode_that_a_block_makes_common_runs_the_common_blocks_behind_it, "163 165 166")
{
    clock_start();
    probe_stage(MODE);
    const void *names[] = {CFSTR("M"), kCFRunLoopCommonModes};
    CFArrayRef common = CFArrayCreate(NULL, names, 2, &kCFTypeArrayCallBacks);
    queue(kCFRunLoopCommonModes, "c0");
    CRLRunLoopPerformFunction(LOOP, MODE, logs_and_makes_common, NULL, NULL);
    queue(common, "c1");
    queue(MODE, "m");
    queue(kCFRunLoopCommonModes, "c2");
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS B c1 m c2 BW AW c0 c3 X TO");
    CFRelease(common);
}

static void logs_and_queues_two(void *info)
{
    (void)info;
    probe_log("B1");
    queue(MODE, "B3");
    queue(MODE, "B4");
}

TEST(blocks_of_a_block_wait_for_the_next_slot, "166 L8")
{
    clock_start();
    probe_stage(MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, logs_and_queues_two, NULL, NULL);
    queue(MODE, "B2");
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS B1 B2 BW AW B3 B4 X TO");
    CRLRunLoopPerformFunction(LOOP, MODE, logs_and_queues_two, NULL, NULL);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS B1 B3 B4 X TO");
}

static void queues_for_own_thread(void *context)
{
    queue_releasing(MODE, "never");
    queue_releasing(kCFRunLoopCommonModes, "never");
    const void *names[] = {MODE, CFSTR("M")};
    CFArrayRef both = CFArrayCreate(NULL, names, 2, &kCFTypeArrayCallBacks);
    queue_releasing(both, "never");
    CFRelease(both);
    *(_Atomic int *)context = 1;
}

TEST(blocks_of_a_loop_that_ends_are_destroyed_unrun, "167 170")
{
    _Atomic int done = 0;
    probe_on_thread(queues_for_own_thread, &done);
    EXPECT_LOG("free(never) free(never) free(never)");
}

static CFRunLoopRef ended_loop;

static void leaves_its_loop(void *context)
{
    (void)context;
    ended_loop = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
}

TEST(a_block_for_a_loop_that_has_ended_is_destroyed, "167 175")
{
    probe_on_thread(leaves_its_loop, NULL);
    CRLRunLoopPerformFunction(ended_loop, MODE, logs_text, text("never"), text_released);
    EXPECT_LOG("free(never)");
    CFRelease(ended_loop);
}

TEST(a_block_is_released_before_the_next_runs, "168")
{
    clock_start();
    queue_releasing(MODE, "B1");
    queue_releasing(MODE, "B2");
    probe_run(MODE, 0, false);
    EXPECT_LOG("B1 free(B1) B2 free(B2) TO");
}

TEST(queueing_makes_the_modes, "169 11")
{
    const void *names[] = {CFSTR("A1"), CFSTR("A2"), kCFRunLoopCommonModes};
    CFArrayRef array = CFArrayCreate(NULL, names, 3, &kCFTypeArrayCallBacks);
    queue(MODE, "B");
    queue(array, "B");
    EXPECT(probe_mode_exists(LOOP, MODE));
    EXPECT(probe_mode_exists(LOOP, CFSTR("A1")));
    EXPECT(probe_mode_exists(LOOP, CFSTR("A2")));
    EXPECT(!probe_mode_exists(LOOP, kCFRunLoopCommonModes));
    CFRelease(array);
}

static void runs_nested(void *info)
{
    (void)info;
    probe_log("B1{");
    probe_run(MODE, 0, false);
    probe_log("}");
}

TEST(a_nested_run_does_not_rerun_the_batch, "163 166")
{
    clock_start();
    probe_stage(MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, runs_nested, NULL, NULL);
    queue(MODE, "B2");
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS B1{ E BT BS X TO } B2 X TO");
}

static void runs_another_mode(void *info)
{
    (void)info;
    probe_log("B1{");
    probe_run(CFSTR("another"), 0, false);
    probe_log("}");
}

/* With Apple's code the blocks of all modes are away while one runs: the nested run would finish at once (rule 163). */
TEST(a_run_nested_in_a_block_runs_the_blocks_of_its_own_mode, "45 163")
{
    clock_start();
    probe_stage(MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, runs_another_mode, NULL, NULL);
    queue(CFSTR("another"), "B2");
    queue(MODE, "B3");
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS B1{ B2 TO } B3 X TO");
}

static _Atomic int requeued;

static void requeues_itself(void *info)
{
    requeued++;
    CRLRunLoopPerformFunction(LOOP, MODE, requeues_itself, info, NULL);
    if (requeued % 10 == 0) {
        clock_spend_ms(1);
    }
    CFRunLoopWakeUp(LOOP);
}

TEST(a_block_that_queues_itself_starves_nobody, "166 L8")
{
    clock_start();
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    probe_timer_add(&timer, 0.001, 0.01, LOOP, MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, requeues_itself, NULL, NULL);
    probe_run(MODE, 1, false);
    EXPECT(timer.calls >= 90);
    EXPECT(requeued >= 9000);
    EXPECT_LOG("TO");
}

static _Atomic int counted;
static int next_expected[4];

static void counts_in_order(void *info)
{
    intptr_t number = (intptr_t)info;
    int thread = (int)(number % 4);
    EXPECT_EQ(next_expected[thread], number / 4);
    next_expected[thread]++;
    counted++;
}

enum { blocks_of_a_thread = 5000 };

struct queuer {
    CFRunLoopRef loop;
    int number;
};

static void queues_many(void *context)
{
    struct queuer *queuer = context;
    for (intptr_t i = 0; i < blocks_of_a_thread; i++) {
        CRLRunLoopPerformFunction(queuer->loop, MODE, counts_in_order, (void *)(i * 4 + queuer->number), NULL);
        CFRunLoopWakeUp(queuer->loop);
    }
}

TEST(stress_blocks_of_each_thread_stay_in_order, "163 167")
{
    static struct probe idle = PROBE("idle", NULL);
    struct queuer queuers[4];
    struct probe_thread threads[4];
    probe_source_add(&idle, 0, LOOP, MODE);
    for (int i = 0; i < 4; i++) {
        queuers[i] = (struct queuer){LOOP, i};
        probe_thread_start(&threads[i], queues_many, &queuers[i]);
    }
    while (counted < 4 * blocks_of_a_thread) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut);
    }
    for (int i = 0; i < 4; i++) {
        probe_thread_join(&threads[i]);
    }
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(counted, 4 * blocks_of_a_thread);
}

/* ---- the nodes ---- */

static void counts(void *info)
{
    (*(int *)info)++;
}

static void queue_counting(int *count, int times)
{
    for (int i = 0; i < times; i++) {
        CRLRunLoopPerformFunction(LOOP, MODE, counts, count, NULL);
    }
}

/* Which are as many as the loop thinks. */
static uint32_t spare_nodes(CFRunLoopRef loop)
{
    uint32_t count = 0;

    for (const struct block *block = loop->spare_blocks; block; block = block->next) {
        count++;
    }
    EXPECT_EQ(count, loop->spare_block_count);
    return count;
}

TEST(nodes_of_blocks_are_used_again, "161")
{
    int performed = 0;

    queue_counting(&performed, 10);
    EXPECT_EQ(spare_nodes(LOOP), 0);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(performed, 10);
    EXPECT_EQ(spare_nodes(LOOP), 10);
    queue_counting(&performed, 4);
    EXPECT_EQ(spare_nodes(LOOP), 6);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(performed, 14);
    EXPECT_EQ(spare_nodes(LOOP), 10);
}

TEST(nodes_of_many_blocks_are_given_back, "161")
{
    enum { many = 5000, most = 2048 };
    int performed = 0;

    for (int times = 1; times <= 3; times++) {
        queue_counting(&performed, many);
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
        EXPECT_EQ(performed, times * many);
        EXPECT(spare_nodes(LOOP) > 0);
        EXPECT(spare_nodes(LOOP) < most);
    }
    queue_counting(&performed, 1);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    queue_counting(&performed, most - 1); /* beside some that are spare */
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    EXPECT(spare_nodes(LOOP) < most);
}

struct poster {
    CFRunLoopRef loop;
    int performed;
};

static void posts_once(void *context)
{
    struct poster *poster = context;

    CRLRunLoopPerformFunction(poster->loop, MODE, counts, &poster->performed, NULL);
}

/* It has seen that there is one, and waits for the lock. */
TEST(a_thread_whose_spare_node_another_has_taken_makes_one, "161")
{
    struct poster poster = {LOOP, 0};
    struct probe_thread thread;
    struct block *spare;

    queue_counting(&poster.performed, 1);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(spare_nodes(LOOP), 1);
    loop_lock(poster.loop);
    probe_thread_start(&thread, posts_once, &poster);
    while (atomic_load(&poster.loop->lock.state) != lock_contended) {
        sched_yield();
    }
    spare = poster.loop->spare_blocks;
    poster.loop->spare_blocks = NULL;
    poster.loop->spare_block_count = 0;
    loop_unlock(poster.loop);
    probe_thread_join(&thread);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(poster.performed, 2);
    EXPECT_EQ(spare_nodes(LOOP), 1);
    blocks_give_back(spare);
}

#if defined(__BLOCKS__) && __BLOCKS__
TEST(blocks_are_copied_and_released, "161 168")
{
    clock_start();
    int value = 1;
    CFTypeRef captured = CFStringCreateWithCString(NULL, "a text that is long enough to be an object", kCFStringEncodingUTF8);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_note("B%d", value);
    });
    value = 2;
    CFRunLoopPerformBlock(LOOP, MODE, NULL);
    queue(MODE, "F");
    probe_run(MODE, 0, false);
    EXPECT_LOG("B1 F TO");
    CFRelease(captured);
}

TEST(blocks_are_retained_and_released_as_objects, "188a")
{
    int value = 3;
    int (^on_stack)(void) = ^{
        return value;
    };
    int (^copy)(void) = (int (^)(void))CFRetain((CFTypeRef)on_stack);
    const void *values[1];
    CFArrayRef array;

    value = 4;
    EXPECT_EQ(copy(), 3);
    EXPECT((const void *)copy != (const void *)on_stack);
    EXPECT_EQ((const void *)CFRetain((CFTypeRef)copy), (const void *)copy);
    CFRelease((CFTypeRef)copy);
    values[0] = copy;
    array = CFArrayCreate(NULL, values, 1, &kCFTypeArrayCallBacks);
    CFRelease((CFTypeRef)copy);
    EXPECT_EQ(((int (^)(void))CFArrayGetValueAtIndex(array, 0))(), 3);
    CFRelease(array);
}

TEST(timers_and_observers_with_blocks, "138 147")
{
    clock_start();
    int value = 7;
    CFRunLoopTimerRef t = CFRunLoopTimerCreateWithHandler(NULL, CFAbsoluteTimeGetCurrent(), 0, 0, 0, ^(CFRunLoopTimerRef timer) {
        EXPECT(CFRunLoopTimerIsValid(timer));
        probe_note("T%d", value);
    });
    CFRunLoopObserverRef o =
        CFRunLoopObserverCreateWithHandler(NULL, kCFRunLoopExit, true, 0, ^(CFRunLoopObserverRef observer, CFRunLoopActivity activity) {
            EXPECT(CFRunLoopObserverIsValid(observer));
            probe_note("%s%d", probe_activity_name(activity), value);
        });
    value = 8;
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRelease(t);
    CFRelease(o);
    probe_run(MODE, 0, false);
    EXPECT_LOG("T7 X7 TO");
}
#endif
