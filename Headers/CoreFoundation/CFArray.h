/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Ordered collections of pointers, which callbacks may retain, compare and describe.
 *
 * An immutable array may be used by any number of threads. A mutable one may be used by one thread at a time. Any function that is given
 * NULL where it needs an array, an object of another type, or an index outside the array, stops the process with a message that names the
 * function.
 */

#if !defined(__COREFOUNDATION_CFARRAY__)
#define __COREFOUNDATION_CFARRAY__ 1

#include "CFBase.h"

CF_EXTERN_C_BEGIN

#if defined(__swift__)
#define CFArrayRef CRLArrayRef_
#define CFMutableArrayRef CRLMutableArrayRef_
#endif

CRL_REFERENCE_TYPE(__CFArray, CFArray);
CRL_REFERENCE_ALIAS(__CFArray, CFMutableArray);

/** An array that cannot be changed through this reference. */
typedef const struct __CFArray *CFArrayRef;
/** A mutable array. */
typedef struct __CFArray *CFMutableArrayRef;

/** A function that adds a reference to a value and returns the pointer to store. */
typedef const void *(*CFArrayRetainCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that gives back a reference to a value. */
typedef void (*CFArrayReleaseCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that describes a value; the caller releases the string. */
typedef CFStringRef (*CFArrayCopyDescriptionCallBack)(const void *value);
/** A function that tells whether two values are equal. */
typedef Boolean (*CFArrayEqualCallBack)(const void *value1, const void *value2);

/**
 * The callbacks with which an array handles its values. Any function may be NULL: values are then not retained, are described by their
 * address, and are equal when identical.
 */
typedef struct {
    CFIndex version; /**< 0. */
    CFArrayRetainCallBack retain; /**< Called when a value is stored. */
    CFArrayReleaseCallBack release; /**< Called when a value is removed. */
    CFArrayCopyDescriptionCallBack copyDescription; /**< Used by CFCopyDescription. */
    CFArrayEqualCallBack equal; /**< Used for searching and by CFEqual. */
} CFArrayCallBacks;

/** The callbacks for objects of this library: CFRetain, CFRelease, CFCopyDescription, CFEqual. */
CF_EXPORT const CFArrayCallBacks kCFTypeArrayCallBacks CRL_LINK(kCFTypeArrayCallBacks);

/** A function that is called with each value. `context` is the pointer that the caller passed with the function. */
typedef void (*CFArrayApplierFunction)(const void *value, void *context);

/** Returns the type id of arrays. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFArrayGetTypeID(void) CRL_LINK(CFArrayGetTypeID);

/**
 * Creates an array from a C array of values.
 *
 * `allocator` is NULL for the default. `values` has `count` pointers, and may be NULL when that is 0. `callBacks` is copied, and NULL
 * counts as a structure of NULLs.
 * Ownership: the caller releases the array; each value is retained by its callback.
 * Threads: any.
 * Errors: NULL when `count` is negative, `values` is NULL and `count` is above 0, or there is no memory.
 */
CF_EXPORT CFArrayRef CFArrayCreate(CFAllocatorRef allocator, const void **values, CFIndex count, const CFArrayCallBacks *callBacks)
    CRL_LINK(CFArrayCreate) CF_RETURNS_RETAINED;

/**
 * Creates an immutable array with the same values and callbacks; it may be `array` itself when that is immutable too. `allocator` is NULL
 * for the default.
 * Ownership: the caller releases the copy; each value is retained by its callback.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFArrayRef CFArrayCreateCopy(CFAllocatorRef allocator, CFArrayRef array) CRL_LINK(CFArrayCreateCopy) CF_RETURNS_RETAINED;

/**
 * Creates an empty mutable array.
 *
 * `allocator` is NULL for the default. `capacity` is a hint at its later count, 0 for none. `callBacks` is copied, and NULL counts as a
 * structure of NULLs.
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableArrayRef CFArrayCreateMutable(CFAllocatorRef allocator, CFIndex capacity, const CFArrayCallBacks *callBacks)
    CRL_LINK(CFArrayCreateMutable) CF_RETURNS_RETAINED;

/**
 * Creates a mutable array with the same values and callbacks.
 *
 * `allocator` is NULL for the default. `capacity` is a hint at its later count, 0 for none.
 * Ownership: the caller releases the copy; each value is retained by its callback.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableArrayRef CFArrayCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFArrayRef array)
    CRL_LINK(CFArrayCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns the number of values. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFIndex CFArrayGetCount(CFArrayRef array) CRL_LINK(CFArrayGetCount);

/**
 * Returns the value at an index.
 *
 * `index` is at least 0 and less than the count.
 * Ownership: the value is borrowed from the array.
 * Threads: any.
 * Errors: an index outside the array stops the process with a message.
 */
CF_EXPORT const void *CFArrayGetValueAtIndex(CFArrayRef array, CFIndex index) CRL_LINK(CFArrayGetValueAtIndex);

/**
 * Copies values into a C array.
 *
 * `range` lies within the array. `values` has room for `range.length` pointers.
 * Ownership: the values are borrowed from the array.
 * Threads: any.
 * Errors: a range outside the array stops the process with a message.
 */
CF_EXPORT void CFArrayGetValues(CFArrayRef array, CFRange range, const void **values) CRL_LINK(CFArrayGetValues);

/**
 * Returns whether a value, or an equal one, occurs in a part of the array.
 *
 * `range` lies within the array.
 * Threads: any.
 * Errors: a range outside the array stops the process with a message.
 */
CF_EXPORT Boolean CFArrayContainsValue(CFArrayRef array, CFRange range, const void *value) CRL_LINK(CFArrayContainsValue);

/**
 * Returns the first index in a part of the array where a value, or an equal one, is, or kCFNotFound.
 *
 * `range` lies within the array.
 * Threads: any.
 * Errors: a range outside the array stops the process with a message.
 */
CF_EXPORT CFIndex CFArrayGetFirstIndexOfValue(CFArrayRef array, CFRange range, const void *value) CRL_LINK(CFArrayGetFirstIndexOfValue);

/**
 * Returns the last index in a part of the array where a value, or an equal one, is, or kCFNotFound.
 *
 * `range` lies within the array.
 * Threads: any.
 * Errors: a range outside the array stops the process with a message.
 */
CF_EXPORT CFIndex CFArrayGetLastIndexOfValue(CFArrayRef array, CFRange range, const void *value) CRL_LINK(CFArrayGetLastIndexOfValue);

/**
 * Counts how often a value, or an equal one, occurs in a part of the array.
 *
 * `range` lies within the array.
 * Threads: any.
 * Errors: a range outside the array stops the process with a message.
 */
CF_EXPORT CFIndex CFArrayGetCountOfValue(CFArrayRef array, CFRange range, const void *value) CRL_LINK(CFArrayGetCountOfValue);

/**
 * Finds the place of a value in a sorted part of the array by binary search: the first index whose value does not come before it, or the
 * end of the range. `range` lies within the array, which is sorted there by `comparator`. `context` is passed to the comparator.
 * Threads: any; the comparator runs on it.
 * Errors: a range outside the array and a NULL comparator stop the process with a message.
 */
CF_EXPORT CFIndex CFArrayBSearchValues(CFArrayRef array, CFRange range, const void *value, CFComparatorFunction CF_NOESCAPE comparator,
                                       void *context) CRL_LINK(CFArrayBSearchValues);

/**
 * Calls a function with each value of a part of the array, in order.
 *
 * `range` lies within the array. `context` is passed to the function.
 * Threads: any; the function runs on it. It should not change the array; if it makes it shorter, the calls end early.
 * Errors: a range outside the array and a NULL function stop the process with a message.
 */
CF_EXPORT void CFArrayApplyFunction(CFArrayRef array, CFRange range, CFArrayApplierFunction CF_NOESCAPE applier, void *context)
    CRL_LINK(CFArrayApplyFunction);

/**
 * Appends a value to the array.
 *
 * `array` must be mutable.
 * Ownership: the value is retained by its callback.
 * Threads: one at a time for this array.
 * Errors: an immutable array stops the process with a message. Without memory the array stays unchanged, and one line is logged.
 */
CF_EXPORT void CFArrayAppendValue(CFMutableArrayRef array, const void *value) CRL_LINK(CFArrayAppendValue);

/**
 * Inserts a value before the value at an index.
 *
 * `array` must be mutable. `index` is at least 0 and not greater than the count.
 * Ownership: the value is retained by its callback.
 * Threads: one at a time for this array.
 * Errors: like CFArrayAppendValue; an index outside stops the process with a message.
 */
CF_EXPORT void CFArrayInsertValueAtIndex(CFMutableArrayRef array, CFIndex index, const void *value) CRL_LINK(CFArrayInsertValueAtIndex);

/**
 * Replaces the value at an index, or appends a value if the index is the count.
 *
 * `array` must be mutable. `index` is at least 0 and not greater than the count.
 * Ownership: the new value is retained and the old one released by their callbacks.
 * Threads: one at a time for this array.
 * Errors: like CFArrayInsertValueAtIndex.
 */
CF_EXPORT void CFArraySetValueAtIndex(CFMutableArrayRef array, CFIndex index, const void *value) CRL_LINK(CFArraySetValueAtIndex);

/**
 * Swaps the values at two indices.
 *
 * `array` must be mutable; both indices are at least 0 and less than the count.
 * Threads: one at a time for this array.
 * Errors: an immutable array and an index outside stop the process with a message.
 */
CF_EXPORT void CFArrayExchangeValuesAtIndices(CFMutableArrayRef array, CFIndex index1, CFIndex index2)
    CRL_LINK(CFArrayExchangeValuesAtIndices);

/**
 * Replaces a part of the array with other values, whose number may differ.
 *
 * `array` must be mutable. `range` lies within it. `newValues` has `newCount` values.
 * Ownership: the new values are retained and the old ones released by their callbacks.
 * Threads: one at a time for this array.
 * Errors: like CFArrayAppendValue; a range outside, a negative count, and NULL with a count above 0 stop the process with a message.
 */
CF_EXPORT void CFArrayReplaceValues(CFMutableArrayRef array, CFRange range, const void **newValues, CFIndex newCount)
    CRL_LINK(CFArrayReplaceValues);

/**
 * Appends a part of another array.
 *
 * `array` must be mutable. `otherRange` lies within `otherArray`, which may be the same array.
 * Ownership: the values are retained by the callback of `array`.
 * Threads: one at a time for this array.
 * Errors: like CFArrayAppendValue; a range outside stops the process with a message.
 */
CF_EXPORT void CFArrayAppendArray(CFMutableArrayRef array, CFArrayRef otherArray, CFRange otherRange) CRL_LINK(CFArrayAppendArray);

/**
 * Removes the value at an index.
 *
 * `array` must be mutable. `index` is at least 0 and less than the count.
 * Ownership: the value is released by its callback, after it has left the array.
 * Threads: one at a time for this array.
 * Errors: an immutable array and an index outside stop the process with a message.
 */
CF_EXPORT void CFArrayRemoveValueAtIndex(CFMutableArrayRef array, CFIndex index) CRL_LINK(CFArrayRemoveValueAtIndex);

/**
 * Removes all values.
 *
 * `array` must be mutable.
 * Ownership: the values are released by their callback, after they have left the array.
 * Threads: one at a time for this array.
 * Errors: an immutable array stops the process with a message.
 */
CF_EXPORT void CFArrayRemoveAllValues(CFMutableArrayRef array) CRL_LINK(CFArrayRemoveAllValues);

/**
 * Sorts a part of the array; equal values keep their order.
 *
 * `array` must be mutable. `range` lies within it. `context` is passed to the comparator.
 * Threads: one at a time for this array; the comparator runs on it and must not change the array.
 * Errors: an immutable array, a range outside and a NULL comparator stop the process with a message. Without memory the order stays
 * unchanged, and one line is logged.
 */
CF_EXPORT void CFArraySortValues(CFMutableArrayRef array, CFRange range, CFComparatorFunction CF_NOESCAPE comparator, void *context)
    CRL_LINK(CFArraySortValues);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFARRAY__ */
