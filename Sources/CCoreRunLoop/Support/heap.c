/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four-ary heap. Invariants: (H1) no entry is before its parent, or, if sequence numbers were changed, none has a smaller key than its
 * parent; (H2) entries[i].node->index == i.
 */
#include "Support/heap.h"

#include "Support/invariant.h"

#include <stdlib.h>

static bool is_before(const struct heap_entry *one, const struct heap_entry *other)
{
    if (__builtin_expect(one->key == other->key, 0)) {
        return one->node->sequence < other->node->sequence;
    }
    return one->key < other->key;
}

static void place(struct heap *heap, uint32_t index, struct heap_entry entry)
{
    heap->block->entries[index] = entry;
    entry.node->index = index; /* H2 */
}

static void sift_up(struct heap *heap, uint32_t index, struct heap_entry entry)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / heap_arity;

        if (!is_before(&entry, &heap->block->entries[parent])) {
            break;
        }
        place(heap, index, heap->block->entries[parent]);
        index = parent;
    }
    place(heap, index, entry);
}

/* By pairs and without branches: which of four random keys is the smallest, no processor can foresee. */
static uint32_t first_of_four(const struct heap_entry *four)
{
    uint32_t one = is_before(&four[1], &four[0]);
    uint32_t other = 2 + (uint32_t)is_before(&four[3], &four[2]);

    return is_before(&four[other], &four[one]) ? other : one;
}

static uint32_t first_of_some(const struct heap_entry *some, uint32_t count)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < count; i++) {
        if (is_before(&some[i], &some[best])) {
            best = i;
        }
    }
    return best;
}

static void sift_down(struct heap *heap, uint32_t index, struct heap_entry entry)
{
    for (;;) {
        uint64_t begin = (uint64_t)index * heap_arity + 1;
        const struct heap_entry *children;
        uint32_t child;

        if (begin >= heap->count) {
            break;
        }
        children = &heap->block->entries[begin];
        child = begin + heap_arity <= heap->count ? first_of_four(children) : first_of_some(children, heap->count - (uint32_t)begin);
        if (!is_before(&children[child], &entry)) {
            break;
        }
        place(heap, index, children[child]);
        index = (uint32_t)begin + child;
    }
    place(heap, index, entry);
}

/* Puts `entry` where it belongs, `index` being the hole. */
static void settle(struct heap *heap, uint32_t index, struct heap_entry entry)
{
    if (index > 0 && is_before(&entry, &heap->block->entries[(index - 1) / heap_arity])) {
        sift_up(heap, index, entry);
    } else {
        sift_down(heap, index, entry);
    }
}

/* At least as many, half as large again each time; 0 if there are not so many numbers. */
static uint32_t next_capacity(uint32_t capacity, uint32_t needed)
{
    enum { least = 6 };
    uint64_t grown = (uint64_t)capacity + capacity / 2;

    grown = grown > needed ? grown : needed;
    grown = grown > least ? grown : least;
    return grown > UINT32_MAX / 2 ? 0 : (uint32_t)grown;
}

bool heap_grow(struct heap *heap, uint32_t capacity)
{
    uint32_t grown = next_capacity(heap->capacity, capacity);
    struct heap_block *block = grown ? realloc(heap->block, sizeof *block + (size_t)grown * sizeof block->entries[0]) : NULL;

    if (!block) {
        return false;
    }
    heap->block = block;
    heap->capacity = grown;
    return true;
}

void heap_push(struct heap *heap, struct heap_node *node, int64_t key)
{
    invariant(heap->count < heap->capacity); /* the caller has made room with heap_grow */
    heap->count++;
    sift_up(heap, heap->count - 1, (struct heap_entry){key, node});
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    uint32_t index = node->index;
    struct heap_entry last = heap->block->entries[heap->count - 1];

    invariant(index < heap->count);
    invariant(heap->block->entries[index].node == node); /* H2; also, the node is in this heap and in no other */
    heap->count--;
    heap->block->entries[heap->count].node = NULL; /* a leak checker would find a forgotten node there */
    node->index = heap_nowhere;
    if (heap->count > 0) { /* among very many, nodes are in no cache, and the next removal will write to the last one */
        __builtin_prefetch(&heap->block->entries[heap->count - 1].node->index, 1);
    }
    if (last.node != node) {
        settle(heap, index, last);
    }
}

void heap_change_key(struct heap *heap, struct heap_node *node, int64_t key)
{
    invariant(node->index < heap->count);
    invariant(heap->block->entries[node->index].node == node); /* H2 */
    settle(heap, node->index, (struct heap_entry){key, node});
}

void heap_free(struct heap *heap)
{
    free(heap->block);
    *heap = (struct heap){0};
}
