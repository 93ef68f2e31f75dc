/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of observers; see observer_list.h. */
#include "Loop/observer_list.h"

#include <stdlib.h>
#include <string.h>

#include "Loop/observer.h"
#include "Support/fault.h"

static size_t size_of_array(uint32_t capacity)
{
    return sizeof(struct observer_list) + capacity * sizeof(CFRunLoopObserverRef);
}

static struct observer_list *create(uint32_t capacity)
{
    struct observer_list *list = malloc(size_of_array(capacity));

    if (list) {
        list->uses = 1;
        list->count = 0;
        list->capacity = capacity;
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

static bool grows_where_it_stands(const struct observer_list *list)
{
    return list->uses == 1 && list->left == 0 && !list->has_stale;
}

/* Another array with the same observers but for `without`, and room for one more; NULL if there is no memory. */
static struct observer_list *copy(const struct observer_list *old, const struct __CFRunLoopObserver *without)
{
    struct observer_list *list = create(old->count + 1);

    if (!list) {
        return NULL;
    }
    for (uint32_t i = 0; i < old->count; i++) {
        if (old->observers[i] != without) {
            list->observers[list->count++] = old->observers[i];
            object_retain(old->observers[i]);
        }
    }
    list->has_stale = old->has_stale;
    return list;
}

/* The same array, larger, which is the mode's then; NULL if there is no memory. */
static struct observer_list *grow(struct mode *mode, int activity)
{
    struct observer_list *old = mode->observers[activity];
    uint32_t capacity = old->count + 1 + old->count / 8;
    struct observer_list *list = realloc(old, size_of_array(capacity));

    if (list) {
        list->capacity = capacity;
        mode->observers[activity] = list;
    }
    return list;
}

/* Where `observer`, which may be a stale one there, goes next: the mode's array or one to put in its place. NULL if there is no memory. */
static struct observer_list *with_room(struct mode *mode, int activity, const struct __CFRunLoopObserver *observer)
{
    struct observer_list *old = mode->observers[activity];

    if (!old) {
        return create(1);
    }
    if (!grows_where_it_stands(old)) {
        return copy(old, observer);
    }
    return old->count < old->capacity ? old : grow(mode, activity);
}

/* Behind all of its order and before all of higher (148). There is room. */
static void insert(struct observer_list *list, CFRunLoopObserverRef observer)
{
    uint32_t place = list->count++;

    while (place > 0 && list->observers[place - 1]->order > observer->order) {
        list->observers[place] = list->observers[place - 1];
        place--;
    }
    list->observers[place] = observer;
    object_retain(observer);
}

/* Where it stands; the count if it does not. */
static uint32_t place_of(const struct observer_list *list, const struct __CFRunLoopObserver *observer)
{
    uint32_t place = 0;

    while (place < list->count && list->observers[place] != observer) {
        place++;
    }
    return place;
}

void observer_list_take_out(struct observer_list *list, uint32_t place)
{
    CFRunLoopObserverRef observer = list->observers[place];

    list->count--;
    memmove(list->observers + place, list->observers + place + 1, (list->count - place) * sizeof observer);
    list->observers[list->count] = observer;
    list->left++;
}

/* Nobody walks the array. */
static void remove_where_it_stands(struct observer_list *list, uint32_t place)
{
    CFRunLoopObserverRef observer = list->observers[place];

    observer_list_take_out(list, place);
    list->left--;
    list->observers[list->count] = list->observers[list->count + list->left]; /* of those that had left before */
    object_release(observer); /* not the last one */
}

static void log_no_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFRunLoopRemoveObserver: there is no memory; the observer may be called until this round of calls ends");
}

static void remove_from(struct mode *mode, int activity, const struct __CFRunLoopObserver *observer, struct observer_list **dropped)
{
    struct observer_list *old = mode->observers[activity];
    struct observer_list *list = NULL;
    uint32_t place = old ? place_of(old, observer) : 0;

    if (!old || place == old->count) {
        return;
    }
    if (old->count > 1 && old->uses == 1) {
        remove_where_it_stands(old, place);
        return;
    }
    if (old->count > 1) {
        list = copy(old, observer);
        if (!list) {
            old->has_stale = true;
            log_no_memory();
            return;
        }
    }
    observer_list_publish(mode, activity, list, dropped); /* the old one's reference goes with it */
}

void observer_lists_remove(struct mode *mode, const struct __CFRunLoopObserver *observer, struct observer_list **dropped)
{
    for (int i = 0; i < activity_count; i++) {
        remove_from(mode, i, observer, dropped);
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
            lists[i] = with_room(mode, i, observer);
            has_memory = lists[i] != NULL;
        }
    }
    for (int i = 0; i < activity_count; i++) {
        bool is_new = lists[i] && lists[i] != mode->observers[i];

        if (lists[i] && has_memory) {
            insert(lists[i], observer);
        }
        if (is_new && has_memory) {
            observer_list_publish(mode, i, lists[i], dropped);
        } else if (is_new) {
            observer_list_drop(lists[i], dropped);
        }
    }
    return has_memory;
}
