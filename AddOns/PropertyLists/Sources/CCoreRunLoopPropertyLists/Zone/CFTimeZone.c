/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls of time zones (CFTimeZone.h), and the two zones that the process keeps, under the fork lock: a child finds them whole.
 */
#include "CoreFoundation/CFTimeZone.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "Zone/zone.h"
#include "Zone/zone_file.h"
#include "fork_lock.h"

enum kept_zone { kept_of_system, kept_default, kept_count };

static CFTimeZoneRef kept[kept_count] GUARDED_BY(the_fork_lock); /* NULL: none yet, or the system's */

/* ---- the process's zones ---- */

static CFTimeZoneRef copy_kept(enum kept_zone which)
{
    int cancel_state = fork_lock_take();
    CFTimeZoneRef zone = kept[which] ? CFRetain(kept[which]) : NULL;

    fork_lock_drop(cancel_state);
    return zone;
}

static void keep(enum kept_zone which, CFTimeZoneRef zone)
{
    int cancel_state = fork_lock_take();
    CFTimeZoneRef before = kept[which];

    kept[which] = zone ? CFRetain(zone) : NULL;
    fork_lock_drop(cancel_state);
    if (before) {
        CFRelease(before);
    }
}

CFTimeZoneRef CFTimeZoneCopySystem(void)
{
    CFTimeZoneRef zone = copy_kept(kept_of_system);

    if (!zone) {
        zone = zone_create_of_system();
        keep(kept_of_system, zone);
    }
    return zone;
}

void CFTimeZoneResetSystem(void)
{
    keep(kept_of_system, NULL);
}

CFTimeZoneRef CFTimeZoneCopyDefault(void)
{
    CFTimeZoneRef zone = copy_kept(kept_default);

    return zone ? zone : CFTimeZoneCopySystem();
}

void CFTimeZoneSetDefault(CFTimeZoneRef zone)
{
    if (zone) {
        (void)zone_require(zone, "CFTimeZoneSetDefault");
    }
    keep(kept_default, zone);
}

#if defined(CRL_TESTING)
void zones_give_back(void)
{
    keep(kept_of_system, NULL);
    keep(kept_default, NULL);
}
#endif

/* ---- making zones ---- */

CFTimeZoneRef CFTimeZoneCreate(CFAllocatorRef allocator, CFStringRef name, CFDataRef data)
{
    if (!name) {
        return NULL;
    }
    return data ? zone_create(allocator, name, data) : CFTimeZoneCreateWithName(allocator, name, false);
}

CFTimeZoneRef CFTimeZoneCreateWithTimeIntervalFromGMT(CFAllocatorRef allocator, CFTimeInterval interval)
{
    char name[longest_abbreviation + 1];

    if (!(fabs(interval) <= 18 * 3600)) {
        return NULL;
    }
    int minutes = (int)(fabs(interval) / 60 + 0.5);
    if (minutes == 0) {
        return zone_create_named(allocator, "GMT");
    }
    (void)snprintf(name, sizeof name, "GMT%c%02d%02d", interval < 0 ? '-' : '+', minutes / 60, minutes % 60);
    return zone_create_fixed(allocator, name, (interval < 0 ? -60 : 60) * minutes);
}

CFTimeZoneRef CFTimeZoneCreateWithName(CFAllocatorRef allocator, CFStringRef name, Boolean tryAbbrev)
{
    char bytes[longest_zone_name + 1];

    /* A NUL in the name would end it too early. */
    if (!name || !CFStringGetCString(name, bytes, sizeof bytes, kCFStringEncodingASCII) ||
        (CFIndex)strlen(bytes) != CFStringGetLength(name)) {
        return NULL;
    }
    const char *meant = tryAbbrev ? zone_name_of_abbreviation(bytes) : NULL;
    return zone_create_named(allocator, meant ? meant : bytes);
}

/* ---- what zones know ---- */

static struct zone_period period_at(CFTimeZoneRef zone, CFAbsoluteTime at, const char *function)
{
    return zone_rules_period(zone_require(zone, function)->rules, zone_instant(at));
}

CFStringRef CFTimeZoneGetName(CFTimeZoneRef zone)
{
    return zone_require(zone, "CFTimeZoneGetName")->name;
}

CFDataRef CFTimeZoneGetData(CFTimeZoneRef zone)
{
    return zone_require(zone, "CFTimeZoneGetData")->data;
}

CFTimeInterval CFTimeZoneGetSecondsFromGMT(CFTimeZoneRef zone, CFAbsoluteTime at)
{
    return period_at(zone, at, "CFTimeZoneGetSecondsFromGMT").offset_s;
}

CFStringRef CFTimeZoneCopyAbbreviation(CFTimeZoneRef zone, CFAbsoluteTime at)
{
    return CFStringCreateWithCString(NULL, period_at(zone, at, "CFTimeZoneCopyAbbreviation").abbreviation, kCFStringEncodingASCII);
}

Boolean CFTimeZoneIsDaylightSavingTime(CFTimeZoneRef zone, CFAbsoluteTime at)
{
    return period_at(zone, at, "CFTimeZoneIsDaylightSavingTime").is_daylight;
}

CFTimeInterval CFTimeZoneGetDaylightSavingTimeOffset(CFTimeZoneRef zone, CFAbsoluteTime at)
{
    struct zone_period now = period_at(zone, at, "CFTimeZoneGetDaylightSavingTimeOffset");
    const struct zone_rules *rules = zone_require(zone, "CFTimeZoneGetDaylightSavingTimeOffset")->rules;

    if (!now.is_daylight || (now.end == INT64_MAX && now.start == INT64_MIN)) {
        return 0;
    }
    /* It is told by the time that follows, as Core Foundation tells it, or else by the one before. */
    int32_t other_s = zone_rules_period(rules, now.end < INT64_MAX ? now.end : now.start - 1).offset_s;
    return now.offset_s - other_s;
}

CFAbsoluteTime CFTimeZoneGetNextDaylightSavingTimeTransition(CFTimeZoneRef zone, CFAbsoluteTime at)
{
    struct zone_period now = period_at(zone, at, "CFTimeZoneGetNextDaylightSavingTimeTransition");

    return now.end < INT64_MAX ? zone_absolute_time(now.end) : 0;
}

/* ---- names ---- */

/* Appends the third word of a line "AD\t+4230+00131\tEurope/Andorra"; false: there is no memory. */
static bool append_name(CFMutableArrayRef names, const char *line, const char *end)
{
    const char *word = line[0] != '#' ? memchr(line, '\t', (size_t)(end - line)) : NULL;

    word = word ? memchr(word + 1, '\t', (size_t)(end - word) - 1) : NULL;
    if (!word) {
        return true;
    }
    const char *behind = memchr(word + 1, '\t', (size_t)(end - word) - 1);
    CFIndex length = (behind ? behind : end) - word - 1;
    CFStringRef name = CFStringCreateWithBytes(NULL, (const UInt8 *)word + 1, length, kCFStringEncodingASCII, false);
    if (!name) {
        return false;
    }
    CFIndex count = CFArrayGetCount(names);
    CFArrayAppendValue(names, name);
    CFRelease(name);
    return CFArrayGetCount(names) == count + 1;
}

CFArrayRef CFTimeZoneCopyKnownNames(void)
{
    CFDataRef table = zone_file_copy("zone.tab");
    CFMutableArrayRef names = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    const char *line = table ? (const char *)CFDataGetBytePtr(table) : NULL;
    const char *end = table ? line + CFDataGetLength(table) : NULL;
    bool is_whole = names != NULL;

    while (is_whole && line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline ? newline : end;

        is_whole = append_name(names, line, line_end);
        line = newline ? newline + 1 : end;
    }
    if (table) {
        CFRelease(table);
    }
    if (names && !is_whole) {
        CFRelease(names);
        return NULL;
    }
    return names;
}
