/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule of a time zone for all years, as POSIX writes it in TZ and a zone's file at its end: `CET-1CEST,M3.5.0,M10.5.0/3`. Pure.
 *
 * Instants are seconds since 1970. The text may be anything; what is no rule is refused.
 */
#ifndef CRL_PLIST_ZONE_FOOTER_H
#define CRL_PLIST_ZONE_FOOTER_H

#include "plist_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { longest_abbreviation = 31 };

enum zone_day_kind { zone_day_of_year, zone_day_without_leap_day, zone_day_of_week };

/* A moment of each year, in the time that is in force before it. */
struct zone_moment {
    enum zone_day_kind kind;
    int month; /* 1 to 12, of a day of the week, as the two that follow */
    int week; /* 1 to 5, which is the last one */
    int day; /* 0 (Sunday) to 6; otherwise from 0, or from 1 without a leap day */
    int32_t time_s;
};

struct zone_phase {
    int32_t offset_s; /* east of Greenwich */
    char abbreviation[longest_abbreviation + 1];
};

struct zone_footer {
    struct zone_phase standard;
    struct zone_phase daylight; /* as all that follows, if there is one */
    bool has_daylight;
    struct zone_moment daylight_begins;
    struct zone_moment daylight_ends;
};

/* A time in which nothing changes, from `start` on and before `end`; INT64_MIN and INT64_MAX stand for always. */
struct zone_period {
    int64_t start;
    int64_t end;
    int32_t offset_s;
    bool is_daylight;
    const char *abbreviation; /* of the footer or the rules */
};

bool zone_footer_parse(const char *text, size_t length, struct zone_footer *ret_footer);
struct zone_period zone_footer_period(const struct zone_footer *footer, int64_t instant);

#endif
