/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds sources to modes and removes them, with the calls of schedule and cancel, and invalidates sources. Any thread may call these.
 * source_member.h does it under the loop's lock.
 */
#include "Loop/Source/source_membership.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Source/source_member.h"
#include "Loop/Watch/watch.h"
#include "Support/fault.h"

/* Asks a version-1 source for its descriptor, which getPort returns at each add (rule 98). No lock is held during getPort. */
static void ask_port(CFRunLoopSourceRef source)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    source_function port = source_callback(source, source_callback_get_port);
    struct source_descriptor_part *descriptor_part;
    struct lock *lock = item_lock(source);
    int descriptor;

    if (source_kind(source) != source_with_port) {
        return;
    }
    descriptor_part = source_descriptor_part(source);
    descriptor = port ? ((int (*)(void *))port)(source->context_info) : -1;
    if (descriptor >= 0 && !kernel.descriptor_is_open(descriptor)) {
        fault_log_once(&logged,
                       "CFRunLoopAddSource: getPort returned a number that is no descriptor; the source will never fire by itself");
        descriptor = -1;
    }
    lock_take(lock);
    if (!source_is_bound(source)) {
        /* While the source is in a mode, its watch is found by the number that it had when it joined. So a new answer is ignored. */
        descriptor_part->descriptor = descriptor;
        atomic_store_explicit(&descriptor_part->port_kind, port_kind_unknown, memory_order_relaxed);
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

/* Returns true if this call made the source a member of `mode`. A NULL mode stands for the common items. May drop the lock meanwhile. */
REQUIRES(the_loop_lock) static bool source_join(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode, CFHashCode hash)
{
    struct source_set *set = source_set_of_mode(loop, mode);
    enum source_attach_result result;

    /* `equal` runs without the lock, so the loop may end meanwhile: is_dead is read again. */
    if (!loop_is_open(loop) || source_set_find(loop, set, mode, source, hash) || loop->is_dead) {
        return false;
    }
    result = source_member_attach(loop, set, mode, source, hash);
    if (result == source_attach_no_memory) {
        log_no_memory();
    }
    return result == source_attached;
}

/* Watches the descriptor of a source that has joined. Without memory for that the source leaves again: it would never be performed. */
REQUIRES(the_loop_lock)
static bool watch_joined(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode, struct binding_release_list *released)
{
    struct source_member *member = source_member_in(loop, source, mode);

    invariant(member != NULL);
    if (watch_add_member(loop, mode, member)) {
        return true;
    }
    source_member_detach(loop, &mode->sources, member, released);
    log_no_memory();
    return false;
}

void source_add_to_mode(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode)
{
    struct binding_release_list released = {NULL};
    CFHashCode hash = source_hash(source);
    bool joined;

    ask_port(source);
    loop_lock(loop);
    source_queue_drain(loop, &released); /* a source that joins with its mark set comes after those that were signalled before (rule 83) */
    joined = source_join(loop, source, mode, hash);
    if (joined && source_kind(source) != source_manual) {
        joined = watch_joined(loop, source, mode, &released);
    } else if (joined) {
        source_member_notice_mark(loop, source, mode);
    }
    mode->is_declared |= joined;
    loop_unlock(loop);
    bindings_release(&released);
    if (joined) {
        call_schedule(source, loop, mode);
    }
}

static void add_to_common(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    CFHashCode hash = source_hash(source);
    struct mode *mode;

    ask_port(source); /* before the source is bound: a bound source keeps its descriptor */
    loop_lock(loop);
    (void)source_join(loop, source, NULL, hash);
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
        return; /* adding an invalid source does nothing (rule 89) */
    }
    loop_lock(loop);
    is_common = mode_name_means_common(loop, mode_name);
    mode = loop_is_open(loop) && !is_common ? mode_declare(loop, mode_name) : NULL;
    if (mode && source_kind(source) == source_manual && trace_is_on()) {
        mode_trace_joining(mode, trace_source, source_callback(source, source_callback_perform));
    }
    loop_unlock(loop);
    if (is_common) {
        add_to_common(loop, source);
    } else if (mode) {
        source_add_to_mode(loop, source, mode);
    }
}

/* Takes a source that equals this one out of `mode`, and returns it with a reference, or NULL. May drop the lock meanwhile. */
REQUIRES(the_loop_lock)
static CFRunLoopSourceRef source_leave(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode, CFHashCode hash,
                                       struct binding_release_list *released)
{
    struct source_set *set = source_set_of_mode(loop, mode);
    struct source_member *member = source_set_find(loop, set, mode, source, hash);
    CFRunLoopSourceRef left;

    if (!member) {
        return NULL;
    }
    left = member->binding->source;
    object_retain(left);
    source_member_detach(loop, set, member, released);
    return left;
}

static void remove_from_mode(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode)
{
    struct binding_release_list released = {NULL};
    CFHashCode hash = source_hash(source);
    CFRunLoopSourceRef left;

    loop_lock(loop);
    left = source_leave(loop, source, mode, hash, &released);
    loop_unlock(loop);
    if (left) {
        call_cancel(left, loop, mode);
        object_release(left);
    }
    bindings_release(&released);
}

static void remove_from_common(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    struct binding_release_list released = {NULL};
    CFHashCode hash = source_hash(source);
    CFRunLoopSourceRef left;

    loop_lock(loop);
    left = source_leave(loop, source, NULL, hash, &released);
    if (left) {
        for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
            loop_unlock(loop);
            remove_from_mode(loop, source, mode);
            loop_lock(loop);
        }
    }
    loop_unlock(loop);
    object_release_if_any(left);
    bindings_release(&released);
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
    is_member = (mode || is_common) && source_set_find(loop, source_set_of_mode(loop, mode), mode, source, hash);
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

/* A `schedule` called for one source may take the next one out of the common items, so each is looked up again. */
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
        sources[count] = container_of(link, struct source_member, link)->binding->source;
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

/* Takes one member of the source out of `loop`, and returns its mode in `ret_mode`. Returns false if no member is left. */
static bool leave_one(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode **ret_mode)
{
    struct binding_release_list released = {NULL};
    struct source_member *member = NULL;

    loop_lock(loop);
    for (struct binding *binding = &source->first_binding; binding && !member; binding = binding_next(binding)) {
        if (binding_is_to(binding, loop)) {
            member = binding->members;
        }
    }
    if (member) {
        *ret_mode = member->mode;
        source_member_detach(loop, source_set_of_mode(loop, member->mode), member, &released);
    }
    loop_unlock(loop);
    bindings_release(&released);
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

    do {
        if (source_mark_state(mark) == mark_invalid) {
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&source->mark, &mark, (mark & ~(uint32_t)mark_state_mask) | mark_invalid,
                                                    memory_order_seq_cst, memory_order_relaxed));
    object_retain(source);
    /*
     * No binding can be bound from here on, because source_member_attach refuses an invalid source. So one walk over the bindings finds
     * every loop. A zombie has no members and is left to its loop's next drain.
     */
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        CFRunLoopRef loop = binding_copy_loop(source, binding);

        if (loop) {
            leave_loop(loop, source);
            object_release(loop);
        }
    }
    object_release(source);
}

/* Returns some source of the set with a reference, or NULL. Nothing is inserted any more, so buckets that were empty stay empty. */
REQUIRES(the_loop_lock) static CFRunLoopSourceRef any_source_of(struct source_set *set)
{
    uint32_t count = set->buckets ? set->bucket_count : 1;
    struct source_member **buckets = set->buckets ? set->buckets : &set->first;

    for (; set->first_full < count; set->first_full++) {
        if (buckets[set->first_full]) {
            CFRunLoopSourceRef source = buckets[set->first_full]->binding->source;

            object_retain(source);
            return source;
        }
    }
    return NULL;
}

REQUIRES(the_loop_lock) static CFRunLoopSourceRef any_source(CFRunLoopRef loop)
{
    CFRunLoopSourceRef source = any_source_of(&loop->common_sources);

    for (struct mode *mode = loop->modes; mode && !source; mode = mode->next) {
        source = any_source_of(&mode->sources);
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
