/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting awake: a loop whose program has asked for it looks on for a while before it sleeps (CRLRunLoopSetBusyWait).
 *
 * It stays ARMED meanwhile, so to others it is a loop that has not come to its sleep yet: a wake-up leaves its token and calls nobody, and
 * what they change under the loop's lock is looked at again, each time round.
 */
#ifndef CRL_LOOP_BUSY_WAIT_H
#define CRL_LOOP_BUSY_WAIT_H

#include "Support/link_names.h"

#include "Kernel/kernel.h"
#include "Loop/loop.h"

static inline bool busy_wait_is_wanted(CFRunLoopRef loop)
{
    return atomic_load_explicit(&loop->wants_awake, memory_order_relaxed);
}

/* Of a wait that begins now, where it is wanted. */
int64_t busy_wait_limit(CFRunLoopRef loop);

/* A wait begins: until when it stays awake; 0: it does not. */
static inline int64_t busy_wait_begin(CFRunLoopRef loop)
{
    return busy_wait_is_wanted(loop) ? busy_wait_limit(loop) : 0;
}

static inline bool busy_wait_goes_on(int64_t until_ns)
{
    return until_ns != 0 && kernel.monotonic_ns() < until_ns;
}

/* Gives the processor to whoever wants it, and the lock. L, which is dropped meanwhile. */
void busy_wait_pause(CFRunLoopRef loop);

/* The wait is over. */
static inline void busy_wait_end(CFRunLoopRef loop, int64_t until_ns)
{
    if (until_ns != 0) {
        atomic_store_explicit(&loop->waits_awake, false, memory_order_release);
    }
}

#endif
