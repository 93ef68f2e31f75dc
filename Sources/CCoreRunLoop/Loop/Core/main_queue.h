/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main dispatch queue (rules 178-182). If libdispatch is in the process, the main loop drains its queue in common modes. The library
 * finds libdispatch by weak symbols, so that it does not depend on it. All functions are for the main loop's thread; the last one runs the
 * program's code and is called without locks.
 */
#ifndef CRL_LOOP_CORE_MAIN_QUEUE_H
#define CRL_LOOP_CORE_MAIN_QUEUE_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/* Returns true if libdispatch is in the process and still usable. */
bool main_queue_is_available(void);

/*
 * Returns true if a run of `mode` by `loop` drains the queue: the loop is the main one, the mode is common, and the run is not nested in
 * one of the queue's own blocks (rule 179).
 */
REQUIRES(the_loop_lock) bool main_queue_serves(CFRunLoopRef loop, const struct mode *mode);

/* Returns the descriptor that is readable while the queue has work, or -1 without libdispatch. */
int main_queue_descriptor(void);

/* Returns true if the queue has work. */
bool main_queue_is_ready(void);

/* In the child of a fork, which libdispatch does not survive: the queue is not served any more. */
void main_queue_abandon(void);
/* Written in a child that has one thread, and by tests before they start threads. So it needs no lock. */
extern bool main_queue_is_abandoned;

/* Runs all pending blocks of the queue. */
EXCLUDES(the_loop_lock) void main_queue_drain(CFRunLoopRef loop);

#endif
