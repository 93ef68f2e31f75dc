/* SPDX-License-Identifier: Apache-2.0 */
/* Adds observers to modes and removes them. An observer is in one loop at most, in any number of its modes. */
#ifndef CRL_LOOP_OBSERVER_MEMBERSHIP_H
#define CRL_LOOP_OBSERVER_MEMBERSHIP_H

#include "Loop/link_names.h"

#include "Loop/Observer/observer.h"
#include "Loop/Observer/observer_list.h"

/* These functions take the loop's lock. `mode_name` may be kCFRunLoopCommonModes. */
EXCLUDES(the_loop_lock, the_item_lock) void observer_add(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
EXCLUDES(the_loop_lock, the_item_lock) void observer_remove(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
EXCLUDES(the_loop_lock, the_item_lock) bool observer_is_in(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name);
/* Adds every common observer to a mode that has just become common. */
EXCLUDES(the_loop_lock, the_item_lock) void observers_join_common_mode(CFRunLoopRef loop, struct mode *mode);
/* Removes every observer of a loop whose thread ends. */
EXCLUDES(the_loop_lock, the_item_lock) void observers_remove_all(CFRunLoopRef loop);

/*
 * Takes the observer out of all modes and of the common items, and so out of its loop. Returns true if it was a common item. The caller
 * then owns the reference for that, and releases it without locks, after it has freed the arrays in `dropped`.
 */
REQUIRES(the_loop_lock, the_item_lock) bool observer_leave_everything(CFRunLoopObserverRef observer, struct observer_list **dropped);

/* Takes the item's lock. */
REQUIRES(the_loop_lock) EXCLUDES(the_item_lock) bool observer_is_member(CFRunLoopObserverRef observer, const struct mode *mode);

#endif
