/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open places; see pair_table.h. */
#include "pair_table.h"

#include <stdlib.h>
#include <sys/random.h>

#include "runloop.h"

/* Numbers in a trace may be chosen so that they would share a place of any table that is known; so the places are secret. */
static uint64_t mixed(uint64_t number)
{
    static uint64_t secret;

    if (secret == 0) {
        (void)getrandom(&secret, sizeof secret, 0);
        secret |= 1;
    }
    number ^= secret;
    number = (number ^ number >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    number = (number ^ number >> 29) * UINT64_C(0xC2B2AE3D27D4EB4F);
    return number ^ number >> 32;
}

static struct pair_entry *place_of(const struct pair_table *table, uint64_t one, uint64_t other)
{
    size_t at = (size_t)mixed(one + mixed(other)) & (table->capacity - 1);

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
