/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Collections of values that are all different. Values are pointers, which callbacks may retain, compare, hash and describe.
 *
 * An immutable set may be used by any number of threads. A mutable one may be used by one thread at a time. Any function that is given NULL
 * where it needs a set, or an object of another type, stops the process with a message that names the function. The order of values is not
 * stated.
 */

#if !defined(__COREFOUNDATION_CFSET__)
#define __COREFOUNDATION_CFSET__ 1

#include "CFBase.h"

CF_EXTERN_C_BEGIN

#if defined(__swift__)
#define CFSetRef CRLSetRef_
#define CFMutableSetRef CRLMutableSetRef_
#endif

CRL_REFERENCE_TYPE(__CFSet, CFSet);
CRL_REFERENCE_ALIAS(__CFSet, CFMutableSet);

/** A set that cannot be changed through this reference. */
typedef const struct __CFSet *CFSetRef;
/** A mutable set. */
typedef struct __CFSet *CFMutableSetRef;

/** A function that adds a reference to a value and returns the pointer to store. */
typedef const void *(*CFSetRetainCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that gives back a reference to a value. */
typedef void (*CFSetReleaseCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that describes a value; the caller releases the string. */
typedef CFStringRef (*CFSetCopyDescriptionCallBack)(const void *value);
/** A function that tells whether two values are equal. */
typedef Boolean (*CFSetEqualCallBack)(const void *value1, const void *value2);
/** A function that returns the same number for values that are equal. */
typedef CFHashCode (*CFSetHashCallBack)(const void *value);

/**
 * The callbacks with which a set handles its values. Any function may be NULL: values are then not retained, are described by their
 * address, and are equal when identical.
 */
typedef struct {
    CFIndex version; /**< 0. */
    CFSetRetainCallBack retain; /**< Called when a value is stored. */
    CFSetReleaseCallBack release; /**< Called when a value is removed. */
    CFSetCopyDescriptionCallBack copyDescription; /**< Used by CFCopyDescription. */
    CFSetEqualCallBack equal; /**< Used for searching. */
    CFSetHashCallBack hash; /**< Used for searching. */
} CFSetCallBacks;

/** The callbacks for objects of this library. */
CF_EXPORT const CFSetCallBacks kCFTypeSetCallBacks CRL_LINK(kCFTypeSetCallBacks);
/** The callbacks for values that are strings. Each value is copied, so that later changes of the original do not matter. */
CF_EXPORT const CFSetCallBacks kCFCopyStringSetCallBacks CRL_LINK(kCFCopyStringSetCallBacks);

/** A function that is called with each value. `context` is the pointer that the caller passed with the function. */
typedef void (*CFSetApplierFunction)(const void *value, void *context);

/** Returns the type id of sets. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFSetGetTypeID(void) CRL_LINK(CFSetGetTypeID);

/**
 * Creates a set from a C array of values. The first of several equal values is kept.
 *
 * `allocator` is NULL for the default. `values` has `count` pointers, and may be NULL when that is 0. `callBacks` is copied, and NULL
 * counts as a structure of NULLs.
 * Ownership: the caller releases the set; each value is retained by its callback.
 * Threads: any.
 * Errors: NULL when `count` is negative, `values` is NULL and `count` is above 0, or there is no memory.
 */
CF_EXPORT CFSetRef CFSetCreate(CFAllocatorRef allocator, const void **values, CFIndex count, const CFSetCallBacks *callBacks)
    CRL_LINK(CFSetCreate) CF_RETURNS_RETAINED;

/**
 * Creates an immutable set with the same values and callbacks; it may be `set` itself when that is immutable too.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the copy; each value is retained by its callback.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFSetRef CFSetCreateCopy(CFAllocatorRef allocator, CFSetRef set) CRL_LINK(CFSetCreateCopy) CF_RETURNS_RETAINED;

/**
 * Creates an empty mutable set.
 *
 * `allocator` is NULL for the default. `capacity` is a hint at its later count, 0 for none. `callBacks` is copied, and NULL counts as a
 * structure of NULLs.
 * Ownership: the caller releases the set.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableSetRef CFSetCreateMutable(CFAllocatorRef allocator, CFIndex capacity, const CFSetCallBacks *callBacks)
    CRL_LINK(CFSetCreateMutable) CF_RETURNS_RETAINED;

/**
 * Creates a mutable set with the same values and callbacks.
 *
 * `allocator` is NULL for the default. `capacity` is a hint at its later count, 0 for none.
 * Ownership: the caller releases the copy; each value is retained by its callback.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableSetRef CFSetCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFSetRef set)
    CRL_LINK(CFSetCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns the number of values. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFIndex CFSetGetCount(CFSetRef set) CRL_LINK(CFSetGetCount);

/** Returns 1 if the set has a value or an equal one, and 0 if not. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFIndex CFSetGetCountOfValue(CFSetRef set, const void *value) CRL_LINK(CFSetGetCountOfValue);

/** Returns whether the set has a value or an equal one. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT Boolean CFSetContainsValue(CFSetRef set, const void *value) CRL_LINK(CFSetContainsValue);

/**
 * Returns the value in the set that is equal to a given one, or NULL.
 * Ownership: the value is borrowed from the set.
 * Threads: any.
 * Errors: a NULL set stops the process with a message.
 */
CF_EXPORT const void *CFSetGetValue(CFSetRef set, const void *value) CRL_LINK(CFSetGetValue);

/**
 * Returns whether the set has a value or an equal one, and stores the member.
 *
 * `candidate` is the value to look for. `value` receives the member of the set, and may be NULL.
 * Ownership: the value is borrowed from the set.
 * Threads: any.
 * Errors: a NULL set stops the process with a message.
 */
CF_EXPORT Boolean CFSetGetValueIfPresent(CFSetRef set, const void *candidate, const void **value) CRL_LINK(CFSetGetValueIfPresent);

/**
 * Copies all values into a C array.
 *
 * `values` has room for the set's count.
 * Ownership: the values are borrowed from the set.
 * Threads: any.
 * Errors: a NULL set stops the process with a message.
 */
CF_EXPORT void CFSetGetValues(CFSetRef set, const void **values) CRL_LINK(CFSetGetValues);

/**
 * Calls a function with each value.
 *
 * `context` is passed to the function.
 * Threads: any; the function runs on it. It should not change the set; if it does, some values may be left out or come twice.
 * Errors: a NULL set and a NULL function stop the process with a message.
 */
CF_EXPORT void CFSetApplyFunction(CFSetRef set, CFSetApplierFunction CF_NOESCAPE applier, void *context) CRL_LINK(CFSetApplyFunction);

/**
 * Adds a value, unless an equal one is there already.
 *
 * `set` must be mutable.
 * Ownership: the value is retained by its callback.
 * Threads: one at a time for this set.
 * Errors: an immutable set stops the process with a message. Without memory it stays unchanged, and one line is logged.
 */
CF_EXPORT void CFSetAddValue(CFMutableSetRef set, const void *value) CRL_LINK(CFSetAddValue);

/**
 * Adds a value, and replaces an equal one if there is one.
 *
 * `set` must be mutable.
 * Ownership: the value is retained and an equal one that was there released by their callbacks.
 * Threads: one at a time for this set.
 * Errors: like CFSetAddValue.
 */
CF_EXPORT void CFSetSetValue(CFMutableSetRef set, const void *value) CRL_LINK(CFSetSetValue);

/**
 * Replaces an equal value by this one; does nothing if there is no equal value.
 *
 * `set` must be mutable.
 * Ownership: the value is retained and the equal one released by their callbacks.
 * Threads: one at a time for this set.
 * Errors: like CFSetAddValue.
 */
CF_EXPORT void CFSetReplaceValue(CFMutableSetRef set, const void *value) CRL_LINK(CFSetReplaceValue);

/**
 * Removes a value, or an equal one, when it is there.
 *
 * `set` must be mutable.
 * Ownership: the value is released by its callback, after it has left the set.
 * Threads: one at a time for this set.
 * Errors: like CFSetAddValue.
 */
CF_EXPORT void CFSetRemoveValue(CFMutableSetRef set, const void *value) CRL_LINK(CFSetRemoveValue);

/**
 * Removes all values.
 *
 * `set` must be mutable.
 * Ownership: the values are released by their callback, after they have left the set.
 * Threads: one at a time for this set.
 * Errors: like CFSetAddValue.
 */
CF_EXPORT void CFSetRemoveAllValues(CFMutableSetRef set) CRL_LINK(CFSetRemoveAllValues);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFSET__ */
