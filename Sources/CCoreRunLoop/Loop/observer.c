/* SPDX-License-Identifier: Apache-2.0 */
/* The mechanics of observers; guards are in observer.h. */
#include "Loop/observer.h"

#include <stdlib.h>
#include <string.h>

#include "Loop/activation.h"
#include "Loop/held.h"
#include "Loop/observer_list.h"
#include "Loop/thread_loop.h"
#include "Support/fault.h"

static bool is_valid(const struct __CFRunLoopObserver *observer)
{
    return (atomic_load_explicit(&observer->state, memory_order_relaxed) & observer_valid) != 0;
}

/* ---- construction ---- */

static void finalize(CFTypeRef object)
{
    CFRunLoopObserverRef observer = (CFRunLoopObserverRef)(uintptr_t)object;

    /* Late it is still where a thread ended in the callout. */
    if (atomic_load_explicit(&observer->state, memory_order_relaxed) & (observer_valid | observer_releases_late)) {
        item_context_release(observer, observer->context, observer_info(observer));
    }
    free(observer->context);
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopObserverRef observer = (CFRunLoopObserverRef)(uintptr_t)object;
    CFStringRef context = item_context_describe(observer, observer->context, observer_info(observer));
    CFStringRef text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFRunLoopObserver %p>{valid = %s, activities = 0x%x, repeats = %s, order = %ld, callout = %p, context = %@}"),
        object, is_valid(observer) ? "Yes" : "No", observer->activities, observer->repeats ? "Yes" : "No", (long)observer->order,
        (void *)(uintptr_t)observer->callout, context);

    if (context) {
        CFRelease(context);
    }
    return text;
}

const struct object_class observer_class = {
    .type_id = object_type_run_loop_observer,
    .name = "CFRunLoopObserver",
    .finalize = finalize,
    .copy_description = describe,
};

CFRunLoopObserverRef observer_create(CFAllocatorRef allocator, CFOptionFlags watched, bool repeats, CFIndex order,
                                     CFRunLoopObserverCallBack callout, const CFRunLoopObserverContext *context)
{
    CFRunLoopObserverRef observer = object_create(allocator, &observer_class, sizeof *observer);
    void *info = NULL;

    if (!observer) {
        return NULL;
    }
    if (context && !item_context_adopt(&(struct item_context){.retain = context->retain,
                                                              .release = context->release,
                                                              .copy_description = context->copyDescription},
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

/* ---- membership; L and I ---- */

static CFRunLoopRef loop_of(CFRunLoopObserverRef observer)
{
    return atomic_load_explicit(&observer->loop, memory_order_relaxed);
}

static struct observer_member *member_in(CFRunLoopObserverRef observer, const struct mode *mode)
{
    for (struct observer_member *member = observer->members; member; member = member->next) {
        if (member->mode == mode) {
            return member;
        }
    }
    return NULL;
}

static bool may_join(CFRunLoopRef loop, CFRunLoopObserverRef observer)
{
    return loop_is_open(loop) && is_valid(observer) && (!loop_of(observer) || loop_of(observer) == loop);
}

static bool attach(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct mode *mode, struct observer_list **dropped)
{
    struct observer_member *member = observer->first_member.mode ? malloc(sizeof *member) : &observer->first_member;

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

static void detach(CFRunLoopObserverRef observer, struct observer_member *member, struct observer_list **dropped)
{
    struct observer_member **place = &observer->members;

    while (*place != member) {
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

static void leave_loop_if_unused(CFRunLoopObserverRef observer)
{
    if (!observer->members && !observer->common) {
        atomic_store_explicit(&observer->loop, NULL, memory_order_relaxed);
    }
}

static void join_mode(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct mode *mode, struct observer_list **dropped)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct lock *lock = item_lock(observer);
    bool has_memory = true;

    lock_take(lock);
    if (may_join(loop, observer) && !member_in(observer, mode)) {
        has_memory = attach(loop, observer, mode, dropped);
    }
    lock_drop(lock);
    if (!has_memory) {
        fault_log_once(&logged, "CFRunLoopAddObserver: there is no memory; the observer was not added");
    }
}

static void join_common(CFRunLoopRef loop, CFRunLoopObserverRef observer)
{
    struct lock *lock = item_lock(observer);

    lock_take(lock);
    if (may_join(loop, observer) && !observer->common) {
        observer->common = common_item_add(&loop->common_observers, observer);
        if (observer->common) {
            object_retain(observer);
            atomic_store_explicit(&observer->loop, loop, memory_order_relaxed);
        }
    }
    lock_drop(lock);
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

/* Takes it out of `mode`. L and I. */
static void leave_mode(CFRunLoopObserverRef observer, const struct mode *mode, struct observer_list **dropped)
{
    struct observer_member *member = member_in(observer, mode);

    if (member) {
        detach(observer, member, dropped);
    }
}

/* True if it was a common item: the reference of the items is the caller's then. L and I. */
static bool leave_common(CFRunLoopObserverRef observer)
{
    if (!observer->common) {
        return false;
    }
    common_item_remove(observer->common);
    observer->common = NULL;
    return true;
}

static bool leave_common_modes(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct observer_list **dropped)
{
    if (!leave_common(observer)) {
        return false; /* 21 */
    }
    for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
        leave_mode(observer, mode, dropped);
    }
    return true;
}

void observer_remove(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name)
{
    struct observer_list *dropped = NULL;
    struct lock *lock = item_lock(observer);
    bool was_common = false;

    object_retain(observer);
    loop_lock(loop);
    lock_take(lock);
    if (loop_of(observer) == loop) {
        if (mode_name_means_common(loop, mode_name)) {
            was_common = leave_common_modes(loop, observer, &dropped);
        } else {
            leave_mode(observer, mode_find(loop, mode_name), &dropped);
        }
        leave_loop_if_unused(observer);
    }
    lock_drop(lock);
    loop_unlock(loop);
    observer_lists_free(dropped);
    if (was_common) {
        object_release(observer);
    }
    object_release(observer);
}

bool observer_is_in(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name)
{
    struct lock *lock = item_lock(observer);
    bool is_member = false;

    loop_lock(loop);
    lock_take(lock);
    if (loop_of(observer) == loop) {
        is_member =
            mode_name_means_common(loop, mode_name) ? observer->common != NULL : member_in(observer, mode_find(loop, mode_name)) != NULL;
    }
    lock_drop(lock);
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

/* Takes it out of everything. True if it was a common item. L and I. */
static bool leave_everything(CFRunLoopObserverRef observer, struct observer_list **dropped)
{
    while (observer->members) {
        detach(observer, observer->members, dropped);
    }
    return leave_common(observer);
}

/* Any one of an array that is still the loop's. L. */
static CFRunLoopObserverRef any_member(CFRunLoopRef loop, const struct observer_list *list)
{
    for (uint32_t i = 0; list && i < list->count; i++) {
        if (loop_of(list->observers[i]) == loop) {
            return list->observers[i];
        }
    }
    return NULL;
}

/* Any observer of the loop. L. */
static CFRunLoopObserverRef any_observer(CFRunLoopRef loop)
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

/* Arrays that are left hold only those who had left before, without memory for another array. L. */
static void drop_arrays(CFRunLoopRef loop, struct observer_list **dropped)
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
            was_common = leave_everything(observer, &dropped);
            leave_loop_if_unused(observer);
            lock_drop(item_lock(observer));
        } else {
            drop_arrays(loop, &dropped);
        }
        loop_unlock(loop);
        observer_lists_free(dropped);
        if (was_common) {
            object_release(observer);
        }
        if (observer) {
            object_release(observer);
        }
    } while (observer);
}

/* Who releases the info, after VALID was cleared from the state `old`: true, this thread now; false, the callout under way, at its end. */
static bool releases_now(CFRunLoopObserverRef observer, uint32_t old)
{
    if (!observer->keeps_info && thread_loop_is_current(atomic_load_explicit(&observer->called_on, memory_order_relaxed))) {
        return true; /* in its own callout: there is no bracket around it (153) */
    }
    old &= ~(uint32_t)observer_valid;
    while (old & observer_called) {
        if (atomic_compare_exchange_weak_explicit(&observer->state, &old, old | observer_releases_late, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return false;
        }
    }
    return true;
}

static void release_info(CFRunLoopObserverRef observer)
{
    item_context_release(observer, observer->context, atomic_exchange_explicit(&observer->context_info, NULL, memory_order_relaxed));
}

/* L of the loop that it is in, if any, and I. */
static CFRunLoopRef lock_with_loop(CFRunLoopObserverRef observer)
{
    CFRunLoopRef loop = item_lock_home(observer, &observer->loop);

    if (loop) {
        lock_take(item_lock(observer));
    }
    return loop;
}

static void unlock_with_loop(CFRunLoopObserverRef observer, CFRunLoopRef loop)
{
    if (loop) {
        lock_drop(item_lock(observer));
    }
    item_unlock_home(observer, loop);
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
        was_common = leave_everything(observer, &dropped);
        leave_loop_if_unused(observer);
    }
    unlock_with_loop(observer, loop);
    if ((old & observer_valid) && releases_now(observer, old)) {
        release_info(observer);
    }
    observer_lists_free(dropped);
    if (was_common) {
        object_release(observer);
    }
    object_release(observer);
}

/* ---- calling ---- */

/* False if it is invalid (150), or in callout already (151). */
static bool begin_call(CFRunLoopRef loop, CFRunLoopObserverRef observer)
{
    uint32_t old = observer_valid;

    if (!atomic_compare_exchange_strong_explicit(&observer->state, &old, observer_valid | observer_called, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        return false;
    }
    atomic_store_explicit(&observer->called_on, loop, memory_order_relaxed);
    return true;
}

/* True if its info is to be released now. */
static inline bool end_call(CFRunLoopObserverRef observer)
{
    uint32_t old;

    atomic_store_explicit(&observer->called_on, NULL, memory_order_relaxed);
    old = atomic_fetch_and_explicit(&observer->state, ~(uint32_t)(observer_called | observer_releases_late), memory_order_acq_rel);
    return (old & observer_releases_late) != 0;
}

/* Of a callout that has come to its end. */
static inline __attribute__((always_inline)) void finish_call(CFRunLoopObserverRef observer)
{
    if (!observer->repeats) {
        observer_invalidate(observer); /* 152 */
    }
    if (end_call(observer)) {
        release_info(observer);
    }
}

static void call(CFRunLoopRef loop, struct activation *run, CFRunLoopObserverRef observer, CFRunLoopActivity activity)
{
    if (!(observer->activities & activity) || !begin_call(loop, observer)) {
        return;
    }
    run->calling = observer;
    if (observer->callout) {
        observer->callout(observer, activity, observer_info(observer));
    }
    run->calling = NULL;
    finish_call(observer);
}

void observer_end_left_callout(const void *observer)
{
    finish_call((CFRunLoopObserverRef)(uintptr_t)observer);
}

void observers_forget_callouts(CFRunLoopRef loop)
{
    for (struct activation *run = loop->activation; run; run = run->outer) {
        if (run->calling) {
            (void)end_call(run->calling);
            run->calling = NULL;
        }
    }
}

/* Nobody walks the array any more. L. */
static void take_out_stale(const struct mode *mode, struct observer_list *list)
{
    list->has_stale = false;
    for (uint32_t i = list->count; i-- > 0;) {
        struct lock *lock = item_lock(list->observers[i]);
        bool is_member;

        lock_take(lock);
        is_member = member_in(list->observers[i], mode) != NULL;
        lock_drop(lock);
        if (!is_member) {
            observer_list_take_out(list, i);
        }
    }
}

/* Of a run that was left: it walks no more. Without locks, on its thread. */
static void end_left_walk(const void *walked)
{
    struct observer_list *list = (struct observer_list *)(uintptr_t)walked;
    CFRunLoopRef loop = thread_loop_current();
    struct observer_list *dropped = NULL;

    loop_lock(loop);
    observer_list_drop(list, &dropped);
    loop_unlock(loop);
    observer_lists_free(dropped);
}

void observers_call(CFRunLoopRef loop, struct activation *run, CFRunLoopActivity activity)
{
    struct observer_list *dropped = NULL;
    struct observer_list *list;
    int index = 0;

    while (observer_list_activities[index] != activity) {
        index++;
    }
    list = run->mode->observers[index];
    list->uses++;
    held_in_hand(run, end_left_walk, list);
    loop_unlock(loop);
    for (uint32_t i = 0; i < list->count; i++) {
        call(loop, run, list->observers[i], activity);
    }
    loop_lock(loop);
    held_put_down(run);
    observer_list_drop(list, &dropped);
    if (list == run->mode->observers[index] && list->has_stale && list->uses == 1) {
        take_out_stale(run->mode, list);
    }
    if (dropped) {
        loop_unlock(loop);
        observer_lists_free(dropped);
        loop_lock(loop);
    }
    run_resume(loop, run);
}
