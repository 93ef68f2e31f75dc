/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bindings and the members of sources; see source_member.h. The loop's lock guards memberships; the item lock of the source guards
 * which bindings and members are free. A source that is bound to a loop holds one reference on it and is held once by it, however many
 * modes it is in.
 */
#include "Loop/Source/source_member.h"

#include <stdlib.h>
#include <string.h>

#include "Loop/Watch/watch.h"
#include "Support/barrier.h"

/* Returns the binding of the source to the loop, or else a free one; NULL if there is no memory. The item lock is held, too. */
REQUIRES(the_loop_lock) static struct binding *binding_for(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    struct binding *unused = NULL;
    struct binding *last = NULL;

    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        if (binding_is_to(binding, loop)) {
            return binding;
        }
        if (!atomic_load_explicit(&binding->loop, memory_order_relaxed)) {
            unused = binding;
        }
        last = binding;
    }
    if (!unused) {
        unused = calloc(1, sizeof *unused);
        if (!unused) {
            return NULL;
        }
        unused->source = source;
        atomic_store_explicit(&last->next, unused, memory_order_release);
    }
    return unused;
}

REQUIRES(the_loop_lock) static void binding_bind(CFRunLoopRef loop, struct binding *binding)
{
    invariant_held(&loop->lock);
    invariant(binding_is_to(binding, loop) || !atomic_load_explicit(&binding->loop, memory_order_relaxed));
    if (atomic_load_explicit(&binding->loop, memory_order_relaxed)) {
        return;
    }
    invariant(!atomic_load_explicit(&binding->word, memory_order_relaxed) && !binding->members);
    object_retain(binding->source);
    object_retain(loop);
    loop->bound_count++;
    atomic_store_explicit(&binding->loop, loop, memory_order_relaxed);
    atomic_store_explicit(&binding->word, (uintptr_t)loop->waker, memory_order_seq_cst);
}

static struct source_member *member_create(CFRunLoopSourceRef source)
{
    /* The first member is inside the source. The item lock guards who claims it. */
    struct source_member *member = source->first_member.binding ? calloc(1, sizeof *member) : &source->first_member;

    if (member) {
        link_init(&member->link);
    }
    return member;
}

static void member_destroy(CFRunLoopSourceRef source, struct source_member *member)
{
    if (member == &source->first_member) {
        struct lock *lock = item_lock(source);

        lock_take(lock);
        memset(member, 0, sizeof *member);
        lock_drop(lock);
    } else {
        free(member);
    }
}

enum source_attach_result source_member_attach(CFRunLoopRef loop, struct source_set *set, struct mode *mode, CFRunLoopSourceRef source,
                                               CFHashCode hash)
{
    struct lock *lock = item_lock(source);
    struct binding *binding;
    struct source_member *member = NULL;
    enum source_attach_result result = source_attach_no_memory;

    lock_take(lock);
    binding = binding_for(loop, source);
    if (!source_is_valid(source)) {
        result = source_attach_refused;
    } else if (binding && (member = member_create(source)) != NULL) {
        invariant(!member->binding && !member->next);
        member->binding = binding;
        member->mode = mode;
        member->hash = hash;
        binding_bind(loop, binding);
        member->next = binding->members;
        binding->members = member;
        result = source_attached;
    }
    lock_drop(lock);
    if (result == source_attached) {
        source_set_insert(set, member);
        if (!mode) {
            list_append(&loop->common_sources_in_order, &member->link);
        }
    }
    return result;
}

void source_member_detach(CFRunLoopRef loop, struct source_set *set, struct source_member *member, struct binding_release_list *released)
{
    struct binding *binding = member->binding;
    struct source_member **place = &binding->members;

    invariant_held(&loop->lock);
    invariant(binding_is_to(binding, loop));
    invariant(atomic_load_explicit(&binding->loop, memory_order_relaxed) == loop); /* I3: bound, so the reference is held */
    while (*place != member) {
        invariant(*place != NULL);
        place = &(*place)->next;
    }
    *place = member->next;
    if (member->mode && source_kind(binding->source) != source_manual) {
        watch_remove_member(loop, member);
    }
    list_remove(&member->link);
    source_set_remove(set, member);
    member_destroy(binding->source, member);
    if (!binding->members && !binding_unbind(loop, binding, released)) {
        source_queue_drain(loop, released); /* unbinds it, or leaves it a zombie for a later drain */
    }
}

void source_member_notice_mark(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode)
{
    struct source_member *member;

    barrier_full(); /* after the store of the binding's word: the signaller sees the binding, or this thread sees the mark */
    if (!source_may_be_marked(source)) {
        return;
    }
    member = source_member_in(loop, source, mode);
    if (member) {
        (void)binding_link_members(member->binding);
    }
}

bool source_is_bound(CFRunLoopSourceRef source)
{
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        if (atomic_load_explicit(&binding->loop, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}
