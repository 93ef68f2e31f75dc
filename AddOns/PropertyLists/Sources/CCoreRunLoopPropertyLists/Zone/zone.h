/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones as objects, and how they are found. Immutable; any thread. */
#ifndef CRL_PLIST_ZONE_H
#define CRL_PLIST_ZONE_H

#include "plist_link_names.h"

#include "CRLAddOn.h"
#include "CoreFoundation/CFTimeZone.h"
#include "Zone/zone_rules.h"

struct zone {
    CRLObjectHeader header;
    CFStringRef name; /* as all that follows, constant */
    CFDataRef data;
    struct zone_rules *rules;
};

/* Any number; what is far outside all calendars is taken as far away, and NaN as 2001. */
int64_t zone_instant(CFAbsoluteTime at);
CFAbsoluteTime zone_absolute_time(int64_t instant);

/* Stops with one sentence unless the reference is a zone. */
const struct zone *zone_require(CFTimeZoneRef zone, const char *function);
CFTimeZoneRef zone_create(CFAllocatorRef allocator, CFStringRef name, CFDataRef data);
/* A zone whose offset never changes. */
CFTimeZoneRef zone_create_fixed(CFAllocatorRef allocator, const char *name, int32_t offset_s);
/* By a name of the database, or one as "GMT+0100"; NULL: there is no such zone. */
CFTimeZoneRef zone_create_named(CFAllocatorRef allocator, const char *name);
/* The name that an abbreviation stands for, or NULL. */
const char *zone_name_of_abbreviation(const char *abbreviation);
/* By $TZ, or /etc/localtime. NULL: there is no memory. */
CFTimeZoneRef zone_create_of_system(void);

#if defined(CRL_TESTING)
/* Gives back what the process keeps until it ends. */
void zones_give_back(void);
#endif

#endif
