/* SPDX-License-Identifier: Apache-2.0 */
/* How a pass fires timers. The loop's thread calls these. */
#ifndef CRL_LOOP_TIMER_FIRING_H
#define CRL_LOOP_TIMER_FIRING_H

#include "Loop/link_names.h"

#include "Loop/Timer/timer_heap.h"

/* Fires all timers of the run's mode that are due at `now_ns`, in order of date (rule 34). Drops the lock during callouts. */
REQUIRES(the_loop_lock) void timers_fire(CFRunLoopRef loop, struct run *run, int64_t now_ns);

/*
 * Ends the callouts that the loop's thread has left without returning, innermost first, as if they had returned. A timer that its callout
 * moved to another loop stays scheduled there. Without `releases` no context's release is called, and the infos leak.
 */
void timers_end_callouts(CFRunLoopRef loop, bool releases);

/* Returns the timer with the earliest next date, which may be in callout, or NULL if the mode has none (rule 131). */
REQUIRES(the_loop_lock) CFRunLoopTimerRef timers_next(CFRunLoopRef loop, struct mode *mode);

#endif
