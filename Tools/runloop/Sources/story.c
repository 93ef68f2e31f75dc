/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a story of the events: one walk in order of time, with a stack of open spans for each thread.
 *
 * An event closes what cannot be open any more: a pass closes the pass before it, and callouts that were left by a jump; the end of a run
 * closes all in it. So the spans of a thread nest, whatever was lost.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pair_table.h"
#include "requests.h"
#include "runloop.h"

/* ---- the teller ---- */

enum { deepest = 64 };

struct stack {
    uint32_t spans[deepest];
    int count;
    int64_t awake_since_ns; /* of an outermost run, since its last sleep; INT64_MIN: it does not run */
    uint32_t worst; /* the longest callout that has ended since then; no_span: none */
    uint64_t due_timer;
    int64_t due_ns;
};

struct teller {
    struct story *story;
    struct stack *stacks; /* of the threads */
    struct pair_table origins; /* (what, whose) -> the event that an arrow may begin at */
    struct pair_table addresses; /* (process, address) -> name + 1 */
    struct pair_table modes; /* (process, mode or port) -> name + 1 */
    struct pair_table run_modes; /* (process, mode) -> 1 */
    struct pair_table texts; /* (hashes of a name and its place) -> name + 1 */
    struct pair_table functions; /* (kind, name) -> figures + 1 */
    char (*pieces)[trace_name_most + 1]; /* the names that threads are writing */
    uint64_t *named; /* what they are of */
    struct request_teller requests;
};

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 1469598103934665603u;

    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    }
    return hash;
}

/* Functions of one name in different files are different ones. */
static uint32_t number_of_name(struct teller *teller, struct code_name name)
{
    struct story *story = teller->story;
    uint64_t *value = pair_table_value(&teller->texts, hash_of(name.name), hash_of(name.place));

    if (*value == 0) {
        story->names = grow_array(story->names, story->name_count, &story->name_capacity, sizeof *story->names);
        story->names[story->name_count++] = name;
        *value = story->name_count;
    }
    invariant(*value <= story->name_count);
    return (uint32_t)(*value - 1);
}

static uint32_t name_of_text(struct teller *teller, const char *text)
{
    return number_of_name(teller, (struct code_name){text, ""});
}

static uint32_t name_of_function(struct teller *teller, uint32_t process, uint64_t address)
{
    uint64_t *value = pair_table_value(&teller->addresses, process, address);

    if (*value == 0) {
        struct code_name name = {"", ""};

        if (address != 0) {
            name = symbol_name(&teller->story->traces->processes[process], address);
        }
        *value = number_of_name(teller, name) + 1u;
    }
    return (uint32_t)(*value - 1);
}

static uint32_t name_of_mode(struct teller *teller, uint32_t process, uint64_t mode)
{
    uint64_t *value = pair_table_value(&teller->modes, process, mode);
    char text[32];

    if (*value == 0) {
        (void)snprintf(text, sizeof text, "without a name 0x%" PRIx64, mode);
        *value = name_of_text(teller, copy_text(text, strlen(text))) + 1u;
    }
    return (uint32_t)(*value - 1);
}

/*
 * Takes 8 bytes of a name. The pieces of a name come in order. The mode is named again with each piece, because no piece says that it is
 * the last.
 */
static void take_name(struct teller *teller, const struct event *event, uint32_t process)
{
    char *text = teller->pieces[event->thread];
    uint64_t *value;

    if (event->detail > trace_name_most - sizeof event->value) {
        return;
    }
    if (event->detail == 0 || teller->named[event->thread] != event->object) {
        memset(text, 0, trace_name_most + 1);
        teller->named[event->thread] = event->object;
    }
    memcpy(text + event->detail, &event->value, sizeof event->value);
    value = pair_table_value(&teller->modes, process, event->object);
    *value = name_of_text(teller, copy_text(text, strlen(text))) + 1u;
}

/* ---- spans ---- */

static struct span *span_at(struct teller *teller, uint32_t place)
{
    invariant(place < teller->story->span_count);
    return &teller->story->spans[place];
}

static struct span *top_of(struct teller *teller, const struct stack *stack)
{
    return stack->count > 0 ? span_at(teller, stack->spans[stack->count - 1]) : NULL;
}

static uint32_t span_open(struct teller *teller, uint32_t thread, int kind, int64_t begin_ns, uint64_t object, uint32_t name)
{
    struct story *story = teller->story;
    struct stack *stack = &teller->stacks[thread];
    uint32_t place = (uint32_t)story->span_count;

    invariant(kind >= 0 && kind < span_kind_count && name < story->name_count);
    invariant(stack->count >= 0 && stack->count <= deepest);
    story->spans = grow_array(story->spans, story->span_count, &story->span_capacity, sizeof *story->spans);
    story->spans[story->span_count++] = (struct span){.begin_ns = begin_ns,
                                                      .end_ns = begin_ns,
                                                      .due_ns = INT64_MIN,
                                                      .descriptor = -1,
                                                      .object = object,
                                                      .thread = thread,
                                                      .name = name,
                                                      .kind = (uint8_t)kind,
                                                      .depth = (uint8_t)stack->count,
                                                      .cause = trace_cause_count};
    if (stack->count < deepest) {
        stack->spans[stack->count++] = place;
    }
    return place;
}

/* The largest number if the sum is larger, which takes invented times. */
static int64_t sum_of(int64_t one_ns, int64_t other_ns)
{
    int64_t sum_ns;

    return __builtin_add_overflow(one_ns, other_ns, &sum_ns) ? INT64_MAX : sum_ns;
}

static void note_function(struct teller *teller, const struct span *span)
{
    struct story *story = teller->story;
    uint64_t *value = pair_table_value(&teller->functions, span->kind, span->name);
    struct function_figures *figures;

    if (*value == 0) {
        story->functions = grow_array(story->functions, story->function_count, &story->function_capacity, sizeof *story->functions);
        story->functions[story->function_count++] = (struct function_figures){.name = span->name, .kind = span->kind};
        *value = story->function_count;
    }
    invariant(*value <= story->function_count && span->kind >= span_callout);
    figures = &story->functions[*value - 1];
    figures->count++;
    figures->total_ns = sum_of(figures->total_ns, span->end_ns - span->begin_ns);
    figures->longest_ns = span->end_ns - span->begin_ns > figures->longest_ns ? span->end_ns - span->begin_ns : figures->longest_ns;
}

/* The loop begins to sleep, or its outermost run ends. Adds a stall if it was awake for too long until then. */
static void awake_ends(struct teller *teller, uint32_t thread, int64_t now_ns)
{
    struct story *story = teller->story;
    struct stack *stack = &teller->stacks[thread];
    int64_t length_ns;

    if (stack->awake_since_ns == INT64_MIN) {
        return;
    }
    invariant(stack->awake_since_ns <= now_ns);
    length_ns = now_ns - stack->awake_since_ns;
    if (length_ns > story->loops[thread].longest_awake_ns) {
        story->loops[thread].longest_awake_ns = length_ns;
    }
    if (length_ns >= story->stall_ns) {
        story->stalls = grow_array(story->stalls, story->stall_count, &story->stall_capacity, sizeof *story->stalls);
        story->stalls[story->stall_count++] = (struct stall_interval){stack->awake_since_ns, now_ns, thread, stack->worst};
    }
    stack->awake_since_ns = INT64_MIN;
}

static void awake_begins(struct teller *teller, uint32_t thread, int64_t now_ns)
{
    teller->stacks[thread].awake_since_ns = now_ns;
    teller->stacks[thread].worst = no_span;
}

static void span_close(struct teller *teller, uint32_t thread, int64_t now_ns, unsigned flags)
{
    struct story *story = teller->story;
    struct stack *stack = &teller->stacks[thread];
    uint32_t place = stack->spans[--stack->count];
    struct span *span = span_at(teller, place);

    invariant(stack->count >= 0 && span->thread == thread && span->begin_ns <= now_ns);
    span->end_ns = now_ns;
    span->flags |= (uint8_t)flags;
    if (span->kind >= span_callout) {
        const struct span *worst = stack->worst == no_span ? NULL : span_at(teller, stack->worst);

        note_function(teller, span);
        /* A callout that ran the loop, which slept, is longer than the time awake. The callouts since that sleep are its cause. */
        if (span->begin_ns >= stack->awake_since_ns && (!worst || now_ns - span->begin_ns > worst->end_ns - worst->begin_ns)) {
            stack->worst = place;
        }
    } else if (span->kind == span_sleep) {
        story->loops[thread].asleep_ns = sum_of(story->loops[thread].asleep_ns, now_ns - span->begin_ns);
        awake_begins(teller, thread, now_ns);
    } else if (span->kind == span_run && stack->count == 0) {
        story->loops[thread].running_ns = sum_of(story->loops[thread].running_ns, now_ns - span->begin_ns);
        awake_ends(teller, thread, now_ns);
    }
}

/* Closes the open spans above `height`. Callouts and runs among them were left by a jump. */
static void close_above(struct teller *teller, uint32_t thread, int height, int64_t now_ns)
{
    struct stack *stack = &teller->stacks[thread];

    while (stack->count > height) {
        int kind = top_of(teller, stack)->kind;

        span_close(teller, thread, now_ns, kind >= span_callout || kind == span_run ? span_is_left : 0u);
    }
}

/* The height of the innermost open span of that kind and object; -1: there is none. */
static int height_of(struct teller *teller, const struct stack *stack, int kind, uint64_t object)
{
    int height = stack->count - 1;

    for (; height >= 0; height--) {
        const struct span *span = span_at(teller, stack->spans[height]);

        if (span->kind == kind && span->object == object) {
            break;
        }
    }
    return height;
}

/* The height of the event's run. If the event of its beginning is lost, the run counts as begun at the thread's first event. */
static int run_height(struct teller *teller, const struct event *event)
{
    struct stack *stack = &teller->stacks[event->thread];
    int height = height_of(teller, stack, span_run, event->object);

    if (height < 0) {
        int64_t first_ns = stack->count > 0 ? event->time_ns : teller->story->traces->threads[event->thread].first_ns;
        uint32_t place = span_open(teller, event->thread, span_run, first_ns, event->object, name_of_text(teller, ""));

        span_at(teller, place)->flags |= span_began_before;
        if (stack->count == 1) {
            awake_begins(teller, event->thread, first_ns);
        }
        height = stack->count - 1;
    }
    return height;
}

/* ---- arrows ---- */

enum origin { origin_signal = 1, origin_wake, origin_post, origin_message, origin_reply };

/* The table's place for what an arrow joins. `whose` is the process plus 1; 0 for a message between processes. */
static uint64_t *origin_of(struct teller *teller, enum origin origin, uint64_t object, uint64_t whose)
{
    return pair_table_value(&teller->origins, object ^ (uint64_t)origin << 60, whose);
}

/* The table holds the event's number plus 2: 0 marks a free place, and 1 one whose arrow is drawn. */
static void note_origin(struct teller *teller, enum origin origin, uint64_t object, uint64_t whose, const struct event *event)
{
    *origin_of(teller, origin, object, whose) = (uint64_t)(event - teller->story->traces->events) + 2;
}

/* Draws an arrow from the event that was noted, if there is one since `since_ns`, and forgets it. */
static void draw_arrow(struct teller *teller, enum origin origin, uint64_t object, uint64_t whose, const struct event *to, uint32_t span,
                       int64_t since_ns)
{
    struct story *story = teller->story;
    uint64_t *value = origin_of(teller, origin, object, whose);
    const struct event *from = *value > 1 ? &story->traces->events[*value - 2] : NULL;

    invariant(!from || (from < to && from->time_ns <= to->time_ns));
    if (from && from->time_ns >= since_ns) {
        story->flows = grow_array(story->flows, story->flow_count, &story->flow_capacity, sizeof *story->flows);
        story->flows[story->flow_count++] =
            (struct flow){from->time_ns, to->time_ns, from->thread, to->thread, span, (uint8_t)(origin - origin_signal)};
    }
    *value = 1;
}

static uint64_t whose_message(const struct event *event, uint32_t process)
{
    return event->detail == trace_within_process ? process + 1u : 0;
}

/* The innermost callout of a message that is open, or no_span. */
static uint32_t message_span(struct teller *teller, const struct stack *stack)
{
    for (int i = stack->count - 1; i >= 0; i--) {
        if (span_at(teller, stack->spans[i])->kind == span_of_callout(trace_message)) {
            return stack->spans[i];
        }
    }
    return no_span;
}

/* ---- events ---- */

/* Closes the innermost open span of that kind that has the event's object, if there is one, and all in it. */
static void close_object(struct teller *teller, const struct event *event, int kind, unsigned flags)
{
    int height = height_of(teller, &teller->stacks[event->thread], kind, event->object);

    if (height >= 0) {
        close_above(teller, event->thread, height + 1, event->time_ns);
        span_close(teller, event->thread, event->time_ns, flags);
    }
}

static void begin_run(struct teller *teller, const struct event *event, uint32_t process)
{
    teller->story->loops[event->thread].runs++;
    *pair_table_value(&teller->run_modes, process, event->value) = 1;
    (void)span_open(teller, event->thread, span_run, event->time_ns, event->object, name_of_mode(teller, process, event->value));
    if (teller->stacks[event->thread].count == 1) {
        awake_begins(teller, event->thread, event->time_ns);
    }
}

static void end_run(struct teller *teller, const struct event *event, uint32_t process)
{
    (void)process;
    if (event->detail) {
        request_is_left(&teller->requests, event);
    }
    close_object(teller, event, span_run, event->detail ? span_is_left : 0u);
}

static void begin_pass(struct teller *teller, const struct event *event, uint32_t process)
{
    (void)process;
    teller->story->loops[event->thread].passes++;
    close_above(teller, event->thread, run_height(teller, event) + 1, event->time_ns);
    (void)span_open(teller, event->thread, span_pass, event->time_ns, event->object, name_of_text(teller, ""));
}

static void begin_sleep(struct teller *teller, const struct event *event, uint32_t process)
{
    const struct span *top = top_of(teller, &teller->stacks[event->thread]);

    (void)process;
    if (!top || top->kind != span_sleep) { /* otherwise the same sleep goes on with another wait in the kernel */
        awake_ends(teller, event->thread, event->time_ns);
        (void)span_open(teller, event->thread, span_sleep, event->time_ns, event->object, name_of_text(teller, ""));
    }
}

static void end_sleep(struct teller *teller, const struct event *event, uint32_t process)
{
    struct stack *stack = &teller->stacks[event->thread];
    struct span *sleep = top_of(teller, stack);
    uint32_t place;

    if (!sleep || sleep->kind != span_sleep) {
        return; /* the wait was over before it slept */
    }
    place = stack->spans[stack->count - 1];
    sleep->cause = (uint8_t)(event->detail < trace_cause_count ? event->detail : trace_cause_count);
    teller->story->loops[event->thread].sleeps++;
    if (event->detail < trace_cause_count) {
        teller->story->loops[event->thread].causes[event->detail]++;
    }
    if (event->detail == trace_cause_wake_up || event->detail == trace_cause_reply) {
        draw_arrow(teller, origin_wake, teller->story->traces->threads[event->thread].waker, process + 1u, event, place, sleep->begin_ns);
    }
    span_close(teller, event->thread, event->time_ns, 0);
}

static void note_due_timer(struct teller *teller, const struct event *event, uint32_t process)
{
    int64_t due_ns = (int64_t)event->value;

    (void)process;
    due_ns = due_ns < -time_most_ns ? -time_most_ns : due_ns;
    teller->stacks[event->thread].due_timer = event->object;
    teller->stacks[event->thread].due_ns = due_ns > time_most_ns ? time_most_ns : due_ns;
}

static void begin_callout(struct teller *teller, const struct event *event, uint32_t process)
{
    struct stack *stack = &teller->stacks[event->thread];
    const struct thread *thread = &teller->story->traces->threads[event->thread];
    unsigned callout = event->detail & 0xff;
    uint32_t place;
    struct span *span;

    if (callout >= trace_callout_count) {
        return;
    }
    place = span_open(teller, event->thread, (int)span_of_callout((enum trace_callout)callout), event->time_ns, event->object,
                      name_of_function(teller, process, event->value));
    span = span_at(teller, place);
    teller->story->loops[event->thread].callouts++;
    if (callout == trace_timer && stack->due_timer == event->object) {
        span->due_ns = stack->due_ns;
        stack->due_timer = 0;
    } else if (callout == trace_observer) {
        span->cause = (uint8_t)__builtin_ctz((event->detail >> 8) | 0x100u); /* 8 for a mask without a bit */
    } else if (callout == trace_source) {
        draw_arrow(teller, origin_signal, event->object, process + 1u, event, place, INT64_MIN);
    } else if (callout == trace_block) {
        draw_arrow(teller, origin_post, thread->loop + event->object, process + 1u, event, place, INT64_MIN);
    }
}

static void end_callout(struct teller *teller, const struct event *event, uint32_t process)
{
    (void)process;
    close_object(teller, event, (int)span_of_callout((enum trace_callout)(event->detail & 0xff)), 0);
}

static void note_signal(struct teller *teller, const struct event *event, uint32_t process)
{
    note_origin(teller, origin_signal, event->object, process + 1u, event);
}

static void note_wake(struct teller *teller, const struct event *event, uint32_t process)
{
    note_origin(teller, origin_wake, event->object, process + 1u, event);
}

static void note_post(struct teller *teller, const struct event *event, uint32_t process)
{
    note_origin(teller, origin_post, event->object + event->value, process + 1u, event);
}

static void note_message(struct teller *teller, const struct event *event, uint32_t process)
{
    note_origin(teller, origin_message, event->object, whose_message(event, process), event);
}

static void draw_message(struct teller *teller, const struct event *event, uint32_t process)
{
    uint32_t span = message_span(teller, &teller->stacks[event->thread]);

    draw_arrow(teller, origin_message, event->object, whose_message(event, process), event, span, INT64_MIN);
}

static void note_reply(struct teller *teller, const struct event *event, uint32_t process)
{
    note_origin(teller, origin_reply, event->object, whose_message(event, process), event);
}

static void draw_reply(struct teller *teller, const struct event *event, uint32_t process)
{
    draw_arrow(teller, origin_reply, event->object, whose_message(event, process), event, no_span, INT64_MIN);
}

static void note_usage(struct teller *teller, const struct event *event, uint32_t process)
{
    (void)teller; /* usage.c reads it */
    (void)event;
    (void)process;
}

static void begin_request(struct teller *teller, const struct event *event, uint32_t process)
{
    request_begins(&teller->requests, event, name_of_mode(teller, process, event->value));
}

static void end_request(struct teller *teller, const struct event *event, uint32_t process)
{
    (void)process;
    request_ends(&teller->requests, event);
}

static void note_served_port(struct teller *teller, const struct event *event, uint32_t process)
{
    request_port_is_served(&teller->requests, event, name_of_mode(teller, process, event->value));
}

static void note_joining(struct teller *teller, const struct event *event, uint32_t process)
{
    struct story *story = teller->story;

    if (event->detail < trace_callout_count) {
        story->joined = grow_array(story->joined, story->joined_count, &story->joined_capacity, sizeof *story->joined);
        story->joined[story->joined_count++] =
            (struct joined_item){event->value, event->thread, name_of_function(teller, process, event->object),
                                 name_of_mode(teller, process, event->value), (uint8_t)span_of_callout((enum trace_callout)event->detail)};
    }
}

/* Leaves only the items whose modes have never run. */
static void forget_run_modes(struct teller *teller)
{
    struct story *story = teller->story;
    size_t left = 0;

    for (size_t i = 0; i < story->joined_count; i++) {
        uint32_t process = story->traces->threads[story->joined[i].thread].process;

        if (*pair_table_value(&teller->run_modes, process, story->joined[i].mode) == 0) {
            story->joined[left++] = story->joined[i];
        }
    }
    story->joined_count = left;
}

static void note_descriptor(struct teller *teller, const struct event *event, uint32_t process)
{
    struct span *span = top_of(teller, &teller->stacks[event->thread]);

    (void)process;
    if (span && span->kind >= span_callout && span->object == event->object && event->value <= INT32_MAX) {
        span->descriptor = (int32_t)event->value;
        span->readiness = (uint8_t)(event->detail & 3);
    }
}

static void tell_event(struct teller *teller, const struct event *event)
{
    static void (*const by_kind[trace_kind_count])(struct teller *teller, const struct event *event, uint32_t process) = {
        [trace_run_begins] = begin_run,
        [trace_run_ends] = end_run,
        [trace_pass_begins] = begin_pass,
        [trace_sleep_begins] = begin_sleep,
        [trace_sleep_ends] = end_sleep,
        [trace_callout_begins] = begin_callout,
        [trace_callout_ends] = end_callout,
        [trace_signal] = note_signal,
        [trace_wake] = note_wake,
        [trace_timer_is_due] = note_due_timer,
        [trace_post] = note_post,
        [trace_message_is_sent] = note_message,
        [trace_message_comes] = draw_message,
        [trace_reply_is_sent] = note_reply,
        [trace_reply_comes] = draw_reply,
        [trace_name] = take_name,
        [trace_usage] = note_usage,
        [trace_request_begins] = begin_request,
        [trace_request_ends] = end_request,
        [trace_port_is_served] = note_served_port,
        [trace_descriptor_is_ready] = note_descriptor,
        [trace_item_joins] = note_joining,
    };
    const struct traces *traces = teller->story->traces;
    const struct span *top = top_of(teller, &teller->stacks[event->thread]);
    bool ends_sleep = event->kind == trace_run_begins || event->kind == trace_pass_begins || event->kind == trace_callout_begins;

    invariant(event->kind < trace_kind_count && by_kind[event->kind]);
    invariant(event->thread < traces->thread_count);
    if (ends_sleep && top && top->kind == span_sleep) {
        span_close(teller, event->thread, event->time_ns, 0); /* the event that ended the sleep is lost */
    }
    by_kind[event->kind](teller, event, traces->threads[event->thread].process);
}

/* Closes the spans that are open when the trace ends. They end with the process's trace, because the thread may still have been in them. */
static void close_all(struct teller *teller)
{
    const struct traces *traces = teller->story->traces;

    for (uint32_t i = 0; i < traces->thread_count; i++) {
        int64_t ended_ns = traces->processes[traces->threads[i].process].ended_ns;
        int64_t end_ns = ended_ns > traces->threads[i].last_ns ? ended_ns : traces->threads[i].last_ns;

        while (teller->stacks[i].count > 0) {
            span_close(teller, i, end_ns, span_is_unfinished);
        }
    }
}

/* Names the functions of all sampled frames. An address to which a function returns may be that of the next function. */
static void name_frames(struct teller *teller)
{
    enum { named_most = 1 << 16 }; /* more functions than these are invented */
    const struct traces *traces = teller->story->traces;

    teller->story->frames = make_room(traces->address_count, sizeof *teller->story->frames);
    for (size_t i = 0; i < traces->sample_count; i++) {
        const struct sampled *sample = &traces->samples[i];

        for (size_t k = 0; k < sample->count; k++) {
            const uint64_t address = traces->addresses[sample->first + k];

            teller->story->frames[sample->first + k] =
                teller->addresses.count < named_most
                    ? name_of_function(teller, traces->threads[sample->thread].process, address - (k > 0 && address > 0))
                    : name_of_text(teller, "other functions");
        }
    }
}

/* ---- the story ---- */

static int by_longest(const void *one, const void *other)
{
    const struct function_figures *a = one;
    const struct function_figures *b = other;

    return a->longest_ns != b->longest_ns ? (a->longest_ns > b->longest_ns ? -1 : 1) : a->name < b->name ? -1 : 1;
}

void story_tell(struct story *story, struct traces *traces, int64_t stall_ns)
{
    struct teller teller = {.story = story};

    *story = (struct story){.traces = traces, .stall_ns = stall_ns};
    story->loops = make_room(traces->thread_count, sizeof *story->loops);
    teller.stacks = make_room(traces->thread_count, sizeof *teller.stacks);
    teller.pieces = make_room(traces->thread_count, sizeof *teller.pieces);
    teller.named = make_room(traces->thread_count, sizeof *teller.named);
    for (size_t i = 0; i < traces->thread_count; i++) {
        teller.stacks[i].awake_since_ns = INT64_MIN;
        teller.stacks[i].worst = no_span;
    }
    requests_begin(&teller.requests, story);
    for (size_t i = 0; i < traces->event_count; i++) {
        tell_event(&teller, &traces->events[i]);
    }
    close_all(&teller);
    requests_end(&teller.requests);
    forget_run_modes(&teller);
    story_tell_usage(story);
    name_frames(&teller);
    story_tell_stacks(story);
    if (story->function_count > 0) {
        qsort(story->functions, story->function_count, sizeof *story->functions, by_longest);
    }
    story_tell_lateness(story);
}
