/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where timers stand in the heaps of their modes, and when a sleep has to end for them. A later date leaves the timer in its place with an
 * early key (timer.h); the key is brought up to date when it comes to the top. The loop's lock is held throughout.
 */
#include "Loop/Timer/timer_heap.h"

#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"

struct timer_member *timer_member_in(CFRunLoopTimerRef timer, const struct mode *mode)
{
    struct timer_member *member = NULL;

    do {
        member = timer_next_member(timer, member);
    } while (member && member->mode != mode);
    return member;
}

CFRunLoopTimerRef timer_of_node(const struct heap_node *node)
{
    const struct timer_member *member = container_of((uintptr_t)node, struct timer_member, node);

    if (!(node->tag & (uint32_t)timer_member_is_further)) {
        return container_of((uintptr_t)member, struct __CFRunLoopTimer, first_member);
    }
    return container_of((uintptr_t)member, struct timer_further_member, member)->timer;
}

/* ---- new dates ---- */

REQUIRES(the_loop_lock) static void set_key_is_early(struct timer_member *member, bool is_early)
{
    invariant(member->mode && heap_contains(&member->node));
    if (timer_key_is_early(&member->node) != is_early) {
        invariant(is_early || member->mode->early_key_count > 0);
        member->node.tag ^= (uint32_t)timer_member_key_is_early;
        member->mode->early_key_count += is_early ? 1u : UINT32_MAX; /* UINT32_MAX subtracts one */
    }
    invariant(member->mode->early_key_count <= member->mode->timers.count);
}

REQUIRES(the_loop_lock) static void move_in_heap(struct timer_member *member, int64_t fire_ns)
{
    set_key_is_early(member, false); /* the new key is the date itself */
    heap_change_key(&member->mode->timers, &member->node, fire_ns);
}

void timer_member_redate(struct timer_member *member, int64_t old_ns, int64_t fire_ns)
{
    /* The place in the heap is right for any date that is not earlier than the key, which is old_ns unless it is early. */
    bool stays = fire_ns >= old_ns || (timer_key_is_early(&member->node) && heap_key(&member->mode->timers, &member->node) <= fire_ns);

    if (stays) {
        invariant(heap_key(&member->mode->timers, &member->node) <= fire_ns);
        set_key_is_early(member, true);
    } else {
        move_in_heap(member, fire_ns);
    }
}

void timer_member_unqueue(struct timer_member *member)
{
    set_key_is_early(member, false);
    heap_remove(&member->mode->timers, &member->node);
}

void timers_move_early_keys(struct mode *mode)
{
    while (mode->early_key_count > 0 && timer_key_is_early(mode->timers.block->entries[0].node)) {
        struct heap_node *node = mode->timers.block->entries[0].node;

        invariant(mode->timers.block->entries[0].key <= timer_of_node(node)->fire_ns);
        move_in_heap(container_of(node, struct timer_member, node), timer_of_node(node)->fire_ns);
    }
    invariant(mode->timers.count == 0 || !timer_key_is_early(mode->timers.block->entries[0].node));
}

/* ---- the limit of a sleep ---- */

static int64_t limit_of_entry(const struct heap_entry *entry)
{
    const struct __CFRunLoopTimer *timer = timer_of_node(entry->node);
    double tolerance = timer_extra(timer)->tolerance;

    return tolerance > 0 ? instant_add(timer->fire_ns, instant_interval_ns(tolerance)) : timer->fire_ns;
}

int64_t timers_limit(struct mode *mode)
{
    enum { most_nodes = 32 };
    const struct heap *heap = &mode->timers;
    uint32_t open[most_nodes * heap_arity + 1];
    uint32_t open_count = 0;
    int64_t best = kernel_never;

    if (heap->count == 0) {
        return kernel_never;
    }
    timers_apply_new_dates(mode);
    if (mode->tolerant_count == 0) {
        return heap->block->entries[0].key;
    }
    /*
     * Finds the earliest sum of a date and its tolerance, from the top of the heap down. A node whose date is later than the best limit so
     * far cannot lower that limit, and neither can the nodes below it. After most_nodes the search settles for a bound that is too early.
     */
    open[open_count++] = 0;
    for (uint32_t visited = 0; open_count > 0; visited++) {
        uint32_t index = open[--open_count];
        const struct heap_entry *entry = &heap->block->entries[index];
        uint64_t child = (uint64_t)index * heap_arity + 1;

        if (entry->key >= best) {
            continue;
        }
        if (visited >= most_nodes) {
            best = entry->key; /* unexplored: its bare date is a safe bound for all below it */
            continue;
        }
        best = limit_of_entry(entry) < best ? limit_of_entry(entry) : best;
        for (uint32_t i = 0; i < heap_arity && child + i < heap->count; i++) {
            invariant(open_count < most_nodes * heap_arity + 1);
            open[open_count++] = (uint32_t)child + i;
        }
    }
    invariant(best >= heap->block->entries[0].key);
    return best;
}
