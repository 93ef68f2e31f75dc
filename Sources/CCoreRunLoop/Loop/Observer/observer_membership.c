/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining and leaving modes. See observer_membership.h.
 *
 * An observer in a loop is referenced by each array that holds it, and once for being a common item. It holds no reference on the loop
 * (I3). Arrays that were replaced are chained to `dropped` and freed when no lock is held, because that may release the last reference to
 * an observer, and so run a function of the program.
 */
#include "Loop/Observer/observer_membership.h"

#include <stdlib.h>

#include "Support/fault.h"

REQUIRES(the_item_lock) static struct observer_member *member_in(CFRunLoopObserverRef observer, const struct mode *mode)
{
    for (struct observer_member *member = observer->members; member; member = member->next) {
        if (member->mode == mode) {
            return member;
        }
    }
    return NULL;
}

/* An observer belongs to one loop at most, and to none once it is invalid. */
REQUIRES(the_loop_lock, the_item_lock) static bool may_join(CFRunLoopRef loop, CFRunLoopObserverRef observer)
{
    return loop_is_open(loop) && observer_is_valid(observer) && (!observer_loop(observer) || observer_loop(observer) == loop);
}

/* Puts the observer into the mode. Returns false if there is no memory; nothing has changed then. */
REQUIRES(the_loop_lock, the_item_lock)
static bool member_attach(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct mode *mode, struct observer_list **dropped)
{
    struct observer_member *member = observer->first_member.mode ? malloc(sizeof *member) : &observer->first_member;

    invariant_held(&loop->lock);
    invariant(!member_in(observer, mode));
    invariant(!observer_loop(observer) || observer_loop(observer) == loop);
    if (!member) {
        return false;
    }
    if (!observer_lists_add(mode, observer, dropped)) {
        if (member != &observer->first_member) {
            free(member);
        }
        return false;
    }
    member->mode = mode;
    member->next = observer->members;
    observer->members = member;
    mode->is_declared = true;
    atomic_store_explicit(&observer->loop, loop, memory_order_relaxed);
    return true;
}

REQUIRES(the_loop_lock, the_item_lock)
static void member_detach(CFRunLoopObserverRef observer, struct observer_member *member, struct observer_list **dropped)
{
    struct observer_member **place = &observer->members;

    while (*place != member) {
        invariant(*place);
        place = &(*place)->next;
    }
    *place = member->next;
    observer_lists_remove(member->mode, observer, dropped);
    if (member == &observer->first_member) {
        member->mode = NULL;
    } else {
        free(member);
    }
}

REQUIRES(the_loop_lock, the_item_lock) static void leave_loop_if_unused(CFRunLoopObserverRef observer)
{
    if (!observer->members && !observer->common) {
        atomic_store_explicit(&observer->loop, NULL, memory_order_relaxed);
    }
}

/* Puts the observer into the mode, unless it is there or may not join. */
REQUIRES(the_loop_lock)
static void join_mode(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct mode *mode, struct observer_list **dropped)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    bool has_memory = true;

    lock_take(item_lock(observer));
    if (may_join(loop, observer) && !member_in(observer, mode)) {
        has_memory = member_attach(loop, observer, mode, dropped);
    }
    lock_drop(item_lock(observer));
    if (!has_memory) {
        fault_log_once(&logged, "CFRunLoopAddObserver: there is no memory; the observer was not added");
    }
}

/* Makes the observer a common item. Without memory it is none, and nothing is said: it joins today's common modes all the same. */
REQUIRES(the_loop_lock) static void join_common(CFRunLoopRef loop, CFRunLoopObserverRef observer)
{
    lock_take(item_lock(observer));
    if (may_join(loop, observer) && !observer->common) {
        observer->common = common_item_add(&loop->common_observers, observer);
        if (observer->common) {
            object_retain(observer);
            atomic_store_explicit(&observer->loop, loop, memory_order_relaxed);
        }
    }
    lock_drop(item_lock(observer));
}

void observer_add(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name)
{
    struct observer_list *dropped = NULL;

    loop_lock(loop);
    if (mode_name_means_common(loop, mode_name)) {
        join_common(loop, observer);
        for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
            join_mode(loop, observer, mode, &dropped);
        }
    } else {
        struct mode *mode = loop_is_open(loop) ? mode_create_undeclared(loop, mode_name) : NULL;

        if (mode) {
            join_mode(loop, observer, mode, &dropped);
        }
    }
    loop_unlock(loop);
    observer_lists_free(dropped);
}

REQUIRES(the_loop_lock, the_item_lock)
static void leave_mode(CFRunLoopObserverRef observer, const struct mode *mode, struct observer_list **dropped)
{
    struct observer_member *member = member_in(observer, mode);

    if (member) {
        member_detach(observer, member, dropped);
    }
}

/* Returns true if it was a common item. The caller then owns the reference for that, and releases it without locks. */
REQUIRES(the_loop_lock, the_item_lock) static bool leave_common(CFRunLoopObserverRef observer)
{
    if (!observer->common) {
        return false;
    }
    common_item_remove(observer->common);
    observer->common = NULL;
    return true;
}

/* Takes it out of the common items and of every common mode. Returns as leave_common. */
REQUIRES(the_loop_lock, the_item_lock)
static bool leave_common_modes(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct observer_list **dropped)
{
    if (!leave_common(observer)) {
        return false; /* it is no common item, so nothing happens (rule 21) */
    }
    for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
        leave_mode(observer, mode, dropped);
    }
    return true;
}

void observer_remove(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name)
{
    struct observer_list *dropped = NULL;
    bool was_common = false;

    object_retain(observer);
    loop_lock(loop);
    lock_take(item_lock(observer));
    if (observer_loop(observer) == loop) {
        if (mode_name_means_common(loop, mode_name)) {
            was_common = leave_common_modes(loop, observer, &dropped);
        } else {
            leave_mode(observer, mode_find(loop, mode_name), &dropped);
        }
        leave_loop_if_unused(observer);
    }
    lock_drop(item_lock(observer));
    loop_unlock(loop);
    observer_lists_free(dropped);
    if (was_common) {
        object_release(observer);
    }
    object_release(observer);
}

bool observer_is_in(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name)
{
    bool is_member = false;

    loop_lock(loop);
    lock_take(item_lock(observer));
    if (observer_loop(observer) == loop) {
        is_member =
            mode_name_means_common(loop, mode_name) ? observer->common != NULL : member_in(observer, mode_find(loop, mode_name)) != NULL;
    }
    lock_drop(item_lock(observer));
    loop_unlock(loop);
    return is_member;
}

void observers_join_common_mode(CFRunLoopRef loop, struct mode *mode)
{
    struct observer_list *dropped = NULL;

    loop_lock(loop);
    list_for_each(link, &loop->common_observers) {
        join_mode(loop, (CFRunLoopObserverRef)(uintptr_t)common_item_of(link)->item, mode, &dropped);
    }
    loop_unlock(loop);
    observer_lists_free(dropped);
}

bool observer_leave_everything(CFRunLoopObserverRef observer, struct observer_list **dropped)
{
    bool was_common;

    while (observer->members) {
        member_detach(observer, observer->members, dropped);
    }
    was_common = leave_common(observer);
    leave_loop_if_unused(observer);
    return was_common;
}

/* Returns any observer of the array that is still in the loop. An array may hold some that have left (has_stale). NULL if there is none. */
REQUIRES(the_loop_lock) static CFRunLoopObserverRef any_member(CFRunLoopRef loop, const struct observer_list *list)
{
    for (uint32_t i = 0; list && i < list->count; i++) {
        if (observer_loop(list->observers[i]) == loop) {
            return list->observers[i];
        }
    }
    return NULL;
}

/* Returns any observer of the loop, or NULL. */
REQUIRES(the_loop_lock) static CFRunLoopObserverRef any_observer(CFRunLoopRef loop)
{
    if (!list_is_empty(&loop->common_observers)) {
        return (CFRunLoopObserverRef)(uintptr_t)common_item_of(loop->common_observers.next)->item;
    }
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        for (int i = 0; i < activity_count; i++) {
            CFRunLoopObserverRef observer = any_member(loop, mode->observers[i]);

            if (observer) {
                return observer;
            }
        }
    }
    return NULL;
}

/* Drops the arrays of a loop that has no observer. They hold only observers that left while there was no memory for a new array. */
REQUIRES(the_loop_lock) static void drop_arrays(CFRunLoopRef loop, struct observer_list **dropped)
{
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        for (int i = 0; i < activity_count; i++) {
            observer_list_publish(mode, i, NULL, dropped);
        }
    }
}

void observers_remove_all(CFRunLoopRef loop)
{
    CFRunLoopObserverRef observer;

    do {
        struct observer_list *dropped = NULL;
        bool was_common = false;

        loop_lock(loop);
        observer = any_observer(loop);
        if (observer) {
            object_retain(observer);
            lock_take(item_lock(observer));
            was_common = observer_leave_everything(observer, &dropped);
            lock_drop(item_lock(observer));
        } else {
            drop_arrays(loop, &dropped);
        }
        loop_unlock(loop);
        observer_lists_free(dropped);
        if (was_common) {
            object_release(observer);
        }
        object_release_if_any(observer);
    } while (observer);
}

bool observer_is_member(CFRunLoopObserverRef observer, const struct mode *mode)
{
    bool is_member;

    lock_take(item_lock(observer));
    is_member = member_in(observer, mode) != NULL;
    lock_drop(item_lock(observer));
    return is_member;
}
