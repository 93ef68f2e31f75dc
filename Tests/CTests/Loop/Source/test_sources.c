/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version-0 sources: rules 72 to 97, through the public calls.
 */
#include <limits.h>
#include <string.h>

#include "Loop/loop_trace.h"

TEST(a_sources_context_is_released_when_it_is_freed, "72 73 95")
{
    clock_start();
    static struct probe source = {.name = "A", .logging = probe_logs_context | probe_logs_membership};
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopSourceInvalidate(a);
    EXPECT_LOG("retain(A) A+test A HS A-test");
    CFRelease(a);
    EXPECT_LOG("release(A)");
}

static int replaced_info;

static const void *retains_as_another(const void *info)
{
    EXPECT(info == NULL);
    return &replaced_info;
}

static void releases_another(const void *info)
{
    EXPECT(info == &replaced_info);
    probe_log("released");
}

static void performs_another(void *info)
{
    EXPECT(info == &replaced_info);
    probe_log("performed");
}

TEST(a_source_keeps_what_retain_returned, "72 91")
{
    clock_start();
    CFRunLoopSourceContext context = {.retain = retains_as_another, .release = releases_another, .perform = performs_another};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &context);
    memset(&context, 0xff, sizeof context); /* it was copied */
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopSourceInvalidate(a);
    context.version = 0;
    CFRunLoopSourceGetContext(a, &context);
    EXPECT(context.info == &replaced_info);
    EXPECT(context.perform == performs_another);
    EXPECT(context.schedule == NULL);
    CFRelease(a);
    EXPECT_LOG("performed HS released");
}

TEST(source_creation_checks_its_context, "74 L14")
{
    CFRunLoopSourceContext context = {.version = 2};
    EXPECT(CFRunLoopSourceCreate(NULL, 0, &context) == NULL);
    context.version = -1;
    EXPECT(CFRunLoopSourceCreate(NULL, 0, &context) == NULL);
    EXPECT_STOPS("CFRunLoopSourceCreate", { CFRunLoopSourceCreate(NULL, 0, NULL); });
}

TEST(a_source_needs_no_callbacks, "74 97")
{
    clock_start();
    CFRunLoopSourceContext context = {.version = 0};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopSourceSignal(a);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    CFRelease(a);
}

static CFRunLoopSourceRef membership_source;
static pthread_t membership_caller;

static void checks_schedule(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    EXPECT(CFRunLoopContainsSource(loop, membership_source, mode));
    EXPECT(pthread_equal(pthread_self(), membership_caller));
    probe_note_string("schedule", mode);
}

static void checks_cancel(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    EXPECT(!CFRunLoopContainsSource(loop, membership_source, mode));
    EXPECT(pthread_equal(pthread_self(), membership_caller));
    probe_note_bool("valid", CFRunLoopSourceIsValid(membership_source));
    probe_note_string("cancel", mode);
}

static void adds_removes_invalidates(void *context)
{
    CFRunLoopRef loop = context;
    membership_caller = pthread_self();
    CFRunLoopAddSource(loop, membership_source, MODE);
    CFRunLoopRemoveSource(loop, membership_source, MODE);
    CFRunLoopAddSource(loop, membership_source, MODE);
    CFRunLoopSourceInvalidate(membership_source);
}

TEST(schedule_and_cancel_come_after_the_change_on_the_callers_thread, "75 76 90")
{
    CFRunLoopSourceContext context = {.schedule = checks_schedule, .cancel = checks_cancel};
    membership_source = CFRunLoopSourceCreate(NULL, 0, &context);
    probe_on_thread(adds_removes_invalidates, LOOP);
    EXPECT_LOG("schedule=test valid=yes cancel=test schedule=test valid=no cancel=test");
    CFRelease(membership_source);
}

TEST(signals_coalesce_into_one_perform, "77")
{
    clock_start();
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    EXPECT(!CFRunLoopSourceIsSignalled(a));
    for (int i = 0; i < 5; i++) {
        CFRunLoopSourceSignal(a);
        EXPECT(CFRunLoopSourceIsSignalled(a));
    }
    probe_run(MODE, 0.05, false);
    EXPECT(!CFRunLoopSourceIsSignalled(a));
    EXPECT_LOG("A TO");
}

static void signals_from_outside(void *context)
{
    CFRunLoopSourceSignal(context);
}

static void has_itself_signalled_by_another_thread(struct probe *probe)
{
    EXPECT(!CFRunLoopSourceIsSignalled(probe_source_of(probe)));
    if (probe->calls == 1) {
        probe_on_thread(signals_from_outside, probe_source_of(probe));
        EXPECT(CFRunLoopSourceIsSignalled(probe_source_of(probe)));
    }
}

TEST(a_signal_during_perform_makes_another, "78")
{
    clock_start();
    static struct probe own = PROBE("A", probe_signals_itself_once);
    static struct probe foreign = PROBE("B", has_itself_signalled_by_another_thread);
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&own, 0, LOOP, MODE));
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS A BT BS A BT BS BW AW X TO");
    CFRunLoopSourceSignal(probe_source_add(&foreign, 0, LOOP, MODE));
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS B BT BS B BT BS BW AW X TO");
}

TEST(a_mark_is_kept_outside_of_loops, "79 80")
{
    clock_start();
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopSourceSignal(a);
    CFRunLoopAddSource(LOOP, a, MODE);
    probe_run(MODE, 0, true);
    EXPECT_LOG("A HS");
    CFRunLoopSourceSignal(a);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    EXPECT(CFRunLoopSourceIsSignalled(a));
    CFRunLoopAddSource(LOOP, a, CFSTR("other"));
    probe_run(CFSTR("other"), 0, true);
    EXPECT_LOG("A HS");
    CFRunLoopSourceSignal(a);
    CFRunLoopRemoveSource(LOOP, a, CFSTR("other"));
    CFRunLoopAddSource(LOOP, a, CFSTR("other"));
    probe_run(CFSTR("other"), 0, true);
    EXPECT_LOG("A HS");
    CFRunLoopRemoveSource(LOOP, a, CFSTR("other"));
    CFRunLoopSourceSignal(a);
    CFRunLoopAddSource(LOOP, a, MODE);
    probe_run(MODE, 0, true);
    EXPECT_LOG("A HS");
    CFRelease(a);
}

TEST(invalid_sources_are_inert, "81 88 89")
{
    static struct probe source = {.name = "A", .logging = probe_logs_membership};
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopSourceSignal(a);
    CFRunLoopSourceInvalidate(a);
    EXPECT(!CFRunLoopSourceIsSignalled(a));
    CFRunLoopSourceSignal(a);
    EXPECT(!CFRunLoopSourceIsSignalled(a));
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
    EXPECT(!CFRunLoopContainsSource(LOOP, a, MODE));
    EXPECT(!CFRunLoopContainsSource(LOOP, a, kCFRunLoopCommonModes));
    probe_run(MODE, 0, true);
    EXPECT_LOG("F");
    CFRelease(a);
}

TEST(sources_go_by_order_then_by_time_of_signal, "82 83")
{
    clock_start();
    enum { count = 12 };
    static struct probe probes[count];
    static const char *const names[count] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    const CFIndex orders[count] = {3, 3, 3, 3, -2, -2, -2, -2, 0, 0, 0, 0};
    const int signals[] = {11, 2, 7, 0, 9, 3, 4, 8, 2, 11, 1, 6, 10, 5};
    for (int i = 0; i < count; i++) {
        probes[i] = (struct probe)PROBE(names[i], NULL);
        probe_source_add(&probes[i], orders[i], LOOP, MODE);
    }
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        CFRunLoopSourceSignal(probe_source_of(&probes[signals[i]]));
    }
    probe_run(MODE, 0, false);
    EXPECT_LOG("h e g f l j i k c a d b TO");
}

TEST(equal_orders_go_by_time_of_signal_also_one_by_one, "49 83")
{
    clock_start();
    static struct probe probes[] = {PROBE("a", NULL), PROBE("b", NULL), PROBE("c", NULL)};
    for (int i = 0; i < 3; i++) {
        probe_source_add(&probes[i], 0, LOOP, MODE);
    }
    CFRunLoopSourceSignal(probe_source_of(&probes[2]));
    CFRunLoopSourceSignal(probe_source_of(&probes[0]));
    probe_run(MODE, 0, true);
    CFRunLoopSourceSignal(probe_source_of(&probes[2]));
    CFRunLoopSourceSignal(probe_source_of(&probes[1]));
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    probe_run(MODE, 0, true);
    EXPECT_LOG("c HS a HS c HS b HS");
}

static void two_collected(void (*action)(struct probe *), const char *expected)
{
    static struct probe b = {.name = "B", .logging = probe_logs_membership};
    static struct probe a = {.name = "A", .context = &b};
    static struct probe c = PROBE("C", NULL);
    a.action = action;
    CFRunLoopSourceRef second = probe_source(&b, 1);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    CFRunLoopAddSource(LOOP, second, MODE);
    CFRunLoopSourceSignal(second);
    CFRunLoopSourceSignal(probe_source_add(&c, 2, LOOP, MODE));
    probe_run(MODE, 0, false);
    EXPECT_LOG(expected);
    CFRelease(second);
}

TEST(a_collected_source_that_was_invalidated_is_skipped, "84 L15")
{
    clock_start();
    two_collected(probe_invalidates_its_context, "B+test A B-test C TO");
}

TEST(a_collected_source_that_was_removed_is_performed, "84 L16")
{
    clock_start();
    two_collected(probe_removes_its_context, "B+test A B-test B C TO");
}

TEST(a_nested_run_performs_the_collected_sources, "84 86")
{
    clock_start();
    two_collected(probe_runs_nested, "B+test A { B C TO } TO");
}

TEST(a_pass_handled_a_source_if_any_was_performed, "85")
{
    clock_start();
    static struct probe b = PROBE("B", NULL);
    static struct probe a = {.name = "A", .action = probe_invalidates_its_context, .context = &b};
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&b, 1, LOOP, MODE));
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS A BT BS BW AW X TO");
}

struct second_loop {
    CFRunLoopRef loop;
    CFRunLoopSourceRef source;
    _Atomic int is_ready;
    _Atomic int may_run;
    _Atomic int has_run;
    _Atomic int may_end;
    CFRunLoopRunResult result;
};

static void runs_second_loop(void *context)
{
    struct second_loop *second = context;
    second->loop = LOOP;
    CFRunLoopAddSource(LOOP, second->source, MODE);
    second->is_ready = 1;
    probe_await_count(&second->may_run, 1);
    second->result = CFRunLoopRunInMode(MODE, 0, true);
    second->has_run = 1;
    probe_await_count(&second->may_end, 1);
}

TEST(one_of_two_loops_performs_a_mark, "86 88 L20")
{
    static struct probe source = PROBE("A", NULL);
    static struct second_loop second;
    struct probe_thread other;
    second.source = probe_source(&source, 0);
    CFRunLoopAddSource(LOOP, second.source, MODE);
    probe_thread_start(&other, runs_second_loop, &second);
    probe_await_count(&second.is_ready, 1);
    CFRunLoopSourceSignal(second.source);
    probe_run(MODE, 0, true);
    second.may_run = 1;
    probe_await_count(&second.has_run, 1);
    EXPECT_EQ(second.result, kCFRunLoopRunTimedOut);
    EXPECT_LOG("A HS");
    EXPECT(CFRunLoopContainsSource(second.loop, second.source, MODE));
    CFRunLoopSourceInvalidate(second.source);
    EXPECT(!CFRunLoopContainsSource(second.loop, second.source, MODE));
    EXPECT_EQ(source.schedules, 2);
    EXPECT_EQ(source.cancels, 2);
    second.may_end = 1;
    probe_thread_join(&other);
    EXPECT_EQ(source.cancels, 2);
    CFRelease(second.source);
}

static void signals_it(void *context)
{
    CFRunLoopSourceSignal(context);
    note_done();
}

static bool sleeps_through_a_signal(void)
{
    static struct probe source = PROBE("A", NULL);
    struct probe_thread other;
    double due_s = probe_seconds() + long_enough_s();
    probe_stage(MODE);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, signals_it, a);
    bool was_in_time = run_beside(&other, long_enough_s(), due_s);
    probe_run(MODE, 0, true);
    return was_in_time;
}

TEST(a_signal_alone_wakes_no_loop, "77 87")
{
    try_until_in_time(sleeps_through_a_signal);
    EXPECT_LOG("E BT BS BW AW X TO E BT BS A X HS");
}

static void invalidates_itself_and_goes_on(struct probe *probe)
{
    CFRunLoopSourceRef source = probe_source_of(probe);
    CFRunLoopSourceSignal(source);
    CFRunLoopSourceInvalidate(source);
    EXPECT(!CFRunLoopSourceIsValid(source));
    EXPECT_EQ(probe->releases, 0);
    CFRunLoopSourceInvalidate(source);
    probe_log("goes-on");
}

TEST(a_source_may_invalidate_itself, "88 L15 L17")
{
    clock_start();
    static struct probe source = {
        .name = "A", .action = invalidates_itself_and_goes_on, .logging = probe_logs_membership | probe_logs_context};
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 0, false);
    EXPECT_LOG("retain(A) A+test E BT BS A A-test goes-on release(A) X TO");
}

TEST(invalidation_leaves_every_mode, "88 76")
{
    static struct probe source = {.name = "A", .logging = probe_is_silent};
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopAddCommonMode(LOOP, CFSTR("M"));
    CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("N"));
    EXPECT_EQ(source.schedules, 4);
    CFRunLoopSourceInvalidate(a);
    CFRunLoopSourceInvalidate(a);
    EXPECT_EQ(source.cancels, 4);
    EXPECT(!CFRunLoopContainsSource(LOOP, a, MODE));
    EXPECT_EQ(CFGetRetainCount(a), 1);
    CFRelease(a);
}

TEST(a_source_gives_its_context_by_version, "91")
{
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&source, 0);
    CFRunLoopSourceContext context = {.version = 0};
    CFRunLoopSourceGetContext(a, &context);
    EXPECT(context.info == &source);
    CFRunLoopSourceContext untouched = {.version = 1};
    CFRunLoopSourceGetContext(a, &untouched); /* the source has another version */
    EXPECT(untouched.info == NULL);
    EXPECT_STOPS("CFRunLoopSourceGetContext", { CFRunLoopSourceGetContext(a, NULL); });
    CFRunLoopSourceRef port = probe_port_source(&source, 0, -1);
    CFRunLoopSourceContext1 context1 = {.version = 1};
    CFRunLoopSourceGetContext(port, (CFRunLoopSourceContext *)(void *)&context1);
    EXPECT(context1.info == &source);
    EXPECT_EQ(context1.getPort(context1.info), -1);
    CFRelease(a);
    CFRelease(port);
}

TEST(a_source_keeps_its_order, "92")
{
    static struct probe source = PROBE("A", NULL);
    const CFIndex orders[] = {0, -7, LONG_MAX, LONG_MIN};
    for (int i = 0; i < 4; i++) {
        CFRunLoopSourceRef a = probe_source(&source, orders[i]);
        EXPECT_EQ(CFRunLoopSourceGetOrder(a), orders[i]);
        CFRelease(a);
    }
}

static Boolean numbers_are_equal(const void *one, const void *other)
{
    return *(const int *)one == *(const int *)other;
}

static CFHashCode number_hash(const void *info)
{
    return (CFHashCode) * (const int *)info;
}

static void performs_one_thing(void *info)
{
    (void)info;
    probe_log("performed");
}

static void performs_another_thing(void *info)
{
    (void)info;
    probe_log("otherwise");
}

static CFRunLoopSourceRef number_source(int *number, CFIndex order, void (*perform)(void *))
{
    CFRunLoopSourceContext context = {.info = number, .equal = numbers_are_equal, .hash = number_hash, .perform = perform};
    return CFRunLoopSourceCreate(NULL, order, &context);
}

TEST(sources_are_equal_by_value, "93 185")
{
    int one = 41;
    int other = 41;
    int different = 42;
    CFRunLoopSourceRef sources[] = {number_source(&one, 0, performs_one_thing), number_source(&other, 0, performs_one_thing),
                                    number_source(&different, 0, performs_one_thing), number_source(&one, 1, performs_one_thing),
                                    number_source(&one, 0, performs_another_thing)};
    EXPECT(CFEqual(sources[0], sources[0]));
    EXPECT(CFEqual(sources[0], sources[1]));
    EXPECT_EQ(CFHash(sources[0]), 41);
    EXPECT_EQ(CFHash(sources[1]), 41);
    for (int i = 2; i < 5; i++) {
        EXPECT(!CFEqual(sources[0], sources[i]));
    }
    CFRunLoopSourceInvalidate(sources[1]);
    EXPECT(!CFEqual(sources[0], sources[1]));
    for (int i = 0; i < 5; i++) {
        CFRelease(sources[i]);
    }
    CFRunLoopSourceContext plain = {.info = &one, .perform = performs_one_thing};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &plain);
    CFRunLoopSourceRef b = CFRunLoopSourceCreate(NULL, 0, &plain);
    plain.info = &other;
    CFRunLoopSourceRef c = CFRunLoopSourceCreate(NULL, 0, &plain);
    EXPECT(CFEqual(a, b));
    EXPECT(!CFEqual(a, c));
    EXPECT_EQ(CFHash(a), (uintptr_t)&one);
    CFRelease(a);
    CFRelease(b);
    CFRelease(c);
}

TEST(equal_sources_are_one_in_a_mode, "94")
{
    clock_start();
    int one = 5;
    int other = 5;
    CFRunLoopSourceRef a = number_source(&one, 0, performs_one_thing);
    CFRunLoopSourceRef b = number_source(&other, 0, performs_one_thing);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddSource(LOOP, b, MODE);
    EXPECT(CFRunLoopContainsSource(LOOP, b, MODE));
    CFRunLoopSourceSignal(b);
    probe_run(MODE, 0, true);
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopSourceInvalidate(b);
    EXPECT(CFRunLoopContainsSource(LOOP, a, MODE));
    EXPECT_LOG("TO performed HS");
    CFRelease(b);
    b = number_source(&other, 0, performs_one_thing);
    CFRunLoopRemoveSource(LOOP, b, MODE); /* removes its twin */
    EXPECT(!CFRunLoopContainsSource(LOOP, a, MODE));
    CFRelease(a);
    CFRelease(b);
}

TEST(equal_sources_are_one_in_the_common_set, "94 22")
{
    int one = 5;
    int other = 5;
    CFRunLoopSourceRef a = number_source(&one, 0, performs_one_thing);
    CFRunLoopSourceRef b = number_source(&other, 0, performs_one_thing);
    CFRunLoopAddSource(LOOP, a, kCFRunLoopCommonModes);
    EXPECT(CFRunLoopContainsSource(LOOP, b, kCFRunLoopCommonModes));
    CFRunLoopAddSource(LOOP, b, kCFRunLoopCommonModes);
    EXPECT_EQ(CFGetRetainCount(b), 1);
    CFRunLoopSourceInvalidate(a);
    EXPECT(!CFRunLoopContainsSource(LOOP, b, kCFRunLoopCommonModes));
    CFRelease(a);
    CFRelease(b);
}

TEST(many_sources_are_found_by_their_hash, "93 94")
{
    enum { count = 1000 };
    static int numbers[count];
    static CFRunLoopSourceRef sources[count];
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        sources[i] = number_source(&numbers[i], i % 7, performs_one_thing);
        CFRunLoopAddSource(LOOP, sources[i], MODE);
    }
    for (int i = 0; i < count; i++) {
        EXPECT(CFRunLoopContainsSource(LOOP, sources[i], MODE));
        if (i % 3 == 0) {
            CFRunLoopRemoveSource(LOOP, sources[i], MODE);
        }
    }
    for (int i = 0; i < count; i++) {
        EXPECT_EQ(CFRunLoopContainsSource(LOOP, sources[i], MODE), i % 3 != 0);
        CFRunLoopSourceInvalidate(sources[i]);
        CFRelease(sources[i]);
    }
}

TEST(a_loop_holds_its_sources, "95 75")
{
    clock_start();
    static struct probe source = {.name = "A", .logging = probe_logs_context};
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    EXPECT(CFRunLoopSourceIsValid(a));
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    CFRunLoopRemoveSource(LOOP, a, MODE);
    EXPECT_LOG("retain(A) A HS release(A)");
}

static void adds_a_signalled_source(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopSourceSignal(probe_source_add(probe->context, 5, LOOP, MODE));
    }
}

TEST(a_source_signalled_after_collection_waits_for_the_next_pass, "82")
{
    clock_start();
    static struct probe b = PROBE("B", NULL);
    static struct probe a = {.name = "A", .action = adds_a_signalled_source, .context = &b};
    probe_stage(MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS A BT BS B BT BS BW AW X TO");
    a.action = probe_signals_its_context;
    CFRunLoopSourceSignal(probe_source_of(&a));
    probe_run(MODE, 0.05, false);
    EXPECT_LOG("E BT BS A BT BS B BT BS BW AW X TO");
}

TEST(a_source_in_several_modes_is_performed_once, "16 86")
{
    clock_start();
    static struct probe source = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    CFRunLoopAddSource(LOOP, a, CFSTR("M"));
    CFRunLoopSourceSignal(a);
    probe_run(MODE, 0, true);
    probe_run(CFSTR("M"), 0, true);
    CFRunLoopSourceSignal(a);
    probe_run(CFSTR("M"), 0, true);
    probe_run(MODE, 0, true);
    EXPECT_LOG("A HS TO A HS TO");
    CFRunLoopSourceInvalidate(a);
}
