/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns dates, which do not change; any thread.
 */
#include "CoreFoundation/CFDate.h"

#include <stdio.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/object.h"
#include "Runtime/Value/wall_clock.h"

enum { seconds_1970_to_2001 = 978307200, seconds_of_day = 86400 };

struct date {
    struct object object;
    CFAbsoluteTime time; /* constant */
};

const CFTimeInterval kCFAbsoluteTimeIntervalSince1970 = seconds_1970_to_2001;
const CFTimeInterval kCFAbsoluteTimeIntervalSince1904 = 3061152000;

CFAbsoluteTime CFAbsoluteTimeGetCurrent(void)
{
    int64_t since_2001_ns = runtime_wall_clock() - seconds_1970_to_2001 * INT64_C(1000000000);

    /* Seconds and nanoseconds are converted apart, because a double does not hold so many nanoseconds exactly. */
    return (double)(since_2001_ns / 1000000000) + (double)(since_2001_ns % 1000000000) * 1e-9;
}

static CFComparisonResult order_of(CFAbsoluteTime one, CFAbsoluteTime other)
{
    return one < other ? kCFCompareLessThan : one > other ? kCFCompareGreaterThan : kCFCompareEqualTo;
}

static Boolean equal(CFTypeRef one, CFTypeRef other)
{
    return order_of(((const struct date *)one)->time, ((const struct date *)other)->time) == kCFCompareEqualTo;
}

static CFHashCode hash(CFTypeRef object)
{
    CFAbsoluteTime time = ((const struct date *)object)->time;
    bool fits = time > -9e18 && time < 9e18;

    return fits ? (CFHashCode)(int64_t)time : 0;
}

/* The days from 1970 to the first day of a year of the Gregorian calendar, which is taken to have been in use always. */
static int64_t first_day_of(int64_t year)
{
    int64_t before = year - 1;

    return 365 * year + before / 4 - before / 100 + before / 400 - 719527;
}

/*
 * Writes a time in the years 1 to 9999. It is written here because gmtime_r takes a lock of glibc's, which in the child of a fork stays
 * taken for ever if another thread held it.
 */
static void write_calendar_time(int64_t since_1970_s, char *ret_words, size_t size)
{
    static const int days_in[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t second = ((since_1970_s % seconds_of_day) + seconds_of_day) % seconds_of_day;
    int64_t day = (since_1970_s - second) / seconds_of_day;
    int64_t year = 1970 + day / 366 - (day < 0);

    while (day < first_day_of(year)) {
        year--;
    }
    while (day >= first_day_of(year + 1)) {
        year++;
    }
    int is_leap = first_day_of(year + 1) - first_day_of(year) == 366;
    int day_left = (int)(day - first_day_of(year));
    int month = 0;
    for (int days; day_left >= (days = days_in[month] + (month == 1 ? is_leap : 0)); month++) {
        day_left -= days;
    }
    (void)snprintf(ret_words, size, "%d-%02d-%02d %02d:%02d:%02d +0000", (int)year, month + 1, day_left + 1, (int)(second / 3600),
                   (int)(second / 60 % 60), (int)(second % 60));
}

static CFStringRef copy_description(CFTypeRef object)
{
    CFAbsoluteTime time = ((const struct date *)object)->time;
    bool has_year = time > -6e10 && time < 2e11;
    int64_t whole = has_year ? (int64_t)time : 0;
    int64_t seconds = has_year ? whole - (time < (double)whole) + seconds_1970_to_2001 : 0;
    char words[64];

    if (seconds == 0) {
        return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFDate %p>{time = %.9g}"), object, time);
    }
    write_calendar_time(seconds, words, sizeof words);
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFDate %p>{time = %.9f, %s}"), object, time, words);
}

static const struct object_class date_class = {
    .type_id = object_type_date,
    .name = "CFDate",
    .equal = equal,
    .hash = hash,
    .copy_description = copy_description,
};

static CFAbsoluteTime time_of(CFDateRef date, const char *function)
{
    object_require(date, object_type_date, function, "date");
    return ((const struct date *)(const void *)date)->time;
}

CFTypeID CFDateGetTypeID(void)
{
    return object_type_date;
}

CFDateRef CFDateCreate(CFAllocatorRef allocator, CFAbsoluteTime time)
{
    struct date *date = object_create(allocator, &date_class, sizeof *date);

    if (date != NULL) {
        date->time = time;
    }
    return (CFDateRef)(const void *)date;
}

CFAbsoluteTime CFDateGetAbsoluteTime(CFDateRef date)
{
    return time_of(date, "CFDateGetAbsoluteTime");
}

CFTimeInterval CFDateGetTimeIntervalSinceDate(CFDateRef date, CFDateRef otherDate)
{
    return time_of(date, "CFDateGetTimeIntervalSinceDate") - time_of(otherDate, "CFDateGetTimeIntervalSinceDate");
}

CFComparisonResult CFDateCompare(CFDateRef date, CFDateRef otherDate, void *context)
{
    (void)context;
    return order_of(time_of(date, "CFDateCompare"), time_of(otherDate, "CFDateCompare"));
}
