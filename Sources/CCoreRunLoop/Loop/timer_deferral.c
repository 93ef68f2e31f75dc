/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where timers stand in the heaps of their modes while they are DEFERRED (timer.h): for an earlier date than they have. The loop's lock is
 * held throughout.
 */
#include "Loop/timer_membership.h"

static void set_deferred(struct timer_member *member, bool is_deferred)
{
    if (timer_node_is_deferred(&member->node) != is_deferred) {
        member->node.tag ^= (uint32_t)timer_member_is_deferred;
        member->mode->deferred_count += is_deferred ? 1u : UINT32_MAX;
    }
}

static void move_in_heap(struct timer_member *member, int64_t fire_ns)
{
    set_deferred(member, false);
    heap_change_key(&member->mode->timers, &member->node, fire_ns);
}

void timer_member_unqueue(struct timer_member *member)
{
    set_deferred(member, false);
    heap_remove(&member->mode->timers, &member->node);
}

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
        if (timer_node_is_deferred(node)) {
            set_deferred(container_of(node, struct timer_member, node), false);
            heap->entries[i].key = timer_of_node(node)->fire_ns;
        }
    }
    heap_rebuild(heap);
}

/*
 * One by one, from the top, which is the longest way; after as many as take as long as moving all at once, all at once. So no look takes
 * longer than a few passes through the array.
 */
void timers_settle_deferred(struct mode *mode)
{
    enum { few = 16, timers_a_move = 32 };
    uint32_t patience = few + mode->timers.count / timers_a_move;

    for (uint32_t moved = 0; mode->deferred_count > 0 && timer_node_is_deferred(mode->timers.entries[0].node); moved++) {
        struct heap_node *node = mode->timers.entries[0].node;

        if (moved == patience) {
            settle_all(mode);
            break;
        }
        move_in_heap(container_of(node, struct timer_member, node), timer_of_node(node)->fire_ns);
    }
}

/* The place that it has, or had for an earlier date, is not after the one for `fire_ns`, and can wait there for its turn to be moved. */
static bool can_defer(const struct timer_member *member, int64_t old_ns, int64_t fire_ns)
{
    return fire_ns >= old_ns ||
           (timer_node_is_deferred(&member->node) && fire_ns >= heap_key(&member->mode->timers, &member->node));
}

void timer_member_move(struct timer_member *member, int64_t old_ns, int64_t fire_ns)
{
    if (can_defer(member, old_ns, fire_ns)) {
        set_deferred(member, true);
    } else {
        move_in_heap(member, fire_ns);
    }
}
