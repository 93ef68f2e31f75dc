/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of observers; see observer_list.h. */
#include "Loop/observer_list.h"

#include <stdlib.h>

#include "Loop/observer.h"
#include "Support/fault.h"

static struct observer_list *create(uint32_t count)
{
    struct observer_list *list = malloc(sizeof *list + count * sizeof(CFRunLoopObserverRef));

    if (list) {
        list->uses = 1;
        list->count = count;
        list->left = 0;
        list->has_stale = false;
    }
    return list;
}

void observer_lists_free(struct observer_list *list)
{
    while (list) {
        struct observer_list *next = list->next_dropped;

        for (uint32_t i = 0; i < list->count + list->left; i++) {
            object_release(list->observers[i]);
        }
        free(list);
        list = next;
    }
}

void observer_list_publish(struct mode *mode, int activity, struct observer_list *list, struct observer_list **dropped)
{
    uint32_t observed = atomic_load_explicit(&mode->observed, memory_order_relaxed);
    uint32_t bit = (uint32_t)observer_list_activities[activity];

    observer_list_drop(mode->observers[activity], dropped);
    mode->observers[activity] = list;
    atomic_store_explicit(&mode->observed, list ? observed | bit : observed & ~bit, memory_order_relaxed);
}

/* The array with `observer` behind all of its order and before all of higher (148); NULL if there is no memory. */
static struct observer_list *list_with(const struct observer_list *old, CFRunLoopObserverRef observer)
{
    uint32_t old_count = old ? old->count : 0;
    struct observer_list *list = create(old_count + 1);
    uint32_t count = 0;
    bool is_placed = false;

    if (!list) {
        return NULL;
    }
    for (uint32_t i = 0; i < old_count; i++) {
        if (old->observers[i] == observer) {
            continue; /* a stale one */
        }
        if (!is_placed && old->observers[i]->order > observer->order) {
            list->observers[count++] = observer;
            is_placed = true;
        }
        list->observers[count++] = old->observers[i];
    }
    if (!is_placed) {
        list->observers[count++] = observer;
    }
    for (uint32_t i = 0; i < count; i++) {
        object_retain(list->observers[i]);
    }
    list->count = count;
    list->has_stale = old && old->has_stale;
    return list;
}

static bool list_has(const struct observer_list *list, const struct __CFRunLoopObserver *observer)
{
    for (uint32_t i = 0; list && i < list->count; i++) {
        if (list->observers[i] == observer) {
            return true;
        }
    }
    return false;
}

/* The array without `observer`, whose reference goes with the old array. */
static struct observer_list *list_without(const struct observer_list *old, const struct __CFRunLoopObserver *observer)
{
    struct observer_list *list = create(old->count - 1);
    uint32_t count = 0;

    for (uint32_t i = 0; list && i < old->count; i++) {
        if (old->observers[i] != observer) {
            list->observers[count++] = old->observers[i];
            object_retain(old->observers[i]);
        }
    }
    if (list) {
        list->has_stale = old->has_stale;
    }
    return list;
}

void observer_list_take_out(struct observer_list *list, uint32_t place)
{
    CFRunLoopObserverRef observer = list->observers[place];

    list->count--;
    for (uint32_t i = place; i < list->count; i++) {
        list->observers[i] = list->observers[i + 1];
    }
    list->observers[list->count] = observer;
    list->left++;
}

/* Without memory for another array. */
static void remove_in_place(struct observer_list *list, const struct __CFRunLoopObserver *observer)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (list->uses > 1) {
        list->has_stale = true;
        fault_log_once(&logged, "CFRunLoopRemoveObserver: there is no memory; the observer may be called until this round of calls ends");
        return;
    }
    for (uint32_t i = list->count; i-- > 0;) {
        if (list->observers[i] == observer) {
            observer_list_take_out(list, i);
        }
    }
}

void observer_lists_remove(struct mode *mode, const struct __CFRunLoopObserver *observer, struct observer_list **dropped)
{
    for (int i = 0; i < activity_count; i++) {
        struct observer_list *old = mode->observers[i];
        struct observer_list *list;

        if (!list_has(old, observer)) {
            continue;
        }
        list = old->count > 1 ? list_without(old, observer) : NULL;
        if (!list && old->count > 1) {
            remove_in_place(old, observer);
            continue;
        }
        observer_list_publish(mode, i, list, dropped);
    }
}

/* Which arrays hold it: those of its activities; one that watches none stands in the first, so that the loop knows of it. */
static bool belongs_to(const struct __CFRunLoopObserver *observer, int activity)
{
    const uint32_t known = kCFRunLoopEntry | kCFRunLoopBeforeTimers | kCFRunLoopBeforeSources | kCFRunLoopBeforeWaiting |
                           kCFRunLoopAfterWaiting | kCFRunLoopExit;

    return (observer->activities & observer_list_activities[activity]) || (activity == 0 && !(observer->activities & known));
}

bool observer_lists_add(struct mode *mode, CFRunLoopObserverRef observer, struct observer_list **dropped)
{
    struct observer_list *lists[activity_count] = {NULL};
    bool has_memory = true;

    for (int i = 0; i < activity_count && has_memory; i++) {
        if (belongs_to(observer, i)) {
            lists[i] = list_with(mode->observers[i], observer);
            has_memory = lists[i] != NULL;
        }
    }
    for (int i = 0; i < activity_count; i++) {
        if (lists[i] && has_memory) {
            observer_list_publish(mode, i, lists[i], dropped);
        } else {
            observer_list_drop(lists[i], dropped);
        }
    }
    return has_memory;
}
