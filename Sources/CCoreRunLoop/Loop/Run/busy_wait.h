/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting awake: a loop whose program has asked for it (CRLRunLoopSetBusyWait) looks again and again for a while before it sleeps.
 *
 * The wake word stays ARMED meanwhile, so to others the loop has not come to its sleep yet. A wake-up leaves its token and makes no system
 * call, and the loop looks at what others change under its lock each time round.
 */
#ifndef CRL_LOOP_RUN_BUSY_WAIT_H
#define CRL_LOOP_RUN_BUSY_WAIT_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/* Returns true if waits of the loop stay awake before they sleep. */
static inline bool busy_wait_is_wanted(CFRunLoopRef loop)
{
    return atomic_load_explicit(&loop->busy_wait_s, memory_order_relaxed) > 0;
}

/* Returns the instant at which a busy wait that begins now ends. */
int64_t busy_wait_limit(CFRunLoopRef loop);

/* Begins a wait. Returns the instant until which it stays awake, or 0 if it sleeps at once. */
static inline int64_t busy_wait_begin(CFRunLoopRef loop)
{
    return busy_wait_is_wanted(loop) ? busy_wait_limit(loop) : 0;
}

/* Returns true if the wait stays awake for another look. */
bool busy_wait_goes_on(int64_t until_ns);

/* Gives the processor to other threads that want it. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) void busy_wait_pause(CFRunLoopRef loop);

/* Ends the busy wait. `until_ns` is what busy_wait_begin returned. */
static inline void busy_wait_end(CFRunLoopRef loop, int64_t until_ns)
{
    if (until_ns != 0) {
        atomic_store_explicit(&loop->waits_awake, false, memory_order_release);
    }
}

#endif
