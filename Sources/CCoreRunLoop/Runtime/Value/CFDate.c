/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns dates, which do not change; any thread.
 */
#include "CoreFoundation/CFDate.h"

#include <time.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/object.h"
#include "Runtime/Value/wall_clock.h"

enum { seconds_1970_to_2001 = 978307200 };

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

static CFStringRef copy_description(CFTypeRef object)
{
    CFAbsoluteTime time = ((const struct date *)object)->time;
    bool has_year = time > -6e10 && time < 2e11;
    time_t whole = has_year ? (time_t)time : 0;
    time_t seconds = has_year ? whole - (time < (double)whole) + seconds_1970_to_2001 : 0;
    struct tm parts;
    char words[64];

    if (seconds == 0 || gmtime_r(&seconds, &parts) == NULL || strftime(words, sizeof words, "%Y-%m-%d %H:%M:%S +0000", &parts) == 0) {
        return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFDate %p>{time = %.9g}"), object, time);
    }
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
