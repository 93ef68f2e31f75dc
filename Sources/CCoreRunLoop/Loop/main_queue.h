/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main dispatch queue (rules 178-182): where libdispatch is in the process, the main loop drains its queue in common modes. Bound by
 * weak symbols, so that the library depends on nothing.
 */
#ifndef CRL_LOOP_MAIN_QUEUE_H
#define CRL_LOOP_MAIN_QUEUE_H

#include "Support/link_names.h"

#include "Loop/loop.h"

/* libdispatch is in the process. */
bool main_queue_is_available(void);

/* A run of `mode` by `loop` on this thread drains the queue: the main loop, a common mode, and not from inside one of the queue's own
 * blocks (179). */
bool main_queue_serves(CFRunLoopRef loop, const struct mode *mode);

/* The descriptor that becomes readable when the queue has work; -1 without libdispatch. */
int main_queue_descriptor(void);

/* There is work. */
bool main_queue_is_ready(void);

/* In the child of a fork, which libdispatch does not survive. */
void main_queue_abandon(void);
/* Written there, where there is one thread, and by tests before they start any. */
extern bool main_queue_is_abandoned;

/* Runs all pending blocks. No lock is held. */
void main_queue_drain(CFRunLoopRef loop);

#endif
