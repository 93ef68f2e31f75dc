/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a pass: pass.c is the only file that knows it. All functions run on the loop's own thread and enter and leave with the lock
 * held.
 */
#ifndef CRL_LOOP_PASS_H
#define CRL_LOOP_PASS_H

#include "Support/link_names.h"

#include "Loop/loop.h"

/* A whole run: CFRunLoopRunInMode. Takes the lock itself. */
CFRunLoopRunResult run_in_mode(CFRunLoopRef loop, CFStringRef mode_name, CFTimeInterval seconds, bool returns_after_source);

/*
 * The same until an instant; 0: one pass that does not sleep, kernel_never: without a limit. With `awaited`, until that is not 0: whoever
 * changes it wakes the loop then. It counts as a source of the mode, which is not empty with it, and is there from now on.
 */
CFRunLoopRunResult run_in_mode_until(CFRunLoopRef loop, CFStringRef mode_name, int64_t deadline_ns, bool returns_after_source,
                                     const _Atomic uint32_t *awaited);

/* ---- the parts, for hosting ---- */

void run_enter(CFRunLoopRef loop, struct activation *run, struct mode *mode);
void run_leave(CFRunLoopRef loop, struct activation *run);
void run_leave_abandoned(CFRunLoopRef loop, const struct activation *run);

/* After callouts: the run is the innermost one again, also where a callback has caught what was thrown through runs of its own. */
static inline void run_resume(CFRunLoopRef loop, const struct activation *run)
{
    if (__builtin_expect(loop->activation != run, 0)) {
        run_leave_abandoned(loop, run);
    }
}

/* Steps 2 to 4. True if the pass goes on to sleep, false if it only looks. */
bool pass_before_wait(CFRunLoopRef loop, struct activation *run);

/* Step 5: the main queue has work and goes first. */
bool pass_main_queue_first(CFRunLoopRef loop, struct activation *run);

/* Steps 5 to 7 without sleeping: what is ready now. */
enum wake_cause pass_look(CFRunLoopRef loop, struct activation *run);

/* Asks the kernel for reports without waiting. */
void pass_poll_descriptors(CFRunLoopRef loop, const struct mode *mode);

/* What a wait has left to handle: kept reports and due timers, by turns. */
enum wake_cause pass_ready_cause(CFRunLoopRef loop, struct activation *run, int64_t now_ns);

/*
 * One sleep, until something happens or about `limit_ns`, in the wait set or, with wake_futex, on the wake word; `now_ns` says how far off
 * the limit is, and nothing else. False if a wake-up is there already. The phase is left as it was during the sleep.
 */
bool pass_sleep_once(CFRunLoopRef loop, struct mode *mode, enum wake_word phase, int64_t now_ns, int64_t limit_ns);

/* Step 9 and the checks at the end of a pass; 0 while the run goes on. */
CFRunLoopRunResult pass_after_wait(CFRunLoopRef loop, struct activation *run, enum wake_cause cause);

/* Tells the observers, with the flag for BeforeWaiting, which the next takes away. */
void pass_notify_before_waiting(CFRunLoopRef loop, struct activation *run);

/* About to sleep: what a run took in those observers that was jumped out of is given back first, as by one that has ended there. */
static inline void pass_end_before_waiting(CFRunLoopRef loop, struct activation *run)
{
    run_resume(loop, run);
    run->is_before_waiting = false;
}

#endif
