/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns where entries stand. An entry stands at the slot that its hash names or, with no empty slot between, behind it.
 */
#include "Support/hash_table.h"

#include "Support/invariant.h"

static const uint64_t occupied = (uint64_t)1 << 63;

enum { capacity_first = 8 };

/* Callers' hashes may be poor: counts, or addresses with equal low bits. */
static uint64_t tag_of(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
    return hash | occupied;
}

size_t hash_table_capacity_for(size_t count)
{
    if (count > SIZE_MAX / sizeof(struct hash_slot) / 4) {
        return 0;
    }
    size_t capacity = capacity_first;
    while (capacity - capacity / 4 < count) {
        capacity *= 2;
    }
    return capacity;
}

static void place(struct hash_table *table, struct hash_slot entry)
{
    size_t mask = table->capacity - 1;
    size_t index = (size_t)entry.tag & mask;
    while (table->slots[index].tag != 0) {
        index = (index + 1) & mask;
    }
    table->slots[index] = entry;
}

struct hash_slot *hash_table_adopt(struct hash_table *table, struct hash_slot *slots, size_t capacity)
{
    struct hash_slot *old = table->slots;
    size_t old_capacity = table->capacity;

    invariant((capacity & (capacity - 1)) == 0); /* places are found with a mask, not a division */
    invariant(table->count == 0 || table->count < capacity);
    table->slots = slots;
    table->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].tag != 0) {
            place(table, old[i]);
        }
    }
    return old;
}

struct hash_slot *hash_table_find(const struct hash_table *table, uint64_t hash, const void *key, hash_table_equal equal,
                                  const void *context)
{
    if (table->count == 0) {
        return NULL;
    }
    uint64_t tag = tag_of(hash);
    size_t mask = table->capacity - 1;
    for (size_t index = (size_t)tag & mask; table->slots[index].tag != 0; index = (index + 1) & mask) {
        struct hash_slot *slot = &table->slots[index];
        if (slot->tag == tag && (slot->key == key || equal(key, slot->key, context))) {
            return slot;
        }
    }
    return NULL;
}

void hash_table_insert(struct hash_table *table, uint64_t hash, const void *key, const void *value)
{
    invariant(table->count + 1 < table->capacity); /* a search ends at an empty slot, so one has to stay */
    place(table, (struct hash_slot){.tag = tag_of(hash), .key = key, .value = value});
    table->count++;
}

void hash_table_remove(struct hash_table *table, struct hash_slot *slot)
{
    size_t mask = table->capacity - 1;
    size_t hole = (size_t)(slot - table->slots);

    invariant(hole < table->capacity);
    invariant(slot->tag != 0 && table->count > 0); /* the slot holds an entry of this table */
    table->count--;
    for (size_t index = (hole + 1) & mask; table->slots[index].tag != 0; index = (index + 1) & mask) {
        /* An entry may move back into the hole unless its own place lies behind the hole. */
        size_t home = (size_t)table->slots[index].tag & mask;
        if (((index - home) & mask) >= ((index - hole) & mask)) {
            table->slots[hole] = table->slots[index];
            hole = index;
        }
    }
    table->slots[hole] = (struct hash_slot){.tag = 0};
}

struct hash_slot *hash_table_next(const struct hash_table *table, size_t *index)
{
    while (*index < table->capacity) {
        struct hash_slot *slot = &table->slots[(*index)++];
        if (slot->tag != 0) {
            return slot;
        }
    }
    return NULL;
}
