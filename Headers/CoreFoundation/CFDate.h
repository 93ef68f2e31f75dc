/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Time: seconds since the beginning of 2001 in UTC, as a number and as an object. Any thread may use these functions and objects.
 */

#if !defined(__COREFOUNDATION_CFDATE__)
#define __COREFOUNDATION_CFDATE__ 1

#include "CFBase.h"

CF_EXTERN_C_BEGIN

/** A length of time in seconds. */
typedef double CFTimeInterval;
/** A point in time: seconds since 2001-01-01 00:00:00 UTC, by the system's wall clock. */
typedef CFTimeInterval CFAbsoluteTime;

/** The seconds from the beginning of 1970 to the beginning of 2001. */
CF_EXPORT const CFTimeInterval kCFAbsoluteTimeIntervalSince1970 CRL_LINK(kCFAbsoluteTimeIntervalSince1970);
/** The seconds from the beginning of 1904 to the beginning of 2001. */
CF_EXPORT const CFTimeInterval kCFAbsoluteTimeIntervalSince1904 CRL_LINK(kCFAbsoluteTimeIntervalSince1904);

/** Returns the current time of the wall clock, which may be set forwards and backwards. Threads: any, signal handlers included. */
CF_EXPORT CFAbsoluteTime CFAbsoluteTimeGetCurrent(void) CRL_LINK(CFAbsoluteTimeGetCurrent);

#if defined(__swift__)
#define CFDateRef CRLDateRef_
#endif

CRL_REFERENCE_TYPE(__CFDate, CFDate);

/** A point in time as an object. */
typedef const struct __CFDate *CFDateRef;

/** Returns the type id of dates. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFDateGetTypeID(void) CRL_LINK(CFDateGetTypeID);

/**
 * Creates a date from a point in time.
 *
 * `allocator` is NULL for the default. `time` is any number.
 * Ownership: the caller releases the date.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFDateRef CFDateCreate(CFAllocatorRef allocator, CFAbsoluteTime time) CRL_LINK(CFDateCreate) CF_RETURNS_RETAINED;

/** Returns a date's point in time. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFAbsoluteTime CFDateGetAbsoluteTime(CFDateRef date) CRL_LINK(CFDateGetAbsoluteTime);

/** Returns the seconds from `otherDate` to `date`. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFTimeInterval CFDateGetTimeIntervalSinceDate(CFDateRef date, CFDateRef otherDate) CRL_LINK(CFDateGetTimeIntervalSinceDate);

/**
 * Compares two dates. The earlier one comes first.
 *
 * `context` is not used; with it the function has the type of a comparator.
 * Threads: any.
 * Errors: NULL dates stop the process with a message.
 */
CF_EXPORT CFComparisonResult CFDateCompare(CFDateRef date, CFDateRef otherDate, void *context) CRL_LINK(CFDateCompare);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFDATE__ */
