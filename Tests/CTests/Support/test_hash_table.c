/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table against a plain array that does the same. */
#include <stdint.h>
#include <stdlib.h>

#include "Support/hash_table.h"
#include "harness.h"

enum { model_size = 300, steps = 20000 };

static bool same(const void *one, const void *other, const void *context)
{
    (void)context;
    return one == other;
}

static uint64_t poor_hash(uintptr_t key)
{
    return key % 7;
}

static const void *pointer(uintptr_t number)
{
    return (const void *)number;
}

static void add(struct hash_table *table, uintptr_t key, uintptr_t value)
{
    size_t capacity = hash_table_capacity_for(table->count + 1);
    if (capacity > table->capacity) {
        free(hash_table_adopt(table, calloc(capacity, sizeof(struct hash_slot)), capacity));
    }
    hash_table_insert(table, poor_hash(key), pointer(key), pointer(value));
}

static void expect_model(const struct hash_table *table, const uintptr_t *model)
{
    size_t found = 0;
    size_t index = 0;
    const struct hash_slot *slot;
    while ((slot = hash_table_next(table, &index)) != NULL) {
        EXPECT((uintptr_t)slot->value == model[(uintptr_t)slot->key]);
        found++;
    }
    EXPECT_EQ(found, table->count);
}

TEST(a_hash_table_holds_what_was_put_in_whatever_the_hashes, "")
{
    struct hash_table table = {.slots = NULL};
    uintptr_t model[model_size] = {0};
    size_t count = 0;
    unsigned state = 1;
    for (int i = 0; i < steps; i++) {
        state = state * 1103515245 + 12345;
        uintptr_t key = (state >> 16) % model_size;
        struct hash_slot *slot = hash_table_find(&table, poor_hash(key), pointer(key), same, NULL);
        if ((slot != NULL) != (model[key] != 0) || (slot != NULL && (uintptr_t)slot->value != model[key])) {
            FAIL("the table and the model differ");
        }
        if (slot != NULL) {
            hash_table_remove(&table, slot);
            model[key] = 0;
            count--;
        } else {
            model[key] = (uintptr_t)i + 1;
            add(&table, key, model[key]);
            count++;
        }
        if (table.count != count) {
            FAIL("the count is wrong");
        }
    }
    expect_model(&table, model);
    free(table.slots);
}

TEST(a_hash_table_keeps_a_quarter_of_its_slots_empty, "")
{
    for (size_t count = 0; count < 1000; count++) {
        size_t capacity = hash_table_capacity_for(count);
        EXPECT(capacity >= 8 && (capacity & (capacity - 1)) == 0);
        EXPECT(count <= capacity - capacity / 4);
    }
    EXPECT_EQ(hash_table_capacity_for(SIZE_MAX), 0);
    EXPECT_EQ(hash_table_capacity_for(SIZE_MAX / sizeof(struct hash_slot)), 0);
}

TEST(an_empty_hash_table_finds_nothing, "")
{
    struct hash_table table = {.slots = NULL};
    size_t index = 0;
    EXPECT(hash_table_find(&table, 1, NULL, same, NULL) == NULL);
    EXPECT(hash_table_next(&table, &index) == NULL);
}
