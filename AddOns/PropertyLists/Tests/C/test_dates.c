/* SPDX-License-Identifier: Apache-2.0 */
/* Dates of the Gregorian calendar: what is valid, what lies between two of them, and times far away. */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFTimeZone.h"
#include "Zone/zone.h"
#include "Zone/zone_rules.h"
#include "harness.h"

static const char berlin_rule[] = "CET-1CEST,M3.5.0,M10.5.0/3";

/* A zone with the rule of Berlin for all years, whatever the system has. */
static CFTimeZoneRef make_berlin(void)
{
    (void)setenv("TZ", berlin_rule, 1);
    return zone_create_of_system();
}

static const char *words_of(CFGregorianDate date)
{
    static char words[64];

    (void)snprintf(words, sizeof words, "%d-%d-%d %d:%d:%g", date.year, date.month, date.day, date.hour, date.minute, date.second);
    return words;
}

TEST(a_time_has_a_date_and_the_date_has_the_time, "2208")
{
    static const struct {
        double at;
        const char *words;
        int weekday, day_of_year, week;
    } rows[] = {
        {0, "2001-1-1 0:0:0", 1, 1, 1},
        {-0.5, "2000-12-31 23:59:59.5", 7, 366, 52},
        {1e9, "2032-9-9 1:46:40", 4, 253, 37},
        {-6.3e10, "4-8-11 8:0:0", 3, 224, 33},
        {-63113904000.0, "1-1-1 0:0:0", 1, 1, 1},
        {-63113904001.0, "0-12-31 23:59:59", 7, 366, 52},
        {252423993600.0, "10000-1-1 0:0:0", 6, 1, 53}, /* of the last week of the year before */
        {1e15, "31690739-7-6 1:46:40", 4, 187, 27},
        {-1e15, "-31686738-6-29 22:13:20", 4, 180, 26},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CFGregorianDate date = CFAbsoluteTimeGetGregorianDate(rows[i].at, NULL);

        EXPECT_STR(words_of(date), rows[i].words);
        EXPECT(CFGregorianDateGetAbsoluteTime(date, NULL) == rows[i].at);
        EXPECT_EQ(CFAbsoluteTimeGetDayOfWeek(rows[i].at, NULL), rows[i].weekday);
        EXPECT_EQ(CFAbsoluteTimeGetDayOfYear(rows[i].at, NULL), rows[i].day_of_year);
        EXPECT_EQ(CFAbsoluteTimeGetWeekOfYear(rows[i].at, NULL), rows[i].week);
    }
}

TEST(every_number_has_a_valid_date_or_the_year_is_before_1, "2208")
{
    static const double times[] = {-1e-9, -1e-13, -1e-17, -5e-324,  59.99999999999999, 1e17, -1e17,
                                   1e18,  1e300,  -1e300, HUGE_VAL, -HUGE_VAL,         NAN};

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        CFGregorianDate date = CFAbsoluteTimeGetGregorianDate(times[i], NULL);

        EXPECT(CFGregorianDateIsValid(date, kCFGregorianAllUnits & ~(CFOptionFlags)kCFGregorianUnitsYears));
        EXPECT(CFAbsoluteTimeGetDayOfYear(times[i], NULL) <= 366);
        (void)CFAbsoluteTimeGetWeekOfYear(times[i], NULL);
        (void)CFAbsoluteTimeAddGregorianUnits(times[i], NULL, (CFGregorianUnits){INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX, 1e300});
        (void)CFAbsoluteTimeAddGregorianUnits(times[i], NULL, (CFGregorianUnits){INT_MIN, INT_MIN, INT_MIN, INT_MIN, INT_MIN, -1e300});
        for (size_t j = 0; j < sizeof times / sizeof *times; j++) {
            (void)CFAbsoluteTimeGetDifferenceAsGregorianUnits(times[i], times[j], NULL, kCFGregorianAllUnits);
        }
    }
}

TEST(the_parts_of_a_date_have_bounds, "2208")
{
    static const struct {
        CFGregorianDate date;
        int valid; /* a digit for each unit, from years, and one for all */
    } rows[] = {
        {{2001, 1, 1, 0, 0, 0}, 1111111},           {{2001, 2, 29, 0, 0, 0}, 1111110}, {{2000, 2, 29, 23, 59, 59.999}, 1111111},
        {{2001, 13, 1, 0, 0, 0}, 1011110},          {{2001, 0, 1, 0, 0, 0}, 1011110},  {{2001, 1, 0, 0, 0, 0}, 1101110},
        {{2001, 1, 32, 0, 0, 0}, 1101110},          {{2001, 1, 1, 24, 0, 0}, 1110110}, {{2001, 1, 1, 0, 60, 0}, 1111010},
        {{2001, 1, 1, 0, 0, 60}, 1111100},          {{0, 1, 1, 0, 0, 0}, 111110},      {{2001, 1, 1, -1, 0, 0}, 1110110},
        {{2001, 1, 1, 0, 0, (double)NAN}, 1111100},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int valid = 0;

        for (int unit = 0; unit < 6; unit++) {
            valid = valid * 10 + CFGregorianDateIsValid(rows[i].date, 1UL << unit);
        }
        EXPECT_EQ(valid * 10 + CFGregorianDateIsValid(rows[i].date, kCFGregorianAllUnits), rows[i].valid);
    }
}

TEST(a_date_of_an_hour_that_is_skipped_or_comes_twice_has_a_time, "2208")
{
    static const struct {
        CFGregorianDate date;
        double at;
    } rows[] = {
        {{2006, 3, 26, 1, 59, 59}, 165027599},  {{2006, 3, 26, 2, 30, 0}, 165029400},  {{2006, 3, 26, 3, 0, 0}, 165027600},
        {{2006, 10, 29, 1, 59, 59}, 183772799}, {{2006, 10, 29, 2, 30, 0}, 183778200}, {{2006, 10, 29, 3, 0, 0}, 183780000},
    };
    CFTimeZoneRef berlin = make_berlin();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_EQ(CFGregorianDateGetAbsoluteTime(rows[i].date, berlin), rows[i].at);
    }
    CFRelease(berlin);
}

TEST(units_are_added_by_the_calendar_and_the_clock, "2208")
{
    static const struct {
        double at;
        CFGregorianUnits units;
        double more;
    } rows[] = {
        {2592000, {0, 1, 0, 0, 0, 0}, 5011200 - 2592000}, /* from the 31st to the last of February */
        {165024000, {0, 0, 1, 0, 0, 0}, 82800}, /* the night is an hour shorter */
        {165024000, {0, 0, 0, 24, 0, 0}, 86400},          {165024000, {0, 0, 1, 1, 0, 0}, 86400},
        {165024000, {0, 1, 1, 1, 1, 1}, 2764861},         {183774600, {0, 0, 0, 1, 0, 0}, 3600}, /* in the hour that comes again */
        {183774600, {0, 0, 1, 0, 0, 0}, 90000},           {183778200, {0, 0, -1, 0, 0, 0}, -90000},
    };
    CFTimeZoneRef berlin = make_berlin();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_EQ(CFAbsoluteTimeAddGregorianUnits(rows[i].at, berlin, rows[i].units) - rows[i].at, rows[i].more);
    }
    CFRelease(berlin);
}

TEST(a_difference_added_again_gives_the_time, "2208")
{
    CFTimeZoneRef berlin = make_berlin();
    uint64_t seed = 1;

    for (int i = 0; i < 20000; i++) {
        double times[2];

        for (int j = 0; j < 2; j++) {
            seed = seed * 6364136223846793005 + 1442695040888963407;
            times[j] = (double)(seed >> 33) - 1e9;
        }
        CFOptionFlags flags = seed >> 40 & 31;
        CFGregorianUnits units = CFAbsoluteTimeGetDifferenceAsGregorianUnits(times[0], times[1], berlin, flags | kCFGregorianUnitsSeconds);
        EXPECT_EQ(CFAbsoluteTimeAddGregorianUnits(times[1], berlin, units), times[0]);
        EXPECT((flags & kCFGregorianUnitsMinutes) == 0 || (units.seconds > -60 && units.seconds < 60));
        EXPECT((flags & kCFGregorianUnitsYears) == 0 || (units.months > -12 && units.months < 12));
    }
    CFRelease(berlin);
}
