/* SPDX-License-Identifier: Apache-2.0 */
/* Version-0 sources: rules 72 to 97. */
#define CONFORMANCE_GROUP "sources"
#include "conformance.h"

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

CASE(context_is_retained_once_and_released_at_the_end, "72 73", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_context | probe_logs_membership};
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopSourceInvalidate(a);
    probe_log("invalid");
    CFRelease(a);
}

static int replaced_info;

static const void *retains_as_another(const void *info)
{
    probe_note_bool("original", info == NULL);
    return &replaced_info;
}

static void releases_another(const void *info)
{
    probe_note_bool("released", info == &replaced_info);
}

static void performs_with_another(void *info)
{
    probe_note_bool("performed", info == &replaced_info);
}

CASE(context_keeps_what_retain_returned, "72 91", on_thread)
{
    CFRunLoopSourceContext context = {.retain = retains_as_another, .release = releases_another, .perform = performs_with_another};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &context);
    context.perform = NULL; /* the structure was copied */
    CFRunLoopSourceContext copy = {.version = 0};
    CFRunLoopSourceGetContext(a, &copy);
    probe_note_bool("stored", copy.info == &replaced_info);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopSourceInvalidate(a);
    CFRunLoopSourceGetContext(a, &copy);
    probe_note_bool("still-stored", copy.info == &replaced_info);
    CFRelease(a);
}

CASE(every_callback_may_be_missing, "74 97", on_thread)
{
    CFRunLoopSourceContext context = {.version = 0};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    CFRelease(a);
}

static struct probe observed_probe = {.name = "A", .logging = probe_logs_membership};

static void scheduled_in_mode(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    probe_note_bool("scheduled-in", CFRunLoopContainsSource(loop, probe_source_of(info), mode));
}

static void cancelled_from_mode(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    probe_note_bool("cancelled-in", CFRunLoopContainsSource(loop, probe_source_of(info), mode));
    probe_note_bool("valid", CFRunLoopSourceIsValid(probe_source_of(info)));
}

CASE(schedule_and_cancel_follow_the_change, "75 76 90", on_thread)
{
    CFRunLoopSourceContext context = {.info = &observed_probe, .schedule = scheduled_in_mode, .cancel = cancelled_from_mode};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &context);
    observed_probe.item = a;
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceInvalidate(a);
    CFRelease(a);
}

static pthread_t calling_thread;

static void scheduled_here(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)mode;
    probe_note_bool("caller", pthread_equal(calling_thread, pthread_self()) != 0);
    probe_note_bool("own-loop", loop == CFRunLoopGetCurrent());
}

static void adds_and_invalidates(void *context)
{
    CFRunLoopSourceContext source = {.schedule = scheduled_here, .cancel = scheduled_here};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &source);
    calling_thread = pthread_self();
    CFRunLoopAddSource(context, a, MODE);
    CFRunLoopRemoveSource(context, a, MODE);
    CFRelease(a);
}

CASE(schedule_and_cancel_run_on_the_calling_thread, "75 76", on_thread)
{
    probe_on_thread(adds_and_invalidates, LOOP);
}

CASE(signals_coalesce, "77", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    CFRunLoopSourceSignal(a);
    CFRunLoopSourceSignal(a);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0.05, false);
}

CASE(mark_is_cleared_before_perform, "78", on_thread)
{
    static struct probe source = PROBE("A", probe_signals_itself_once);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0.05, false);
}

CASE(mark_before_adding_is_kept, "79", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopSourceSignal(a);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRelease(a);
    probe_run(MODE, 0, true);
}

CASE(mark_survives_removal, "79 80", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("M"));
    probe_run(CFSTR("M"), 0, true);
    CFRunLoopRemoveSource(LOOP, a, CFSTR("M"));
    CFRunLoopSourceSignal(a);
    CFRunLoopAddSource(LOOP, a, MODE);
    probe_run(MODE, 0, true);
    CFRelease(a);
}

CASE(signalling_an_invalid_source_is_nothing, "81 89", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopSourceInvalidate(a);
    CFRunLoopSourceSignal(a);
    CFRunLoopAddSource(LOOP, a, MODE);
    probe_note_bool("contained", CFRunLoopContainsSource(LOOP, a, MODE));
    probe_run(MODE, 0, true);
    CFRelease(a);
}

CASE(equal_orders_go_by_time_of_signal, "83", on_thread)
{
    static struct probe probes[] = {PROBE("0", NULL), PROBE("1", NULL), PROBE("2", NULL), PROBE("3", NULL),
                                    PROBE("4", NULL), PROBE("5", NULL), PROBE("6", NULL), PROBE("7", NULL)};
    const int signals[] = {3, 1, 7, 0, 5, 2, 1, 6, 4};
    for (int i = 0; i < 8; i++) {
        probe_source_add(&probes[i], 0, LOOP, MODE);
    }
    for (int i = 0; i < 9; i++) {
        CFRunLoopSourceSignal(probe_source_of(&probes[signals[i]]));
        double until = probe_seconds() + 0.001; /* the toolchain compares clock values */
        while (probe_seconds() < until) {
        }
    }
    probe_run(MODE, 0, false);
}

CASE(collected_then_invalidated_is_not_performed, "84", on_thread)
{
    static struct probe b = {.name = "B", .logging = probe_logs_membership};
    static struct probe a = {.name = "A", .action = probe_invalidates_its_context, .context = &b};
    static struct probe c = PROBE("C", NULL);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&b, 1, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&c, 2, LOOP, MODE));
    probe_run(MODE, 0, false);
}

CASE(collected_then_removed_is_performed, "84", on_thread)
{
    static struct probe b = {.name = "B", .logging = probe_logs_membership};
    static struct probe a = {.name = "A", .action = probe_removes_its_context, .context = &b};
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    CFRunLoopSourceRef second = probe_source(&b, 1);
    CFRunLoopAddSource(LOOP, second, MODE);
    CFRunLoopSourceSignal(second);
    probe_run(MODE, 0, false);
    CFRelease(second);
}

CASE(handled_if_any_was_performed, "85", on_thread)
{
    static struct probe b = {.name = "B", .logging = probe_logs_membership};
    static struct probe a = {.name = "A", .action = probe_invalidates_its_context, .context = &b};
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&b, 1, LOOP, MODE));
    probe_run(MODE, 0.05, false);
}

static CFRunLoopRef second_loop;
static _Atomic int second_ready;
static _Atomic int first_done;

static void runs_the_second_loop(void *context)
{
    (void)context;
    static struct probe idle = PROBE("idle", NULL);
    second_loop = (CFRunLoopRef)(uintptr_t)CFRetain(LOOP);
    probe_source_add(&idle, 0, LOOP, MODE);
    second_ready = 1;
    probe_await_count(&first_done, 1);
    CFRunLoopRunInMode(MODE, 0, false);
}

CASE(one_loop_performs_for_each_mark, "86 87", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    struct probe_thread other;
    probe_thread_start(&other, runs_the_second_loop, NULL);
    probe_await_count(&second_ready, 1);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(second_loop, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    first_done = 1;
    probe_thread_join(&other);
    probe_note("calls=%d cancels=%d", source.calls, source.cancels);
    CFRunLoopSourceInvalidate(a);
    probe_note("cancels=%d", source.cancels);
    CFRelease(a);
    CFRelease(second_loop);
}

static void signals_only(void *context)
{
    CFRunLoopSourceSignal(context);
}

CASE(signal_alone_does_not_wake, "77 87", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    struct probe_thread other;
    probe_stage(MODE);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, signals_only, a);
    probe_run(MODE, 0.3, false);
    probe_thread_join(&other);
    probe_run(MODE, 0, true);
}

static void invalidates_itself(struct probe *probe)
{
    CFRunLoopSourceRef source = probe_source_of(probe);
    CFRunLoopSourceSignal(source);
    CFRunLoopSourceInvalidate(source);
    probe_note_bool("valid", CFRunLoopSourceIsValid(source));
    probe_log("goes-on");
}

CASE(source_invalidates_itself, "88", on_thread)
{
    static struct probe source = {.name = "A", .action = invalidates_itself, .logging = probe_logs_membership | probe_logs_context};
    probe_stage(MODE);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE); /* the loop has the only reference */
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, false);
}

CASE(invalidating_leaves_all_modes_of_all_loops, "88", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("M"));
    CFRunLoopAddSource(CFRunLoopGetMain(), a, MODE);
    CFRunLoopAddSource(CFRunLoopGetMain(), a, CFSTR("N"));
    CFRunLoopSourceInvalidate(a);
    CFRunLoopSourceInvalidate(a);
    probe_note("schedules=%d cancels=%d", source.schedules, source.cancels);
    probe_note_bool("in-main", CFRunLoopContainsSource(CFRunLoopGetMain(), a, CFSTR("N")));
    CFRelease(a);
}

static void notes_validity(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)loop;
    (void)mode;
    probe_note_bool("valid", CFRunLoopSourceIsValid(*(CFRunLoopSourceRef *)info));
}

CASE(invalid_before_the_first_cancel, "90", on_thread)
{
    static CFRunLoopSourceRef a;
    CFRunLoopSourceContext context = {.info = &a, .cancel = notes_validity};
    a = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("M"));
    CFRunLoopRemoveSource(LOOP, a, CFSTR("M"));
    CFRunLoopSourceInvalidate(a);
    CFRelease(a);
}

CASE(order_is_kept, "92", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, -7);
    probe_note("order=%ld", (long)CFRunLoopSourceGetOrder(a));
    CFRelease(a);
}

static Boolean numbers_are_equal(const void *one, const void *other)
{
    return *(const int *)one == *(const int *)other;
}

static CFHashCode number_hash(const void *info)
{
    return (CFHashCode) * (const int *)info;
}

static void nothing(void *info)
{
    (void)info;
}

static void something(void *info)
{
    (void)info;
}

static CFRunLoopSourceRef number_source(int *number, CFIndex order, void (*perform)(void *))
{
    CFRunLoopSourceContext context = {.info = number, .equal = numbers_are_equal, .hash = number_hash, .perform = perform};
    return CFRunLoopSourceCreate(NULL, order, &context);
}

CASE(equality_of_sources, "93", on_thread)
{
    int one = 41;
    int other = 41;
    int different = 42;
    CFRunLoopSourceRef a = number_source(&one, 0, nothing);
    CFRunLoopSourceRef b = number_source(&other, 0, nothing);
    CFRunLoopSourceRef c = number_source(&different, 0, nothing);
    CFRunLoopSourceRef d = number_source(&one, 1, nothing);
    CFRunLoopSourceRef e = number_source(&one, 0, something);
    probe_note_bool("same-number", CFEqual(a, b));
    probe_note_bool("same-hash", CFHash(a) == CFHash(b));
    probe_note("hash=%lu", (unsigned long)CFHash(a));
    probe_note_bool("other-number", CFEqual(a, c));
    probe_note_bool("other-order", CFEqual(a, d));
    probe_note_bool("other-perform", CFEqual(a, e));
    CFRunLoopSourceInvalidate(b);
    probe_note_bool("other-validity", CFEqual(a, b));
    CFRunLoopSourceContext plain = {.info = &one, .perform = nothing};
    CFRunLoopSourceRef f = CFRunLoopSourceCreate(NULL, 0, &plain);
    CFRunLoopSourceRef g = CFRunLoopSourceCreate(NULL, 0, &plain);
    plain.info = &other;
    CFRunLoopSourceRef h = CFRunLoopSourceCreate(NULL, 0, &plain);
    probe_note_bool("same-info", CFEqual(f, g));
    probe_note_bool("hash-is-info", CFHash(f) == (CFHashCode)(uintptr_t)&one);
    probe_note_bool("other-info", CFEqual(f, h));
}

static void counts(void *info)
{
    (void)info;
    probe_log("performed");
}

static void logs_schedule(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)loop;
    (void)mode;
    probe_log("schedule");
}

static void logs_cancel(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)loop;
    (void)mode;
    probe_log("cancel");
}

CASE(equal_sources_collapse_in_a_mode, "94", on_thread)
{
    CFRunLoopSourceContext context = {.perform = counts, .schedule = logs_schedule, .cancel = logs_cancel};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopSourceRef b = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, b, MODE);
    probe_note_bool("contained", CFRunLoopContainsSource(LOOP, b, MODE));
    CFRunLoopSourceSignal(b);
    probe_run(MODE, 0, true);
    CFRunLoopSourceInvalidate(b);
    probe_note_bool("contained", CFRunLoopContainsSource(LOOP, a, MODE));
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    CFRelease(a);
    CFRelease(b);
}

CASE(equal_source_removes_its_twin, "94", on_thread)
{
    CFRunLoopSourceContext context = {.perform = counts, .schedule = logs_schedule, .cancel = logs_cancel};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopSourceRef b = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopRemoveSource(LOOP, b, MODE);
    probe_note_bool("contained", CFRunLoopContainsSource(LOOP, a, MODE));
    CFRelease(a);
    CFRelease(b);
}

CASE(loops_hold_their_sources, "95", on_thread)
{
    static struct probe source = {.name = "A", .logging = probe_logs_context};
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    probe_log("removed");
}

static void adds_its_context(struct probe *probe)
{
    CFRunLoopSourceRef source = probe_source_add(probe->context, 5, LOOP, MODE);
    CFRunLoopSourceSignal(source);
}

CASE(source_added_during_a_pass_comes_in_the_next, "82", on_thread)
{
    static struct probe b = PROBE("B", NULL);
    static struct probe a = {.name = "A", .action = adds_its_context, .context = &b};
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    probe_run(MODE, 0.05, false);
}

CASE(signal_of_a_later_source_waits_for_the_next_pass, "82", on_thread)
{
    static struct probe b = PROBE("B", NULL);
    static struct probe a = {.name = "A", .action = probe_signals_its_context, .context = &b};
    probe_stage(MODE);
    probe_source_add(&b, 5, LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    probe_run(MODE, 0.05, false);
}

CASE(nested_run_performs_the_collected_ones, "84 86", on_thread)
{
    static struct probe a = PROBE("A", probe_runs_nested);
    static struct probe b = PROBE("B", NULL);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&b, 1, LOOP, MODE));
    probe_run(MODE, 0, false);
}
