/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a mode in which nobody would see anything but the wait: no observer, no block, no signalled source, no due timer, nothing ready.
 * Whoever waits for one thing in such a mode need not go through a pass. To other threads it is a run like any other: it can be woken and
 * stopped, and sees timers and descriptors that are added meanwhile. What ends it, if it is not what it is for, is left for a run that
 * follows.
 */
#ifndef CRL_LOOP_BRIEF_RUN_H
#define CRL_LOOP_BRIEF_RUN_H

#include "Support/link_names.h"

#include "Loop/loop.h"

/* What a brief run is for, and how long it lasts. */
struct brief_run {
    CFRunLoopSourceRef source; /* a lingering one that rests in the mode: its descriptor is to be ready. NULL: nothing of the kind */
    const _Atomic uint32_t *awaited; /* or this is to be other than 0; whoever changes it wakes the loop then */
    int64_t deadline_ns; /* kernel_never: no limit */
    int64_t now_ns; /* a time that has been read lately, or 0 */
};

/*
 * True if what the run was for has happened: the source rests again and has not been performed. False if it did not come to that, or if
 * nothing was waited for because the mode needs a whole run, which is for the caller to begin in either case. The calling thread's loop.
 */
bool run_briefly(CFRunLoopRef loop, CFStringRef mode_name, const struct brief_run *brief);

#endif
