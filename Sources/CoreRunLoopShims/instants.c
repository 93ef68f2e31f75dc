/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as loops have them: nanoseconds of their monotonic clock. The C interface knows dates of 64 bits only, which are as much as 60 ns
 * from the instants that are meant, and move with the wall clock.
 */
#include "CoreRunLoopShims.h"

#include "Kernel/kernel.h"
#include "Loop/instant.h"
#include "Loop/pass.h"
#include "Loop/timer.h"

int64_t shim_monotonic_ns(void)
{
    return kernel.monotonic_ns();
}

double shim_date_of_instant(int64_t instant_ns)
{
    return date_of_instant(instant_ns);
}

int64_t shim_timer_instant(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home = timer_lock_home(timer);
    int64_t instant_ns = timer->fire_ns;

    timer_unlock_home(timer, home);
    return instant_ns;
}

void shim_timer_set_instant(CFRunLoopTimerRef timer, int64_t instant_ns)
{
    timer_set_date(timer, date_of_instant(instant_ns), instant_ns);
}

CFRunLoopRunResult shim_run_until(CFRunLoopRef loop, CFRunLoopMode mode, int64_t deadline_ns, bool returns_after_source)
{
    CFRunLoopRunResult result = run_in_mode_until(loop, mode, deadline_ns, returns_after_source, NULL);

    if (result == kCFRunLoopRunFinished && mode_name_is_common(mode)) {
        return CFRunLoopRunInMode(mode, 0, false); /* the same, and says why */
    }
    return result;
}
