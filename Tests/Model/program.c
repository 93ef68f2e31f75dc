/* SPDX-License-Identifier: Apache-2.0 */
/* Programs from a seed. The frequencies are chosen so that most programs run something, and something happens in most runs. */
#include "program.h"

#include <string.h>

/* Where choices come from: a seed, or bytes that are read until they are used up. */
struct chooser {
    uint64_t state;
    const uint8_t *bytes;
    size_t left;
};

static uint64_t next_random(struct chooser *chooser)
{
    uint64_t z = (chooser->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 to limit - 1. */
static int choose(struct chooser *chooser, int limit)
{
    if (!chooser->bytes) {
        return (int)(next_random(chooser) % (uint64_t)limit);
    }
    if (chooser->left == 0) {
        return 0;
    }
    chooser->left--;
    return *chooser->bytes++ % limit;
}

static bool is_likely(struct chooser *chooser, int percent)
{
    return choose(chooser, 100) < percent;
}

static struct op *append(struct program *program)
{
    static struct op ignored;

    if (program->op_count == most_ops) {
        return &ignored;
    }
    program->ops[program->op_count] = (struct op){0};
    return &program->ops[program->op_count++];
}

static int choose_real_mode(struct chooser *chooser)
{
    static const uint8_t modes[] = {mode_default, mode_default, mode_default, mode_x, mode_x, mode_y};

    return modes[choose(chooser, sizeof modes)];
}

static int choose_mode(struct chooser *chooser)
{
    return is_likely(chooser, 20) ? mode_common : choose_real_mode(chooser);
}

static int choose_date(struct chooser *chooser, struct program_style style)
{
    static const int8_t dates[] = {-9, -1, 0, 1, 1, 2, 3, 3, 5, 8};

    if (style.real_clock) {
        return is_likely(chooser, 70) ? -5120 : 5000000;
    }
    return dates[choose(chooser, sizeof dates)];
}

static int choose_limit(struct chooser *chooser, struct program_style style)
{
    static const int8_t limits[] = {0, 0, 0, 1, 2, 4, 6, 10, -1};

    if (style.real_clock) {
        return is_likely(chooser, 75) ? 0 : 1000000;
    }
    return limits[choose(chooser, sizeof limits)];
}

/* What an operation in a callback may be, and how often; in the main function runs are more frequent. */
static const uint8_t frequent_ops[] = {
    op_create,       op_add,    op_add,    op_add,          op_remove,    op_remove,     op_invalidate, op_invalidate, op_signal,
    op_signal,       op_signal, op_signal, op_set_date,     op_set_date,  op_contains,   op_is_valid,   op_get_date,   op_next_date,
    op_wake,         op_wake,   op_stop,   op_stop,         op_perform,   op_perform,    op_perform,    op_run,        op_run,
    op_run,          op_busy,   op_busy,   op_current_mode, op_all_modes, op_is_waiting, op_asleep,     op_release,    op_add_common_mode,
    op_is_signalled, op_suspend,
};

static bool is_possible(enum op_kind kind, struct program_style style)
{
    return !style.real_clock ||
           (kind != op_is_signalled && kind != op_get_date && kind != op_next_date && kind != op_busy && kind != op_suspend &&
            kind != op_asleep);
}

static void choose_op(struct chooser *chooser, struct op *op, struct program_style style)
{
    static const uint8_t with_any_class[] = {op_create, op_release, op_add, op_remove, op_contains, op_invalidate, op_is_valid};

    op->kind = frequent_ops[choose(chooser, sizeof frequent_ops)];
    if (!is_possible((enum op_kind)op->kind, style)) {
        op->kind = op_signal;
    }
    if (op->kind == op_suspend && op->place == place_asleep) {
        op->kind = op_busy;
    }
    op->item = (uint8_t)choose(chooser, item_count);
    op->class = class_source;
    for (size_t i = 0; i < sizeof with_any_class; i++) {
        if (op->kind == with_any_class[i]) {
            op->class = (uint8_t)choose(chooser, class_block);
        }
    }
    switch ((enum op_kind)op->kind) {
    case op_add:
    case op_remove:
    case op_contains:
        op->mode = (uint8_t)choose_mode(chooser);
        break;
    case op_set_date:
    case op_get_date:
        op->class = class_timer;
        op->value = choose_date(chooser, style);
        break;
    case op_create:
        op->value = choose_date(chooser, style);
        break;
    case op_next_date:
    case op_add_common_mode:
        op->mode = (uint8_t)choose_real_mode(chooser);
        break;
    case op_perform:
        op->mode = (uint8_t)(is_likely(chooser, 60) ? choose_real_mode(chooser) : choose(chooser, mode_choices));
        break;
    case op_run:
        op->mode = (uint8_t)(is_likely(chooser, 3) ? mode_common : choose_real_mode(chooser));
        op->value = choose_limit(chooser, style);
        op->flag = is_likely(chooser, 35);
        break;
    case op_busy:
    case op_suspend:
        op->value = 1 + choose(chooser, 5);
        break;
    default:
        break;
    }
}

static void choose_items(struct chooser *chooser, struct program *program, struct program_style style)
{
    static const int8_t intervals[] = {0, 0, 1, 2, 3, 7};

    for (int i = 0; i < item_count; i++) {
        program->source_order[i] = (int8_t)(is_likely(chooser, 60) ? 0 : choose(chooser, 3) - 1);
        program->observer_order[i] = (int8_t)(is_likely(chooser, 60) ? 0 : choose(chooser, 3) - 1);
        program->observer_activities[i] = (uint8_t)(is_likely(chooser, 30) ? 63 : choose(chooser, 64));
        program->observer_repeats[i] = is_likely(chooser, 80);
        program->timer_interval[i] = style.real_clock ? is_likely(chooser, 50) * 100000 : intervals[choose(chooser, sizeof intervals)];
    }
}

/* Creates and adds some items, so that there is something to run. */
static void choose_beginning(struct chooser *chooser, struct program *program, struct program_style style)
{
    for (int class = 0; class < class_block; class++) {
        for (int item = 0; item < item_count; item++) {
            struct op *op;

            if (!is_likely(chooser, 55)) {
                continue;
            }
            op = append(program);
            op->kind = op_create;
            op->class = (uint8_t)class;
            op->item = (uint8_t)item;
            op->value = choose_date(chooser, style);
            if (is_likely(chooser, 80)) {
                struct op *adds = append(program);

                *adds = *op;
                adds->kind = op_add;
                adds->mode = (uint8_t)choose_mode(chooser);
            }
        }
    }
}

static void choose_place(struct chooser *chooser, struct op *op, struct program_style style)
{
    static const uint8_t places[] = {place_main,  place_main,  place_main,  place_source,     place_source, place_observer,
                                     place_timer, place_timer, place_block, place_membership, place_asleep, place_observer};

    op->place = places[choose(chooser, sizeof places)];
    if (style.real_clock && (op->place == place_asleep || op->place == place_membership)) {
        op->place = place_source;
    }
    op->owner = op->place == place_main ? 0 : (uint8_t)choose(chooser, item_count);
    op->nth = (op->place == place_main || op->place == place_asleep) ? 0 : (uint8_t)(is_likely(chooser, 65) ? 0 : 1);
}

/*
 * What another Core Foundation does in its own way: a pending wake-up can hide timers that are due, and an observer that runs the loop
 * after the wait does not meet them: so either timers and polls, or wake-ups and waits. Observers join a new common mode in any order.
 */
static void restrict_to_certain(struct program *program, bool has_timers)
{
    for (int i = 0; i < program->op_count; i++) {
        struct op *op = &program->ops[i];

        if (op->kind == op_add && op->class == class_observer && op->mode == mode_common && op->item > 0) {
            op->mode = mode_x;
        }
        if (has_timers && (op->kind == op_wake || op->kind == op_stop)) {
            op->kind = op_signal;
            op->class = class_source;
        } else if (has_timers && op->kind == op_run) {
            op->value = 0;
        } else if (!has_timers && op->class == class_timer && op->kind == op_add) {
            op->class = class_source;
        }
    }
}

/* In which order sources join a new common mode no rule says; the marks that they bring, and what schedule does, show it: so one source. */
static void restrict_common_sources(struct program *program)
{
    bool matters = false;

    for (int i = 0; i < program->op_count; i++) {
        matters |= program->ops[i].place == place_membership || program->ops[i].kind == op_add_common_mode;
    }
    for (int i = 0; i < program->op_count; i++) {
        struct op *op = &program->ops[i];

        if (matters && op->kind == op_add && op->class == class_source && op->mode == mode_common && op->item > 0) {
            op->mode = mode_x;
        }
    }
}

/* Between a timer and a port the rules leave the order open (35): a program with a port has no timers. */
static void put_port(struct program *program)
{
    program->has_port = true;
    for (int i = 0; i < program->op_count; i++) {
        struct op *op = &program->ops[i];

        if (op->kind == op_set_date || op->kind == op_get_date) {
            op->kind = op_signal;
        }
        if (op->class == class_timer) {
            op->class = class_source;
            op->item = port_item;
        }
    }
}

static struct program choose_program(struct chooser *chooser, struct program_style style)
{
    struct program program = {.op_count = 0};
    int count;

    choose_items(chooser, &program, style);
    program.wakes_early = is_likely(chooser, 10);
    program.is_hosted = !style.real_clock && is_likely(chooser, 15);
    choose_beginning(chooser, &program, style);
    count = 4 + choose(chooser, 26);
    for (int i = 0; i < count && (!chooser->bytes || chooser->left > 0); i++) {
        struct op *op = append(&program);

        choose_place(chooser, op, style);
        choose_op(chooser, op, style);
    }
    /* At least one run, at the end. */
    if (program.op_count == most_ops) {
        program.op_count--;
    }
    *append(&program) = (struct op){.kind = op_run, .mode = (uint8_t)choose_real_mode(chooser), .value = choose_limit(chooser, style)};
    for (int i = 0; program.is_hosted && i < program.op_count; i++) {
        if (program.ops[i].place == place_main && program.ops[i].kind == op_run) {
            program.ops[i].value = -1;
            program.ops[i].flag = false;
        }
    }
    restrict_common_sources(&program);
    if (!style.real_clock && !program.is_hosted && is_likely(chooser, 15)) {
        put_port(&program);
    }
    if (style.real_clock) {
        restrict_to_certain(&program, is_likely(chooser, 40));
    }
    program.has_floods = is_likely(chooser, 25);
    return program;
}

struct program program_random(uint64_t seed, struct program_style style)
{
    struct chooser chooser = {.state = seed};

    return choose_program(&chooser, style);
}

struct program program_from_bytes(const uint8_t *bytes, size_t size)
{
    static const uint8_t none;
    struct chooser chooser = {.bytes = size > 0 ? bytes : &none, .left = size};

    return choose_program(&chooser, (struct program_style){false});
}
