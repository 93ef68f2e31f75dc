/* SPDX-License-Identifier: Apache-2.0 */
/* Sources on descriptors for the layer above; see descriptor_source.h. */
#include "Loop/descriptor_source.h"

#include "Loop/source_membership.h"
#include "Loop/thread_loop.h"
#include "Loop/watch.h"
#include "Support/barrier.h"

CFRunLoopSourceRef descriptor_source_create(CFAllocatorRef allocator, CFIndex order, int descriptor,
                                            const struct descriptor_source_context *context)
{
    const source_function callbacks[source_callback_count] = {
        [source_callback_perform] = (source_function)context->perform,
        [source_callback_release] = (source_function)context->release,
        [source_callback_describe] = (source_function)context->copy_description,
        [source_callback_port] = (source_function)context->forget,
        [source_callback_schedule] = (source_function)context->schedule,
        [source_callback_cancel] = (source_function)context->cancel,
    };
    CFRunLoopSourceRef source = source_create(allocator, order, source_descriptor, context->info, callbacks);

    if (source) {
        source->object.info |= context->is_version_0 ? source_version_0_bit : 0u;
        source_port_part(source)->descriptor = descriptor;
        source_port_part(source)->callers_info = context->callers_info;
        source_port_part(source)->interest = context->interest ? context->interest : &source_port_part(source)->own_interest;
    }
    return source;
}

bool descriptor_source_is_held(CFRunLoopSourceRef source)
{
    for (const struct slot *slot = &source->first_slot; slot; slot = atomic_load_explicit(&slot->next, memory_order_acquire)) {
        if (atomic_load_explicit(&slot->bind, memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

typedef void (*member_function)(CFRunLoopRef loop, struct source_member *member);

/* The slot's next member in a mode, from `member` on. L */
static struct source_member *in_mode(struct source_member *member)
{
    while (member && !member->mode) {
        member = member->next;
    }
    return member;
}

/* The first slot of the source's in that loop, from `slot` on. L */
static struct slot *slot_in(CFRunLoopRef loop, struct slot *slot)
{
    while (slot && !slot_is_bound_to(slot, loop)) {
        slot = slot_after(slot);
    }
    return slot;
}

#define for_each_membership(_member, _loop, _source)                                                                    \
    for (struct slot *_slot = slot_in(_loop, &(_source)->first_slot); _slot; _slot = slot_in(_loop, slot_after(_slot))) \
        for (struct source_member *_member = in_mode(_slot->members); _member; _member = in_mode(_member->next))

/* Tells every mode of `loop` that `source` is in. */
static void tell_modes(CFRunLoopRef loop, CFRunLoopSourceRef source, member_function tell)
{
    loop_lock(loop);
    for_each_membership(member, loop, source) {
        tell(loop, member);
    }
    loop_unlock(loop);
}

/* Wakes the loop, if it sleeps in a mode that the source is in, without its lock: whom it wakes goes for that at once. */
static void post_to_modes(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    bool sleeps = false;

    loop_lock(loop);
    for_each_membership(member, loop, source) {
        sleeps |= watch_post(loop, member);
    }
    loop_unlock(loop);
    if (sleeps) {
        mailbox_retime(loop->mailbox);
    }
}

/* The loop that a slot joins the source to, with a reference, or NULL. */
static CFRunLoopRef copy_loop(CFRunLoopSourceRef source, struct slot *slot)
{
    struct lock *lock = item_lock(source);
    CFRunLoopRef loop;

    lock_take(lock);
    loop = atomic_load_explicit(&slot->loop, memory_order_relaxed);
    if (loop) {
        object_retain(loop);
    }
    lock_drop(lock);
    return loop;
}

void descriptor_source_make_lingering(CFRunLoopSourceRef source)
{
    static _Atomic uint64_t last;

    source_port_part(source)->lingering = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

bool descriptor_source_set_resting(CFRunLoopSourceRef source, CFRunLoopRef loop, CFStringRef mode_name, bool rests)
{
    const struct mode *mode;
    struct source_member *member;

    loop_lock(loop);
    mode = mode_find(loop, mode_name);
    member = mode ? source_member_in(loop, source, mode) : NULL;
    if (member) {
        watch_set_resting(loop, member, rests);
    }
    loop_unlock(loop);
    return member != NULL;
}

void descriptor_source_end_lingering(CFRunLoopSourceRef source, CFRunLoopRef loop, CFStringRef mode_name)
{
    struct source_port_part *part = source_port_part(source);
    struct mode *mode;

    loop_lock(loop);
    mode = mode_find(loop, mode_name);
    if (mode) {
        watch_end_lingering(mode, part->descriptor, part->lingering);
    }
    loop_unlock(loop);
}

/*
 * What there is to tell has been written by a sequentially consistent update: a loop that the source joins meanwhile reads it after its own
 * fence (watch_add_member), or is seen here. The calling thread's own loop cannot go, so it needs no reference.
 */
static void tell_loops(CFRunLoopSourceRef source, member_function tell)
{
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        CFRunLoopRef loop = atomic_load_explicit(&slot->loop, memory_order_seq_cst);

        if (loop && thread_loop_is_current(loop)) {
            tell_modes(loop, source, tell);
            continue;
        }
        loop = copy_loop(source, slot);
        if (loop) {
            tell_modes(loop, source, tell);
            object_release(loop);
        }
    }
}

void descriptor_source_interest_raised(CFRunLoopSourceRef source)
{
    tell_loops(source, watch_interest_raised);
}

void descriptor_source_interest_lowered(CFRunLoopSourceRef source)
{
    tell_loops(source, watch_interest_changed);
}

void descriptor_source_set_interest(CFRunLoopSourceRef source, uint32_t interest)
{
    uint32_t before = atomic_exchange_explicit(&source_port_part(source)->own_interest, interest, memory_order_seq_cst);

    if (before & ~interest) {
        descriptor_source_interest_lowered(source);
    } else if (interest & ~before) {
        descriptor_source_interest_raised(source);
    }
}

CFRunLoopSourceRef descriptor_source_performing(const void *info)
{
    CFRunLoopRef loop = thread_loop_if_any();
    const struct activation *run = loop ? loop->activation : NULL;
    CFRunLoopSourceRef source;

    while (run && !run->performing) {
        run = run->outer;
    }
    source = run ? run->performing : NULL;
    return source && source->context_info == info && source_is_valid(source) ? source : NULL;
}

uint64_t descriptor_source_poll_number(void)
{
    static _Atomic uint64_t latest;
    CFRunLoopRef loop = thread_loop_if_any();
    struct activation *run = loop ? loop->activation : NULL;

    if (!run || !run->polls) {
        return 0;
    }
    if (run->poll_number == 0) {
        run->poll_number = atomic_fetch_add_explicit(&latest, 1, memory_order_relaxed) + 1;
    }
    return run->poll_number;
}

void descriptor_source_put_by(struct activation *run)
{
    run->report.ready = 0;
}

void descriptor_source_stand_on_set(CFRunLoopSourceRef source, int set)
{
    struct source_port_part *part = source_port_part(source);

    part->ending = part->descriptor;
    part->descriptor = set;
    part->is_set = true;
}

void descriptor_source_post(CFRunLoopSourceRef source)
{
    /* Before the slots are looked at, under the lock that a joiner holds when it takes one: who is not found finds this. */
    atomic_store_explicit(&source_port_part(source)->is_posted, true, memory_order_release);
    barrier_full();
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        CFRunLoopRef loop = copy_loop(source, slot);

        if (loop) {
            post_to_modes(loop, source);
            object_release(loop);
        }
    }
}

void descriptor_source_take_post(CFRunLoopSourceRef source)
{
    atomic_store_explicit(&source_port_part(source)->is_posted, false, memory_order_relaxed);
}

void descriptor_source_file_replaced(CFRunLoopSourceRef source)
{
    tell_loops(source, watch_file_replaced);
}

/* Goes to the end of the slots before it invalidates, and wakes on the way back: the loops are known only before, and nothing is left to
 * find only after. */
static void invalidate_from(CFRunLoopSourceRef source, struct slot *slot)
{
    struct slot *next = slot_after(slot);
    CFRunLoopRef loop = copy_loop(source, slot);

    if (next) {
        invalidate_from(source, next);
    } else {
        source_invalidate(source);
    }
    if (loop) {
        CFRunLoopWakeUp(loop);
        object_release(loop);
    }
}

void descriptor_source_invalidate(CFRunLoopSourceRef source)
{
    invalidate_from(source, &source->first_slot);
}

bool descriptor_source_add_timer(CFRunLoopSourceRef source, CFRunLoopTimerRef timer)
{
    enum { most = 16 };
    CFRunLoopRef loop = thread_loop_current();
    CFStringRef names[most];
    size_t count = 0;
    bool is_in_all = true;

    loop_lock(loop);
    for_each_membership(member, loop, source) {
        is_in_all = is_in_all && count < most;
        if (count < most) {
            names[count++] = CFRetain(member->mode->name);
        }
    }
    loop_unlock(loop);
    while (count > 0) {
        CFRunLoopAddTimer(loop, timer, names[--count]);
        is_in_all = is_in_all && CFRunLoopContainsTimer(loop, timer, names[count]);
        CFRelease(names[count]);
    }
    return is_in_all;
}
