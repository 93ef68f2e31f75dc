/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts between the wall clock and the clock of instants by the distance between them. Only a step of the wall clock changes that
 * distance, for both are slewed alike, and both go on while the system is suspended. The clock of instants has no reading of the last tick,
 * which is quick and exact; the monotonic clock has. Its distance from the wall clock changes with a step and with a suspension: as long as
 * it is the same, so is the distance of the instants. The time of now is read only for dates that may be past, or too far away.
 *
 * Some kernels have no clocks of ticks, and answer with those of now; gVisor is one. Two readings are never of one instant there, so the
 * distance is estimated. An estimate is kept as long as later ones are near it, so that equal dates become equal instants. An estimate is
 * too small by what passes between its two readings, which makes timers late, not early. So the largest of several estimates is the best.
 */
#include "Loop/Core/instant.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "Kernel/kernel.h"

static const double second_ns = 1e9;
static const int64_t jitter_ns = 100000; /* reading two clocks may take so long on a busy machine; a step of the wall clock is larger */
static const int64_t oldest_tick_ns = 1000000000; /* a hundred times the longest tick there is, for processors that were held up */
static const int64_t seconds_1970_to_2001 = 978307200;

/*
 * The distance of the clocks, as last found. Any thread may replace it by a better value, and no other memory depends on it: so relaxed.
 * `kept_mark` is the exclusive-or of the distance and of the wall clock's distance from the monotonic clock, with which it was found. So a
 * distance and a mark that two threads have written are known not to belong together.
 */
static _Atomic int64_t kept_distance_ns; /* wall minus instants */
static _Atomic int64_t kept_mark = INT64_MIN;

static int64_t estimated_distance_ns(void)
{
    enum { readings = 5 };
    int64_t best = INT64_MIN;

    for (int i = 0; i < readings; i++) {
        int64_t wall_ns = kernel.wall_ns();
        int64_t distance_ns = wall_ns - kernel.monotonic_ns();

        best = distance_ns > best ? distance_ns : best;
    }
    return best;
}

/*
 * If two readings of the monotonic clock's tick are equal, the wall clock's tick that was read between them is of the same instant. Returns
 * false if a tick came in between each time.
 */
static bool read_exact_distance(int64_t *ret_distance_ns)
{
    enum { attempts = 3 };

    for (int i = 0; i < attempts; i++) {
        int64_t wall_ns;
        int64_t unused_ns;
        int64_t tick_ns = kernel.tick_ns(&wall_ns);

        if (kernel.tick_ns(&unused_ns) == tick_ns) {
            *ret_distance_ns = wall_ns - tick_ns;
            return true;
        }
    }
    return false;
}

static bool is_near(int64_t one_ns, int64_t other_ns)
{
    int64_t difference_ns;

    return !__builtin_sub_overflow(one_ns, other_ns, &difference_ns) && difference_ns <= jitter_ns && difference_ns >= -jitter_ns;
}

/* How far instants are ahead of the monotonic clock. Too large by what passes between two readings, which makes timers late, not early. */
static int64_t estimated_lead_ns(void)
{
    enum { readings = 5 };
    int64_t best = INT64_MAX;

    for (int i = 0; i < readings; i++) {
        int64_t monotonic_ns = kernel.monotonic_ns();
        int64_t lead_ns = kernel.elapsed_ns() - monotonic_ns;

        best = lead_ns < best ? lead_ns : best;
    }
    return is_near(best, 0) ? 0 : best; /* before the first suspension there is none, and no suspension is that short */
}

/*
 * Finds the distance anew: the first time, after a step of the wall clock, after a suspension, or when a tick came between two readings.
 * What was kept says how far instants were ahead of the monotonic clock. That stays if the system has not been suspended since, unless it
 * is known better now.
 */
static __attribute__((noinline, cold)) int64_t new_distance_ns(int64_t kept, int64_t kept_from_monotonic_ns)
{
    int64_t kept_lead_ns = (int64_t)((uint64_t)kept_from_monotonic_ns - (uint64_t)kept); /* of two threads' values it may wrap */
    int64_t lead_ns;
    int64_t wall_from_monotonic_ns;
    int64_t distance_ns;
    bool is_exact;

    do { /* again, if the system was suspended between the readings: they must belong together */
        lead_ns = estimated_lead_ns();
        is_exact = read_exact_distance(&wall_from_monotonic_ns);
        if (!is_exact) {
            wall_from_monotonic_ns = estimated_distance_ns();
        }
    } while (!is_near(estimated_lead_ns(), lead_ns));
    if (is_near(lead_ns, kept_lead_ns) && kept_lead_ns < lead_ns) {
        lead_ns = kept_lead_ns;
    }
    if (!is_exact && is_near(wall_from_monotonic_ns - lead_ns, kept)) {
        return kept;
    }
    distance_ns = wall_from_monotonic_ns - lead_ns;
    atomic_store_explicit(&kept_distance_ns, distance_ns, memory_order_relaxed);
    atomic_store_explicit(&kept_mark, distance_ns ^ wall_from_monotonic_ns, memory_order_relaxed);
    return distance_ns;
}

/* Returns the wall clock's distance from the instants, and what it showed at the last tick. */
static inline __attribute__((always_inline)) int64_t clock_distance_ns(int64_t *ret_wall_ns)
{
    int64_t tick_ns = kernel.tick_ns(ret_wall_ns);
    int64_t kept = atomic_load_explicit(&kept_distance_ns, memory_order_relaxed);
    int64_t kept_from_monotonic_ns = kept ^ atomic_load_explicit(&kept_mark, memory_order_relaxed);

    return *ret_wall_ns - tick_ns == kept_from_monotonic_ns ? kept : new_distance_ns(kept, kept_from_monotonic_ns);
}

int64_t instant_of_wall(int64_t since_1970_ns)
{
    const int64_t longest_ns = (int64_t)INSTANT_LONGEST_SECONDS * 1000000000;
    int64_t tick_ns;
    int64_t instant_ns = since_1970_ns - clock_distance_ns(&tick_ns);
    int64_t now_ns;

    if (since_1970_ns - tick_ns > oldest_tick_ns && since_1970_ns - tick_ns <= longest_ns) {
        return instant_ns; /* still to come, however much time has passed since that tick */
    }
    now_ns = kernel.elapsed_ns();
    if (instant_ns < now_ns) {
        return now_ns; /* a series that begins in the past counts from now (rule 112) */
    }
    return instant_ns - now_ns > longest_ns ? now_ns + longest_ns : instant_ns;
}

static int64_t since_1970_ns(CFAbsoluteTime date)
{
    return (int64_t)(date * second_ns) + seconds_1970_to_2001 * 1000000000;
}

int64_t instant_of_date(CFAbsoluteTime date)
{
    if (isnan(date)) {
        return kernel_never;
    }
    if (date <= -(double)seconds_1970_to_2001) {
        return kernel.elapsed_ns(); /* before 1970: long past */
    }
    return instant_of_wall(since_1970_ns(date > INSTANT_LATEST_DATE ? INSTANT_LATEST_DATE : date));
}

int64_t instant_distance_ns(void)
{
    int64_t tick_ns;

    return clock_distance_ns(&tick_ns);
}

bool wall_of_instant(int64_t instant_ns, int64_t *ret_since_1970_ns)
{
    int64_t tick_ns;

    return !__builtin_add_overflow(instant_ns, clock_distance_ns(&tick_ns), ret_since_1970_ns);
}

CFAbsoluteTime date_of_instant(int64_t instant_ns)
{
    int64_t since_1970_ns;
    int64_t since_2001_ns;

    if (!wall_of_instant(instant_ns, &since_1970_ns)) {
        return INSTANT_LATEST_DATE; /* it never comes */
    }
    since_2001_ns = since_1970_ns - seconds_1970_to_2001 * 1000000000;
    /* Seconds and their rest are converted apart, as in CFAbsoluteTimeGetCurrent, so that both give the same date for the same instant. */
    return (double)(since_2001_ns / 1000000000) + (double)(since_2001_ns % 1000000000) * 1e-9;
}

int64_t instant_interval_ns(CFTimeInterval seconds)
{
    if (seconds >= INSTANT_LONGEST_SECONDS) {
        seconds = INSTANT_LONGEST_SECONDS;
    }
    /* The double nearest to the meant value may lie below it: round to the nearest. */
    return seconds * second_ns < 1.0 ? 1 : (int64_t)(seconds * second_ns + 0.5);
}

/* Rounds up without libm's ceil: nothing else here needs that library, and every program would load it. */
static int64_t rounded_up(double value)
{
    int64_t whole = (int64_t)value;

    return (double)whole < value ? whole + 1 : whole;
}

int64_t instant_after(int64_t now_ns, CFTimeInterval seconds)
{
    return seconds > INSTANT_LONGEST_SECONDS ? kernel_never : now_ns + rounded_up(seconds * second_ns);
}
