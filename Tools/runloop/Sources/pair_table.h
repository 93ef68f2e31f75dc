/* SPDX-License-Identifier: Apache-2.0 */
/* A table from two numbers to one. */
#ifndef CRL_RUNLOOP_PAIR_TABLE_H
#define CRL_RUNLOOP_PAIR_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct pair_entry {
    uint64_t one, other;
    uint64_t value; /* 0: free */
};

struct pair_table {
    struct pair_entry *entries;
    size_t count, capacity; /* a power of two */
};

/* Returns the place of the value, which is 0 if it is new; valid until the next call. */
uint64_t *pair_table_value(struct pair_table *table, uint64_t one, uint64_t other);

#endif
