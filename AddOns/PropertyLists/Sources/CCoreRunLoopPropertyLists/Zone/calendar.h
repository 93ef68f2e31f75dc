/* SPDX-License-Identifier: Apache-2.0 */
/* Days of the Gregorian calendar, which is taken to have been in use always; there is a year 0. Pure. */
#ifndef CRL_PLIST_CALENDAR_H
#define CRL_PLIST_CALENDAR_H

#include "plist_link_names.h"

#include <stdbool.h>
#include <stdint.h>

enum { seconds_of_day = 86400 };

struct calendar_date {
    int64_t year;
    int month; /* 1 to 12 */
    int day; /* 1 to 31 */
    int day_of_year; /* from 1 */
};

bool calendar_is_leap(int64_t year);
int calendar_days_in(int month, int64_t year);
/* The days of the year before a month; 13: of the whole year. */
int calendar_days_before(int month, int64_t year);
/* The days from 1970 to the first day of a year. */
int64_t calendar_first_day(int64_t year);
/* Of the day so many days after the first of 1970. */
struct calendar_date calendar_date_of(int64_t day);
int64_t floor_quotient(int64_t number, int64_t divisor);

#endif
