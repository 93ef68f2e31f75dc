/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callouts of sources: a pass performs signalled sources in step 4, and a source that the kernel has reported in step 9. Only the
 * loop's thread calls these. The loop's lock is held on entry and on return, and dropped during the callouts.
 */
#ifndef CRL_LOOP_SOURCE_PERFORM_H
#define CRL_LOOP_SOURCE_PERFORM_H

#include "Loop/link_names.h"

#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/loop.h"
#include "Support/list.h"

/* Does the rest of sources_perform, for a mode that may have something to perform. */
REQUIRES(the_loop_lock) bool sources_perform_some(CFRunLoopRef loop, struct run *run);

/*
 * Performs the signalled version-0 sources of the run's mode: one if the run returns after a source, otherwise all. Returns true if it
 * performed any (rule 85).
 */
REQUIRES(the_loop_lock) static inline bool sources_perform(CFRunLoopRef loop, struct run *run)
{
    return (waker_has_signals(loop->waker) || !list_is_empty(&run->mode->pending)) && sources_perform_some(loop, run);
}

/* These are the clean-ups for a report whose source was called and did not return. */
void ready_source_end_lent(const void *source);
void ready_source_end_own(const void *source);

/*
 * Keeps the source of a report alive until it is performed. The report borrows the reference of the binding that joins the source to the
 * loop, unless another report borrows one already.
 */
REQUIRES(the_loop_lock) static inline void ready_source_hold(CFRunLoopRef loop, struct ready_source *report)
{
    report->has_lent_reference = !loop->lent_reference;
    if (report->has_lent_reference) {
        loop->lent_reference = report->source;
        report->cleanup = cleanup_push(loop, ready_source_end_lent, report->source);
    } else {
        object_retain(report->source);
        report->cleanup = cleanup_push(loop, ready_source_end_own, report->source);
    }
}

/*
 * Performs the source of the run's report and drops the report. Returns false if the source has left the mode, its counter was 0, or its
 * callback has declined the report.
 */
REQUIRES(the_loop_lock) bool ready_source_perform(CFRunLoopRef loop, struct run *run);

#endif
