/* SPDX-License-Identifier: Apache-2.0 */
/* Timers, for the pass. The loop's lock is held. */
#ifndef CRL_LOOP_TIMER_FIRING_H
#define CRL_LOOP_TIMER_FIRING_H

#include "Support/link_names.h"

#include "Loop/timer.h"

/* The earliest date is not later than `now_ns`. */
static inline bool timers_are_due(struct mode *mode, int64_t now_ns)
{
    if (mode->advanced_count == 0 && (mode->timers.count == 0 || mode->timers.entries[0].key > now_ns)) {
        return false;
    }
    timers_settle(mode);
    return mode->timers.entries[0].key <= now_ns;
}

/* The latest instant at which to wake for this mode's timers, tolerances used; kernel_never for none. */
int64_t timers_limit(struct mode *mode);

/* A sleeper that would wake later than this mode now allows is told. */
static inline void timers_notice_earlier(CFRunLoopRef loop, struct mode *mode)
{
    if (mode_is_waited_on(loop, mode) && timers_limit(mode) < loop->armed_ns) {
        mailbox_retime(loop->mailbox);
    }
}

/* Fires all of the run's mode that are due at `now_ns`, in order of date (34). Drops the lock during callouts. */
void timers_fire(CFRunLoopRef loop, struct activation *run, int64_t now_ns);

/*
 * Ends the callouts in which the loop's thread has gone, innermost first, as if they had returned: a timer that the callout has moved to
 * another loop goes on there. Without `releases` no context is told, and what it would have released is left.
 */
void timers_end_callouts(CFRunLoopRef loop, bool releases);

/* Whose date is rule 131's; NULL for none. L. */
CFRunLoopTimerRef timers_next(CFRunLoopRef loop, struct mode *mode);

#endif
