/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which loop belongs to which thread, and what happens to loops when threads end and processes fork.
 */
#ifndef CRL_LOOP_THREAD_LOOP_H
#define CRL_LOOP_THREAD_LOOP_H

#include "Support/link_names.h"

#include "Kernel/fork_mark.h"
#include "Loop/loop.h"

/* Registers the handlers for forks and for ends of threads; calls nobody. For who must register handlers of forks after these. */
void thread_loop_prepare(void);

/*
 * Whoever looks a loop up for the program, or begins a run, asks this first, without locks: in a child that was made without handlers, it
 * does what those do.
 */
extern struct fork_mark thread_loop_fork_mark;
__attribute__((cold)) void thread_loop_disown(void);

static inline void thread_loop_notice_fork(void)
{
    if (fork_mark_is_wiped(&thread_loop_fork_mark)) {
        thread_loop_disown();
    }
}

CFRunLoopRef thread_loop_main(void);
/* For a thread that has no loop. */
__attribute__((cold)) CFRunLoopRef thread_loop_make(void);

/* Read by those below. */
extern __thread CFRunLoopRef thread_loop __attribute__((tls_model("initial-exec")));

/* This thread's loop if it has one already, or NULL. */
static inline CFRunLoopRef thread_loop_if_any(void)
{
    return thread_loop;
}

/* This thread's loop, made at the first call; never NULL. */
static inline CFRunLoopRef thread_loop_current(void)
{
    return thread_loop ? thread_loop : thread_loop_make();
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
