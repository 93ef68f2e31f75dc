/* SPDX-License-Identifier: Apache-2.0 */
/* The main dispatch queue, served by the main loop: rules 178 to 181, and 25, 37 and 54 as far as they speak of it. */
#define CONFORMANCE_GROUP "main_queue"
#include "conformance.h"

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

#if defined(CONFORMANCE_DISPATCH)

#include <dispatch/dispatch.h>

static void logs_text(void *context)
{
    probe_log(context);
}

static void dispatches(const char *token)
{
    dispatch_async_f(dispatch_get_main_queue(), (void *)(uintptr_t)token, logs_text);
}

CASE(main_default_mode_is_never_empty, "25 180", on_main)
{
    probe_activities_add(LOOP, MODE);
    probe_run(MODE, 0, false);
    probe_run(MODE, 0.02, false);
}

CASE(main_other_mode_may_be_empty, "25 180", on_main)
{
    probe_activities_add(LOOP, CFSTR("M"));
    probe_run(CFSTR("M"), 10, false);
}

CASE(seq_37u_main_queue_counts_as_source, "37 178", on_main)
{
    probe_activities_add(LOOP, MODE);
    dispatches("MQ");
    probe_run(MODE, 100, true);
}

CASE(main_queue_drains_in_one_wake, "178", on_main)
{
    probe_activities_add(LOOP, MODE);
    dispatches("MQ1");
    dispatches("MQ2");
    dispatches("MQ3");
    probe_run(MODE, 100, true);
}

CASE(main_queue_goes_on_without_return, "178 181", on_main)
{
    probe_activities_add(LOOP, MODE);
    dispatches("MQ");
    probe_run(MODE, 0.05, false);
}

CASE(main_queue_polled, "178", on_main)
{
    probe_activities_add(LOOP, MODE);
    dispatches("MQ");
    probe_run(MODE, 0, false);
}

CASE(main_queue_not_in_an_uncommon_mode, "179", on_main)
{
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, CFSTR("M"));
    dispatches("MQ");
    probe_run(CFSTR("M"), 0.02, true);
    probe_log("|");
    probe_run(MODE, 1, true);
}

CASE(main_queue_in_a_declared_common_mode, "178", on_main)
{
    CFRunLoopAddCommonMode(LOOP, CFSTR("M"));
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, CFSTR("M"));
    dispatches("MQ");
    probe_run(CFSTR("M"), 1, true);
}

static void runs_nested_in_queue(void *context)
{
    (void)context;
    probe_log("MQ{");
    dispatches("inner");
    probe_run(MODE, 0.02, true);
    probe_log("}");
}

CASE(main_queue_not_in_a_run_inside_its_block, "179", on_main)
{
    dispatch_async_f(dispatch_get_main_queue(), NULL, runs_nested_in_queue);
    probe_run(MODE, 100, true);
    probe_run(MODE, 0.02, true);
}

/* A regression: the run inside the block took the queue's descriptor out of the mode's set only in its own books. */
CASE(main_queue_wakes_after_a_run_inside_its_block, "178 179", on_main)
{
    static struct probe idle = PROBE("idle", NULL); /* so that the run inside has a pass */
    probe_source_add(&idle, 0, LOOP, MODE);
    dispatch_async_f(dispatch_get_main_queue(), NULL, runs_nested_in_queue);
    probe_run(MODE, 100, true);
    dispatches("after");
    probe_run(MODE, 5, true);
}

static void runs_nested_in_timer(struct probe *probe)
{
    (void)probe;
    dispatches("MQ");
    probe_log("{");
    probe_run(MODE, 1, true);
    probe_log("}");
}

CASE(main_queue_in_a_run_inside_a_timer, "179", on_main)
{
    static struct probe timer = PROBE("T", runs_nested_in_timer);
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    probe_run(MODE, 0.05, false);
}

static void dispatches_from_outside(void *context)
{
    (void)context;
    dispatches("MQ");
}

CASE(main_queue_wakes_the_main_loop, "178", on_main)
{
    struct probe_thread other;
    probe_activities_add(LOOP, MODE);
    probe_thread_when_waiting(&other, LOOP, dispatches_from_outside, NULL);
    probe_run(MODE, 100, true);
    probe_thread_join(&other);
}

static void dispatches_once(struct probe *probe)
{
    if (probe->calls == 1) {
        dispatches("MQ");
    }
}

CASE(main_queue_ready_before_the_second_sleep, "181", on_main)
{
    static struct probe timer = PROBE("T", dispatches_once);
    probe_activities_add(LOOP, MODE);
    probe_timer_add(&timer, 0.02, 0, LOOP, MODE);
    probe_run(MODE, 0.1, false);
}

static void stops_main_loop(void *context)
{
    (void)context;
    probe_log("MQ");
    CFRunLoopStop(CFRunLoopGetMain());
}

CASE(run_of_the_main_loop_serves_the_queue, "54 178", on_main)
{
    dispatches("MQ1");
    dispatch_async_f(dispatch_get_main_queue(), NULL, stops_main_loop);
    CFRunLoopRun();
    probe_log("returned");
}

static void runs_secondary(void *context)
{
    (void)context;
    dispatches("MQ");
    probe_run(MODE, 10, true);
}

CASE(secondary_loops_do_not_serve_the_queue, "178 180", on_main)
{
    probe_on_thread(runs_secondary, NULL);
    probe_run(MODE, 1, true);
}

#endif
