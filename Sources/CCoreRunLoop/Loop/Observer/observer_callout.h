/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the observers of an activity. */
#ifndef CRL_LOOP_OBSERVER_CALLOUT_H
#define CRL_LOOP_OBSERVER_CALLOUT_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"
#include "Loop/Core/run.h"

/*
 * In the child of a fork, for the loop of a thread that does not exist there: its observers are in no callout any more. Releases no info,
 * because no function of the program may be called.
 */
void observers_forget_callouts(CFRunLoopRef loop);
/* The clean-up of a callout that did not return: ends it as if it had. On the loop's thread, without locks. */
void observer_end_left_callout(const void *observer);

/* Calls the observers of the mode's array for `activity`, which exists. Drops the lock during the callouts. */
REQUIRES(the_loop_lock) void observers_call(CFRunLoopRef loop, struct run *run, CFRunLoopActivity activity);

/* Calls all observers that watch `activity` in the run's mode. Costs one load if there is none. Drops the lock during the callouts. */
REQUIRES(the_loop_lock) static inline void observers_notify(CFRunLoopRef loop, struct run *run, CFRunLoopActivity activity)
{
    if (atomic_load_explicit(&run->mode->observed, memory_order_relaxed) & activity) {
        observers_call(loop, run, activity);
    }
}

#endif
