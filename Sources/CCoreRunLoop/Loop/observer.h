/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observers, and the sorted arrays of a mode that hold them, one for each activity, copied when they change.
 */
#ifndef CRL_LOOP_OBSERVER_H
#define CRL_LOOP_OBSERVER_H

#include "Loop/item.h"

struct observer_member {
    struct mode *mode;
    struct observer_member *next;
};

struct __CFRunLoopObserver {
    struct object object;
    CFRunLoopObserverCallBack callout; /* C */
    void *context_info; /* I; NULL once invalid */
    struct item_context *context; /* C; NULL if the context has no functions */
    _Atomic(CFRunLoopRef) loop; /* written under L+I; not retained */
    CFRunLoopRef called_on; /* I; the loop in whose callout it is */
    CFRunLoopObserverRef called_outer; /* O of called_on */
    CFIndex order; /* C */
    uint32_t activities; /* C */
    bool repeats; /* C */
    _Atomic bool is_valid; /* written under I */
    bool releases_late; /* I; invalidated by another thread during the callout, which then releases the info */
    struct common_item *common; /* L+I */
    struct observer_member *members; /* L+I */
    struct observer_member first_member; /* free while its mode is NULL */
};

/* Those that watch one activity, in order. Never changed once published. */
struct observer_list {
    uint32_t uses; /* L; the mode's own and those of walks */
    uint32_t count; /* C */
    struct observer_list *next_dropped; /* of whoever dropped its last use */
    CFRunLoopObserverRef observers[]; /* C; each with a reference */
};

CFRunLoopObserverRef observer_create(CFAllocatorRef allocator, CFOptionFlags activities, bool repeats, CFIndex order, CFRunLoopObserverCallBack callout,
                                     const CFRunLoopObserverContext *context);
void observer_add(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
void observer_remove(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
bool observer_is_in(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
void observer_invalidate(CFRunLoopObserverRef observer);
void observers_join_common_mode(CFRunLoopRef loop, struct mode *mode);
void observers_remove_all(CFRunLoopRef loop);

/* Tells all that watch `activity` in `mode`. Enters and leaves with the lock held; drops it during callouts. */
void observers_notify(CFRunLoopRef loop, struct mode *mode, CFRunLoopActivity activity);

#endif
