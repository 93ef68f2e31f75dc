/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions of CFSet.h: argument checks, and the work done by pairs.c, whose keys are the set's values.
 *
 * An immutable set is anybody's; a mutable one belongs to one thread at a time.
 */
#include "CoreFoundation/CFSet.h"

#include "CoreFoundation/CFString.h"
#include "Runtime/Collection/pairs.h"
#include "Runtime/Object/allocator.h"
#include "Runtime/Object/object.h"
#include "Support/fault.h"

static const struct object_class set_class = {
    .type_id = object_type_set,
    .name = "CFSet",
    .finalize = pairs_finalize,
    .equal = pairs_equal,
    .hash = pairs_hash,
    .copy_description = pairs_copy_description,
};

const CFSetCallBacks kCFTypeSetCallBacks = {
    .retain = pairs_type_retain,
    .release = pairs_type_release,
    .copyDescription = CFCopyDescription,
    .equal = CFEqual,
    .hash = CFHash,
};

const CFSetCallBacks kCFCopyStringSetCallBacks = {
    .retain = pairs_copy_string,
    .release = pairs_type_release,
    .copyDescription = CFCopyDescription,
    .equal = CFEqual,
    .hash = CFHash,
};

static const struct pairs *pairs_of(CFSetRef set, const char *function)
{
    object_require(set, object_type_set, function, "set");
    return (const struct pairs *)(const void *)set;
}

static struct pairs *mutable_of(CFMutableSetRef set, const char *function)
{
    object_require(set, object_type_set, function, "set");
    struct pairs *pairs = (struct pairs *)(void *)set;
    if ((pairs->object.info & pairs_are_mutable) == 0) {
        fault_stop(function, "the set cannot be changed");
    }
    return pairs;
}

static struct pairs *create(CFAllocatorRef allocator, uint32_t flags, CFIndex capacity, const CFSetCallBacks *callbacks)
{
    CFDictionaryKeyCallBacks key = {.version = 0};

    if (callbacks != NULL) {
        key = (CFDictionaryKeyCallBacks){
            .retain = callbacks->retain,
            .release = callbacks->release,
            .copyDescription = callbacks->copyDescription,
            .equal = callbacks->equal,
            .hash = callbacks->hash,
        };
    }
    return pairs_create(allocator, &set_class, flags, capacity, &key, NULL);
}

CFTypeID CFSetGetTypeID(void)
{
    return object_type_set;
}

CFSetRef CFSetCreate(CFAllocatorRef allocator, const void **values, CFIndex count, const CFSetCallBacks *callBacks)
{
    bool is_valid = count >= 0 && (count == 0 || values != NULL);
    struct pairs *pairs = is_valid ? create(allocator, 0, count, callBacks) : NULL;

    for (CFIndex i = 0; pairs != NULL && i < count; i++) {
        if (!pairs_add(pairs, values[i], NULL)) {
            object_release(pairs);
            pairs = NULL;
        }
    }
    return (CFSetRef)(const void *)pairs;
}

CFSetRef CFSetCreateCopy(CFAllocatorRef allocator, CFSetRef set)
{
    const struct pairs *original = pairs_of(set, "CFSetCreateCopy");

    if ((original->object.info & pairs_are_mutable) == 0 && object_allocator(original) == allocator_resolve(allocator)) {
        return CFRetain(set);
    }
    return (CFSetRef)(const void *)pairs_create_copy(allocator, original, 0);
}

CFMutableSetRef CFSetCreateMutable(CFAllocatorRef allocator, CFIndex capacity, const CFSetCallBacks *callBacks)
{
    return (CFMutableSetRef)(void *)create(allocator, pairs_are_mutable, capacity, callBacks);
}

CFMutableSetRef CFSetCreateMutableCopy(CFAllocatorRef allocator, CFIndex capacity, CFSetRef set)
{
    (void)capacity;
    return (CFMutableSetRef)(void *)pairs_create_copy(allocator, pairs_of(set, "CFSetCreateMutableCopy"), pairs_are_mutable);
}

CFIndex CFSetGetCount(CFSetRef set)
{
    return (CFIndex)pairs_of(set, "CFSetGetCount")->table.count;
}

CFIndex CFSetGetCountOfValue(CFSetRef set, const void *value)
{
    return pairs_find(pairs_of(set, "CFSetGetCountOfValue"), value) != NULL;
}

Boolean CFSetContainsValue(CFSetRef set, const void *value)
{
    return pairs_find(pairs_of(set, "CFSetContainsValue"), value) != NULL;
}

const void *CFSetGetValue(CFSetRef set, const void *value)
{
    const struct hash_slot *slot = pairs_find(pairs_of(set, "CFSetGetValue"), value);

    return slot != NULL ? slot->key : NULL;
}

Boolean CFSetGetValueIfPresent(CFSetRef set, const void *candidate, const void **value)
{
    const struct hash_slot *slot = pairs_find(pairs_of(set, "CFSetGetValueIfPresent"), candidate);

    if (slot != NULL && value != NULL) {
        *value = slot->key;
    }
    return slot != NULL;
}

void CFSetGetValues(CFSetRef set, const void **values)
{
    const struct pairs *pairs = pairs_of(set, "CFSetGetValues");
    size_t index = 0;
    const struct hash_slot *slot;

    while ((slot = hash_table_next(&pairs->table, &index)) != NULL) {
        *values++ = slot->key;
    }
}

void CFSetApplyFunction(CFSetRef set, CFSetApplierFunction applier, void *context)
{
    const struct pairs *pairs = pairs_of(set, "CFSetApplyFunction");

    if (applier == NULL) {
        fault_stop("CFSetApplyFunction", "the function is NULL");
    }
    /* Slots are found by number each time, because the function may make the set move them. */
    size_t index = 0;
    const struct hash_slot *slot;
    while ((slot = hash_table_next(&pairs->table, &index)) != NULL) {
        applier(slot->key, context);
    }
}

void CFSetAddValue(CFMutableSetRef set, const void *value)
{
    pairs_log_no_memory(pairs_add(mutable_of(set, "CFSetAddValue"), value, NULL));
}

void CFSetSetValue(CFMutableSetRef set, const void *value)
{
    struct pairs *pairs = mutable_of(set, "CFSetSetValue");
    struct hash_slot *slot = pairs_find(pairs, value);

    if (slot != NULL) {
        pairs_replace_key(pairs, slot, value);
    } else {
        pairs_log_no_memory(pairs_add(pairs, value, NULL));
    }
}

void CFSetReplaceValue(CFMutableSetRef set, const void *value)
{
    struct pairs *pairs = mutable_of(set, "CFSetReplaceValue");
    struct hash_slot *slot = pairs_find(pairs, value);

    if (slot != NULL) {
        pairs_replace_key(pairs, slot, value);
    }
}

void CFSetRemoveValue(CFMutableSetRef set, const void *value)
{
    struct pairs *pairs = mutable_of(set, "CFSetRemoveValue");
    struct hash_slot *slot = pairs_find(pairs, value);

    if (slot != NULL) {
        pairs_remove(pairs, slot);
    }
}

void CFSetRemoveAllValues(CFMutableSetRef set)
{
    pairs_remove_all(mutable_of(set, "CFSetRemoveAllValues"));
}
