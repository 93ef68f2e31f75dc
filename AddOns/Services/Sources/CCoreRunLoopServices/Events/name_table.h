/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of entries by an owner and a name, which lie in structures of others. Names are chosen by whoever writes files, so the
 * multiplier of the hash is random. Without memory a table does not grow, and becomes slower. Guarded by the lock of whoever has it.
 */
#ifndef CRL_SERVICES_NAME_TABLE_H
#define CRL_SERVICES_NAME_TABLE_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_entry {
    struct name_entry *next;
    uint64_t hash;
    const void *owner;
    const char *name; /* the structure's around it, and constant while it is in a table */
};

struct name_table {
    struct name_entry **places;
    size_t place_count; /* a power of two; 0: the table was not made */
    size_t count;
    uint64_t multiplier;
};

/* Returns false without memory. */
bool name_table_init(struct name_table *table);
void name_table_deinit(struct name_table *table);
/* Returns NULL if there is none. */
struct name_entry *name_table_find(const struct name_table *table, const void *owner, const char *name);
/* There must be none with this owner and name. */
void name_table_add(struct name_table *table, struct name_entry *entry, const void *owner, const char *name);
/* The entry must be in the table. */
void name_table_remove(struct name_table *table, struct name_entry *entry);
/* Takes out any entry; NULL: the table is empty. `from` is 0 at first, and keeps where to go on. */
struct name_entry *name_table_take(struct name_table *table, size_t *from);

#endif
