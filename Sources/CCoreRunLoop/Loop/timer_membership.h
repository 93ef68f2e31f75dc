/* SPDX-License-Identifier: Apache-2.0 */
/* Which modes of which loop a timer is in, and how it ends. */
#ifndef CRL_LOOP_TIMER_MEMBERSHIP_H
#define CRL_LOOP_TIMER_MEMBERSHIP_H

#include "Support/link_names.h"

#include "Loop/timer.h"

/* These take the lock. */
void timer_add(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
void timer_remove(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
bool timer_is_in(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name);
/* Adds every common timer to a mode that has just become common. */
void timers_join_common_mode(CFRunLoopRef loop, struct mode *mode);
/* Lets go of every timer of a loop whose thread ends. */
void timers_remove_all(CFRunLoopRef loop);
void timer_invalidate(CFRunLoopTimerRef timer);

/* The members one after the other; NULL for `member` gives the first, and NULL is given after the last. H. */
static inline struct timer_member *timer_next_member(const struct __CFRunLoopTimer *timer, const struct timer_member *member)
{
    struct timer_member *first = (struct timer_member *)(uintptr_t)&timer->first_member;
    struct timer_further_member *further;

    if (!member && first->mode) {
        return first;
    }
    further = member && member != first ? container_of(member, struct timer_further_member, member)->next : timer_rare(timer)->further;
    return further ? &further->member : NULL;
}

struct timer_member *timer_member_in(CFRunLoopTimerRef timer, const struct mode *mode);
CFRunLoopTimerRef timer_of_node(const struct heap_node *node);

/* What is left to do once the locks are dropped. */
struct timer_farewell {
    bool releases_info;
    bool has_left_loop;
    struct item_context *context;
    void *info;
};

/*
 * Makes the timer invalid; its info is released by the caller, or by the callout that is under way on another thread. From then on it may
 * be in another home. H.
 */
struct timer_farewell timer_make_invalid(CFRunLoopTimerRef timer);

/* No lock is held. */
void timer_bid_farewell(CFRunLoopTimerRef timer, const struct timer_farewell *farewell);

#endif
