/* SPDX-License-Identifier: Apache-2.0 */
/* The heap against a plain list that is searched, on random histories; order of equal keys; limits. */
#include <stdlib.h>
#include <string.h>

#include "Support/heap.h"
#include "harness.h"

struct item {
    struct heap_node node;
    int64_t key;
    bool is_in;
};

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static struct item *item_of(const struct heap_entry *entry)
{
    return (struct item *)(void *)((char *)entry->node - offsetof(struct item, node));
}

static bool is_before(const struct heap_entry *one, const struct heap_entry *other)
{
    return one->key < other->key || (one->key == other->key && one->node->sequence < other->node->sequence);
}

/* H1 and H2 of heap.c. */
static void expect_heap(const struct heap *heap)
{
    for (uint32_t i = 0; i < heap->count; i++) {
        if (heap->block->entries[i].node->index != i ||
            (i > 0 && is_before(&heap->block->entries[i], &heap->block->entries[(i - 1) / heap_arity]))) {
            FAIL("the heap is out of order");
        }
    }
}

TEST(an_empty_heap_needs_nothing, "")
{
    struct heap heap = {NULL, 0, 0};

    EXPECT(heap_reserve(&heap, 0));
    EXPECT(heap.block == NULL);
    heap_free(&heap);
    EXPECT(heap_reserve(&heap, 1));
    EXPECT(heap.capacity >= 1);
    heap_free(&heap);
    EXPECT_EQ(heap.capacity, 0);
}

TEST(a_heap_gives_keys_in_order, "132")
{
    enum { count = 1000 };
    static struct item items[count];
    struct heap heap = {NULL, 0, 0};
    int64_t last = INT64_MIN;

    REQUIRE(heap_reserve(&heap, count));
    for (int i = 0; i < count; i++) {
        heap_node_init(&items[i].node);
        EXPECT(!heap_contains(&items[i].node));
        heap_push(&heap, &items[i].node, (int64_t)next_random());
        EXPECT(heap_contains(&items[i].node));
    }
    expect_heap(&heap);
    while (heap.count > 0) {
        EXPECT(heap.block->entries[0].key >= last);
        last = heap.block->entries[0].key;
        heap_remove(&heap, heap.block->entries[0].node);
        EXPECT(heap.block->entries[heap.count].node == NULL);
    }
    heap_free(&heap);
}

TEST(equal_keys_leave_in_order_of_their_numbers, "134")
{
    enum { count = 500 };
    static struct item items[count];
    struct heap heap = {NULL, 0, 0};

    REQUIRE(heap_reserve(&heap, count));
    for (int i = 0; i < count; i++) {
        heap_node_init(&items[i].node);
        items[i].node.sequence = (uint64_t)((i * 7) % count); /* 7 and 500 have no factor in common: each number once */
        heap_push(&heap, &items[i].node, 42);
    }
    for (uint64_t i = 0; i < count; i++) {
        EXPECT_EQ(heap.block->entries[0].node->sequence, i);
        heap_remove(&heap, heap.block->entries[0].node);
    }
    heap_free(&heap);
}

/* Empties it. Equal keys may come in any order. */
static void expect_keys_in_order(struct heap *heap)
{
    int64_t last = INT64_MIN;

    while (heap->count > 0) {
        struct heap_node *first = heap->block->entries[0].node;

        EXPECT(heap_key(heap, first) >= last);
        last = heap_key(heap, first);
        heap_remove(heap, first);
    }
}

TEST(changed_numbers_leave_the_order_of_keys, "128 132")
{
    enum { count = 500, steps = 20000 };
    static struct item items[count];
    struct heap heap = {NULL, 0, 0};

    REQUIRE(heap_reserve(&heap, count));
    for (int i = 0; i < steps; i++) {
        struct heap_node *node = &items[i % count].node;

        if (i < count) {
            heap_node_init(node);
            heap_push(&heap, node, (int64_t)(next_random() % 8));
        }
        node->sequence = next_random();
        if (next_random() % 2) {
            heap_change_key(&heap, node, (int64_t)(next_random() % 8));
        }
    }
    expect_keys_in_order(&heap);
    heap_free(&heap);
}

TEST(extreme_keys_are_keys, "113")
{
    static struct item items[4];
    static const int64_t keys[] = {INT64_MAX, 0, INT64_MIN, -1};
    struct heap heap = {NULL, 0, 0};

    REQUIRE(heap_reserve(&heap, 4));
    for (int i = 0; i < 4; i++) {
        heap_node_init(&items[i].node);
        heap_push(&heap, &items[i].node, keys[i]);
    }
    EXPECT_EQ(heap.block->entries[0].key, INT64_MIN);
    heap_change_key(&heap, &items[2].node, INT64_MAX);
    EXPECT_EQ(heap.block->entries[0].key, -1);
    expect_heap(&heap);
    heap_free(&heap);
}

static int64_t smallest(const struct item *items, int count, const struct item **ret_item)
{
    const struct item *best = NULL;

    for (int i = 0; i < count; i++) {
        const struct item *item = &items[i];

        if (item->is_in && (!best || item->key < best->key || (item->key == best->key && item->node.sequence < best->node.sequence))) {
            best = item;
        }
    }
    *ret_item = best;
    return best ? best->key : 0;
}

TEST(random_histories_agree_with_a_plain_list, "128 131 T15")
{
    enum { count = 60, steps = 20000 };
    static struct item items[count];
    struct heap heap = {NULL, 0, 0};
    uint64_t sequence = 0;

    for (int i = 0; i < count; i++) {
        heap_node_init(&items[i].node);
    }
    for (int i = 0; i < steps; i++) {
        struct item *item = &items[next_random() % count];
        int64_t key = (int64_t)(next_random() % 50); /* few, so that many are equal */
        const struct item *first;

        if (!item->is_in) {
            REQUIRE(heap_reserve(&heap, heap.count + 1));
            item->node.sequence = sequence++;
            item->key = key;
            heap_push(&heap, &item->node, key);
            item->is_in = true;
        } else if (next_random() % 2) {
            heap_remove(&heap, &item->node);
            EXPECT(!heap_contains(&item->node));
            item->is_in = false;
        } else {
            item->key = key;
            heap_change_key(&heap, &item->node, key);
        }
        expect_heap(&heap);
        (void)smallest(items, count, &first);
        EXPECT(heap.count > 0 ? first == item_of(&heap.block->entries[0]) : first == NULL);
    }
    heap_free(&heap);
}

TEST(a_heap_that_cannot_grow_says_so, "")
{
    struct heap heap = {NULL, 0, 0};

    EXPECT(!heap_reserve(&heap, UINT32_MAX));
    EXPECT(heap_reserve(&heap, 9));
    EXPECT(!heap_reserve(&heap, UINT32_MAX)); /* what is there stays */
    EXPECT(heap.capacity >= 9);
    heap_free(&heap);
}
