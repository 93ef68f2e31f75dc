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

/* Steps 2 to 4. True if the pass goes on to sleep, false if it only looks. */
bool pass_before_wait(CFRunLoopRef loop, struct activation *run);

/* Step 5: the main queue has work and goes first. */
bool pass_main_queue_first(CFRunLoopRef loop, struct activation *run);

/* Step 9 and the checks at the end of a pass; 0 while the run goes on. */
CFRunLoopRunResult pass_after_wait(CFRunLoopRef loop, struct activation *run, enum wake_cause cause);

/* Tells the observers, with the flag for BeforeWaiting, which wait_begin takes away. */
void pass_notify_before_waiting(CFRunLoopRef loop, struct activation *run);

#endif
