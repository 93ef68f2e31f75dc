/* SPDX-License-Identifier: Apache-2.0 */
/* Makes zones of data, of offsets and of names (zone.h). */
#define _GNU_SOURCE /* secure_getenv */
#include "Zone/zone.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Zone/zone_file.h"

static const int64_t seconds_1970_to_2001 = 978307200;
static const double farthest_s = 6.7e16; /* whose years fit into 32 bits */

static _Atomic CFTypeID zone_type;

int64_t zone_instant(CFAbsoluteTime at)
{
    double whole = at >= -farthest_s && at <= farthest_s ? at : at > 0 ? farthest_s : at < 0 ? -farthest_s : 0;
    int64_t seconds = (int64_t)whole;

    return seconds - (whole < (double)seconds) + seconds_1970_to_2001;
}

CFAbsoluteTime zone_absolute_time(int64_t instant)
{
    return (CFAbsoluteTime)(instant - seconds_1970_to_2001);
}

static void finalize(CFTypeRef object)
{
    const struct zone *zone = object;

    if (zone->name) {
        CFRelease(zone->name);
    }
    if (zone->data) {
        CFRelease(zone->data);
    }
    free(zone->rules);
}

static Boolean equal(CFTypeRef one, CFTypeRef other)
{
    const struct zone *zone1 = one;
    const struct zone *zone2 = other;

    return CFEqual(zone1->name, zone2->name) && CFEqual(zone1->data, zone2->data);
}

static CFHashCode hash(CFTypeRef object)
{
    return CFHash(((const struct zone *)object)->name);
}

static CFStringRef copy_description(CFTypeRef object)
{
    const struct zone *zone = object;
    struct zone_period period = zone_rules_period(zone->rules, zone_instant(CFAbsoluteTimeGetCurrent()));

    return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFTimeZone %p>{name = %@; abbreviation = %s; GMT offset = %d; is DST = %s}"),
                                    object, zone->name, period.abbreviation, (int)period.offset_s, period.is_daylight ? "true" : "false");
}

CFTypeID CFTimeZoneGetTypeID(void)
{
    static const CRLTypeFunctions functions = {
        .name = "CFTimeZone", .finalize = finalize, .equal = equal, .hash = hash, .copyDescription = copy_description};
    CFTypeID type = atomic_load_explicit(&zone_type, memory_order_acquire);

    if (type == 0) {
        CFTypeID registered = CRLTypeRegister(&functions);

        /* Of two threads one registers in vain, which costs a place among the types. */
        if (atomic_compare_exchange_strong_explicit(&zone_type, &type, registered, memory_order_acq_rel, memory_order_acquire)) {
            type = registered;
        }
    }
    return type;
}

const struct zone *zone_require(CFTimeZoneRef zone, const char *function)
{
    if (!zone || CFGetTypeID(zone) != CFTimeZoneGetTypeID()) {
        (void)fprintf(stderr, "CoreRunLoop: %s: the time zone is %s\n", function, zone ? "another object" : "NULL");
        abort();
    }
    return (const struct zone *)(const void *)zone;
}

CFTimeZoneRef zone_create(CFAllocatorRef allocator, CFStringRef name, CFDataRef data)
{
    struct zone_rules *rules = zone_rules_create(CFDataGetBytePtr(data), (size_t)CFDataGetLength(data));
    struct zone *zone = rules ? CRLTypeCreateObject(allocator, CFTimeZoneGetTypeID(), sizeof *zone) : NULL;

    if (!zone) {
        free(rules);
        return NULL;
    }
    zone->rules = rules;
    zone->name = CFStringCreateCopy(allocator, name);
    zone->data = CFDataCreateCopy(allocator, data);
    if (!zone->name || !zone->data) {
        CFRelease(zone);
        return NULL;
    }
    return (CFTimeZoneRef)(const void *)zone;
}

static CFTimeZoneRef create_of(CFAllocatorRef allocator, const char *name, CFDataRef data)
{
    CFStringRef string = data ? CFStringCreateWithCString(NULL, name, kCFStringEncodingUTF8) : NULL;
    CFTimeZoneRef zone = string ? zone_create(allocator, string, data) : NULL;

    if (string) {
        CFRelease(string);
    }
    if (data) {
        CFRelease(data);
    }
    return zone;
}

static UInt8 *put_number(UInt8 *place, uint32_t number)
{
    for (int i = 0; i < 4; i++) {
        place[i] = (UInt8)(number >> (24 - 8 * i));
    }
    return place + 4;
}

/* One part of a file with one type and no changes, as Core Foundation writes the data of a zone of an offset. Returns its end. */
static UInt8 *put_block(UInt8 *place, char version, int32_t offset_s, const char *abbreviation)
{
    uint32_t letters = (uint32_t)strlen(abbreviation) + 1;

    memset(place, 0, 20);
    memcpy(place, "TZif", 4);
    place[4] = (UInt8)version;
    place = put_number(put_number(place + 20, 1), 1);
    place = put_number(put_number(place, 0), 0);
    place = put_number(put_number(place, 1), letters);
    place = put_number(place, (uint32_t)offset_s);
    memset(place, 0, 2 + letters + 2);
    memcpy(place + 2, abbreviation, letters);
    return place + 2 + letters + 2;
}

enum { largest_block = 44 + 6 + longest_abbreviation + 1 + 2 };

CFTimeZoneRef zone_create_fixed(CFAllocatorRef allocator, const char *name, int32_t offset_s)
{
    UInt8 bytes[largest_block];
    UInt8 *end = put_block(bytes, '\0', offset_s, name);

    return create_of(allocator, name, CFDataCreate(NULL, bytes, end - bytes));
}

/* A zone of a rule alone, as TZ may have one. */
static CFTimeZoneRef create_of_rule(const char *rule)
{
    UInt8 bytes[2 * largest_block + longest_zone_name + 2];
    struct zone_footer footer;
    size_t length = strlen(rule);

    if (length > longest_zone_name || !zone_footer_parse(rule, length, &footer)) {
        return NULL;
    }
    UInt8 *end = put_block(bytes, '3', footer.standard.offset_s, footer.standard.abbreviation);
    end = put_block(end, '3', footer.standard.offset_s, footer.standard.abbreviation);
    *end++ = '\n';
    memcpy(end, rule, length);
    end += length;
    *end++ = '\n';
    return create_of(NULL, rule, CFDataCreate(NULL, bytes, end - bytes));
}

/* "GMT+0130" */
static CFTimeZoneRef create_of_offset(CFAllocatorRef allocator, const char *name)
{
    if (strlen(name) != 8 || memcmp(name, "GMT", 3) != 0 || (name[3] != '+' && name[3] != '-') || strspn(name + 4, "0123456789") != 4) {
        return NULL;
    }
    int hours = (name[4] - '0') * 10 + name[5] - '0';
    int minutes = (name[6] - '0') * 10 + name[7] - '0';
    int32_t offset_s = (name[3] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return hours <= 14 && minutes < 60 ? CFTimeZoneCreateWithTimeIntervalFromGMT(allocator, offset_s) : NULL;
}

CFTimeZoneRef zone_create_named(CFAllocatorRef allocator, const char *name)
{
    CFTimeZoneRef zone = create_of(allocator, name, zone_file_copy(name));

    if (zone) {
        return zone;
    }
    if (strcmp(name, "GMT") == 0 || strcmp(name, "UTC") == 0) {
        return zone_create_fixed(allocator, name, 0);
    }
    return create_of_offset(allocator, name);
}

static CFTimeZoneRef create_at(const char *path)
{
    char name[longest_zone_name + 1];
    CFTimeZoneRef zone = zone_file_name_at(path, name) ? zone_create_named(NULL, name) : NULL;

    return zone ? zone : create_of(NULL, path, zone_file_copy_at(path));
}

CFTimeZoneRef zone_create_of_system(void)
{
    const char *variable = secure_getenv("TZ");
    CFTimeZoneRef zone = NULL;

    if (!variable) {
        zone = create_at("/etc/localtime");
    } else {
        variable += variable[0] == ':';
        zone = variable[0] == '/' ? create_at(variable) : zone_create_named(NULL, variable);
        zone = zone ? zone : create_of_rule(variable);
    }
    return zone ? zone : zone_create_named(NULL, "UTC");
}
