/* SPDX-License-Identifier: Apache-2.0 */
/* What the callouts that are under way hold; see held.h. */
#include "Loop/held.h"

#include <stdlib.h>
#include <string.h>

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

bool held_insert(CFRunLoopRef loop, uint32_t place, struct held item)
{
    struct held *items;

    if (!held_reserve(loop, 1)) {
        return false;
    }
    items = loop->held.items;
    memmove(items + place + 1, items + place, (loop->held.count - place) * sizeof *items);
    items[place] = item;
    loop->held.count++;
    return true;
}

void held_free(CFRunLoopRef loop)
{
    free(loop->held.items);
    loop->held = (struct held_stack){.items = NULL};
}
