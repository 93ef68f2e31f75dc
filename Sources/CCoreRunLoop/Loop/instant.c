/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion between the two clocks. The distance between them is kept, so that equal dates become equal instants; it changes only by a
 * step of the wall clock, for both clocks are slewed alike. Every reading is too small by what passes between the two halves of it, which
 * makes timers late, not early; the largest of several is the best.
 */
#include "Loop/instant.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "Kernel/kernel.h"

static const double second_ns = 1e9;
static const int64_t jitter_ns = 100000; /* what reading two clocks may take on a busy machine; steps are larger */
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

static int64_t distance_of(struct instant_clocks clocks)
{
    return clocks.wall_ns - clocks.now_ns;
}

static bool is_near(int64_t one_ns, int64_t other_ns)
{
    return one_ns - other_ns <= jitter_ns && other_ns - one_ns <= jitter_ns;
}

static int64_t best_distance_ns(void)
{
    enum { readings = 5 };
    int64_t best = distance_of(instant_read_clocks());

    for (int i = 1; i < readings; i++) {
        int64_t distance = distance_of(instant_read_clocks());

        best = distance > best ? distance : best;
    }
    return best;
}

static int64_t clock_distance_ns(struct instant_clocks clocks)
{
    int64_t kept = atomic_load_explicit(&kept_distance_ns, memory_order_relaxed);
    int64_t best;

    if (kept != INT64_MIN && is_near(distance_of(clocks), kept)) {
        return kept;
    }
    /* The first time, a step of the wall clock, or this thread was stopped between the two halves of its reading. */
    best = best_distance_ns();
    if (kept != INT64_MIN && is_near(best, kept)) {
        return kept;
    }
    atomic_store_explicit(&kept_distance_ns, best, memory_order_relaxed);
    return best;
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
