/* SPDX-License-Identifier: Apache-2.0 */
/* One program at a time; all state belongs to the thread that executes it (and to the interpreting thread before and after). */
#include "interpreter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_depth = 3, most_steps = 300, most_armed = 8 };

static const struct program *program;
static const struct world *world;
static struct trace *trace;
static int steps;
static int depth; /* of runs */
static bool is_asleep;
static bool is_over; /* the thread ends: what is called is only noted */
static bool is_full; /* too much happened: the loop is stopped at every turn */
static bool was_created[class_choices][item_count];
static bool is_held[class_choices][item_count];
static int calls[place_choices][item_count];
static int armed[most_armed];
static int armed_count;

static void note(enum event_kind kind, int item, int detail, int64_t value)
{
    if (trace->count == most_events) {
        is_full = true;
        return;
    }
    trace->events[trace->count++] = (struct event){(uint8_t)kind, (uint8_t)item, (uint8_t)detail, value};
}

static bool is_question(enum op_kind kind)
{
    return kind == op_contains || kind == op_is_valid || kind == op_is_signalled || kind == op_get_date || kind == op_next_date ||
           kind == op_current_mode || kind == op_all_modes || kind == op_is_waiting;
}

static bool needs_item(enum op_kind kind)
{
    return kind == op_release || kind == op_add || kind == op_remove || kind == op_contains || kind == op_invalidate ||
           kind == op_is_valid || kind == op_signal || kind == op_is_signalled || kind == op_set_date || kind == op_get_date;
}

static void run(const struct op *op)
{
    int64_t result;

    if (depth == most_depth || is_asleep) {
        return;
    }
    note(event_run, 0, op->mode, world->now());
    depth++;
    result = world->apply(op);
    depth--;
    note(event_result, 0, (int)result, world->now());
}

static void arm(const struct op *op)
{
    if (armed_count < most_armed) {
        armed[armed_count++] = op->item;
    }
}

static void execute(const struct op *op)
{
    if (needs_item(op->kind) && !is_held[op->class][op->item]) {
        return;
    }
    if (op->kind == op_run) {
        run(op);
    } else if (op->kind == op_asleep) {
        arm(op);
    } else if (op->kind == op_create) {
        if (!was_created[op->class][op->item]) {
            was_created[op->class][op->item] = is_held[op->class][op->item] = true;
            (void)world->apply(op);
        }
    } else if (is_question(op->kind)) {
        note(event_answer, op->item, op->kind, world->apply(op));
    } else {
        if (op->kind == op_release) {
            is_held[op->class][op->item] = false;
        }
        (void)world->apply(op);
    }
}

static bool execute_place(enum place place, int owner, int nth)
{
    bool any = false;

    for (int i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];

        if (op->place == place && op->owner == owner && op->nth == nth && steps < most_steps && !is_full) {
            steps++;
            any = true;
            execute(op);
        }
    }
    return any;
}

static void stop(void)
{
    static const struct op stops = {.kind = op_stop};

    (void)world->apply(&stops);
}

static enum place place_of(enum event_kind kind)
{
    switch (kind) {
    case event_source:
        return place_source;
    case event_observer:
        return place_observer;
    case event_timer:
        return place_timer;
    case event_block:
        return place_block;
    default:
        return place_membership;
    }
}

void interpreter_call(enum event_kind kind, int item, int detail)
{
    enum place place = place_of(kind);
    int nth = calls[place][item]++;

    note(kind, item, detail, kind == event_timer ? world->now() : 0);
    if (is_over) {
        return;
    }
    if (nth < call_count && execute_place(place, item, nth)) {
        note(event_done, item, 0, 0);
    }
    if (is_full && place != place_membership) {
        stop();
    }
}

bool interpreter_asleep(void)
{
    int script;

    if (armed_count == 0 || is_full) {
        return false;
    }
    script = armed[0];
    armed_count--;
    memmove(armed, armed + 1, (size_t)armed_count * sizeof armed[0]);
    is_asleep = true;
    (void)execute_place(place_asleep, script, 0);
    is_asleep = false;
    return true;
}

/* How late it is then depends on wakes that nobody can see, after a timer has gone: so the clock is set to an hour that does not. */
void interpreter_sleeps_for_ever(void)
{
    enum { hour = 100000 };
    const int64_t until = (int64_t)(trace->count + 1) * hour;
    const struct op passes = {.kind = op_busy, .value = (int32_t)(until - world->now())};

    note(event_sleeps_for_ever, 0, 0, 0);
    (void)world->apply(&passes);
    stop();
}

void interpreter_wrong(enum item_class class, int item)
{
    note(event_wrong, item, (int)class, 0);
}

static void body(void)
{
    (void)execute_place(place_main, 0, 0);
    is_over = true;
    for (int class = 0; class < class_choices; class++) {
        for (int item = 0; item < item_count; item++) {
            const struct op op = {.kind = op_release, .class = (uint8_t)class, .item = (uint8_t)item};

            if (is_held[class][item]) {
                (void)world->apply(&op);
            }
        }
    }
    note(event_thread_ends, 0, 0, 0);
}

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, sizeof(struct event));
}

/* Rules 75 and 76 say that a source hears of each mode, not in which order of modes or sources; nor does 170. */
static void sort_unordered(struct trace *unsorted)
{
    for (int first = 0; first < unsorted->count;) {
        bool is_end = unsorted->events[first].kind == event_thread_ends;
        int last = is_end ? unsorted->count : first;

        while (last < unsorted->count && (unsorted->events[last].kind == event_schedule || unsorted->events[last].kind == event_cancel)) {
            last++;
        }
        if (last > first + 1) {
            qsort(unsorted->events + first, (size_t)(last - first), sizeof unsorted->events[0], compare);
        }
        first = last > first ? last : first + 1;
    }
}

void interpret(const struct program *interpreted, const struct world *in, struct trace *result)
{
    program = interpreted;
    world = in;
    trace = result;
    memset(trace, 0, sizeof *trace);
    memset(was_created, 0, sizeof was_created);
    memset(is_held, 0, sizeof is_held);
    memset(calls, 0, sizeof calls);
    steps = depth = armed_count = 0;
    is_asleep = is_over = is_full = false;
    world->execute(program, body);
    sort_unordered(trace);
}

bool traces_equal(const struct trace *one, const struct trace *other)
{
    return one->count == other->count && memcmp(one->events, other->events, (size_t)one->count * sizeof one->events[0]) == 0;
}

/* ---- as text ---- */

static const char *const mode_names[] = {"D", "X", "Y", "C", "[XY]", "[XC]"};
static const char *const activity_names[] = {"E", "BT", "BS", "BW", "AW", "X"};
static const char *const result_names[] = {"?", "F", "S", "TO", "HS"};
static const char *const class_names[] = {"S", "O", "T", "B"};

static void event_text(const struct event *event, char *text, size_t size)
{
    switch ((enum event_kind)event->kind) {
    case event_source:
        snprintf(text, size, "S%d", event->item);
        break;
    case event_schedule:
        snprintf(text, size, "S%d+%s", event->item, mode_names[event->detail]);
        break;
    case event_cancel:
        snprintf(text, size, "S%d-%s", event->item, mode_names[event->detail]);
        break;
    case event_observer:
        snprintf(text, size, "O%d:%s", event->item, activity_names[event->detail]);
        break;
    case event_timer:
        snprintf(text, size, "T%d@%lld", event->item, (long long)event->value);
        break;
    case event_block:
        snprintf(text, size, "B%d", event->item);
        break;
    case event_done:
        snprintf(text, size, ";");
        break;
    case event_run:
        snprintf(text, size, "%s{", mode_names[event->detail]);
        break;
    case event_result:
        snprintf(text, size, "}%s@%lld", event->detail < run_results ? result_names[event->detail] : "?", (long long)event->value);
        break;
    case event_answer:
        snprintf(text, size, "?%lld", (long long)event->value);
        break;
    case event_sleeps_for_ever:
        snprintf(text, size, "for-ever");
        break;
    case event_thread_ends:
        snprintf(text, size, "end");
        break;
    case event_wrong:
        snprintf(text, size, "WRONG:%s%d", class_names[event->detail], event->item);
        break;
    }
}

void trace_text(const struct trace *shown, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < shown->count; i++) {
        char token[64];
        size_t added;

        event_text(&shown->events[i], token, sizeof token);
        added = strlen(token);
        if (length + added + 2 > size) {
            return;
        }
        if (length > 0) {
            text[length++] = ' ';
        }
        memcpy(text + length, token, added + 1);
        length += added;
    }
}
