/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources with descriptors, for the higher layers; see descriptor_source.h. The owner's updates of the interest take no lock. To tell loops
 * of an update, each loop is found by its binding and its lock is taken, one at a time.
 */
#include "Loop/Source/descriptor_source.h"

#include "Loop/Source/source_membership.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Timer/timer_membership.h"
#include "Loop/Watch/watch.h"
#include "Support/barrier.h"

CFRunLoopSourceRef descriptor_source_create(CFAllocatorRef allocator, CFIndex order, int descriptor,
                                            const struct descriptor_source_context *context)
{
    const source_function callbacks[source_callback_count] = {
        [source_callback_perform] = (source_function)context->perform,
        [source_callback_release] = (source_function)context->release,
        [source_callback_describe] = (source_function)context->copy_description,
        [source_callback_get_port] = (source_function)context->forget,
        [source_callback_schedule] = (source_function)context->schedule,
        [source_callback_cancel] = (source_function)context->cancel,
    };
    CFRunLoopSourceRef source = source_create(allocator, order, source_with_descriptor, context->info, callbacks);

    if (source) {
        source->object.info |= context->is_version_0 ? source_version_0_bit : 0u;
        source_descriptor_part(source)->descriptor = descriptor;
        source_descriptor_part(source)->interest = context->interest ? context->interest : &source_descriptor_part(source)->own_interest;
    }
    return source;
}

CFRunLoopSourceRef descriptor_source_create_of(CFTypeRef object, CFAllocatorRef allocator, CFIndex order, int descriptor,
                                               struct descriptor_source_context context)
{
    CFRunLoopSourceRef source;

    context.info = (void *)(uintptr_t)object;
    context.release = object_release;
    context.copy_description = CFCopyDescription;
    object_retain(object); /* the source's reference */
    source = descriptor >= 0 ? descriptor_source_create(allocator, order, descriptor, &context) : NULL;
    if (!source) {
        object_release(object);
    }
    return source;
}

bool descriptor_source_is_held(CFRunLoopSourceRef source)
{
    for (const struct binding *binding = &source->first_binding; binding;
         binding = atomic_load_explicit(&binding->next, memory_order_acquire)) {
        if (atomic_load_explicit(&binding->word, memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

typedef void (*member_function)(CFRunLoopRef loop, struct source_member *member);

/* Returns the first member that is in a mode, from `member` on, or NULL. */
REQUIRES(the_loop_lock) static struct source_member *next_in_mode(struct source_member *member)
{
    while (member && !member->mode) {
        member = member->next;
    }
    return member;
}

/* Returns the first binding that leads to `loop`, from `binding` on, or NULL. */
REQUIRES(the_loop_lock) static struct binding *next_binding_in(CFRunLoopRef loop, struct binding *binding)
{
    while (binding && !binding_is_to(binding, loop)) {
        binding = binding_next(binding);
    }
    return binding;
}

#define for_each_membership(_member, _loop, _source)                                             \
    for (struct binding *_binding = next_binding_in(_loop, &(_source)->first_binding); _binding; \
         _binding = next_binding_in(_loop, binding_next(_binding)))                              \
        for (struct source_member *_member = next_in_mode(_binding->members); _member; _member = next_in_mode(_member->next))

/* Calls `tell` for every membership of `source` in a mode of `loop`. */
static void tell_modes(CFRunLoopRef loop, CFRunLoopSourceRef source, member_function tell)
{
    loop_lock(loop);
    for_each_membership(member, loop, source) {
        tell(loop, member);
    }
    loop_unlock(loop);
}

/* Posts the source in a loop. Wakes the loop after dropping its lock, because the thread that wakes takes the lock at once. */
static void post_to_modes(CFRunLoopRef loop, CFRunLoopSourceRef source)
{
    bool sleeps = false;

    loop_lock(loop);
    for_each_membership(member, loop, source) {
        sleeps |= watch_post(loop, member);
    }
    loop_unlock(loop);
    if (sleeps) {
        waker_retime(loop->waker);
    }
}

void descriptor_source_let_runs_finish(CFRunLoopSourceRef source)
{
    source_descriptor_part(source)->lets_runs_finish = true;
}

void descriptor_source_keep_in_epoll(CFRunLoopSourceRef source)
{
    static _Atomic uint64_t last;

    source_descriptor_part(source)->kept_id = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

bool descriptor_source_set_suspended(CFRunLoopSourceRef source, CFRunLoopRef loop, CFStringRef mode_name, bool suspended)
{
    const struct mode *mode;
    struct source_member *member;

    loop_lock(loop);
    mode = mode_find(loop, mode_name);
    member = mode ? source_member_in(loop, source, mode) : NULL;
    if (member) {
        watch_set_suspended(loop, member, suspended);
    }
    loop_unlock(loop);
    return member != NULL;
}

void descriptor_source_remove_from_epoll(CFRunLoopSourceRef source, CFRunLoopRef loop, CFStringRef mode_name)
{
    struct source_descriptor_part *descriptor_part = source_descriptor_part(source);
    struct mode *mode;

    loop_lock(loop);
    mode = mode_find(loop, mode_name);
    if (mode) {
        watch_remove_kept(mode, descriptor_part->descriptor, descriptor_part->kept_id);
    }
    loop_unlock(loop);
}

/*
 * Calls `tell` in every loop that the source is in. The caller has made its change by a sequentially consistent update. A loop that the
 * source joins meanwhile is found here, or reads the change after its own fence in watch_add_member. The calling thread's own loop cannot
 * end during the call, so it needs no reference.
 */
static void tell_loops(CFRunLoopSourceRef source, member_function tell)
{
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        CFRunLoopRef loop = atomic_load_explicit(&binding->loop, memory_order_seq_cst);

        if (loop && thread_loop_is_current(loop)) {
            tell_modes(loop, source, tell);
            continue;
        }
        loop = binding_copy_loop(source, binding);
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
    uint32_t before = atomic_exchange_explicit(&source_descriptor_part(source)->own_interest, interest, memory_order_seq_cst);

    if (before & ~interest) {
        descriptor_source_interest_lowered(source);
    } else if (interest & ~before) {
        descriptor_source_interest_raised(source);
    }
}

/* Threads may set the interest in either order. Each looks again afterwards, so that the last one to set it has the latest value. */
void descriptor_source_publish_interest(CFRunLoopSourceRef source, const _Atomic uint32_t *interest)
{
    uint32_t latest = atomic_load_explicit(interest, memory_order_acquire);
    uint32_t published;

    do {
        published = latest;
        descriptor_source_set_interest(source, published);
        latest = atomic_load_explicit(interest, memory_order_acquire);
    } while (latest != published);
}

CFRunLoopSourceRef descriptor_source_performing(const void *info)
{
    CFRunLoopRef loop = thread_loop_if_any();
    const struct run *run = loop ? loop->innermost_run : NULL;
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
    struct run *run = loop ? loop->innermost_run : NULL;

    if (!run || !run->polls) {
        return 0;
    }
    if (run->poll_number == 0) {
        run->poll_number = atomic_fetch_add_explicit(&latest, 1, memory_order_relaxed) + 1;
    }
    return run->poll_number;
}

void descriptor_source_decline(struct run *run)
{
    run->report.ready = 0;
}

void descriptor_source_stand_on_set(CFRunLoopSourceRef source, int set)
{
    struct source_descriptor_part *descriptor_part = source_descriptor_part(source);

    descriptor_part->ending = descriptor_part->descriptor;
    descriptor_part->descriptor = set;
    descriptor_part->is_set = true;
}

void descriptor_source_post(CFRunLoopSourceRef source)
{
    /* The store comes before the look at the bindings. A loop that the source joins too late to be found here reads is_posted itself. */
    atomic_store_explicit(&source_descriptor_part(source)->is_posted, true, memory_order_release);
    barrier_full();
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        CFRunLoopRef loop = binding_copy_loop(source, binding);

        if (loop) {
            post_to_modes(loop, source);
            object_release(loop);
        }
    }
}

void descriptor_source_take_post(CFRunLoopSourceRef source)
{
    atomic_store_explicit(&source_descriptor_part(source)->is_posted, false, memory_order_relaxed);
}

void descriptor_source_file_replaced(CFRunLoopSourceRef source)
{
    tell_loops(source, watch_file_replaced);
}

/*
 * Invalidates the source and wakes the loops that it was in. The bindings name those loops only before the invalidation, and the loops must
 * wake after it. So this recurses to the last binding, invalidates there, and wakes the loops on the way back.
 */
static void invalidate_from(CFRunLoopSourceRef source, struct binding *binding)
{
    struct binding *next = binding_next(binding);
    CFRunLoopRef loop = binding_copy_loop(source, binding);

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
    invalidate_from(source, &source->first_binding);
}

bool descriptor_source_add_timer(CFRunLoopSourceRef source, CFRunLoopTimerRef timer)
{
    enum { most = 16 };
    CFRunLoopRef loop = thread_loop_if_any();
    CFStringRef names[most];
    size_t count = 0;
    bool is_in_all = true;

    if (!loop) {
        return true; /* the source is in no loop of this thread */
    }
    loop_lock(loop);
    for_each_membership(member, loop, source) {
        is_in_all = is_in_all && count < most;
        if (count < most) {
            names[count++] = CFRetain(member->mode->name);
        }
    }
    loop_unlock(loop);
    while (count > 0) {
        timer_add(loop, timer, names[--count]);
        is_in_all = is_in_all && timer_is_in(loop, timer, names[count]);
        CFRelease(names[count]);
    }
    return is_in_all;
}
