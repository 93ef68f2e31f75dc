/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: rules 109 to 145. Firings are logged as name@steps since the mark, with steps long enough for a busy machine. */
#define CONFORMANCE_GROUP "timers"
#include "conformance.h"

#include <math.h>

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

static const double step = 0.1;

static void notes_step(struct probe *probe)
{
    probe_note("%s@%d", probe->name, steps_since_mark(step));
}

static void spend_until(double steps)
{
    while (steps_since_mark(step / 10) < (int)(steps * 10)) {
    }
}

static struct probe silent_timer = {.name = "T", .action = notes_step, .logging = probe_is_silent};

CASE(interval_zero_or_less_is_one_shot, "109 139", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    const CFTimeInterval intervals[] = {0, -3, 0.25};
    for (int i = 0; i < 3; i++) {
        CFRunLoopTimerRef t = probe_timer(&timer, 100, intervals[i]);
        probe_note("interval=%g", CFRunLoopTimerGetInterval(t));
        probe_note_bool("repeats", CFRunLoopTimerDoesRepeat(t));
        CFRelease(t);
    }
}

CASE(past_date_is_due_at_once_and_reported_as_given, "111 142", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() - 30;
    CFRunLoopTimerRef t = probe_timer_at(&timer, date, 0);
    probe_note_bool("as-given", fabs(CFRunLoopTimerGetNextFireDate(t) - date) < 1e-3);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 0, false);
    probe_note_bool("valid", CFRunLoopTimerIsValid(t));
    CFRelease(t);
}

CASE(past_date_anchors_at_creation, "112", on_thread)
{
    mark_time();
    probe_timer_add(&silent_timer, -0.03, 2 * step, LOOP, MODE);
    spend_until(0.4);
    probe_run(MODE, 5 * step, false); /* fires at 0.4, 2, 4 steps */
}

CASE(absolute_date_near_the_epoch, "112", on_thread) /* as listing 3-11 of the guide */
{
    mark_time();
    CFRunLoopTimerRef t = probe_timer_at(&silent_timer, 0.1, 3 * step);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRelease(t);
    probe_run(MODE, 4.5 * step, false);
}

CASE(limits_of_dates, "113", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    const CFAbsoluteTime dates[] = {1e300, INFINITY, -1e300, -INFINITY};
    for (int i = 0; i < 4; i++) {
        CFRunLoopTimerRef t = probe_timer_at(&timer, dates[i], 0);
        if (dates[i] > 0) {
            probe_note("date=%.1f", CFRunLoopTimerGetNextFireDate(t));
        }
        CFRunLoopAddTimer(LOOP, t, MODE);
        probe_run(MODE, 0, false);
        CFRunLoopTimerInvalidate(t);
        CFRelease(t);
    }
}

CASE(huge_interval_fires_once, "113 139", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 1e300);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 0.02, false);
    probe_note_bool("valid", CFRunLoopTimerIsValid(t));
    probe_note_bool("repeats", CFRunLoopTimerDoesRepeat(t));
    CFRunLoopTimerInvalidate(t);
    CFRelease(t);
}

CASE(timer_does_not_fire_early, "114", on_thread)
{
    static struct probe timer = PROBE("T", probe_stops_loop);
    for (int i = 1; i <= 5; i++) {
        mark_time();
        probe_timer_add(&timer, 0.01 * i, 0, LOOP, MODE);
        probe_run(MODE, 100, false);
        probe_note_bool("not-early", steps_since_mark(0.01 * i) >= 1);
    }
}

CASE(timer_is_in_one_loop_at_most, "115 116", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopRef other = CFRunLoopGetMain();
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, LOOP, MODE);
    CFRetain(t);
    CFRunLoopAddTimer(other, t, MODE);
    CFRunLoopAddTimer(LOOP, t, CFSTR("M"));
    probe_note_bool("other", CFRunLoopContainsTimer(other, t, MODE));
    probe_note_bool("M", CFRunLoopContainsTimer(LOOP, t, CFSTR("M")));
    CFRunLoopRemoveTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(other, t, MODE);
    probe_note_bool("other", CFRunLoopContainsTimer(other, t, MODE));
    CFAbsoluteTime date = CFRunLoopTimerGetNextFireDate(t);
    CFRunLoopRemoveTimer(LOOP, t, CFSTR("M"));
    probe_note_bool("valid", CFRunLoopTimerIsValid(t));
    probe_note_bool("date", fabs(CFRunLoopTimerGetNextFireDate(t) - date) < 1e-3);
    CFRunLoopAddTimer(other, t, MODE);
    probe_note_bool("other", CFRunLoopContainsTimer(other, t, MODE));
    CFRunLoopTimerInvalidate(t);
    CFRelease(t);
}

static void stalls(struct probe *probe)
{
    notes_step(probe);
    if (probe->calls == 1) {
        spend_until(3.5);
    }
}

CASE(missed_periods_coalesce_on_the_grid, "118 119", on_thread)
{
    static struct probe timer = {.name = "T", .action = stalls, .logging = probe_is_silent};
    mark_time();
    probe_timer_add(&timer, step, step, LOOP, MODE);
    probe_run(MODE, 5.5 * step, false); /* 1, then 4 and 5 */
}

CASE(stalled_loop_fires_once, "118", on_thread)
{
    mark_time();
    probe_timer_add(&silent_timer, step, step, LOOP, MODE);
    spend_until(2.5);
    probe_run(MODE, 2 * step, false); /* 2.5 for 1 and 2; then 3 and 4 */
}

static void runs_nested_for_three_steps(struct probe *probe)
{
    notes_step(probe);
    if (probe->calls == 1) {
        probe_log("{");
        probe_run(MODE, 2.5 * step, false);
        probe_log("}");
    }
}

CASE(nested_run_skips_the_firing_timer, "122", on_thread)
{
    static struct probe timer = {.name = "T", .action = runs_nested_for_three_steps, .logging = probe_is_silent};
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    mark_time();
    probe_timer_add(&timer, step, step, LOOP, MODE);
    probe_run(MODE, 5.5 * step, false);
}

static CFAbsoluteTime given_date;

static void notes_dates(struct probe *probe)
{
    probe_note_bool("own", fabs(CFRunLoopTimerGetNextFireDate(probe_timer_of(probe)) - given_date) < 1e-3);
    probe_note_bool("loop", fabs(CFRunLoopGetNextTimerFireDate(LOOP, MODE) - given_date) < 1e-3);
}

CASE(dates_during_the_callback, "123 131", on_thread)
{
    static struct probe timer = PROBE("T", notes_dates);
    given_date = CFAbsoluteTimeGetCurrent() + 0.02;
    CFRunLoopTimerRef t = probe_timer_at(&timer, given_date, 1000);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 0.2, false);
    probe_note_bool("next", fabs(CFRunLoopTimerGetNextFireDate(t) - given_date - 1000) < 1);
    probe_note_bool("loop", fabs(CFRunLoopGetNextTimerFireDate(LOOP, MODE) - given_date - 1000) < 1);
    CFRelease(t);
}

CASE(one_shot_is_valid_in_its_callback, "124", on_thread)
{
    static struct probe timer = PROBE("T", probe_notes_validity);
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 0.02, false);
    probe_note_bool("valid", CFRunLoopTimerIsValid(t));
    probe_note_bool("contained", CFRunLoopContainsTimer(LOOP, t, MODE));
    CFRelease(t);
}

static double date_offset;

static void sets_date_once(struct probe *probe)
{
    notes_step(probe);
    if (probe->calls == 1) {
        CFRunLoopTimerSetNextFireDate(probe_timer_of(probe), CFAbsoluteTimeGetCurrent() + date_offset);
    }
}

CASE(date_set_in_a_one_shots_callback_is_lost, "125", on_thread)
{
    static struct probe timer = {.name = "T", .action = sets_date_once, .logging = probe_is_silent};
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    date_offset = 0.02;
    mark_time();
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, step, false);
    probe_note_bool("valid", CFRunLoopTimerIsValid(t));
    CFRelease(t);
}

CASE(later_date_set_in_the_callback, "126", on_thread)
{
    static struct probe timer = {.name = "T", .action = sets_date_once, .logging = probe_is_silent};
    date_offset = 2.5 * step;
    mark_time();
    probe_timer_add(&timer, step, 2 * step, LOOP, MODE);
    probe_run(MODE, 8.4 * step, false); /* 1; 3.5, 5.5, 7.5 */
}

CASE(past_date_set_in_the_callback, "126", on_thread)
{
    static struct probe timer = {.name = "T", .action = sets_date_once, .logging = probe_is_silent};
    date_offset = -1;
    mark_time();
    probe_timer_add(&timer, step / 2, 2 * step, LOOP, MODE);
    probe_run(MODE, 6 * step, false); /* 0.5, 0.5, 2.5, 4.5 */
}

CASE(date_set_outside_moves_the_phase, "127 128", on_thread)
{
    mark_time();
    CFRunLoopTimerRef t = probe_timer_add(&silent_timer, 10 * step, 2 * step, LOOP, MODE);
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() + 1.5 * step);
    probe_run(MODE, 6.2 * step, false); /* 1.5, 3.5, 5.5 */
}

CASE(date_set_before_adding, "128", on_thread)
{
    mark_time();
    CFRunLoopTimerRef t = probe_timer(&silent_timer, 1000, 0);
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() + 1.5 * step);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRelease(t);
    probe_run(MODE, 3 * step, false);
}

CASE(date_in_several_modes, "128 131", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopTimerRef t = probe_timer_add(&timer, 1000, 0, LOOP, MODE);
    CFRunLoopAddTimer(LOOP, t, CFSTR("M"));
    CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() + 500;
    CFRunLoopTimerSetNextFireDate(t, date);
    probe_note_bool("default", fabs(CFRunLoopGetNextTimerFireDate(LOOP, MODE) - date) < 1e-3);
    probe_note_bool("M", fabs(CFRunLoopGetNextTimerFireDate(LOOP, CFSTR("M")) - date) < 1e-3);
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent() - 1);
    probe_run(CFSTR("M"), 0, false);
    probe_run(MODE, 0, false);
}

CASE(invalid_timer, "127 129 130 141", on_thread)
{
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRunLoopTimerRef t = probe_timer(&timer, 100, 1);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(LOOP, t, CFSTR("M"));
    CFRunLoopTimerInvalidate(t);
    CFRunLoopTimerInvalidate(t);
    CFRunLoopTimerContext context = {.version = 0};
    CFRunLoopTimerGetContext(t, &context);
    probe_note_bool("info", context.info != NULL);
    probe_note_bool("valid", CFRunLoopTimerIsValid(t));
    probe_note_bool("default", CFRunLoopContainsTimer(LOOP, t, MODE));
    probe_note_bool("M", CFRunLoopContainsTimer(LOOP, t, CFSTR("M")));
    CFRunLoopTimerSetNextFireDate(t, CFAbsoluteTimeGetCurrent());
    probe_note("date=%g", CFRunLoopTimerGetNextFireDate(t));
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_note_bool("default", CFRunLoopContainsTimer(LOOP, t, MODE));
    CFRelease(t);
}

CASE(next_date_of_a_mode, "131", on_thread)
{
    static struct probe probes[] = {PROBE("T1", NULL), PROBE("T2", NULL), PROBE("T3", NULL)};
    CFAbsoluteTime now = CFAbsoluteTimeGetCurrent();
    probe_note("unknown=%g", CFRunLoopGetNextTimerFireDate(LOOP, CFSTR("M")));
    probe_timer_add(&probes[0], 300, 0, LOOP, MODE);
    probe_timer_add(&probes[1], 100, 0, LOOP, MODE);
    probe_timer_add(&probes[2], 200, 0, LOOP, MODE);
    probe_note_bool("earliest", fabs(CFRunLoopGetNextTimerFireDate(LOOP, MODE) - now - 100) < 5);
    CFRunLoopTimerInvalidate(probe_timer_of(&probes[1]));
    probe_note_bool("next", fabs(CFRunLoopGetNextTimerFireDate(LOOP, MODE) - now - 200) < 5);
    CFRunLoopTimerInvalidate(probe_timer_of(&probes[0]));
    CFRunLoopTimerInvalidate(probe_timer_of(&probes[2]));
    probe_note("none=%g", CFRunLoopGetNextTimerFireDate(LOOP, MODE));
}

static void postpones_its_context(struct probe *probe)
{
    CFRunLoopTimerSetNextFireDate(probe_timer_of(probe->context), CFAbsoluteTimeGetCurrent() + 1000);
}

static void two_due_timers(void (*action)(struct probe *))
{
    static struct probe second = PROBE("T2", NULL);
    static struct probe first = {.name = "T1", .context = &second};
    static struct probe third = PROBE("T3", NULL);
    first.action = action;
    CFAbsoluteTime base = CFAbsoluteTimeGetCurrent() + 0.05;
    CFRunLoopTimerRef timers[] = {probe_timer_at(&second, base + 0.002, 0), probe_timer_at(&first, base, 0),
                                  probe_timer_at(&third, base + 0.004, 0)};
    for (int i = 0; i < 3; i++) {
        CFRunLoopAddTimer(LOOP, timers[i], MODE);
    }
    while (CFAbsoluteTimeGetCurrent() < base + 0.01) {
    }
    probe_run(MODE, 0, false);
    for (int i = 0; i < 3; i++) {
        CFRelease(timers[i]);
    }
}

CASE(due_timers_in_order_of_date, "34 132", on_thread)
{
    two_due_timers(NULL);
}

CASE(due_timer_invalidated_by_another, "132", on_thread)
{
    two_due_timers(probe_invalidates_its_context);
}

CASE(due_timer_removed_by_another, "132", on_thread)
{
    two_due_timers(probe_removes_its_context);
}

CASE(due_timer_postponed_by_another, "132", on_thread)
{
    two_due_timers(postpones_its_context);
}

CASE(nested_run_fires_the_other_due_timers, "122 132", on_thread)
{
    two_due_timers(probe_runs_nested);
}

CASE(order_has_no_effect, "133", on_thread)
{
    CFRunLoopTimerContext context = {.version = 0};
    CFRunLoopTimerRef t = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 100, 0, 0, -9, NULL, &context);
    probe_note("order=%ld", (long)CFRunLoopTimerGetOrder(t));
    CFRelease(t);
}

CASE(equal_dates_fire_in_order_of_adding, "134", on_thread)
{
    static struct probe probes[] = {PROBE("T0", NULL), PROBE("T1", NULL), PROBE("T2", NULL), PROBE("T3", NULL)};
    const int adding[] = {2, 0, 3, 1};
    CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() + 0.02;
    for (int i = 0; i < 4; i++) {
        probe_timer_at(&probes[i], date, 0);
    }
    for (int i = 0; i < 4; i++) {
        CFRunLoopAddTimer(LOOP, probe_timer_of(&probes[adding[i]]), MODE);
    }
    mark_time();
    while (steps_since_mark(0.03) < 1) {
    }
    probe_run(MODE, 0, false);
}

CASE(timer_context_of_a_one_shot, "135", on_thread)
{
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRunLoopTimerRef t = probe_timer(&timer, 0, 0);
    probe_log("|");
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 0.02, false);
    CFRelease(t);
}

static void invalidates_itself(struct probe *probe)
{
    CFRunLoopTimerInvalidate(probe_timer_of(probe));
    probe_log("goes-on");
}

CASE(timer_context_when_it_invalidates_itself, "136 129", on_thread)
{
    static struct probe timer = {.name = "T", .action = invalidates_itself, .logging = probe_logs_context};
    probe_timer_add(&timer, 0, 1, LOOP, MODE);
    probe_log("|");
    probe_run(MODE, 0.02, false);
}

CASE(timer_context_of_a_never_used_one, "137", on_thread)
{
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRelease(probe_timer(&timer, 100, 0));
}

CASE(loop_holds_the_timer, "117", on_thread)
{
    static struct probe timer = {.name = "T", .logging = probe_logs_context};
    CFRunLoopTimerRef t = probe_timer_add(&timer, 100, 0, LOOP, MODE);
    probe_log("added");
    CFRunLoopRemoveTimer(LOOP, t, MODE);
    probe_log("removed");
}

#if defined(__BLOCKS__)
CASE(timer_with_handler, "138", on_thread)
{
    int local = 5;
    CFRunLoopTimerRef t = CFRunLoopTimerCreateWithHandler(NULL, CFAbsoluteTimeGetCurrent(), 0.001, 0, 0, ^(CFRunLoopTimerRef it) {
        probe_note("handler%d", local);
        probe_note_bool("valid", CFRunLoopTimerIsValid(it));
        CFRunLoopTimerInvalidate(it);
        probe_note("still%d", local);
    });
    local = 6;
    CFRunLoopAddTimer(LOOP, t, MODE);
    probe_run(MODE, 1, false);
    CFRelease(t);
}
#endif

CASE(tolerance, "140", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    CFRunLoopTimerRef t = probe_timer(&timer, 100, 1);
    const CFTimeInterval given[] = {0.2, 5, -1};
    probe_note("%g", CFRunLoopTimerGetTolerance(t));
    for (int i = 0; i < 3; i++) {
        CFRunLoopTimerSetTolerance(t, given[i]);
        probe_note("%g", CFRunLoopTimerGetTolerance(t));
    }
    CFRelease(t);
}

CASE(timer_in_no_mode_never_fires, "144", on_thread)
{
    static struct probe timer = PROBE("T", NULL);
    probe_stage(MODE);
    CFRunLoopTimerRef t = probe_timer(&timer, 0.01, 0);
    probe_run(MODE, 0.05, false);
    CFRelease(t);
}

CASE(due_timer_waits_for_its_mode, "142", on_thread)
{
    static struct probe idle = PROBE("idle", NULL);
    mark_time();
    probe_source_add(&idle, 0, LOOP, MODE);
    probe_timer_add(&silent_timer, 0.2 * step, step, LOOP, CFSTR("M"));
    probe_run(MODE, 2.5 * step, false);
    probe_run(CFSTR("M"), 0, false);
    probe_run(CFSTR("M"), 0, false);
}

CASE(removed_and_added_timer_keeps_its_date, "116", on_thread)
{
    mark_time();
    CFRunLoopTimerRef t = probe_timer(&silent_timer, 1.5 * step, 0);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopRemoveTimer(LOOP, t, MODE);
    CFRunLoopAddTimer(LOOP, t, CFSTR("M"));
    CFRelease(t);
    probe_run(MODE, 0, false);
    probe_run(CFSTR("M"), 3 * step, false);
}

static void adds_due_timer(struct probe *probe)
{
    probe_timer_add(probe->context, -1, 0, LOOP, MODE);
}

CASE(due_timer_added_by_a_timer_comes_in_the_next_pass, "132", on_thread)
{
    static struct probe second = PROBE("T2", NULL);
    static struct probe first = {.name = "T1", .action = adds_due_timer, .context = &second};
    probe_stage(MODE);
    probe_timer_add(&first, 0.01, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
}
