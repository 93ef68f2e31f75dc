/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runloop why, of a process that runs with CORERUNLOOP_STATISTICS=1: asks the questions of docs/why.md of two samples of its statistics.
 * Which items are in which mode the statistics do not say, so what is never called is asked of a trace, or of gdb.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "Why/findings.h"
#include "runloop.h"
#include "sample.h"

static const double spin_least = 0.9; /* share of the time awake */
static const double wakes_least = 50; /* a second */

/* The function that was called most often between the samples, and how often. */
static const struct seen_function *most_frequent(const struct seen *before, const struct seen *after, uint64_t *ret_count)
{
    const struct seen_function *found = NULL;

    *ret_count = 0;
    for (uint32_t i = 0; i < after->function_count; i++) {
        const struct seen_function *function = &after->functions[i];
        uint64_t earlier = i < before->function_count ? before->functions[i].count : 0;

        if (function->count > earlier && function->count - earlier > *ret_count) {
            *ret_count = function->count - earlier;
            found = function;
        }
    }
    return found;
}

static const char *name_in(const struct seen *seen, const struct seen_function *function)
{
    const char *name = function ? function_name(seen, function->function) : NULL;

    return name ? name : "a callout";
}

/* What the kernel says of the descriptor. */
static void prove_descriptor(struct findings *findings, const struct seen *seen, int descriptor)
{
    char path[64];
    char target[256];
    ssize_t length;

    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)seen->process, descriptor);
    length = readlink(path, target, sizeof target - 1);
    if (length > 0) {
        target[length] = '\0';
        findings_prove(findings, "Descriptor %d is %s.", descriptor, target);
    }
}

static void add_spin(struct findings *findings, const struct seen *before, const struct seen *seen, const struct figures *figures,
                     double seconds)
{
    uint64_t count;
    const struct seen_function *most = most_frequent(before, seen, &count);
    double rate = (double)count / seconds;
    bool is_added;

    if (!most || rate * 2 < figures->passes) {
        is_added = findings_add(findings, finding_spins, seen->process, seen->thread,
                                "thread %d (%s) runs its loop %.0f times a second with a limit of no time, or is woken again and again.",
                                (int)seen->thread, seen->name, figures->passes);
    } else if (most->descriptor >= 0) {
        is_added = findings_add(
            findings, finding_spins, seen->process, seen->thread,
            "thread %d (%s): descriptor %d is ready, and nobody reads from it or writes to it: %s is called %.0f times a second.",
            (int)seen->thread, seen->name, (int)most->descriptor, name_in(seen, most), rate);
    } else {
        is_added =
            findings_add(findings, finding_spins, seen->process, seen->thread, "thread %d (%s): %s is called %.0f times a second, %s.",
                         (int)seen->thread, seen->name, name_in(seen, most), rate,
                         most->kind == trace_timer ? "because its interval is too short, or its date in the past"
                                                   : "because it is signalled or posted again as soon as it was called");
    }
    if (is_added) {
        findings_prove(findings, "It is awake %.0f %% of the time, has %.0f %% of a processor, and %.0f %% of its waits return at once.",
                       figures->busy * 100, figures->processor * 100, figures->futile * 100);
        if (most && most->descriptor >= 0) {
            prove_descriptor(findings, seen, most->descriptor);
        }
    }
}

static void look_at_waits(struct findings *findings, const struct sample *sample, const struct seen *seen, int64_t stall_ns)
{
    char text[1024];
    bool is_deadlock;

    if (seen->asked_ns > 0 && sample->time_ns - seen->asked_ns >= stall_ns) {
        is_deadlock = describe_wait(sample, seen, text, sizeof text);
        (void)findings_add(findings, is_deadlock ? finding_deadlock : finding_no_reply, seen->process, seen->thread, "thread %d (%s) %s.",
                           (int)seen->thread, seen->name, text);
    } else if (seen->asked_ns == 0 && seen->awake_since_ns > 0 && sample->time_ns - seen->awake_since_ns >= stall_ns) {
        if (findings_add(findings, finding_hangs, seen->process, seen->thread, "thread %d (%s) has not slept for %.3f s.",
                         (int)seen->thread, seen->name, (double)(sample->time_ns - seen->awake_since_ns) / 1e9)) {
            findings_prove(findings, "gdb -p %d -batch -ex 'thread apply all backtrace' says where it is.", (int)seen->process);
        }
    }
}

static void look_at_rates(struct findings *findings, const struct seen *before, const struct seen *seen, const struct figures *figures,
                          double seconds, int64_t stall_ns)
{
    double least = 100 / ((double)stall_ns / 1e9); /* passes a second: each is short beside a stall */
    uint64_t count;
    const struct seen_function *most = most_frequent(before, seen, &count);

    if (figures->busy >= spin_least && figures->passes >= least) {
        add_spin(findings, before, seen, figures, seconds);
    } else if (figures->busy < 0.5 && figures->sleeps >= wakes_least && most && most->kind == trace_timer &&
               (double)count / seconds > figures->sleeps / 2) {
        (void)findings_add(findings, finding_wakes_often, seen->process, seen->thread,
                           "thread %d (%s) wakes %.0f times a second, for timer %s.", (int)seen->thread, seen->name, figures->sleeps,
                           name_in(seen, most));
    }
    if (seen->latest_ns > before->latest_ns && seen->latest_ns >= stall_ns / 5) {
        if (findings_add(findings, finding_late, seen->process, seen->thread, "a timer of thread %d (%s) was %.3f s late.",
                         (int)seen->thread, seen->name, (double)seen->latest_ns / 1e9)) {
            findings_prove(findings, "The longest callout is %s, %.3f s.",
                           name_in(seen, &(struct seen_function){.function = seen->longest_function}), (double)seen->longest_ns / 1e9);
        }
    }
}

int explain_process(long process, double interval_s, int64_t stall_ns, bool is_json)
{
    struct findings findings = {.count = 0};
    struct sample before;
    struct sample after;
    bool is_known = false;
    double seconds;
    int status = take_sample(&before);

    if (status == exit_success) {
        pause_for(interval_s);
        status = take_sample(&after);
    }
    if (status != exit_success) {
        return status;
    }
    seconds = (double)(after.time_ns - before.time_ns) / 1e9;
    for (size_t i = 0; i < after.count; i++) {
        const struct seen *seen = &after.loops[i];
        const struct seen *earlier = seen->process == process ? find_before(&before, seen) : NULL;
        struct figures figures;

        if (earlier) {
            is_known = true;
            figures = figures_of(earlier, seen, seconds);
            look_at_waits(&findings, &after, seen, stall_ns);
            look_at_rates(&findings, earlier, seen, &figures, seconds, stall_ns);
        }
    }
    if (!is_known) {
        return fail(exit_error, "process %ld of this user runs no loops with CORERUNLOOP_STATISTICS=1 in its environment", process);
    }
    return findings_write(&findings, "All is well, as far as the statistics say; a trace also tells what is never called.", is_json);
}
