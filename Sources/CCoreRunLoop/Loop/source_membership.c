/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and leaving modes, with the calls of schedule and cancel, and invalidation. */
#include "Loop/source_membership.h"

#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Loop/source_queue.h"
#include "Loop/source_set.h"
#include "Loop/watch.h"
#include "Support/barrier.h"
#include "Support/fault.h"

/* ---- membership ---- */

struct source_member *source_member_in(CFRunLoopRef loop, CFRunLoopSourceRef source, const struct mode *mode)
{
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        if (!slot_is_bound_to(slot, loop)) {
            continue;
        }
        for (struct source_member *member = slot->members; member; member = member->next) {
            if (member->mode == mode) {
                return member;
            }
        }
    }
    return NULL;
}

/* The slot that binds, or can bind, `source` to `loop`; NULL if there is no memory. L and I. */
static struct slot *slot_for(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    struct slot *unused = NULL;
    struct slot *last = NULL;

    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        if (slot_is_bound_to(slot, loop)) {
            return slot;
        }
        if (!atomic_load_explicit(&slot->loop, memory_order_relaxed)) {
            unused = slot;
        }
        last = slot;
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

static void slot_bind(CFRunLoopRef loop, struct slot *slot)
{
    if (atomic_load_explicit(&slot->loop, memory_order_relaxed)) {
        return;
    }
    object_retain(slot->source);
    object_retain(loop);
    loop->bound_slots++;
    atomic_store_explicit(&slot->loop, loop, memory_order_relaxed);
    atomic_store_explicit(&slot->bind, (uintptr_t)loop->mailbox, memory_order_seq_cst);
}

static struct source_member *member_create(CFRunLoopSourceRef source)
{
    /* The first one is inside the source; I guards the claim. */
    struct source_member *member = source->first_member.slot ? calloc(1, sizeof *member) : &source->first_member;

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

/* Makes the source a member of `mode` (NULL: of the common items). 0, -EINVAL if it is no longer valid, -ENOMEM. L. */
enum attach_result { attached, attach_refused, attach_no_memory };

static enum attach_result attach(CFRunLoopRef loop, struct source_set *set, struct mode *mode, CFRunLoopSourceRef source, CFHashCode hash)
{
    struct lock *lock = item_lock(source);
    struct slot *slot;
    struct source_member *member = NULL;
    enum attach_result result = attach_no_memory;

    lock_take(lock);
    slot = slot_for(loop, source);
    if (!source_is_valid(source)) {
        result = attach_refused;
    } else if (slot && (member = member_create(source)) != NULL) {
        member->slot = slot;
        member->mode = mode;
        member->hash = hash;
        slot_bind(loop, slot);
        member->next = slot->members;
        slot->members = member;
        result = attached;
    }
    lock_drop(lock);
    if (result == attached) {
        source_set_insert(set, member);
        if (!mode) {
            list_append(&loop->common_sources_in_order, &member->link);
        }
    }
    return result;
}

/* Undoes attach. The slot goes to `reap` when this was its last member. L. */
static void detach(CFRunLoopRef loop, struct source_set *set, struct source_member *member, struct slot_reap *reap)
{
    struct slot *slot = member->slot;
    struct source_member **place = &slot->members;

    while (*place != member) {
        place = &(*place)->next;
    }
    *place = member->next;
    if (member->mode && source_kind(slot->source) != source_manual) {
        watch_remove_member(loop, member);
    }
    list_remove(&member->link);
    source_set_remove(set, member);
    member_destroy(slot->source, member);
    if (!slot->members && !slot_unbind(loop, slot, reap)) {
        source_queue_drain(loop, reap); /* meets it, or leaves it a zombie for a later drain */
    }
}

static struct source_set *set_of(CFRunLoopRef loop, struct mode *mode)
{
    return mode ? &mode->sources : &loop->common_sources;
}

/* What the mark says while the source was in no loop is honoured (79, 80). L. */
static void notice_mark(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode)
{
    struct source_member *member;

    barrier_full(); /* after the store of `bind`: the signaller sees the slot, or we see the mark */
    if (!source_may_be_marked(source)) {
        return;
    }
    member = source_member_in(loop, source, mode);
    if (member) {
        (void)slot_link_members(member->slot);
    }
}

/* Some loop holds the source. I. */
static bool is_bound(CFRunLoopSourceRef source)
{
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        if (atomic_load_explicit(&slot->loop, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* Which descriptor a version-1 source stands for is asked at each add (98), without a lock. */
static void ask_port(CFRunLoopSourceRef source)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    source_function port = source_callback(source, source_callback_port);
    struct source_port_part *part;
    struct lock *lock = item_lock(source);
    int descriptor;
    bool is_counter;

    if (source_kind(source) != source_port) {
        return;
    }
    part = source_port_part(source);
    descriptor = port ? ((int (*)(void *))port)(source->context_info) : -1;
    if (descriptor >= 0 && !kernel.descriptor_is_open(descriptor)) {
        fault_log_once(&logged,
                       "CFRunLoopAddSource: getPort returned a number that is no descriptor; the source will never fire by itself");
        descriptor = -1;
    }
    is_counter = descriptor >= 0 && kernel.descriptor_kind(descriptor) == kernel_descriptor_counter;
    lock_take(lock);
    if (!is_bound(source)) {
        /* While it is in some mode its watch is found by the number that it had then: getPort must not change its mind (98). */
        part->descriptor = descriptor;
        part->is_counter = is_counter;
    }
    lock_drop(lock);
}

static void call_schedule(CFRunLoopSourceRef source, CFRunLoopRef loop, const struct mode *mode)
{
    source_function schedule = source_callback(source, source_callback_schedule);

    if (schedule) {
        ((void (*)(void *, CFRunLoopRef, CFStringRef))schedule)(source->context_info, loop, mode->name);
    }
}

static void call_cancel(CFRunLoopSourceRef source, CFRunLoopRef loop, const struct mode *mode)
{
    source_function cancel = source_callback(source, source_callback_cancel);

    if (cancel) {
        ((void (*)(void *, CFRunLoopRef, CFStringRef))cancel)(source->context_info, loop, mode->name);
    }
}

static void log_no_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFRunLoopAddSource: there is no memory; the source was not added");
}

/* True if the source has joined `mode` (NULL: the common items) by this call. L. */
static bool join(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode, CFHashCode hash)
{
    struct source_set *set = set_of(loop, mode);
    enum attach_result result;

    if (!loop_is_open(loop) || source_set_find(loop, set, mode, source, hash) || loop->is_dead) {
        return false;
    }
    result = attach(loop, set, mode, source, hash);
    if (result == attach_no_memory) {
        log_no_memory();
    }
    return result == attached;
}

/* Without memory to watch its descriptor a source is not in the mode: it would never be performed. L. */
static bool watch_joined(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode, struct slot_reap *reap)
{
    struct source_member *member = source_member_in(loop, source, mode);

    if (watch_add_member(loop, mode, member)) {
        return true;
    }
    detach(loop, &mode->sources, member, reap);
    log_no_memory();
    return false;
}

void source_add_to_mode(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode)
{
    struct slot_reap reap = {NULL};
    CFHashCode hash = source_hash(source);
    bool joined;

    ask_port(source);
    loop_lock(loop);
    source_queue_drain(loop, &reap); /* a mark that is kept over the join comes after those signalled before it (83) */
    joined = join(loop, source, mode, hash);
    if (joined && source_kind(source) != source_manual) {
        joined = watch_joined(loop, source, mode, &reap);
    } else if (joined) {
        notice_mark(loop, source, mode);
    }
    mode->is_declared |= joined;
    loop_unlock(loop);
    slots_release(&reap);
    if (joined) {
        call_schedule(source, loop, mode);
    }
}

static void add_to_common(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    CFHashCode hash = source_hash(source);
    struct mode *mode;

    ask_port(source); /* before it is among the common items, and so bound */
    loop_lock(loop);
    (void)join(loop, source, NULL, hash);
    for (mode = loop->common_modes; mode; mode = mode->next_common) {
        loop_unlock(loop);
        source_add_to_mode(loop, source, mode);
        loop_lock(loop);
    }
    loop_unlock(loop);
}

void source_add(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name)
{
    struct mode *mode;
    bool is_common;

    if (!source_is_valid(source)) {
        return; /* 89 */
    }
    loop_lock(loop);
    is_common = mode_name_means_common(loop, mode_name);
    mode = loop_is_open(loop) && !is_common ? mode_declare(loop, mode_name) : NULL;
    loop_unlock(loop);
    if (is_common) {
        add_to_common(loop, source);
    } else if (mode) {
        source_add_to_mode(loop, source, mode);
    }
}

/* True if a source equal to this one was in `mode` and has left it; the source that left is returned with a reference. */
static CFRunLoopSourceRef leave(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode, CFHashCode hash, struct slot_reap *reap)
{
    struct source_set *set = set_of(loop, mode);
    struct source_member *member = source_set_find(loop, set, mode, source, hash);
    CFRunLoopSourceRef left;

    if (!member) {
        return NULL;
    }
    left = member->slot->source;
    object_retain(left);
    detach(loop, set, member, reap);
    return left;
}

static void remove_from_mode(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode)
{
    struct slot_reap reap = {NULL};
    CFHashCode hash = source_hash(source);
    CFRunLoopSourceRef left;

    loop_lock(loop);
    left = leave(loop, source, mode, hash, &reap);
    loop_unlock(loop);
    if (left) {
        call_cancel(left, loop, mode);
        object_release(left);
    }
    slots_release(&reap);
}

static void remove_from_common(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    struct slot_reap reap = {NULL};
    CFHashCode hash = source_hash(source);
    CFRunLoopSourceRef left;

    loop_lock(loop);
    left = leave(loop, source, NULL, hash, &reap);
    if (left) {
        for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
            loop_unlock(loop);
            remove_from_mode(loop, source, mode);
            loop_lock(loop);
        }
    }
    loop_unlock(loop);
    if (left) {
        object_release(left);
    }
    slots_release(&reap);
}

void source_remove(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name)
{
    struct mode *mode;
    bool is_common;

    loop_lock(loop);
    is_common = mode_name_means_common(loop, mode_name);
    mode = is_common ? NULL : mode_find(loop, mode_name);
    loop_unlock(loop);
    if (is_common) {
        remove_from_common(loop, source);
    } else if (mode) {
        remove_from_mode(loop, source, mode);
    }
}

bool source_is_in(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name)
{
    CFHashCode hash = source_hash(source);
    struct mode *mode;
    bool is_common;
    bool is_member;

    loop_lock(loop);
    is_common = mode_name_means_common(loop, mode_name);
    mode = is_common ? NULL : mode_find(loop, mode_name);
    is_member = (mode || is_common) && source_set_find(loop, set_of(loop, mode), mode, source, hash);
    loop_unlock(loop);
    return is_member;
}

static bool source_is_common(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    bool is_common;

    loop_lock(loop);
    is_common = source_member_in(loop, source, NULL) != NULL;
    loop_unlock(loop);
    return is_common;
}

/* A `schedule` that is called on the way may take the next source out of the common items. */
void sources_join_common_mode(CFRunLoopRef loop, struct mode *mode)
{
    CFRunLoopSourceRef *sources;
    size_t count = 0;

    loop_lock(loop);
    sources = calloc((size_t)loop->common_sources.count + 1, sizeof *sources);
    if (!sources) {
        loop_unlock(loop);
        log_no_memory();
        return;
    }
    list_for_each(link, &loop->common_sources_in_order) {
        sources[count] = container_of(link, struct source_member, link)->slot->source;
        object_retain(sources[count++]);
    }
    loop_unlock(loop);
    for (size_t i = 0; i < count; i++) {
        if (source_is_common(loop, sources[i])) {
            source_add_to_mode(loop, sources[i], mode);
        }
        object_release(sources[i]);
    }
    free(sources);
}

/* Takes one member of the source out of `loop`; tells the mode it was in. False when none is left. */
static bool leave_one(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode **ret_mode)
{
    struct slot_reap reap = {NULL};
    struct source_member *member = NULL;

    loop_lock(loop);
    for (struct slot *slot = &source->first_slot; slot && !member; slot = slot_after(slot)) {
        if (slot_is_bound_to(slot, loop)) {
            member = slot->members;
        }
    }
    if (member) {
        *ret_mode = member->mode;
        detach(loop, set_of(loop, member->mode), member, &reap);
    }
    loop_unlock(loop);
    slots_release(&reap);
    return member != NULL;
}

static void leave_loop(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    struct mode *mode = NULL;

    while (leave_one(loop, source, &mode)) {
        if (mode) {
            call_cancel(source, loop, mode);
        }
    }
}

void source_invalidate(CFRunLoopSourceRef source)
{
    uint32_t mark = atomic_load_explicit(&source->mark, memory_order_relaxed);
    struct lock *lock = item_lock(source);

    do {
        if (source_mark_state(mark) == mark_invalid) {
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&source->mark, &mark, (mark & ~(uint32_t)mark_state_mask) | mark_invalid,
                                                    memory_order_seq_cst, memory_order_relaxed));
    object_retain(source);
    /* From here no slot can be bound, so one walk over them meets every loop; a zombie has no members and is
     * left to its loop's next drain. */
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        CFRunLoopRef loop;

        lock_take(lock);
        loop = atomic_load_explicit(&slot->loop, memory_order_relaxed);
        if (loop) {
            object_retain(loop);
        }
        lock_drop(lock);
        if (loop) {
            leave_loop(loop, source);
            object_release(loop);
        }
    }
    object_release(source);
}

/* Any source of the set, with a reference. Nothing is inserted any more, so that buckets found empty stay empty. L. */
static CFRunLoopSourceRef any_of(struct source_set *set)
{
    uint32_t count = set->buckets ? set->bucket_count : 1;
    struct source_member **buckets = set->buckets ? set->buckets : &set->first;

    for (; set->first_full < count; set->first_full++) {
        if (buckets[set->first_full]) {
            CFRunLoopSourceRef source = buckets[set->first_full]->slot->source;

            object_retain(source);
            return source;
        }
    }
    return NULL;
}

static CFRunLoopSourceRef any_source(CFRunLoopRef loop)
{
    CFRunLoopSourceRef source = any_of(&loop->common_sources);

    for (struct mode *mode = loop->modes; mode && !source; mode = mode->next) {
        source = any_of(&mode->sources);
    }
    return source;
}

void sources_remove_all(CFRunLoopRef loop)
{
    for (;;) {
        CFRunLoopSourceRef source;

        loop_lock(loop);
        source = any_source(loop);
        loop_unlock(loop);
        if (!source) {
            return;
        }
        leave_loop(loop, source);
        object_release(source);
    }
}
