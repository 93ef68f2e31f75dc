/* SPDX-License-Identifier: Apache-2.0 */
/* The slow half of the stack of clean-ups: its growth, and running what nobody popped. */
#include "Loop/Core/callout_cleanup.h"

#include <stdlib.h>
#include <string.h>

bool cleanup_grow(struct cleanup_stack *stack, uint32_t count)
{
    bool is_first = stack->items == stack->first_items;
    uint64_t capacity = stack->capacity;
    struct cleanup *grown = NULL;

    while (capacity < (uint64_t)stack->count + count) {
        capacity *= 2;
    }
    if (capacity <= UINT32_MAX) {
        grown = realloc(is_first ? NULL : stack->items, capacity * sizeof *grown);
    }
    if (!grown) {
        return false;
    }
    if (is_first) { /* the first items stand in the loop itself, which realloc cannot copy */
        memcpy(grown, stack->first_items, stack->count * sizeof *grown);
    }
    stack->items = grown;
    stack->capacity = (uint32_t)capacity;
    return true;
}

void cleanup_unwind(CFRunLoopRef loop, uint32_t height)
{
    invariant_not_held(&loop->lock);
    while (loop->cleanups.count > height) {
        /* Taken off before it is called: the function may run the loop, which pushes and pops above this height. */
        struct cleanup cleanup = loop->cleanups.items[--loop->cleanups.count];

        if (cleanup.function) { /* it has none once it was disarmed */
            cleanup.function(cleanup.object);
        }
    }
}

void cleanup_unwind_locked(CFRunLoopRef loop, uint32_t height)
{
    invariant_held(&loop->lock);
    loop_unlock(loop);
    cleanup_unwind(loop, height);
    loop_lock(loop);
}

void cleanup_free(CFRunLoopRef loop)
{
    struct cleanup_stack *stack = &loop->cleanups;

    invariant(stack->count <= stack->capacity);
    if (stack->items != stack->first_items) {
        free(stack->items);
    }
    cleanup_stack_init(stack);
}
