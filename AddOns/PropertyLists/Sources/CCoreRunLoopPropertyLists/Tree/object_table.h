/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives objects numbers from 0 on, in the order in which they come. An object has one number, and so have those few numbers and strings
 * that Core Foundation makes only once: small integers, zero, what is no number or infinite, and the empty string.
 *
 * A table belongs to one thread, and borrows the objects. The places of its hash table hold a number plus one, 0 where they are free.
 */
#ifndef CRL_PLIST_OBJECT_TABLE_H
#define CRL_PLIST_OBJECT_TABLE_H

#include "plist_link_names.h"

#include <stddef.h>
#include <stdint.h>

#include "Tree/tree_kind.h"

struct object_table {
    struct numbered_object {
        CFTypeRef object;
        uint64_t identity; /* its address, or less than the first address for what counts by its value */
        enum tree_kind kind;
    } *objects;
    size_t count;
    size_t capacity; /* of `objects` */
    uint32_t *places;
    size_t place_count; /* a power of two, at least twice `capacity`; or 0 */
};

enum object_table_result { object_is_new, object_is_known, object_lacks_memory };

/* Gives the number of the object, which it gets if it has none. */
enum object_table_result object_table_add(struct object_table *table, CFTypeRef object, enum tree_kind kind, uint32_t *ret_number);
/* Lists an object that has a number once more, under a number that nobody asks for. */
bool object_table_repeat(struct object_table *table, CFTypeRef object, enum tree_kind kind);
void object_table_free(struct object_table *table);

#endif
