/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open places; see pair_table.h. */
#include "pair_table.h"

#include <stdlib.h>

#include "runloop.h"

static struct pair_entry *place_of(const struct pair_table *table, uint64_t one, uint64_t other)
{
    uint64_t hash = (one * UINT64_C(0x9E3779B97F4A7C15)) ^ (other * UINT64_C(0xC2B2AE3D27D4EB4F));
    size_t at = (size_t)(hash ^ hash >> 32) & (table->capacity - 1);

    invariant(table->count < table->capacity && (table->capacity & (table->capacity - 1)) == 0);
    while (table->entries[at].value != 0 && (table->entries[at].one != one || table->entries[at].other != other)) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->entries[at];
}

uint64_t *pair_table_value(struct pair_table *table, uint64_t one, uint64_t other)
{
    struct pair_entry *place;

    if (table->count * 2 >= table->capacity) {
        struct pair_table larger = {.count = table->count, .capacity = table->capacity > 0 ? table->capacity * 2 : 1024};

        larger.entries = make_room(larger.capacity, sizeof *larger.entries);
        for (size_t i = 0; i < table->capacity; i++) {
            if (table->entries[i].value != 0) {
                *place_of(&larger, table->entries[i].one, table->entries[i].other) = table->entries[i];
            }
        }
        free(table->entries);
        *table = larger;
    }
    place = place_of(table, one, other);
    if (place->value == 0) {
        place->one = one;
        place->other = other;
        table->count++;
    }
    return &place->value;
}
