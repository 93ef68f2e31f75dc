/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the memory and the counting of keys and values; where they stand is the hash table's.
 */
#include "Runtime/Collection/pairs.h"

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/allocator.h"
#include "Support/fault.h"

enum { capacity_hint_max = 4096 };

static const void *retain(const struct pairs *pairs, CFDictionaryRetainCallBack callback, const void *value)
{
    return callback != NULL ? callback(object_allocator(pairs), value) : value;
}

static void release(const struct pairs *pairs, CFDictionaryReleaseCallBack callback, const void *value)
{
    if (callback != NULL) {
        callback(object_allocator(pairs), value);
    }
}

static bool keys_equal(const void *one, const void *other, const void *context)
{
    const struct pairs *pairs = context;

    return pairs->key.equal != NULL && pairs->key.equal(one, other);
}

bool pairs_values_equal(const struct pairs *pairs, const void *one, const void *other)
{
    return one == other || (pairs->value.equal != NULL && pairs->value.equal(one, other));
}

static uint64_t hash_of_key(const struct pairs *pairs, const void *key)
{
    return pairs->key.hash != NULL ? pairs->key.hash(key) : (uint64_t)(uintptr_t)key;
}

static bool reserve(struct pairs *pairs, size_t count)
{
    size_t capacity = hash_table_capacity_for(count);

    if (capacity != 0 && capacity <= pairs->table.capacity) {
        return true;
    }
    CFAllocatorRef allocator = object_allocator(pairs);
    struct hash_slot *slots = capacity != 0 ? allocator_allocate_zeroed(allocator, capacity * sizeof *slots) : NULL;
    if (slots == NULL) {
        return false;
    }
    allocator_deallocate(allocator, hash_table_adopt(&pairs->table, slots, capacity));
    return true;
}

struct pairs *pairs_create(CFAllocatorRef allocator, const struct object_class *isa, uint32_t flags, CFIndex capacity,
                           const CFDictionaryKeyCallBacks *key, const CFDictionaryValueCallBacks *value)
{
    struct pairs *pairs = object_create(allocator, isa, sizeof *pairs);

    if (pairs == NULL) {
        return NULL;
    }
    pairs->object.info = flags;
    if (key != NULL) {
        pairs->key = *key;
    }
    if (value != NULL) {
        pairs->value = *value;
    }
    /* A hint that cannot be followed does no harm. */
    if (capacity > 0 && capacity <= capacity_hint_max) {
        reserve(pairs, (size_t)capacity);
    }
    return pairs;
}

struct pairs *pairs_create_copy(CFAllocatorRef allocator, const struct pairs *original, uint32_t flags)
{
    struct pairs *copy = pairs_create(allocator, original->object.isa, flags, 0, &original->key, &original->value);
    bool is_done = copy != NULL && reserve(copy, original->table.count);
    size_t index = 0;
    const struct hash_slot *slot;

    while (is_done && (slot = hash_table_next(&original->table, &index)) != NULL) {
        is_done = pairs_add(copy, slot->key, slot->value);
    }
    if (copy != NULL && !is_done) {
        object_release(copy);
        return NULL;
    }
    return copy;
}

struct hash_slot *pairs_find(const struct pairs *pairs, const void *key)
{
    return pairs->table.count != 0 ? hash_table_find(&pairs->table, hash_of_key(pairs, key), key, keys_equal, pairs) : NULL;
}

bool pairs_add(struct pairs *pairs, const void *key, const void *value)
{
    uint64_t hash = hash_of_key(pairs, key);
    if (pairs->table.count != 0 && hash_table_find(&pairs->table, hash, key, keys_equal, pairs) != NULL) {
        return true;
    }
    const void *own_key = retain(pairs, pairs->key.retain, key);
    const void *own_value = retain(pairs, pairs->value.retain, value);
    /* Room is made after the callbacks, which may have used it up. */
    if (!reserve(pairs, pairs->table.count + 1)) {
        release(pairs, pairs->key.release, own_key);
        release(pairs, pairs->value.release, own_value);
        return false;
    }
    hash_table_insert(&pairs->table, hash, own_key, own_value);
    return true;
}

void pairs_replace_key(struct pairs *pairs, struct hash_slot *slot, const void *key)
{
    const void *old = slot->key;

    if (old != key) {
        slot->key = retain(pairs, pairs->key.retain, key);
        release(pairs, pairs->key.release, old);
    }
}

void pairs_replace_value(struct pairs *pairs, struct hash_slot *slot, const void *key, const void *value)
{
    const void *old = slot->value;

    slot->value = retain(pairs, pairs->value.retain, value);
    pairs_replace_key(pairs, slot, key);
    release(pairs, pairs->value.release, old); /* the old key may have been a part of it */
}

void pairs_remove(struct pairs *pairs, struct hash_slot *slot)
{
    struct hash_slot removed = *slot;

    hash_table_remove(&pairs->table, slot);
    release(pairs, pairs->key.release, removed.key);
    release(pairs, pairs->value.release, removed.value);
}

void pairs_remove_all(struct pairs *pairs)
{
    struct hash_table removed = pairs->table;

    pairs->table = (struct hash_table){.slots = NULL};
    size_t index = 0;
    const struct hash_slot *slot;
    while ((slot = hash_table_next(&removed, &index)) != NULL) {
        release(pairs, pairs->key.release, slot->key);
        release(pairs, pairs->value.release, slot->value);
    }
    allocator_deallocate(object_allocator(pairs), removed.slots);
}

void pairs_finalize(CFTypeRef object)
{
    pairs_remove_all((struct pairs *)(uintptr_t)object);
}

Boolean pairs_equal(CFTypeRef object1, CFTypeRef object2)
{
    const struct pairs *one = object1;
    const struct pairs *other = object2;

    if (one->table.count != other->table.count || one->key.equal != other->key.equal || one->value.equal != other->value.equal) {
        return false;
    }
    size_t index = 0;
    const struct hash_slot *slot;
    while ((slot = hash_table_next(&one->table, &index)) != NULL) {
        const struct hash_slot *found = pairs_find(other, slot->key);

        if (found == NULL || !pairs_values_equal(one, slot->value, found->value)) {
            return false;
        }
    }
    return true;
}

CFHashCode pairs_hash(CFTypeRef object)
{
    return (CFHashCode)((const struct pairs *)object)->table.count;
}

static void append_description(CFMutableStringRef words, CFDictionaryCopyDescriptionCallBack callback, const void *value)
{
    CFStringRef description = callback != NULL ? callback(value) : NULL;

    if (description != NULL) {
        CFStringAppend(words, description);
        CFRelease(description);
    } else {
        CFStringAppendFormat(words, NULL, CFSTR("<%p>"), value);
    }
}

CFStringRef pairs_copy_description(CFTypeRef object)
{
    const struct pairs *pairs = object;
    CFMutableStringRef words = CFStringCreateMutable(NULL, 0);

    if (words == NULL) {
        return NULL;
    }
    bool has_values = pairs->object.isa->type_id == object_type_dictionary;
    CFStringAppendFormat(words, NULL, CFSTR("<%s %p>{%s, count = %zu, %s = (\n"), pairs->object.isa->name, object,
                         (pairs->object.info & pairs_are_mutable) != 0 ? "mutable" : "immutable", pairs->table.count,
                         has_values ? "entries" : "values");
    size_t index = 0;
    const struct hash_slot *slot;
    while ((slot = hash_table_next(&pairs->table, &index)) != NULL) {
        CFStringAppend(words, CFSTR("\t"));
        append_description(words, pairs->key.copyDescription, slot->key);
        if (has_values) {
            CFStringAppend(words, CFSTR(" = "));
            append_description(words, pairs->value.copyDescription, slot->value);
        }
        CFStringAppend(words, CFSTR("\n"));
    }
    CFStringAppend(words, CFSTR(")}"));
    return words;
}

void pairs_log_no_memory(bool is_done)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (!is_done) {
        fault_log_once(&logged, "CFDictionary, CFSet: no memory; the collection stays as it was");
    }
}

const void *pairs_type_retain(CFAllocatorRef allocator, const void *value)
{
    (void)allocator;
    return CFRetain(value);
}

void pairs_type_release(CFAllocatorRef allocator, const void *value)
{
    (void)allocator;
    CFRelease(value);
}

const void *pairs_copy_string(CFAllocatorRef allocator, const void *value)
{
    return CFStringCreateCopy(allocator, value);
}
