/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting awake: a loop whose program has asked for it looks on for a while before it sleeps (CRLRunLoopSetBusyWait), or does so while its
 * waits are short (CRLRunLoopSetAdaptiveBusyWait).
 *
 * It stays ARMED meanwhile, so to others it is a loop that has not come to its sleep yet: a wake-up leaves its token and calls nobody, and
 * what they change under the loop's lock is looked at again, each time round.
 */
#ifndef CRL_LOOP_BUSY_WAIT_H
#define CRL_LOOP_BUSY_WAIT_H

#include "Support/link_names.h"

#include "Kernel/kernel.h"
#include "Loop/loop.h"

enum busy_wait {
    busy_wait_never,
    busy_wait_now = 1 << 0, /* the next wait stays awake */
    busy_wait_adapts = 1 << 1, /* whether it does is found out by the waits before it */
};

static inline bool busy_wait_is_wanted(CFRunLoopRef loop)
{
    return atomic_load_explicit(&loop->busy_wait, memory_order_relaxed) & busy_wait_now;
}

/* The same for a wait of which that has to be found out. */
int64_t busy_wait_begin_measured(CFRunLoopRef loop);

/* A wait begins: until when it stays awake. 0: it does not; negative: nor this one, whose length counts. For the functions below. */
static inline int64_t busy_wait_begin(CFRunLoopRef loop)
{
    return atomic_load_explicit(&loop->busy_wait, memory_order_relaxed) == busy_wait_never ? 0 : busy_wait_begin_measured(loop);
}

bool busy_wait_looks_on(CFRunLoopRef loop, int64_t until_ns);

/* The wait stays awake for another look. */
static inline bool busy_wait_goes_on(CFRunLoopRef loop, int64_t until_ns)
{
    return until_ns > 0 && busy_wait_looks_on(loop, until_ns);
}

/* Gives the processor to whoever wants it, and the lock. L, which is dropped meanwhile. */
void busy_wait_pause(CFRunLoopRef loop);

void busy_wait_end_measured(CFRunLoopRef loop, int64_t until_ns, enum wake_cause cause);

/* The wait is over, for this cause. */
static inline void busy_wait_end(CFRunLoopRef loop, int64_t until_ns, enum wake_cause cause)
{
    if (until_ns != 0) {
        busy_wait_end_measured(loop, until_ns, cause);
    }
}

#endif
