/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiet waits: runs that consist of the wait alone, for a caller that waits for one event, such as a reply.
 *
 * Such a run is possible while the mode has no observer, no block, no signalled source, no due timer and nothing ready: nobody could see
 * the rest of a pass. To other threads it is a run like any other. It can be woken and stopped, and sees timers and descriptors that are
 * added meanwhile. If anything but the event ends it, that is left for a whole run, which the caller begins. Loop's thread only.
 */
#ifndef CRL_LOOP_RUN_QUIET_WAIT_H
#define CRL_LOOP_RUN_QUIET_WAIT_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/* The event that a quiet wait is for, and its limit. With both `source` and `awaited`, either of them ends it. */
struct quiet_wait {
    CFRunLoopSourceRef source; /* a suspended source of the mode: waits until its descriptor is ready. NULL: none */
    const _Atomic uint32_t *awaited; /* waits until this is not 0; whoever changes it wakes the loop afterwards */
    int64_t deadline_ns; /* kernel_never: no limit */
    int64_t now_ns; /* a time that was read a moment ago, or 0 */
};

/*
 * Waits in the calling thread's loop. Returns true if the event has happened. A source is then suspended again, and was not performed.
 * Returns false if something else ended the wait, or if the mode needs a whole run and there was no wait: the caller begins a run in both
 * cases.
 */
EXCLUDES(the_loop_lock) bool quiet_wait_run(CFRunLoopRef loop, CFStringRef mode_name, const struct quiet_wait *request);

#endif
