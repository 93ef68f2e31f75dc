/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A four-ary heap of (key, node), smallest first; equal keys leave in order of their nodes' sequence numbers.
 *
 * An owner that gives a node in the heap another sequence number gives up the order of equal keys; that of keys stays.
 *
 * The keys stand in the array itself, four to a cache line, so that sifting follows no pointer unless keys are equal. Each node knows its
 * place, which makes removing and re-keying O(log n). The owner guards the heap.
 */
#ifndef CRL_SUPPORT_HEAP_H
#define CRL_SUPPORT_HEAP_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    uint64_t sequence; /* breaks ties; set by the owner before heap_push; see above */
    uint32_t index; /* place in the array, or heap_nowhere; written by the heap only */
    uint32_t tag; /* the owner's */
};

static const uint32_t heap_nowhere = UINT32_MAX;

enum { heap_arity = 4 };

struct heap_entry {
    int64_t key;
    struct heap_node *node;
};

/* The free entries put the four children of an entry into one cache line: malloc's large blocks begin 16 bytes after one. */
struct heap_block {
    struct heap_entry free_entries[2];
    struct heap_entry entries[];
};

struct heap {
    struct heap_block *block; /* NULL: capacity is 0 */
    uint32_t count;
    uint32_t capacity;
};

static inline void heap_node_init(struct heap_node *node)
{
    node->sequence = 0;
    node->index = heap_nowhere;
}

static inline bool heap_contains(const struct heap_node *node)
{
    return node->index != heap_nowhere;
}

/* More than there is. */
bool heap_grow(struct heap *heap, uint32_t capacity);

/* Makes room for `capacity` nodes in all, after which heap_push cannot fail up to that many. False if there is no memory. */
static inline bool heap_reserve(struct heap *heap, uint32_t capacity)
{
    return capacity <= heap->capacity || heap_grow(heap, capacity);
}

/* Room must have been reserved. */
void heap_push(struct heap *heap, struct heap_node *node, int64_t key);
void heap_remove(struct heap *heap, struct heap_node *node);

/* Moves a node that is in the heap to another key, in place. */
void heap_change_key(struct heap *heap, struct heap_node *node, int64_t key);

static inline int64_t heap_key(const struct heap *heap, const struct heap_node *node)
{
    return heap->block->entries[node->index].key;
}

void heap_free(struct heap *heap);

#endif
