/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as loops have them: nanoseconds of the clocks that their timers and the limits of their runs go by. The C interface has only dates
 * of 64 bits. These can be 60 ns away from the intended instants, and move with the wall clock.
 */
#include "CoreRunLoopShims.h"

#include <stdio.h>
#include <time.h>

#include "Overlay/overlay.h"

static const int64_t from_1970_to_2001_ns = INT64_C(978307200) * 1000000000;

int64_t shim_monotonic_ns(void)
{
    return overlay_monotonic_ns();
}

int64_t shim_elapsed_ns(void)
{
    return overlay_elapsed_ns();
}

bool shim_clock_is_by_hand(void)
{
    return overlay_clock_is_by_hand();
}

int64_t shim_wall_ns(void)
{
    return overlay_wall_ns() - from_1970_to_2001_ns;
}

bool shim_wall_of_instant(int64_t instant_ns, int64_t *ret_since_2001_ns)
{
    int64_t since_1970_ns;

    if (!overlay_wall_of_instant(instant_ns, &since_1970_ns)) {
        return false;
    }
    *ret_since_2001_ns = since_1970_ns - from_1970_to_2001_ns;
    return true;
}

/* Rounds to the nearest nanosecond. */
static int64_t nanoseconds(double seconds)
{
    return (int64_t)(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5));
}

int64_t shim_instant_of_date(double seconds, double rest)
{
    int64_t whole = 0;

    if (!(seconds > -978307200.0 && seconds < OVERLAY_LATEST_DATE)) {
        return overlay_instant_of_date(seconds);
    }
    whole = (int64_t)seconds;
    return overlay_instant_of_wall(whole * 1000000000 + nanoseconds(seconds - (double)whole + rest) + from_1970_to_2001_ns);
}

int64_t shim_timer_instant(CFRunLoopTimerRef timer)
{
    return overlay_timer_instant(timer);
}

static struct shim_timer_date shim_date(struct overlay_timer_date date)
{
    return (struct shim_timer_date){.exists = date.exists, .seconds = date.date, .instant_ns = date.instant_ns};
}

struct shim_timer_date shim_timer_date(CFRunLoopTimerRef timer)
{
    return shim_date(overlay_timer_date(timer));
}

struct shim_timer_date shim_next_timer_date(CFRunLoopRef loop, CFRunLoopMode mode)
{
    return shim_date(overlay_next_timer_date(loop, mode));
}

void shim_timer_set_instant(CFRunLoopTimerRef timer, int64_t instant_ns)
{
    overlay_timer_set_date(timer, overlay_date_of_instant(instant_ns), instant_ns);
}

void shim_timer_set_date(CFRunLoopTimerRef timer, double seconds, int64_t instant_ns)
{
    overlay_timer_set_date(timer, seconds, instant_ns);
}

void shim_timer_follow_wall(CFRunLoopTimerRef timer)
{
    overlay_timer_follow_wall(timer);
}

CFRunLoopRunResult shim_run_current_until(CFRunLoopMode mode, int64_t deadline_ns, bool returns_after_source)
{
    CFRunLoopRunResult result = overlay_run_current_until(mode, deadline_ns, returns_after_source);

    if (result == kCFRunLoopRunFinished && CFEqual(mode, kCFRunLoopCommonModes)) {
        return CFRunLoopRunInMode(mode, 0, false); /* finishes as well, and logs the reason */
    }
    return result;
}

intptr_t shim_date_text(int64_t since_2001_us, char *ret_text, intptr_t size)
{
    enum { us_of_second = 1000000, s_from_1970_to_2001 = 978307200 };
    int64_t rest_us = (since_2001_us % us_of_second + us_of_second) % us_of_second;
    time_t since_1970_s = (time_t)((since_2001_us - rest_us) / us_of_second + s_from_1970_to_2001);
    struct tm date;

    if (!gmtime_r(&since_1970_s, &date)) {
        return 0;
    }
    return snprintf(ret_text, (size_t)size, "%04d-%02d-%02d %02d:%02d:%02d.%06d +0000", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday,
                    date.tm_hour, date.tm_min, date.tm_sec, (int)rest_us);
}
