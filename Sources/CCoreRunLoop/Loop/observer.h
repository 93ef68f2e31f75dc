/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observers, and the sorted arrays of a mode that hold them, one for each activity, copied when they change.
 */
#ifndef CRL_LOOP_OBSERVER_H
#define CRL_LOOP_OBSERVER_H

#include "Support/link_names.h"

#include "Loop/item.h"

struct observer_member {
    struct mode *mode;
    struct observer_member *next;
};

/*
 * valid -> (not valid)       invalidation
 * called: a callout is under way; another thread that invalidates meanwhile leaves the release of the info to its end
 */
enum observer_state { observer_valid = 1, observer_called = 2, observer_releases_late = 4 };

struct __CFRunLoopObserver {
    struct object object;
    CFRunLoopObserverCallBack callout; /* C */
    _Atomic(void *) context_info; /* NULL once released; written by whoever releases it, which the state decides; others may ask for it */
    struct item_context *context; /* C; NULL if the context has no functions */
    _Atomic(CFRunLoopRef) loop; /* written under L+I; not retained */
    _Atomic(CFRunLoopRef) called_on; /* the loop in whose callout it is; written by whoever set observer_called */
    CFIndex order; /* C */
    uint32_t activities; /* C */
    bool repeats; /* C */
    bool keeps_info; /* C; until its callout has returned, also when the callout itself invalidates it */
    _Atomic uint32_t state; /* observer_valid, observer_called, observer_releases_late */
    struct common_item *common; /* L+I */
    struct observer_member *members; /* L+I */
    struct observer_member first_member; /* free while its mode is NULL */
};

extern const struct object_class observer_class;

static inline void *observer_info(CFRunLoopObserverRef observer)
{
    return atomic_load_explicit(&observer->context_info, memory_order_relaxed);
}

CFRunLoopObserverRef observer_create(CFAllocatorRef allocator, CFOptionFlags activities, bool repeats, CFIndex order,
                                     CFRunLoopObserverCallBack callout, const CFRunLoopObserverContext *context);
/* For its maker: a context that has no means to keep its info alive during the callout is released after it (153 is about other ones). */
void observer_keep_info(CFRunLoopObserverRef observer);
void observer_add(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
void observer_remove(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
bool observer_is_in(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
void observer_invalidate(CFRunLoopObserverRef observer);
void observers_join_common_mode(CFRunLoopRef loop, struct mode *mode);
void observers_remove_all(CFRunLoopRef loop);
/* In the child of a fork, of a thread that is not there: what it was calling is in callout no more. No context is told. */
void observers_forget_callouts(CFRunLoopRef loop);
/* Of a run that was left: its callout ends as if it had returned. Without locks, on its thread. */
void observer_end_left_callout(const void *observer);

void observers_call(CFRunLoopRef loop, struct activation *run, CFRunLoopActivity activity);

/* Tells all that watch `activity` in the run's mode. Enters and leaves with the lock held; drops it during callouts. */
static inline void observers_notify(CFRunLoopRef loop, struct activation *run, CFRunLoopActivity activity)
{
    if (atomic_load_explicit(&run->mode->observed, memory_order_relaxed) & activity) {
        observers_call(loop, run, activity);
    }
}

#endif
