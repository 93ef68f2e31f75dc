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
#include "Loop/timer_firing.h"
#include "Runtime/wall_clock.h"

static const int64_t from_1970_to_2001_ns = INT64_C(978307200) * 1000000000;

int64_t shim_monotonic_ns(void)
{
    return kernel.monotonic_ns();
}

int64_t shim_wall_ns(void)
{
    return runtime_wall_clock() - from_1970_to_2001_ns;
}

bool shim_wall_of_instant(int64_t instant_ns, int64_t *ret_since_2001_ns)
{
    int64_t since_1970_ns;

    if (!wall_of_instant(instant_ns, &since_1970_ns)) {
        return false;
    }
    *ret_since_2001_ns = since_1970_ns - from_1970_to_2001_ns;
    return true;
}

/* The nearest nanosecond. */
static int64_t nanoseconds(double seconds)
{
    return (int64_t)(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5));
}

int64_t shim_instant_of_date(double seconds, double rest)
{
    int64_t whole = 0;

    if (!(seconds > -978307200.0 && seconds < INSTANT_LATEST_DATE)) {
        return instant_of_date(seconds);
    }
    whole = (int64_t)seconds;
    return instant_of_wall(whole * 1000000000 + nanoseconds(seconds - (double)whole + rest) + from_1970_to_2001_ns);
}

int64_t shim_timer_instant(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home = timer_lock_home(timer);
    int64_t instant_ns = timer->fire_ns;

    timer_unlock_home(timer, home);
    return instant_ns;
}

static struct shim_timer_date date_of(const struct __CFRunLoopTimer *timer)
{
    if (!timer || !timer_has(timer, timer_is_valid)) {
        return (struct shim_timer_date){.exists = false};
    }
    return (struct shim_timer_date){.exists = true, .seconds = timer->date, .instant_ns = timer->fire_ns};
}

struct shim_timer_date shim_timer_date(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home = timer_lock_home(timer);
    struct shim_timer_date date = date_of(timer);

    timer_unlock_home(timer, home);
    return date;
}

struct shim_timer_date shim_next_timer_date(CFRunLoopRef loop, CFRunLoopMode name)
{
    struct shim_timer_date date;
    struct mode *mode;

    loop_lock(loop);
    mode = mode_find(loop, name);
    date = date_of(mode ? timers_next(loop, mode) : NULL);
    loop_unlock(loop);
    return date;
}

void shim_timer_set_instant(CFRunLoopTimerRef timer, int64_t instant_ns)
{
    timer_set_date(timer, date_of_instant(instant_ns), instant_ns);
}

void shim_timer_set_date(CFRunLoopTimerRef timer, double seconds, int64_t instant_ns)
{
    timer_set_date(timer, seconds, instant_ns);
}

CFRunLoopRunResult shim_run_current_until(CFRunLoopMode mode, int64_t deadline_ns, bool returns_after_source)
{
    CFRunLoopRunResult result = run_in_mode_until(CFRunLoopGetCurrent(), mode, deadline_ns, returns_after_source, NULL);

    if (result == kCFRunLoopRunFinished && mode_name_is_common(mode)) {
        return CFRunLoopRunInMode(mode, 0, false); /* the same, and says why */
    }
    return result;
}
