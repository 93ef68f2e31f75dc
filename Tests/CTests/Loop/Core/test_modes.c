/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops of threads, modes and common modes: rules 1 to 26. Membership is checked through the public calls only.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "Loop/loop_trace.h"

static void compares_loops(void *context)
{
    CFRunLoopRef main_loop = context;
    EXPECT(CFRunLoopGetMain() == main_loop);
    EXPECT(CFRunLoopGetCurrent() != main_loop);
    EXPECT(CFRunLoopGetCurrent() == CFRunLoopGetCurrent());
    EXPECT_EQ(CFGetTypeID(CFRunLoopGetCurrent()), CFRunLoopGetTypeID());
}

TEST(each_thread_has_one_loop, "1 3")
{
    EXPECT(CFRunLoopGetMain() == CFRunLoopGetCurrent());
    EXPECT(CFRunLoopGetMain() == CFRunLoopGetMain());
    probe_on_thread(compares_loops, CFRunLoopGetMain());
}

static void gets_main_first(void *context)
{
    *(CFRunLoopRef *)context = CFRunLoopGetMain();
}

TEST(main_loop_can_be_had_before_the_main_thread_uses_it, "3 7")
{
    CFRunLoopRef main_loop = NULL;
    probe_on_thread(gets_main_first, &main_loop);
    EXPECT(main_loop != NULL);
    EXPECT(main_loop == CFRunLoopGetCurrent());
}

TEST(got_loops_are_borrowed, "2 187")
{
    CFRunLoopRef loop = LOOP;
    for (int i = 0; i < 1000; i++) {
        CFRunLoopGetCurrent();
        CFRunLoopGetMain();
    }
    CFRetain(loop);
    CFRelease(loop);
    EXPECT(CFRunLoopGetCurrent() == loop);
}

TEST(null_loop_stops_with_a_sentence, "2 187b")
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    EXPECT_STOPS("CFRunLoopWakeUp", { CFRunLoopWakeUp(NULL); });
    EXPECT_STOPS("CFRunLoopStop", { CFRunLoopStop(NULL); });
    EXPECT_STOPS("CFRunLoopAddSource", { CFRunLoopAddSource(NULL, a, MODE); });
    EXPECT_STOPS("CFRunLoopAddSource", { CFRunLoopAddSource(LOOP, NULL, MODE); });
    EXPECT_STOPS("CFRunLoopAddTimer", { CFRunLoopAddTimer(LOOP, (CFRunLoopTimerRef)(void *)a, MODE); });
    EXPECT_STOPS("CFRunLoopIsWaiting", { CFRunLoopIsWaiting(NULL); });
    EXPECT_STOPS("CFRunLoopCopyCurrentMode", { CFRunLoopCopyCurrentMode((CFRunLoopRef)(void *)a); });
    EXPECT_STOPS("CFRunLoopSourceSignal", { CFRunLoopSourceSignal(NULL); });
    CFRelease(a);
}

TEST(null_mode_is_ignored, "24")
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopTimerRef t = probe_timer(&timer, 100, 0);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry, true, 0);
    CFRunLoopAddSource(LOOP, a, NULL);
    CFRunLoopAddTimer(LOOP, t, NULL);
    CFRunLoopAddObserver(LOOP, o, NULL);
    CFRunLoopRemoveSource(LOOP, a, NULL);
    CFRunLoopRemoveTimer(LOOP, t, NULL);
    CFRunLoopRemoveObserver(LOOP, o, NULL);
    EXPECT(!CFRunLoopContainsSource(LOOP, a, NULL));
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, NULL));
    EXPECT(!CFRunLoopContainsObserver(LOOP, o, NULL));
    CFRunLoopAddCommonMode(LOOP, NULL);
    EXPECT(CFRunLoopGetNextTimerFireDate(LOOP, NULL) == 0);
    EXPECT_LOG("");
    CFRelease(a);
    CFRelease(t);
    CFRelease(o);
}

struct from_outside {
    CFRunLoopRef loop;
    struct probe *timer;
};

static void changes_everything(void *context)
{
    struct from_outside *from = context;
    static struct probe source = PROBE("A", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, from->loop, MODE);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopExit, 0, from->loop, MODE);
    CFRunLoopTimerRef t = probe_timer_add(from->timer, 1000, 0, from->loop, MODE);
    EXPECT(CFRunLoopContainsSource(from->loop, a, MODE));
    EXPECT(CFRunLoopContainsObserver(from->loop, o, MODE));
    EXPECT(CFRunLoopContainsTimer(from->loop, t, MODE));
    CFRunLoopAddCommonMode(from->loop, CFSTR("another"));
    CFRelease(CFRunLoopCopyAllModes(from->loop));
    EXPECT(CFRunLoopGetNextTimerFireDate(from->loop, MODE) > 0);
    CFRunLoopRemoveObserver(from->loop, o, MODE);
    CFRunLoopTimerInvalidate(t);
    CFRunLoopSourceInvalidate(a);
    CFRunLoopStop(from->loop);
}

TEST(a_sleeping_loop_takes_calls_from_other_threads, "5")
{
    static struct probe timer = PROBE("T", NULL);
    struct from_outside from = {.loop = LOOP, .timer = &timer};
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, changes_everything, &from);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT_LOG("E BT BS BW AW X S");
}

/* Rule 6: while a callback runs, another thread can use the loop. The prober's end is awaited inside the callback. */
static void probes_loop(void *context)
{
    CFRunLoopRef loop = context;
    CFRelease(CFRunLoopCopyAllModes(loop));
    CFRunLoopAddCommonMode(loop, CFSTR("probed"));
    CFRunLoopWakeUp(loop);
}

static void lets_another_thread_probe(const char *token)
{
    probe_on_thread(probes_loop, CFRunLoopGetMain());
    probe_log(token);
}

static const void *prober_retain(const void *info)
{
    lets_another_thread_probe("retain");
    return info;
}

static void prober_release(const void *info)
{
    (void)info;
    lets_another_thread_probe("release");
}

static CFStringRef prober_describe(const void *info)
{
    (void)info;
    lets_another_thread_probe("describe");
    return NULL;
}

static Boolean prober_equal(const void *one, const void *other)
{
    lets_another_thread_probe("equal");
    return one == other;
}

static CFHashCode prober_hash(const void *info)
{
    (void)info;
    lets_another_thread_probe("hash");
    return 1;
}

static void prober_schedule(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)loop;
    (void)mode;
    lets_another_thread_probe("schedule");
}

static void prober_cancel(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)loop;
    (void)mode;
    lets_another_thread_probe("cancel");
}

static void prober_perform(void *info)
{
    (void)info;
    lets_another_thread_probe("perform");
}

static void prober_fire(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    lets_another_thread_probe("timer");
}

static void prober_observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    (void)info;
    lets_another_thread_probe("observer");
}

static void prober_block(void *info)
{
    (void)info;
    lets_another_thread_probe("block");
}

static void prober_block_release(void *info)
{
    (void)info;
    lets_another_thread_probe("block-release");
}

TEST(no_lock_is_held_during_callbacks, "6 168")
{
    static int first_info;
    static int second_info;
    CFRunLoopSourceContext context = {.info = &first_info,
                                      .retain = prober_retain,
                                      .release = prober_release,
                                      .copyDescription = prober_describe,
                                      .equal = prober_equal,
                                      .hash = prober_hash,
                                      .schedule = prober_schedule,
                                      .cancel = prober_cancel,
                                      .perform = prober_perform};
    CFRunLoopTimerContext timer_context = {.retain = prober_retain, .release = prober_release};
    CFRunLoopObserverContext observer_context = {.retain = prober_retain, .release = prober_release};
    CFRunLoopAddCommonMode(LOOP, MODE);
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &context);
    context.info = &second_info;
    CFRunLoopSourceRef b = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, b, MODE);
    CFRunLoopAddSource(LOOP, b, kCFRunLoopCommonModes);
    CFRunLoopTimerRef t = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() - 1, 0, 0, 0, prober_fire, &timer_context);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopObserverRef o = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, prober_observe, &observer_context);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, prober_block, NULL, prober_block_release);
    CFRunLoopSourceSignal(a);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    CFStringRef description = CFCopyDescription(a);
    if (description) {
        CFRelease(description);
    }
    CFRunLoopRemoveSource(LOOP, b, kCFRunLoopCommonModes);
    CFRunLoopSourceInvalidate(a);
    CFRunLoopObserverInvalidate(o);
    CFRelease(a);
    CFRelease(b);
    CFRelease(t);
    CFRelease(o);
    const char *kinds[] = {"retain", "release", "hash", "equal", "schedule", "cancel", "perform", "timer", "observer", "block"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!strstr(probe_trace.text, kinds[i])) {
            FAIL(kinds[i]);
        }
    }
}

static void runs_the_inner_mode(struct probe *probe)
{
    (void)probe;
    probe_note_current_mode("outer", LOOP);
    probe_run(CFSTR("inner"), 0, false);
    probe_note_current_mode("outer", LOOP);
}

static void notes_mode(struct probe *probe)
{
    (void)probe;
    probe_note_current_mode("mode", LOOP);
}

TEST(current_mode_is_the_innermost, "8 45")
{
    static struct probe outer = PROBE("A", runs_the_inner_mode);
    static struct probe inner = PROBE("B", notes_mode);
    static struct probe observer = PROBE("O", notes_mode);
    probe_note_current_mode("before", LOOP);
    CFRunLoopSourceSignal(probe_source_add(&outer, 0, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&inner, 0, LOOP, CFSTR("inner")));
    probe_observer_add(&observer, kCFRunLoopEntry | kCFRunLoopExit, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
    probe_note_current_mode("after", LOOP);
    EXPECT_LOG("before=NULL O mode=test A outer=test B mode=inner TO outer=test O mode=test TO after=NULL");
}

static void looks(void *context)
{
    CFRunLoopRef loop = context;
    probe_note_current_mode("mode", loop);
    EXPECT(CFRunLoopIsWaiting(loop));
    CFRunLoopStop(loop);
}

TEST(other_threads_see_mode_and_sleep, "8 9")
{
    struct probe_thread other;
    probe_stage(MODE);
    EXPECT(!CFRunLoopIsWaiting(LOOP));
    probe_thread_when_waiting(&other, LOOP, looks, LOOP);
    probe_run(MODE, 1000, false);
    probe_thread_join(&other);
    EXPECT(!CFRunLoopIsWaiting(LOOP));
    EXPECT_LOG("E BT BS BW mode=test AW X S");
}

static void expects_awake(struct probe *probe)
{
    (void)probe;
    EXPECT(!CFRunLoopIsWaiting(LOOP));
}

TEST(callbacks_see_an_awake_loop, "9")
{
    clock_start();
    static struct probe source = PROBE("A", expects_awake);
    static struct probe timer = PROBE("T", expects_awake);
    static struct probe observer = {.name = "O", .action = expects_awake, .logging = probe_is_silent};
    probe_observer_add(&observer, kCFRunLoopAllActivities, 0, LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_timer_add(&timer, 1, 0, LOOP, MODE);
    probe_run(MODE, 2, false);
    EXPECT_LOG("A T TO");
}

static void counts_modes(void *context)
{
    (void)context;
    CFArrayRef modes = CFRunLoopCopyAllModes(LOOP);
    EXPECT_EQ(CFArrayGetCount(modes), 1);
    EXPECT(CFEqual(CFArrayGetValueAtIndex(modes, 0), kCFRunLoopDefaultMode));
    CFRelease(modes);
}

TEST(a_fresh_loop_has_the_default_mode, "10")
{
    probe_on_thread(counts_modes, NULL);
}

TEST(adding_makes_modes_and_nothing_else_does, "11 169")
{
    static struct probe source = PROBE("A", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopRef loop = LOOP;
    CFRunLoopSourceRef a = probe_source(&source, 0);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("run"), 0, false), kCFRunLoopRunFinished);
    CFRunLoopRemoveSource(loop, a, CFSTR("removed"));
    EXPECT(!CFRunLoopContainsSource(loop, a, CFSTR("asked")));
    EXPECT(CFRunLoopGetNextTimerFireDate(loop, CFSTR("dated")) == 0);
    CFRunLoopAddCommonMode(loop, CFSTR("common"));
    EXPECT(!probe_mode_exists(loop, CFSTR("run")));
    EXPECT(!probe_mode_exists(loop, CFSTR("removed")));
    EXPECT(!probe_mode_exists(loop, CFSTR("asked")));
    EXPECT(!probe_mode_exists(loop, CFSTR("dated")));
    EXPECT(!probe_mode_exists(loop, CFSTR("common")));
    CFRunLoopAddSource(loop, a, CFSTR("source"));
    probe_timer_add(&timer, 100, 0, loop, CFSTR("timer"));
    probe_observer_add(&observer, kCFRunLoopEntry, 0, loop, CFSTR("observer"));
    EXPECT(probe_mode_exists(loop, CFSTR("source")));
    EXPECT(probe_mode_exists(loop, CFSTR("timer")));
    EXPECT(probe_mode_exists(loop, CFSTR("observer")));
    CFRunLoopRemoveSource(loop, a, CFSTR("source"));
    EXPECT(probe_mode_exists(loop, CFSTR("source")));
    CFRunLoopAddSource(loop, a, kCFRunLoopCommonModes);
    EXPECT(probe_mode_exists(loop, CFSTR("common")));
    EXPECT(!probe_mode_exists(loop, kCFRunLoopCommonModes));
    CFRunLoopAddCommonMode(loop, CFSTR("late"));
    EXPECT(probe_mode_exists(loop, CFSTR("late")));
    CFRelease(a);
}

TEST(equal_names_are_one_mode, "12")
{
    static struct probe source = PROBE("A", NULL);
    CFStringRef one = CFStringCreateWithCString(NULL, "a mode with a long name", kCFStringEncodingUTF8);
    CFStringRef other = CFStringCreateWithCString(NULL, "a mode with a long name", kCFStringEncodingUTF8);
    CFStringRef standard = CFStringCreateWithCString(NULL, "kCFRunLoopDefaultMode", kCFStringEncodingUTF8);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, one);
    CFRelease(one);
    EXPECT(CFRunLoopContainsSource(LOOP, a, other));
    CFRunLoopSourceSignal(a);
    probe_run(other, 0, true);
    CFRunLoopAddSource(LOOP, a, standard);
    EXPECT(CFRunLoopContainsSource(LOOP, a, kCFRunLoopDefaultMode));
    EXPECT(CFRunLoopContainsSource(LOOP, a, CFSTR("kCFRunLoopDefaultMode")));
    CFRelease(other);
    CFRelease(standard);
    EXPECT_LOG("A HS");
}

enum { crowd_of_modes = 300 };

static CFStringRef name_of_mode(int number)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("mode %d"), number);
}

static void add_to_mode(CFRunLoopTimerRef timer, int number)
{
    CFStringRef name = name_of_mode(number);

    CFRunLoopAddTimer(LOOP, timer, name);
    if (number % 3 == 0) {
        CFRunLoopAddCommonMode(LOOP, name);
    }
    CFRelease(name);
}

TEST(many_modes_are_found_by_their_names, "11 12 17 22")
{
    static struct probe probes[crowd_of_modes];
    static struct probe common = {.name = "C", .logging = probe_is_silent};
    CFRunLoopTimerRef timers[crowd_of_modes];
    CFRunLoopTimerRef everywhere = probe_timer(&common, 100, 0);
    CFArrayRef modes;

    for (int i = 0; i < crowd_of_modes; i++) {
        probes[i] = (struct probe){.name = "T", .logging = probe_is_silent};
        timers[i] = probe_timer(&probes[i], -1, 0);
        add_to_mode(timers[i], i);
    }
    CFRunLoopAddTimer(LOOP, everywhere, kCFRunLoopCommonModes);
    modes = CFRunLoopCopyAllModes(LOOP);
    REQUIRE(CFArrayGetCount(modes) == crowd_of_modes + 1);
    for (int i = 0; i < crowd_of_modes; i++) {
        CFStringRef name = name_of_mode(i);

        EXPECT(CFEqual(CFArrayGetValueAtIndex(modes, i + 1), name));
        EXPECT(CFRunLoopContainsTimer(LOOP, timers[i], name));
        EXPECT(!CFRunLoopContainsTimer(LOOP, timers[(i + 1) % crowd_of_modes], name));
        EXPECT_EQ(CFRunLoopContainsTimer(LOOP, everywhere, name), i % 3 == 0);
        (void)CFRunLoopRunInMode(name, 0, false);
        EXPECT_EQ(probes[i].calls, 1);
        EXPECT_EQ(probes[(i + 1) % crowd_of_modes].calls, i == crowd_of_modes - 1);
        CFRelease(name);
    }
    for (int i = 0; i < crowd_of_modes; i++) {
        CFRelease(timers[i]);
    }
    EXPECT(CFRunLoopContainsTimer(LOOP, everywhere, kCFRunLoopDefaultMode));
    CFRunLoopRemoveTimer(LOOP, everywhere, kCFRunLoopCommonModes);
    EXPECT(!CFRunLoopContainsTimer(LOOP, everywhere, kCFRunLoopDefaultMode));
    EXPECT(!CFRunLoopContainsTimer(LOOP, everywhere, CFSTR("mode 297")));
    EXPECT(!CFRunLoopContainsTimer(LOOP, everywhere, CFSTR("mode 300")));
    CFRelease(everywhere);
    CFRelease(modes);
}

TEST(a_mode_name_may_change_after_its_use, "12")
{
    static struct probe source = PROBE("A", NULL);
    CFMutableStringRef name = CFStringCreateMutable(NULL, 0);
    CFStringAppend(name, CFSTR("first"));
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, name);
    CFStringAppend(name, CFSTR(" and more"));
    EXPECT(CFRunLoopContainsSource(LOOP, a, CFSTR("first")));
    EXPECT(!CFRunLoopContainsSource(LOOP, a, name));
    CFRelease(name);
}

TEST(an_equal_string_means_the_common_modes, "13")
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFStringRef common = CFStringCreateWithCString(NULL, "kCFRunLoopCommonModes", kCFStringEncodingUTF8);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, common);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, LOOP, common);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry, 0, LOOP, common);
    EXPECT(CFRunLoopContainsSource(LOOP, a, kCFRunLoopDefaultMode));
    EXPECT(CFRunLoopContainsTimer(LOOP, t, kCFRunLoopDefaultMode));
    EXPECT(CFRunLoopContainsObserver(LOOP, o, kCFRunLoopCommonModes));
    EXPECT(!probe_mode_exists(LOOP, common));
    CFRunLoopRemoveSource(LOOP, a, common);
    EXPECT_EQ(CFRunLoopRunInMode(common, 10, false), kCFRunLoopRunFinished);
    EXPECT_LOG("A+kCFRunLoopDefaultMode A-kCFRunLoopDefaultMode");
    CFRelease(common);
}

TEST(events_of_other_modes_stay_pending, "15 142")
{
    clock_start();
    static struct probe source = PROBE("A", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe port = PROBE("P", NULL);
    int event = probe_event();
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, CFSTR("other")));
    probe_timer_add(&timer, -1, 0, LOOP, CFSTR("other"));
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, event, LOOP, CFSTR("other"));
    probe_event_post(event);
    probe_run(MODE, 1, false);
    EXPECT_LOG("E BT BS BW AW X TO");
    CFRunLoopRunInMode(CFSTR("other"), 1, false);
    EXPECT_EQ(source.calls, 1);
    EXPECT_EQ(timer.calls, 1);
    EXPECT_EQ(port.calls, 1);
    CFRunLoopSourceInvalidate(p);
    close(event);
}

TEST(adding_again_is_nothing, "16")
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("M"));
    CFRunLoopRemoveSource(LOOP, a, MODE);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    EXPECT(CFRunLoopContainsSource(LOOP, a, CFSTR("M")));
    EXPECT_LOG("A+test A+M A-test");
    CFRunLoopRemoveSource(LOOP, a, CFSTR("M"));
}

TEST(common_items_are_scheduled_in_each_real_mode, "17 18 75")
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    static struct probe second = {.name = "B", .logging = probe_logs_membership};
    probe_source_add(&source, 0, LOOP, kCFRunLoopCommonModes);
    EXPECT_LOG("A+kCFRunLoopDefaultMode");
    CFRunLoopAddCommonMode(LOOP, MODE);
    EXPECT_LOG("A+test");
    probe_source_add(&second, 0, LOOP, kCFRunLoopCommonModes);
    EXPECT_EQ(second.schedules, 2);
    EXPECT(!strstr(probe_trace.text, "kCFRunLoopCommonModes"));
}

TEST(a_new_common_mode_gets_the_items_once, "19 L19")
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    probe_source_add(&source, 0, LOOP, kCFRunLoopCommonModes);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, LOOP, kCFRunLoopCommonModes);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry, 0, LOOP, kCFRunLoopCommonModes);
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, MODE));
    CFRunLoopAddCommonMode(LOOP, MODE);
    CFRunLoopAddCommonMode(LOOP, MODE);
    EXPECT(CFRunLoopContainsTimer(LOOP, t, MODE));
    EXPECT(CFRunLoopContainsObserver(LOOP, o, MODE));
    probe_run(MODE, 0, false);
    EXPECT_LOG("A+kCFRunLoopDefaultMode A+test O TO");
}

TEST(common_sources_join_a_new_mode_in_the_order_of_adding, "17 19")
{
    static struct probe probes[20];
    static char names[20][4];
    char expected[400] = "";
    CFRunLoopSourceRef sources[20];

    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "s%d", i);
        probes[i] = (struct probe){.name = names[i], .logging = probe_logs_membership};
        sources[i] = probe_source_add(&probes[i], 0, LOOP, kCFRunLoopCommonModes);
        if (i != 3) {
            snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%ss%d+test", i ? " " : "", i);
        }
    }
    CFRunLoopSourceSignal(sources[7]); /* a mark that is taken leaves it among the common items */
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    CFRunLoopRemoveSource(LOOP, sources[3], kCFRunLoopCommonModes);
    trace_clear(&probe_trace);
    CFRunLoopAddCommonMode(LOOP, MODE);
    EXPECT_LOG(expected);
}

static CFRunLoopSourceRef one_to_remove;

static void removes_another(void *info, CFRunLoopRef loop, CFRunLoopMode mode)
{
    (void)info;
    if (CFEqual(mode, MODE)) {
        CFRunLoopRemoveSource(loop, one_to_remove, kCFRunLoopCommonModes);
    }
}

TEST(a_source_that_leaves_the_common_items_meanwhile_does_not_join, "17 21")
{
    static struct probe second = {.name = "B", .logging = probe_logs_membership};
    CFRunLoopSourceContext context = {.schedule = removes_another};
    CFRunLoopSourceRef first = CFRunLoopSourceCreate(NULL, 0, &context);

    CFRunLoopAddSource(LOOP, first, kCFRunLoopCommonModes);
    one_to_remove = probe_source_add(&second, 0, LOOP, kCFRunLoopCommonModes);
    CFRetain(one_to_remove);
    CFRunLoopAddCommonMode(LOOP, MODE);
    EXPECT(!CFRunLoopContainsSource(LOOP, one_to_remove, MODE));
    EXPECT_LOG("B+kCFRunLoopDefaultMode B-kCFRunLoopDefaultMode");
    CFRelease(one_to_remove);
    CFRunLoopSourceInvalidate(first);
    CFRelease(first);
}

TEST(an_item_removed_from_one_common_mode_stays_common, "20")
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, kCFRunLoopCommonModes);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, LOOP, kCFRunLoopCommonModes);
    CFRunLoopAddCommonMode(LOOP, MODE);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    CFRunLoopRemoveTimer(LOOP, t, MODE);
    EXPECT(CFRunLoopContainsSource(LOOP, a, kCFRunLoopCommonModes));
    EXPECT(CFRunLoopContainsTimer(LOOP, t, kCFRunLoopCommonModes));
    CFRunLoopAddCommonMode(LOOP, MODE);
    EXPECT(!CFRunLoopContainsSource(LOOP, a, MODE));
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, MODE));
    CFRunLoopAddCommonMode(LOOP, CFSTR("N"));
    EXPECT(CFRunLoopContainsSource(LOOP, a, CFSTR("N")));
    EXPECT(CFRunLoopContainsTimer(LOOP, t, CFSTR("N")));
    EXPECT_LOG("A+kCFRunLoopDefaultMode A+test A-test A+N");
}

TEST(removal_from_the_common_modes_is_from_all_of_them, "21 L19")
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, kCFRunLoopDefaultMode);
    CFRunLoopRemoveSource(LOOP, a, kCFRunLoopCommonModes);
    EXPECT(CFRunLoopContainsSource(LOOP, a, kCFRunLoopDefaultMode));
    CFRunLoopAddCommonMode(LOOP, MODE);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("N"));
    CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
    CFRunLoopRemoveSource(LOOP, a, kCFRunLoopCommonModes);
    EXPECT(!CFRunLoopContainsSource(LOOP, a, kCFRunLoopDefaultMode));
    EXPECT(!CFRunLoopContainsSource(LOOP, a, MODE));
    EXPECT(CFRunLoopContainsSource(LOOP, a, CFSTR("N")));
    EXPECT(!CFRunLoopContainsSource(LOOP, a, kCFRunLoopCommonModes));
    EXPECT_EQ(source.schedules, 3);
    EXPECT_EQ(source.cancels, 2);
    CFRunLoopSourceInvalidate(a);
    CFRelease(a);
}

TEST(common_membership_is_that_of_the_set, "22")
{
    static struct probe source = PROBE("A", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, kCFRunLoopDefaultMode);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, LOOP, kCFRunLoopDefaultMode);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry, 0, LOOP, kCFRunLoopDefaultMode);
    EXPECT(!CFRunLoopContainsSource(LOOP, a, kCFRunLoopCommonModes));
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, kCFRunLoopCommonModes));
    EXPECT(!CFRunLoopContainsObserver(LOOP, o, kCFRunLoopCommonModes));
    CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
    CFRunLoopAddTimer(LOOP, t, kCFRunLoopCommonModes);
    CFRunLoopAddObserver(LOOP, o, kCFRunLoopCommonModes);
    EXPECT(CFRunLoopContainsSource(LOOP, a, kCFRunLoopCommonModes));
    EXPECT(CFRunLoopContainsTimer(LOOP, t, kCFRunLoopCommonModes));
    EXPECT(CFRunLoopContainsObserver(LOOP, o, kCFRunLoopCommonModes));
    CFRunLoopSourceInvalidate(a);
    CFRunLoopTimerInvalidate(t);
    CFRunLoopObserverInvalidate(o);
}

TEST(invalid_items_leave_the_common_set, "21 88 129 154")
{
    static struct probe source = PROBE("A", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopTimerRef t = probe_timer(&timer, 100, 1);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry, true, 0);
    CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
    CFRunLoopAddTimer(LOOP, t, kCFRunLoopCommonModes);
    CFRunLoopAddObserver(LOOP, o, kCFRunLoopCommonModes);
    CFRunLoopSourceInvalidate(a);
    CFRunLoopTimerInvalidate(t);
    CFRunLoopObserverInvalidate(o);
    EXPECT(!CFRunLoopContainsSource(LOOP, a, kCFRunLoopCommonModes));
    EXPECT(!CFRunLoopContainsTimer(LOOP, t, kCFRunLoopCommonModes));
    EXPECT(!CFRunLoopContainsObserver(LOOP, o, kCFRunLoopCommonModes));
    CFRunLoopAddCommonMode(LOOP, MODE);
    EXPECT(!probe_mode_exists(LOOP, MODE));
    CFRelease(a);
    CFRelease(t);
    CFRelease(o);
}

TEST(the_common_modes_are_no_common_mode, "23")
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    CFRunLoopAddCommonMode(LOOP, kCFRunLoopCommonModes);
    probe_source_add(&source, 0, LOOP, kCFRunLoopCommonModes);
    EXPECT_LOG("A+kCFRunLoopDefaultMode");
}

static void runs_the_common_modes(void)
{
    for (int i = 0; i < 3; i++) {
        probe_run(kCFRunLoopCommonModes, 1000, false);
    }
}

static void runs_no_mode(void)
{
    for (int i = 0; i < 3; i++) {
        probe_run(NULL, 1000, false);
    }
}

TEST(the_common_modes_cannot_be_run, "24")
{
    static struct probe source = PROBE("A", NULL);
    probe_activities_add(LOOP, kCFRunLoopCommonModes);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, kCFRunLoopCommonModes));
    EXPECT_EQ(logged_lines("CFRunLoopRunInMode", runs_the_common_modes), 1);
    EXPECT_EQ(logged_lines("CFRunLoopRunInMode", runs_no_mode), 1);
    EXPECT_LOG("F F F F F F");
}

TEST(observers_and_nothing_else_leave_a_mode_empty, "25 27 155")
{
    clock_start();
    static struct probe observer = PROBE("O", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe port = PROBE("P", NULL);
    probe_observer_add(&observer, kCFRunLoopAllActivities, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, false), kCFRunLoopRunFinished);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("unknown"), 1000, false), kCFRunLoopRunFinished);
    EXPECT_EQ(observer.calls, 0);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 1000, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, false), kCFRunLoopRunTimedOut);
    CFRunLoopTimerInvalidate(t);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, false), kCFRunLoopRunFinished);
    CFRunLoopSourceRef p = probe_port_source_add(&port, 0, -1, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, false), kCFRunLoopRunTimedOut);
    CFRunLoopSourceInvalidate(p);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, false), kCFRunLoopRunFinished);
}

static void logs_text(void *info)
{
    probe_log(info);
}

TEST(a_block_fills_every_mode_that_it_matches, "25 26")
{
    clock_start();
    const void *names[] = {CFSTR("M"), CFSTR("N")};
    CFArrayRef array = CFArrayCreate(NULL, names, 2, &kCFTypeArrayCallBacks);
    CFRunLoopAddCommonMode(LOOP, CFSTR("C"));
    CRLRunLoopPerformFunction(LOOP, array, logs_text, (void *)(uintptr_t)"B1", NULL);
    CRLRunLoopPerformFunction(LOOP, kCFRunLoopCommonModes, logs_text, (void *)(uintptr_t)"B2", NULL);
    CRLRunLoopPerformFunction(LOOP, CFSTR("O"), logs_text, (void *)(uintptr_t)"B3", NULL);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunFinished);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("N"), 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("M"), 0, false), kCFRunLoopRunFinished);
    CFRunLoopAddCommonMode(LOOP, CFSTR("C"));
    CRLRunLoopPerformFunction(LOOP, CFSTR("C"), logs_text, (void *)(uintptr_t)"B4", NULL);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("C"), 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("O"), 0, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("O"), 0, false), kCFRunLoopRunFinished);
    EXPECT_LOG("B1 B2 B4 B3");
    CFRelease(array);
}
