/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that hold keys with values: what dictionaries and sets have in common. A set is one whose values are not used.
 *
 * Callbacks run when the table has its new form. Immutable objects are anybody's, mutable ones belong to one thread at a time.
 */
#ifndef CRL_RUNTIME_PAIRS_H
#define CRL_RUNTIME_PAIRS_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFDictionary.h"
#include "Runtime/Object/object.h"
#include "Support/hash_table.h"

enum pairs_flag { pairs_are_mutable = 1 };

struct pairs {
    struct object object;
    struct hash_table table;
    CFDictionaryKeyCallBacks key; /* constant */
    CFDictionaryValueCallBacks value; /* constant */
};

/* A new empty object; the callbacks may be NULL. `capacity` is a hint. It may be filled whatever its flags. */
struct pairs *pairs_create(CFAllocatorRef allocator, const struct object_class *isa, uint32_t flags, CFIndex capacity,
                           const CFDictionaryKeyCallBacks *key, const CFDictionaryValueCallBacks *value);

/* A new object with the same keys, values and callbacks. */
struct pairs *pairs_create_copy(CFAllocatorRef allocator, const struct pairs *original, uint32_t flags);

struct hash_slot *pairs_find(const struct pairs *pairs, const void *key);

/* Adds a key unless it is there. False if there is no memory. */
bool pairs_add(struct pairs *pairs, const void *key, const void *value);

void pairs_replace_key(struct pairs *pairs, struct hash_slot *slot, const void *key);
/* The key, which is equal to the one that is there, takes its place, too. */
void pairs_replace_value(struct pairs *pairs, struct hash_slot *slot, const void *key, const void *value);
void pairs_remove(struct pairs *pairs, struct hash_slot *slot);
void pairs_remove_all(struct pairs *pairs);

bool pairs_values_equal(const struct pairs *pairs, const void *one, const void *other);

/* For the classes of dictionaries and sets. */
void pairs_finalize(CFTypeRef object);
Boolean pairs_equal(CFTypeRef object1, CFTypeRef object2);
CFHashCode pairs_hash(CFTypeRef object);
CFStringRef pairs_copy_description(CFTypeRef object);

/* Logs once that a change was not made, unless `is_done`. */
void pairs_log_no_memory(bool is_done);

/* The retain and release of the kCFType... callbacks. */
const void *pairs_type_retain(CFAllocatorRef allocator, const void *value);
void pairs_type_release(CFAllocatorRef allocator, const void *value);
const void *pairs_copy_string(CFAllocatorRef allocator, const void *value);

#endif
