/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall dates and the instants of timers. A date is seconds since 2001 on the wall clock. An instant is nanoseconds of CLOCK_BOOTTIME, which
 * goes on while the system is suspended. Timers fire by instants, which are fixed when the date is given: a later step of the wall clock
 * does not move them (rule 110). Deadlines of waits are on CLOCK_MONOTONIC, and no instants in this sense.
 *
 * Any thread may call these functions. They take no lock.
 */
#ifndef CRL_LOOP_CORE_INSTANT_H
#define CRL_LOOP_CORE_INSTANT_H

#include "Loop/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFDate.h"
#include "Support/invariant.h"

/* The longest distance, 16 years; longer ones are cut to it (rules 43, 113). */
#define INSTANT_LONGEST_SECONDS 504911232.0
/* The latest date; later ones are cut to it (rule 113). */
#define INSTANT_LATEST_DATE 4039289856.0

/*
 * Returns the instant of `date`, but never one earlier than now. Not-a-number gives kernel_never. Equal dates give equal instants, so that
 * their timers fire in the order in which they were added (rule 134).
 */
int64_t instant_of_date(CFAbsoluteTime date);
/* Returns the date that the wall clock will show at the instant, if nobody sets it. The latest date for an instant that never comes. */
CFAbsoluteTime date_of_instant(int64_t instant_ns);
/*
 * As instant_of_date, with the precision that a CFAbsoluteTime lacks: takes nanoseconds since 1970. The argument is neither before 1970 nor
 * later than the latest date.
 */
int64_t instant_of_wall(int64_t since_1970_ns);
/* Returns false for an instant that never comes. */
bool wall_of_instant(int64_t instant_ns, int64_t *ret_since_1970_ns);

/* Returns how far the wall clock is ahead of instants: the same value as long as nobody sets it. */
int64_t instant_distance_ns(void);

/* Returns a positive interval in nanoseconds, at least 1 and at most the longest distance. */
int64_t instant_interval_ns(CFTimeInterval seconds);

/* Returns now + seconds, on any clock, rounded up so that no limit ends early. Beyond the longest distance: kernel_never. */
int64_t instant_after(int64_t now_ns, CFTimeInterval seconds);

/* Returns the sum, or the largest instant if it would overflow. The distance is not negative. */
static inline int64_t instant_add(int64_t instant_ns, int64_t distance_ns)
{
    invariant(distance_ns >= 0); /* the subtraction below must not overflow */
    return instant_ns > INT64_MAX - distance_ns ? INT64_MAX : instant_ns + distance_ns;
}

#endif
