/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Numbers of 128 bits that are unique: names for what nobody else should name alike, such as a message port that answers come to.
 * They do not change; any thread may use these functions and objects.
 */

#if !defined(__COREFOUNDATION_CFUUID__)
#define __COREFOUNDATION_CFUUID__ 1

#include "CFBase.h"
#include "CFString.h"

#if defined(__swift__)
#define CFUUIDRef CRLUUIDRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFUUID, CFUUID);

/** A unique number. Those with the same bytes are equal. */
typedef const struct __CFUUID *CFUUIDRef;

/** The bytes, as the text has them from left to right. */
typedef struct {
    UInt8 byte0; /**< the first */
    UInt8 byte1; /**< byte 1 */
    UInt8 byte2; /**< byte 2 */
    UInt8 byte3; /**< byte 3 */
    UInt8 byte4; /**< byte 4 */
    UInt8 byte5; /**< byte 5 */
    UInt8 byte6; /**< byte 6 */
    UInt8 byte7; /**< byte 7 */
    UInt8 byte8; /**< byte 8 */
    UInt8 byte9; /**< byte 9 */
    UInt8 byte10; /**< byte 10 */
    UInt8 byte11; /**< byte 11 */
    UInt8 byte12; /**< byte 12 */
    UInt8 byte13; /**< byte 13 */
    UInt8 byte14; /**< byte 14 */
    UInt8 byte15; /**< the last */
} CFUUIDBytes;

/** Returns the type number of unique numbers. Threads: any thread, signal handlers included. */
CF_EXPORT CFTypeID CFUUIDGetTypeID(void) CRL_LINK(CFUUIDGetTypeID);

/**
 * Makes a number that nobody has had before: 122 random bits, version 4 of RFC 9562.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases it.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFUUIDRef CFUUIDCreate(CFAllocatorRef allocator) CRL_LINK(CFUUIDCreate) CF_RETURNS_RETAINED;

/**
 * Makes a number of 16 bytes.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases it.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFUUIDRef CFUUIDCreateWithBytes(CFAllocatorRef allocator, UInt8 byte0, UInt8 byte1, UInt8 byte2, UInt8 byte3, UInt8 byte4,
                                          UInt8 byte5, UInt8 byte6, UInt8 byte7, UInt8 byte8, UInt8 byte9, UInt8 byte10, UInt8 byte11,
                                          UInt8 byte12, UInt8 byte13, UInt8 byte14, UInt8 byte15)
    CRL_LINK(CFUUIDCreateWithBytes) CF_RETURNS_RETAINED;

/**
 * Makes a number of its bytes.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases it.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFUUIDRef CFUUIDCreateFromUUIDBytes(CFAllocatorRef allocator, CFUUIDBytes bytes)
    CRL_LINK(CFUUIDCreateFromUUIDBytes) CF_RETURNS_RETAINED;

/**
 * Makes a number of a text such as "68753A44-4D6F-1226-9C60-0050E4C00067"; small letters do as well.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases it.
 * Threads: any thread.
 * Errors: NULL when the text has another form, or there is no memory; NULL in its place stops the process with a sentence.
 */
CF_EXPORT CFUUIDRef CFUUIDCreateFromString(CFAllocatorRef allocator, CFStringRef text)
    CRL_LINK(CFUUIDCreateFromString) CF_RETURNS_RETAINED;

/**
 * Makes a text of a number, with capital letters.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the text.
 * Threads: any thread.
 * Errors: NULL when there is no memory; NULL in the place of the number stops the process with a sentence.
 */
CF_EXPORT CFStringRef CFUUIDCreateString(CFAllocatorRef allocator, CFUUIDRef uuid) CRL_LINK(CFUUIDCreateString) CF_RETURNS_RETAINED;

/** Returns the bytes of a number. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT CFUUIDBytes CFUUIDGetUUIDBytes(CFUUIDRef uuid) CRL_LINK(CFUUIDGetUUIDBytes);

/**
 * Returns the one object for 16 bytes, the same one each time; for names that are part of an interface.
 * `allocator` is not used.
 * Ownership: the object is immortal.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFUUIDRef CFUUIDGetConstantUUIDWithBytes(CFAllocatorRef allocator, UInt8 byte0, UInt8 byte1, UInt8 byte2, UInt8 byte3,
                                                   UInt8 byte4, UInt8 byte5, UInt8 byte6, UInt8 byte7, UInt8 byte8, UInt8 byte9,
                                                   UInt8 byte10, UInt8 byte11, UInt8 byte12, UInt8 byte13, UInt8 byte14, UInt8 byte15)
    CRL_LINK(CFUUIDGetConstantUUIDWithBytes) CF_RETURNS_NOT_RETAINED;

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFUUID__ */
