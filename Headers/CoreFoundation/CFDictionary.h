/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Collections that find a value by a key. Keys and values are pointers, which sets of callbacks may count, compare, hash and describe.
 *
 * A dictionary that cannot be changed may be used by any number of threads. One that can may be used by one thread at a time.
 * Any function that is given NULL where it needs a dictionary, or an object of another type, stops the process with a sentence that names
 * the function. The order of keys is not stated.
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
/** A dictionary that can be changed. */
typedef struct __CFDictionary *CFMutableDictionaryRef;

/** A function that adds a reference to a key or value and returns what shall be stored. */
typedef const void *(*CFDictionaryRetainCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that gives back a reference to a key or value. */
typedef void (*CFDictionaryReleaseCallBack)(CFAllocatorRef allocator, const void *value);
/** A function that describes a key or value; the text is the caller's. */
typedef CFStringRef (*CFDictionaryCopyDescriptionCallBack)(const void *value);
/** A function that tells whether two keys or values are equal. */
typedef Boolean (*CFDictionaryEqualCallBack)(const void *value1, const void *value2);
/** A function that returns the same number for keys that are equal. */
typedef CFHashCode (*CFDictionaryHashCallBack)(const void *value);

/** What a dictionary does with its keys. Every function may be NULL: not counted, a pointer in hexadecimal, equal when identical. */
typedef struct {
    CFIndex version; /**< 0 */
    CFDictionaryRetainCallBack retain; /**< a key is stored */
    CFDictionaryReleaseCallBack release; /**< a key is taken out */
    CFDictionaryCopyDescriptionCallBack copyDescription; /**< for CFCopyDescription */
    CFDictionaryEqualCallBack equal; /**< for searching */
    CFDictionaryHashCallBack hash; /**< for searching */
} CFDictionaryKeyCallBacks;

/** What a dictionary does with its values. Every function may be NULL: not counted, a pointer in hexadecimal, equal when identical. */
typedef struct {
    CFIndex version; /**< 0 */
    CFDictionaryRetainCallBack retain; /**< a value is stored */
    CFDictionaryReleaseCallBack release; /**< a value is taken out */
    CFDictionaryCopyDescriptionCallBack copyDescription; /**< for CFCopyDescription */
    CFDictionaryEqualCallBack equal; /**< for CFEqual */
} CFDictionaryValueCallBacks;

/** The callbacks for keys that are objects of this library. */
CF_EXPORT const CFDictionaryKeyCallBacks kCFTypeDictionaryKeyCallBacks CRL_LINK(kCFTypeDictionaryKeyCallBacks);
/** The callbacks for keys that are texts; each is copied, so that later changes of it do no harm. */
CF_EXPORT const CFDictionaryKeyCallBacks kCFCopyStringDictionaryKeyCallBacks CRL_LINK(kCFCopyStringDictionaryKeyCallBacks);
/** The callbacks for values that are objects of this library. */
CF_EXPORT const CFDictionaryValueCallBacks kCFTypeDictionaryValueCallBacks CRL_LINK(kCFTypeDictionaryValueCallBacks);

/** A function of the caller's that is called with each key and value; `context` is what the caller gave with the function. */
typedef void (*CFDictionaryApplierFunction)(const void *key, const void *value, void *context);

/** Returns the type number of dictionaries. Threads: any thread, signal handlers included. */
CF_EXPORT CFTypeID CFDictionaryGetTypeID(void) CRL_LINK(CFDictionaryGetTypeID);

/**
 * Makes a dictionary of keys and values; of equal keys the first one counts.
 * `allocator` is NULL for the default; `keys` and `values` have `count` pointers each, and may be NULL when that is 0; the callbacks are
 * copied, and NULL is as a structure of NULLs.
 * Ownership: the caller releases the dictionary; each key and value is retained by its callback.
 * Threads: any thread.
 * Errors: NULL when `count` is negative, a list is NULL with a count, or there is no memory.
 */
CF_EXPORT CFDictionaryRef CFDictionaryCreate(CFAllocatorRef allocator, const void **keys, const void **values, CFIndex count,
                                             const CFDictionaryKeyCallBacks *keyCallBacks, const CFDictionaryValueCallBacks *valueCallBacks)
    CRL_LINK(CFDictionaryCreate) CF_RETURNS_RETAINED;

/**
 * Makes a dictionary with the same keys, values and callbacks that cannot be changed; it may be `dictionary` itself when that cannot be
 * changed either.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the copy; each key and value is retained by its callback.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFDictionaryRef CFDictionaryCreateCopy(CFAllocatorRef allocator, CFDictionaryRef dictionary)
    CRL_LINK(CFDictionaryCreateCopy) CF_RETURNS_RETAINED;

/**
 * Makes an empty dictionary that can be changed.
 * `allocator` is NULL for the default; `capacity` is a hint at its later count, 0 for none; the callbacks are copied, and NULL is as a
 * structure of NULLs.
 * Ownership: the caller releases the dictionary.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableDictionaryRef CFDictionaryCreateMutable(CFAllocatorRef allocator, CFIndex capacity,
                                                           const CFDictionaryKeyCallBacks *keyCallBacks,
                                                           const CFDictionaryValueCallBacks *valueCallBacks)
    CRL_LINK(CFDictionaryCreateMutable) CF_RETURNS_RETAINED;

/**
 * Makes a dictionary with the same keys, values and callbacks that can be changed.
 * `allocator` is NULL for the default; `capacity` is a hint at its later count, 0 for none.
 * Ownership: the caller releases the copy; each key and value is retained by its callback.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableDictionaryRef CFDictionaryCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFDictionaryRef dictionary)
    CRL_LINK(CFDictionaryCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns the number of keys. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT CFIndex CFDictionaryGetCount(CFDictionaryRef dictionary) CRL_LINK(CFDictionaryGetCount);

/**
 * Returns 1 when a key, or an equal one, is there, and 0 otherwise. Threads: any thread. Errors: NULL stops the process with a sentence.
 */
CF_EXPORT CFIndex CFDictionaryGetCountOfKey(CFDictionaryRef dictionary, const void *key) CRL_LINK(CFDictionaryGetCountOfKey);

/** Returns how many keys have a value, or an equal one. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT CFIndex CFDictionaryGetCountOfValue(CFDictionaryRef dictionary, const void *value) CRL_LINK(CFDictionaryGetCountOfValue);

/** Tells whether a key, or an equal one, is there. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT Boolean CFDictionaryContainsKey(CFDictionaryRef dictionary, const void *key) CRL_LINK(CFDictionaryContainsKey);

/** Tells whether some key has a value, or an equal one. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT Boolean CFDictionaryContainsValue(CFDictionaryRef dictionary, const void *value) CRL_LINK(CFDictionaryContainsValue);

/**
 * Returns the value of a key; NULL when the key is not there, and when its value is NULL.
 * `key` is any pointer that the key callbacks understand.
 * Ownership: the value is borrowed from the dictionary.
 * Threads: any thread.
 * Errors: a NULL dictionary stops the process with a sentence.
 */
CF_EXPORT const void *CFDictionaryGetValue(CFDictionaryRef dictionary, const void *key) CRL_LINK(CFDictionaryGetValue);

/**
 * Tells whether a key is there, and stores its value.
 * `value` may be NULL; it is written only when the key is there.
 * Ownership: the value is borrowed from the dictionary.
 * Threads: any thread.
 * Errors: a NULL dictionary stops the process with a sentence.
 */
CF_EXPORT Boolean CFDictionaryGetValueIfPresent(CFDictionaryRef dictionary, const void *key, const void **value)
    CRL_LINK(CFDictionaryGetValueIfPresent);

/**
 * Copies all keys and values into two C arrays, in the same order.
 * `keys` and `values` have room for the dictionary's count, or are NULL.
 * Ownership: keys and values are borrowed from the dictionary.
 * Threads: any thread.
 * Errors: a NULL dictionary stops the process with a sentence.
 */
CF_EXPORT void CFDictionaryGetKeysAndValues(CFDictionaryRef dictionary, const void **keys, const void **values)
    CRL_LINK(CFDictionaryGetKeysAndValues);

/**
 * Calls a function with each key and its value.
 * `context` is handed to the function.
 * Threads: any thread; the function runs on it. It should not change the dictionary; if it does, some keys may be left out or come twice.
 * Errors: a NULL dictionary and a NULL function stop the process with a sentence.
 */
CF_EXPORT void CFDictionaryApplyFunction(CFDictionaryRef dictionary, CFDictionaryApplierFunction CF_NOESCAPE applier, void *context)
    CRL_LINK(CFDictionaryApplyFunction);

/**
 * Adds a key with its value, unless an equal key is there already.
 * `dictionary` can be changed.
 * Ownership: key and value are retained by their callbacks.
 * Threads: one at a time for this dictionary.
 * Errors: a dictionary that cannot be changed stops the process with a sentence; without memory it stays as it is, and that is logged once.
 */
CF_EXPORT void CFDictionaryAddValue(CFMutableDictionaryRef dictionary, const void *key, const void *value) CRL_LINK(CFDictionaryAddValue);

/**
 * Replaces the value of a key, and an equal key by this one, or adds the key with its value.
 * `dictionary` can be changed.
 * Ownership: the new value and the key are retained by their callbacks; the old value and the key that is replaced are released.
 * Threads: one at a time for this dictionary.
 * Errors: as CFDictionaryAddValue's.
 */
CF_EXPORT void CFDictionarySetValue(CFMutableDictionaryRef dictionary, const void *key, const void *value) CRL_LINK(CFDictionarySetValue);

/**
 * Replaces the value of a key that is there, and an equal key by this one, and does nothing for a key that is not there.
 * `dictionary` can be changed.
 * Ownership: as CFDictionarySetValue's.
 * Threads: one at a time for this dictionary.
 * Errors: as CFDictionaryAddValue's.
 */
CF_EXPORT void CFDictionaryReplaceValue(CFMutableDictionaryRef dictionary, const void *key, const void *value)
    CRL_LINK(CFDictionaryReplaceValue);

/**
 * Takes out a key with its value, when it is there.
 * `dictionary` can be changed.
 * Ownership: key and value are released by their callbacks, when they have left the dictionary.
 * Threads: one at a time for this dictionary.
 * Errors: as CFDictionaryAddValue's.
 */
CF_EXPORT void CFDictionaryRemoveValue(CFMutableDictionaryRef dictionary, const void *key) CRL_LINK(CFDictionaryRemoveValue);

/**
 * Takes out all keys and values.
 * `dictionary` can be changed.
 * Ownership: keys and values are released by their callbacks, when they have left the dictionary.
 * Threads: one at a time for this dictionary.
 * Errors: as CFDictionaryAddValue's.
 */
CF_EXPORT void CFDictionaryRemoveAllValues(CFMutableDictionaryRef dictionary) CRL_LINK(CFDictionaryRemoveAllValues);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFDICTIONARY__ */
