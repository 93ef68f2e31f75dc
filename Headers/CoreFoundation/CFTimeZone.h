/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Time zones, and dates of the Gregorian calendar in them. They are in the add-on library libcorerunloop-plist.
 *
 * The zones are those of the system's tz database: the files below `$TZDIR`, or /usr/share/zoneinfo. Each has the changes of its offset
 * that were and are foreseen, and the rule by which it goes on. The calendar is taken to have been in use always. All functions may be
 * called on any thread, and in the child of a fork; none of them takes a lock of the C library's time functions. Zones are immutable.
 *
 * There are no calendars (CFCalendar), no locales (CFLocale), and so no names of zones for people; for abbreviations there is
 * CFTimeZoneCopyAbbreviation.
 */

#if !defined(__COREFOUNDATION_CFTIMEZONE__)
#define __COREFOUNDATION_CFTIMEZONE__ 1

#include "CFArray.h"
#include "CFBase.h"
#include "CFData.h"
#include "CFDate.h"
#include "CFString.h"

#if defined(__swift__)
#define CFTimeZoneRef CRLTimeZoneRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFTimeZone, CFTimeZone);

/** A time zone. Zones with the same name and the same data are equal. */
typedef const struct __CFTimeZone *CFTimeZoneRef;

/** A date and a time of day. */
typedef struct {
    SInt32 year; /**< The year; 0 is the one before 1. */
    SInt8 month; /**< 1 to 12 */
    SInt8 day; /**< 1 to 31 */
    SInt8 hour; /**< 0 to 23 */
    SInt8 minute; /**< 0 to 59 */
    double second; /**< 0 to less than 60 */
} CFGregorianDate;

/** A distance between dates. */
typedef struct {
    SInt32 years; /**< years */
    SInt32 months; /**< months */
    SInt32 days; /**< days */
    SInt32 hours; /**< hours */
    SInt32 minutes; /**< minutes */
    double seconds; /**< seconds */
} CFGregorianUnits;

/** Which units are meant. */
typedef CF_OPTIONS(CFOptionFlags, CFGregorianUnitFlags) {
    kCFGregorianUnitsYears = 1 << 0, /**< Years. */
    kCFGregorianUnitsMonths = 1 << 1, /**< Months. */
    kCFGregorianUnitsDays = 1 << 2, /**< Days. */
    kCFGregorianUnitsHours = 1 << 3, /**< Hours. */
    kCFGregorianUnitsMinutes = 1 << 4, /**< Minutes. */
    kCFGregorianUnitsSeconds = 1 << 5, /**< Seconds. */
    kCFGregorianAllUnits = 0x00FFFFFF /**< All of them. */
};

/** Returns the type id of time zones. Threads: any. */
CF_EXPORT CFTypeID CFTimeZoneGetTypeID(void) CRL_LINK(CFTimeZoneGetTypeID);

/**
 * Returns the system's zone: of `$TZ`, of /etc/localtime, or UTC. `$TZ` may be a name, a path, or a rule as `EST5EDT,M3.2.0,M11.1.0`;
 * a program with more rights than its user passes it over. It is looked for once, and again after CFTimeZoneResetSystem.
 * Ownership: the caller releases the zone.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFTimeZoneRef CFTimeZoneCopySystem(void) CRL_LINK(CFTimeZoneCopySystem) CF_RETURNS_RETAINED;

/** Forgets the system's zone, so that it is looked for again. Threads: any. */
CF_EXPORT void CFTimeZoneResetSystem(void) CRL_LINK(CFTimeZoneResetSystem);

/**
 * Returns the program's zone: the one that it has set, or the system's.
 * Ownership: the caller releases the zone.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFTimeZoneRef CFTimeZoneCopyDefault(void) CRL_LINK(CFTimeZoneCopyDefault) CF_RETURNS_RETAINED;

/** Sets the program's zone; NULL makes it the system's again. Ownership: the zone is retained. Threads: any. */
CF_EXPORT void CFTimeZoneSetDefault(CFTimeZoneRef zone) CRL_LINK(CFTimeZoneSetDefault);

/**
 * Returns the names of zones by countries, from the database's zone.tab. A program may use others, such as "UTC".
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: an empty array without that file; NULL when there is no memory.
 */
CF_EXPORT CFArrayRef CFTimeZoneCopyKnownNames(void) CRL_LINK(CFTimeZoneCopyKnownNames) CF_RETURNS_RETAINED;

/**
 * Creates a zone from the bytes of a file of the tz database, of any version.
 *
 * `allocator` is NULL for the default. `name` is any text. `data` NULL stands for CFTimeZoneCreateWithName.
 * Ownership: the caller releases the zone; it keeps the data.
 * Threads: any.
 * Errors: NULL when the bytes are no such file, or there is no memory.
 */
CF_EXPORT CFTimeZoneRef CFTimeZoneCreate(CFAllocatorRef allocator, CFStringRef name, CFDataRef data)
    CRL_LINK(CFTimeZoneCreate) CF_RETURNS_RETAINED;

/**
 * Creates a zone whose offset is always the same: "GMT+0130".
 *
 * `allocator` is NULL for the default. `interval` is in seconds, positive east of Greenwich, and is rounded to a whole minute.
 * Ownership: the caller releases the zone.
 * Threads: any.
 * Errors: NULL for more than 18 hours, for no number, and when there is no memory.
 */
CF_EXPORT CFTimeZoneRef CFTimeZoneCreateWithTimeIntervalFromGMT(CFAllocatorRef allocator, CFTimeInterval interval)
    CRL_LINK(CFTimeZoneCreateWithTimeIntervalFromGMT) CF_RETURNS_RETAINED;

/**
 * Creates a zone by its name in the database, or one as "GMT+0130".
 *
 * `allocator` is NULL for the default. `tryAbbrev` also takes an abbreviation as "PST", which stands for one of the zones that have it.
 * Ownership: the caller releases the zone.
 * Threads: any. The file is read in the call.
 * Errors: NULL when there is no such zone or no memory. A name that would lead out of the database is refused.
 */
CF_EXPORT CFTimeZoneRef CFTimeZoneCreateWithName(CFAllocatorRef allocator, CFStringRef name, Boolean tryAbbrev)
    CRL_LINK(CFTimeZoneCreateWithName) CF_RETURNS_RETAINED;

/** Returns a zone's name. Ownership: the zone owns it. Threads: any. Errors: NULL stops the process, as in all that follow. */
CF_EXPORT CFStringRef CFTimeZoneGetName(CFTimeZoneRef zone) CRL_LINK(CFTimeZoneGetName) CF_RETURNS_NOT_RETAINED;

/** Returns the bytes of a zone, as a file of the database has them. Ownership: the zone owns them. Threads: any. */
CF_EXPORT CFDataRef CFTimeZoneGetData(CFTimeZoneRef zone) CRL_LINK(CFTimeZoneGetData) CF_RETURNS_NOT_RETAINED;

/**
 * Returns how many seconds a zone's clocks are before those of Greenwich, at a time.
 * Threads: any.
 * Differs from Apple: the years after 2037 and before 1901 have the zone's rules and changes too.
 */
CF_EXPORT CFTimeInterval CFTimeZoneGetSecondsFromGMT(CFTimeZoneRef zone, CFAbsoluteTime at) CRL_LINK(CFTimeZoneGetSecondsFromGMT);

/**
 * Returns the abbreviation of a zone that is in use at a time: "CEST".
 * Ownership: the caller releases it.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFStringRef CFTimeZoneCopyAbbreviation(CFTimeZoneRef zone, CFAbsoluteTime at)
    CRL_LINK(CFTimeZoneCopyAbbreviation) CF_RETURNS_RETAINED;

/** Returns whether a zone has daylight saving time at a time. Threads: any. */
CF_EXPORT Boolean CFTimeZoneIsDaylightSavingTime(CFTimeZoneRef zone, CFAbsoluteTime at) CRL_LINK(CFTimeZoneIsDaylightSavingTime);

/** Returns by how many seconds daylight saving time has the clocks put forward at a time; 0 outside it. Threads: any. */
CF_EXPORT CFTimeInterval CFTimeZoneGetDaylightSavingTimeOffset(CFTimeZoneRef zone, CFAbsoluteTime at)
    CRL_LINK(CFTimeZoneGetDaylightSavingTimeOffset);

/** Returns when something changes next in a zone after a time: its offset, its abbreviation or its season; 0 for never. Threads: any. */
CF_EXPORT CFAbsoluteTime CFTimeZoneGetNextDaylightSavingTimeTransition(CFTimeZoneRef zone, CFAbsoluteTime at)
    CRL_LINK(CFTimeZoneGetNextDaylightSavingTimeTransition);

/**
 * Returns whether the parts of a date that `unitFlags` names are within their bounds; the year has to be at least 1.
 * Threads: any, signal handlers included.
 */
CF_EXPORT Boolean CFGregorianDateIsValid(CFGregorianDate date, CFOptionFlags unitFlags) CRL_LINK(CFGregorianDateIsValid);

/**
 * Returns the time of a date in a zone. Of an hour that comes twice the later one is meant, and a time that clocks skip is read as if they
 * had not.
 *
 * `zone` is NULL for GMT. A day, hour, minute or second outside its bounds is counted on.
 * Threads: any.
 */
CF_EXPORT CFAbsoluteTime CFGregorianDateGetAbsoluteTime(CFGregorianDate date, CFTimeZoneRef zone) CRL_LINK(CFGregorianDateGetAbsoluteTime);

/**
 * Returns the date that a time has in a zone.
 *
 * `zone` is NULL for GMT.
 * Threads: any.
 * Errors: a time whose year does not fit is taken as the nearest that does, and no number as 0.
 */
CF_EXPORT CFGregorianDate CFAbsoluteTimeGetGregorianDate(CFAbsoluteTime at, CFTimeZoneRef zone) CRL_LINK(CFAbsoluteTimeGetGregorianDate);

/**
 * Returns a time so much later: first years and months are added to its date, whose day then becomes the last of its month if that is too
 * short, then days, and at last hours, minutes and seconds to the time.
 *
 * `zone` is NULL for GMT. `units` may be negative.
 * Threads: any.
 * Differs from Apple: hours, minutes and seconds alone never move a time in the hour that comes twice to its second coming.
 */
CF_EXPORT CFAbsoluteTime CFAbsoluteTimeAddGregorianUnits(CFAbsoluteTime at, CFTimeZoneRef zone, CFGregorianUnits units)
    CRL_LINK(CFAbsoluteTimeAddGregorianUnits);

/**
 * Returns what has to be added to `at2` to get `at1`, in the units that `unitFlags` names, as much as can be in the longer ones.
 *
 * `zone` is NULL for GMT.
 * Threads: any.
 * Errors: zeros for no number; numbers that are too large become the largest.
 */
CF_EXPORT CFGregorianUnits CFAbsoluteTimeGetDifferenceAsGregorianUnits(CFAbsoluteTime at1, CFAbsoluteTime at2, CFTimeZoneRef zone,
                                                                       CFOptionFlags unitFlags)
    CRL_LINK(CFAbsoluteTimeGetDifferenceAsGregorianUnits);

/** Returns the day of the week of a time: 1 for Monday to 7. `zone` is NULL for GMT. Threads: any. */
CF_EXPORT SInt32 CFAbsoluteTimeGetDayOfWeek(CFAbsoluteTime at, CFTimeZoneRef zone) CRL_LINK(CFAbsoluteTimeGetDayOfWeek);

/** Returns the day of the year of a time: 1 to 366. `zone` is NULL for GMT. Threads: any. */
CF_EXPORT SInt32 CFAbsoluteTimeGetDayOfYear(CFAbsoluteTime at, CFTimeZoneRef zone) CRL_LINK(CFAbsoluteTimeGetDayOfYear);

/**
 * Returns the week of the year of a time, as ISO 8601 counts them; in the first days of a year, which belong to the last week of the year
 * before, always 53. `zone` is NULL for GMT. Threads: any.
 */
CF_EXPORT SInt32 CFAbsoluteTimeGetWeekOfYear(CFAbsoluteTime at, CFTimeZoneRef zone) CRL_LINK(CFAbsoluteTimeGetWeekOfYear);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFTIMEZONE__ */
