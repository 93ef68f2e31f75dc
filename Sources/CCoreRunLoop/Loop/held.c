/* SPDX-License-Identifier: Apache-2.0 */
/* What the callouts that are under way hold; see held.h. */
#include "Loop/held.h"

#include <stdlib.h>

#include "Loop/block.h"

enum { held_at_first = 16 };

bool held_grow(struct held_stack *held, uint32_t count)
{
    size_t capacity = held->capacity ? held->capacity : (size_t)held_at_first;
    struct held *grown = NULL;

    while (capacity < (size_t)held->count + count) {
        capacity *= 2;
    }
    if (capacity <= UINT32_MAX) {
        grown = realloc(held->items, capacity * sizeof *grown);
    }
    if (grown) {
        held->items = grown;
        held->capacity = (uint32_t)capacity;
    }
    return grown != NULL;
}

void held_give_back(CFRunLoopRef loop, uint32_t height)
{
    while (loop->held.count > height) {
        struct held item = loop->held.items[--loop->held.count];

        if (item.give_back) {
            item.give_back(item.thing);
        }
    }
}

void held_give_back_left(CFRunLoopRef loop, uint32_t height)
{
    loop_unlock(loop);
    held_give_back(loop, height);
    loop_lock(loop);
}

void held_keep_hand(CFRunLoopRef loop, struct activation *run)
{
    if (run->in_hand.give_back) {
        (void)held_push(loop, run->in_hand.give_back, run->in_hand.thing);
        held_put_down(run);
    }
    if (run->blocks) {
        (void)held_push(loop, blocks_give_back, run->blocks);
        run->blocks = NULL;
    }
}

void held_give_back_all(CFRunLoopRef loop, struct activation *run)
{
    held_keep_hand(loop, run);
    held_give_back_left(loop, run->held_count);
}

void held_free(CFRunLoopRef loop)
{
    free(loop->held.items);
    loop->held = (struct held_stack){.items = NULL};
}
