/* SPDX-License-Identifier: Apache-2.0 */
/* Which wake-ups are kept, which are dropped, and what wakes a loop without one: rules 61 to 71. */
#define CONFORMANCE_GROUP "wakeups"
#include "conformance.h"

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

CASE(wake_up_before_a_run_is_dropped, "62", on_thread)
{
    probe_stage(MODE);
    CFRunLoopWakeUp(LOOP);
    probe_run(MODE, 0.05, false);
}

CASE(wake_up_between_runs_is_dropped, "62", on_thread)
{
    probe_stage(MODE);
    probe_run(MODE, 0, false);
    CFRunLoopWakeUp(LOOP);
    probe_run(MODE, 0.05, false);
}

CASE(wake_up_in_a_timer_is_dropped, "63", on_thread)
{
    static struct probe timer = PROBE("T", probe_wakes_loop);
    probe_stage(MODE);
    probe_timer_add(&timer, 0.02, 0, LOOP, MODE);
    probe_run(MODE, 0.1, false);
}

CASE(wake_up_in_a_port_source_is_dropped, "63", on_thread)
{
    static struct probe port = PROBE("S1", probe_wakes_loop);
    int event = probe_event();
    probe_stage(MODE);
    probe_event_post(event);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    probe_run(MODE, 0.1, false);
}

static void wake_up_in_activity(CFRunLoopActivity activity)
{
    static struct probe waker = PROBE("wake", probe_wakes_loop);
    probe_stage(MODE);
    CFRunLoopObserverRef observer = probe_observer(&waker, activity, false, 0);
    CFRunLoopAddObserver(LOOP, observer, MODE);
    CFRelease(observer);
    probe_run(MODE, 0.1, false);
}

CASE(wake_up_after_waiting_is_dropped, "63", on_thread)
{
    wake_up_in_activity(kCFRunLoopAfterWaiting);
}

CASE(wake_up_in_entry_is_kept, "64", on_thread)
{
    wake_up_in_activity(kCFRunLoopEntry);
}

CASE(wake_up_before_timers_is_kept, "64", on_thread)
{
    wake_up_in_activity(kCFRunLoopBeforeTimers);
}

CASE(wake_up_before_sources_is_kept, "64", on_thread)
{
    wake_up_in_activity(kCFRunLoopBeforeSources);
}

CASE(wake_up_before_waiting_is_kept, "64", on_thread)
{
    wake_up_in_activity(kCFRunLoopBeforeWaiting);
}

CASE(wake_up_in_a_source_is_taken_by_the_poll, "46 64", on_thread)
{
    static struct probe source = PROBE("S0", probe_wakes_loop);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0.1, false);
}

#if defined(__BLOCKS__)
CASE(wake_up_in_a_block_is_kept, "64", on_thread)
{
    probe_stage(MODE);
    CFRunLoopPerformBlock(LOOP, MODE, ^{
        probe_log("B");
        CFRunLoopWakeUp(CFRunLoopGetCurrent());
    });
    probe_run(MODE, 0.1, false);
}

CASE(wake_up_in_a_block_after_the_wait_is_dropped, "63", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    CFRunLoopObserverRef observer =
        CFRunLoopObserverCreateWithHandler(NULL, kCFRunLoopAfterWaiting, false, 0, ^(CFRunLoopObserverRef it, CFRunLoopActivity activity) {
            (void)it;
            (void)activity;
            CFRunLoopPerformBlock(CFRunLoopGetCurrent(), MODE, ^{
                probe_log("B");
                CFRunLoopWakeUp(CFRunLoopGetCurrent());
            });
        });
    CFRunLoopAddObserver(LOOP, observer, MODE);
    CFRelease(observer);
    probe_timer_add(&timer, 0.02, 0, LOOP, MODE);
    probe_run(MODE, 0.1, false);
}
#endif

static void runs_another_mode_shortly(struct probe *probe)
{
    (void)probe;
    probe_run(CFSTR("inner"), 0.02, false);
}

static void wake_up_then_nested_run(CFRunLoopActivity activity)
{
    static struct probe waker = PROBE("wake", probe_wakes_loop);
    static struct probe nester = PROBE("nest", runs_another_mode_shortly);
    static struct probe idle = PROBE("idle", NULL);
    probe_stage(MODE);
    probe_activities_add(LOOP, CFSTR("inner"));
    probe_source_add(&idle, 1, LOOP, CFSTR("inner"));
    CFRunLoopObserverRef first = probe_observer(&waker, activity, false, 0);
    CFRunLoopObserverRef second = probe_observer(&nester, activity, false, 1);
    CFRunLoopAddObserver(LOOP, first, MODE);
    CFRunLoopAddObserver(LOOP, second, MODE);
    CFRelease(first);
    CFRelease(second);
    probe_run(MODE, 0.1, false);
}

CASE(one_wake_up_ends_one_wait_only, "46", on_thread)
{
    wake_up_then_nested_run(kCFRunLoopBeforeTimers);
}

CASE(wake_up_eaten_by_a_run_inside_before_waiting, "46 64", on_thread)
{
    wake_up_then_nested_run(kCFRunLoopBeforeWaiting);
}

CASE(a_run_inside_after_waiting_serves_what_ended_the_wait, "34 45", on_thread)
{
    static struct probe observer = PROBE("O", probe_runs_nested);
    static struct probe source = PROBE("S", NULL);
    static struct probe timer = PROBE("T", NULL);
    probe_observer_add(&observer, kCFRunLoopAfterWaiting, 0, LOOP, MODE);
    probe_source_add(&source, 0, LOOP, MODE);
    probe_timer_add(&timer, 0.05, 0, LOOP, MODE);
    probe_run(MODE, 0.1, false);
}

struct changes {
    CFRunLoopRef loop;
    struct probe *probe;
    CFTypeRef item;
    int event;
};

static void changes_without_waking(void *context)
{
    static struct probe source = PROBE("new", NULL);
    static struct probe observer = PROBE("O", NULL);
    struct changes *changes = context;
    CFRunLoopSourceSignal(probe_source_add(&source, 0, changes->loop, MODE));
    CFRunLoopObserverRef o = probe_observer_add(&observer, kCFRunLoopEntry, 0, changes->loop, MODE);
    CFRunLoopRemoveObserver(changes->loop, o, MODE);
    CFRunLoopSourceInvalidate((CFRunLoopSourceRef)(uintptr_t)changes->item);
}

CASE(changes_do_not_wake, "33 67", on_thread)
{
    static struct probe source = PROBE("old", NULL);
    struct probe_thread other;
    struct changes changes = {.loop = LOOP};
    probe_stage(MODE);
    changes.item = probe_source_add(&source, 0, LOOP, MODE);
    CFRetain(changes.item);
    probe_thread_when_waiting(&other, LOOP, changes_without_waking, &changes);
    probe_run(MODE, 0.3, false);
    probe_thread_join(&other);
    CFRelease(changes.item);
}

#if defined(__BLOCKS__)
static void queues_block(void *context)
{
    CFRunLoopPerformBlock(context, MODE, ^{
        probe_log("B");
    });
}

CASE(queueing_a_block_does_not_wake, "67 162", on_thread)
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, queues_block, LOOP);
    probe_run(MODE, 0.3, false);
    probe_thread_join(&other);
    probe_run(MODE, 0, false);
}
#endif

static void adds_timer(void *context)
{
    static struct probe timer = PROBE("T", NULL);
    probe_timer_add(&timer, 0.05, 0, context, MODE);
}

CASE(timer_added_while_asleep_fires_on_time, "68", on_thread)
{
    struct probe_thread other;
    probe_stage(MODE);
    probe_thread_when_waiting(&other, LOOP, adds_timer, LOOP);
    probe_run(MODE, 0.4, false);
    probe_thread_join(&other);
}

static void sets_date(void *context)
{
    CFRunLoopTimerSetNextFireDate(context, CFAbsoluteTimeGetCurrent() + 0.05);
}

CASE(date_set_while_asleep_fires_on_time, "69", on_thread)
{
    static struct probe timer = PROBE("T", probe_stops_loop);
    struct probe_thread other;
    probe_stage(MODE);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 1000, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, sets_date, t);
    probe_run(MODE, 100, false);
    probe_thread_join(&other);
}

static void adds_ready_port(void *context)
{
    static struct probe port = PROBE("S1", NULL);
    struct changes *changes = context;
    probe_port_source_add(&port, 0, changes->event, changes->loop, MODE);
}

CASE(port_added_while_asleep_is_live, "70 103", on_thread)
{
    struct probe_thread other;
    struct changes changes = {.loop = LOOP, .event = probe_event()};
    probe_stage(MODE);
    probe_event_post(changes.event);
    probe_thread_when_waiting(&other, LOOP, adds_ready_port, &changes);
    probe_run(MODE, 100, true);
    probe_thread_join(&other);
}

static void removes_timer(void *context)
{
    struct changes *changes = context;
    CFRunLoopRemoveTimer(changes->loop, (CFRunLoopTimerRef)(uintptr_t)changes->item, MODE);
}

CASE(removed_timer_leaves_no_wake_up, "71", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    struct probe_thread other;
    struct changes changes = {.loop = LOOP};
    probe_stage(MODE);
    changes.item = probe_timer(&timer, 0.15, 0);
    CFRunLoopAddTimer(LOOP, (CFRunLoopTimerRef)(uintptr_t)changes.item, MODE);
    probe_thread_when_waiting(&other, LOOP, removes_timer, &changes);
    probe_run(MODE, 0.4, false);
    probe_thread_join(&other);
}

CASE(timer_removed_before_the_run_leaves_no_wake_up, "71", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 0.05, 0, LOOP, MODE);
    CFRunLoopTimerInvalidate(t);
    probe_run(MODE, 0.2, false);
}
