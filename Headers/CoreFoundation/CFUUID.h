/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Universally unique identifiers: numbers of 128 bits that serve as names nobody else uses, such as the name of a message port for replies.
 * They are immutable; any thread may use these functions and objects.
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

/** A unique identifier. Identifiers with the same bytes are equal. */
typedef const struct __CFUUID *CFUUIDRef;

/** The bytes of an identifier, in the order in which its string shows them from left to right. */
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

/** Returns the type id of unique identifiers. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFUUIDGetTypeID(void) CRL_LINK(CFUUIDGetTypeID);

/**
 * Creates a new identifier from 122 random bits: version 4 of RFC 9562.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases it.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFUUIDRef CFUUIDCreate(CFAllocatorRef allocator) CRL_LINK(CFUUIDCreate) CF_RETURNS_RETAINED;

/**
 * Creates an identifier from 16 bytes.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases it.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFUUIDRef CFUUIDCreateWithBytes(CFAllocatorRef allocator, UInt8 byte0, UInt8 byte1, UInt8 byte2, UInt8 byte3, UInt8 byte4,
                                          UInt8 byte5, UInt8 byte6, UInt8 byte7, UInt8 byte8, UInt8 byte9, UInt8 byte10, UInt8 byte11,
                                          UInt8 byte12, UInt8 byte13, UInt8 byte14, UInt8 byte15)
    CRL_LINK(CFUUIDCreateWithBytes) CF_RETURNS_RETAINED;

/**
 * Creates an identifier from a structure of bytes.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases it.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFUUIDRef CFUUIDCreateFromUUIDBytes(CFAllocatorRef allocator, CFUUIDBytes bytes)
    CRL_LINK(CFUUIDCreateFromUUIDBytes) CF_RETURNS_RETAINED;

/**
 * Creates an identifier from a string such as "68753A44-4D6F-1226-9C60-0050E4C00067". Lower case is accepted too.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases it.
 * Threads: any.
 * Errors: NULL when the string has another form, or there is no memory. A NULL `text` stops the process with a message.
 */
CF_EXPORT CFUUIDRef CFUUIDCreateFromString(CFAllocatorRef allocator, CFStringRef text)
    CRL_LINK(CFUUIDCreateFromString) CF_RETURNS_RETAINED;

/**
 * Creates a string from an identifier, in upper case.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no memory. A NULL `uuid` stops the process with a message.
 */
CF_EXPORT CFStringRef CFUUIDCreateString(CFAllocatorRef allocator, CFUUIDRef uuid) CRL_LINK(CFUUIDCreateString) CF_RETURNS_RETAINED;

/** Returns the bytes of an identifier. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFUUIDBytes CFUUIDGetUUIDBytes(CFUUIDRef uuid) CRL_LINK(CFUUIDGetUUIDBytes);

/**
 * Returns the constant identifier for 16 bytes, the same object each time. It serves identifiers that are part of an interface.
 *
 * `allocator` is not used.
 * Ownership: the object is immortal.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFUUIDRef CFUUIDGetConstantUUIDWithBytes(CFAllocatorRef allocator, UInt8 byte0, UInt8 byte1, UInt8 byte2, UInt8 byte3,
                                                   UInt8 byte4, UInt8 byte5, UInt8 byte6, UInt8 byte7, UInt8 byte8, UInt8 byte9,
                                                   UInt8 byte10, UInt8 byte11, UInt8 byte12, UInt8 byte13, UInt8 byte14, UInt8 byte15)
    CRL_LINK(CFUUIDGetConstantUUIDWithBytes) CF_RETURNS_NOT_RETAINED;

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFUUID__ */
