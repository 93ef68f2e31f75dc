/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step 7 of a pass: the loop sleeps until there is a cause, or only looks whether there is one. All functions run on the loop's own thread.
 * They enter and leave with the loop's lock, and drop it during the sleep and while they ask the kernel.
 */
#ifndef CRL_LOOP_RUN_WAIT_H
#define CRL_LOOP_RUN_WAIT_H

#include "Loop/link_names.h"

#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Loop/Core/run.h"
#include "Loop/Core/loop.h"
#include "Loop/Timer/timer_heap.h"
#include "Loop/Watch/watch.h"

/* Sleeps until a cause is there, the run's limit has come, or somebody wakes the loop. */
REQUIRES(the_loop_lock) enum wake_cause wait_for_cause(CFRunLoopRef loop, struct run *run);

/* Returns what is ready now, without sleeping. */
REQUIRES(the_loop_lock) enum wake_cause wait_look(CFRunLoopRef loop, struct run *run);

/* Writes into the trace that is on why a sleep has ended. */
REQUIRES(the_loop_lock) __attribute__((cold)) void wait_trace_end(CFRunLoopRef loop, const struct run *run, enum wake_cause cause);

/* Asks the kernel for reports without waiting. */
REQUIRES(the_loop_lock) void wait_poll(CFRunLoopRef loop, const struct mode *mode);

/* One moment on both clocks of a loop: timers go by `elapsed_ns` (Core/instant.h), everything else by `monotonic_ns`. */
struct moment {
    int64_t monotonic_ns;
    int64_t elapsed_ns;
};

/*
 * Returns what time it is. In this order, so that a thread that is held up between the two readings makes limits of timers too early, not
 * too late.
 */
REQUIRES(the_loop_lock) static inline struct moment moment_now(CFRunLoopRef loop)
{
    struct moment now;

    now.monotonic_ns = kernel.monotonic_ns();
    now.elapsed_ns = timers_now(loop);
    return now;
}

/*
 * Returns when a sleep that begins at `now` has to end: at the deadline, or for the mode's timers. Notes the latter for
 * timers_notice_earlier.
 */
REQUIRES(the_loop_lock)
static inline int64_t wait_limit(CFRunLoopRef loop, struct mode *mode, const struct moment *now, int64_t deadline_ns)
{
    int64_t limit_ns;

    loop->sleep_timers_ns = mode->timers.count > 0 ? timers_limit(mode) : kernel_never;
    if (loop->sleep_timers_ns == kernel_never) {
        return deadline_ns;
    }
    limit_ns = instant_add(now->monotonic_ns, loop->sleep_timers_ns > now->elapsed_ns ? loop->sleep_timers_ns - now->elapsed_ns : 0);
    return limit_ns < deadline_ns ? limit_ns : deadline_ns;
}

/*
 * Returns true if a sleep from `now` to `limit_ns`, which wait_limit has returned, has to notice that the system resumes from a suspension:
 * the sleep is long, and a timer may be due by then, which the monotonic clock knows nothing of. Most sleeps are shorter, and need no
 * descriptor for it. So are those of a loop that polls what the kernel has refused.
 */
REQUIRES(the_loop_lock)
static inline bool wait_limit_is_far(CFRunLoopRef loop, const struct mode *mode, const struct moment *now, int64_t limit_ns)
{
    const int64_t far_ns = INT64_C(5000000000);
    const int64_t farthest_ns = INT64_C(366) * 86400 * 1000000000; /* a timer of next year keeps a loop from finishing, and no more */

    return loop->sleep_timers_ns != kernel_never && limit_ns - now->monotonic_ns > far_ns &&
           loop->sleep_timers_ns - now->elapsed_ns < farthest_ns && !watch_must_retry(mode);
}

/*
 * Returns the cause that goes first now: a socket, or else a kept report or due timers, which take turns. Returns cause_none if there is
 * none. `elapsed_ns` is the time for timers; with 0 none counts as due.
 */
REQUIRES(the_loop_lock) enum wake_cause wait_ready_cause(CFRunLoopRef loop, struct run *run, int64_t elapsed_ns);

/* Does as wait_ready_cause, for a pass that has performed sockets already: it leaves further sockets for the next pass. */
REQUIRES(the_loop_lock) enum wake_cause wait_cause_beside_sockets(CFRunLoopRef loop, struct run *run);

/*
 * Sleeps once, until something happens or until about `limit_ns`: in the mode's wait set, or, with wake_futex, on the wake word. The limit
 * comes from wait_limit; `now_ns` only says how far off it is. Returns false, without sleeping, if a wake-up or a stop is there already.
 * Otherwise the wake word keeps the phase of the sleep, until waker_rearm or waker_disarm.
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
