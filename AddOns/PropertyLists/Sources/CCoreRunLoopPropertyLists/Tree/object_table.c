/* SPDX-License-Identifier: Apache-2.0 */
/* Gives objects numbers (object_table.h). */
#include "Tree/object_table.h"

#include <math.h>
#include <stdlib.h>

#include "Support/invariant.h"

/* Identities of what counts by its value. No object has such an address. */
enum common_identity {
    common_integers = 2, /* added to an integer from the first to the last */
    common_integer_first = -1,
    common_integer_last = 12,
    common_nan = 32,
    common_infinity,
    common_minus_infinity,
    common_zero,
    common_one,
    common_short_zero,
    common_short_one,
    common_empty_string
};

static uint64_t identity_of_number(CFNumberRef number)
{
    SInt64 integer = 0;
    double real = 0;

    if (!CFNumberIsFloatType(number)) {
        (void)CFNumberGetValue(number, kCFNumberSInt64Type, &integer);
        return integer >= common_integer_first && integer <= common_integer_last ? (uint64_t)(integer + common_integers)
                                                                                 : (uintptr_t)number;
    }
    (void)CFNumberGetValue(number, kCFNumberDoubleType, &real);
    if (isnan(real)) {
        return common_nan;
    }
    if (isinf(real)) {
        return real > 0 ? common_infinity : common_minus_infinity;
    }
    if ((real != 0 && real != 1) || signbit(real)) {
        return (uintptr_t)number;
    }
    return CFNumberGetByteSize(number) == sizeof real ? (real == 0 ? common_zero : common_one)
                                                      : (real == 0 ? common_short_zero : common_short_one);
}

static uint64_t identity_of(CFTypeRef object, enum tree_kind kind)
{
    return kind == tree_number                                     ? identity_of_number(object)
           : kind == tree_string && CFStringGetLength(object) == 0 ? common_empty_string
                                                                   : (uintptr_t)object;
}

static size_t first_place(const struct object_table *table, uint64_t identity)
{
    return (size_t)((identity * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (table->place_count - 1);
}

static void take_place(struct object_table *table, uint64_t identity, size_t number)
{
    size_t place = first_place(table, identity);

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
        take_place(table, table->objects[i].identity, i);
    }
    return true;
}

static bool append(struct object_table *table, CFTypeRef object, uint64_t identity, enum tree_kind kind, uint32_t *ret_number)
{
    if (table->count == table->capacity && !grow(table)) {
        return false;
    }
    invariant(table->count < table->capacity && table->capacity * 2 <= table->place_count);
    *ret_number = (uint32_t)table->count;
    table->objects[table->count] = (struct numbered_object){object, identity, kind};
    take_place(table, identity, table->count++);
    return true;
}

enum object_table_result object_table_add(struct object_table *table, CFTypeRef object, enum tree_kind kind, uint32_t *ret_number)
{
    uint64_t identity = identity_of(object, kind);
    size_t place = table->place_count > 0 ? first_place(table, identity) : 0;

    for (; table->place_count > 0 && table->places[place]; place = (place + 1) & (table->place_count - 1)) {
        *ret_number = table->places[place] - 1;
        if (table->objects[*ret_number].identity == identity) {
            return object_is_known;
        }
    }
    return append(table, object, identity, kind, ret_number) ? object_is_new : object_lacks_memory;
}

/* The first of equal identities is found first, as places are taken in the order of the numbers. */
bool object_table_repeat(struct object_table *table, CFTypeRef object, enum tree_kind kind)
{
    uint32_t number;

    return append(table, object, identity_of(object, kind), kind, &number);
}

void object_table_free(struct object_table *table)
{
    free(table->objects);
    free(table->places);
    *table = (struct object_table){0};
}
