/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the state of a run is. Not on the stack of the thread that runs it: a callback may end its thread, or throw through the run, and
 * then others still look at the state from their threads, the thread's own destructors run the loop once more, and the child of a fork
 * inherits it.
 *
 * A run that was left so is abandoned. It stays the loop's current run until a run around it goes on, or the thread has ended.
 */
#ifndef CRL_LOOP_ACTIVATION_H
#define CRL_LOOP_ACTIVATION_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "Loop/loop.h"
#include "Loop/mailbox.h"

/* The place of a run within another, or after an abandoned one. Without memory it is `without_memory`, which is the caller's. */
struct activation *activation_create(struct activation *without_memory);

/* The state of a run that begins: `initial`, in its place. L. */
static inline __attribute__((always_inline)) struct activation *activation_begin(CFRunLoopRef loop, struct activation initial,
                                                                                 struct activation *without_memory)
{
    struct activation *run = &loop->first_activation;

    if (__builtin_expect(loop->activation != NULL, 0)) {
        run = activation_create(without_memory);
        initial.is_allocated = run != without_memory;
    }
    *run = initial;
    return run;
}

/* Gives the place of a run back that has left the loop. */
void activation_discard(struct activation *run);

/* Those that a thread has abandoned by its end. What they hold is still held. L. */
void activations_forget(CFRunLoopRef loop);

/* ---- beginning and end; L ---- */

static inline void run_enter(CFRunLoopRef loop, struct activation *run, struct mode *mode)
{
    run->outer = loop->activation;
    run->mode = mode;
    run->served_main_queue = true; /* the first pass does not look first either (181) */
    run->outer_word = mailbox_enter(loop->mailbox);
    run->held_count = loop->held.count;
    loop->activation = run;
}

/* A run begins at `frame`: leaves those of the innermost runs whose functions have gone from the stack. L, which is dropped meanwhile. */
__attribute__((cold)) void runs_leave_gone(CFRunLoopRef loop, uintptr_t frame);

/* Leaves the runs inside `run` that were abandoned. */
__attribute__((cold)) void run_leave_abandoned(CFRunLoopRef loop, const struct activation *run);

/* After callouts: the run is the innermost one again, also where a callback has caught what was thrown through runs of its own. */
static inline void run_resume(CFRunLoopRef loop, const struct activation *run)
{
    if (__builtin_expect(loop->activation != run, 0)) {
        run_leave_abandoned(loop, run);
    }
}

/* The end of a run within another, or of one that was begun after an abandoned one. */
void run_leave_nested(CFRunLoopRef loop, struct activation *run);

static inline void run_leave(CFRunLoopRef loop, struct activation *run)
{
    run_resume(loop, run);
    if (__builtin_expect(run->outer != NULL, 0)) {
        run_leave_nested(loop, run);
    } else {
        loop->activation = NULL;
        mailbox_leave(loop->mailbox, run->outer_word, false);
    }
}

/* What the run is for has happened. */
static inline bool run_is_over(const struct activation *run)
{
    return run->returns_after_source && run->awaited && atomic_load_explicit(run->awaited, memory_order_acquire) != 0;
}

#endif
