/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observers: rules 146 to 160.
 */
#include <string.h>

#include "Loop/loop_trace.h"

static void add_idle(CFStringRef mode)
{
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, mode);
}

#define NOTING(name_) {.name = (name_), .action = probe_notes_activity, .logging = probe_is_silent}

TEST(an_observer_may_be_in_several_modes, "146")
{
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry, true, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRunLoopAddObserver(LOOP, o, CFSTR("M"));
    EXPECT(CFRunLoopContainsObserver(LOOP, o, MODE));
    EXPECT(CFRunLoopContainsObserver(LOOP, o, CFSTR("M")));
    EXPECT(!CFRunLoopContainsObserver(LOOP, o, CFSTR("N")));
    CFRelease(o);
}

static void tries_to_share(void *context)
{
    CFRunLoopObserverRef o = context;
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_note_bool("shared", CFRunLoopContainsObserver(LOOP, o, MODE));
}

TEST(an_observer_can_move_when_it_is_free, "146")
{
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry, true, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRunLoopAddObserver(LOOP, o, CFSTR("M"));
    probe_on_thread(tries_to_share, o);
    CFRunLoopRemoveObserver(LOOP, o, MODE);
    probe_on_thread(tries_to_share, o);
    CFRunLoopRemoveObserver(LOOP, o, CFSTR("M"));
    probe_on_thread(tries_to_share, o);
    EXPECT_LOG("shared=no shared=no shared=yes");
    EXPECT(CFRunLoopObserverIsValid(o));
    CFRunLoopAddObserver(LOOP, o, MODE); /* its last loop has ended */
    EXPECT(CFRunLoopContainsObserver(LOOP, o, MODE));
    CFRunLoopObserverInvalidate(o);
    CFRelease(o);
}

TEST(an_observer_hears_its_activities_in_its_modes, "147 158")
{
    clock_start();
    static struct probe observer = NOTING("O");
    static struct probe elsewhere = PROBE("M", NULL);
    static struct probe nothing = PROBE("N", NULL);
    add_idle(MODE);
    probe_observer_add(&observer, kCFRunLoopBeforeSources | kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_observer_add(&elsewhere, kCFRunLoopAllActivities, 0, LOOP, CFSTR("M"));
    probe_observer_add(&nothing, 0, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("O:BS O:AW TO");
}

TEST(observers_go_by_order_then_by_adding, "148")
{
    clock_start();
    static struct probe probes[] = {PROBE("a2", NULL), PROBE("b0", NULL), PROBE("c2", NULL), PROBE("d-1", NULL), PROBE("e0", NULL)};
    const CFIndex orders[] = {2, 0, 2, -1, 0};
    add_idle(MODE);
    for (int i = 0; i < 5; i++) {
        probe_observer_add(&probes[i], kCFRunLoopEntry, orders[i], LOOP, MODE);
    }
    probe_run(MODE, 0, false);
    EXPECT_LOG("d-1 b0 e0 a2 c2 TO");
    CFRunLoopObserverRef b = probe_observer_of(&probes[1]);
    CFRetain(b);
    CFRunLoopRemoveObserver(LOOP, b, MODE);
    CFRunLoopAddObserver(LOOP, b, MODE); /* goes to the end of its equals */
    CFRelease(b);
    probe_run(MODE, 0, false);
    EXPECT_LOG("d-1 e0 b0 a2 c2 TO");
}

TEST(an_observer_added_twice_is_called_once, "149")
{
    clock_start();
    static struct probe observer = PROBE("O", NULL);
    add_idle(MODE);
    CFRunLoopAddCommonMode(LOOP, MODE);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry, 0, LOOP, MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRunLoopAddObserver(LOOP, o, kCFRunLoopCommonModes);
    probe_run(MODE, 0, false);
    EXPECT_LOG("O TO");
}

static void two_observers(void (*action)(struct probe *), const char *expected)
{
    static struct probe second = PROBE("O2", NULL);
    static struct probe first = {.name = "O1", .context = &second};
    first.action = action;
    add_idle(MODE);
    CFRunLoopObserverRef o = probe_observer(&second, kCFRunLoopBeforeTimers, true, 1);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_observer_add(&first, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
    first.action = NULL;
    probe_run(MODE, 0, false);
    EXPECT_LOG(expected);
    CFRelease(o);
}

TEST(an_observer_invalidated_in_a_notification_is_skipped, "150")
{
    clock_start();
    two_observers(probe_invalidates_its_context, "O1 TO O1 TO");
}

TEST(an_observer_removed_in_a_notification_is_called_once_more, "150")
{
    clock_start();
    two_observers(probe_removes_its_context, "O1 O2 TO O1 TO");
}

static void adds_observer_once(struct probe *probe)
{
    if (probe->calls == 1) {
        probe_observer_add(probe->context, kCFRunLoopAllActivities, -5, LOOP, MODE);
    }
}

TEST(an_observer_added_in_a_notification_waits_for_the_next, "150 159 L18")
{
    clock_start();
    static struct probe second = NOTING("O2");
    static struct probe first = {.name = "O1", .action = adds_observer_once, .context = &second, .logging = probe_is_silent};
    add_idle(MODE);
    probe_observer_add(&first, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("O2:BS O2:BW O2:AW O2:X TO");
    probe_run(MODE, 0, false);
    EXPECT_LOG("O2:E O2:BT O2:BS O2:X TO");
}

TEST(an_observer_is_not_reentered, "151 L18")
{
    clock_start();
    static struct probe nester = PROBE("O", probe_runs_nested);
    probe_stage(MODE);
    probe_observer_add(&nester, kCFRunLoopBeforeTimers | kCFRunLoopBeforeSources, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E O { E BT BS X TO } BT O { E BT BS X TO } BS X TO");
}

TEST(a_one_shot_observer_is_called_once_whatever_happens, "152")
{
    clock_start();
    static struct probe observer = NOTING("O");
    add_idle(MODE);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopBeforeSources | kCFRunLoopExit, false, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRunLoopAddObserver(LOOP, o, CFSTR("M"));
    probe_run(MODE, 0, false);
    probe_run(MODE, 0, false);
    EXPECT_LOG("O:BS TO TO");
    EXPECT(!CFRunLoopObserverIsValid(o));
    EXPECT(!CFRunLoopContainsObserver(LOOP, o, CFSTR("M")));
    CFRelease(o);
}

static void nests_once(struct probe *probe)
{
    EXPECT(probe_is_valid(probe));
    probe_runs_nested(probe);
}

TEST(a_one_shot_observer_in_a_nested_run, "151 152")
{
    clock_start();
    static struct probe observer = PROBE("O", nests_once);
    add_idle(MODE);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopAllActivities, false, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRelease(o);
    probe_run(MODE, 0, false);
    EXPECT_LOG("O { TO } TO");
}

TEST(an_observers_context_is_retained_once, "153")
{
    clock_start();
    static struct probe observer = {.name = "O", .logging = probe_logs_context};
    add_idle(MODE);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry | kCFRunLoopExit, true, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_run(MODE, 0, false);
    CFRunLoopRemoveObserver(LOOP, o, MODE);
    EXPECT_LOG("retain(O) O O TO");
    CFRelease(o);
    EXPECT_LOG("release(O)");
}

static void invalidates_itself_and_goes_on(struct probe *probe)
{
    CFRunLoopObserverInvalidate(probe_observer_of(probe));
    EXPECT(!probe_is_valid(probe));
    probe_log("goes-on");
}

TEST(an_observer_may_invalidate_itself, "154 L17 L18")
{
    clock_start();
    static struct probe observer = {.name = "O", .action = invalidates_itself_and_goes_on, .logging = probe_logs_context};
    add_idle(MODE);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopAllActivities, 0, LOOP, MODE);
    CFRunLoopAddObserver(LOOP, o, CFSTR("M"));
    CFRetain(o);
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("retain(O) O release(O) goes-on TO");
    EXPECT(!CFRunLoopContainsObserver(LOOP, o, CFSTR("M")));
    CFRunLoopObserverInvalidate(o);
    CFRunLoopAddObserver(LOOP, o, MODE);
    EXPECT(!CFRunLoopContainsObserver(LOOP, o, MODE));
    CFRelease(o);
    EXPECT_LOG("");
}

static _Atomic int observer_entered;
static _Atomic int observer_may_leave;

static void waits_inside(struct probe *probe)
{
    (void)probe;
    observer_entered = 1;
    probe_await_count(&observer_may_leave, 1);
    EXPECT_EQ(probe->releases, 0); /* the context lives to the end of the callout */
    probe_log("leaves");
}

static void invalidates_while_running(void *context)
{
    probe_await_count(&observer_entered, 1);
    CFRunLoopObserverInvalidate(context);
    probe_log("invalidated");
    observer_may_leave = 1;
}

TEST(an_observer_invalidated_during_its_callout_releases_after_it, "154 L15")
{
    static struct probe observer = {.name = "O", .action = waits_inside, .logging = probe_logs_context};
    struct probe_thread other;
    add_idle(MODE);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry, true, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_thread_start(&other, invalidates_while_running, o);
    probe_run(MODE, 0, false);
    probe_thread_join(&other);
    EXPECT_LOG("retain(O) O invalidated leaves release(O) TO");
    CFRelease(o);
}

TEST(observers_do_not_keep_a_mode_nor_wake_nor_count, "155 25")
{
    clock_start();
    static struct probe observer = PROBE("O", NULL);
    static struct probe timer = PROBE("T", NULL);
    probe_observer_add(&observer, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_run(MODE, 1000, true);
    probe_timer_add(&timer, 0.1, 0, LOOP, MODE);
    probe_run(MODE, 1000, true);
    EXPECT_LOG("F O T F");
    EXPECT_EQ(clock_ms(), 100);
}

TEST(an_observer_without_callout_does_nothing, "156")
{
    clock_start();
    CFRunLoopObserverRef o = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, NULL, NULL);
    CFRunLoopObserverRef once = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, false, 0, NULL, NULL);
    probe_stage(MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRunLoopAddObserver(LOOP, once, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("E BT BS X TO");
    CFRelease(o);
    CFRelease(once);
}

TEST(an_observer_reports_its_creation_values, "157 186")
{
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry | kCFRunLoopBeforeWaiting, false, -4);
    CFRunLoopObserverContext context = {.version = 0};
    EXPECT_EQ(CFRunLoopObserverGetActivities(o), kCFRunLoopEntry | kCFRunLoopBeforeWaiting);
    EXPECT_EQ(CFRunLoopObserverGetOrder(o), -4);
    EXPECT(!CFRunLoopObserverDoesRepeat(o));
    EXPECT(CFRunLoopObserverIsValid(o));
    CFRunLoopObserverGetContext(o, &context);
    EXPECT(context.info == &observer);
    EXPECT(context.retain != NULL);
    CFRunLoopObserverInvalidate(o);
    CFRunLoopObserverGetContext(o, &context);
    EXPECT(context.info == NULL);
    EXPECT_EQ(CFRunLoopObserverGetOrder(o), -4);
    CFRelease(o);
    o = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, NULL, NULL);
    EXPECT_EQ(CFRunLoopObserverGetActivities(o), 0x0FFFFFFF);
    EXPECT(CFRunLoopObserverDoesRepeat(o));
    CFRelease(o);
}

static void adds_exit_observer(struct probe *probe)
{
    probe_observer_add(probe->context, kCFRunLoopExit, 0, LOOP, MODE);
}

TEST(an_observer_added_by_a_callout_hears_the_exit, "159")
{
    clock_start();
    static struct probe late = NOTING("late");
    static struct probe source = {.name = "S0", .action = adds_exit_observer, .context = &late};
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, true);
    EXPECT_LOG("S0 late:X HS");
}

static void outlasts_the_run(struct probe *probe)
{
    (void)probe;
    clock_spend_ms(200);
}

TEST(a_slow_observer_lets_the_run_time_out, "160")
{
    clock_start();
    static struct probe observer = PROBE("slow", outlasts_the_run);
    probe_stage(MODE);
    probe_observer_add(&observer, kCFRunLoopBeforeSources, 0, LOOP, MODE);
    probe_run(MODE, 0.1, false);
    EXPECT_LOG("E BT slow BS BW AW X TO");
}

static void function_observed(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    EXPECT(CFRunLoopObserverIsValid(observer));
    probe_note("%s:%s", (const char *)info, probe_activity_name(activity));
}

static void info_released(void *info)
{
    probe_note("release(%s)", (const char *)info);
}

static void ends_itself(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    CFRunLoopObserverInvalidate(observer);
    probe_note("%s:%s", (const char *)info, probe_activity_name(activity));
}

TEST(an_observer_with_a_function_keeps_its_info_to_the_end_of_the_call_that_invalidates_it, "147 152")
{
    clock_start();
    char name[] = "F";
    CFRunLoopObserverRef o =
        CRLRunLoopObserverCreateWithFunction(NULL, kCFRunLoopEntry | kCFRunLoopExit, true, 0, ends_itself, name, info_released);
    add_idle(MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_run(MODE, 0, false);
    EXPECT_LOG("F:E release(F) TO");
    CFRelease(o);
    EXPECT_LOG("");
}

TEST(an_observer_with_a_function, "147 153")
{
    clock_start();
    char name[] = "F";
    CFRunLoopObserverRef o =
        CRLRunLoopObserverCreateWithFunction(NULL, kCFRunLoopEntry | kCFRunLoopExit, true, 0, function_observed, name, info_released);
    add_idle(MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_run(MODE, 0, false);
    CFRunLoopObserverInvalidate(o);
    EXPECT_LOG("F:E F:X TO release(F)");
    CFRelease(o);
    EXPECT(CRLRunLoopObserverCreateWithFunction(NULL, kCFRunLoopEntry, true, 0, NULL, name, info_released) == NULL);
}

static _Atomic int is_asked;

static void asks_for_the_context(void *observer)
{
    CFRunLoopObserverContext context;

    do {
        CFRunLoopObserverGetContext(observer, &context);
        is_asked++;
    } while (CFRunLoopObserverIsValid(observer));
    CFRunLoopObserverGetContext(observer, &context);
    EXPECT(context.info == NULL);
}

TEST(an_observers_context_may_be_asked_for_while_it_is_invalidated, "147 150")
{
    for (int i = 0; i < 20; i++) {
        static struct probe probe = {.name = "O", .logging = probe_is_silent};
        CFRunLoopObserverRef observer = probe_observer(&probe, kCFRunLoopEntry, true, 0);
        struct probe_thread thread;

        is_asked = 0;
        probe_thread_start(&thread, asks_for_the_context, observer);
        probe_await_count(&is_asked, 1);
        CFRunLoopObserverInvalidate(observer);
        probe_thread_join(&thread);
        CFRelease(observer);
    }
}

/* ---- many that come and go, also while others are called ---- */

enum { crowd_size = 40 };

/* What the mode should hold, in the order in which it should call them; the same when the pass began; how many it has called. */
struct crowd {
    CFRunLoopObserverRef observers[crowd_size];
    int standing[crowd_size];
    int count;
    int expected[crowd_size];
    int called;
    bool changes_now; /* in each callout of the pass */
    uint32_t seed;
};

static struct crowd crowd;

static int order_of_member(int member)
{
    return member % 7;
}

static uint32_t chance(uint32_t limit)
{
    crowd.seed = crowd.seed * 1664525u + 1013904223u;
    return (crowd.seed >> 8) % limit;
}

static void let_stand(int member)
{
    int place = crowd.count++;

    while (place > 0 && order_of_member(crowd.standing[place - 1]) > order_of_member(member)) {
        crowd.standing[place] = crowd.standing[place - 1];
        place--;
    }
    crowd.standing[place] = member;
}

static bool let_go(int member)
{
    for (int i = 0; i < crowd.count; i++) {
        if (crowd.standing[i] == member) {
            crowd.count--;
            memmove(crowd.standing + i, crowd.standing + i + 1, (size_t)(crowd.count - i) * sizeof(int));
            return true;
        }
    }
    return false;
}

static void change_the_crowd(void)
{
    int member = (int)chance(crowd_size);

    if (let_go(member)) {
        CFRunLoopRemoveObserver(LOOP, crowd.observers[member], MODE);
    } else {
        let_stand(member);
        CFRunLoopAddObserver(LOOP, crowd.observers[member], MODE);
    }
}

/* Changes those that the next pass calls; this one goes on with those that stood at its beginning. */
static void is_called_in_turn(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    if (crowd.called == 0) {
        memcpy(crowd.expected, crowd.standing, sizeof crowd.standing);
    }
    EXPECT_EQ((intptr_t)info, crowd.expected[crowd.called]);
    crowd.called++;
    if (crowd.changes_now) {
        change_the_crowd();
    }
}

TEST(observers_that_come_and_go_are_called_in_their_order, "148 149 150 159")
{
    crowd.seed = 7;
    add_idle(MODE);
    for (intptr_t i = 0; i < crowd_size; i++) {
        CFRunLoopObserverContext context = {.info = (void *)i}; /* NOLINT(performance-no-int-to-ptr) */

        crowd.observers[i] =
            CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeTimers, true, order_of_member((int)i), is_called_in_turn, &context);
    }
    for (int pass = 0; pass < 2000; pass++) {
        for (uint32_t changes = chance(4); changes > 0; changes--) {
            change_the_crowd();
        }
        int count = crowd.count;

        crowd.called = 0;
        crowd.changes_now = pass % 3 == 0;
        (void)CFRunLoopRunInMode(MODE, 0, true);
        EXPECT_EQ(crowd.called, count);
    }
    for (int i = 0; i < crowd_size; i++) {
        CFRunLoopObserverInvalidate(crowd.observers[i]);
        EXPECT_EQ(CFGetRetainCount(crowd.observers[i]), 1);
        CFRelease(crowd.observers[i]);
    }
}
