/* SPDX-License-Identifier: Apache-2.0 */
/* The making and the end of observers. Guards are in observer.h. */
#include "Loop/Observer/observer.h"

#include <stdlib.h>

#include "Loop/Core/home_lock.h"
#include "Loop/Core/shown.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Observer/observer_list.h"
#include "Loop/Observer/observer_membership.h"

/* ---- making ---- */

static void observer_finalize(CFTypeRef object)
{
    CFRunLoopObserverRef observer = (CFRunLoopObserverRef)(uintptr_t)object;

    /* RELEASES_LATE is still set if a thread ended in the callout, where nothing could give the info back. */
    if (atomic_load_explicit(&observer->state, memory_order_relaxed) & (observer_valid | observer_releases_late)) {
        context_release(observer, observer->context, observer_info(observer));
    }
    free(observer->context);
}

static const struct shown_bit activity_names[] = {
    {kCFRunLoopEntry, "Entry"},
    {kCFRunLoopBeforeTimers, "BeforeTimers"},
    {kCFRunLoopBeforeSources, "BeforeSources"},
    {kCFRunLoopBeforeWaiting, "BeforeWaiting"},
    {kCFRunLoopAfterWaiting, "AfterWaiting"},
    {kCFRunLoopExit, "Exit"},
    {0, NULL},
};

static CFStringRef observer_describe(CFTypeRef object)
{
    CFRunLoopObserverRef observer = (CFRunLoopObserverRef)(uintptr_t)object;
    CFStringRef context = context_describe(observer, observer->context, observer_info(observer));
    struct shown callout;
    struct shown activities;
    CFStringRef text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFRunLoopObserver %p>{valid = %s, activities = %s, repeats = %s, order = %ld, callout = %s, context = %@}"),
        object, shown_bool(observer_is_valid(observer)),
        observer->activities == kCFRunLoopAllActivities ? "all" : shown_bits(&activities, activity_names, observer->activities),
        shown_bool(observer->repeats), (long)observer->order, shown_callout(&callout, (void (*)(void))observer->callout), context);

    object_release_if_any(context);
    return text;
}

const struct object_class observer_class = {
    .type_id = object_type_run_loop_observer,
    .name = "CFRunLoopObserver",
    .finalize = observer_finalize,
    .copy_description = observer_describe,
};

CFRunLoopObserverRef observer_create(CFAllocatorRef allocator, CFOptionFlags watched, bool repeats, CFIndex order,
                                     CFRunLoopObserverCallBack callout, const CFRunLoopObserverContext *context)
{
    CFRunLoopObserverRef observer = object_create(allocator, &observer_class, sizeof *observer);
    void *info = NULL;

    if (!observer) {
        return NULL;
    }
    if (context &&
        !context_adopt(
            &(struct context){.retain = context->retain, .release = context->release, .copy_description = context->copyDescription},
            context->info, &observer->context, &info)) {
        object_release(observer);
        return NULL;
    }
    atomic_store_explicit(&observer->context_info, info, memory_order_relaxed);
    atomic_store_explicit(&observer->state, observer_valid, memory_order_relaxed);
    observer->callout = callout;
    observer->order = order;
    observer->activities = (uint32_t)watched;
    observer->repeats = repeats;
    return observer;
}

void observer_keep_info(CFRunLoopObserverRef observer)
{
    observer->keeps_info = true;
}

/* ---- the end ---- */

/*
 * Decides who releases the info, after VALID was cleared from the state `old`. Returns true if this thread does so now. Returns false if
 * the callout under way does so at its end; the state then says so.
 */
static bool releases_now(CFRunLoopObserverRef observer, uint32_t old)
{
    if (!observer->keeps_info && thread_loop_is_current(atomic_load_explicit(&observer->called_on, memory_order_relaxed))) {
        return true; /* the callout itself invalidates: its info is released at once (rule 153) */
    }
    old &= ~(uint32_t)observer_valid;
    invariant(!(old & observer_releases_late)); /* VALID is cleared once, and only then may this bit be set */
    /* Acquire: if the callout has ended meanwhile, this thread releases the info that the callout has used. */
    while (old & observer_in_callout) {
        if (atomic_compare_exchange_weak_explicit(&observer->state, &old, old | observer_releases_late, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return false;
        }
    }
    return true;
}

void observer_release_info(CFRunLoopObserverRef observer)
{
    context_release(observer, observer->context, atomic_exchange_explicit(&observer->context_info, NULL, memory_order_relaxed));
}

/*
 * Takes the lock of the loop that the observer is in, if any, and the item's lock. Returns the loop for unlock_with_loop. clang cannot
 * follow a lock that depends on a value; the attributes say what callers may rely on: an observer in no loop has nothing that the loop's
 * lock guards.
 */
NOT_CHECKED ACQUIRES(the_loop_lock, the_item_lock) static CFRunLoopRef lock_with_loop(CFRunLoopObserverRef observer)
{
    CFRunLoopRef loop = home_lock_take(observer, &observer->loop);

    if (loop) {
        lock_take(item_lock(observer));
    }
    return loop;
}

NOT_CHECKED RELEASES(the_loop_lock, the_item_lock) static void unlock_with_loop(CFRunLoopObserverRef observer, CFRunLoopRef loop)
{
    if (loop) {
        lock_drop(item_lock(observer));
    }
    home_lock_drop(observer, loop);
}

void observer_invalidate(CFRunLoopObserverRef observer)
{
    struct observer_list *dropped = NULL;
    CFRunLoopRef loop;
    uint32_t old;
    bool was_common = false;

    object_retain(observer);
    loop = lock_with_loop(observer);
    old = atomic_fetch_and_explicit(&observer->state, ~(uint32_t)observer_valid, memory_order_acq_rel);
    if (old & observer_valid) {
        invariant_held(item_lock(observer));
        was_common = observer_leave_everything(observer, &dropped);
        invariant(!observer_loop(observer)); /* no loop will choose it again */
    }
    unlock_with_loop(observer, loop);
    if ((old & observer_valid) && releases_now(observer, old)) {
        observer_release_info(observer);
    }
    observer_lists_free(dropped);
    if (was_common) {
        object_release(observer);
    }
    object_release(observer);
}
