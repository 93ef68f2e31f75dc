/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sorted arrays of a mode that hold its observers, one for each activity. An array is never changed while it is walked: who joins or
 * leaves then puts another in its place, and the old one is freed after its last walk, when no lock is held. One that nobody walks is
 * changed where it stands. All under the loop's lock.
 */
#ifndef CRL_LOOP_OBSERVER_LIST_H
#define CRL_LOOP_OBSERVER_LIST_H

#include "Support/link_names.h"

#include "Loop/loop.h"

/* Those that watch one activity, in order. Never changed while it is walked. */
struct observer_list {
    uint32_t uses; /* L; the mode's own and those of walks */
    uint32_t count; /* L; constant during walks */
    uint32_t capacity; /* L */
    uint32_t left; /* L; behind those: who left during a walk, while there was no memory for another array */
    bool has_stale; /* L; somebody left during a walk, while there was no memory: the end of the walk takes him out */
    struct observer_list *next_dropped; /* of whoever dropped its last use */
    CFRunLoopObserverRef observers[]; /* as count; each with a reference */
};

/* The activities in the order in which a run sends them, which is that of a mode's arrays. */
static const CFRunLoopActivity observer_list_activities[activity_count] = {
    kCFRunLoopEntry, kCFRunLoopBeforeTimers, kCFRunLoopBeforeSources, kCFRunLoopBeforeWaiting, kCFRunLoopAfterWaiting, kCFRunLoopExit};

/* Puts the observer into the arrays of what it watches, behind all of its order (148). False if there is no memory; nothing has changed. */
bool observer_lists_add(struct mode *mode, CFRunLoopObserverRef observer, struct observer_list **dropped);
/* The caller has a reference of its own, until it has let go of the lock. */
void observer_lists_remove(struct mode *mode, const struct __CFRunLoopObserver *observer, struct observer_list **dropped);

/* Puts `list` (NULL: nobody watches) in the place of what was there. */
void observer_list_publish(struct mode *mode, int activity, struct observer_list *list, struct observer_list **dropped);

/* Moves one of an array that nobody walks behind the others, where its reference stays until the array goes. */
void observer_list_take_out(struct observer_list *list, uint32_t place);

/* Drops one use; the last one chains the array to `dropped`, to be freed when no lock is held. */
static inline void observer_list_drop(struct observer_list *list, struct observer_list **dropped)
{
    if (list && --list->uses == 0) {
        list->next_dropped = *dropped;
        *dropped = list;
    }
}

/* Without a lock. */
void observer_lists_free(struct observer_list *dropped);

#endif
