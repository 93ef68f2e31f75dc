/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Collections of values that are all different. Values are pointers, which a set of callbacks may count, compare, hash and describe.
 *
 * A set that cannot be changed may be used by any number of threads. One that can may be used by one thread at a time.
 * Any function that is given NULL where it needs a set, or an object of another type, stops the process with a sentence that names the
 * function. The order of values is not stated.
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
/** A set that can be changed. */
typedef struct __CFSet *CFMutableSetRef;

/** A function that adds a reference to a value and returns what shall be stored. */
typedef const void *(*CFSetRetainCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that gives back a reference to a value. */
typedef void (*CFSetReleaseCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that describes a value; the text is the caller's. */
typedef CFStringRef (*CFSetCopyDescriptionCallBack)(const void *value);
/** A function that tells whether two values are equal. */
typedef Boolean (*CFSetEqualCallBack)(const void *value1, const void *value2);
/** A function that returns the same number for values that are equal. */
typedef CFHashCode (*CFSetHashCallBack)(const void *value);

/** What a set does with its values. Every function may be NULL: not counted, a pointer in hexadecimal, equal when identical. */
typedef struct {
    CFIndex version; /**< 0 */
    CFSetRetainCallBack retain; /**< a value is stored */
    CFSetReleaseCallBack release; /**< a value is taken out */
    CFSetCopyDescriptionCallBack copyDescription; /**< for CFCopyDescription */
    CFSetEqualCallBack equal; /**< for searching */
    CFSetHashCallBack hash; /**< for searching */
} CFSetCallBacks;

/** The callbacks for objects of this library. */
CF_EXPORT const CFSetCallBacks kCFTypeSetCallBacks CRL_LINK(kCFTypeSetCallBacks);
/** Callbacks for values that are texts: a copy of each is kept, so that a later change of the text does not matter. */
CF_EXPORT const CFSetCallBacks kCFCopyStringSetCallBacks CRL_LINK(kCFCopyStringSetCallBacks);

/** A function of the caller's that is called with each value; `context` is what the caller gave with the function. */
typedef void (*CFSetApplierFunction)(const void *value, void *context);

/** Returns the type number of sets. Threads: any thread, signal handlers included. */
CF_EXPORT CFTypeID CFSetGetTypeID(void) CRL_LINK(CFSetGetTypeID);

/**
 * Makes a set of values; of equal ones the first is kept.
 * `allocator` is NULL for the default; `values` has `count` pointers, and may be NULL when that is 0; `callBacks` is copied, and NULL is as
 * a structure of NULLs.
 * Ownership: the caller releases the set; each value is retained by its callback.
 * Threads: any thread.
 * Errors: NULL when `count` is negative, `values` is NULL with a count, or there is no memory.
 */
CF_EXPORT CFSetRef CFSetCreate(CFAllocatorRef allocator, const void **values, CFIndex count, const CFSetCallBacks *callBacks)
    CRL_LINK(CFSetCreate) CF_RETURNS_RETAINED;

/**
 * Makes a set with the same values and callbacks that cannot be changed; it may be `set` itself when that cannot be changed either.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the copy; each value is retained by its callback.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFSetRef CFSetCreateCopy(CFAllocatorRef allocator, CFSetRef set) CRL_LINK(CFSetCreateCopy) CF_RETURNS_RETAINED;

/**
 * Makes an empty set that can be changed.
 * `allocator` is NULL for the default; `capacity` is a hint at its later count, 0 for none; `callBacks` is copied, and NULL is as a
 * structure of NULLs.
 * Ownership: the caller releases the set.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableSetRef CFSetCreateMutable(CFAllocatorRef allocator, CFIndex capacity, const CFSetCallBacks *callBacks)
    CRL_LINK(CFSetCreateMutable) CF_RETURNS_RETAINED;

/**
 * Makes a set with the same values and callbacks that can be changed.
 * `allocator` is NULL for the default; `capacity` is a hint at its later count, 0 for none.
 * Ownership: the caller releases the copy; each value is retained by its callback.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableSetRef CFSetCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFSetRef set)
    CRL_LINK(CFSetCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns the number of values. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT CFIndex CFSetGetCount(CFSetRef set) CRL_LINK(CFSetGetCount);

/** Returns 1 if a value, or an equal one, is there, and 0 if not. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT CFIndex CFSetGetCountOfValue(CFSetRef set, const void *value) CRL_LINK(CFSetGetCountOfValue);

/** Tells whether a value, or an equal one, is there. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT Boolean CFSetContainsValue(CFSetRef set, const void *value) CRL_LINK(CFSetContainsValue);

/**
 * Returns the value in the set that is equal to a given one, or NULL.
 * Ownership: the value is borrowed from the set.
 * Threads: any thread.
 * Errors: a NULL set stops the process with a sentence.
 */
CF_EXPORT const void *CFSetGetValue(CFSetRef set, const void *value) CRL_LINK(CFSetGetValue);

/**
 * Tells whether a value, or an equal one, is there, and which.
 * `candidate` is compared; `value` may be NULL and gets the one that is there.
 * Ownership: the value is borrowed from the set.
 * Threads: any thread.
 * Errors: NULL in the place of the set stops the process with a sentence.
 */
CF_EXPORT Boolean CFSetGetValueIfPresent(CFSetRef set, const void *candidate, const void **value) CRL_LINK(CFSetGetValueIfPresent);

/**
 * Copies all values into a C array.
 * `values` has room for the set's count.
 * Ownership: the values are borrowed from the set.
 * Threads: any thread.
 * Errors: a NULL set stops the process with a sentence.
 */
CF_EXPORT void CFSetGetValues(CFSetRef set, const void **values) CRL_LINK(CFSetGetValues);

/**
 * Calls a function with each value.
 * `context` is handed to the function.
 * Threads: any thread; the function runs on it. It should not change the set; if it does, some values may be left out or come twice.
 * Errors: a NULL set and a NULL function stop the process with a sentence.
 */
CF_EXPORT void CFSetApplyFunction(CFSetRef set, CFSetApplierFunction CF_NOESCAPE applier, void *context) CRL_LINK(CFSetApplyFunction);

/**
 * Adds a value, unless an equal one is there already.
 * `set` can be changed.
 * Ownership: the value is retained by its callback.
 * Threads: one at a time for this set.
 * Errors: a set that cannot be changed stops the process with a sentence; without memory it stays as it is, and that is logged once.
 */
CF_EXPORT void CFSetAddValue(CFMutableSetRef set, const void *value) CRL_LINK(CFSetAddValue);

/**
 * Adds a value, in the place of an equal one if that is there.
 * `set` can be changed.
 * Ownership: the value is retained and an equal one that was there released by their callbacks.
 * Threads: one at a time for this set.
 * Errors: as CFSetAddValue's.
 */
CF_EXPORT void CFSetSetValue(CFMutableSetRef set, const void *value) CRL_LINK(CFSetSetValue);

/**
 * Puts a value in the place of an equal one, and adds none where there is no equal one.
 * `set` can be changed.
 * Ownership: the value is retained and the equal one released by their callbacks.
 * Threads: one at a time for this set.
 * Errors: as CFSetAddValue's.
 */
CF_EXPORT void CFSetReplaceValue(CFMutableSetRef set, const void *value) CRL_LINK(CFSetReplaceValue);

/**
 * Takes out a value, or an equal one, when it is there.
 * `set` can be changed.
 * Ownership: the value is released by its callback, when it has left the set.
 * Threads: one at a time for this set.
 * Errors: as CFSetAddValue's.
 */
CF_EXPORT void CFSetRemoveValue(CFMutableSetRef set, const void *value) CRL_LINK(CFSetRemoveValue);

/**
 * Takes out all values.
 * `set` can be changed.
 * Ownership: the values are released by their callback, when they have left the set.
 * Threads: one at a time for this set.
 * Errors: as CFSetAddValue's.
 */
CF_EXPORT void CFSetRemoveAllValues(CFMutableSetRef set) CRL_LINK(CFSetRemoveAllValues);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFSET__ */
