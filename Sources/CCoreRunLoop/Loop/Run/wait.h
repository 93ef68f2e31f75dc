/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step 7 of a pass: the loop sleeps until there is a cause, or only looks whether there is one. All functions run on the loop's own thread.
 * They enter and leave with the loop's lock, and drop it during the sleep and while they ask the kernel.
 */
#ifndef CRL_LOOP_RUN_WAIT_H
#define CRL_LOOP_RUN_WAIT_H

#include "Support/link_names.h"

#include "Loop/Core/run.h"
#include "Loop/Core/loop.h"

/* Sleeps until a cause is there, the run's limit has come, or somebody wakes the loop. */
REQUIRES(the_loop_lock) enum wake_cause wait_for_cause(CFRunLoopRef loop, struct run *run);

/* Returns what is ready now, without sleeping. */
REQUIRES(the_loop_lock) enum wake_cause wait_look(CFRunLoopRef loop, struct run *run);

/* Writes into the trace that is on why a sleep has ended. */
REQUIRES(the_loop_lock) __attribute__((cold)) void wait_trace_end(CFRunLoopRef loop, const struct run *run, enum wake_cause cause);

/* Asks the kernel for reports without waiting. */
REQUIRES(the_loop_lock) void wait_poll(CFRunLoopRef loop, const struct mode *mode);

/*
 * Returns the cause that goes first now: a socket, or else a kept report or due timers, which take turns. Returns cause_none if there is
 * none. With 0 for `now_ns` no timer counts as due.
 */
REQUIRES(the_loop_lock) enum wake_cause wait_ready_cause(CFRunLoopRef loop, struct run *run, int64_t now_ns);

/* Does as wait_ready_cause, for a pass that has performed sockets already: it leaves further sockets for the next pass. */
REQUIRES(the_loop_lock) enum wake_cause wait_cause_beside_sockets(CFRunLoopRef loop, struct run *run);

/*
 * Sleeps once, until something happens or until about `limit_ns`: in the mode's wait set, or, with wake_futex, on the wake word. `now_ns`
 * only says how far off the limit is. Returns false, without sleeping, if a wake-up or a stop is there already. Otherwise the wake word
 * keeps the phase of the sleep, until waker_rearm or waker_disarm.
 */
REQUIRES(the_loop_lock) bool wait_sleep_once(CFRunLoopRef loop, struct mode *mode, enum wake_word phase, int64_t now_ns, int64_t limit_ns);

/*
 * The run is about to sleep. Gives back the wake-up that a nested run took inside the BeforeWaiting observers, even if that run was left by
 * a jump. The wait then ends at once.
 */
REQUIRES(the_loop_lock) static inline void wait_begin(CFRunLoopRef loop, struct run *run)
{
    run_resume(loop, run);
    run->is_before_waiting = false;
    if (__builtin_expect(run->is_owed_token, 0)) {
        run->is_owed_token = false;
        waker_wake(loop->waker);
    }
    invariant(loop_is_armed(loop));
}

#endif
