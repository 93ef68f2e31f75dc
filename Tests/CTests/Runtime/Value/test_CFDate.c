/* SPDX-License-Identifier: Apache-2.0 */
/* Dates and the wall clock. */
#include <math.h>
#include <stdint.h>
#include <time.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Value/wall_clock.h"
#include "harness.h"

static int64_t now_ns;

static int64_t fixed_clock(void)
{
    return now_ns;
}

TEST(the_time_now_is_counted_from_2001, "")
{
    runtime_wall_clock = fixed_clock;
    now_ns = 978307200 * INT64_C(1000000000);
    EXPECT_NEAR(CFAbsoluteTimeGetCurrent(), 0, 0);
    now_ns += 1500000000;
    EXPECT_NEAR(CFAbsoluteTimeGetCurrent(), 1.5, 0);
    now_ns = 0;
    EXPECT_NEAR(CFAbsoluteTimeGetCurrent(), -978307200.0, 0);
    EXPECT_NEAR(kCFAbsoluteTimeIntervalSince1970, 978307200.0, 0);
    EXPECT_NEAR(kCFAbsoluteTimeIntervalSince1904, 3061152000.0, 0);
}

TEST(the_time_now_is_the_systems, "")
{
    double before = (double)time(NULL);
    EXPECT_NEAR(CFAbsoluteTimeGetCurrent() + kCFAbsoluteTimeIntervalSince1970, before, 5 + test_patience_s());
}

TEST(dates_are_ordered_and_equal_by_their_times, "")
{
    CFDateRef one = CFDateCreate(NULL, 100.5);
    CFDateRef same = CFDateCreate(NULL, 100.5);
    CFDateRef later = CFDateCreate(NULL, 200);
    EXPECT_EQ(CFGetTypeID(one), CFDateGetTypeID());
    EXPECT_NEAR(CFDateGetAbsoluteTime(one), 100.5, 0);
    EXPECT_NEAR(CFDateGetTimeIntervalSinceDate(later, one), 99.5, 0);
    EXPECT_EQ(CFDateCompare(one, later, NULL), kCFCompareLessThan);
    EXPECT_EQ(CFDateCompare(later, one, NULL), kCFCompareGreaterThan);
    EXPECT_EQ(CFDateCompare(one, same, NULL), kCFCompareEqualTo);
    EXPECT(CFEqual(one, same));
    EXPECT(!CFEqual(one, later));
    EXPECT_EQ(CFHash(one), CFHash(same));
    CFRelease(one);
    CFRelease(same);
    CFRelease(later);
}

TEST(any_number_is_a_date, "")
{
    static const double times[] = {-1e300, 1e300, 0, -0.5, 1e18};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        CFDateRef date = CFDateCreate(NULL, times[i]);
        CFHash(date);
        CFStringRef words = CFCopyDescription(date);
        EXPECT(CFStringHasPrefix(words, CFSTR("<CFDate 0x")));
        CFRelease(words);
        CFRelease(date);
    }
    CFDateRef date = CFDateCreate(NULL, (double)NAN);
    CFHash(date);
    EXPECT(CFEqual(date, date));
    CFRelease(date);
    EXPECT(CFDateCreate(kCFAllocatorNull, 0) == NULL);
}

TEST(dates_are_described_in_utc, "")
{
    CFDateRef date = CFDateCreate(NULL, 86400.25);
    CFStringRef words = CFCopyDescription(date);
    EXPECT(CFStringHasSuffix(words, CFSTR("{time = 86400.250000000, 2001-01-02 00:00:00 +0000}")));
    CFRelease(words);
    CFRelease(date);
    EXPECT_STOPS("CFDateCompare: the date is NULL", { CFDateCompare(NULL, NULL, NULL); });
}
