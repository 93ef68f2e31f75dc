/* SPDX-License-Identifier: Apache-2.0 */
/* Loops, modes and common modes: rules 1 to 26. */
#define CONFORMANCE_GROUP "modes"
#include "conformance.h"

static CFStringRef string(const char *text)
{
    return CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
}

static void note_exists(CFStringRef mode)
{
    probe_note_string(probe_mode_exists(CFRunLoopGetCurrent(), mode) ? "is" : "is-not", mode);
}

static void mode_noted(struct probe *probe)
{
    (void)probe;
    probe_note_current_mode("mode", CFRunLoopGetCurrent());
}

static void sees_main_loop(void *context)
{
    probe_note_bool("main", CFRunLoopGetMain() == context);
    probe_note_bool("own", CFRunLoopGetCurrent() != context);
    probe_note_bool("again", CFRunLoopGetCurrent() == CFRunLoopGetCurrent());
}

CASE(one_loop_for_each_thread, "1 3", on_main)
{
    probe_on_thread(sees_main_loop, (void *)CFRunLoopGetMain());
    probe_note_bool("main", CFRunLoopGetMain() == CFRunLoopGetCurrent());
}

CASE(current_mode_in_a_run, "8", on_thread)
{
    static struct probe watcher = PROBE("O", mode_noted);
    probe_stage(kCFRunLoopDefaultMode);
    probe_observer_add(&watcher, kCFRunLoopEntry | kCFRunLoopExit, 0, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_note_current_mode("before", CFRunLoopGetCurrent());
    probe_run(kCFRunLoopDefaultMode, 0, false);
    probe_note_current_mode("after", CFRunLoopGetCurrent());
}

static void runs_inner_mode(struct probe *probe)
{
    (void)probe;
    probe_note_current_mode("outer", CFRunLoopGetCurrent());
    probe_run(CFSTR("inner"), 0, false);
    probe_note_current_mode("outer", CFRunLoopGetCurrent());
}

CASE(current_mode_in_nested_runs, "8 45", on_thread)
{
    static struct probe outer = PROBE("A", runs_inner_mode);
    static struct probe inner = PROBE("B", mode_noted);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceSignal(probe_source_add(&outer, 0, loop, kCFRunLoopDefaultMode));
    CFRunLoopSourceSignal(probe_source_add(&inner, 0, loop, CFSTR("inner")));
    probe_run(kCFRunLoopDefaultMode, 0, false);
}

static void looks_from_outside(void *context)
{
    probe_note_current_mode("seen", context);
    probe_note_bool("waiting", CFRunLoopIsWaiting(context));
    CFRunLoopStop(context);
}

CASE(current_mode_from_another_thread, "8 9", on_thread)
{
    struct probe_thread other;
    probe_stage(CFSTR("M"));
    probe_thread_when_waiting(&other, CFRunLoopGetCurrent(), looks_from_outside, (void *)CFRunLoopGetCurrent());
    probe_run(CFSTR("M"), 100, false);
    probe_thread_join(&other);
}

static void says_waiting(struct probe *probe)
{
    (void)probe;
    probe_note_bool("waiting", CFRunLoopIsWaiting(CFRunLoopGetCurrent()));
}

CASE(is_waiting_is_false_in_callouts, "9", on_thread)
{
    static struct probe source = PROBE("A", says_waiting);
    static struct probe timer = PROBE("T", says_waiting);
    static struct probe observer = PROBE("O", says_waiting);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    probe_observer_add(&observer, kCFRunLoopBeforeTimers | kCFRunLoopAfterWaiting | kCFRunLoopExit, 0, loop, kCFRunLoopDefaultMode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, loop, kCFRunLoopDefaultMode));
    probe_timer_add(&timer, 0.02, 0, loop, kCFRunLoopDefaultMode);
    says_waiting(NULL);
    probe_run(kCFRunLoopDefaultMode, 0.1, false);
    says_waiting(NULL);
}

CASE(fresh_loop_has_the_default_mode_only, "10", on_thread)
{
    CFArrayRef modes = CFRunLoopCopyAllModes(CFRunLoopGetCurrent());
    probe_note("count=%ld", (long)CFArrayGetCount(modes));
    probe_note_string("mode", CFArrayGetValueAtIndex(modes, 0));
    CFRelease(modes);
}

CASE(modes_come_into_being_by_adding, "11", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef a = probe_source(&source, 0);
    probe_run(CFSTR("run"), 0, false);
    CFRunLoopRemoveSource(loop, a, CFSTR("removed"));
    probe_note_bool("contained", CFRunLoopContainsSource(loop, a, CFSTR("asked")));
    probe_note_bool("date", CFRunLoopGetNextTimerFireDate(loop, CFSTR("dated")) > 0);
    CFRunLoopAddCommonMode(loop, CFSTR("common"));
    note_exists(CFSTR("run"));
    note_exists(CFSTR("removed"));
    note_exists(CFSTR("asked"));
    note_exists(CFSTR("dated"));
    note_exists(CFSTR("common"));
    CFRunLoopAddSource(loop, a, CFSTR("source"));
    probe_timer_add(&timer, 100, 0, loop, CFSTR("timer"));
    probe_observer_add(&observer, kCFRunLoopEntry, 0, loop, CFSTR("observer"));
    note_exists(CFSTR("source"));
    note_exists(CFSTR("timer"));
    note_exists(CFSTR("observer"));
    CFRunLoopRemoveSource(loop, a, CFSTR("source"));
    note_exists(CFSTR("source"));
    CFRunLoopAddSource(loop, a, kCFRunLoopCommonModes);
    note_exists(CFSTR("common"));
    note_exists(CFSTR("kCFRunLoopCommonModes"));
    CFRelease(a);
}

CASE(common_mode_with_items_comes_into_being, "11 19", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    probe_source_add(&source, 0, CFRunLoopGetCurrent(), kCFRunLoopCommonModes);
    note_exists(CFSTR("late"));
    CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), CFSTR("late"));
    note_exists(CFSTR("late"));
}

CASE(modes_are_equal_strings, "12", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFStringRef one = string("some mode");
    CFStringRef other = string("some mode");
    CFStringRef standard = string("kCFRunLoopDefaultMode");
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef a = probe_source_add(&source, 0, loop, one);
    probe_note_bool("contained", CFRunLoopContainsSource(loop, a, other));
    CFRunLoopSourceSignal(a);
    probe_run(other, 0, true);
    CFRunLoopAddSource(loop, a, standard);
    CFRunLoopSourceSignal(a);
    probe_run(kCFRunLoopDefaultMode, 0, true);
    CFRelease(one);
    CFRelease(other);
    CFRelease(standard);
}

CASE(common_modes_by_an_equal_string, "13", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    CFStringRef common = string("kCFRunLoopCommonModes");
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef a = probe_source_add(&source, 0, loop, common);
    probe_note_bool("in-default", CFRunLoopContainsSource(loop, a, kCFRunLoopDefaultMode));
    probe_note_bool("in-common", CFRunLoopContainsSource(loop, a, common));
    CFRunLoopRemoveSource(loop, a, common);
    CFRelease(common);
}

CASE(items_of_other_modes_stay_pending, "15", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe port = PROBE("P", NULL);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    int event = probe_event();
    probe_stage(kCFRunLoopDefaultMode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, loop, CFSTR("M")));
    probe_timer_add(&timer, -1, 0, loop, CFSTR("M"));
    probe_port_source_add(&port, 0, event, loop, CFSTR("M"));
    probe_event_post(event);
    probe_run(kCFRunLoopDefaultMode, 0.02, false);
    probe_note("A%d T%d P%d", source.calls, timer.calls, port.calls);
    probe_run(CFSTR("M"), 0.05, false);
    say_nothing_of_that(); /* whether a due timer or a ready port comes first is not specified */
    probe_note("A%d T%d P%d", source.calls, timer.calls, port.calls);
}

CASE(adding_twice_is_nothing, "16", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef a = probe_source_add(&source, 0, loop, kCFRunLoopDefaultMode);
    CFRunLoopAddSource(loop, a, kCFRunLoopDefaultMode);
    CFRunLoopAddSource(loop, a, CFSTR("M"));
    CFRunLoopRemoveSource(loop, a, kCFRunLoopDefaultMode);
    CFRunLoopRemoveSource(loop, a, kCFRunLoopDefaultMode);
    probe_note_bool("contained", CFRunLoopContainsSource(loop, a, CFSTR("M")));
    CFRunLoopRemoveSource(loop, a, CFSTR("M"));
}

CASE(common_modes_schedule_in_each_real_mode, "17 75 76", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopAddCommonMode(loop, CFSTR("M"));
    CFRunLoopSourceRef a = probe_source_add(&source, 0, loop, kCFRunLoopCommonModes);
    probe_note("schedules=%d", source.schedules);
    probe_note_bool("in-default", CFRunLoopContainsSource(loop, a, kCFRunLoopDefaultMode));
    probe_note_bool("in-M", CFRunLoopContainsSource(loop, a, CFSTR("M")));
}

CASE(common_modes_start_with_the_default_mode, "18", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    probe_source_add(&source, 0, CFRunLoopGetCurrent(), kCFRunLoopCommonModes);
}

CASE(declaring_a_common_mode_adds_the_items, "19", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    probe_source_add(&source, 0, loop, kCFRunLoopCommonModes);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, loop, kCFRunLoopCommonModes);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry, 0, loop, kCFRunLoopCommonModes);
    CFRunLoopAddCommonMode(loop, CFSTR("M"));
    CFRunLoopAddCommonMode(loop, CFSTR("M"));
    probe_note_bool("timer", CFRunLoopContainsTimer(loop, t, CFSTR("M")));
    probe_note_bool("observer", CFRunLoopContainsObserver(loop, o, CFSTR("M")));
    probe_run(CFSTR("M"), 0, false);
}

CASE(removal_from_one_common_mode, "20", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef a = probe_source_add(&source, 0, loop, kCFRunLoopCommonModes);
    CFRunLoopAddCommonMode(loop, CFSTR("M"));
    CFRunLoopRemoveSource(loop, a, CFSTR("M"));
    probe_note_bool("in-common", CFRunLoopContainsSource(loop, a, kCFRunLoopCommonModes));
    probe_note_bool("in-M", CFRunLoopContainsSource(loop, a, CFSTR("M")));
    CFRunLoopAddCommonMode(loop, CFSTR("M"));
    probe_note_bool("in-M", CFRunLoopContainsSource(loop, a, CFSTR("M")));
    CFRunLoopAddSource(loop, a, kCFRunLoopCommonModes);
    probe_note_bool("in-M", CFRunLoopContainsSource(loop, a, CFSTR("M")));
    CFRunLoopAddCommonMode(loop, CFSTR("N"));
}

CASE(removal_from_all_common_modes, "21", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(loop, a, kCFRunLoopDefaultMode);
    CFRunLoopRemoveSource(loop, a, kCFRunLoopCommonModes);
    probe_note_bool("not-common-stays", CFRunLoopContainsSource(loop, a, kCFRunLoopDefaultMode));
    CFRunLoopAddCommonMode(loop, CFSTR("M"));
    CFRunLoopAddSource(loop, a, CFSTR("M"));
    CFRunLoopAddSource(loop, a, CFSTR("N"));
    CFRunLoopAddSource(loop, a, kCFRunLoopCommonModes);
    CFRunLoopRemoveSource(loop, a, kCFRunLoopCommonModes);
    probe_note_bool("in-default", CFRunLoopContainsSource(loop, a, kCFRunLoopDefaultMode));
    probe_note_bool("in-M", CFRunLoopContainsSource(loop, a, CFSTR("M")));
    probe_note_bool("in-N", CFRunLoopContainsSource(loop, a, CFSTR("N")));
    probe_note_bool("in-common", CFRunLoopContainsSource(loop, a, kCFRunLoopCommonModes));
    CFRelease(a);
}

CASE(common_membership_is_of_the_set_only, "22", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef a = probe_source_add(&source, 0, loop, kCFRunLoopDefaultMode);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, loop, kCFRunLoopDefaultMode);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry, 0, loop, kCFRunLoopDefaultMode);
    probe_note_bool("source", CFRunLoopContainsSource(loop, a, kCFRunLoopCommonModes));
    probe_note_bool("timer", CFRunLoopContainsTimer(loop, t, kCFRunLoopCommonModes));
    probe_note_bool("observer", CFRunLoopContainsObserver(loop, o, kCFRunLoopCommonModes));
    CFRunLoopAddSource(loop, a, kCFRunLoopCommonModes);
    CFRunLoopAddTimer(loop, t, kCFRunLoopCommonModes);
    CFRunLoopAddObserver(loop, o, kCFRunLoopCommonModes);
    probe_note_bool("source", CFRunLoopContainsSource(loop, a, kCFRunLoopCommonModes));
    probe_note_bool("timer", CFRunLoopContainsTimer(loop, t, kCFRunLoopCommonModes));
    probe_note_bool("observer", CFRunLoopContainsObserver(loop, o, kCFRunLoopCommonModes));
}

CASE(common_modes_are_no_common_mode, "23", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopAddCommonMode(loop, kCFRunLoopCommonModes);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, loop, kCFRunLoopCommonModes);
    probe_note_bool("in-default", CFRunLoopContainsSource(loop, a, kCFRunLoopDefaultMode));
}

CASE(common_modes_cannot_be_run, "24", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    probe_stage(kCFRunLoopDefaultMode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, loop, kCFRunLoopCommonModes));
    probe_run(kCFRunLoopCommonModes, 10, false);
    probe_run(NULL, 10, false);
}

CASE(observers_do_not_fill_a_mode, "25 27 155", on_thread)
{
    probe_activities_add(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_run(kCFRunLoopDefaultMode, 10, false);
}

CASE(a_source_without_port_fills_a_mode, "25 98", on_thread)
{
    static struct probe port = PROBE("P", NULL);
    probe_activities_add(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_port_source_add(&port, 0, -1, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_run(kCFRunLoopDefaultMode, 0.02, false);
}

CASE(a_far_timer_fills_a_mode, "25", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    probe_activities_add(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_timer_add(&timer, 1000, 0, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_run(kCFRunLoopDefaultMode, 0.02, false);
}

CASE(unknown_mode_finishes, "27", on_thread)
{
    probe_activities_add(CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_run(CFSTR("nobody knows it"), 10, false);
    probe_run(CFSTR("nobody knows it"), 0, true);
}
