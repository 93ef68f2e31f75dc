/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Collections that find a value by a key. Keys and values are pointers, which callbacks may retain, compare, hash and describe.
 *
 * An immutable dictionary may be used by any number of threads. A mutable one may be used by one thread at a time. Any function that is
 * given NULL where it needs a dictionary, or an object of another type, stops the process with a message that names the function. The order
 * of keys is not stated.
 */

#if !defined(__COREFOUNDATION_CFDICTIONARY__)
#define __COREFOUNDATION_CFDICTIONARY__ 1

#include "CFBase.h"

CF_EXTERN_C_BEGIN

#if defined(__swift__)
#define CFDictionaryRef CRLDictionaryRef_
#define CFMutableDictionaryRef CRLMutableDictionaryRef_
#endif

CRL_REFERENCE_TYPE(__CFDictionary, CFDictionary);
CRL_REFERENCE_ALIAS(__CFDictionary, CFMutableDictionary);

/** A dictionary that cannot be changed through this reference. */
typedef const struct __CFDictionary *CFDictionaryRef;
/** A mutable dictionary. */
typedef struct __CFDictionary *CFMutableDictionaryRef;

/** A function that adds a reference to a key or value and returns the pointer to store. */
typedef const void *(*CFDictionaryRetainCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that gives back a reference to a key or value. */
typedef void (*CFDictionaryReleaseCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that describes a key or value; the caller releases the string. */
typedef CFStringRef (*CFDictionaryCopyDescriptionCallBack)(const void *value);
/** A function that tells whether two keys or values are equal. */
typedef Boolean (*CFDictionaryEqualCallBack)(const void *value1, const void *value2);
/** A function that returns the same number for keys that are equal. */
typedef CFHashCode (*CFDictionaryHashCallBack)(const void *value);

/**
 * The callbacks with which a dictionary handles its keys. Any function may be NULL: keys are then not retained, are described by their
 * address, and are equal when identical.
 */
typedef struct {
    CFIndex version; /**< 0. */
    CFDictionaryRetainCallBack retain; /**< Called when a key is stored. */
    CFDictionaryReleaseCallBack release; /**< Called when a key is removed. */
    CFDictionaryCopyDescriptionCallBack copyDescription; /**< Used by CFCopyDescription. */
    CFDictionaryEqualCallBack equal; /**< Used for searching. */
    CFDictionaryHashCallBack hash; /**< Used for searching. */
} CFDictionaryKeyCallBacks;

/**
 * The callbacks with which a dictionary handles its values. Any function may be NULL: values are then not retained, are described by their
 * address, and are equal when identical.
 */
typedef struct {
    CFIndex version; /**< 0. */
    CFDictionaryRetainCallBack retain; /**< Called when a value is stored. */
    CFDictionaryReleaseCallBack release; /**< Called when a value is removed. */
    CFDictionaryCopyDescriptionCallBack copyDescription; /**< Used by CFCopyDescription. */
    CFDictionaryEqualCallBack equal; /**< Used by CFEqual. */
} CFDictionaryValueCallBacks;

/** The callbacks for keys that are objects of this library. */
CF_EXPORT const CFDictionaryKeyCallBacks kCFTypeDictionaryKeyCallBacks CRL_LINK(kCFTypeDictionaryKeyCallBacks);
/** The callbacks for keys that are strings. Each key is copied, so that later changes of the original do not matter. */
CF_EXPORT const CFDictionaryKeyCallBacks kCFCopyStringDictionaryKeyCallBacks CRL_LINK(kCFCopyStringDictionaryKeyCallBacks);
/** The callbacks for values that are objects of this library. */
CF_EXPORT const CFDictionaryValueCallBacks kCFTypeDictionaryValueCallBacks CRL_LINK(kCFTypeDictionaryValueCallBacks);

/** A function that is called with each key and value. `context` is the pointer that the caller passed with the function. */
typedef void (*CFDictionaryApplierFunction)(const void *key, const void *value, void *context);

/** Returns the type id of dictionaries. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFDictionaryGetTypeID(void) CRL_LINK(CFDictionaryGetTypeID);

/**
 * Creates a dictionary from C arrays of keys and values. The first of several equal keys counts.
 *
 * `allocator` is NULL for the default. `keys` and `values` have `count` pointers each, and may be NULL when that is 0; the callbacks are
 * copied, and NULL counts as a structure of NULLs.
 * Ownership: the caller releases the dictionary; each key and value is retained by its callback.
 * Threads: any.
 * Errors: NULL when `count` is negative, a list is NULL and `count` is above 0, or there is no memory.
 */
CF_EXPORT CFDictionaryRef CFDictionaryCreate(CFAllocatorRef allocator, const void **keys, const void **values, CFIndex count,
                                             const CFDictionaryKeyCallBacks *keyCallBacks, const CFDictionaryValueCallBacks *valueCallBacks)
    CRL_LINK(CFDictionaryCreate) CF_RETURNS_RETAINED;

/**
 * Creates an immutable dictionary with the same keys, values and callbacks; it may be `dictionary` itself when that is immutable too.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the copy; each key and value is retained by its callback.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFDictionaryRef CFDictionaryCreateCopy(CFAllocatorRef allocator, CFDictionaryRef dictionary)
    CRL_LINK(CFDictionaryCreateCopy) CF_RETURNS_RETAINED;

/**
 * Creates an empty mutable dictionary.
 *
 * `allocator` is NULL for the default. `capacity` is a hint at its later count, 0 for none; the callbacks are copied, and NULL counts as a
 * structure of NULLs.
 * Ownership: the caller releases the dictionary.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableDictionaryRef CFDictionaryCreateMutable(CFAllocatorRef allocator, CFIndex capacity,
                                                           const CFDictionaryKeyCallBacks *keyCallBacks,
                                                           const CFDictionaryValueCallBacks *valueCallBacks)
    CRL_LINK(CFDictionaryCreateMutable) CF_RETURNS_RETAINED;

/**
 * Creates a mutable dictionary with the same keys, values and callbacks.
 *
 * `allocator` is NULL for the default. `capacity` is a hint at its later count, 0 for none.
 * Ownership: the caller releases the copy; each key and value is retained by its callback.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableDictionaryRef CFDictionaryCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFDictionaryRef dictionary)
    CRL_LINK(CFDictionaryCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns the number of keys. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFIndex CFDictionaryGetCount(CFDictionaryRef dictionary) CRL_LINK(CFDictionaryGetCount);

/**
 * Returns 1 if the dictionary has a key or an equal one, and 0 if not. Threads: any. Errors: NULL stops the process with a message.
 */
CF_EXPORT CFIndex CFDictionaryGetCountOfKey(CFDictionaryRef dictionary, const void *key) CRL_LINK(CFDictionaryGetCountOfKey);

/** Returns how many keys have a value, or an equal one. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFIndex CFDictionaryGetCountOfValue(CFDictionaryRef dictionary, const void *value) CRL_LINK(CFDictionaryGetCountOfValue);

/** Returns whether the dictionary has a key or an equal one. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT Boolean CFDictionaryContainsKey(CFDictionaryRef dictionary, const void *key) CRL_LINK(CFDictionaryContainsKey);

/** Returns whether some key has a value, or an equal one. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT Boolean CFDictionaryContainsValue(CFDictionaryRef dictionary, const void *value) CRL_LINK(CFDictionaryContainsValue);

/**
 * Returns the value of a key; NULL when the key is not there, and when its value is NULL.
 *
 * `key` is any pointer that the key callbacks accept.
 * Ownership: the value is borrowed from the dictionary.
 * Threads: any.
 * Errors: a NULL dictionary stops the process with a message.
 */
CF_EXPORT const void *CFDictionaryGetValue(CFDictionaryRef dictionary, const void *key) CRL_LINK(CFDictionaryGetValue);

/**
 * Returns whether a key is there, and stores its value.
 *
 * `value` may be NULL; it is written only when the key is there.
 * Ownership: the value is borrowed from the dictionary.
 * Threads: any.
 * Errors: a NULL dictionary stops the process with a message.
 */
CF_EXPORT Boolean CFDictionaryGetValueIfPresent(CFDictionaryRef dictionary, const void *key, const void **value)
    CRL_LINK(CFDictionaryGetValueIfPresent);

/**
 * Copies all keys and values into two C arrays, in the same order.
 *
 * `keys` and `values` have room for the dictionary's count, or are NULL.
 * Ownership: keys and values are borrowed from the dictionary.
 * Threads: any.
 * Errors: a NULL dictionary stops the process with a message.
 */
CF_EXPORT void CFDictionaryGetKeysAndValues(CFDictionaryRef dictionary, const void **keys, const void **values)
    CRL_LINK(CFDictionaryGetKeysAndValues);

/**
 * Calls a function with each key and its value.
 *
 * `context` is passed to the function.
 * Threads: any; the function runs on it. It should not change the dictionary; if it does, some keys may be left out or come twice.
 * Errors: a NULL dictionary and a NULL function stop the process with a message.
 */
CF_EXPORT void CFDictionaryApplyFunction(CFDictionaryRef dictionary, CFDictionaryApplierFunction CF_NOESCAPE applier, void *context)
    CRL_LINK(CFDictionaryApplyFunction);

/**
 * Adds a key with its value, unless an equal key is there already.
 *
 * `dictionary` must be mutable.
 * Ownership: key and value are retained by their callbacks.
 * Threads: one at a time for this dictionary.
 * Errors: an immutable dictionary stops the process with a message. Without memory it stays unchanged, and one line is logged.
 */
CF_EXPORT void CFDictionaryAddValue(CFMutableDictionaryRef dictionary, const void *key, const void *value) CRL_LINK(CFDictionaryAddValue);

/**
 * Sets the value of a key: adds the pair, or replaces an equal key and its value.
 *
 * `dictionary` must be mutable.
 * Ownership: the new value and the key are retained by their callbacks; the replaced key and value are released.
 * Threads: one at a time for this dictionary.
 * Errors: like CFDictionaryAddValue.
 */
CF_EXPORT void CFDictionarySetValue(CFMutableDictionaryRef dictionary, const void *key, const void *value) CRL_LINK(CFDictionarySetValue);

/**
 * Replaces an equal key and its value by these; does nothing if there is no equal key.
 *
 * `dictionary` must be mutable.
 * Ownership: like CFDictionarySetValue.
 * Threads: one at a time for this dictionary.
 * Errors: like CFDictionaryAddValue.
 */
CF_EXPORT void CFDictionaryReplaceValue(CFMutableDictionaryRef dictionary, const void *key, const void *value)
    CRL_LINK(CFDictionaryReplaceValue);

/**
 * Removes a key with its value, when it is there.
 *
 * `dictionary` must be mutable.
 * Ownership: key and value are released by their callbacks, after they have left the dictionary.
 * Threads: one at a time for this dictionary.
 * Errors: like CFDictionaryAddValue.
 */
CF_EXPORT void CFDictionaryRemoveValue(CFMutableDictionaryRef dictionary, const void *key) CRL_LINK(CFDictionaryRemoveValue);

/**
 * Removes all keys and values.
 *
 * `dictionary` must be mutable.
 * Ownership: keys and values are released by their callbacks, after they have left the dictionary.
 * Threads: one at a time for this dictionary.
 * Errors: like CFDictionaryAddValue.
 */
CF_EXPORT void CFDictionaryRemoveAllValues(CFMutableDictionaryRef dictionary) CRL_LINK(CFDictionaryRemoveAllValues);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFDICTIONARY__ */
