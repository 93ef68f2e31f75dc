/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which loop belongs to which thread, and what happens to loops when threads end and processes fork.
 */
#ifndef CRL_LOOP_THREAD_LOOP_H
#define CRL_LOOP_THREAD_LOOP_H

#include "Support/link_names.h"

#include "Loop/loop.h"

/* Registers the handlers for forks and for ends of threads; calls nobody. For who must register handlers of forks after these. */
void thread_loop_prepare(void);

/* This thread's loop, made at the first call; never NULL. */
CFRunLoopRef thread_loop_current(void);
CFRunLoopRef thread_loop_main(void);

/* Read by those below. */
extern __thread CFRunLoopRef thread_loop __attribute__((tls_model("initial-exec")));

/* This thread's loop if it has one already, or NULL. */
static inline CFRunLoopRef thread_loop_if_any(void)
{
    return thread_loop;
}

/* The main thread may not have asked for its loop yet, which others have made by CFRunLoopGetMain: it gets it here. */
bool thread_loop_becomes_current(CFRunLoopRef loop);

/* False of NULL. */
static inline bool thread_loop_is_current(CFRunLoopRef loop)
{
    return loop && (thread_loop == loop || (!thread_loop && thread_loop_becomes_current(loop)));
}

/* For the loop's finalizer. */
void thread_loop_unregister(CFRunLoopRef loop);

#endif
