/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion between the two clocks. The distance between them is kept, so that equal dates become equal instants. A smaller reading
 * replaces it at once: then no timer fires early, and of two equal dates the one given later is never the earlier instant. A larger one
 * replaces it only where it cannot be the jitter of reading two clocks.
 */
#include "Loop/instant.h"

#include <math.h>
#include <stdatomic.h>

#include "Kernel/kernel.h"

static const double second_ns = 1e9;
static const int64_t jitter_ns = 1000;
static const int64_t seconds_1970_to_2001 = 978307200;

/* Wall minus monotonic; a value that any thread may replace by a better one, so relaxed. */
static _Atomic int64_t kept_distance_ns = INT64_MIN;

struct instant_clocks instant_read_clocks(void)
{
    struct instant_clocks clocks;

    /* In this order what passes between the two readings makes timers late, not early. */
    clocks.wall_ns = kernel.wall_ns();
    clocks.now_ns = kernel.monotonic_ns();
    return clocks;
}

static int64_t clock_distance_ns(struct instant_clocks clocks)
{
    int64_t kept = atomic_load_explicit(&kept_distance_ns, memory_order_relaxed);
    int64_t distance = clocks.wall_ns - clocks.now_ns;

    if (kept != INT64_MIN && distance >= kept && distance - kept <= jitter_ns) {
        return kept;
    }
    atomic_store_explicit(&kept_distance_ns, distance, memory_order_relaxed);
    return distance;
}

int64_t instant_of_date(CFAbsoluteTime date, struct instant_clocks clocks)
{
    const int64_t now_ns = clocks.now_ns;
    const int64_t longest_ns = (int64_t)INSTANT_LONGEST_SECONDS * 1000000000;
    int64_t instant_ns;

    if (isnan(date)) {
        return kernel_never;
    }
    if (date <= -(double)seconds_1970_to_2001) {
        return now_ns; /* before 1970: long past */
    }
    if (date > INSTANT_LATEST_DATE) {
        date = INSTANT_LATEST_DATE;
    }
    instant_ns = (int64_t)(date * second_ns) + seconds_1970_to_2001 * 1000000000 - clock_distance_ns(clocks);
    if (instant_ns < now_ns) {
        return now_ns; /* 112 */
    }
    return instant_ns - now_ns > longest_ns ? now_ns + longest_ns : instant_ns;
}

CFAbsoluteTime date_of_instant(int64_t instant_ns, struct instant_clocks clocks)
{
    return (double)(instant_ns + clock_distance_ns(clocks)) / second_ns - (double)seconds_1970_to_2001;
}

int64_t instant_interval_ns(CFTimeInterval seconds)
{
    if (seconds >= INSTANT_LONGEST_SECONDS) {
        seconds = INSTANT_LONGEST_SECONDS;
    }
    return seconds * second_ns < 1.0 ? 1 : (int64_t)(seconds * second_ns);
}

int64_t instant_after(int64_t now_ns, CFTimeInterval seconds)
{
    return seconds > INSTANT_LONGEST_SECONDS ? kernel_never : now_ns + (int64_t)ceil(seconds * second_ns);
}
