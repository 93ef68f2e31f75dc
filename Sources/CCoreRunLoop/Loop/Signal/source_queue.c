/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves signalled sources on the way from a signal to its perform: from the waker's queue of bindings into the pending lists of modes. Both
 * are hints: only the mark says whether a source is signalled. The loop's lock is held, except in bindings_release. Signallers push in
 * source.c, without a lock.
 */
#include "Loop/Signal/source_queue.h"

#include <stdlib.h>

#include "Support/barrier.h"

/* ---- bindings ---- */

static void release_list_add(struct binding_release_list *released, struct binding *binding)
{
    binding->queue_next = released->first;
    released->first = binding;
}

bool binding_unbind(CFRunLoopRef loop, struct binding *binding, struct binding_release_list *released)
{
    uintptr_t word = (uintptr_t)loop->waker;

    invariant_held(&loop->lock);
    invariant(!binding->members);
    invariant(!binding_is_to(binding, loop) || atomic_load_explicit(&binding->loop, memory_order_relaxed) == loop);
    if (!atomic_compare_exchange_strong_explicit(&binding->word, &word, 0, memory_order_seq_cst, memory_order_relaxed)) {
        return false; /* the queued bit is set: a signaller pushes the binding, or has pushed it */
    }
    invariant(loop->bound_count > 0);
    loop->bound_count--;
    if (binding->source == loop->lent_reference) {
        /* A report borrows the reference that is dropped now. It gets one of its own. */
        object_retain(binding->source);
        loop->lent_reference = NULL;
    }
    release_list_add(released, binding);
    return true;
}

void bindings_release(struct binding_release_list *released)
{
    for (struct binding *binding = released->first, *next; binding; binding = next) {
        CFRunLoopSourceRef source = binding->source;
        CFRunLoopRef loop = atomic_load_explicit(&binding->loop, memory_order_relaxed);
        struct lock *lock = item_lock(source);

        next = binding->queue_next;
        invariant(loop && !atomic_load_explicit(&binding->word, memory_order_relaxed)); /* unbound, and the references are still held */
        /* Another loop may use the binding from here on. A thread that read `loop` under the item lock found the reference still held. */
        lock_take(lock);
        atomic_store_explicit(&binding->loop, NULL, memory_order_relaxed);
        lock_drop(lock);
        object_release(source);
        object_release(loop);
    }
    released->first = NULL;
}

bool binding_link_members(struct binding *binding)
{
    for (struct source_member *member = binding->members; member; member = member->next) {
        struct mode *mode = member->mode;

        if (!mode || link_is_linked(&member->link)) {
            continue; /* a common item is in no mode by this member; a linked one is pending already */
        }
        invariant(source_kind(binding->source) == source_manual);
        if (!list_is_empty(&mode->pending)) {
            struct source_member *last = container_of(mode->pending.prev, struct source_member, link);

            mode->pending_is_unsorted |= last->binding->source->order > binding->source->order;
        }
        list_append(&mode->pending, &member->link);
    }
    return binding->members != NULL;
}

static struct binding *queue_reverse(struct binding *binding)
{
    struct binding *reversed = NULL;

    while (binding) {
        struct binding *next = binding->queue_next;

        binding->queue_next = reversed;
        reversed = binding;
        binding = next;
    }
    return reversed;
}

void source_queue_drain(CFRunLoopRef loop, struct binding_release_list *released)
{
    struct binding *bindings = atomic_load_explicit(&loop->waker->queue, memory_order_relaxed);

    invariant_held(&loop->lock);
    if (!bindings) {
        return;
    }
    /* The queue is a stack with the latest signal on top. Sources of equal order are performed by the time of their signal (rule 83). */
    bindings = queue_reverse(atomic_exchange_explicit(&loop->waker->queue, NULL, memory_order_acquire));
    while (bindings) {
        struct binding *binding = bindings;

        bindings = binding->queue_next;
        invariant(atomic_load_explicit(&binding->word, memory_order_relaxed) == ((uintptr_t)loop->waker | binding_queued));
        invariant(atomic_load_explicit(&binding->loop, memory_order_relaxed) == loop);
        atomic_store_explicit(&binding->word, (uintptr_t)loop->waker, memory_order_release);
        if (!binding_link_members(binding)) {
            (void)binding_unbind(loop, binding,
                                 released); /* a zombie; if a signaller has queued it again already, the next drain finds it */
        }
    }
    /* A signaller that found the queued bit set did not push. Every look at marks from here on must see its mark. */
    barrier_full();
}

/* ---- pending lists ---- */

void source_unlink_pending(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        if (!binding_is_to(binding, loop)) {
            continue;
        }
        for (struct source_member *member = binding->members; member; member = member->next) {
            if (member->mode) {
                list_remove(&member->link);
            }
        }
    }
}

void source_link_pending(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        if (binding_is_to(binding, loop)) {
            (void)binding_link_members(binding);
        }
    }
}

/* Brings a mark whose signaller does not exist in this process to the state after the pushes. */
static void settle_mark(CFRunLoopSourceRef source)
{
    uint32_t mark = atomic_load_explicit(&source->mark, memory_order_relaxed);

    if (source_mark_state(mark) == mark_busy || source_mark_state(mark) == mark_contested) {
        atomic_store_explicit(&source->mark, (mark & ~(uint32_t)mark_state_mask) | mark_set, memory_order_relaxed);
    }
}

REQUIRES(the_loop_lock) static void requeue_set(CFRunLoopRef loop, struct source_set *set)
{
    uint32_t count = set->buckets ? set->bucket_count : 1;
    struct source_member **buckets = set->buckets ? set->buckets : &set->first;

    for (uint32_t i = 0; i < count; i++) {
        for (struct source_member *member = buckets[i]; member; member = member->chain) {
            atomic_store_explicit(&member->binding->word, (uintptr_t)loop->waker, memory_order_relaxed);
            settle_mark(member->binding->source);
            if (source_kind(member->binding->source) == source_manual && source_may_be_marked(member->binding->source)) {
                (void)binding_link_members(member->binding);
            }
        }
    }
}

void sources_requeue(CFRunLoopRef loop)
{
    atomic_store_explicit(&loop->waker->queue, NULL, memory_order_relaxed);
    requeue_set(loop, &loop->common_sources);
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        requeue_set(loop, &mode->sources);
    }
}

REQUIRES(the_loop_lock) static int64_t order_of(const struct link *link)
{
    return container_of(link, const struct source_member, link)->binding->source->order;
}

/* Merges two sorted chains that end in NULL. Stable. Only the `next` pointers are kept right. */
REQUIRES(the_loop_lock) static struct link *chains_merge(struct link *one, struct link *other)
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

/* Sorts a chain by merging halves. Stable, so that equal orders stay in order of arrival. */
REQUIRES(the_loop_lock) static struct link *sort_chain(struct link *chain, uint32_t count)
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
    return chains_merge(sort_chain(chain, count / 2), sort_chain(second, count - count / 2));
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
        count--;
        chain = next;
    }
    invariant(count == 0); /* as many members as before */
}

struct source_member *source_first_pending(struct mode *mode)
{
    source_sort_pending(mode);
    return list_is_empty(&mode->pending) ? NULL : container_of(mode->pending.next, struct source_member, link);
}
