/* SPDX-License-Identifier: Apache-2.0 */
/* Observers: rules 146 to 160. */
#define CONFORMANCE_GROUP "observers"
#include "conformance.h"

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

CASE(observer_is_in_one_loop_at_most, "146", on_thread)
{
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopRef other = CFRunLoopGetMain();
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry, true, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRunLoopAddObserver(other, o, MODE);
    CFRunLoopAddObserver(LOOP, o, CFSTR("M"));
    probe_note_bool("other", CFRunLoopContainsObserver(other, o, MODE));
    probe_note_bool("M", CFRunLoopContainsObserver(LOOP, o, CFSTR("M")));
    CFRunLoopRemoveObserver(LOOP, o, MODE);
    CFRunLoopRemoveObserver(LOOP, o, CFSTR("M"));
    CFRunLoopAddObserver(other, o, MODE);
    probe_note_bool("other", CFRunLoopContainsObserver(other, o, MODE));
    CFRunLoopObserverInvalidate(o);
    CFRelease(o);
}

CASE(observer_of_chosen_activities, "147 158", on_thread)
{
    static struct probe two = {.name = "O", .action = probe_notes_activity, .logging = probe_is_silent};
    static struct probe elsewhere = PROBE("M", NULL);
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_observer_add(&two, kCFRunLoopBeforeSources | kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_observer_add(&elsewhere, kCFRunLoopAllActivities, 0, LOOP, CFSTR("M"));
    probe_run(MODE, 0.02, false);
}

CASE(observers_by_order_then_adding, "148", on_thread)
{
    static struct probe probes[] = {PROBE("a2", NULL), PROBE("b0", NULL), PROBE("c2", NULL), PROBE("d-1", NULL)};
    const CFIndex orders[] = {2, 0, 2, -1};
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    for (int i = 0; i < 4; i++) {
        probe_observer_add(&probes[i], kCFRunLoopEntry, orders[i], LOOP, MODE);
    }
    probe_run(MODE, 0, false);
}

CASE(observer_added_twice_is_called_once, "149", on_thread)
{
    static struct probe observer = PROBE("O", NULL);
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry, 0, LOOP, MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRunLoopAddObserver(LOOP, o, kCFRunLoopCommonModes);
    probe_run(MODE, 0, false);
}

static void adds_its_context(struct probe *probe)
{
    if (probe->calls == 1) {
        probe_observer_add(probe->context, kCFRunLoopAllActivities, 5, LOOP, MODE);
    }
}

CASE(observer_invalidated_in_the_same_notification, "150", on_thread)
{
    static struct probe second = PROBE("O2", NULL);
    static struct probe first = {.name = "O1", .action = probe_invalidates_its_context, .context = &second};
    probe_stage(MODE);
    probe_observer_add(&first, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_observer_add(&second, kCFRunLoopBeforeTimers, 1, LOOP, MODE);
    CFRetain(probe_observer_of(&second));
    probe_run(MODE, 0, false);
}

CASE(observer_removed_in_the_same_notification, "150", on_thread)
{
    static struct probe second = PROBE("O2", NULL);
    static struct probe first = {.name = "O1", .action = probe_removes_its_context, .context = &second};
    probe_stage(MODE);
    probe_observer_add(&first, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_observer_add(&second, kCFRunLoopBeforeTimers, 1, LOOP, MODE);
    CFRetain(probe_observer_of(&second));
    probe_run(MODE, 0, false);
    probe_run(MODE, 0, false);
}

CASE(observer_added_in_a_notification, "150 159", on_thread)
{
    static struct probe second = {.name = "O2", .action = probe_notes_activity, .logging = probe_is_silent};
    static struct probe first = {.name = "O1", .action = adds_its_context, .context = &second};
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_observer_add(&first, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    probe_run(MODE, 0.02, false);
}

CASE(observer_is_not_reentered, "151", on_thread)
{
    static struct probe nester = PROBE("O", probe_runs_nested);
    probe_stage(MODE);
    probe_observer_add(&nester, kCFRunLoopBeforeTimers | kCFRunLoopBeforeSources, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
}

CASE(one_shot_observer, "152", on_thread)
{
    static struct probe observer = {.name = "O", .action = probe_notes_activity, .logging = probe_is_silent};
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopBeforeSources | kCFRunLoopExit, false, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0, false);
    probe_note_bool("valid", CFRunLoopObserverIsValid(o));
    CFRelease(o);
}

CASE(one_shot_observer_in_its_callout, "152", on_thread)
{
    static struct probe observer = PROBE("O", probe_notes_validity);
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopAllActivities, false, 0);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_run(MODE, 0, false);
    CFRelease(o);
}

CASE(observer_context, "153", on_thread)
{
    static struct probe observer = {.name = "O", .logging = probe_logs_context};
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry | kCFRunLoopExit, 0, LOOP, MODE);
    probe_run(MODE, 0, false);
    CFRetain(o);
    CFRunLoopRemoveObserver(LOOP, o, MODE);
    probe_log("removed");
    CFRelease(o);
}

static void invalidates_itself(struct probe *probe)
{
    CFRunLoopObserverInvalidate(probe_observer_of(probe));
    probe_log("goes-on");
}

CASE(observer_invalidates_itself, "154", on_thread)
{
    static struct probe observer = {.name = "O", .action = invalidates_itself, .logging = probe_logs_context};
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopAllActivities, 0, LOOP, MODE);
    CFRunLoopAddObserver(LOOP, o, CFSTR("M"));
    CFRetain(o);
    probe_run(MODE, 0.02, false);
    probe_note_bool("M", CFRunLoopContainsObserver(LOOP, o, CFSTR("M")));
    CFRunLoopObserverInvalidate(o);
    CFRelease(o);
}

CASE(observer_without_callout, "156", on_thread)
{
    CFRunLoopObserverContext context = {.version = 0};
    CFRunLoopObserverRef o = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, NULL, &context);
    probe_stage(MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    probe_run(MODE, 0, false);
    CFRelease(o);
}

CASE(observer_reports_what_it_was_made_with, "157", on_thread)
{
    static struct probe observer = PROBE("O", NULL);
    CFRunLoopObserverRef o = probe_observer(&observer, kCFRunLoopEntry | kCFRunLoopBeforeWaiting, false, -4);
    CFRunLoopObserverContext context = {.version = 0};
    probe_note("activities=%lu", (unsigned long)CFRunLoopObserverGetActivities(o));
    probe_note("order=%ld", (long)CFRunLoopObserverGetOrder(o));
    probe_note_bool("repeats", CFRunLoopObserverDoesRepeat(o));
    probe_note_bool("valid", CFRunLoopObserverIsValid(o));
    CFRunLoopObserverGetContext(o, &context);
    probe_note_bool("info", context.info == &observer);
    CFRunLoopObserverInvalidate(o);
    CFRunLoopObserverGetContext(o, &context);
    probe_note_bool("info", context.info != NULL);
    probe_note_bool("valid", CFRunLoopObserverIsValid(o));
    CFRelease(o);
}

CASE(all_activities_is_a_mask, "158", on_thread)
{
    static struct probe observer = {.name = "O", .action = probe_notes_activity, .logging = probe_is_silent};
    static struct probe idle = PROBE("idle", NULL);
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopAllActivities, 0, LOOP, MODE);
    probe_note("mask=%lx", (unsigned long)CFRunLoopObserverGetActivities(o));
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_run(MODE, 0.02, false);
}

static void adds_exit_observer(struct probe *probe)
{
    static struct probe late = {.name = "late", .action = probe_notes_activity, .logging = probe_is_silent};
    (void)probe;
    probe_observer_add(&late, kCFRunLoopExit, 0, LOOP, MODE);
}

CASE(observer_added_by_a_source_sees_the_exit, "159", on_thread)
{
    static struct probe source = PROBE("S0", adds_exit_observer);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, true);
}

static void outlasts_the_run(struct probe *probe)
{
    (void)probe;
    mark_time();
    while (steps_since_mark(0.06) < 1) {
    }
}

CASE(slow_observer_ends_the_run_by_timeout, "160", on_thread)
{
    static struct probe observer = PROBE("slow", outlasts_the_run);
    probe_stage(MODE);
    probe_observer_add(&observer, kCFRunLoopBeforeSources, 0, LOOP, MODE);
    probe_run(MODE, 0.03, false);
}

#if defined(__BLOCKS__)
CASE(observer_with_handler, "147 152", on_thread)
{
    static struct probe idle = PROBE("idle", NULL);
    int local = 3;
    CFRunLoopObserverRef o = CFRunLoopObserverCreateWithHandler(NULL, kCFRunLoopEntry | kCFRunLoopExit, true, 0,
                                                                ^(CFRunLoopObserverRef it, CFRunLoopActivity activity) {
                                                                    probe_note("handler%d:%s", local, probe_activity_name(activity));
                                                                    probe_note_bool("valid", CFRunLoopObserverIsValid(it));
                                                                });
    local = 4;
    probe_source_add(&idle, 0, LOOP, MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRelease(o);
    probe_run(MODE, 0, false);
}
#endif
