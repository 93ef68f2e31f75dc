/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the arrays of observers: in place if nobody walks them, and otherwise through a copy. The loop's lock is held; see
 * observer_list.h.
 */
#include "Loop/Observer/observer_list.h"

#include <stdlib.h>
#include <string.h>

#include "Loop/Observer/observer.h"
#include "Support/fault.h"

static size_t size_of_array(uint32_t capacity)
{
    return sizeof(struct observer_list) + capacity * sizeof(CFRunLoopObserverRef);
}

/* The array is new and no other thread knows it, so it needs no lock yet. */
NOT_CHECKED static struct observer_list *list_create(uint32_t capacity)
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

    invariant(((observed & bit) != 0) == (mode->observers[activity] != NULL));
    invariant(!list || list->uses == 1);
    observer_list_drop(mode->observers[activity], dropped);
    mode->observers[activity] = list;
    atomic_store_explicit(&mode->observed, list ? observed | bit : observed & ~bit, memory_order_relaxed);
}

/* Returns true if the array can take another observer in place: nobody walks it, and no entry of it is waiting to be taken out. */
REQUIRES(the_loop_lock) static bool can_grow_in_place(const struct observer_list *list)
{
    return list->uses == 1 && list->left == 0 && !list->has_stale;
}

/* Copies the array without the observer `without`, and with room for one more. Returns NULL if there is no memory. */
REQUIRES(the_loop_lock) static struct observer_list *list_copy(const struct observer_list *old, const struct __CFRunLoopObserver *without)
{
    struct observer_list *list = list_create(old->count + 1);

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

/*
 * Enlarges the mode's array by an eighth. The array may move; the mode then has the new place. Returns NULL, and leaves the array as it
 * was, if there is no memory.
 */
REQUIRES(the_loop_lock) static struct observer_list *list_grow(struct mode *mode, int activity)
{
    struct observer_list *old = mode->observers[activity];
    uint32_t capacity = old->count + 1 + old->count / 8;
    struct observer_list *list;

    invariant(old->uses == 1 && old->left == 0); /* realloc moves what a walk would still read */
    list = realloc(old, size_of_array(capacity));
    if (list) {
        list->capacity = capacity;
        mode->observers[activity] = list;
    }
    return list;
}

/*
 * Returns an array with room for `observer`: the mode's own, or a new one that is to take its place. A stale entry of the observer is left
 * out of the new one. Returns NULL if there is no memory.
 */
REQUIRES(the_loop_lock)
static struct observer_list *list_with_room(struct mode *mode, int activity, const struct __CFRunLoopObserver *observer)
{
    struct observer_list *old = mode->observers[activity];

    if (!old) {
        return list_create(1);
    }
    if (!can_grow_in_place(old)) {
        return list_copy(old, observer);
    }
    return old->count < old->capacity ? old : list_grow(mode, activity);
}

/* Inserts behind all of the same order and before all of a higher one (rule 148). There is room. */
REQUIRES(the_loop_lock) static void list_insert(struct observer_list *list, CFRunLoopObserverRef observer)
{
    uint32_t place = list->count++;

    invariant(list->uses == 1 && place < list->capacity);
    while (place > 0 && list->observers[place - 1]->order > observer->order) {
        list->observers[place] = list->observers[place - 1];
        place--;
    }
    list->observers[place] = observer;
    object_retain(observer);
}

/* Returns the index of the observer in the array, or the count if it is not there. */
static uint32_t list_find(const struct observer_list *list, const struct __CFRunLoopObserver *observer)
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

    invariant(list->uses == 1 && place < list->count);
    list->count--;
    memmove(list->observers + place, list->observers + place + 1, (list->count - place) * sizeof observer);
    list->observers[list->count] = observer;
    list->left++;
}

/* Removes one entry of an array that nobody walks. */
REQUIRES(the_loop_lock) static void remove_in_place(struct observer_list *list, uint32_t place)
{
    CFRunLoopObserverRef observer = list->observers[place];

    observer_list_take_out(list, place);
    list->left--;
    list->observers[list->count] = list->observers[list->count + list->left]; /* the last of those that had left before fills the gap */
    object_release(observer); /* the caller has another reference, so nothing is freed under the lock */
}

static void log_no_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFRunLoopRemoveObserver: there is no memory; the observer may be called until this round of calls ends");
}

REQUIRES(the_loop_lock)
static void remove_from(struct mode *mode, int activity, const struct __CFRunLoopObserver *observer, struct observer_list **dropped)
{
    struct observer_list *old = mode->observers[activity];
    struct observer_list *list = NULL;
    uint32_t place = old ? list_find(old, observer) : 0;

    if (!old || place == old->count) {
        return;
    }
    if (old->count > 1 && old->uses == 1) {
        remove_in_place(old, place);
        return;
    }
    if (old->count > 1) {
        list = list_copy(old, observer);
        if (!list) {
            old->has_stale = true;
            log_no_memory();
            return;
        }
    }
    observer_list_publish(mode, activity, list, dropped); /* the reference goes with the old array */
}

void observer_lists_remove(struct mode *mode, const struct __CFRunLoopObserver *observer, struct observer_list **dropped)
{
    for (int i = 0; i < activity_count; i++) {
        remove_from(mode, i, observer, dropped);
    }
}

/*
 * Returns true if the array of the activity holds the observer. An observer of no known activity stands in the first array, and is never
 * called: the loop has to know of it when it ends.
 */
static bool belongs_to(const struct __CFRunLoopObserver *observer, int activity)
{
    uint32_t known = 0;

    for (int i = 0; i < activity_count; i++) {
        known |= (uint32_t)observer_list_activities[i];
    }
    return (observer->activities & observer_list_activities[activity]) || (activity == 0 && !(observer->activities & known));
}

bool observer_lists_add(struct mode *mode, CFRunLoopObserverRef observer, struct observer_list **dropped)
{
    struct observer_list *lists[activity_count] = {NULL};
    bool has_memory = true;

    for (int i = 0; i < activity_count && has_memory; i++) {
        if (belongs_to(observer, i)) {
            lists[i] = list_with_room(mode, i, observer);
            has_memory = lists[i] != NULL;
        }
    }
    for (int i = 0; i < activity_count; i++) {
        bool is_new = lists[i] && lists[i] != mode->observers[i];

        if (lists[i] && has_memory) {
            list_insert(lists[i], observer);
        }
        if (is_new && has_memory) {
            observer_list_publish(mode, i, lists[i], dropped);
        } else if (is_new) {
            observer_list_drop(lists[i], dropped);
        }
    }
    return has_memory;
}
