/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open-addressing hash table of pairs of pointers, for dictionaries and sets.
 *
 * The table neither allocates nor frees: its owner gives it slots, and takes the old ones back. Keys and values may be any pointers, NULL
 * included. Linear probing; removing moves entries back, so there are no marks of removed ones and searching never gets slower. No locks.
 *
 * I1: capacity is 0 or a power of two, and at least a quarter of the slots is empty.
 */
#ifndef CRL_SUPPORT_HASH_TABLE_H
#define CRL_SUPPORT_HASH_TABLE_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_slot {
    uint64_t tag; /* 0: empty; otherwise the mixed hash with its top bit set */
    const void *key;
    const void *value;
};

struct hash_table {
    struct hash_slot *slots;
    size_t capacity;
    size_t count;
};

/* Whether two keys are the same; `context` is what the caller of hash_table_find gave. */
typedef bool (*hash_table_equal)(const void *key, const void *other, const void *context);

/* How many slots `count` entries need; 0 when there cannot be so many. */
size_t hash_table_capacity_for(size_t count);

/* Moves all entries into new slots, zeroed, and returns the old ones for the owner to free. */
struct hash_slot *hash_table_adopt(struct hash_table *table, struct hash_slot *slots, size_t capacity);

/* The slot of a key, or NULL. */
struct hash_slot *hash_table_find(const struct hash_table *table, uint64_t hash, const void *key, hash_table_equal equal,
                                  const void *context);

/* Adds a key that is not there; needs hash_table_capacity_for(count + 1) slots. */
void hash_table_insert(struct hash_table *table, uint64_t hash, const void *key, const void *value);

/* Takes out the entry in a slot; other entries may move into it. */
void hash_table_remove(struct hash_table *table, struct hash_slot *slot);

/* The first entry at or behind slot number `*index`, with `*index` set behind it; NULL at the end. Starts with 0. */
struct hash_slot *hash_table_next(const struct hash_table *table, size_t *index);

#endif
