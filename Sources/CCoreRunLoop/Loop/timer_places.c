/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where timers stand in the heaps of their modes while they are DEFERRED or ADVANCED (timer.h): for another date than they have. The loop's
 * lock is held throughout.
 */
#include <stdlib.h>

#include "Loop/timer_membership.h"

/* ---- those with a later date: counted ---- */

static void set_deferred(struct timer_member *member, bool is_deferred)
{
    if (timer_node_is_deferred(&member->node) != is_deferred) {
        member->node.tag ^= (uint32_t)timer_member_is_deferred;
        member->mode->deferred_count += is_deferred ? 1u : UINT32_MAX;
    }
}

/* ---- those with an earlier date: listed ---- */

static const uint32_t low_bits = (1u << timer_member_place_shift) - 1;

static void set_place(struct mode *mode, struct heap_node *node, uint32_t place)
{
    mode->advanced[place] = node;
    node->tag = (node->tag & low_bits) | place << timer_member_place_shift;
}

/* False if there is no memory, or a tag holds no more places. */
static bool list_grow(struct mode *mode)
{
    const uint32_t first = 16;
    const uint32_t most = UINT32_MAX >> timer_member_place_shift;
    uint32_t capacity = mode->advanced_capacity > 0 ? 2 * mode->advanced_capacity : first;
    struct heap_node **grown = capacity <= most ? realloc(mode->advanced, capacity * sizeof(struct heap_node *)) : NULL;

    if (!grown) {
        return false;
    }
    mode->advanced = grown;
    mode->advanced_capacity = capacity;
    return true;
}

/* False if there is no memory. */
static bool advance(struct timer_member *member)
{
    struct mode *mode = member->mode;

    if (mode->advanced_count == mode->advanced_capacity && !list_grow(mode)) {
        return false;
    }
    set_deferred(member, false);
    member->node.tag |= (uint32_t)timer_member_is_advanced;
    set_place(mode, &member->node, mode->advanced_count++);
    return true;
}

static void clear_advanced(struct heap_node *node)
{
    node->tag &= low_bits & ~(uint32_t)timer_member_is_advanced;
}

static void take_off_list(struct timer_member *member)
{
    struct mode *mode = member->mode;

    mode->advanced_count--;
    set_place(mode, mode->advanced[mode->advanced_count], member->node.tag >> timer_member_place_shift);
    clear_advanced(&member->node);
}

/* ---- new dates ---- */

static void move_in_heap(struct timer_member *member, int64_t fire_ns)
{
    set_deferred(member, false);
    heap_change_key(&member->mode->timers, &member->node, fire_ns);
}

/* It is deferred, and its place is for a date that is earlier still. */
static bool may_stay(const struct timer_member *member, int64_t fire_ns)
{
    return timer_node_is_deferred(&member->node) && heap_key(&member->mode->timers, &member->node) <= fire_ns;
}

/* Out of the way of later dates, which most are. */
static __attribute__((noinline)) void move_earlier(struct timer_member *member, int64_t fire_ns)
{
    if (!may_stay(member, fire_ns) && !advance(member)) {
        move_in_heap(member, fire_ns);
    }
}

void timer_member_move(struct timer_member *member, int64_t old_ns, int64_t fire_ns)
{
    if (timer_node_is_advanced(&member->node)) {
        return; /* whatever its date is, it will be moved to that */
    }
    if (fire_ns >= old_ns) {
        set_deferred(member, true);
    } else {
        move_earlier(member, fire_ns);
    }
}

void timer_member_unqueue(struct timer_member *member)
{
    set_deferred(member, false);
    if (timer_node_is_advanced(&member->node)) {
        take_off_list(member);
    }
    heap_remove(&member->mode->timers, &member->node);
}

/* ---- who asks ---- */

/* All at once, in a pass through the array, which knows early what it will touch. */
static void settle_all(struct mode *mode)
{
    enum { ahead = 16 };
    struct heap *heap = &mode->timers;

    for (uint32_t i = 0; i < heap->count; i++) {
        struct heap_node *node = heap->entries[i].node;

        if (i + ahead < heap->count) {
            __builtin_prefetch(heap->entries[i + ahead].node, 1);
        }
        if (timer_node_is_deferred(node) || timer_node_is_advanced(node)) {
            set_deferred(container_of(node, struct timer_member, node), false);
            clear_advanced(node);
            heap->entries[i].key = timer_of_node(node)->fire_ns;
        }
    }
    mode->advanced_count = 0;
    heap_rebuild(heap);
}

/* The way of each is short, and mostly through memory that is in no cache, unless it is known early. */
static void move_advanced(struct mode *mode)
{
    enum { nodes_ahead = 16, entries_ahead = 8 };
    const uint32_t count = mode->advanced_count;

    mode->advanced_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct heap_node *node = mode->advanced[i];

        if (i + nodes_ahead < count) {
            __builtin_prefetch(mode->advanced[i + nodes_ahead], 1);
        }
        if (i + entries_ahead < count) {
            heap_fetch(&mode->timers, mode->advanced[i + entries_ahead]);
        }
        clear_advanced(node);
        heap_change_key(&mode->timers, node, timer_of_node(node)->fire_ns);
    }
}

/* One by one, from the top, which is the longest way. False after as many as take as long as moving all at once. */
static bool move_deferred(struct mode *mode)
{
    enum { few = 16, timers_a_move = 32 };
    uint32_t patience = few + mode->timers.count / timers_a_move;

    for (uint32_t moved = 0; mode->deferred_count > 0 && timer_node_is_deferred(mode->timers.entries[0].node); moved++) {
        struct heap_node *node = mode->timers.entries[0].node;

        if (moved == patience) {
            return false;
        }
        move_in_heap(container_of(node, struct timer_member, node), timer_of_node(node)->fire_ns);
    }
    return true;
}

/* No look takes longer than a few passes through the array. */
void timers_settle_places(struct mode *mode)
{
    enum { few = 16, timers_a_move = 4 };

    if (mode->advanced_count > few + mode->timers.count / timers_a_move) {
        settle_all(mode);
        return;
    }
    move_advanced(mode);
    if (!move_deferred(mode)) {
        settle_all(mode);
    }
}
