/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a loop waits awake, and the public calls that set it; see busy_wait.h. */
#include "Loop/Run/busy_wait.h"

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"

int64_t busy_wait_limit(CFRunLoopRef loop)
{
    return instant_after(kernel.monotonic_ns(), atomic_load_explicit(&loop->busy_wait_s, memory_order_relaxed));
}

bool busy_wait_goes_on(int64_t until_ns)
{
    return until_ns > 0 && kernel.monotonic_ns() < until_ns;
}

void busy_wait_pause(CFRunLoopRef loop)
{
    invariant_held(&loop->lock);
    atomic_store_explicit(&loop->waits_awake, true, memory_order_release);
    loop_unlock(loop);
    kernel.yield();
    loop_lock(loop);
}

void CRLRunLoopSetBusyWait(CFRunLoopRef loop, CFTimeInterval seconds)
{
    object_check(loop, &run_loop_class, "CRLRunLoopSetBusyWait", "loop");
    if (!(seconds > 0)) {
        seconds = 0; /* NaN, too */
    } else if (seconds > INSTANT_LONGEST_SECONDS) {
        seconds = INSTANT_LONGEST_SECONDS;
    }
    atomic_store_explicit(&loop->busy_wait_s, seconds, memory_order_relaxed);
}

CFTimeInterval CRLRunLoopGetBusyWait(CFRunLoopRef loop)
{
    object_check(loop, &run_loop_class, "CRLRunLoopGetBusyWait", "loop");
    return atomic_load_explicit(&loop->busy_wait_s, memory_order_relaxed);
}
