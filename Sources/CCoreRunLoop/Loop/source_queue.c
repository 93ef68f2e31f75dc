/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is between a signal and its perform: slots in the mailbox's queue, and members in the pending lists of modes. Hints only: the mark
 * is the truth. The loop's lock is held throughout.
 */
#include "Loop/source_queue.h"

#include <stdlib.h>

#include "Support/barrier.h"

/* ---- slots; the loop's lock is held ---- */

static void reap_add(struct slot_reap *reap, struct slot *slot)
{
    slot->queue_next = reap->first;
    reap->first = slot;
}

bool slot_unbind(CFRunLoopRef loop, struct slot *slot, struct slot_reap *reap)
{
    uintptr_t bind = (uintptr_t)loop->mailbox;

    if (!atomic_compare_exchange_strong_explicit(&slot->bind, &bind, 0, memory_order_seq_cst, memory_order_relaxed)) {
        return false;
    }
    loop->bound_slots--;
    if (slot->source == loop->borrowed) {
        object_retain(slot->source);
        loop->borrowed = NULL;
    }
    reap_add(reap, slot);
    return true;
}

void slots_release(struct slot_reap *reap)
{
    for (struct slot *slot = reap->first, *next; slot; slot = next) {
        CFRunLoopSourceRef source = slot->source;
        CFRunLoopRef loop = atomic_load_explicit(&slot->loop, memory_order_relaxed);
        struct lock *lock = item_lock(source);

        next = slot->queue_next;
        /* Only now may the slot be bound to another loop; and whoever read `loop` under the item's lock found the reference still held. */
        lock_take(lock);
        atomic_store_explicit(&slot->loop, NULL, memory_order_relaxed);
        lock_drop(lock);
        object_release(source);
        object_release(loop);
    }
    reap->first = NULL;
}

bool slot_link_members(struct slot *slot)
{
    for (struct source_member *member = slot->members; member; member = member->next) {
        struct mode *mode = member->mode;

        if (!mode || link_is_linked(&member->link)) {
            continue;
        }
        if (!list_is_empty(&mode->pending)) {
            struct source_member *last = container_of(mode->pending.prev, struct source_member, link);

            mode->pending_is_unsorted |= last->slot->source->order > slot->source->order;
        }
        list_append(&mode->pending, &member->link);
    }
    return slot->members != NULL;
}

static struct slot *reverse(struct slot *slot)
{
    struct slot *reversed = NULL;

    while (slot) {
        struct slot *next = slot->queue_next;

        slot->queue_next = reversed;
        reversed = slot;
        slot = next;
    }
    return reversed;
}

void source_queue_drain(CFRunLoopRef loop, struct slot_reap *reap)
{
    struct slot *slots = atomic_load_explicit(&loop->mailbox->queue, memory_order_relaxed);

    if (!slots) {
        return;
    }
    /* The stack has the latest signal on top; sources of equal order are performed earliest first (83). */
    slots = reverse(atomic_exchange_explicit(&loop->mailbox->queue, NULL, memory_order_acquire));
    while (slots) {
        struct slot *slot = slots;

        slots = slot->queue_next;
        atomic_store_explicit(&slot->bind, (uintptr_t)loop->mailbox, memory_order_release);
        if (!slot_link_members(slot)) {
            (void)slot_unbind(loop, slot, reap); /* a zombie; if it has been queued anew already, the next drain meets it */
        }
    }
    /* A signaller that found the queued bit set relied on us: its mark must be seen by whoever looks at marks from here on. */
    barrier_full();
}

/* ---- pending lists; the loop's lock is held ---- */

void source_unlink_pending(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        if (!slot_is_bound_to(slot, loop)) {
            continue;
        }
        for (struct source_member *member = slot->members; member; member = member->next) {
            if (member->mode) {
                list_remove(&member->link);
            }
        }
    }
}

void source_link_pending(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        if (slot_is_bound_to(slot, loop)) {
            (void)slot_link_members(slot);
        }
    }
}

/* The state in which a signal is announced and no push is owed. */
static void settle_mark(CFRunLoopSourceRef source)
{
    uint32_t mark = atomic_load_explicit(&source->mark, memory_order_relaxed);

    if (source_mark_state(mark) == mark_busy || source_mark_state(mark) == mark_contested) {
        atomic_store_explicit(&source->mark, (mark & ~(uint32_t)mark_state_mask) | mark_set, memory_order_relaxed);
    }
}

static void requeue_set(CFRunLoopRef loop, struct source_set *set)
{
    uint32_t count = set->buckets ? set->bucket_count : 1;
    struct source_member **buckets = set->buckets ? set->buckets : &set->first;

    for (uint32_t i = 0; i < count; i++) {
        for (struct source_member *member = buckets[i]; member; member = member->chain) {
            atomic_store_explicit(&member->slot->bind, (uintptr_t)loop->mailbox, memory_order_relaxed);
            settle_mark(member->slot->source);
            if (source_kind(member->slot->source) == source_manual && source_may_be_marked(member->slot->source)) {
                (void)slot_link_members(member->slot);
            }
        }
    }
}

void sources_requeue(CFRunLoopRef loop)
{
    atomic_store_explicit(&loop->mailbox->queue, NULL, memory_order_relaxed);
    requeue_set(loop, &loop->common_sources);
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        requeue_set(loop, &mode->sources);
    }
}

static int64_t order_of(const struct link *link)
{
    return container_of(link, const struct source_member, link)->slot->source->order;
}

/* Merges two chains that end in NULL; stable. Only `next` is kept. */
static struct link *merge(struct link *one, struct link *other)
{
    struct link *first = NULL;
    struct link **tail = &first;

    while (one && other) {
        struct link **smaller = order_of(other) < order_of(one) ? &other : &one;

        *tail = *smaller;
        tail = &(*smaller)->next;
        *smaller = (*smaller)->next;
    }
    *tail = one ? one : other;
    return first;
}

static struct link *sort_chain(struct link *chain, uint32_t count)
{
    struct link *middle = chain;
    struct link *second;

    if (count < 2) {
        return chain;
    }
    for (uint32_t i = 1; i < count / 2; i++) {
        middle = middle->next;
    }
    second = middle->next;
    middle->next = NULL;
    return merge(sort_chain(chain, count / 2), sort_chain(second, count - count / 2));
}

void source_sort_pending(struct mode *mode)
{
    struct link *head = &mode->pending;
    struct link *chain;
    uint32_t count = 0;

    if (!mode->pending_is_unsorted) {
        return;
    }
    mode->pending_is_unsorted = false;
    list_for_each(link, head) {
        count++;
    }
    head->prev->next = NULL;
    chain = sort_chain(head->next, count);
    link_init(head);
    while (chain) {
        struct link *next = chain->next;

        list_append(head, chain);
        chain = next;
    }
}

struct source_member *source_first_pending(struct mode *mode)
{
    source_sort_pending(mode);
    return list_is_empty(&mode->pending) ? NULL : container_of(mode->pending.next, struct source_member, link);
}
