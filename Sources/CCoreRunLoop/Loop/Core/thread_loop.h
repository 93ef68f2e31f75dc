/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which loop belongs to which thread. A thread finds its loop by a thread-local pointer; a list has all loops. Run/thread_registry.c makes
 * loops, and takes them apart when their threads end.
 */
#ifndef CRL_LOOP_CORE_THREAD_LOOP_H
#define CRL_LOOP_CORE_THREAD_LOOP_H

#include "Loop/link_names.h"

#include <limits.h>
#include <pthread.h>

#include "Loop/Core/loop.h"

/* This thread's loop; NULL before its first and after its last. */
extern __thread CFRunLoopRef thread_loop __attribute__((tls_model("initial-exec")));
/* The thread has ended its loop and gets no other. */
extern __thread bool thread_loop_has_ended __attribute__((tls_model("initial-exec")));

/*
 * The round of thread-specific destructors in which a loop ends. It is a late one, so that destructors of other keys can still use the
 * loop (rule 171). It is not the last, in which runtimes such as the sanitizers take down what our callbacks need.
 */
enum { thread_loop_rounds_before_end = PTHREAD_DESTRUCTOR_ITERATIONS - 1 };

/* All loops of the process. */
struct thread_loops {
    struct lock lock;
    struct link all GUARDED_BY(&lock); /* registry_link of the loops */
    uint32_t generation GUARDED_BY(&lock); /* counts the forks that have led to this process */
    _Atomic(CFRunLoopRef) main; /* the main thread's, once made; written with the lock held */
    pthread_key_t key; /* its destructor ends a thread's loop; made before the first loop */
};

extern struct thread_loops thread_loops;

/* Returns this thread's loop if it has one already, or NULL. */
static inline CFRunLoopRef thread_loop_if_any(void)
{
    return thread_loop;
}

/* Makes the loop this thread's own, and has it end with the thread. */
CFRunLoopRef thread_loop_adopt(CFRunLoopRef loop);

/*
 * Adopts the main loop if this is the main thread, which has not asked for its loop yet: another thread has made it by CFRunLoopGetMain.
 * Returns true if the loop is this thread's then.
 */
bool thread_loop_becomes_current(CFRunLoopRef loop);

/* Returns true if the loop is this thread's, false for NULL. */
static inline bool thread_loop_is_current(CFRunLoopRef loop)
{
    return loop && (thread_loop == loop || (!thread_loop && thread_loop_becomes_current(loop)));
}

/* Call it in the child of a fork: the thread that forked is the main thread now, whatever it was in the parent. */
void thread_loop_forget_not_main(void);

/* Takes the loop off the list of all loops. For its finalizer. */
void thread_loop_unregister(CFRunLoopRef loop);

#endif
