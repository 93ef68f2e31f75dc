/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays through which a mode finds its observers: one for each activity, sorted by order.
 *
 * The loop's lock guards the arrays, but walks go without it. So an array is never changed while it is walked: who joins or leaves then
 * puts a changed copy in its place, and the old array is freed after its last walk, when no lock is held. An array that nobody walks is
 * changed in place. Always true: each array holds one reference on each of its observers, and a mode's `observed` has the bits of the
 * arrays that exist.
 */
#ifndef CRL_LOOP_OBSERVER_OBSERVER_LIST_H
#define CRL_LOOP_OBSERVER_OBSERVER_LIST_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/*
 * The observers that watch one activity. A walk has the array to itself as far as its use count goes, and reads `count` without the lock.
 */
struct observer_list {
    uint32_t uses GUARDED_BY(the_loop_lock); /* one for the mode, and one for each walk */
    uint32_t count; /* written with the loop's lock, and only while there is no walk */
    uint32_t capacity GUARDED_BY(the_loop_lock);
    uint32_t left; /* as count: entries behind the others that still hold a reference on an observer that has left */
    bool has_stale GUARDED_BY(the_loop_lock); /* somebody left during a walk without memory for a copy; the walk removes it */
    struct observer_list *next_dropped; /* belongs to whoever dropped the last use */
    CFRunLoopObserverRef observers[]; /* as count */
};

/*
 * The activities in the order in which a run sends them. A mode keeps its arrays in this order. Entry stays first: an observer of no known
 * activity stands in its array.
 */
static const CFRunLoopActivity observer_list_activities[activity_count] = {
    kCFRunLoopEntry, kCFRunLoopBeforeTimers, kCFRunLoopBeforeSources, kCFRunLoopBeforeWaiting, kCFRunLoopAfterWaiting, kCFRunLoopExit};

/*
 * Adds the observer to the arrays of the activities that it watches, behind all of the same order (rule 148). Returns false if there is no
 * memory; nothing has changed then.
 */
REQUIRES(the_loop_lock)
bool observer_lists_add(struct mode *mode, CFRunLoopObserverRef observer, struct observer_list **dropped);
/* The caller keeps a reference of its own until it has dropped the lock, so that the one released here is not the last. */
REQUIRES(the_loop_lock)
void observer_lists_remove(struct mode *mode, const struct __CFRunLoopObserver *observer, struct observer_list **dropped);

/* Makes `list` the array of the activity. NULL: nobody watches it. Drops the mode's use of the array that was there. */
REQUIRES(the_loop_lock)
void observer_list_publish(struct mode *mode, int activity, struct observer_list *list, struct observer_list **dropped);

/* Moves one entry of an array that nobody walks behind the others. Its reference stays there until the array is freed. */
REQUIRES(the_loop_lock) void observer_list_take_out(struct observer_list *list, uint32_t place);

/* Drops one use. The last one chains the array to `*dropped`, so that it is freed when no lock is held. */
REQUIRES(the_loop_lock) static inline void observer_list_drop(struct observer_list *list, struct observer_list **dropped)
{
    invariant(!list || list->uses > 0);
    if (list && --list->uses == 0) {
        list->next_dropped = *dropped;
        *dropped = list;
    }
}

/* Frees a chain of dropped arrays and releases their observers, which may run functions of the program. */
EXCLUDES(the_loop_lock, the_item_lock) void observer_lists_free(struct observer_list *dropped);

#endif
