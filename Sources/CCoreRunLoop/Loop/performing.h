/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callouts of sources: of those that are signalled (step 4 of a pass), and of those that the kernel has reported (step 9). On the
 * loop's own thread, which enters and leaves with the lock; it is dropped during the callouts.
 */
#ifndef CRL_LOOP_PERFORMING_H
#define CRL_LOOP_PERFORMING_H

#include "Support/link_names.h"

#include "Loop/loop.h"
#include "Support/list.h"

/* sources_perform, where there may be something to perform. */
bool sources_perform_some(CFRunLoopRef loop, struct activation *run);

/* The signalled version-0 sources of the run's mode: one if the run returns after a source, else all. True if any was performed (85). */
static inline bool sources_perform(CFRunLoopRef loop, struct activation *run)
{
    return (mailbox_has_signals(loop->mailbox) || !list_is_empty(&run->mode->pending)) && sources_perform_some(loop, run);
}

/* Keeps the source of a report alive: by the reference of the slot that joins it to the loop, if nobody else counts on that. */
static inline void report_hold(CFRunLoopRef loop, struct watch_report *report)
{
    report->is_borrowed = !loop->borrowed;
    if (report->is_borrowed) {
        loop->borrowed = report->source;
    } else {
        object_retain(report->source);
    }
}

/* The source of the run's report, which is dropped. False if it has left the mode meanwhile, or had nothing to read after all. */
bool report_perform(CFRunLoopRef loop, struct activation *run);

#endif
