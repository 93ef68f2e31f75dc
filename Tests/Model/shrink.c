/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a failing program smaller: fewer operations, then simpler ones, until nothing more can be left out. */
#include "program.h"

#include <string.h>

static bool try_without(struct program *program, int first, int count, bool (*fails)(const struct program *program))
{
    struct program smaller = *program;

    memmove(smaller.ops + first, smaller.ops + first + count, (size_t)(smaller.op_count - first - count) * sizeof smaller.ops[0]);
    smaller.op_count -= count;
    if (!fails(&smaller)) {
        return false;
    }
    *program = smaller;
    return true;
}

static bool remove_ops(struct program *program, bool (*fails)(const struct program *program))
{
    bool any = false;

    for (int count = program->op_count / 2; count > 0; count /= 2) {
        for (int first = program->op_count - count; first >= 0; first -= count) {
            if (first + count <= program->op_count) {
                any |= try_without(program, first, count, fails);
            }
        }
    }
    return any;
}

/* Sets one byte of the program to a simpler value. */
static bool try_value(struct program *program, size_t offset, size_t size, int64_t value, bool (*fails)(const struct program *program))
{
    struct program simpler = *program;

    memcpy((char *)&simpler + offset, &value, size);
    if (memcmp(&simpler, program, sizeof simpler) == 0 || !fails(&simpler)) {
        return false;
    }
    *program = simpler;
    return true;
}

#define SIMPLIFY(field_, value_) (any |= try_value(program, (size_t)((char *)&(field_) - (char *)program), sizeof(field_), (value_), fails))

static bool simplify(struct program *program, bool (*fails)(const struct program *program))
{
    enum { far = 1000 }; /* on a real clock a date is long past or far away */
    bool any = false;

    SIMPLIFY(program->wakes_early, 0);
    SIMPLIFY(program->is_hosted, 0);
    SIMPLIFY(program->has_floods, 0);
    SIMPLIFY(program->has_port, 0);
    for (int i = 0; i < item_count; i++) {
        SIMPLIFY(program->source_order[i], 0);
        SIMPLIFY(program->observer_order[i], 0);
        SIMPLIFY(program->observer_repeats[i], 1);
        SIMPLIFY(program->timer_interval[i], 0);
        SIMPLIFY(program->observer_activities[i], 0);
        for (int bit = 0; bit < activity_choices; bit++) {
            SIMPLIFY(program->observer_activities[i], program->observer_activities[i] & ~(1 << bit));
        }
    }
    for (int i = 0; i < program->op_count; i++) {
        struct op *op = &program->ops[i];

        SIMPLIFY(op->nth, 0);
        SIMPLIFY(op->flag, 0);
        SIMPLIFY(op->mode, 0);
        SIMPLIFY(op->value, 0);
        if (op->value > 1 && op->value < far) {
            SIMPLIFY(op->value, 1);
        }
    }
    return any;
}

void program_shrink(struct program *program, bool (*fails)(const struct program *program))
{
    enum { most_rounds = 20 };

    for (int round = 0; round < most_rounds; round++) {
        bool any = remove_ops(program, fails);

        if (!simplify(program, fails) && !any) {
            return;
        }
    }
}
