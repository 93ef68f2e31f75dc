/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers that get later dates again and again, and stay in their places in the heap with early keys. No program may notice that. Random
 * histories are compared with a plain list that is searched.
 */
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Loop/loop_trace.h"
#include "Loop/Timer/timer_membership.h"
#include "fake_kernel.h"

#define TIMED(name_) {.name = (name_), .action = probe_notes_ms, .logging = probe_is_silent}

static void add_idle(CFStringRef mode)
{
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};

    probe_source_add(&idle, 0, LOOP, mode);
}

static CFRunLoopTimerRef add_timer(struct probe *probe, double from_now)
{
    return probe_timer_add(probe, from_now, 0, LOOP, MODE);
}

static void put_off(CFRunLoopTimerRef timer, double from_now)
{
    CFRunLoopTimerSetNextFireDate(timer, CFAbsoluteTimeGetCurrent() + from_now);
}

TEST(a_timer_that_is_put_off_wakes_nobody_at_its_old_dates, "71 127 128")
{
    static struct probe timer = TIMED("T");
    CFRunLoopTimerRef t;
    uint64_t sleeps;

    clock_start();
    add_idle(MODE);
    t = add_timer(&timer, 1);
    for (int i = 2; i <= 9; i++) {
        put_off(t, i);
    }
    sleeps = fake_kernel_sleeps();
    probe_run(MODE, 20, false);
    EXPECT_LOG("T@9000 TO");
    EXPECT_EQ(fake_kernel_sleeps() - sleeps, 2); /* until its date, and until the end of the run */
}

TEST(the_next_date_is_that_of_none_that_was_put_off, "131")
{
    static struct probe timers[3] = {TIMED("T0"), TIMED("T1"), TIMED("T2")};
    CFAbsoluteTime start;
    CFRunLoopTimerRef t[3];

    clock_start();
    start = CFAbsoluteTimeGetCurrent();
    for (int i = 0; i < 3; i++) {
        t[i] = add_timer(&timers[i], 1 + i);
    }
    put_off(t[0], 2.5);
    EXPECT_NEAR(CFRunLoopGetNextTimerFireDate(LOOP, MODE), start + 2, 1e-4);
    put_off(t[1], 5);
    EXPECT_NEAR(CFRunLoopGetNextTimerFireDate(LOOP, MODE), start + 2.5, 1e-4);
    put_off(t[0], 4);
    put_off(t[0], 2.75); /* earlier than before, but still later than its key */
    EXPECT_NEAR(CFRunLoopGetNextTimerFireDate(LOOP, MODE), start + 2.75, 1e-4);
    probe_run(MODE, 10, false);
    EXPECT_LOG("T0@2750 T2@3000 T1@5000 F");
}

static void puts_off_its_context(struct probe *probe)
{
    probe_notes_ms(probe);
    put_off((CFRunLoopTimerRef)(uintptr_t)((struct probe *)probe->context)->item, 1);
}

TEST(a_due_timer_that_is_put_off_before_its_turn_waits_for_its_new_date, "127 132")
{
    static struct probe late = TIMED("T1");
    static struct probe first = {.name = "T0", .action = puts_off_its_context, .context = &late, .logging = probe_is_silent};

    clock_start();
    (void)add_timer(&first, 1);
    (void)add_timer(&late, 1.25);
    fake_kernel_advance(2LL * 1000000000);
    probe_run(MODE, 10, false);
    EXPECT_LOG("T0@2000 T1@3000 F");
}

TEST(a_tolerant_timer_is_put_off_with_its_tolerance, "140")
{
    static struct probe early = TIMED("T0");
    static struct probe late = TIMED("T1");
    CFRunLoopTimerRef t;

    clock_start();
    CFRunLoopTimerSetTolerance(add_timer(&early, 1), 5);
    t = add_timer(&late, 1.5);
    CFRunLoopTimerSetTolerance(t, 0.25);
    put_off(t, 4); /* it is not the earliest, so it still has its early key */
    probe_run(MODE, 10, false);
    EXPECT_LOG("T0@4250 T1@4250 F"); /* together, and not at 1.75 */
}

/* ---- against a list ---- */

enum { crowd_most = 1000, ticks_ahead = 24, ticks_a_second = 8 };

struct crowd_timer {
    CFRunLoopTimerRef timer; /* NULL: none */
    long tick; /* the date is half a tick after this tick */
    long set; /* counts up with each date that is set and each mode that is joined */
    bool is_in[2]; /* which of the modes */
};

static struct crowd_timer crowd[crowd_most];
static long now_tick;
static long settings;
static int crowd_size = crowd_most;
static CFAbsoluteTime tick_zero;
static int fired[crowd_most];
static int fired_count;

static CFStringRef mode_name(int mode)
{
    return mode == 0 ? MODE : CFSTR("other");
}

static CFAbsoluteTime date_of_tick(long tick)
{
    return tick_zero + ((double)tick + 0.5) / (double)ticks_a_second;
}

static void notes_firing(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    fired[fired_count++] = (int)((struct crowd_timer *)info - crowd);
}

static long some_tick(void)
{
    return now_tick + rand() % ticks_ahead;
}

static void give_date(struct crowd_timer *one)
{
    one->tick = some_tick();
    one->set = settings++;
    CFRunLoopTimerSetNextFireDate(one->timer, date_of_tick(one->tick));
}

static void create(struct crowd_timer *one)
{
    CFRunLoopTimerContext context = {.info = one};
    int modes = 1 + rand() % 3;

    one->tick = some_tick();
    one->set = settings++;
    one->timer = CFRunLoopTimerCreate(NULL, date_of_tick(one->tick), 0, 0, 0, notes_firing, &context);
    for (int mode = 0; mode < 2; mode++) {
        one->is_in[mode] = (modes >> mode) & 1;
        if (one->is_in[mode]) {
            CFRunLoopAddTimer(LOOP, one->timer, mode_name(mode));
        }
    }
}

static void forget(struct crowd_timer *one)
{
    CFRelease(one->timer);
    one->timer = NULL;
}

/* Returns the timer that fires first in the mode, or NULL if there is none. */
static struct crowd_timer *first_of(int mode)
{
    struct crowd_timer *best = NULL;

    for (int i = 0; i < crowd_size; i++) {
        struct crowd_timer *one = &crowd[i];

        if (one->timer && one->is_in[mode] && (!best || one->tick < best->tick || (one->tick == best->tick && one->set < best->set))) {
            best = one;
        }
    }
    return best;
}

static void expect_next_date(int mode)
{
    const struct crowd_timer *first = first_of(mode);

    EXPECT(CFRunLoopGetNextTimerFireDate(LOOP, mode_name(mode)) == (first ? date_of_tick(first->tick) : 0.0));
}

static void expect_firings(int mode)
{
    struct crowd_timer *first;
    int turn = 0;

    fired_count = 0;
    (void)CFRunLoopRunInMode(mode_name(mode), 0, false);
    while ((first = first_of(mode)) != NULL && first->tick < now_tick) {
        EXPECT(turn < fired_count);
        EXPECT_EQ(fired[turn], first - crowd);
        forget(first);
        turn++;
    }
    EXPECT_EQ(fired_count, turn);
}

/* Early keys are counted, and every other key is its timer's date. */
static void expect_heap(int mode)
{
    const struct mode *found = mode_find(LOOP, mode_name(mode));
    uint32_t early = 0;

    for (uint32_t i = 0; found && i < found->timers.count; i++) {
        const struct heap_entry *entry = &found->timers.block->entries[i];
        int64_t date_ns = timer_of_node(entry->node)->fire_ns;

        EXPECT(timer_key_is_early(entry->node) ? entry->key <= date_ns : entry->key == date_ns);
        early += timer_key_is_early(entry->node);
    }
    EXPECT_EQ(found ? found->early_key_count : 0, early);
}

static void do_something(void)
{
    struct crowd_timer *one = &crowd[rand() % crowd_size];
    int mode = rand() % 2;

    if (!one->timer) {
        create(one);
    } else if (rand() % 16 == 0) {
        CFRunLoopTimerInvalidate(one->timer);
        forget(one);
    } else {
        give_date(one);
    }
    if (rand() % 8 == 0) {
        expect_next_date(mode);
    }
    if (rand() % 32 == 0) {
        long passed = rand() % 6;

        now_tick += passed;
        fake_kernel_advance(passed * (1000000000 / ticks_a_second));
        expect_firings(mode);
        expect_heap(mode);
    }
}

static void begin_crowd(int size)
{
    clock_start();
    tick_zero = CFAbsoluteTimeGetCurrent();
    crowd_size = size;
    srand(1);
}

static void end_crowd(void)
{
    for (int i = 0; i < crowd_size; i++) {
        if (crowd[i].timer) {
            CFRunLoopTimerInvalidate(crowd[i].timer);
            forget(&crowd[i]);
        }
    }
    for (int mode = 0; mode < 2; mode++) {
        expect_heap(mode);
        EXPECT_EQ(mode_find(LOOP, mode_name(mode))->timers.count, 0);
    }
}

TEST(random_dates_agree_with_a_plain_list, "34 127 128 131 132 134")
{
    int steps = test_is_instrumented() ? 20000 : 200000;

    begin_crowd(120);
    for (int i = 0; i < steps; i++) {
        do_something();
    }
    end_crowd();
}

static void expect_none_deferred(int mode)
{
    expect_next_date(mode);
    expect_heap(mode);
    EXPECT_EQ(mode_find(LOOP, mode_name(mode))->early_key_count, 0);
}

/* There are so many that the heap moves them all at once. */
TEST(a_crowd_that_is_put_off_comes_in_order_of_its_new_dates, "34 131 132 134")
{
    begin_crowd(crowd_most);
    for (int i = 0; i < crowd_size; i++) {
        create(&crowd[i]);
    }
    now_tick = ticks_ahead;
    for (int i = 0; i < crowd_size; i++) {
        give_date(&crowd[i]);
    }
    EXPECT(mode_find(LOOP, MODE)->early_key_count > 100);
    for (int mode = 0; mode < 2; mode++) {
        expect_none_deferred(mode);
    }
    now_tick = 0;
    for (int i = 0; i < 2 * ticks_ahead; i++) {
        now_tick++;
        fake_kernel_advance(1000000000 / ticks_a_second);
        expect_firings(i % 2);
    }
    expect_firings(0);
    expect_firings(1);
    end_crowd();
}
