/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a line for each span, each arrow, and each thread's lost events. Texts are quoted as RFC 4180 says, and have question marks for
 * control characters, because the table may go to a terminal.
 */
#include <inttypes.h>
#include <string.h>

#include "runloop.h"

static void put_text(FILE *file, const char *text)
{
    const char *quote = strpbrk(text, ",\"") ? "\"" : "";

    (void)fputs(quote, file);
    for (; *text; text++) {
        if (*text == '"') {
            (void)fputc('"', file);
        }
        (void)fputc((unsigned char)*text < ' ' || *text == '\x7f' ? '?' : *text, file);
    }
    (void)fputs(quote, file);
}

/* What a span's row has in the column `detail`. */
static const char *detail_of(const struct span *span)
{
    if (span->kind == span_sleep) {
        return cause_name(span->cause);
    }
    return span->kind == span_of_callout(trace_observer) ? activity_name(span->cause) : "";
}

static void put_span(const struct story *story, const struct span *span, FILE *file)
{
    const struct traces *traces = story->traces;
    const struct thread *thread = &traces->threads[span->thread];

    (void)fprintf(file, "%d,%d,%s,", (int)traces->processes[thread->process].number, (int)thread->number, span_kind_name(span->kind));
    put_text(file, story->names[span->name].name);
    (void)fprintf(file, ",%s,0x%" PRIx64 ",%d,%" PRId64 ",%" PRId64 ",", detail_of(span), span->object, span->depth,
                  span->begin_ns - traces->origin_ns, span->end_ns - span->begin_ns);
    if (span->due_ns != INT64_MIN) {
        (void)fprintf(file, "%" PRId64, span->begin_ns - span->due_ns);
    }
    (void)fprintf(file, ",,,,%s,", span_state(span));
    put_text(file, story->names[span->name].place);
    (void)fprintf(file, span->off_ns > 0 ? ",%" PRId64 "\n" : ",\n", span->off_ns);
}

static void put_flow(const struct story *story, const struct flow *flow, FILE *file)
{
    const struct traces *traces = story->traces;
    const struct thread *from = &traces->threads[flow->from_thread];
    const struct thread *to = &traces->threads[flow->to_thread];

    (void)fprintf(file, "%d,%d,arrow,", (int)traces->processes[to->process].number, (int)to->number);
    if (flow->to_span != no_span) {
        put_text(file, story->names[story->spans[flow->to_span].name].name);
    }
    (void)fprintf(file, ",%s,,,%" PRId64 ",%" PRId64 ",,%d,%d,%" PRId64 ",,,\n", flow_kind_name(flow->kind),
                  flow->to_ns - traces->origin_ns, flow->to_ns - flow->from_ns, (int)traces->processes[from->process].number,
                  (int)from->number, flow->from_ns - traces->origin_ns);
}

static void put_request(const struct story *story, const struct awaited_request *request, FILE *file)
{
    const struct traces *traces = story->traces;
    const struct thread *thread = &traces->threads[request->thread];

    (void)fprintf(file, "%d,%d,request,", (int)traces->processes[thread->process].number, (int)thread->number);
    put_text(file, story->names[request->name].name);
    (void)fprintf(file, ",message %d,,,%" PRId64 ",%" PRId64 ",,", (int)request->message, request->begin_ns - traces->origin_ns,
                  request->end_ns - request->begin_ns);
    if (request->server != no_thread) {
        const struct thread *server = &traces->threads[request->server];

        (void)fprintf(file, "%d,%d", (int)traces->processes[server->process].number, (int)server->number);
    } else {
        (void)fputc(',', file);
    }
    (void)fprintf(file, ",,%s,,\n", request_result_name(request->result));
}

static void put_deadlock(const struct story *story, const struct deadlock *deadlock, FILE *file)
{
    const struct awaited_request *request = &story->requests[deadlock->request];
    const struct thread *thread = &story->traces->threads[request->thread];

    (void)fprintf(file, "%d,%d,deadlock,", (int)story->traces->processes[thread->process].number, (int)thread->number);
    put_text(file, story->names[request->name].name);
    (void)fprintf(file, ",%u threads,,,%" PRId64 ",%" PRId64 ",,,,,,,\n", deadlock->members, deadlock->begin_ns - story->traces->origin_ns,
                  deadlock->end_ns - deadlock->begin_ns);
}

/* The stack is in the column `detail`, the outermost function first. */
static void put_sample(const struct story *story, const struct stack_sample_of_story *sample, FILE *file)
{
    enum { stack_text_most = 8192 };
    const struct traces *traces = story->traces;
    const struct thread *thread = &traces->threads[sample->thread];
    const struct code_name *innermost = &story->names[story->nodes[sample->node].name];
    char text[stack_text_most];
    size_t at = sizeof text - 1;

    text[at] = '\0';
    for (uint32_t node = sample->node + 1; node > 0; node = story->nodes[node - 1].parent) {
        const char *name = story->names[story->nodes[node - 1].name].name;
        const size_t length = strlen(name) + (text[at] != '\0');

        if (length > at) {
            break; /* outer functions are left out */
        }
        at -= length;
        memcpy(text + at, name, strlen(name));
        if (length > strlen(name)) {
            text[at + length - 1] = ';';
        }
    }
    (void)fprintf(file, "%d,%d,sample,", (int)traces->processes[thread->process].number, (int)thread->number);
    put_text(file, innermost->name);
    (void)fputc(',', file);
    put_text(file, text + at);
    (void)fprintf(file, ",,,%" PRId64 ",%" PRId64 ",,,,,,", sample->time_ns - traces->origin_ns, traces->sample_step_ns);
    put_text(file, innermost->place);
    (void)fputs(",\n", file);
}

static void put_turn(const struct story *story, const struct processor_turn *turn, FILE *file)
{
    const struct traces *traces = story->traces;
    const struct thread *thread = &traces->threads[turn->thread];

    (void)fprintf(file, "%d,%d,processor,,%s,,,%" PRId64 ",%" PRId64 ",,,,,,,\n", (int)traces->processes[thread->process].number,
                  (int)thread->number, turn_kind_name((int)turn->kind), turn->begin_ns - traces->origin_ns, turn->end_ns - turn->begin_ns);
}

static void put_lost(const struct story *story, FILE *file)
{
    const struct traces *traces = story->traces;

    for (size_t i = 0; i < traces->thread_count; i++) {
        const struct thread *thread = &traces->threads[i];

        if (thread->lost > 0) {
            (void)fprintf(file, "%d,%d,lost events,,%" PRIu64 ",,,,,,,,,,,\n", (int)traces->processes[thread->process].number,
                          (int)thread->number, thread->lost);
        }
    }
    if (traces->samples_lost > 0) {
        (void)fprintf(file, ",,lost samples,,%" PRIu64 ",,,,,,,,,,,\n", traces->samples_lost);
    }
    for (size_t i = 0; i < traces->process_count; i++) {
        if (traces->processes[i].lost > 0) {
            (void)fprintf(file, "%d,,lost events,,%" PRIu64 ",,,,,,,,,,,\n", (int)traces->processes[i].number, traces->processes[i].lost);
        }
    }
}

int write_csv(const struct story *story, FILE *file)
{
    (void)fputs(
        "process,thread,what,name,detail,object,depth,begin_ns,duration_ns,late_ns,from_process,from_thread,from_ns,state,place,off_ns\n",
        file);
    for (size_t i = 0; i < story->span_count; i++) {
        put_span(story, &story->spans[i], file);
    }
    for (size_t i = 0; i < story->flow_count; i++) {
        put_flow(story, &story->flows[i], file);
    }
    for (size_t i = 0; i < story->request_count; i++) {
        put_request(story, &story->requests[i], file);
    }
    for (size_t i = 0; i < story->deadlock_count; i++) {
        put_deadlock(story, &story->deadlocks[i], file);
    }
    for (size_t i = 0; i < story->sample_count; i++) {
        put_sample(story, &story->samples[i], file);
    }
    for (size_t i = 0; i < story->turn_count; i++) {
        put_turn(story, &story->turns[i], file);
    }
    put_lost(story, file);
    return exit_success;
}
