/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Numbers and truth values as objects. They do not change; any thread may use them. Any function that is given NULL, or an object of
 * another type, stops the process with a message that names the function.
 */

#if !defined(__COREFOUNDATION_CFNUMBER__)
#define __COREFOUNDATION_CFNUMBER__ 1

#include "CFBase.h"

CF_EXTERN_C_BEGIN

#if defined(__swift__)
#define CFBooleanRef CRLBooleanRef_
#define CFNumberRef CRLNumberRef_
#endif

CRL_REFERENCE_TYPE(__CFBoolean, CFBoolean);
CRL_REFERENCE_TYPE(__CFNumber, CFNumber);

/** A truth value. */
typedef const struct __CFBoolean *CFBooleanRef;
/** A number. */
typedef const struct __CFNumber *CFNumberRef;

/** The true value; immortal. */
CF_EXPORT const CFBooleanRef kCFBooleanTrue CRL_LINK(kCFBooleanTrue);
/** The false value; immortal. */
CF_EXPORT const CFBooleanRef kCFBooleanFalse CRL_LINK(kCFBooleanFalse);

/** Returns the type id of truth values. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFBooleanGetTypeID(void) CRL_LINK(CFBooleanGetTypeID);

/** Returns a truth value as a Boolean. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT Boolean CFBooleanGetValue(CFBooleanRef boolean) CRL_LINK(CFBooleanGetValue);

/** The C type of a number that is passed in or requested. */
typedef CF_ENUM(CFIndex, CFNumberType) {
    kCFNumberSInt8Type = 1, /**< SInt8 */
    kCFNumberSInt16Type = 2, /**< SInt16 */
    kCFNumberSInt32Type = 3, /**< SInt32 */
    kCFNumberSInt64Type = 4, /**< SInt64 */
    kCFNumberFloat32Type = 5, /**< Float32 */
    kCFNumberFloat64Type = 6, /**< Float64 */
    kCFNumberCharType = 7, /**< char, signed */
    kCFNumberShortType = 8, /**< short */
    kCFNumberIntType = 9, /**< int */
    kCFNumberLongType = 10, /**< long */
    kCFNumberLongLongType = 11, /**< long long */
    kCFNumberFloatType = 12, /**< float */
    kCFNumberDoubleType = 13, /**< double */
    kCFNumberCFIndexType = 14, /**< CFIndex */
    kCFNumberNSIntegerType = 15, /**< long */
    kCFNumberCGFloatType = 16, /**< double where a pointer has 64 bits, float elsewhere */
    kCFNumberMaxType = 16 /**< The highest value. */
};

/** Positive infinity; immortal. */
CF_EXPORT const CFNumberRef kCFNumberPositiveInfinity CRL_LINK(kCFNumberPositiveInfinity);
/** Negative infinity; immortal. */
CF_EXPORT const CFNumberRef kCFNumberNegativeInfinity CRL_LINK(kCFNumberNegativeInfinity);
/** Not-a-number; immortal. */
CF_EXPORT const CFNumberRef kCFNumberNaN CRL_LINK(kCFNumberNaN);

/** Returns the type id of numbers. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFNumberGetTypeID(void) CRL_LINK(CFNumberGetTypeID);

/**
 * Creates a number.
 *
 * `allocator` is NULL for the default. `value` points to a value of type `type`.
 * Ownership: the caller releases the number.
 * Threads: any.
 * Errors: NULL when the type is unknown, `value` is NULL or there is no memory.
 */
CF_EXPORT CFNumberRef CFNumberCreate(CFAllocatorRef allocator, CFNumberType type, const void *value)
    CRL_LINK(CFNumberCreate) CF_RETURNS_RETAINED;

/** Returns the type in which a number is stored: one of the six whose name has a width. Threads: any. Errors: NULL stops the process. */
CF_EXPORT CFNumberType CFNumberGetType(CFNumberRef number) CRL_LINK(CFNumberGetType);

/** Returns the size in bytes of the type in which a number is stored. Threads: any. Errors: NULL stops the process. */
CF_EXPORT CFIndex CFNumberGetByteSize(CFNumberRef number) CRL_LINK(CFNumberGetByteSize);

/** Returns whether a number is stored as a floating-point number. Threads: any. Errors: NULL stops the process. */
CF_EXPORT Boolean CFNumberIsFloatType(CFNumberRef number) CRL_LINK(CFNumberIsFloatType);

/**
 * Converts a number to a C type, and returns whether nothing was lost.
 *
 * `value` points to a value of type `type`. A number that does not fit gives the nearest possible value; an integer that does not fit into
 * a narrower integer gives its lower bits. An integer up to 255 fits into one byte and one up to 65535 into two, so `value` may also point
 * to a UInt8 or a UInt16, which have no CFNumberType.
 * Threads: any.
 * Errors: false, with nothing stored, when the type is unknown; a NULL number or `value` stops the process with a message.
 */
CF_EXPORT Boolean CFNumberGetValue(CFNumberRef number, CFNumberType type, void *value) CRL_LINK(CFNumberGetValue);

/**
 * Compares two numbers by their exact values, whatever their types. Minus zero comes before zero. A NaN comes after all negative numbers
 * and before all others, and is equal to a NaN.
 *
 * `context` is not used; with it the function has the type of a comparator.
 * Threads: any.
 * Errors: NULL numbers stop the process with a message.
 */
CF_EXPORT CFComparisonResult CFNumberCompare(CFNumberRef number, CFNumberRef otherNumber, void *context) CRL_LINK(CFNumberCompare);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFNUMBER__ */
