/* SPDX-License-Identifier: Apache-2.0 */
/* Dates of the Gregorian calendar in time zones (CFTimeZone.h). Any thread; no state. */
#include <limits.h>
#include <math.h>

#include "CoreFoundation/CFTimeZone.h"
#include "Zone/calendar.h"
#include "Zone/zone.h"

/* A time of a zone's clocks: whole seconds since 2001, and a part of one. */
struct local_time {
    int64_t second;
    double part; /* 0 to less than 1 */
};

static const int64_t day_2001 = 11323; /* of 2001, since 1970 */

static struct local_time local_time_of(CFAbsoluteTime at, CFTimeZoneRef zone)
{
    double local = at + (zone ? CFTimeZoneGetSecondsFromGMT(zone, at) : 0);
    int64_t second = (int64_t)zone_absolute_time(zone_instant(local));
    double part = local - (double)second;

    if (part >= 1) { /* less than nothing before a second, which the difference does not hold */
        return (struct local_time){second, 0x1.fffffffffffffp-1 /* the last before 1 */};
    }
    return (struct local_time){second, part > 0 ? part : 0}; /* of a time too far away, and of none */
}

static int64_t day_of(struct local_time time)
{
    return floor_quotient(time.second, seconds_of_day) + day_2001;
}

static double second_of_minute(struct local_time time)
{
    double second = (double)(time.second - 60 * floor_quotient(time.second, 60)) + time.part;

    return second < 60 ? second : 0x1.dffffffffffffp+5 /* the last before 60 */;
}

CFGregorianDate CFAbsoluteTimeGetGregorianDate(CFAbsoluteTime at, CFTimeZoneRef zone)
{
    struct local_time local = local_time_of(at, zone);
    struct calendar_date date = calendar_date_of(day_of(local));
    int64_t second = local.second - floor_quotient(local.second, seconds_of_day) * seconds_of_day;

    return (CFGregorianDate){
        .year = (SInt32)date.year,
        .month = (SInt8)date.month,
        .day = (SInt8)date.day,
        .hour = (SInt8)(second / 3600),
        .minute = (SInt8)(second / 60 % 60),
        .second = second_of_minute(local),
    };
}

/* The time of clocks without a zone, in seconds since 2001. A month outside the calendar is taken as Core Foundation takes it. */
static double clock_time(int64_t year, const CFGregorianDate *date)
{
    int month = date->month >= 1 && date->month <= 13 ? date->month : 1;
    int64_t day = calendar_first_day(year) - day_2001 + calendar_days_before(month, year) + date->day - 1;

    return (double)(day * seconds_of_day + date->hour * 3600 + date->minute * 60) + date->second;
}

static CFAbsoluteTime absolute_time(double clock, CFTimeZoneRef zone)
{
    if (!zone) {
        return clock;
    }
    CFTimeInterval guess = CFTimeZoneGetSecondsFromGMT(zone, clock);
    return clock - CFTimeZoneGetSecondsFromGMT(zone, clock - guess);
}

CFAbsoluteTime CFGregorianDateGetAbsoluteTime(CFGregorianDate date, CFTimeZoneRef zone)
{
    return absolute_time(clock_time(date.year, &date), zone);
}

Boolean CFGregorianDateIsValid(CFGregorianDate date, CFOptionFlags unitFlags)
{
    bool has_year = (unitFlags & kCFGregorianUnitsYears) != 0;
    bool has_month = (unitFlags & kCFGregorianUnitsMonths) != 0;
    bool is_month = date.month >= 1 && date.month <= 12;
    int most_days = has_month && is_month ? calendar_days_in(date.month, has_year ? date.year : 2000) : 31;

    return (!has_year || date.year >= 1) && (!has_month || is_month) &&
           ((unitFlags & kCFGregorianUnitsDays) == 0 || (date.day >= 1 && date.day <= most_days)) &&
           ((unitFlags & kCFGregorianUnitsHours) == 0 || (date.hour >= 0 && date.hour < 24)) &&
           ((unitFlags & kCFGregorianUnitsMinutes) == 0 || (date.minute >= 0 && date.minute < 60)) &&
           ((unitFlags & kCFGregorianUnitsSeconds) == 0 || (date.second >= 0 && date.second < 60));
}

/* ---- distances ---- */

/* Adds whole years, months and days to the date that a time has. */
static CFAbsoluteTime add_to_date(CFAbsoluteTime at, CFTimeZoneRef zone, const CFGregorianUnits *units)
{
    CFGregorianDate date = CFAbsoluteTimeGetGregorianDate(at, zone);
    int64_t months = (int64_t)units->months + date.month - 1;
    int64_t year = (int64_t)date.year + units->years + floor_quotient(months, 12);
    int month = (int)(months - 12 * floor_quotient(months, 12)) + 1;
    int last = calendar_days_in(month, year);

    date.month = (SInt8)month;
    date.day = date.day < last ? date.day : (SInt8)last;
    return absolute_time(clock_time(year, &date) + (double)units->days * (double)seconds_of_day, zone);
}

CFAbsoluteTime CFAbsoluteTimeAddGregorianUnits(CFAbsoluteTime at, CFTimeZoneRef zone, CFGregorianUnits units)
{
    if (units.years != 0 || units.months != 0 || units.days != 0) {
        at = add_to_date(at, zone, &units);
    }
    return at + 3600.0 * units.hours + 60.0 * units.minutes + units.seconds;
}

/* Whether these units lead from one time beyond the other. */
static bool leads_beyond(CFAbsoluteTime from, CFAbsoluteTime to, CFTimeZoneRef zone, CFGregorianUnits units)
{
    CFAbsoluteTime reached = CFAbsoluteTimeAddGregorianUnits(from, zone, units);

    return to >= from ? reached > to : reached < to;
}

/* Sets one of the units to the greatest number that does not lead beyond, from an estimate that is off by little. */
static void set_unit(SInt32 *unit, double estimate, CFAbsoluteTime from, CFAbsoluteTime to, CFTimeZoneRef zone, CFGregorianUnits *units)
{
    int step = to >= from ? 1 : -1;

    /* Times too far away for a date leave an estimate of the wrong sign, or none. */
    *unit = !(estimate * step >= 0) ? 0 : estimate >= INT_MAX ? INT_MAX : estimate <= INT_MIN ? INT_MIN : (SInt32)estimate;
    for (int i = 0; i < 4 && *unit != 0 && leads_beyond(from, to, zone, *units); i++) {
        *unit -= step;
    }
    for (int i = 0; i < 4 && *unit != (step > 0 ? INT_MAX : INT_MIN); i++) {
        *unit += step;
        if (leads_beyond(from, to, zone, *units)) {
            *unit -= step;
            break;
        }
    }
}

CFGregorianUnits CFAbsoluteTimeGetDifferenceAsGregorianUnits(CFAbsoluteTime at1, CFAbsoluteTime at2, CFTimeZoneRef zone,
                                                             CFOptionFlags unitFlags)
{
    static const double lengths_s[] = {31556952, 2629746, 86400, 3600, 60}; /* a year and a month at the mean */
    CFGregorianUnits units = {0};
    SInt32 *const wholes[] = {&units.years, &units.months, &units.days, &units.hours, &units.minutes};

    if (!isfinite(at1) || !isfinite(at2)) {
        return units;
    }
    for (int i = 0; i < 5; i++) {
        if ((unitFlags & (1UL << i)) != 0) {
            set_unit(wholes[i], (at1 - CFAbsoluteTimeAddGregorianUnits(at2, zone, units)) / lengths_s[i], at2, at1, zone, &units);
        }
    }
    if ((unitFlags & kCFGregorianUnitsSeconds) != 0) {
        units.seconds = at1 - CFAbsoluteTimeAddGregorianUnits(at2, zone, units);
    }
    return units;
}

/* ---- days and weeks ---- */

/* 0 for Monday to 6. */
static int weekday_of(int64_t day)
{
    return (int)(day + 3 - 7 * floor_quotient(day + 3, 7)); /* 1970 began on a Thursday */
}

SInt32 CFAbsoluteTimeGetDayOfWeek(CFAbsoluteTime at, CFTimeZoneRef zone)
{
    return weekday_of(day_of(local_time_of(at, zone))) + 1;
}

SInt32 CFAbsoluteTimeGetDayOfYear(CFAbsoluteTime at, CFTimeZoneRef zone)
{
    return calendar_date_of(day_of(local_time_of(at, zone))).day_of_year;
}

SInt32 CFAbsoluteTimeGetWeekOfYear(CFAbsoluteTime at, CFTimeZoneRef zone)
{
    int64_t day = day_of(local_time_of(at, zone));
    int day_of_year = calendar_date_of(day).day_of_year;
    int64_t thursday = day - weekday_of(day) + 3; /* a week belongs to the year of its Thursday */
    int week = (calendar_date_of(thursday).day_of_year - 1) / 7 + 1;

    return day_of_year <= 3 && week > 50 ? 53 : week;
}
