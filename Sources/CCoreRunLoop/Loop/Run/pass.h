/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs and passes. pass.c is the only file that knows the order of a pass. All functions run on the loop's own thread. Those that need the
 * loop's lock enter and leave with it, and drop it around callouts.
 */
#ifndef CRL_LOOP_RUN_PASS_H
#define CRL_LOOP_RUN_PASS_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/* Runs the loop in a mode, as CFRunLoopRunInMode does. Takes the lock. */
EXCLUDES(the_loop_lock)
CFRunLoopRunResult run_in_mode(CFRunLoopRef loop, CFStringRef mode_name, CFTimeInterval seconds, bool returns_after_source);

/*
 * As run_in_mode, until an instant. 0 means one pass that does not sleep, kernel_never means no limit.
 *
 * With `awaited` and `returns_after_source`, the run also ends once that word is not 0. Whoever changes the word wakes the loop afterwards.
 * The word counts as a source of the mode: the mode is made if it does not exist, and is not empty.
 */
EXCLUDES(the_loop_lock)
CFRunLoopRunResult run_in_mode_until(CFRunLoopRef loop, CFStringRef mode_name, int64_t deadline_ns, bool returns_after_source,
                                     const _Atomic uint32_t *awaited);

/* ---- the parts, for hosting ---- */

/* Does steps 2 to 4. Returns true if the pass goes on to sleep, false if it only looks. */
REQUIRES(the_loop_lock) bool pass_begin(CFRunLoopRef loop, struct run *run);

/*
 * Does step 5. Returns true if the main dispatch queue has work and goes first: the pass continues at step 9. Changes whether the queue's
 * descriptor is watched.
 */
REQUIRES(the_loop_lock) bool pass_main_queue_first(CFRunLoopRef loop, struct run *run);

/* Does step 9 and the checks at the end of a pass. Returns the result of the run, or 0 if the run goes on. */
REQUIRES(the_loop_lock) CFRunLoopRunResult pass_after_wait(CFRunLoopRef loop, struct run *run, enum wake_cause cause);

/* Does step 6. Sets is_before_waiting, which wait_begin clears. */
REQUIRES(the_loop_lock) void pass_notify_before_waiting(CFRunLoopRef loop, struct run *run);

#endif
