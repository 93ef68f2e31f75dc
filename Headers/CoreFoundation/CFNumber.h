/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Numbers and truth values as objects. They do not change; any thread may use them.
 * Any function that is given NULL, or an object of another type, stops the process with a sentence that names the function.
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

/** Returns the type number of truth values. Threads: any thread, signal handlers included. */
CF_EXPORT CFTypeID CFBooleanGetTypeID(void) CRL_LINK(CFBooleanGetTypeID);

/** Returns what a truth value says. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT Boolean CFBooleanGetValue(CFBooleanRef boolean) CRL_LINK(CFBooleanGetValue);

/** The C type of a number that is given or asked for. */
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
    kCFNumberMaxType = 16 /**< the last of them */
};

/** The number above all others; immortal. */
CF_EXPORT const CFNumberRef kCFNumberPositiveInfinity CRL_LINK(kCFNumberPositiveInfinity);
/** The number below all others; immortal. */
CF_EXPORT const CFNumberRef kCFNumberNegativeInfinity CRL_LINK(kCFNumberNegativeInfinity);
/** What is no number; immortal. */
CF_EXPORT const CFNumberRef kCFNumberNaN CRL_LINK(kCFNumberNaN);

/** Returns the type number of numbers. Threads: any thread, signal handlers included. */
CF_EXPORT CFTypeID CFNumberGetTypeID(void) CRL_LINK(CFNumberGetTypeID);

/**
 * Makes a number.
 * `allocator` is NULL for the default; `value` points to a value of type `type`.
 * Ownership: the caller releases the number.
 * Threads: any thread.
 * Errors: NULL when the type is unknown, `value` is NULL or there is no memory.
 */
CF_EXPORT CFNumberRef CFNumberCreate(CFAllocatorRef allocator, CFNumberType type, const void *value)
    CRL_LINK(CFNumberCreate) CF_RETURNS_RETAINED;

/** Returns the type that a number is stored as: one of the six with a stated width. Threads: any thread. Errors: NULL stops the process. */
CF_EXPORT CFNumberType CFNumberGetType(CFNumberRef number) CRL_LINK(CFNumberGetType);

/** Returns the size in bytes of the type that a number is stored as. Threads: any thread. Errors: NULL stops the process. */
CF_EXPORT CFIndex CFNumberGetByteSize(CFNumberRef number) CRL_LINK(CFNumberGetByteSize);

/** Tells whether a number is stored as a floating-point number. Threads: any thread. Errors: NULL stops the process. */
CF_EXPORT Boolean CFNumberIsFloatType(CFNumberRef number) CRL_LINK(CFNumberIsFloatType);

/**
 * Stores a number as a C type, and tells whether nothing was lost.
 * `value` points to a value of type `type`; it gets the nearest possible value when the number does not fit, its lower bits when an integer
 * does not fit into a narrower one. An integer up to 255 fits one byte, and one up to 65535 two: `value` may then be a UInt8 or a UInt16,
 * which have no types of their own here.
 * Threads: any thread.
 * Errors: false, with nothing stored, when the type is unknown; a NULL number or `value` stops the process with a sentence.
 */
CF_EXPORT Boolean CFNumberGetValue(CFNumberRef number, CFNumberType type, void *value) CRL_LINK(CFNumberGetValue);

/**
 * Compares two numbers by their exact values, whatever they are stored as. Minus zero comes before zero; a NaN comes after what is negative
 * and before the rest, and is equal to a NaN.
 * `context` is not used: the function fits where a comparator is asked for.
 * Threads: any thread.
 * Errors: NULL numbers stop the process with a sentence.
 */
CF_EXPORT CFComparisonResult CFNumberCompare(CFNumberRef number, CFNumberRef otherNumber, void *context) CRL_LINK(CFNumberCompare);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFNUMBER__ */
