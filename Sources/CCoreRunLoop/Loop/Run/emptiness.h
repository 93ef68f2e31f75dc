/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run of a mode would have anything to wait for. A run that has nothing finishes (rules 25 and 803). With the loop's lock. */
#ifndef CRL_LOOP_RUN_EMPTINESS_H
#define CRL_LOOP_RUN_EMPTINESS_H

#include "Loop/link_names.h"

#include "Loop/Block/block.h"
#include "Loop/Core/loop.h"
#include "Loop/Core/main_queue.h"
#include "Support/invariant.h"

/* Returns true if something was put into the mode. Observers do not count (rule 25), suspended sources count as absent. */
REQUIRES(the_loop_lock) static inline bool mode_has_items(CFRunLoopRef loop, const struct mode *mode)
{
    invariant(mode->suspended_count <= mode->sources.count);
    return mode->sources.count > mode->suspended_count || mode->timer_count > 0 || blocks_are_queued(loop, mode);
}

/* Returns true if the loop itself has nothing to wait for in the mode. */
REQUIRES(the_loop_lock) static inline bool mode_is_empty(CFRunLoopRef loop, const struct mode *mode)
{
    return !mode_has_items(loop, mode) && !main_queue_serves(loop, mode);
}

/* Returns true if the run waits for nothing of the loop itself. */
REQUIRES(the_loop_lock) static inline bool run_is_empty(CFRunLoopRef loop, const struct run *run)
{
    return mode_is_empty(loop, run->mode) && !run->awaited;
}

/* Returns true if whoever waits in the loop's place has nothing in the mode. Loop's thread; drops the lock if there is somebody. */
REQUIRES(the_loop_lock) static inline bool waiter_is_empty(CFRunLoopRef loop, CFRunLoopMode mode)
{
    const struct waiter *waiter = loop_waiter(loop);

    return !waiter || waiter->is_empty(loop, mode);
}

#endif
