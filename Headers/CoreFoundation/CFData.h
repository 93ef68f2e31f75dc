/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Bytes.
 *
 * Data that cannot be changed may be used by any number of threads. Data that can may be used by one thread at a time.
 * Any function that is given NULL where it needs data, an object of another type, or a range outside the data, stops the process with a
 * sentence that names the function.
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
/** Bytes that can be changed. */
typedef struct __CFData *CFMutableDataRef;

/** Returns the type number of data. Threads: any thread, signal handlers included. */
CF_EXPORT CFTypeID CFDataGetTypeID(void) CRL_LINK(CFDataGetTypeID);

/**
 * Makes data of a copy of bytes.
 * `allocator` is NULL for the default; `bytes` has `length` bytes, and may be NULL when that is 0.
 * Ownership: the caller releases the data.
 * Threads: any thread.
 * Errors: NULL when `length` is negative, `bytes` is NULL with a length, or there is no memory.
 */
CF_EXPORT CFDataRef CFDataCreate(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length) CRL_LINK(CFDataCreate) CF_RETURNS_RETAINED;

/**
 * Makes data of bytes in their place.
 * `allocator` is NULL for the default; `bytes` has `length` bytes and is not changed while the data lives; `deallocator` frees them, NULL
 * for the default allocator, kCFAllocatorNull when nobody shall.
 * Ownership: the caller releases the data; the bytes are the data's.
 * Threads: any thread.
 * Errors: NULL when `length` is negative, `bytes` is NULL with a length, or there is no memory; then the bytes are the caller's.
 */
CF_EXPORT CFDataRef CFDataCreateWithBytesNoCopy(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFAllocatorRef deallocator)
    CRL_LINK(CFDataCreateWithBytesNoCopy) CF_RETURNS_RETAINED;

/**
 * Makes data with the same bytes that cannot be changed; it may be `data` itself when that cannot be changed either, unless
 * kCFAllocatorNull is the deallocator of its bytes.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the copy.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFDataRef CFDataCreateCopy(CFAllocatorRef allocator, CFDataRef data) CRL_LINK(CFDataCreateCopy) CF_RETURNS_RETAINED;

/**
 * Makes empty data that can be changed.
 * `allocator` is NULL for the default; `capacity` is a hint at its later length in bytes, 0 for none. Up to that length, and 1 GiB, the
 * bytes stay where they are.
 * Ownership: the caller releases the data.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 * Differs from Apple: a capacity is never a limit.
 */
CF_EXPORT CFMutableDataRef CFDataCreateMutable(CFAllocatorRef allocator, CFIndex capacity)
    CRL_LINK(CFDataCreateMutable) CF_RETURNS_RETAINED;

/**
 * Makes data with the same bytes that can be changed.
 * `allocator` is NULL for the default; `capacity` is a hint at its later length in bytes, 0 for none. Up to that length, and 1 GiB, the
 * bytes stay where they are.
 * Ownership: the caller releases the copy.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 * Differs from Apple: a capacity is never a limit.
 */
CF_EXPORT CFMutableDataRef CFDataCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFDataRef data)
    CRL_LINK(CFDataCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns the number of bytes. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT CFIndex CFDataGetLength(CFDataRef data) CRL_LINK(CFDataGetLength);

/**
 * Returns where the bytes are; never NULL.
 * Ownership: the bytes are the data's, and live as long as it does unchanged.
 * Threads: any thread.
 * Errors: NULL stops the process with a sentence.
 */
CF_EXPORT const UInt8 *CFDataGetBytePtr(CFDataRef data) CRL_LINK(CFDataGetBytePtr);

/**
 * Returns where the bytes are, for changing them; NULL where nothing has been stored yet.
 * `data` can be changed.
 * Ownership: the bytes are the data's, and stay there until its length changes.
 * Threads: one at a time for this data.
 * Errors: data that cannot be changed stops the process with a sentence.
 */
CF_EXPORT UInt8 *CFDataGetMutableBytePtr(CFMutableDataRef data) CRL_LINK(CFDataGetMutableBytePtr);

/** How data is searched. */
typedef CF_OPTIONS(CFOptionFlags, CFDataSearchFlags) {
    kCFDataSearchBackwards = 1, /**< from the end */
    kCFDataSearchAnchored = 2 /**< only at the start, or with kCFDataSearchBackwards at the end */
};

/**
 * Finds bytes in a part of data, and returns where they are, or {kCFNotFound, 0}; no bytes are found nowhere.
 * `searchRange` lies within `data`.
 * Threads: any thread.
 * Errors: a range outside the data stops the process with a sentence.
 */
CF_EXPORT CFRange CFDataFind(CFDataRef data, CFDataRef dataToFind, CFRange searchRange, CFDataSearchFlags compareOptions)
    CRL_LINK(CFDataFind);

/**
 * Copies bytes out of data.
 * `range` lies within the data; `buffer` has room for `range.length` bytes.
 * Threads: any thread.
 * Errors: a range outside the data stops the process with a sentence.
 */
CF_EXPORT void CFDataGetBytes(CFDataRef data, CFRange range, UInt8 *buffer) CRL_LINK(CFDataGetBytes);

/**
 * Cuts data, or fills it up with zeros.
 * `data` can be changed; `length` is in bytes.
 * Threads: one at a time for this data.
 * Errors: data that cannot be changed and a negative length stop the process with a sentence; without memory the data stays as it is, and
 * that is logged once.
 */
CF_EXPORT void CFDataSetLength(CFMutableDataRef data, CFIndex length) CRL_LINK(CFDataSetLength);

/**
 * Adds zeros at the end of data.
 * `data` can be changed; a negative `extraLength` takes bytes away.
 * Threads: one at a time for this data.
 * Errors: as CFDataSetLength's.
 */
CF_EXPORT void CFDataIncreaseLength(CFMutableDataRef data, CFIndex extraLength) CRL_LINK(CFDataIncreaseLength);

/**
 * Adds bytes at the end of data.
 * `data` can be changed; `bytes` has `length` bytes, and may lie inside the data.
 * Threads: one at a time for this data.
 * Errors: as CFDataSetLength's.
 */
CF_EXPORT void CFDataAppendBytes(CFMutableDataRef data, const UInt8 *bytes, CFIndex length) CRL_LINK(CFDataAppendBytes);

/**
 * Replaces bytes by others, of which there may be more or fewer.
 * `data` can be changed; `range` lies within it; `bytes` has `length` bytes, and may lie inside the data.
 * Threads: one at a time for this data.
 * Errors: as CFDataSetLength's; a range outside the data stops the process with a sentence.
 */
CF_EXPORT void CFDataReplaceBytes(CFMutableDataRef data, CFRange range, const UInt8 *bytes, CFIndex length) CRL_LINK(CFDataReplaceBytes);

/**
 * Takes bytes out of data.
 * `data` can be changed; `range` lies within it.
 * Threads: one at a time for this data.
 * Errors: data that cannot be changed and a range outside the data stop the process with a sentence.
 */
CF_EXPORT void CFDataDeleteBytes(CFMutableDataRef data, CFRange range) CRL_LINK(CFDataDeleteBytes);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFDATA__ */
