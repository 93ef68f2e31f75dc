/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable specification of modes, common modes, version-0 sources, timers, observers, blocks, runs, stops and wake-ups.
 *
 * Small, slow, obviously right: arrays, linear searches, no pointers, no memory management. Numbers in brackets are rules of the
 * specification. "Choice" marks where the rules leave something open and the library has decided; the trace depends on it.
 */
#include "model.h"

#include <string.h>

enum { most_blocks = 512, most_runs = 8 };

bool model_follows_toolchain;
bool model_has_slept;

/* `joined[mode]` is when an item joined the mode, 0 if it is not in it; `joined[mode_common]` counts as membership of the common items. */
struct source {
    bool valid;
    bool marked;
    uint64_t marked_at[mode_count + 1]; /* in each mode: of the signal, or of the joining that found the mark (choice) */
    uint64_t joined[mode_count + 1];
};

struct observer {
    bool valid;
    bool in_call;
    uint64_t joined[mode_count + 1];
};

struct timer {
    bool valid;
    bool firing;
    bool dated; /* SetNextFireDate came in the callback */
    int64_t fires_at; /* on the clock that goes on while the system is suspended (110, 1200) */
    int64_t date; /* as reported (111) */
    uint64_t joined[mode_count + 1];
    uint64_t placed[mode_count]; /* among equal dates (134) */
    uint64_t called_at;
    uint64_t dated_at; /* for the toolchain, where time goes on between two dates */
};

struct block {
    uint64_t queued_at;
    int block;
    int mode;
};

struct run {
    int mode;
    bool stopped;
    bool keeps_wake_ups; /* from Entry or the start of a pass to the end of its wait (64) */
    bool before_waiting;
    bool owed_taken; /* the wake-up that a run inside its BeforeWaiting observers took */
    bool took_wake_up;
    bool owed_wake_up; /* one came while a run inside this one was past its own wait */
    bool polls;
    bool returns_after_source;
    int64_t deadline; /* INT64_MAX: none (43) */
};

static const struct program *program;
static int64_t now;
static uint64_t order; /* grows with everything whose order matters */
static struct source sources[item_count];
static struct observer observers[item_count];
static struct timer timers[item_count];
static struct block blocks[most_blocks];
static int block_count;
static bool mode_exists[mode_count];
static uint64_t common_since[mode_count];
static uint64_t mode_made[mode_count];
static struct run runs[most_runs];
static int run_count;
static bool woken; /* a wake-up is kept; one for all modes and runs (46) */
static bool waiting;
static bool port_posted; /* the descriptor of source 3 is readable, if that is a version-1 source */

static struct run *innermost(void)
{
    return run_count > 0 ? &runs[run_count - 1] : NULL;
}

/* ---- modes ---- */

static void meet_mode(int mode)
{
    if (!mode_made[mode]) {
        mode_made[mode] = ++order;
    }
}

/* Modes come into being when something is added (11). */
static void make_mode(int mode)
{
    meet_mode(mode);
    mode_exists[mode] = true;
}

/* Common modes, in the order in which they were first named (choice). */
static int next_common_mode(uint64_t after)
{
    int next = -1;

    for (int mode = 0; mode < mode_count; mode++) {
        if (common_since[mode] && mode_made[mode] > after && (next < 0 || mode_made[mode] < mode_made[next])) {
            next = mode;
        }
    }
    return next;
}

#define FOR_COMMON_MODES(mode_) for (int mode_ = next_common_mode(0); mode_ >= 0; mode_ = next_common_mode(mode_made[mode_]))

static bool block_may_run(const struct block *block, int mode)
{
    switch (block->mode) {
    case mode_common:
        return common_since[mode] != 0; /* whatever is common at the time of execution (165) */
    case mode_list_xy:
        return mode == mode_x || mode == mode_y;
    case mode_list_x_common:
        return mode == mode_x || common_since[mode] != 0;
    default:
        return block->mode == mode;
    }
}

/* No source, valid or not, no timer, no block that could run (25, 26). */
static bool is_empty(int mode)
{
    for (int i = 0; i < item_count; i++) {
        if (sources[i].joined[mode] || timers[i].joined[mode]) {
            return false;
        }
    }
    for (int i = 0; i < block_count; i++) {
        if (block_may_run(&blocks[i], mode)) {
            return false;
        }
    }
    return true;
}

/* ---- sources ---- */

static bool is_port(int i)
{
    return program->has_port && i == port_item;
}

/* The kernel would report it in a run of the mode. */
static bool port_is_ready(int mode)
{
    return program->has_port && port_posted && sources[port_item].valid && sources[port_item].joined[mode];
}

static void source_join(int i, int mode)
{
    if (sources[i].valid && !sources[i].joined[mode]) { /* 16, 89 */
        sources[i].joined[mode] = ++order;
        if (!model_follows_toolchain) {
            sources[i].marked_at[mode] = order; /* a mark is kept (79, 80), and counts from here */
        }
        make_mode(mode);
        if (!is_port(i)) { /* 107 */
            interpreter_call(event_schedule, i, mode); /* after the source is in the mode (75) */
        }
    }
}

static void source_leave(int i, int mode)
{
    if (sources[i].joined[mode]) {
        sources[i].joined[mode] = 0;
        if (!is_port(i)) {
            interpreter_call(event_cancel, i, mode); /* after it has left (76) */
        }
    }
}

static void source_add(int i, int mode)
{
    if (!sources[i].valid) {
        return; /* 89 */
    }
    if (mode != mode_common) {
        make_mode(mode);
        source_join(i, mode);
        return;
    }
    if (!sources[i].joined[mode_common]) {
        sources[i].joined[mode_common] = ++order;
    }
    FOR_COMMON_MODES(each)
    { /* 17 */
        source_join(i, each);
    }
}

static void source_remove(int i, int mode)
{
    if (mode != mode_common) {
        source_leave(i, mode); /* stays a common item (20) */
    } else if (sources[i].joined[mode_common]) { /* 21 */
        sources[i].joined[mode_common] = 0;
        FOR_COMMON_MODES(each)
        {
            source_leave(i, each);
        }
    }
}

/* Which membership an invalidation ends next: the youngest (choice). */
static int youngest_membership(const struct source *source)
{
    int youngest = -1;

    for (int mode = 0; mode <= mode_count; mode++) {
        if (source->joined[mode] && (youngest < 0 || source->joined[mode] > source->joined[youngest])) {
            youngest = mode;
        }
    }
    return youngest;
}

static void source_invalidate(int i)
{
    int mode;

    if (!sources[i].valid) {
        return;
    }
    sources[i].valid = false; /* before the first cancel (90) */
    sources[i].marked = false; /* 88 */
    while ((mode = youngest_membership(&sources[i])) >= 0) {
        if (mode == mode_common) {
            sources[i].joined[mode] = 0;
        } else {
            source_leave(i, mode);
        }
    }
}

static void source_signal(int i)
{
    if (is_port(i)) {
        port_posted = true; /* several events before it is served are one (100) */
        return;
    }
    if (sources[i].valid && !sources[i].marked) { /* coalesces (77); in no loop, too (79); not when invalid (81) */
        sources[i].marked = true;
        order++;
        for (int mode = 0; mode < mode_count; mode++) {
            sources[i].marked_at[mode] = order;
        }
    }
}

static bool performs_before(int i, int j, int mode)
{
    if (program->source_order[i] != program->source_order[j]) {
        return program->source_order[i] < program->source_order[j]; /* 82 */
    }
    return sources[i].marked_at[mode] < sources[j].marked_at[mode]; /* 83 */
}

/* Performs what is marked now (82). True if any was performed (85). */
static bool perform_sources(const struct run *run)
{
    int collected[item_count];
    int count = 0;
    bool handled = false;

    for (int i = 0; i < item_count; i++) {
        if (sources[i].joined[run->mode] && sources[i].marked) {
            int at = count++;

            for (; at > 0 && performs_before(i, collected[at - 1], run->mode); at--) {
                collected[at] = collected[at - 1];
            }
            collected[at] = i;
        }
    }
    if (run->returns_after_source && count > 1) {
        count = 1; /* 49 */
    }
    for (int at = 0; at < count; at++) {
        struct source *source = &sources[collected[at]];
        bool performs = source->valid && source->marked; /* removed: yes; invalidated, or performed by a nested run: no (84) */

        if (performs) {
            source->marked = false; /* 78 */
            interpreter_call(event_source, collected[at], 0);
        }
        handled = model_follows_toolchain ? performs : handled || performs;
    }
    return handled;
}

/* ---- observers ---- */

static void observer_join(int i, int mode)
{
    if (observers[i].valid && !observers[i].joined[mode]) { /* 149 */
        observers[i].joined[mode] = ++order;
        make_mode(mode);
    }
}

static void observer_add(int i, int mode)
{
    if (!observers[i].valid) {
        return;
    }
    if (mode != mode_common) {
        observer_join(i, mode);
        return;
    }
    if (!observers[i].joined[mode_common]) {
        observers[i].joined[mode_common] = ++order;
    }
    FOR_COMMON_MODES(each)
    {
        observer_join(i, each);
    }
}

static void observer_remove(int i, int mode)
{
    if (mode != mode_common) {
        observers[i].joined[mode] = 0;
    } else if (observers[i].joined[mode_common]) {
        observers[i].joined[mode_common] = 0;
        FOR_COMMON_MODES(each)
        {
            observers[i].joined[each] = 0;
        }
    }
}

static void observer_invalidate(int i)
{
    observers[i].valid = false;
    memset(observers[i].joined, 0, sizeof observers[i].joined);
}

static bool is_called_before(int i, int j, int mode)
{
    if (program->observer_order[i] != program->observer_order[j]) {
        return program->observer_order[i] < program->observer_order[j];
    }
    return observers[i].joined[mode] < observers[j].joined[mode]; /* 148 */
}

static void notify(int mode, enum program_activity activity)
{
    int called[item_count];
    int count = 0;

    for (int i = 0; i < item_count; i++) { /* a snapshot: removed ones are called, added ones are not (150) */
        if (observers[i].joined[mode] && (program->observer_activities[i] & (1 << activity))) {
            int at = count++;

            for (; at > 0 && is_called_before(i, called[at - 1], mode); at--) {
                called[at] = called[at - 1];
            }
            called[at] = i;
        }
    }
    for (int at = 0; at < count; at++) {
        int i = called[at];

        if (observers[i].valid && !observers[i].in_call) { /* 150, 151 */
            observers[i].in_call = true;
            interpreter_call(event_observer, i, (int)activity);
            observers[i].in_call = false;
            if (!program->observer_repeats[i]) {
                observer_invalidate(i); /* 152 */
            }
        }
    }
}

/* ---- timers ---- */

static void timer_set(int i, int64_t date)
{
    timers[i].date = date;
    timers[i].fires_at = date < now ? now : date; /* 112 */
    timers[i].dated_at = ++order;
}

/* Last among those of its date (134), in every mode. */
static void timer_place(int i)
{
    uint64_t place = ++order;

    for (int mode = 0; mode < mode_count; mode++) {
        timers[i].placed[mode] = place;
    }
}

static void timer_join(int i, int mode)
{
    if (timers[i].valid && !timers[i].joined[mode]) { /* 141 */
        timers[i].placed[mode] = ++order;
        timers[i].joined[mode] = order;
        make_mode(mode);
    }
}

static void timer_add(int i, int mode)
{
    if (!timers[i].valid) {
        return; /* 141 */
    }
    if (mode != mode_common) {
        timer_join(i, mode);
        return;
    }
    if (!timers[i].joined[mode_common]) {
        timers[i].joined[mode_common] = ++order;
    }
    FOR_COMMON_MODES(each)
    {
        timer_join(i, each);
    }
}

static void timer_remove(int i, int mode)
{
    if (mode != mode_common) {
        timers[i].joined[mode] = 0;
    } else if (timers[i].joined[mode_common]) {
        timers[i].joined[mode_common] = 0;
        FOR_COMMON_MODES(each)
        {
            timers[i].joined[each] = 0;
        }
    }
}

static void timer_invalidate(int i)
{
    timers[i].valid = false;
    memset(timers[i].joined, 0, sizeof timers[i].joined);
}

static void timer_set_date(int i, int64_t date)
{
    if (timers[i].valid) { /* 127 */
        timer_set(i, date);
        timer_place(i);
        timers[i].dated = timers[i].firing;
    }
}

static bool fires_before(int i, int j, int mode)
{
    if (timers[i].fires_at != timers[j].fires_at) {
        return timers[i].fires_at < timers[j].fires_at;
    }
    if (model_follows_toolchain) {
        return timers[i].dated_at < timers[j].dated_at;
    }
    return timers[i].placed[mode] < timers[j].placed[mode];
}

static bool timer_is_in_a_mode(int i)
{
    for (int mode = 0; mode < mode_count; mode++) {
        if (timers[i].joined[mode]) {
            return true;
        }
    }
    return false;
}

/* Valid, due, not in its callback (122, 132). */
static bool is_due(int i)
{
    return timers[i].valid && !timers[i].firing && timers[i].fires_at <= now;
}

static bool may_fire(int i, int mode)
{
    return timers[i].joined[mode] && is_due(i);
}

/* Asked just before: the toolchain asks for the loop then, in which it may be for another mode. */
static bool may_still_fire(int i, int mode)
{
    return is_due(i) && (model_follows_toolchain ? timer_is_in_a_mode(i) : timers[i].joined[mode] != 0);
}

static bool any_due(int mode)
{
    for (int i = 0; i < item_count; i++) {
        if (may_fire(i, mode)) {
            return true;
        }
    }
    return false;
}

/* The first date of the series later than now, computed when the callback has returned (118, 119). */
static void timer_advance(int i)
{
    do {
        timers[i].fires_at += program->timer_interval[i];
    } while (timers[i].fires_at <= now);
    timers[i].date = timers[i].fires_at;
    timer_place(i);
}

static void fire(int i)
{
    timers[i].firing = true;
    timers[i].called_at = ++order;
    timers[i].dated = false;
    interpreter_call(event_timer, i, 0);
    timers[i].firing = false;
    if (timers[i].valid && program->timer_interval[i] == 0) {
        timer_invalidate(i); /* 124; a date set in the callback is lost (125) */
    } else if (timers[i].valid && timers[i].dated) {
        timer_place(i); /* 126 */
    } else if (timers[i].valid) {
        timer_advance(i);
    }
}

/* All that are due, by date (34, 132). */
static void fire_timers(int mode)
{
    int due[item_count];
    int count = 0;

    for (int i = 0; i < item_count; i++) {
        if (may_fire(i, mode)) {
            int at = count++;

            for (; at > 0 && fires_before(i, due[at - 1], mode); at--) {
                due[at] = due[at - 1];
            }
            due[at] = i;
        }
    }
    for (int at = 0; at < count; at++) {
        if (may_still_fire(due[at], mode)) {
            fire(due[at]);
        }
    }
}

/* The earliest instant at which a timer of the mode will be due. */
static int64_t next_instant(int mode)
{
    int64_t next = INT64_MAX;

    for (int i = 0; i < item_count; i++) {
        if (timers[i].joined[mode] && !timers[i].firing && timers[i].fires_at < next) {
            next = timers[i].fires_at;
        }
    }
    return next;
}

/* Of two dates that come at the same instant, one whose callback is under way came earlier; of two such, the one that was called first. */
static bool comes_before(int i, int j, int mode)
{
    if (timers[i].fires_at != timers[j].fires_at || (!timers[i].firing && !timers[j].firing)) {
        return fires_before(i, j, mode);
    }
    if (timers[i].firing && timers[j].firing) {
        return timers[i].called_at < timers[j].called_at;
    }
    return timers[i].firing;
}

/* The date of the timer that comes first (131), one in its callback with the date that has come (123); INT64_MIN for none. */
static int64_t next_date(int mode)
{
    int next = -1;

    for (int i = 0; i < item_count; i++) {
        if (timers[i].joined[mode] && (next < 0 || comes_before(i, next, mode))) {
            next = i;
        }
    }
    return next < 0 ? INT64_MIN : timers[next].date;
}

/* ---- blocks ---- */

static void perform_block(int block, int mode)
{
    if (mode < mode_count) {
        make_mode(mode); /* 169 */
    } else if (mode == mode_list_xy) {
        make_mode(mode_x);
        make_mode(mode_y);
    } else if (mode == mode_list_x_common) {
        make_mode(mode_x);
    }
    if (block_count < most_blocks) {
        blocks[block_count++] = (struct block){++order, block, mode};
    }
}

/* Takes from a queue what was queued between two moments and may run in the mode, or may not; returns how many. */
static int detach_blocks(struct block *queue, int *queued, int mode, bool may_run, uint64_t after, uint64_t before, struct block *detached)
{
    int count = 0;
    int kept = 0;

    for (int i = 0; i < *queued; i++) {
        if (block_may_run(&queue[i], mode) == may_run && queue[i].queued_at > after && queue[i].queued_at < before) {
            detached[count++] = queue[i];
        } else {
            queue[kept++] = queue[i];
        }
    }
    *queued = kept;
    return count;
}

static void sort_blocks(struct block *queue, int count)
{
    for (int i = 1; i < count; i++) {
        for (int j = i; j > 0 && queue[j].queued_at < queue[j - 1].queued_at; j--) {
            struct block other = queue[j];

            queue[j] = queue[j - 1];
            queue[j - 1] = other;
        }
    }
}

/*
 * Those that may run in the mode when it is their turn (165), in the order of queueing; the others keep their place (163). What they queue
 * waits (166).
 */
static void run_blocks(int mode)
{
    static struct block detached[most_runs][most_blocks];
    static struct block hidden[most_runs][most_blocks];
    int depth = run_count - 1;
    uint64_t begun = ++order;
    int count = detach_blocks(blocks, &block_count, mode, true, 0, begun, detached[depth]);
    int hidden_count = 0;
    bool was_common = common_since[mode] != 0;

    if (model_follows_toolchain) { /* there the others are away meanwhile */
        hidden_count = detach_blocks(blocks, &block_count, mode, false, 0, begun, hidden[depth]);
    }
    for (int i = 0; i < count; i++) {
        uint64_t turn = detached[depth][i].queued_at;

        interpreter_call(event_block, detached[depth][i].block, 0);
        if (!was_common && common_since[mode]) {
            was_common = true;
            count += detach_blocks(model_follows_toolchain ? hidden[depth] : blocks, model_follows_toolchain ? &hidden_count : &block_count,
                                   mode, true, turn, begun, detached[depth] + count);
            sort_blocks(detached[depth] + i + 1, count - i - 1);
        }
    }
    if (hidden_count + block_count <= most_blocks) {
        memmove(blocks + hidden_count, blocks, (size_t)block_count * sizeof blocks[0]);
        memcpy(blocks, hidden[depth], (size_t)hidden_count * sizeof blocks[0]);
        block_count += hidden_count;
    }
}

/* ---- wake-ups and stops ---- */

static void wake_up(void)
{
    if (innermost() && innermost()->keeps_wake_ups) { /* 62, 63, 64 */
        woken = true;
        return;
    }
    /* Dropped by a run that is past its wait; but an outer run that is still before its own keeps it (64). */
    for (int outer = run_count - 2; outer >= 0 && !model_follows_toolchain; outer--) {
        if (runs[outer].keeps_wake_ups) {
            runs[outer].owed_wake_up = true;
            return;
        }
    }
}

static void stop(void)
{
    if (innermost()) { /* 56; the innermost only (55) */
        innermost()->stopped = true;
        /* The wait returns at once (37t, 57). A run that sleeps is ended by the stop itself, which is no wake-up to the run around it. */
        woken |= innermost()->keeps_wake_ups && (!waiting || model_follows_toolchain);
    }
}

/* The wait is over: a wake-up is consumed (46), and until the next pass others are dropped (63). */
static void end_wait(struct run *run)
{
    run->took_wake_up |= woken;
    woken = false;
    run->keeps_wake_ups = false;
}

enum cause { cause_none, cause_timers, cause_source }; /* what is handled after a wait: one kind (30) */

/*
 * Sleeps. A port that was ready before is found by asking the kernel, which a wake-up that is there already saves (choice); one that
 * becomes ready in the sleep is found with the wake-up.
 */
static enum cause sleep(struct run *run)
{
    bool due = false;
    bool asks = false;

    for (;;) {
        bool goes_on;

        if (asks && port_is_ready(run->mode)) {
            end_wait(run);
            return cause_source;
        }
        due = any_due(run->mode);
        if (due || now >= run->deadline || woken || (run->stopped && !model_follows_toolchain)) { /* 37t, whoever took the wake-up */
            break;
        }
        if (program->has_port && sources[port_item].joined[run->mode] && !asks) {
            asks = true;
            continue;
        }
        asks = asks && sources[port_item].joined[run->mode];
        waiting = model_has_slept = true;
        goes_on = interpreter_asleep();
        if (!goes_on) {
            int64_t next = next_instant(run->mode);
            int64_t until = next < run->deadline ? next : run->deadline;

            if (until == INT64_MAX) {
                interpreter_sleeps_for_ever();
            } else {
                now = until;
            }
        }
        waiting = false;
    }
    end_wait(run);
    return due ? cause_timers : cause_none;
}

/* A poll: what is ready now. */
static enum cause look(struct run *run)
{
    bool due = any_due(run->mode);
    bool ready = port_is_ready(run->mode);

    end_wait(run);
    return due ? cause_timers : ready ? cause_source : cause_none;
}

/* True if it is still ready, and still there (15, 88). The loop reads the counter (99). */
static bool perform_port(int mode)
{
    if (!port_is_ready(mode)) {
        return false;
    }
    port_posted = false;
    interpreter_call(event_source, port_item, 0);
    return true;
}

/* ---- the pass and the run ---- */

enum { finished = 1, stopped = 2, timed_out = 3, handled_source = 4 }; /* 47 */

/* One pass, in the order of rule 30. Returns 0 to go on. */
static int pass(struct run *run)
{
    bool handled;
    enum cause cause;

    run->keeps_wake_ups = true; /* 64 */
    notify(run->mode, at_before_timers);
    notify(run->mode, at_before_sources);
    run_blocks(run->mode);
    handled = perform_sources(run);
    if (handled) {
        run_blocks(run->mode);
    }
    if (handled || run->polls) {
        cause = look(run);
    } else {
        run->before_waiting = true;
        notify(run->mode, at_before_waiting);
        run->before_waiting = false;
        woken |= run->owed_taken; /* of no other run inside it (46) */
        run->owed_taken = false;
        cause = sleep(run);
        notify(run->mode, at_after_waiting);
    }
    if (cause == cause_timers) {
        fire_timers(run->mode);
    } else if (cause == cause_source) {
        handled |= perform_port(run->mode);
    }
    run_blocks(run->mode);
    /* 48 */
    if (handled && run->returns_after_source) {
        return handled_source;
    }
    if (run->polls || now >= run->deadline) {
        return timed_out;
    }
    if (run->stopped) {
        return stopped;
    }
    return is_empty(run->mode) ? finished : 0;
}

static void leave(const struct run *run)
{
    struct run *outer = run_count > 1 ? &runs[run_count - 2] : NULL;
    bool took = run->took_wake_up;

    run_count--;
    if (!outer || !outer->keeps_wake_ups) {
        woken = false; /* 58, 62, 63 */
    } else if (outer->before_waiting && !model_follows_toolchain && took) {
        outer->owed_taken = true; /* the outer pass has collected already (64) */
    }
    if (outer && outer->keeps_wake_ups) {
        woken |= outer->owed_wake_up;
        outer->owed_wake_up = false;
    }
    if (outer) {
        outer->took_wake_up |= took;
    }
}

static int run_in_mode(int mode, int32_t ticks, bool returns_after_source, bool is_hosted)
{
    struct run *run = &runs[run_count];
    int result = 0;

    if (mode >= mode_count || !mode_exists[mode] || is_empty(mode)) {
        return finished; /* 24, 27 */
    }
    *run = (struct run){.mode = mode, .keeps_wake_ups = true, .polls = ticks == 0, .returns_after_source = returns_after_source};
    run_count++;
    notify(mode, at_entry);
    run->deadline = ticks <= 0 ? INT64_MAX : now + ticks; /* 41 */
    result = run->stopped ? stopped : 0; /* 29 */
    if (run->stopped && is_hosted) {
        end_wait(run); /* choice: where the run is in two halves, the wake-up of that stop goes before Exit */
    }
    while (!result) {
        result = pass(run);
    }
    notify(mode, at_exit);
    leave(run);
    return result;
}

/* Timers count the time of a suspension (1200), limits of runs do not (1206). */
static void suspend(int64_t ticks)
{
    now += ticks;
    for (int i = 0; i < run_count; i++) {
        runs[i].deadline += runs[i].deadline == INT64_MAX ? 0 : ticks;
    }
}

/* ---- operations ---- */

/* When an item of this class became a common item; 0 if it is none. */
static uint64_t common_item_since(enum item_class class, int item)
{
    switch (class) {
    case class_source:
        return sources[item].joined[mode_common];
    case class_observer:
        return observers[item].joined[mode_common];
    default:
        return timers[item].joined[mode_common];
    }
}

/* The item that became a common item first of those that did after `since`, or -1. */
static int next_common_item(enum item_class class, uint64_t since)
{
    int next = -1;

    for (int i = 0; i < item_count; i++) {
        if (common_item_since(class, i) > since && (next < 0 || common_item_since(class, i) < common_item_since(class, next))) {
            next = i;
        }
    }
    return next;
}

/* In the order in which they became common items (choice). */
static void join_common_items(enum item_class class, int mode, void (*join)(int item, int mode))
{
    uint64_t since;

    for (int item = next_common_item(class, 0); item >= 0; item = next_common_item(class, since)) {
        since = common_item_since(class, item);
        join(item, mode);
    }
}

static void add_common_mode(int mode)
{
    if (common_since[mode]) {
        return; /* 19 */
    }
    meet_mode(mode);
    common_since[mode] = ++order;
    join_common_items(class_source, mode, source_join);
    join_common_items(class_observer, mode, observer_join);
    join_common_items(class_timer, mode, timer_join);
}

static void create(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        sources[op->item] = (struct source){.valid = true};
        break;
    case class_observer:
        observers[op->item] = (struct observer){.valid = true};
        break;
    case class_timer:
        timers[op->item] = (struct timer){.valid = true};
        timer_set(op->item, now + op->value);
        break;
    default:
        break;
    }
}

static void add(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        source_add(op->item, op->mode);
        break;
    case class_observer:
        observer_add(op->item, op->mode);
        break;
    default:
        timer_add(op->item, op->mode);
        break;
    }
}

static void remove_item(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        source_remove(op->item, op->mode);
        break;
    case class_observer:
        observer_remove(op->item, op->mode);
        break;
    default:
        timer_remove(op->item, op->mode);
        break;
    }
}

static bool contains(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        return sources[op->item].joined[op->mode] != 0; /* 22 */
    case class_observer:
        return observers[op->item].joined[op->mode] != 0;
    default:
        /* There a timer that was taken out of its last mode by name has no loop, whatever else it is (20, 22). */
        return timers[op->item].joined[op->mode] != 0 && (!model_follows_toolchain || timer_is_in_a_mode(op->item));
    }
}

static void invalidate(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        source_invalidate(op->item);
        break;
    case class_observer:
        observer_invalidate(op->item);
        break;
    default:
        timer_invalidate(op->item);
        break;
    }
}

static bool is_valid(const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        return sources[op->item].valid;
    case class_observer:
        return observers[op->item].valid;
    default:
        return timers[op->item].valid;
    }
}

static int64_t all_modes(void)
{
    int64_t modes = 0;

    for (int mode = 0; mode < mode_count; mode++) {
        modes |= mode_exists[mode] ? 1 << mode : 0;
    }
    return modes;
}

static int64_t apply(const struct op *op)
{
    switch ((enum op_kind)op->kind) {
    case op_create:
        create(op);
        break;
    case op_add:
        add(op);
        break;
    case op_remove:
        remove_item(op);
        break;
    case op_contains:
        return contains(op);
    case op_invalidate:
        invalidate(op);
        break;
    case op_is_valid:
        return is_valid(op);
    case op_signal:
        source_signal(op->item);
        break;
    case op_is_signalled:
        return sources[op->item].marked;
    case op_set_date:
        timer_set_date(op->item, now + op->value);
        break;
    case op_get_date:
        return timers[op->item].valid ? timers[op->item].date : INT64_MIN; /* 130 */
    case op_next_date:
        return op->mode < mode_count ? next_date(op->mode) : INT64_MIN;
    case op_add_common_mode:
        if (op->mode < mode_count) { /* 23 */
            add_common_mode(op->mode);
        }
        break;
    case op_wake:
        wake_up();
        break;
    case op_stop:
        stop();
        break;
    case op_perform:
        perform_block(op->item, op->mode);
        break;
    case op_run:
        return run_in_mode(op->mode, op->value, op->flag, program->is_hosted && op->place == place_main);
    case op_busy:
        now += op->value;
        break;
    case op_suspend:
        suspend(op->value);
        break;
    case op_current_mode:
        return innermost() ? innermost()->mode : -1; /* 8 */
    case op_all_modes:
        return all_modes();
    case op_is_waiting:
        return waiting; /* 9 */
    case op_release:
    case op_asleep:
    case op_kinds:
        break;
    }
    return 0;
}

static int64_t model_now(void)
{
    return now;
}

static void execute(const struct program *executed, void (*body)(void))
{
    program = executed;
    now = 0;
    order = 0;
    memset(sources, 0, sizeof sources);
    memset(observers, 0, sizeof observers);
    memset(timers, 0, sizeof timers);
    block_count = 0;
    memset(mode_exists, 0, sizeof mode_exists);
    memset(common_since, 0, sizeof common_since);
    memset(mode_made, 0, sizeof mode_made);
    run_count = 0;
    woken = waiting = port_posted = false;
    model_has_slept = false;
    make_mode(mode_default); /* 10 */
    common_since[mode_default] = ++order; /* 18 */
    body();
    for (int i = 0; i < item_count; i++) { /* 170 */
        for (int mode = 0; mode < mode_count; mode++) {
            source_leave(i, mode);
        }
    }
}

const struct world model = {"model", execute, apply, model_now};
