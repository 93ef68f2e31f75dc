/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runloop why, of traces: asks the questions of docs/why.md of each loop, and answers with what the trace has of it. What is asked for is
 * long: an answer needs something that lasted for the limit of stalls, or for most of the time.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "Why/findings.h"
#include "pair_table.h"
#include "runloop.h"

static const int64_t watched_least_ns = 200000000; /* shares of less time say nothing, */
static const uint64_t passes_least = 1000; /* unless so much was done in it */
static const double spin_least = 0.9; /* share of the time awake */
static const double wakes_least = 50; /* a second */

enum { thread_text_size = 64, function_text_size = 512 };

struct explainer {
    const struct story *story;
    struct findings findings;
};

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static const struct thread *thread_at(const struct explainer *explainer, uint32_t thread)
{
    invariant(thread < explainer->story->traces->thread_count);
    return &explainer->story->traces->threads[thread];
}

static int32_t process_of(const struct explainer *explainer, uint32_t thread)
{
    return explainer->story->traces->processes[thread_at(explainer, thread)->process].number;
}

static double moment(const struct explainer *explainer, int64_t time_ns)
{
    return seconds(time_ns - explainer->story->traces->origin_ns);
}

static const char *thread_text(const struct explainer *explainer, uint32_t thread, char ret_text[thread_text_size])
{
    const struct thread *one = thread_at(explainer, thread);

    (void)snprintf(ret_text, thread_text_size, "thread %d (%s)", (int)one->number, one->name);
    return ret_text;
}

static const char *function_text(const struct explainer *explainer, int kind, uint32_t name, char ret_text[function_text_size])
{
    const struct code_name *function = &explainer->story->names[name];

    (void)snprintf(ret_text, function_text_size, *function->place ? "%s %.200s (%.200s)" : "%s %.200s%.0s", span_kind_name(kind),
                   *function->name ? function->name : "callout", function->place);
    return ret_text;
}

/* ---- waits for replies ---- */

/* The request for whose reply the thread waits at that time, or no_request. */
static uint32_t request_of(const struct explainer *explainer, uint32_t thread, int64_t time_ns)
{
    const struct story *story = explainer->story;
    uint32_t found = no_request;

    for (uint32_t i = 0; i < story->request_count; i++) {
        if (story->requests[i].thread == thread && story->requests[i].begin_ns <= time_ns && story->requests[i].end_ns > time_ns) {
            found = i;
        }
    }
    return found;
}

static void add_deadlocks(struct explainer *explainer)
{
    const struct story *story = explainer->story;
    char name[thread_text_size];

    for (size_t i = 0; i < story->deadlock_count; i++) {
        const struct deadlock *deadlock = &story->deadlocks[i];
        const struct awaited_request *request = &story->requests[deadlock->request];

        if (!findings_add(&explainer->findings, finding_deadlock, process_of(explainer, request->thread),
                          thread_at(explainer, request->thread)->number, "%u thread%s for a reply in a circle, for %.3f s from %.3f s on.",
                          deadlock->members, deadlock->members == 1 ? " waits for itself" : "s wait for each other",
                          seconds(deadlock->end_ns - deadlock->begin_ns), moment(explainer, deadlock->begin_ns))) {
            return;
        }
        for (uint32_t member = 0; member < deadlock->members; member++) {
            uint32_t next;

            findings_prove(&explainer->findings, "%s waits for a reply from %s, message %d, %s.",
                           thread_text(explainer, request->thread, name), story->names[request->name].name, (int)request->message,
                           request->result == request_unfinished ? "to the end" : request_result_name(request->result));
            next = request->server == no_thread ? no_request : request_of(explainer, request->server, deadlock->begin_ns);
            if (next == no_request) {
                break;
            }
            request = &story->requests[next];
        }
    }
}

static bool is_in_deadlock(const struct story *story, const struct awaited_request *request)
{
    for (size_t i = 0; i < story->deadlock_count && i < findings_of_kind_most; i++) {
        if (story->deadlocks[i].begin_ns < request->end_ns && story->deadlocks[i].end_ns > request->begin_ns) {
            return true;
        }
    }
    return false;
}

/* The longest callout of the thread in that time, or no_span. */
static uint32_t longest_callout(const struct story *story, uint32_t thread, int64_t from_ns, int64_t to_ns, uint32_t except)
{
    uint32_t found = no_span;
    int64_t longest_ns = 0;

    for (uint32_t i = 0; i < story->span_count; i++) {
        const struct span *span = &story->spans[i];
        int64_t begin_ns = span->begin_ns > from_ns ? span->begin_ns : from_ns;
        int64_t end_ns = span->end_ns < to_ns ? span->end_ns : to_ns;

        if (span->thread == thread && span->kind >= span_callout && i != except && end_ns - begin_ns > longest_ns) {
            longest_ns = end_ns - begin_ns;
            found = i;
        }
    }
    return found;
}

/* Whether the samples tell what the thread did in that time. */
static bool prove_turns(struct explainer *explainer, uint32_t thread, int64_t from_ns, int64_t to_ns)
{
    const int64_t ran_ns = turns_between(explainer->story, thread, turn_runs, from_ns, to_ns);
    const int64_t waited_ns = turns_between(explainer->story, thread, turn_waits, from_ns, to_ns);
    const int64_t slept_ns = to_ns - from_ns - ran_ns - waited_ns;

    if (ran_ns == 0 && waited_ns == 0) {
        return false;
    }
    findings_prove(&explainer->findings, "In these %.3f s the thread waited %.3f s for a processor, ran %.3f s, and slept %.3f s.",
                   seconds(to_ns - from_ns), seconds(waited_ns), seconds(ran_ns), seconds(slept_ns > 0 ? slept_ns : 0));
    return true;
}

/* The innermost function of a stack that is in a file: one of the kernel's for programs (clock_gettime) says nothing. */
static uint32_t function_of(const struct story *story, uint32_t node)
{
    while (story->nodes[node].parent > 0 && strcmp(story->names[story->nodes[node].name].name, symbol_without_file) == 0) {
        node = story->nodes[node].parent - 1;
    }
    return story->nodes[node].name;
}

/* The function in which the callout was found most often, by itself and not by what it called. */
static void prove_samples(struct explainer *explainer, const struct span *span)
{
    const struct story *story = explainer->story;
    struct pair_table counts = {NULL, 0, 0};
    uint64_t count = 0;
    uint64_t most = 0;
    uint32_t name = 0;

    for (size_t i = 0; i < story->sample_count; i++) {
        const struct stack_sample_of_story *sample = &story->samples[i];

        if (sample->thread == span->thread && sample->time_ns >= span->begin_ns && sample->time_ns < span->end_ns) {
            uint32_t function = function_of(story, sample->node);
            uint64_t own = ++*pair_table_value(&counts, function, 0);

            count++;
            name = own > most ? function : name;
            most = own > most ? own : most;
        }
    }
    free(counts.entries);
    if (count > 0) {
        findings_prove(&explainer->findings,
                       *story->names[name].place ? "%" PRIu64 " of %" PRIu64 " samples are in %.200s (%.200s)."
                                                 : "%" PRIu64 " of %" PRIu64 " samples are in %.200s%.0s.",
                       most, count, story->names[name].name, story->names[name].place);
    }
}

static void prove_callout(struct explainer *explainer, uint32_t place, const char *what)
{
    const struct span *span = &explainer->story->spans[place];
    char function[function_text_size];

    findings_prove(&explainer->findings, "%s %s from %.3f s on for %.3f s.", function_text(explainer, span->kind, span->name, function),
                   what, moment(explainer, span->begin_ns), seconds(span->end_ns - span->begin_ns));
    if (!prove_turns(explainer, span->thread, span->begin_ns, span->end_ns) && span->off_ns > 0) {
        findings_prove(&explainer->findings, "It was off the processor for %.3f s of that, as in a wait for a lock, a file or a sleep.",
                       seconds(span->off_ns));
    }
    prove_samples(explainer, span);
}

static void add_requests(struct explainer *explainer)
{
    const struct story *story = explainer->story;
    char name[thread_text_size];

    for (size_t i = 0; i < story->request_count; i++) {
        const struct awaited_request *request = &story->requests[i];
        uint32_t callout;

        if (request->result == 0 || request->result == request_result_count || is_in_deadlock(story, request) ||
            (request->result == request_unfinished && request->end_ns - request->begin_ns < story->stall_ns)) {
            continue;
        }
        if (!findings_add(&explainer->findings, finding_no_reply, process_of(explainer, request->thread),
                          thread_at(explainer, request->thread)->number, "%s waited %.3f s for a reply from %s, message %d: %s.",
                          thread_text(explainer, request->thread, name), seconds(request->end_ns - request->begin_ns),
                          story->names[request->name].name, (int)request->message, request_result_name(request->result))) {
            return;
        }
        if (request->server == no_thread) {
            findings_prove(&explainer->findings, "No thread in the traces answers for that port.");
            continue;
        }
        findings_prove(&explainer->findings, "%s answers for the port.", thread_text(explainer, request->server, name));
        callout = longest_callout(story, request->server, request->begin_ns, request->end_ns, no_span);
        if (callout != no_span && story->spans[callout].end_ns - story->spans[callout].begin_ns >= story->stall_ns) {
            prove_callout(explainer, callout, "had that thread");
        } else {
            findings_prove(&explainer->findings, "It was not busy: it runs in a mode without the port's source, or does not run.");
        }
    }
}

static void add_hangs(struct explainer *explainer)
{
    const struct story *story = explainer->story;
    char name[thread_text_size];

    for (uint32_t i = 0; i < story->span_count; i++) {
        const struct span *span = &story->spans[i];

        bool is_cut =
            story->traces->processes[thread_at(explainer, span->thread)->process].ended_ns == 0; /* nobody knows for how long it was */

        if (span->kind >= span_callout && (span->flags & span_is_unfinished) &&
            (is_cut || span->end_ns - span->begin_ns >= story->stall_ns) &&
            request_of(explainer, span->thread, span->end_ns - 1) == no_request) {
            if (!findings_add(&explainer->findings, finding_hangs, process_of(explainer, span->thread),
                              thread_at(explainer, span->thread)->number, "%s was still in a callout when %s.",
                              thread_text(explainer, span->thread, name),
                              is_cut ? "the process was killed, if it does not go on" : "the trace ended")) {
                return;
            }
            prove_callout(explainer, i, "had the thread");
        }
    }
}

/* ---- loops that are awake ---- */

/* The callouts of one function for one descriptor. */
struct tally {
    uint32_t name;
    int32_t descriptor;
    uint8_t kind;
    uint8_t readiness;
    uint64_t count;
    int64_t total_ns;
};

/* The callouts that the thread had most often, or in which it was longest. A count of 0: none. */
static struct tally most_frequent(const struct story *story, uint32_t thread, bool by_time)
{
    enum { tallies_most = 256 };
    struct tally tallies[tallies_most];
    size_t count = 0;
    struct tally best = {.count = 0};

    for (size_t i = 0; i < story->span_count; i++) {
        const struct span *span = &story->spans[i];
        size_t at = 0;

        if (span->thread != thread || span->kind < span_callout || span->kind == span_of_callout(trace_observer)) {
            continue;
        }
        while (at < count &&
               (tallies[at].name != span->name || tallies[at].kind != span->kind || tallies[at].descriptor != span->descriptor)) {
            at++;
        }
        if (at == tallies_most) {
            continue;
        }
        if (at == count) {
            tallies[count++] =
                (struct tally){.name = span->name, .kind = span->kind, .descriptor = span->descriptor, .readiness = span->readiness};
        }
        tallies[at].count++;
        tallies[at].total_ns += span->end_ns - span->begin_ns;
        if (by_time ? tallies[at].total_ns > best.total_ns : tallies[at].count > best.count) {
            best = tallies[at];
        }
    }
    return best;
}

static double share_awake(const struct loop_figures *loop)
{
    return loop->running_ns > 0 ? 1 - (double)loop->asleep_ns / (double)loop->running_ns : 0;
}

static void prove_loop(struct explainer *explainer, const struct loop_figures *loop)
{
    double length = seconds(loop->running_ns);

    findings_prove(&explainer->findings, "It is awake %.0f %% of the time, and makes %.0f passes a second.", share_awake(loop) * 100,
                   (double)loop->passes / length);
    if (loop->watched_ns > 0) {
        findings_prove(&explainer->findings, "It has %.0f %% of a processor.", (double)loop->processor_ns / (double)loop->watched_ns * 100);
    }
    if (loop->futile > 0) {
        findings_prove(&explainer->findings, "%" PRIu64 " of its %" PRIu64 " waits returned at once.", loop->futile, loop->sleeps);
    }
}

/* What keeps a loop awake that does little in each pass. */
static void add_spin(struct explainer *explainer, uint32_t thread)
{
    const struct story *story = explainer->story;
    const struct loop_figures *loop = &story->loops[thread];
    struct tally most = most_frequent(story, thread, false);
    double rate = (double)most.count / seconds(loop->running_ns);
    char text[function_text_size];
    const char *function = most.count > 0 ? function_text(explainer, most.kind, most.name, text) : "";
    char said[256];

    if (most.count * 2 < loop->passes) {
        function = "the loop";
        (void)snprintf(said, sizeof said, "it is run with a limit of no time, or woken, again and again");
        rate = (double)loop->passes / seconds(loop->running_ns);
    } else if (most.descriptor >= 0) {
        (void)snprintf(said, sizeof said, "descriptor %d is %s", (int)most.descriptor,
                       most.readiness == 1   ? "readable and nobody reads it"
                       : most.readiness == 2 ? "writable and nobody needs that"
                                             : "ready and nobody takes what it has");
    } else if (most.kind == span_of_callout(trace_timer)) {
        (void)snprintf(said, sizeof said, "a timer's interval is too short, or it gives itself a date in the past");
    } else {
        (void)snprintf(said, sizeof said, "what was called is signalled or posted again at once");
    }
    if (findings_add(&explainer->findings, finding_spins, process_of(explainer, thread), thread_at(explainer, thread)->number,
                     "thread %d (%s): %s: %s, %.0f times a second.", (int)thread_at(explainer, thread)->number,
                     thread_at(explainer, thread)->name, said, function, rate)) {
        prove_loop(explainer, loop);
    }
}

static void add_waking(struct explainer *explainer, uint32_t thread)
{
    const struct story *story = explainer->story;
    const struct loop_figures *loop = &story->loops[thread];
    struct tally most = most_frequent(story, thread, false);
    uint64_t sleeps = loop->sleeps - loop->futile;
    bool is_limit = loop->causes[trace_cause_limit] * 2 > loop->sleeps;
    char text[function_text_size];

    if ((double)sleeps / seconds(loop->running_ns) < wakes_least || share_awake(loop) > 0.5) {
        return;
    }
    if (!is_limit && (loop->causes[trace_cause_timer] * 2 < loop->sleeps || most.kind != span_of_callout(trace_timer))) {
        return; /* it has work */
    }
    if (findings_add(&explainer->findings, finding_wakes_often, process_of(explainer, thread), thread_at(explainer, thread)->number,
                     "thread %d (%s) wakes %.0f times a second: %s.", (int)thread_at(explainer, thread)->number,
                     thread_at(explainer, thread)->name, (double)sleeps / seconds(loop->running_ns),
                     is_limit ? "it runs the loop with a short limit, again and again"
                              : function_text(explainer, most.kind, most.name, text))) {
        prove_loop(explainer, loop);
    }
}

static void add_awake(struct explainer *explainer)
{
    const struct story *story = explainer->story;

    for (uint32_t i = 0; i < story->traces->thread_count; i++) {
        const struct loop_figures *loop = &story->loops[i];
        int64_t pass_ns = loop->passes > 0 ? loop->running_ns / (int64_t)loop->passes : loop->running_ns;

        if ((loop->running_ns < watched_least_ns && loop->passes < passes_least) ||
            explainer->findings.by_kind[finding_spins] + explainer->findings.by_kind[finding_wakes_often] > findings_of_kind_most) {
            continue;
        }
        if (share_awake(loop) >= spin_least && pass_ns < story->stall_ns / 100) {
            add_spin(explainer, i);
        } else {
            add_waking(explainer, i);
        }
    }
}

/* ---- late and stuck ---- */

/* What the thread did between a timer's date and its callout. */
static void prove_lateness(struct explainer *explainer, uint32_t place)
{
    const struct story *story = explainer->story;
    const struct span *span = &story->spans[place];
    const int64_t late_ns = span->begin_ns - span->due_ns;
    const int64_t waited_ns = turns_between(story, span->thread, turn_waits, span->due_ns, span->begin_ns);
    const uint32_t callout = longest_callout(story, span->thread, span->due_ns, span->begin_ns, place);

    if (waited_ns > late_ns / 2) {
        findings_prove(&explainer->findings, "That is because the thread waited for a processor %.3f s of %.3f s.", seconds(waited_ns),
                       seconds(late_ns));
    }
    if (callout != no_span) {
        prove_callout(explainer, callout, "had the thread");
    } else if (waited_ns <= late_ns / 2) {
        findings_prove(&explainer->findings, "No callout had the thread: the kernel woke it late, or it did not run the loop.");
        (void)prove_turns(explainer, span->thread, span->due_ns, span->begin_ns);
    }
}

/* Of each timer the latest callout. */
static void add_late(struct explainer *explainer)
{
    const struct story *story = explainer->story;
    struct pair_table worst = {NULL, 0, 0}; /* (thread, name) -> the place plus 1 */
    struct pair_table counts = {NULL, 0, 0};
    char text[function_text_size];
    char name[thread_text_size];

    for (uint32_t i = 0; i < story->span_count; i++) {
        const struct span *span = &story->spans[i];
        uint64_t *place;

        if (span->due_ns == INT64_MIN || span->begin_ns - span->due_ns < story->stall_ns / 5) {
            continue;
        }
        (*pair_table_value(&counts, span->thread, span->name))++;
        place = pair_table_value(&worst, span->thread, span->name);
        if (*place == 0 || span->begin_ns - span->due_ns > story->spans[*place - 1].begin_ns - story->spans[*place - 1].due_ns) {
            *place = i + UINT64_C(1);
        }
    }
    for (size_t i = 0; i < worst.capacity; i++) {
        uint32_t place = (uint32_t)(worst.entries[i].value - 1);
        const struct span *span = worst.entries[i].value > 0 ? &story->spans[place] : NULL;

        if (!span || !findings_add(&explainer->findings, finding_late, process_of(explainer, span->thread),
                                   thread_at(explainer, span->thread)->number, "%s in %s was up to %.3f s late, %" PRIu64 " times.",
                                   function_text(explainer, span->kind, span->name, text), thread_text(explainer, span->thread, name),
                                   seconds(span->begin_ns - span->due_ns), *pair_table_value(&counts, span->thread, span->name))) {
            continue;
        }
        prove_lateness(explainer, place);
    }
    free(worst.entries);
    free(counts.entries);
}

/* Stalls by the function that had the thread for longest in each. */
static void add_stalls(struct explainer *explainer)
{
    const struct story *story = explainer->story;
    struct pair_table told = {NULL, 0, 0};
    char name[thread_text_size];

    for (size_t i = 0; i < story->stall_count; i++) {
        const struct stall_interval *stall = &story->stalls[i];
        const struct span *worst = stall->worst == no_span ? NULL : &story->spans[stall->worst];
        uint64_t *value;

        if (!worst || worst->end_ns - worst->begin_ns < story->stall_ns / 2) {
            continue; /* many small ones: a loop that spins, or has much to do */
        }
        value = pair_table_value(&told, worst->thread, worst->name);
        if (*value > 0) {
            continue;
        }
        *value = 1;
        if (findings_add(&explainer->findings, finding_stalls, process_of(explainer, stall->thread),
                         thread_at(explainer, stall->thread)->number, "%s did not sleep for %.3f s.",
                         thread_text(explainer, stall->thread, name), seconds(stall->end_ns - stall->begin_ns))) {
            prove_callout(explainer, stall->worst, "had the thread");
        }
    }
    free(told.entries);
}

/* ---- never called ---- */

static bool has_lost(const struct story *story, uint32_t process)
{
    for (size_t i = 0; i < story->traces->thread_count; i++) {
        if (story->traces->threads[i].process == process && story->traces->threads[i].lost > 0) {
            return true;
        }
    }
    return story->traces->processes[process].lost > 0;
}

static void add_unrun_modes(struct explainer *explainer)
{
    const struct story *story = explainer->story;
    char text[function_text_size];

    for (size_t i = 0; i < story->joined_count; i++) {
        const struct joined_item *item = &story->joined[i];
        uint32_t ran = UINT32_MAX;

        for (uint32_t k = 0; k < story->span_count && ran == UINT32_MAX; k++) {
            ran = story->spans[k].kind == span_run && story->spans[k].thread == item->thread ? k : UINT32_MAX;
        }
        if (ran == UINT32_MAX || has_lost(story, thread_at(explainer, item->thread)->process)) {
            continue; /* another thread's loop, or its runs may be among what is lost */
        }
        if (findings_add(&explainer->findings, finding_never, process_of(explainer, item->thread),
                         thread_at(explainer, item->thread)->number, "%s was added in the mode %s, which never ran.",
                         function_text(explainer, item->kind, item->name, text), story->names[item->mode_name].name)) {
            findings_prove(&explainer->findings, "The loop ran in %s.", story->names[story->spans[ran].name].name);
        }
    }
}

/* Sources that were signalled and not called. */
static void add_unheard_signals(struct explainer *explainer)
{
    const struct traces *traces = explainer->story->traces;
    struct pair_table signalled = {NULL, 0, 0};
    char name[thread_text_size];

    for (size_t i = 0; i < traces->event_count; i++) {
        const struct event *event = &traces->events[i];

        if (event->kind == trace_signal || (event->kind == trace_callout_begins && (event->detail & 0xff) == trace_source)) {
            /* 1: it was called */
            *pair_table_value(&signalled, traces->threads[event->thread].process, event->object) = event->kind == trace_signal ? i + 2 : 1;
        }
    }
    for (size_t i = 0; i < signalled.capacity; i++) {
        const struct event *event = signalled.entries[i].value > 1 ? &traces->events[signalled.entries[i].value - 2] : NULL;

        if (event && traces->end_ns - event->time_ns >= explainer->story->stall_ns &&
            findings_add(
                &explainer->findings, finding_never, process_of(explainer, event->thread), thread_at(explainer, event->thread)->number,
                "a source that %s signalled at %.3f s was not called in the %.3f s until the end.",
                thread_text(explainer, event->thread, name), moment(explainer, event->time_ns), seconds(traces->end_ns - event->time_ns))) {
            findings_prove(&explainer->findings,
                           "Nobody has woken its loop (CFRunLoopWakeUp), or the loop does not run a mode that has it.");
        }
    }
    free(signalled.entries);
}

int explain_traces(int count, char **files, int64_t stall_ns, bool is_json)
{
    struct traces traces = {0};
    struct story story;
    struct explainer explainer = {.story = &story};
    int status = traces_read(&traces, count, files);

    if (status != exit_success) {
        return status;
    }
    story_tell(&story, &traces, stall_ns);
    add_deadlocks(&explainer);
    add_requests(&explainer);
    add_hangs(&explainer);
    add_awake(&explainer);
    add_unrun_modes(&explainer);
    add_unheard_signals(&explainer);
    add_late(&explainer);
    add_stalls(&explainer);
    return findings_write(&explainer.findings, "All is well.", is_json);
}
