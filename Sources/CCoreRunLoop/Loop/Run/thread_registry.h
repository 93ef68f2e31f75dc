/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of loops: each thread's loop is made when the thread first asks for it, and taken apart when the thread ends. Handlers of
 * fork(2) keep the parent's loops whole, and make the child's thread the main thread.
 */
#ifndef CRL_LOOP_RUN_THREAD_REGISTRY_H
#define CRL_LOOP_RUN_THREAD_REGISTRY_H

#include "Loop/link_names.h"

#include "Kernel/fork_mark.h"
#include "Loop/Core/thread_loop.h"

/* Makes the mark of children that run no handlers of fork, and the handler of threads' ends. */
void thread_registry_prepare(void);

/*
 * A child made by _Fork or clone has run no handlers of fork. The first call in it that looks up the current or the main loop finds the
 * mark wiped and does the handlers' work. The child has one thread then, because it must look before it makes others.
 */
extern _Atomic(_Atomic uint32_t *) thread_registry_fork_mark;
__attribute__((cold)) void thread_registry_begin_child(void);

static inline void thread_registry_notice_fork(void)
{
    const _Atomic uint32_t *mark = atomic_load_explicit(&thread_registry_fork_mark, memory_order_acquire);

    if (__builtin_expect(atomic_load_explicit(mark, memory_order_relaxed) == fork_mark_wiped, 0)) {
        thread_registry_begin_child();
    }
}

/* Makes the loop of a thread that has none. */
__attribute__((cold)) CFRunLoopRef thread_registry_make(void);

/* Returns this thread's loop, made at the first call; never NULL. Call it without locks. */
static inline CFRunLoopRef thread_registry_current(void)
{
    thread_registry_notice_fork();
    return thread_loop ? thread_loop : thread_registry_make();
}

/* Returns the main thread's loop, which any thread may make; never NULL. Call it without locks. */
CFRunLoopRef thread_registry_main(void);

/* Takes apart what an ending thread leaves in its loop (rules 170 to 175). On the loop's own thread, without locks. */
void loop_end(CFRunLoopRef loop);

#endif
