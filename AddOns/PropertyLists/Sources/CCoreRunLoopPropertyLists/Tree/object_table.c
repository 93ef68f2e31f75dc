/* SPDX-License-Identifier: Apache-2.0 */
/* Gives objects numbers (object_table.h). */
#include "Tree/object_table.h"

#include <stdlib.h>

#include "Support/invariant.h"

static uint32_t mix(uint64_t value)
{
    value *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(value >> 32);
}

static bool is_equal_by_value(enum tree_kind kind)
{
    return kind == tree_string || kind == tree_number || kind == tree_data || kind == tree_date;
}

static uint32_t hash_of(CFTypeRef object, enum tree_kind kind)
{
    return mix(is_equal_by_value(kind) ? CFHash(object) : (uint64_t)(uintptr_t)object);
}

static bool is_same(const struct numbered_object *known, CFTypeRef object, enum tree_kind kind, uint32_t hash)
{
    return known->object == object ||
           (known->hash == hash && known->kind == kind && is_equal_by_value(kind) && CFEqual(known->object, object));
}

static void take_place(struct object_table *table, uint32_t hash, size_t number)
{
    size_t place = hash & (table->place_count - 1);

    while (table->places[place]) {
        place = (place + 1) & (table->place_count - 1);
    }
    table->places[place] = (uint32_t)number + 1;
}

static bool grow(struct object_table *table)
{
    size_t capacity = table->capacity ? table->capacity * 2 : 16;
    struct numbered_object *objects = capacity < UINT32_MAX ? reallocarray(table->objects, capacity, sizeof *objects) : NULL;
    uint32_t *places;

    if (!objects) {
        return false;
    }
    table->objects = objects;
    places = calloc(capacity * 2, sizeof *places);
    if (!places) {
        return false;
    }
    free(table->places);
    table->places = places;
    table->place_count = capacity * 2;
    table->capacity = capacity;
    for (size_t i = 0; i < table->count; i++) {
        take_place(table, table->objects[i].hash, i);
    }
    return true;
}

enum object_table_result object_table_add(struct object_table *table, CFTypeRef object, enum tree_kind kind, uint32_t *ret_number)
{
    uint32_t hash = hash_of(object, kind);

    if (table->place_count > 0) {
        for (size_t place = hash & (table->place_count - 1); table->places[place]; place = (place + 1) & (table->place_count - 1)) {
            *ret_number = table->places[place] - 1;
            if (is_same(&table->objects[*ret_number], object, kind, hash)) {
                return object_is_known;
            }
        }
    }
    if (table->count == table->capacity && !grow(table)) {
        return object_lacks_memory;
    }
    invariant(table->count < table->capacity && table->capacity * 2 <= table->place_count);
    *ret_number = (uint32_t)table->count;
    table->objects[table->count] = (struct numbered_object){object, kind, hash};
    take_place(table, hash, table->count++);
    return object_is_new;
}

void object_table_free(struct object_table *table)
{
    free(table->objects);
    free(table->places);
    *table = (struct object_table){0};
}
