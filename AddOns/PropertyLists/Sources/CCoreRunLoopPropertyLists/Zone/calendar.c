/* SPDX-License-Identifier: Apache-2.0 */
/* Says which date a day has, and back (calendar.h). */
#include "Zone/calendar.h"

enum { days_to_1970 = 719162, days_of_400_years = 146097 };

int64_t floor_quotient(int64_t number, int64_t divisor)
{
    return number / divisor - (number % divisor < 0);
}

bool calendar_is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int calendar_days_before(int month, int64_t year)
{
    static const int days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};

    return days[month - 1] + (month > 2 && calendar_is_leap(year));
}

int calendar_days_in(int month, int64_t year)
{
    return calendar_days_before(month + 1, year) - calendar_days_before(month, year);
}

int64_t calendar_first_day(int64_t year)
{
    int64_t before = year - 1;

    return 365 * before + floor_quotient(before, 4) - floor_quotient(before, 100) + floor_quotient(before, 400) - days_to_1970;
}

struct calendar_date calendar_date_of(int64_t day)
{
    struct calendar_date date = {.year = 1970 + floor_quotient(day * 400, days_of_400_years), .month = 1};

    /* The quotient is at most a year off, because leap years do not lie evenly. */
    while (day < calendar_first_day(date.year)) {
        date.year--;
    }
    while (day >= calendar_first_day(date.year + 1)) {
        date.year++;
    }
    date.day_of_year = (int)(day - calendar_first_day(date.year)) + 1;
    while (date.month < 12 && date.day_of_year > calendar_days_before(date.month + 1, date.year)) {
        date.month++;
    }
    date.day = date.day_of_year - calendar_days_before(date.month, date.year);
    return date;
}
