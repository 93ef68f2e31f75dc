/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a story had of the processor, from the samples in the trace: which sleeps returned at once, because the thread has
 * not waited meanwhile, and for how long long callouts were off the processor.
 *
 * A sample is written with an event if the last one is a tenth of a millisecond ago or more. So times are known to that.
 */
#include <stdlib.h>

#include "runloop.h"

static const int64_t sample_step_ns = 100000;

struct usage_sample {
    int64_t time_ns;
    int64_t processor_ns;
    uint64_t waits;
};

/* Of one thread, by time. */
struct usage_samples {
    struct usage_sample *all;
    size_t count, capacity;
    int64_t *slept_ns; /* by sample: how long the loop has slept until then */
};

/* The number of samples until that time, itself included. */
static size_t samples_until(const struct usage_samples *samples, int64_t time_ns)
{
    size_t low = 0;
    size_t high = samples->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (samples->all[middle].time_ns <= time_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The thread has slept if it has waited between the last sample before the sleep and the first one after it. */
static bool has_waited(const struct usage_samples *samples, const struct span *span)
{
    size_t before = samples_until(samples, span->begin_ns);
    size_t after = samples_until(samples, span->end_ns - 1);

    if (before == 0 || after >= samples->count) {
        return true; /* not known */
    }
    return samples->all[after].waits != samples->all[before - 1].waits;
}

static void judge_sleeps(struct story *story, struct usage_samples *threads)
{
    for (size_t i = 0; i < story->span_count; i++) {
        struct span *span = &story->spans[i];
        struct usage_samples *samples = &threads[span->thread];
        struct loop_figures *loop = &story->loops[span->thread];
        int64_t length_ns = span->end_ns - span->begin_ns;

        if (span->kind != span_sleep || samples->count == 0) {
            continue;
        }
        if (!has_waited(samples, span)) {
            span->flags |= span_is_futile;
            loop->futile++;
            loop->asleep_ns -= loop->asleep_ns > length_ns ? length_ns : loop->asleep_ns;
        } else if (samples_until(samples, span->end_ns) > 0) {
            samples->slept_ns[samples_until(samples, span->end_ns) - 1] += length_ns;
        }
    }
    for (size_t i = 0; i < story->traces->thread_count; i++) {
        for (size_t k = 1; k < threads[i].count; k++) {
            threads[i].slept_ns[k] += threads[i].slept_ns[k - 1];
        }
    }
}

/* How long a callout was off the processor, apart from the sleeps of runs in it. */
static int64_t time_off(const struct usage_samples *samples, const struct span *span)
{
    size_t first = samples_until(samples, span->begin_ns);
    size_t last = samples_until(samples, span->end_ns);
    int64_t length_ns = span->end_ns - span->begin_ns;
    int64_t off_ns;

    if (length_ns < sample_step_ns || first == 0 || last <= first) {
        return 0;
    }
    first--;
    last--;
    off_ns = samples->all[last].time_ns - samples->all[first].time_ns -
             (samples->all[last].processor_ns - samples->all[first].processor_ns) - (samples->slept_ns[last] - samples->slept_ns[first]);
    return off_ns < sample_step_ns ? 0 : off_ns < length_ns ? off_ns : length_ns;
}

static struct usage_samples *collect(const struct story *story)
{
    const struct traces *traces = story->traces;
    struct usage_samples *threads = make_room(traces->thread_count, sizeof *threads);

    for (size_t i = 0; i < traces->event_count; i++) {
        const struct event *event = &traces->events[i];
        struct usage_samples *samples = &threads[event->thread];
        const struct usage_sample *last = samples->count > 0 ? &samples->all[samples->count - 1] : NULL;

        /* Clocks do not go backwards in a trace that is true. */
        if (event->kind == trace_usage && event->value <= (uint64_t)time_most_ns &&
            (!last || (int64_t)event->value >= last->processor_ns)) {
            samples->all = grow_array(samples->all, samples->count, &samples->capacity, sizeof *samples->all);
            samples->all[samples->count++] = (struct usage_sample){event->time_ns, (int64_t)event->value, event->object};
        }
    }
    for (size_t i = 0; i < traces->thread_count; i++) {
        threads[i].slept_ns = make_room(threads[i].count, sizeof *threads[i].slept_ns);
    }
    return threads;
}

void story_tell_usage(struct story *story)
{
    struct usage_samples *threads = collect(story);

    judge_sleeps(story, threads);
    for (size_t i = 0; i < story->span_count; i++) {
        if (story->spans[i].kind >= span_callout) {
            story->spans[i].off_ns = time_off(&threads[story->spans[i].thread], &story->spans[i]);
        }
    }
    for (size_t i = 0; i < story->traces->thread_count; i++) {
        if (threads[i].count > 1) {
            const struct usage_sample *last = &threads[i].all[threads[i].count - 1];

            story->loops[i].watched_ns = last->time_ns - threads[i].all[0].time_ns;
            story->loops[i].processor_ns = last->processor_ns - threads[i].all[0].processor_ns;
        }
        free(threads[i].all);
        free(threads[i].slept_ns);
    }
    free(threads);
}
