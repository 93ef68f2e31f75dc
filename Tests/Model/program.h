/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program: what one random sequence of operations consists of. It is plain data, so that it can be made from a seed or from bytes,
 * executed against several implementations (interpreter.h), made smaller while it still fails (shrink.c), and printed as C (print.c).
 *
 * Operations stand in one list; each says where it is executed: in the main function, in the n-th call of an item's callback, or while the
 * loop is asleep, as by another thread. Time is counted in ticks of 1/512 s, which is a whole number of nanoseconds and exact as a double.
 */
#ifndef CRL_MODEL_PROGRAM_H
#define CRL_MODEL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum program_limits {
    item_count = 4, /* of each class */
    most_ops = 64,
    call_count = 2, /* how many calls of a callback have operations of their own */
    port_item = 3,
    tick_ns = 1953125,
};

enum program_mode { mode_default, mode_x, mode_y, mode_count, mode_common = mode_count, mode_list_xy, mode_list_x_common, mode_choices };

/* The bits of an observer's mask, in the order of a pass. */
enum program_activity { at_entry, at_before_timers, at_before_sources, at_before_waiting, at_after_waiting, at_exit, activity_choices };

enum item_class { class_source, class_observer, class_timer, class_block, class_choices };

enum place {
    place_main,
    place_source,
    place_observer,
    place_timer,
    place_block,
    place_membership /* a source's schedule or cancel */,
    place_asleep,
    place_choices
};

enum op_kind {
    op_create, /* class, item; a timer is due in `value` ticks */
    op_release, /* drops the program's own reference */
    op_add,
    op_remove,
    op_contains,
    op_invalidate,
    op_is_valid,
    op_signal,
    op_is_signalled,
    op_set_date, /* in `value` ticks */
    op_get_date,
    op_next_date,
    op_add_common_mode,
    op_wake,
    op_stop,
    op_perform, /* block `item` in `mode` */
    op_run, /* for `value` ticks, less than 0: no limit; `flag`: returns after a source */
    op_busy, /* `value` ticks pass */
    op_suspend, /* the system is suspended for `value` ticks; never while the loop is asleep, which may notice it late (1201) */
    op_current_mode,
    op_all_modes,
    op_is_waiting,
    op_asleep, /* the operations of place_asleep `item` are done in the next sleep */
    op_kinds
};

enum { run_results = 5 };
enum { calls_of_a_flood = 150 };

struct op {
    uint8_t place; /* enum place */
    uint8_t owner; /* which item's callback */
    uint8_t nth; /* in which call */
    uint8_t kind; /* enum op_kind */
    uint8_t class; /* enum item_class */
    uint8_t item;
    uint8_t mode; /* enum program_mode */
    bool flag;
    int32_t value;
};

struct program {
    int8_t source_order[item_count];
    int8_t observer_order[item_count];
    uint8_t observer_activities[item_count];
    bool observer_repeats[item_count];
    int32_t timer_interval[item_count]; /* ticks; 0: one-shot */
    bool wakes_early; /* the kernel ends each wait halfway once */
    bool is_hosted; /* the main function's runs without a limit are CRLRunLoopPrepare and Dispatch */
    bool has_floods; /* a signal and a wake-up are calls_of_a_flood of them in a row, which is as one */
    bool has_port; /* source 3 is a version-1 source on an eventfd, and a signal of it is an event */
    int op_count;
    struct op ops[most_ops];
};

/* What a program may contain: another Core Foundation has neither the virtual clock nor our own calls. */
struct program_style {
    bool real_clock; /* timers that are due at once or never, no ticks */
};

struct program program_random(uint64_t seed, struct program_style style);
/* From a fuzzer's bytes: any bytes give a program. */
struct program program_from_bytes(const uint8_t *bytes, size_t size);

/* Smaller and smaller, as long as `fails` says so. */
void program_shrink(struct program *program, bool (*fails)(const struct program *program));

#endif
