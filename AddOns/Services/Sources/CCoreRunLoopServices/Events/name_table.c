/* SPDX-License-Identifier: Apache-2.0 */
/* See name_table.h. */
#include "Events/name_table.h"

#include <bsd/stdlib.h>
#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"

enum { first_place_count = 64 };

bool name_table_init(struct name_table *table)
{
    table->places = calloc(first_place_count, sizeof(struct name_entry *));
    table->place_count = table->places ? first_place_count : 0;
    table->count = 0;
    arc4random_buf(&table->multiplier, sizeof table->multiplier);
    table->multiplier |= 1;
    return table->places;
}

void name_table_deinit(struct name_table *table)
{
    free(table->places);
    table->places = NULL;
    table->place_count = table->count = 0;
}

static uint64_t hash_of(const struct name_table *table, const void *owner, const char *name)
{
    uint64_t hash = ((uint64_t)(uintptr_t)owner + 1) * table->multiplier;

    for (; *name; name++) {
        hash = (hash ^ (hash >> 29) ^ (unsigned char)*name) * table->multiplier;
    }
    return hash ^ (hash >> 32);
}

static struct name_entry **place_of(const struct name_table *table, uint64_t hash)
{
    return &table->places[hash & (table->place_count - 1)];
}

struct name_entry *name_table_find(const struct name_table *table, const void *owner, const char *name)
{
    uint64_t hash = hash_of(table, owner, name);
    struct name_entry *entry = *place_of(table, hash);

    while (entry && (entry->hash != hash || entry->owner != owner || strcmp(entry->name, name) != 0)) {
        entry = entry->next;
    }
    return entry;
}

static void grow_table(struct name_table *table)
{
    struct name_table larger = *table;

    larger.places = calloc(table->place_count * 2, sizeof(struct name_entry *));
    if (!larger.places) {
        return;
    }
    larger.place_count = table->place_count * 2;
    for (size_t i = 0; i < table->place_count; i++) {
        for (struct name_entry *entry = table->places[i], *next; entry; entry = next) {
            struct name_entry **place = place_of(&larger, entry->hash);

            next = entry->next;
            entry->next = *place;
            *place = entry;
        }
    }
    free(table->places);
    *table = larger;
}

void name_table_add(struct name_table *table, struct name_entry *entry, const void *owner, const char *name)
{
    struct name_entry **place;

    invariant(!name_table_find(table, owner, name));
    if (table->count >= table->place_count) {
        grow_table(table);
    }
    entry->hash = hash_of(table, owner, name);
    entry->owner = owner;
    entry->name = name;
    place = place_of(table, entry->hash);
    entry->next = *place;
    *place = entry;
    table->count++;
}

void name_table_remove(struct name_table *table, struct name_entry *entry)
{
    struct name_entry **link = place_of(table, entry->hash);

    while (*link != entry) {
        invariant(*link);
        link = &(*link)->next;
    }
    *link = entry->next;
    table->count--;
}

struct name_entry *name_table_take(struct name_table *table, size_t *from)
{
    while (*from < table->place_count && !table->places[*from]) {
        (*from)++;
    }
    if (*from >= table->place_count) {
        return NULL;
    }
    struct name_entry *entry = table->places[*from];

    table->places[*from] = entry->next;
    table->count--;
    return entry;
}
