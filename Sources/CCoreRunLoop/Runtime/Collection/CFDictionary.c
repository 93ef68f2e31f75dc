/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions of CFDictionary.h: argument checks, and the work done by pairs.c.
 *
 * An immutable dictionary is anybody's; a mutable one belongs to one thread at a time.
 */
#include "CoreFoundation/CFDictionary.h"

#include "CoreFoundation/CFString.h"
#include "Runtime/Collection/pairs.h"
#include "Runtime/Object/allocator.h"
#include "Runtime/Object/object.h"
#include "Support/fault.h"

static const struct object_class dictionary_class = {
    .type_id = object_type_dictionary,
    .name = "CFDictionary",
    .finalize = pairs_finalize,
    .equal = pairs_equal,
    .hash = pairs_hash,
    .copy_description = pairs_copy_description,
};

const CFDictionaryKeyCallBacks kCFTypeDictionaryKeyCallBacks = {
    .retain = pairs_type_retain,
    .release = pairs_type_release,
    .copyDescription = CFCopyDescription,
    .equal = CFEqual,
    .hash = CFHash,
};

const CFDictionaryKeyCallBacks kCFCopyStringDictionaryKeyCallBacks = {
    .retain = pairs_copy_string,
    .release = pairs_type_release,
    .copyDescription = CFCopyDescription,
    .equal = CFEqual,
    .hash = CFHash,
};

const CFDictionaryValueCallBacks kCFTypeDictionaryValueCallBacks = {
    .retain = pairs_type_retain,
    .release = pairs_type_release,
    .copyDescription = CFCopyDescription,
    .equal = CFEqual,
};

static const struct pairs *pairs_of(CFDictionaryRef dictionary, const char *function)
{
    object_require(dictionary, object_type_dictionary, function, "dictionary");
    return (const struct pairs *)(const void *)dictionary;
}

static struct pairs *mutable_of(CFMutableDictionaryRef dictionary, const char *function)
{
    object_require(dictionary, object_type_dictionary, function, "dictionary");
    struct pairs *pairs = (struct pairs *)(void *)dictionary;
    if ((pairs->object.info & pairs_are_mutable) == 0) {
        fault_stop(function, "the dictionary cannot be changed");
    }
    return pairs;
}

CFTypeID CFDictionaryGetTypeID(void)
{
    return object_type_dictionary;
}

CFDictionaryRef CFDictionaryCreate(CFAllocatorRef allocator, const void **keys, const void **values, CFIndex count,
                                   const CFDictionaryKeyCallBacks *keyCallBacks, const CFDictionaryValueCallBacks *valueCallBacks)
{
    bool is_valid = count >= 0 && (count == 0 || (keys != NULL && values != NULL));
    struct pairs *pairs = is_valid ? pairs_create(allocator, &dictionary_class, 0, count, keyCallBacks, valueCallBacks) : NULL;

    for (CFIndex i = 0; pairs != NULL && i < count; i++) {
        if (!pairs_add(pairs, keys[i], values[i])) {
            object_release(pairs);
            pairs = NULL;
        }
    }
    return (CFDictionaryRef)(const void *)pairs;
}

CFDictionaryRef CFDictionaryCreateCopy(CFAllocatorRef allocator, CFDictionaryRef dictionary)
{
    const struct pairs *original = pairs_of(dictionary, "CFDictionaryCreateCopy");

    if ((original->object.info & pairs_are_mutable) == 0 && object_allocator(original) == allocator_resolve(allocator)) {
        return CFRetain(dictionary);
    }
    return (CFDictionaryRef)(const void *)pairs_create_copy(allocator, original, 0);
}

CFMutableDictionaryRef CFDictionaryCreateMutable(CFAllocatorRef allocator, CFIndex capacity, const CFDictionaryKeyCallBacks *keyCallBacks,
                                                 const CFDictionaryValueCallBacks *valueCallBacks)
{
    return (CFMutableDictionaryRef)(void *)pairs_create(allocator, &dictionary_class, pairs_are_mutable, capacity, keyCallBacks,
                                                        valueCallBacks);
}

CFMutableDictionaryRef CFDictionaryCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFDictionaryRef dictionary)
{
    (void)capacity;
    const struct pairs *original = pairs_of(dictionary, "CFDictionaryCreateMutableCopy");
    return (CFMutableDictionaryRef)(void *)pairs_create_copy(allocator, original, pairs_are_mutable);
}

CFIndex CFDictionaryGetCount(CFDictionaryRef dictionary)
{
    return (CFIndex)pairs_of(dictionary, "CFDictionaryGetCount")->table.count;
}

CFIndex CFDictionaryGetCountOfKey(CFDictionaryRef dictionary, const void *key)
{
    return pairs_find(pairs_of(dictionary, "CFDictionaryGetCountOfKey"), key) != NULL ? 1 : 0;
}

static CFIndex count_of_value(const struct pairs *pairs, const void *value)
{
    CFIndex count = 0;
    size_t index = 0;
    const struct hash_slot *slot;

    while ((slot = hash_table_next(&pairs->table, &index)) != NULL) {
        if (pairs_values_equal(pairs, value, slot->value)) {
            count++;
        }
    }
    return count;
}

CFIndex CFDictionaryGetCountOfValue(CFDictionaryRef dictionary, const void *value)
{
    return count_of_value(pairs_of(dictionary, "CFDictionaryGetCountOfValue"), value);
}

Boolean CFDictionaryContainsKey(CFDictionaryRef dictionary, const void *key)
{
    return pairs_find(pairs_of(dictionary, "CFDictionaryContainsKey"), key) != NULL;
}

Boolean CFDictionaryContainsValue(CFDictionaryRef dictionary, const void *value)
{
    return count_of_value(pairs_of(dictionary, "CFDictionaryContainsValue"), value) > 0;
}

const void *CFDictionaryGetValue(CFDictionaryRef dictionary, const void *key)
{
    const struct hash_slot *slot = pairs_find(pairs_of(dictionary, "CFDictionaryGetValue"), key);

    return slot != NULL ? slot->value : NULL;
}

Boolean CFDictionaryGetValueIfPresent(CFDictionaryRef dictionary, const void *key, const void **value)
{
    const struct hash_slot *slot = pairs_find(pairs_of(dictionary, "CFDictionaryGetValueIfPresent"), key);

    if (slot != NULL && value != NULL) {
        *value = slot->value;
    }
    return slot != NULL;
}

void CFDictionaryGetKeysAndValues(CFDictionaryRef dictionary, const void **keys, const void **values)
{
    const struct pairs *pairs = pairs_of(dictionary, "CFDictionaryGetKeysAndValues");
    size_t index = 0;
    const struct hash_slot *slot;

    for (size_t i = 0; (slot = hash_table_next(&pairs->table, &index)) != NULL; i++) {
        if (keys != NULL) {
            keys[i] = slot->key;
        }
        if (values != NULL) {
            values[i] = slot->value;
        }
    }
}

void CFDictionaryApplyFunction(CFDictionaryRef dictionary, CFDictionaryApplierFunction applier, void *context)
{
    const struct pairs *pairs = pairs_of(dictionary, "CFDictionaryApplyFunction");

    if (applier == NULL) {
        fault_stop("CFDictionaryApplyFunction", "the function is NULL");
    }
    /* Slots are found by number each time, because the function may make the dictionary move them. */
    size_t index = 0;
    const struct hash_slot *slot;
    while ((slot = hash_table_next(&pairs->table, &index)) != NULL) {
        applier(slot->key, slot->value, context);
    }
}

void CFDictionaryAddValue(CFMutableDictionaryRef dictionary, const void *key, const void *value)
{
    pairs_log_no_memory(pairs_add(mutable_of(dictionary, "CFDictionaryAddValue"), key, value));
}

void CFDictionarySetValue(CFMutableDictionaryRef dictionary, const void *key, const void *value)
{
    struct pairs *pairs = mutable_of(dictionary, "CFDictionarySetValue");
    struct hash_slot *slot = pairs_find(pairs, key);

    if (slot != NULL) {
        pairs_replace_value(pairs, slot, key, value);
    } else {
        pairs_log_no_memory(pairs_add(pairs, key, value));
    }
}

void CFDictionaryReplaceValue(CFMutableDictionaryRef dictionary, const void *key, const void *value)
{
    struct pairs *pairs = mutable_of(dictionary, "CFDictionaryReplaceValue");
    struct hash_slot *slot = pairs_find(pairs, key);

    if (slot != NULL) {
        pairs_replace_value(pairs, slot, key, value);
    }
}

void CFDictionaryRemoveValue(CFMutableDictionaryRef dictionary, const void *key)
{
    struct pairs *pairs = mutable_of(dictionary, "CFDictionaryRemoveValue");
    struct hash_slot *slot = pairs_find(pairs, key);

    if (slot != NULL) {
        pairs_remove(pairs, slot);
    }
}

void CFDictionaryRemoveAllValues(CFMutableDictionaryRef dictionary)
{
    pairs_remove_all(mutable_of(dictionary, "CFDictionaryRemoveAllValues"));
}
