/* SPDX-License-Identifier: Apache-2.0 */
#include "Loop/timer_membership.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/thread_loop.h"
#include "Loop/timer_firing.h"
#include "Support/fault.h"

/* ---- the members of one timer; H is the loop's lock ---- */

struct timer_member *timer_member_in(CFRunLoopTimerRef timer, const struct mode *mode)
{
    struct timer_member *member = NULL;

    do {
        member = timer_next_member(timer, member);
    } while (member && member->mode != mode);
    return member;
}

CFRunLoopTimerRef timer_of_node(const struct heap_node *node)
{
    const struct timer_member *member = container_of((uintptr_t)node, struct timer_member, node);

    if (!(node->tag & (uint32_t)timer_member_is_further)) {
        return container_of((uintptr_t)member, struct __CFRunLoopTimer, first_member);
    }
    return container_of((uintptr_t)member, struct timer_further_member, member)->timer;
}

static struct timer_member *further_member_create(CFRunLoopTimerRef timer)
{
    struct timer_rare *rare = timer_rare_made(timer);
    struct timer_further_member *further = rare ? calloc(1, sizeof *further) : NULL;

    if (!further) {
        return NULL;
    }
    heap_node_init(&further->member.node);
    further->member.node.tag = timer_member_is_further;
    further->timer = timer;
    further->next = rare->further;
    rare->further = further;
    return &further->member;
}

/* In no mode yet. */
static struct timer_member *member_create(CFRunLoopTimerRef timer)
{
    return timer->first_member.mode ? further_member_create(timer) : &timer->first_member;
}

/* Out of the way of those that are in one mode only. */
static __attribute__((noinline)) void further_member_destroy(CFRunLoopTimerRef timer, struct timer_further_member *further)
{
    struct timer_further_member **place = &timer->own.rare->further;

    while (*place != further) {
        place = &(*place)->next;
    }
    *place = further->next;
    free(further);
}

static void member_destroy(CFRunLoopTimerRef timer, struct timer_member *member)
{
    if (member == &timer->first_member) {
        member->mode = NULL;
    } else {
        further_member_destroy(timer, container_of(member, struct timer_further_member, member));
    }
}

/* True if the loop's reference is to be dropped, once the lock is; then the timer is out of this lock's reach. */
static bool leave_loop_if_unused(CFRunLoopTimerRef timer)
{
    if (timer_next_member(timer, NULL) || timer_rare(timer)->common || !timer_loop(timer)) {
        return false;
    }
    timer_disclaim(timer);
    return true;
}

static void attach(CFRunLoopRef loop, CFRunLoopTimerRef timer, struct mode *mode, struct timer_member *member)
{
    member->mode = mode;
    mode->timer_count++;
    mode->tolerant_count += timer_rare(timer)->tolerance > 0;
    if (timer_has(timer, timer_is_firing)) {
        heap_push(&mode->timers, &member->node, kernel_never); /* where a loop finds it that ends before another loop's callout does */
        return;
    }
    member->node.sequence = loop->next_sequence++; /* its place among equal dates is that of its coming to this mode (134) */
    heap_push(&mode->timers, &member->node, timer->fire_ns);
    timers_notice_earlier(loop, mode);
}

static void detach(CFRunLoopTimerRef timer, struct timer_member *member)
{
    if (heap_contains(&member->node)) {
        timer_member_unqueue(member);
    }
    member->mode->timer_count--;
    member->mode->tolerant_count -= timer_rare(timer)->tolerance > 0;
    member_destroy(timer, member);
}

static void log_no_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFRunLoopAddTimer: there is no memory; the timer was not added");
}

/* ---- adding and removing ---- */

/* Waits for whoever works on a timer that is in no loop. Out of the way of those that nobody works on. */
static __attribute__((noinline)) bool claim_later(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    struct lock *lock = item_lock(timer);
    bool is_ours;

    lock_take(lock);
    is_ours = timer_claim(timer, loop);
    lock_drop(lock);
    return is_ours;
}

/* How a timer came to be under the lock of the loop that it is to join. */
enum joining {
    joining_refused, /* it is another loop's (115) */
    joining_again, /* it is this loop's already */
    joining_first, /* it is this loop's since now, and in nothing of it yet */
};

/* With the loop's lock, which is H then, unless it is refused. */
static enum joining begin_joining(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (timer_loop(timer) == loop) {
        return joining_again;
    }
    return timer_claim(timer, loop) || claim_later(loop, timer) ? joining_first : joining_refused;
}

/* The loop keeps a timer that is in anything of it. */
static void end_joining(CFRunLoopTimerRef timer, enum joining joining, bool has_joined)
{
    if (joining != joining_first) {
        return;
    }
    if (has_joined) {
        object_retain(timer);
    } else {
        timer_disclaim(timer);
    }
}

static void join_mode(CFRunLoopRef loop, CFRunLoopTimerRef timer, struct mode *mode)
{
    enum joining joining = begin_joining(loop, timer);
    struct timer_member *member = NULL;
    bool no_memory = false;

    if (joining != joining_refused && timer_has(timer, timer_is_valid) && (joining == joining_first || !timer_member_in(timer, mode))) {
        member = heap_reserve(&mode->timers, mode->timer_count + 1) ? member_create(timer) : NULL;
        no_memory = !member;
    }
    if (member) {
        mode->is_declared = true;
        attach(loop, timer, mode, member);
    }
    end_joining(timer, joining, member != NULL);
    if (no_memory) {
        log_no_memory();
    }
}

static void join_common(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    enum joining joining = begin_joining(loop, timer);

    if (joining == joining_refused) {
        return;
    }
    if (timer_has(timer, timer_is_valid) && !timer_rare(timer)->common) {
        struct timer_rare *rare = timer_rare_made(timer);

        if (rare) {
            rare->common = common_item_add(&loop->common_timers, timer);
        }
    }
    end_joining(timer, joining, timer_rare(timer)->common != NULL);
}

static void join_common_modes(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    join_common(loop, timer);
    for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
        join_mode(loop, timer, mode);
    }
}

void timer_add(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    struct mode *mode = NULL;

    loop_lock(loop);
    if (loop_is_open(loop) && mode_resolve(loop, mode_name, &mode)) {
        join_common_modes(loop, timer);
    }
    if (mode) {
        join_mode(loop, timer, mode);
    }
    loop_unlock(loop);
}

/* Takes the timer out of `mode`. H. */
static void leave_mode(CFRunLoopTimerRef timer, const struct mode *mode)
{
    struct timer_member *member = timer_member_in(timer, mode);

    if (member) {
        detach(timer, member);
    }
}

/* False if it is not among them. H. */
static bool leave_common_items(CFRunLoopTimerRef timer)
{
    if (!timer_rare(timer)->common) {
        return false;
    }
    common_item_remove(timer->own.rare->common);
    timer->own.rare->common = NULL;
    return true;
}

static void leave_common(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (!leave_common_items(timer)) {
        return; /* 21 */
    }
    for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
        leave_mode(timer, mode);
    }
}

void timer_remove(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    bool has_left = false;

    loop_lock(loop);
    if (timer_loop(timer) == loop) {
        if (mode_name_means_common(loop, mode_name)) {
            leave_common(loop, timer);
        } else {
            leave_mode(timer, mode_find(loop, mode_name));
        }
        has_left = leave_loop_if_unused(timer);
    }
    loop_unlock(loop);
    if (has_left) {
        object_release(timer);
    }
}

bool timer_is_in(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    bool is_member = false;

    loop_lock(loop);
    if (timer_loop(timer) == loop) {
        is_member = mode_name_means_common(loop, mode_name) ? timer_rare(timer)->common != NULL
                                                            : timer_member_in(timer, mode_find(loop, mode_name)) != NULL;
    }
    loop_unlock(loop);
    return is_member;
}

void timers_join_common_mode(CFRunLoopRef loop, struct mode *mode)
{
    loop_lock(loop);
    list_for_each(link, &loop->common_timers) { /* none in a loop that has ended */
        join_mode(loop, (CFRunLoopTimerRef)(uintptr_t)common_item_of(link)->item, mode);
    }
    loop_unlock(loop);
}

/* Takes it out of everything. True if the loop's reference is to be dropped; then it is out of H's reach. H. */
static bool leave_everything(CFRunLoopTimerRef timer)
{
    struct timer_member *member;

    while ((member = timer_next_member(timer, NULL)) != NULL) {
        detach(timer, member);
    }
    (void)leave_common_items(timer);
    return leave_loop_if_unused(timer);
}

/* Any timer of the loop, L. */
static CFRunLoopTimerRef any_timer(CFRunLoopRef loop)
{
    if (!list_is_empty(&loop->common_timers)) {
        return (CFRunLoopTimerRef)(uintptr_t)common_item_of(loop->common_timers.next)->item;
    }
    for (CFRunLoopTimerRef timer = loop->firing; timer; timer = timer_outer(timer)) {
        if (timer_loop(timer) == loop) {
            return timer; /* the thread ends in its callout */
        }
    }
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->timers.count > 0) {
            return timer_of_node(mode->timers.entries[mode->timers.count - 1].node); /* the cheapest to take out of a heap */
        }
    }
    return NULL;
}

void timers_remove_all(CFRunLoopRef loop)
{
    for (;;) {
        CFRunLoopTimerRef timer;
        bool has_left = false;

        loop_lock(loop);
        timer = any_timer(loop);
        if (timer) {
            has_left = leave_everything(timer);
        }
        loop_unlock(loop);
        if (!timer) {
            break;
        }
        if (has_left) {
            object_release(timer);
        }
    }
    /* Who has found this loop in a timer, under the timer's lock, has retained it once that is free; nobody finds it there any more. */
    item_locks_pass();
}

/* ---- the end ---- */

/* This thread calls it just now. Its callouts are changed by the thread only. */
static bool is_called_here(CFRunLoopTimerRef timer)
{
    CFRunLoopRef own = thread_loop_if_any();
    CFRunLoopTimerRef called = own ? own->firing : NULL;

    while (called && called != timer) {
        called = timer_outer(called);
    }
    return called != NULL;
}

struct timer_farewell timer_make_invalid(CFRunLoopTimerRef timer)
{
    void **info = timer_info(timer);
    struct timer_farewell farewell = {.context = timer_rare(timer)->context, .info = *info};
    bool releases_late = timer_has(timer, timer_is_firing) && (timer_has(timer, timer_keeps_info) || !is_called_here(timer));

    timer_set(timer, timer_is_valid, false);
    /* On another thread the callout may still be about to retain the info: it releases it when it has ended. */
    timer_set(timer, timer_releases_late, releases_late);
    farewell.releases_info = !releases_late;
    if (farewell.releases_info) {
        *info = NULL;
    }
    farewell.has_left_loop = leave_everything(timer);
    return farewell;
}

void timer_bid_farewell(CFRunLoopTimerRef timer, const struct timer_farewell *farewell)
{
    if (farewell->releases_info) {
        item_context_release(timer, farewell->context, farewell->info);
    }
    if (farewell->has_left_loop) {
        object_release(timer);
    }
}

void timer_invalidate(CFRunLoopTimerRef timer)
{
    struct timer_farewell farewell = {.releases_info = false};
    CFRunLoopRef home = timer_lock_home(timer);

    if (timer_has(timer, timer_is_valid)) {
        farewell = timer_make_invalid(timer);
    }
    timer_unlock_home(timer, home);
    timer_bid_farewell(timer, &farewell); /* with the loop's reference, or else with the caller's */
}
