/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Data: sequences of bytes.
 *
 * Immutable data may be used by any number of threads. Mutable data may be used by one thread at a time. Any function that is given NULL
 * where it needs data, an object of another type, or a range outside the data, stops the process with a message that names the function.
 */

#if !defined(__COREFOUNDATION_CFDATA__)
#define __COREFOUNDATION_CFDATA__ 1

#include "CFBase.h"

CF_EXTERN_C_BEGIN

#if defined(__swift__)
#define CFDataRef CRLDataRef_
#define CFMutableDataRef CRLMutableDataRef_
#endif

CRL_REFERENCE_TYPE(__CFData, CFData);
CRL_REFERENCE_ALIAS(__CFData, CFMutableData);

/** Bytes that cannot be changed through this reference. */
typedef const struct __CFData *CFDataRef;
/** Mutable bytes. */
typedef struct __CFData *CFMutableDataRef;

/** Returns the type id of data. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFDataGetTypeID(void) CRL_LINK(CFDataGetTypeID);

/**
 * Creates data with a copy of bytes.
 *
 * `allocator` is NULL for the default. `bytes` has `length` bytes, and may be NULL when that is 0.
 * Ownership: the caller releases the data.
 * Threads: any.
 * Errors: NULL when `length` is negative, `bytes` is NULL and `length` is above 0, or there is no memory.
 */
CF_EXPORT CFDataRef CFDataCreate(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length) CRL_LINK(CFDataCreate) CF_RETURNS_RETAINED;

/**
 * Creates data from bytes without copying them.
 *
 * `allocator` is NULL for the default. `bytes` has `length` bytes and is not changed while the data lives. `deallocator` frees them, NULL
 * for the default allocator, kCFAllocatorNull for none.
 * Ownership: the caller releases the data; the data owns the bytes.
 * Threads: any.
 * Errors: NULL when `length` is negative, `bytes` is NULL and `length` is above 0, or there is no memory; then the bytes are the caller's.
 */
CF_EXPORT CFDataRef CFDataCreateWithBytesNoCopy(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFAllocatorRef deallocator)
    CRL_LINK(CFDataCreateWithBytesNoCopy) CF_RETURNS_RETAINED;

/**
 * Creates immutable data with the same bytes; it may be `data` itself when that is immutable too, unless kCFAllocatorNull is the
 * deallocator of its bytes.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the copy.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFDataRef CFDataCreateCopy(CFAllocatorRef allocator, CFDataRef data) CRL_LINK(CFDataCreateCopy) CF_RETURNS_RETAINED;

/**
 * Creates empty mutable data.
 *
 * `allocator` is NULL for the default. `capacity` is a hint at its later length in bytes, 0 for none. Up to that length, and 1 GiB, the
 * bytes stay where they are.
 * Ownership: the caller releases the data.
 * Threads: any.
 * Errors: NULL when there is no memory.
 * Differs from Apple: a capacity is never a limit.
 */
CF_EXPORT CFMutableDataRef CFDataCreateMutable(CFAllocatorRef allocator, CFIndex capacity)
    CRL_LINK(CFDataCreateMutable) CF_RETURNS_RETAINED;

/**
 * Creates mutable data with the same bytes.
 *
 * `allocator` is NULL for the default. `capacity` is a hint at its later length in bytes, 0 for none. Up to that length, and 1 GiB, the
 * bytes stay where they are.
 * Ownership: the caller releases the copy.
 * Threads: any.
 * Errors: NULL when there is no memory.
 * Differs from Apple: a capacity is never a limit.
 */
CF_EXPORT CFMutableDataRef CFDataCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFDataRef data)
    CRL_LINK(CFDataCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns the number of bytes. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFIndex CFDataGetLength(CFDataRef data) CRL_LINK(CFDataGetLength);

/**
 * Returns a pointer to the bytes; never NULL.
 * Ownership: the data owns the bytes; they are valid until it is changed or freed.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT const UInt8 *CFDataGetBytePtr(CFDataRef data) CRL_LINK(CFDataGetBytePtr);

/**
 * Returns a pointer to the bytes for changing them; NULL if nothing has been stored yet.
 *
 * `data` must be mutable.
 * Ownership: the data owns the bytes; they stay in place until its length changes.
 * Threads: one at a time for this data.
 * Errors: immutable data stops the process with a message.
 */
CF_EXPORT UInt8 *CFDataGetMutableBytePtr(CFMutableDataRef data) CRL_LINK(CFDataGetMutableBytePtr);

/** How data is searched. */
typedef CF_OPTIONS(CFOptionFlags, CFDataSearchFlags) {
    kCFDataSearchBackwards = 1, /**< The search begins at the end. */
    kCFDataSearchAnchored = 2 /**< A match must be at the start, or with kCFDataSearchBackwards at the end. */
};

/**
 * Finds bytes in a part of data and returns their range, or {kCFNotFound, 0}. An empty `dataToFind` is found nowhere.
 *
 * What of `searchRange` is outside `data` does not count.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFRange CFDataFind(CFDataRef data, CFDataRef dataToFind, CFRange searchRange, CFDataSearchFlags compareOptions)
    CRL_LINK(CFDataFind);

/**
 * Copies bytes of data into a buffer.
 *
 * `range` lies within the data. `buffer` has room for `range.length` bytes.
 * Threads: any.
 * Errors: a range outside the data stops the process with a message.
 */
CF_EXPORT void CFDataGetBytes(CFDataRef data, CFRange range, UInt8 *buffer) CRL_LINK(CFDataGetBytes);

/**
 * Changes the length of data: cuts it, or appends zeros.
 *
 * `data` must be mutable. `length` is in bytes.
 * Threads: one at a time for this data.
 * Errors: immutable data and a negative length stop the process with a message. Without memory the data stays unchanged, and one line is
 * logged.
 */
CF_EXPORT void CFDataSetLength(CFMutableDataRef data, CFIndex length) CRL_LINK(CFDataSetLength);

/**
 * Appends zeros to data.
 *
 * `data` must be mutable; a negative `extraLength` removes bytes.
 * Threads: one at a time for this data.
 * Errors: like CFDataSetLength.
 */
CF_EXPORT void CFDataIncreaseLength(CFMutableDataRef data, CFIndex extraLength) CRL_LINK(CFDataIncreaseLength);

/**
 * Appends bytes to data.
 *
 * `data` must be mutable. `bytes` has `length` bytes, and may lie inside the data.
 * Threads: one at a time for this data.
 * Errors: like CFDataSetLength.
 */
CF_EXPORT void CFDataAppendBytes(CFMutableDataRef data, const UInt8 *bytes, CFIndex length) CRL_LINK(CFDataAppendBytes);

/**
 * Replaces bytes with others, whose number may differ.
 *
 * `data` must be mutable. `range` lies within it. `bytes` has `length` bytes, and may lie inside the data.
 * Threads: one at a time for this data.
 * Errors: like CFDataSetLength; a range outside the data stops the process with a message.
 */
CF_EXPORT void CFDataReplaceBytes(CFMutableDataRef data, CFRange range, const UInt8 *bytes, CFIndex length) CRL_LINK(CFDataReplaceBytes);

/**
 * Removes bytes from data.
 *
 * `data` must be mutable. `range` lies within it.
 * Threads: one at a time for this data.
 * Errors: immutable data and a range outside the data stop the process with a message.
 */
CF_EXPORT void CFDataDeleteBytes(CFMutableDataRef data, CFRange range) CRL_LINK(CFDataDeleteBytes);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFDATA__ */
