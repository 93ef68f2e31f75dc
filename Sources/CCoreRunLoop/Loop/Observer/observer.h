/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observers: what they are, their making and their end. observer_membership.h puts them into modes, which find them through the arrays of
 * observer_list.h; observer_callout.h calls them.
 *
 * A field that two locks guard (loop, members, common) is written with both held: the loop's lock and then the item's. One of the two is
 * enough to read it. The attributes name the item's lock, which every writer has. The state word and the info are atomic: a callout takes
 * no lock.
 *
 * Why the info is not kept by a callout_info, as sockets and ports do: that counts callouts under a lock. Here one exchange of the state
 * both claims the callout (rule 151) and keeps the info, and one more ends it.
 */
#ifndef CRL_LOOP_OBSERVER_OBSERVER_H
#define CRL_LOOP_OBSERVER_OBSERVER_H

#include "Loop/link_names.h"

#include "Loop/Core/common_items.h"
#include "Loop/Core/context.h"
#include "Loop/Core/loop.h"

/* The observer is in one mode. */
struct observer_member {
    struct mode *mode; /* NULL: the observer's first_member, while it is free */
    struct observer_member *next;
};

/*
 * Bits of an observer's state:
 *
 *   VALID          until invalidation, then never again
 *   IN_CALLOUT     a callout is under way; it began while VALID was set, and no second one begins (rule 151)
 *   RELEASES_LATE  invalidated during a callout: the end of the callout releases the info; never with VALID, nor without IN_CALLOUT
 *
 *   VALID -> VALID+IN_CALLOUT                    callout_begin
 *   VALID+x -> x                                 observer_invalidate
 *   IN_CALLOUT -> IN_CALLOUT+RELEASES_LATE       observer_invalidate, if another thread's callout still uses the info
 *   x+IN_CALLOUT(+RELEASES_LATE) -> x            callout_end
 */
enum observer_state { observer_valid = 1, observer_in_callout = 2, observer_releases_late = 4 };

/* Fields without a word on guards never change after creation. */
struct __CFRunLoopObserver {
    struct object object;
    CFRunLoopObserverCallBack callout;
    _Atomic(void *) context_info; /* NULL once released; the state decides who releases it, and thus who writes; anybody may read */
    struct context *context; /* NULL if the context has no functions */
    _Atomic(CFRunLoopRef) loop; /* written with the loop's and the item's lock; not retained */
    _Atomic(CFRunLoopRef) called_on; /* the loop of the callout under way; written by that callout alone */
    CFIndex order;
    uint32_t activities;
    bool repeats;
    bool keeps_info; /* the info is released after the callout, also if the callout itself invalidates the observer */
    _Atomic uint32_t state; /* enum observer_state */
    struct common_item *common GUARDED_BY(the_item_lock); /* NULL unless it is a common item */
    struct observer_member *members GUARDED_BY(the_item_lock);
    struct observer_member first_member GUARDED_BY(the_item_lock); /* so that an observer in one mode needs no more memory */
};

extern const struct object_class observer_class;

static inline bool observer_is_valid(const struct __CFRunLoopObserver *observer)
{
    return (atomic_load_explicit(&observer->state, memory_order_relaxed) & observer_valid) != 0;
}

static inline CFRunLoopRef observer_loop(const struct __CFRunLoopObserver *observer)
{
    return atomic_load_explicit(&observer->loop, memory_order_relaxed);
}

static inline void *observer_info(CFRunLoopObserverRef observer)
{
    return atomic_load_explicit(&observer->context_info, memory_order_relaxed);
}

CFRunLoopObserverRef observer_create(CFAllocatorRef allocator, CFOptionFlags activities, bool repeats, CFIndex order,
                                     CFRunLoopObserverCallBack callout, const CFRunLoopObserverContext *context);
/*
 * For the maker of an observer whose context cannot retain its info for a callout: the info is released after the callout, even if the
 * callout invalidates the observer. For all others the info is released at once then (rule 153).
 */
void observer_keep_info(CFRunLoopObserverRef observer);
EXCLUDES(the_loop_lock, the_item_lock) void observer_invalidate(CFRunLoopObserverRef observer);

/* Releases the info, for good. The state says who has to. No lock is held. */
EXCLUDES(the_loop_lock, the_item_lock) void observer_release_info(CFRunLoopObserverRef observer);

#endif
