/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall dates and monotonic instants. A date is seconds since 2001 on the wall clock; an instant is nanoseconds of CLOCK_MONOTONIC. Timers
 * fire by instants, fixed when the date is given (rule 110).
 */
#ifndef CRL_LOOP_INSTANT_H
#define CRL_LOOP_INSTANT_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFDate.h"

/* What the longest distance is clamped to (rules 43, 113): 504,911,232 seconds. */
#define INSTANT_LONGEST_SECONDS 504911232.0
/* The latest date (113). */
#define INSTANT_LATEST_DATE 4039289856.0

/* The instant of `date`; never earlier than now. NaN: kernel_never. Equal dates give equal instants (134). */
int64_t instant_of_date(CFAbsoluteTime date);
CFAbsoluteTime date_of_instant(int64_t instant_ns);
/* The same for what a date of 64 bits does not hold: nanoseconds since 1970, no later than the latest date, and not before 1970. */
int64_t instant_of_wall(int64_t since_1970_ns);
/* False for an instant that never comes. */
bool wall_of_instant(int64_t instant_ns, int64_t *ret_since_1970_ns);

/* A positive interval in nanoseconds, at least 1 and at most the longest. */
int64_t instant_interval_ns(CFTimeInterval seconds);

/* now + seconds, clamped; seconds beyond the longest distance and infinity: kernel_never. */
int64_t instant_after(int64_t now_ns, CFTimeInterval seconds);

static inline int64_t instant_add(int64_t instant_ns, int64_t distance_ns)
{
    return instant_ns > INT64_MAX - distance_ns ? INT64_MAX : instant_ns + distance_ns;
}

#endif
