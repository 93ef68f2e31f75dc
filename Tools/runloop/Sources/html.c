/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the page: the viewer's text (viewer.html), which is part of this command, with the story in the place of one mark in it.
 *
 * Columns of spans and arrows are the bytes of typed arrays in base 64, because a browser reads them ten times as fast as text. Figures and
 * names are JSON. The page computes no figure.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_string.h"
#include "runloop.h"

/* The file as it is, between two symbols. */
__asm__(".section .rodata\n"
        ".global runloop_viewer\n"
        ".global runloop_viewer_end\n"
        "runloop_viewer:\n"
        ".incbin \"" VIEWER "\"\n"
        "runloop_viewer_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char runloop_viewer[];
extern const char runloop_viewer_end[];

static const char place[] = "/*STORY*/";

/* ---- base 64 ---- */

struct coder {
    FILE *file;
    uint32_t bits;
    int bytes;
};

static void put_digits(struct coder *coder, int count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    invariant(count > 0 && count <= 3 && coder->bits >> 24 == 0);
    for (int i = 0; i < 4; i++) {
        (void)putc_unlocked(i <= count ? digits[coder->bits >> (18 - 6 * i) & 63] : '=', coder->file);
    }
    coder->bits = 0;
    coder->bytes = 0;
}

/* The bytes of a number, the lowest first, because browsers keep typed arrays in this order. */
static void put_number(struct coder *coder, uint64_t number, int size)
{
    invariant(size > 0 && size <= 8 && coder->bytes >= 0 && coder->bytes < 3);
    for (int i = 0; i < size; i++) {
        coder->bits |= (uint32_t)(number >> 8 * i & 0xff) << (16 - 8 * coder->bytes);
        if (++coder->bytes == 3) {
            put_digits(coder, 3);
        }
    }
}

static void put_double(struct coder *coder, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    put_number(coder, bits, sizeof bits);
}

static struct coder column_begin(FILE *file, const char *name)
{
    (void)fprintf(file, "%s:\"", name);
    return (struct coder){.file = file};
}

static void column_end(struct coder *coder)
{
    if (coder->bytes > 0) {
        put_digits(coder, coder->bytes);
    }
    (void)fputs("\",\n", coder->file);
}

/* ---- JSON ---- */

/* A string that may stand in a script: the end of a tag cannot be in it. */
static void put_string(FILE *file, const char *text)
{
    write_json_string(file, text, strlen(text), "<");
}

/* ---- the story ---- */

/* Spans go by thread, then by depth, then by time, so that each row of the picture is a range. */
static const struct span *sorted_spans;

static int by_row(const void *one, const void *other)
{
    const struct span *a = &sorted_spans[*(const uint32_t *)one];
    const struct span *b = &sorted_spans[*(const uint32_t *)other];

    if (a->thread != b->thread) {
        return a->thread < b->thread ? -1 : 1;
    }
    if (a->depth != b->depth) {
        return a->depth < b->depth ? -1 : 1;
    }
    return *(const uint32_t *)one < *(const uint32_t *)other ? -1 : 1;
}

static uint32_t *order_of(const struct story *story)
{
    uint32_t *order = make_room(story->span_count, sizeof *order);

    for (uint32_t i = 0; i < story->span_count; i++) {
        order[i] = i;
    }
    sorted_spans = story->spans;
    qsort(order, story->span_count, sizeof *order, by_row);
    return order;
}

static void put_spans(const struct story *story, const uint32_t *order, FILE *file)
{
    struct coder coder = column_begin(file, "begin");

    for (size_t i = 0; i < story->span_count; i++) {
        put_double(&coder, (double)(story->spans[order[i]].begin_ns - story->traces->origin_ns));
    }
    column_end(&coder);
    coder = column_begin(file, "length");
    for (size_t i = 0; i < story->span_count; i++) {
        put_double(&coder, (double)(story->spans[order[i]].end_ns - story->spans[order[i]].begin_ns));
    }
    column_end(&coder);
    coder = column_begin(file, "late");
    for (size_t i = 0; i < story->span_count; i++) {
        const struct span *span = &story->spans[order[i]];
        float late = span->due_ns == INT64_MIN ? NAN : (float)(span->begin_ns - span->due_ns);
        uint32_t bits;

        memcpy(&bits, &late, sizeof bits);
        put_number(&coder, bits, sizeof bits);
    }
    column_end(&coder);
    coder = column_begin(file, "off");
    for (size_t i = 0; i < story->span_count; i++) {
        float off = (float)story->spans[order[i]].off_ns;
        uint32_t bits;

        memcpy(&bits, &off, sizeof bits);
        put_number(&coder, bits, sizeof bits);
    }
    column_end(&coder);
    coder = column_begin(file, "name");
    for (size_t i = 0; i < story->span_count; i++) {
        put_number(&coder, story->spans[order[i]].name, 4);
    }
    column_end(&coder);
    coder = column_begin(file, "kind");
    for (size_t i = 0; i < story->span_count; i++) {
        put_number(&coder, story->spans[order[i]].kind, 1);
    }
    column_end(&coder);
    coder = column_begin(file, "cause");
    for (size_t i = 0; i < story->span_count; i++) {
        put_number(&coder, story->spans[order[i]].cause, 1);
    }
    column_end(&coder);
    coder = column_begin(file, "flags");
    for (size_t i = 0; i < story->span_count; i++) {
        put_number(&coder, story->spans[order[i]].flags, 1);
    }
    column_end(&coder);
}

static void put_rows(const struct story *story, const uint32_t *order, FILE *file)
{
    (void)fputs("rows:[", file);
    for (size_t from = 0, to = 0; from < story->span_count; from = to) {
        const struct span *first = &story->spans[order[from]];

        while (to < story->span_count && story->spans[order[to]].thread == first->thread && story->spans[order[to]].depth == first->depth) {
            to++;
        }
        invariant(from < to);
        (void)fprintf(file, "[%u,%d,%zu,%zu],", first->thread, first->depth, from, to);
    }
    (void)fputs("],\n", file);
}

static void put_flows(const struct story *story, const uint32_t *order, FILE *file)
{
    uint32_t *places = make_room(story->span_count, sizeof *places);
    struct coder coder = column_begin(file, "flows");

    for (uint32_t i = 0; i < story->span_count; i++) {
        places[order[i]] = i;
    }
    for (size_t i = 0; i < story->flow_count; i++) {
        const struct flow *flow = &story->flows[i];

        invariant(flow->to_span == no_span || flow->to_span < story->span_count);
        put_double(&coder, (double)(flow->from_ns - story->traces->origin_ns));
        put_double(&coder, (double)(flow->to_ns - story->traces->origin_ns));
        put_double(&coder, flow->from_thread);
        put_double(&coder, flow->to_thread);
        put_double(&coder, flow->to_span == no_span ? -1 : (double)places[flow->to_span]);
        put_double(&coder, flow->kind);
    }
    column_end(&coder);
    (void)fputs("stalls:[", file);
    for (size_t i = 0; i < story->stall_count; i++) {
        const struct stall_interval *stall = &story->stalls[i];

        (void)fprintf(file, "[%u,%" PRId64 ",%" PRId64 ",%" PRId64 "],", stall->thread, stall->begin_ns - story->traces->origin_ns,
                      stall->end_ns - stall->begin_ns, stall->worst == no_span ? -1 : (int64_t)places[stall->worst]);
    }
    (void)fputs("],\n", file);
    free(places);
}

/* Samples and turns are by thread: ranges of their columns, as the rows of spans. */
static void put_samples(const struct story *story, FILE *file)
{
    const struct traces *traces = story->traces;
    struct coder coder = column_begin(file, "sampleTime");

    for (size_t i = 0; i < story->sample_count; i++) {
        put_double(&coder, (double)(story->samples[i].time_ns - traces->origin_ns));
    }
    column_end(&coder);
    coder = column_begin(file, "sampleNode");
    for (size_t i = 0; i < story->sample_count; i++) {
        put_number(&coder, story->samples[i].node, 4);
    }
    column_end(&coder);
    coder = column_begin(file, "nodes");
    for (size_t i = 0; i < story->node_count; i++) {
        put_number(&coder, story->nodes[i].parent, 4);
        put_number(&coder, story->nodes[i].name, 4);
    }
    column_end(&coder);
    (void)fputs("sampleRows:[", file);
    for (size_t from = 0, to = 0; from < story->sample_count; from = to) {
        while (to < story->sample_count && story->samples[to].thread == story->samples[from].thread) {
            to++;
        }
        (void)fprintf(file, "[%u,0,%zu,%zu],", story->samples[from].thread, from, to);
    }
    (void)fprintf(file, "],\nsampleStep:%" PRId64 ",samplesLost:%" PRIu64 ",\n", traces->sample_step_ns, traces->samples_lost);
}

static void put_turns(const struct story *story, FILE *file)
{
    struct coder coder = column_begin(file, "turnBegin");

    for (size_t i = 0; i < story->turn_count; i++) {
        put_double(&coder, (double)(story->turns[i].begin_ns - story->traces->origin_ns));
    }
    column_end(&coder);
    coder = column_begin(file, "turnLength");
    for (size_t i = 0; i < story->turn_count; i++) {
        put_double(&coder, (double)(story->turns[i].end_ns - story->turns[i].begin_ns));
    }
    column_end(&coder);
    coder = column_begin(file, "turnKind");
    for (size_t i = 0; i < story->turn_count; i++) {
        put_number(&coder, story->turns[i].kind, 1);
    }
    column_end(&coder);
    (void)fputs("turnRows:[", file);
    for (size_t from = 0, to = 0; from < story->turn_count; from = to) {
        while (to < story->turn_count && story->turns[to].thread == story->turns[from].thread) {
            to++;
        }
        (void)fprintf(file, "[%u,0,%zu,%zu],", story->turns[from].thread, from, to);
    }
    (void)fputs("],\n", file);
}

static void put_threads(const struct story *story, FILE *file)
{
    const struct traces *traces = story->traces;

    (void)fputs("processes:[", file);
    for (size_t i = 0; i < traces->process_count; i++) {
        const struct process *process = &traces->processes[i];

        (void)fprintf(file, "{number:%d,lost:%" PRIu64 ",ended:%s,program:", (int)process->number, process->lost,
                      process->ended_ns ? "true" : "false");
        put_string(file, process->program);
        (void)fputs("},", file);
    }
    (void)fputs("],\nthreads:[", file);
    for (size_t i = 0; i < traces->thread_count; i++) {
        const struct thread *thread = &traces->threads[i];
        const struct loop_figures *loop = &story->loops[i];

        (void)fprintf(file,
                      "{process:%u,number:%d,lost:%" PRIu64 ",loop:%s,runs:%" PRIu64 ",passes:%" PRIu64 ",sleeps:%" PRIu64
                      ",callouts:%" PRIu64 ",running:%" PRId64 ",asleep:%" PRId64 ",longest:%" PRId64 ",processor:%" PRId64
                      ",watched:%" PRId64 ",futile:%" PRIu64 ",first:%" PRId64 ",causes:[",
                      thread->process, (int)thread->number, thread->lost, thread->loop ? "true" : "false", loop->runs, loop->passes,
                      loop->sleeps, loop->callouts, loop->running_ns, loop->asleep_ns, loop->longest_awake_ns, loop->processor_ns,
                      loop->watched_ns, loop->futile, thread->first_ns - story->traces->origin_ns);
        for (int cause = 0; cause < trace_cause_count; cause++) {
            (void)fprintf(file, "%" PRIu64 ",", loop->causes[cause]);
        }
        (void)fputs("],name:", file);
        put_string(file, thread->name);
        (void)fputs("},", file);
    }
    (void)fputs("],\n", file);
}

static void put_requests(const struct story *story, FILE *file)
{
    const int64_t origin_ns = story->traces->origin_ns;

    (void)fputs("requests:[", file);
    for (size_t i = 0; i < story->request_count; i++) {
        const struct awaited_request *request = &story->requests[i];

        if (request->result != 0) {
            (void)fprintf(file, "[%u,%u,%d,%" PRId64 ",%" PRId64 ",", request->thread, request->name, (int)request->message,
                          request->begin_ns - origin_ns, request->end_ns - request->begin_ns);
            put_string(file, request_result_name(request->result));
            (void)fprintf(file, ",%" PRId64 "],", request->server == no_thread ? -1 : (int64_t)request->server);
        }
    }
    (void)fputs("],\ndeadlocks:[", file);
    for (size_t i = 0; i < story->deadlock_count; i++) {
        const struct deadlock *deadlock = &story->deadlocks[i];

        (void)fprintf(file, "[%u,%" PRId64 ",%" PRId64 ",%u],", story->requests[deadlock->request].thread, deadlock->begin_ns - origin_ns,
                      deadlock->end_ns - deadlock->begin_ns, deadlock->members);
    }
    (void)fputs("],\n", file);
}

static void put_figures(const struct story *story, FILE *file)
{
    const struct lateness *lateness = &story->lateness;

    (void)fputs("functions:[", file);
    for (size_t i = 0; i < story->function_count; i++) {
        const struct function_figures *figures = &story->functions[i];

        (void)fprintf(file, "[%u,%d,%" PRIu64 ",%" PRId64 ",%" PRId64 "],", figures->name, figures->kind, figures->count, figures->total_ns,
                      figures->longest_ns);
    }
    (void)fprintf(file, "],\nlateness:{count:%" PRIu64 ",p50:%" PRId64 ",p99:%" PRId64 ",most:%" PRId64 ",buckets:[", lateness->count,
                  lateness->p50_ns, lateness->p99_ns, lateness->most_ns);
    for (int i = 0; i < lateness_buckets; i++) {
        (void)fprintf(file, "%" PRIu64 ",", lateness->buckets[i]);
    }
    (void)fprintf(file, "]},\nend:%" PRId64 ",stall:%" PRId64 ",\n", story->traces->end_ns - story->traces->origin_ns, story->stall_ns);
}

static void put_words(const struct story *story, FILE *file)
{
    (void)fputs("kinds:[", file);
    for (int i = 0; i < span_kind_count; i++) {
        put_string(file, span_kind_name(i));
        (void)fputc(',', file);
    }
    (void)fputs("],\nflowKinds:[", file);
    for (int i = 0; i < flow_kind_count; i++) {
        put_string(file, flow_kind_name(i));
        (void)fputc(',', file);
    }
    (void)fputs("],\ncauseNames:[", file);
    for (int i = 0; i <= trace_cause_count; i++) {
        put_string(file, cause_name(i));
        (void)fputc(',', file);
    }
    (void)fputs("],\nactivities:[", file);
    for (int i = 0; i < activity_bits; i++) {
        put_string(file, activity_name(i));
        (void)fputc(',', file);
    }
    (void)fputs("],\nnames:[", file);
    for (size_t i = 0; i < story->name_count; i++) {
        put_string(file, story->names[i].name);
        (void)fputc(',', file);
    }
    (void)fputs("],\nplaces:[", file);
    for (size_t i = 0; i < story->name_count; i++) {
        put_string(file, story->names[i].place);
        (void)fputc(',', file);
    }
    (void)fputs("]", file);
}

int write_html(const struct story *story, FILE *file)
{
    const char *split = strstr(runloop_viewer, place);
    uint32_t *order = order_of(story);

    invariant(split); /* the viewer is a part of this command */
    (void)fwrite(runloop_viewer, 1, (size_t)(split - runloop_viewer), file);
    (void)fputs("{\n", file);
    put_spans(story, order, file);
    put_rows(story, order, file);
    put_flows(story, order, file);
    put_samples(story, file);
    put_turns(story, file);
    put_threads(story, file);
    put_requests(story, file);
    put_figures(story, file);
    put_words(story, file);
    (void)fputs("}", file);
    split += sizeof place - 1;
    (void)fwrite(split, 1, (size_t)(runloop_viewer_end - split), file);
    free(order);
    return exit_success;
}
