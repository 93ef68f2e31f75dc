/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file of the tz database, and as a rule in TZ. What is taken tells periods that follow one another without gaps, at any
 * instant, and a date in the zone has a time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFTimeZone.h"
#include "Zone/zone_footer.h"
#include "Zone/zone_rules.h"
#include "check.h"

static const int64_t instants[] = {INT64_C(-67000000000000000), -62135596800, -2208988801, -1, 0, 1774746000, 32503680000,
                                   INT64_C(67000000000000000)};

static void check_period(struct zone_period period, int64_t instant)
{
    CHECK(period.start <= instant && instant < period.end);
    CHECK(period.offset_s >= -26 * 3600 && period.offset_s <= 26 * 3600);
    CHECK(memchr(period.abbreviation, '\0', 321));
}

static void check_rule(const uint8_t *bytes, size_t size)
{
    struct zone_footer footer;

    if (!zone_footer_parse((const char *)bytes, size, &footer)) {
        return;
    }
    for (size_t i = 0; i < sizeof instants / sizeof *instants; i++) {
        struct zone_period period = zone_footer_period(&footer, instants[i]);

        check_period(period, instants[i]);
        if (period.end < INT64_MAX) {
            struct zone_period next = zone_footer_period(&footer, period.end);

            check_period(next, period.end);
            CHECK(next.start == period.end && next.is_daylight != period.is_daylight);
        }
    }
}

static void check_rules(const struct zone_rules *rules)
{
    for (size_t i = 0; i < sizeof instants / sizeof *instants; i++) {
        struct zone_period period = zone_rules_period(rules, instants[i]);

        check_period(period, instants[i]);
        for (int steps = 0; steps < 8 && period.end < INT64_C(67000000000000000); steps++) {
            struct zone_period next = zone_rules_period(rules, period.end);

            CHECK(next.start == period.end);
            check_period(next, period.end);
            period = next;
        }
    }
}

static void check_zone(CFTimeZoneRef zone, CFAbsoluteTime at)
{
    CFGregorianDate date = CFAbsoluteTimeGetGregorianDate(at, zone);
    CFStringRef abbreviation = CFTimeZoneCopyAbbreviation(zone, at);

    CHECK(CFGregorianDateIsValid(date, kCFGregorianAllUnits & ~(CFOptionFlags)kCFGregorianUnitsYears));
    CHECK(!isnan(CFGregorianDateGetAbsoluteTime(date, zone)));
    CHECK(abbreviation && CFAbsoluteTimeGetWeekOfYear(at, zone) <= 53);
    (void)CFAbsoluteTimeGetDifferenceAsGregorianUnits(at, 5e8, zone, kCFGregorianAllUnits);
    (void)CFTimeZoneGetDaylightSavingTimeOffset(zone, at);
    CFRelease(abbreviation);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct zone_rules *rules = zone_rules_create(bytes, size);
    CFDataRef data = CFDataCreate(NULL, bytes, (CFIndex)size);
    CFTimeZoneRef zone = CFTimeZoneCreate(NULL, CFSTR("fuzz"), data);
    double at = 0;

    check_rule(bytes, size);
    CHECK(!rules == !zone);
    if (rules) {
        check_rules(rules);
        memcpy(&at, bytes + size - sizeof at, sizeof at);
        check_zone(zone, at);
        check_zone(zone, 1e9);
        CFRelease(zone);
    }
    free(rules);
    CFRelease(data);
    return 0;
}
