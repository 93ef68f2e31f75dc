/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a story has of the samples: their stacks as paths in one tree, and for each thread the turns in which it had a processor or waited
 * for one.
 *
 * The kernel tells who has lost his processor, and not who was woken and has none yet. The trace knows that of loops: when the date of a
 * timer came, and when another thread woke the loop. So the rest of such a sleep is a wait, if it is longer than the kernel takes.
 */
#include <stdlib.h>

#include "Stacks/stack_file.h"
#include "pair_table.h"
#include "runloop.h"

static uint32_t node_of(struct story *story, struct pair_table *children, uint32_t parent, uint32_t name)
{
    uint64_t *value = pair_table_value(children, parent, name);

    if (*value == 0) {
        story->nodes = grow_array(story->nodes, story->node_count, &story->node_capacity, sizeof *story->nodes);
        story->nodes[story->node_count++] = (struct stack_node){parent, name};
        *value = story->node_count;
    }
    return (uint32_t)*value;
}

/*
 * Without a frame pointer the kernel takes what stands in its register for one, so that what follows is no address of code: a stack ends
 * before the first of these.
 */
static uint32_t frames_that_count(const struct traces *traces, const struct sampled *sample)
{
    const struct process *process = &traces->processes[traces->threads[sample->thread].process];
    uint32_t count = 1;

    while (count < sample->count && object_at(process, traces->addresses[sample->first + count] - 1)) {
        count++;
    }
    return count;
}

static void add_sample(struct story *story, struct pair_table *children, const struct sampled *sample)
{
    uint32_t node = 0;

    for (uint32_t i = frames_that_count(story->traces, sample); i > 0; i--) {
        node = node_of(story, children, node, story->frames[sample->first + i - 1]);
    }
    invariant(node > 0 && node <= story->node_count);
    story->samples = grow_array(story->samples, story->sample_count, &story->sample_capacity, sizeof *story->samples);
    story->samples[story->sample_count++] = (struct stack_sample_of_story){sample->time_ns, sample->thread, node - 1};
}

static void add_turn(struct story *story, const struct sampled *sample, int64_t end_ns)
{
    const struct traces *traces = story->traces;
    const int64_t begin_ns = sample->time_ns > traces->origin_ns ? sample->time_ns : traces->origin_ns;

    if (sample->kind == stack_begins_to_sleep || begin_ns >= end_ns) {
        return;
    }
    story->turns = grow_array(story->turns, story->turn_count, &story->turn_capacity, sizeof *story->turns);
    story->turns[story->turn_count++] =
        (struct processor_turn){begin_ns, end_ns, sample->thread, sample->kind == stack_begins_to_run ? turn_runs : turn_waits};
}

/* ---- threads that were woken and had no processor ---- */

static int by_thread_and_begin(const void *one, const void *other)
{
    const struct processor_turn *a = one;
    const struct processor_turn *b = other;

    return a->thread != b->thread ? (a->thread < b->thread ? -1 : 1) : (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* The first of the turns, which are in order, that does not begin before that. */
static size_t turn_from(const struct story *story, size_t count, uint32_t thread, int64_t time_ns)
{
    const struct processor_turn wanted = {.thread = thread, .begin_ns = time_ns};
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (by_thread_and_begin(&story->turns[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The loop was to be woken at that time of its sleep. `count` turns are in order, and others come behind them. */
static void add_wait(struct story *story, size_t count, const struct span *sleep, int64_t woken_ns)
{
    static const int64_t least_ns = 200000; /* timers of the kernel are 50 µs late, unless they are asked not to be */
    const size_t next = turn_from(story, count, sleep->thread, woken_ns);
    const struct processor_turn *after = next < count && story->turns[next].thread == sleep->thread ? &story->turns[next] : NULL;
    const struct processor_turn *before = next > 0 && story->turns[next - 1].thread == sleep->thread ? &story->turns[next - 1] : NULL;

    if (woken_ns < sleep->begin_ns || !after || !before || before->end_ns > woken_ns || after->begin_ns > sleep->end_ns ||
        after->begin_ns - woken_ns < least_ns) {
        return;
    }
    story->turns = grow_array(story->turns, story->turn_count, &story->turn_capacity, sizeof *story->turns);
    story->turns[story->turn_count++] = (struct processor_turn){woken_ns, story->turns[next].begin_ns, sleep->thread, turn_waits};
}

/* A loop may have been woken twice in a sleep: the first time counts. */
static void drop_repeated(struct story *story)
{
    size_t left = 1;

    for (size_t i = 1; i < story->turn_count; i++) {
        const struct processor_turn *before = &story->turns[left - 1];
        const struct processor_turn *turn = &story->turns[i];

        if (turn->thread != before->thread || turn->begin_ns >= before->end_ns) {
            story->turns[left++] = *turn;
        }
    }
    story->turn_count = left;
}

static void add_waits(struct story *story)
{
    const size_t count = story->turn_count;
    const struct span **sleeps = make_room(story->traces->thread_count, sizeof *sleeps); /* the last one of each thread */

    for (size_t i = 0; i < story->flow_count; i++) {
        const struct flow *flow = &story->flows[i];

        if (flow->kind == flow_wake && flow->to_span != no_span) {
            add_wait(story, count, &story->spans[flow->to_span], flow->from_ns);
        }
    }
    for (size_t i = 0; i < story->span_count; i++) {
        const struct span *span = &story->spans[i];

        if (span->kind == span_sleep) {
            sleeps[span->thread] = span->cause == trace_cause_timer ? span : NULL;
        } else if (span->due_ns != INT64_MIN && sleeps[span->thread]) {
            add_wait(story, count, sleeps[span->thread], span->due_ns);
            sleeps[span->thread] = NULL; /* it was the first of the timers */
        }
    }
    free(sleeps);
    if (story->turn_count > count) {
        qsort(story->turns, story->turn_count, sizeof *story->turns, by_thread_and_begin);
        drop_repeated(story);
    }
}

/* ---- the story ---- */

void story_tell_stacks(struct story *story)
{
    const struct traces *traces = story->traces;
    const struct sampled *last = NULL; /* that began a turn, or a sleep, of the thread */
    struct pair_table children = {NULL, 0, 0};

    for (size_t i = 0; i < traces->sample_count; i++) {
        const struct sampled *sample = &traces->samples[i];

        if (last && last->thread != sample->thread) {
            add_turn(story, last, traces->threads[last->thread].last_ns);
            last = NULL;
        }
        if (sample->kind != stack_sample) {
            if (last) {
                add_turn(story, last, sample->time_ns);
            }
            last = sample;
        } else if (sample->time_ns >= traces->origin_ns && sample->time_ns <= traces->end_ns) {
            add_sample(story, &children, sample);
        }
    }
    if (last) {
        add_turn(story, last, traces->threads[last->thread].last_ns);
    }
    free(children.entries);
    add_waits(story);
}

int64_t turns_between(const struct story *story, uint32_t thread, enum turn_kind kind, int64_t from_ns, int64_t to_ns)
{
    int64_t sum_ns = 0;

    for (size_t i = 0; i < story->turn_count; i++) {
        const struct processor_turn *turn = &story->turns[i];
        const int64_t begin_ns = turn->begin_ns > from_ns ? turn->begin_ns : from_ns;
        const int64_t end_ns = turn->end_ns < to_ns ? turn->end_ns : to_ns;

        sum_ns += turn->thread == thread && turn->kind == kind && begin_ns < end_ns ? end_ns - begin_ns : 0;
    }
    return sum_ns;
}
