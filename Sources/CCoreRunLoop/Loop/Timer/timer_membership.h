/* SPDX-License-Identifier: Apache-2.0 */
/* Adds timers to modes and removes them, and invalidates them. A timer is in one loop at most, in any number of its modes. */
#ifndef CRL_LOOP_TIMER_MEMBERSHIP_H
#define CRL_LOOP_TIMER_MEMBERSHIP_H

#include "Loop/link_names.h"

#include "Loop/Timer/timer_heap.h"

/* These functions take the loop's lock. `mode_name` may be kCFRunLoopCommonModes. */
void timer_add(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
void timer_remove(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
bool timer_is_in(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
/* Adds every common timer to a mode that has just become common. */
void timers_join_common_mode(CFRunLoopRef loop, struct mode *mode);
/* Removes every timer of a loop whose thread ends. */
void timers_remove_all(CFRunLoopRef loop);
void timer_invalidate(CFRunLoopTimerRef timer);

/* The rest of an invalidation, for when no lock is held. */
struct timer_teardown {
    bool releases_info;
    bool has_left_loop;
    struct context *context;
    void *info;
};

/*
 * Makes the timer invalid and takes it out of its loop, so its home lock may be another one afterwards. The caller passes the result to
 * timer_finish_teardown. If a callout is under way on another thread, the end of that callout releases the info. The home lock is held.
 */
struct timer_teardown timer_make_invalid(CFRunLoopTimerRef timer);

/* Releases the info and the loop's reference, as `teardown` says. No lock is held. */
void timer_finish_teardown(CFRunLoopTimerRef timer, const struct timer_teardown *teardown);

#endif
