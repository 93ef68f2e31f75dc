/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning and the end of a run, and where its state is stored.
 *
 * The state does not stand on the stack of the thread that runs the loop. A callback may end its thread, or jump or throw past the run.
 * After that other threads still look at the state, the thread's own destructors may run the loop once more, and the child of a fork
 * inherits it.
 *
 * A run that was left in this way is abandoned. It stays the loop's innermost run until a run around it goes on, or the thread has ended.
 */
#ifndef CRL_LOOP_CORE_RUN_H
#define CRL_LOOP_CORE_RUN_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "Loop/Core/loop.h"
#include "Loop/Trace/trace.h"
#include "Loop/Wake/waker.h"
#include "Support/invariant.h"

/*
 * Allocates the state of a run inside another one, or after an abandoned one. Returns the caller's `without_memory` if there is no memory.
 */
struct run *run_create(struct run *without_memory);

/* Stores the state of a run that begins. The outermost run uses the loop's own storage, so most runs allocate nothing. */
REQUIRES(the_loop_lock)
static inline __attribute__((always_inline)) struct run *run_begin(CFRunLoopRef loop, struct run initial, struct run *without_memory)
{
    struct run *run = &loop->first_run;

    invariant_held(&loop->lock);
    if (__builtin_expect(loop->innermost_run != NULL, 0)) {
        run = run_create(without_memory);
        initial.is_allocated = run != without_memory;
    }
    *run = initial;
    return run;
}

/* Frees the state of a run that has left the loop, if it was allocated. */
void run_discard(struct run *run);

/* Forgets the runs that a thread has abandoned by ending. Their clean-ups stay on the stack, for the caller to run. */
REQUIRES(the_loop_lock) void runs_forget(CFRunLoopRef loop);

/* ---- for invariants ---- */

/* Returns true if the loop counts as asleep because a host waits for a run of it. Runs in the host's callbacks leave `waiting` as it is. */
static inline bool loop_is_hosted_asleep(CFRunLoopRef loop)
{
    for (const struct run *run = loop->innermost_run; run; run = run->outer) {
        if (run->is_hosted_asleep) {
            return true;
        }
    }
    return false;
}

/* Returns true if the loop's own thread is in no sleep: `waiting` is NULL, or names the mode in which a host waits. */
REQUIRES(the_loop_lock) static inline bool loop_thread_is_awake(CFRunLoopRef loop)
{
    return !loop->waiting || loop_is_hosted_asleep(loop);
}

static inline bool loop_is_armed(CFRunLoopRef loop)
{
    return (waker_word(loop->waker) & wake_phase) == wake_armed;
}

/* ---- beginning and end ---- */

/* Writes into the trace that the run begins: which loop, which mode. */
REQUIRES(the_loop_lock) __attribute__((cold)) void run_trace_beginning(CFRunLoopRef loop, const struct run *run);

/* Writes into the trace that an item whose callouts are of that kind has joined a mode. */
REQUIRES(the_loop_lock)
__attribute__((cold)) void mode_trace_joining(const struct mode *mode, enum trace_callout kind, void (*function)(void));

/* Makes `run` the innermost run. From here on wake-ups are kept, and stops are for this run. */
REQUIRES(the_loop_lock) static inline void run_enter(CFRunLoopRef loop, struct run *run, struct mode *mode)
{
    invariant_held(&loop->lock);
    invariant(!loop->is_dead); /* the end of a thread forgets its runs, and nobody begins another */
    invariant(loop->innermost_run != run);
    invariant(loop_thread_is_awake(loop));
    run->outer = loop->innermost_run;
    run->mode = mode;
    run->skips_main_queue = true; /* the first pass does not look at the main queue before it waits (rule 181) */
    run->outer_word = waker_enter(loop->waker);
    run->cleanup_base = loop->cleanups.count;
    loop->innermost_run = run;
    if (trace_is_on()) {
        run_trace_beginning(loop, run);
    }
}

/* A run begins at `frame`: leaves the innermost runs whose functions have gone from the stack. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) __attribute__((cold)) void runs_leave_gone(CFRunLoopRef loop, uintptr_t frame);

/* Leaves the runs inside `run`, all of which were abandoned. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) __attribute__((cold)) void run_leave_abandoned(CFRunLoopRef loop, const struct run *run);

/*
 * Call it after callouts. A callback may have run the loop and caught what was thrown through that run, which is still on the list then.
 * This leaves such runs, so that `run` is the innermost one again. Drops the lock if there are any.
 */
REQUIRES(the_loop_lock) static inline void run_resume(CFRunLoopRef loop, const struct run *run)
{
    if (__builtin_expect(loop->innermost_run != run, 0)) {
        run_leave_abandoned(loop, run);
    }
    invariant(loop->cleanups.count >= run->cleanup_base);
}

/* Ends a run inside another one, or one that was begun after an abandoned one. */
REQUIRES(the_loop_lock) void run_leave_nested(CFRunLoopRef loop, struct run *run);

/* Ends the run. Its storage may be freed here. */
REQUIRES(the_loop_lock) static inline void run_leave(CFRunLoopRef loop, struct run *run)
{
    run_resume(loop, run);
    invariant_held(&loop->lock);
    invariant(loop_thread_is_awake(loop));
    trace_event(trace_run_ends, 0, run, 0);
    if (__builtin_expect(run->outer != NULL, 0)) {
        run_leave_nested(loop, run);
    } else {
        loop->innermost_run = NULL;
        waker_leave(loop->waker, run->outer_word, false);
    }
}

/* Returns true if the word that the run waits for is not 0 any more. The run's limit and a stop are not looked at. */
static inline bool run_awaited_has_come(const struct run *run)
{
    return run->returns_after_source && run->awaited && atomic_load_explicit(run->awaited, memory_order_acquire) != 0;
}

#endif
