/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds timers to modes and removes them, and invalidates them. Any thread may call these. A timer that is in anything of a loop has that
 * loop in `loop`, is referenced once by it, and has the loop's lock for its home lock.
 */
#include "Loop/Timer/timer_membership.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Core/thread_loop.h"
#include "Support/fault.h"

/* ---- the members of one timer; its home lock is the loop's lock ---- */

static struct timer_member *further_member_create(CFRunLoopTimerRef timer)
{
    struct timer_extra *extra = timer_make_extra(timer);
    struct timer_further_member *further = extra ? calloc(1, sizeof *further) : NULL;

    if (!further) {
        return NULL;
    }
    heap_node_init(&further->member.node);
    further->member.node.tag = timer_member_is_further;
    further->timer = timer;
    further->next = extra->further;
    extra->further = further;
    return &further->member;
}

/* Returns a free member, or NULL if there is no memory. The first mode's member is inside the timer and needs no memory. */
static struct timer_member *member_create(CFRunLoopTimerRef timer)
{
    return timer->first_member.mode ? further_member_create(timer) : &timer->first_member;
}

/* Not inlined, to keep the path of timers that are in one mode short. */
static __attribute__((noinline)) void further_member_destroy(CFRunLoopTimerRef timer, struct timer_further_member *further)
{
    struct timer_further_member **place = &timer->own.extra->further;

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

/*
 * Frees a timer that is in nothing of its loop any more. Returns true if the caller must drop the loop's reference once the lock is
 * dropped. The lock does not guard the timer any more then.
 */
static bool leave_loop_if_unused(CFRunLoopTimerRef timer)
{
    if (timer_next_member(timer, NULL) || timer_extra(timer)->common || !timer_loop(timer)) {
        return false;
    }
    timer_disclaim(timer);
    return true;
}

REQUIRES(the_loop_lock)
static void member_attach(CFRunLoopRef loop, CFRunLoopTimerRef timer, struct mode *mode, struct timer_member *member)
{
    invariant_held(&loop->lock);
    invariant(timer_loop(timer) == loop && timer_has(timer, timer_is_valid));
    invariant(!member->mode && !heap_contains(&member->node) && !timer_key_is_early(&member->node));
    member->mode = mode;
    mode->timer_count++;
    mode->tolerant_count += timer_extra(timer)->tolerance > 0;
    loop->has_wall_timers |= timer_has(timer, timer_follows_wall);
    if (timer_has(timer, timer_is_firing)) {
        heap_push(&mode->timers, &member->node,
                  kernel_never); /* so that timers_remove_all finds the timer if this loop ends before the callout on another loop */
        return;
    }
    member->node.sequence = loop->next_sequence++; /* timers of equal dates fire in the order in which they joined the mode (rule 134) */
    heap_push(&mode->timers, &member->node, timer->fire_ns);
    timer_keep_to_wall(loop, timer);
    timers_notice_earlier(loop, mode);
}

REQUIRES(the_loop_lock) static void member_detach(CFRunLoopTimerRef timer, struct timer_member *member)
{
    invariant(member->mode->timer_count > 0 && member->mode->timer_count >= member->mode->tolerant_count);
    /* SCHEDULED means in every heap. A timer that ends with its callout is invalid, and in no heap. */
    invariant(heap_contains(&member->node) || timer_has(timer, timer_is_firing) || !timer_has(timer, timer_is_valid));
    if (heap_contains(&member->node)) {
        timer_member_unqueue(member);
    }
    member->mode->timer_count--;
    member->mode->tolerant_count -= timer_extra(timer)->tolerance > 0;
    member_destroy(timer, member);
}

static void log_no_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFRunLoopAddTimer: there is no memory; the timer was not added");
}

/* ---- adding and removing ---- */

/* Claims a timer that another thread has claimed under the item lock, by waiting for that lock. Not inlined: this is rare. */
static __attribute__((noinline)) bool claim_later(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    struct lock *lock = item_lock(timer);
    bool is_ours;

    lock_take(lock);
    is_ours = timer_claim(timer, loop);
    lock_drop(lock);
    return is_ours;
}

/* The relation of a timer to the loop that it is to join. */
enum joining {
    joining_refused, /* another loop has the timer, and a timer is in one loop at most (rule 115) */
    joining_again, /* the timer is in this loop already */
    joining_first, /* this call gave the timer to the loop; it is in nothing of the loop yet */
};

/* Gives the timer to the loop. Unless the result is joining_refused, the loop's lock, which the caller holds, is the home lock now. */
static enum joining begin_joining(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (timer_loop(timer) == loop) {
        return joining_again;
    }
    return timer_claim(timer, loop) || claim_later(loop, timer) ? joining_first : joining_refused;
}

/* Retains a timer that has joined the loop by this call, or frees it again if it could not be added to anything. */
static void end_joining(CFRunLoopTimerRef timer, enum joining joining, bool has_joined)
{
    if (joining != joining_first) {
        return;
    }
    if (has_joined) {
        object_retain(timer); /* one reference for the loop, however many modes the timer is in */
    } else {
        timer_disclaim(timer);
    }
}

REQUIRES(the_loop_lock) static void join_mode(CFRunLoopRef loop, CFRunLoopTimerRef timer, struct mode *mode)
{
    enum joining joining = begin_joining(loop, timer);
    struct timer_member *member = NULL;
    bool no_memory = false;

    invariant_held(&loop->lock);
    /* Room for all timers of the mode is reserved here, so that pushing a timer back after its callout cannot fail. */
    if (joining != joining_refused && timer_has(timer, timer_is_valid) && (joining == joining_first || !timer_member_in(timer, mode))) {
        member = heap_reserve(&mode->timers, mode->timer_count + 1) ? member_create(timer) : NULL;
        no_memory = !member;
    }
    if (member) {
        mode->is_declared = true;
        invariant(mode->timers.count <= mode->timer_count);
        member_attach(loop, timer, mode, member);
    }
    end_joining(timer, joining, member != NULL);
    if (no_memory) {
        log_no_memory();
    }
}

REQUIRES(the_loop_lock) static void join_common(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    enum joining joining = begin_joining(loop, timer);

    if (joining == joining_refused) {
        return;
    }
    if (timer_has(timer, timer_is_valid) && !timer_extra(timer)->common) {
        struct timer_extra *extra = timer_make_extra(timer);

        if (extra) {
            extra->common = common_item_add(&loop->common_timers, timer);
        }
    }
    end_joining(timer, joining, timer_extra(timer)->common != NULL);
}

REQUIRES(the_loop_lock) static void join_common_modes(CFRunLoopRef loop, CFRunLoopTimerRef timer)
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
        if (trace_is_on()) {
            mode_trace_joining(mode, trace_timer, (void (*)(void))timer->callout);
        }
    }
    loop_unlock(loop);
}

/* Takes the timer out of `mode`, if it is in there. The home lock is held. */
REQUIRES(the_loop_lock) static void leave_mode(CFRunLoopTimerRef timer, const struct mode *mode)
{
    struct timer_member *member = timer_member_in(timer, mode);

    if (member) {
        member_detach(timer, member);
    }
}

/* Takes the timer out of its loop's common items. Returns false if it was not among them. The home lock is held. */
REQUIRES(the_loop_lock) static bool leave_common_items(CFRunLoopTimerRef timer)
{
    if (!timer_extra(timer)->common) {
        return false;
    }
    common_item_remove(timer->own.extra->common);
    timer->own.extra->common = NULL;
    return true;
}

REQUIRES(the_loop_lock) static void leave_common(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (!leave_common_items(timer)) {
        return; /* a timer that is no common item stays in the common modes it was added to by name (rule 21) */
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
        is_member = mode_name_means_common(loop, mode_name) ? timer_extra(timer)->common != NULL
                                                            : timer_member_in(timer, mode_find(loop, mode_name)) != NULL;
    }
    loop_unlock(loop);
    return is_member;
}

void timers_join_common_mode(CFRunLoopRef loop, struct mode *mode)
{
    loop_lock(loop);
    list_for_each(link, &loop->common_timers) { /* the list of a loop that has ended is empty */
        join_mode(loop, (CFRunLoopTimerRef)(uintptr_t)common_item_of(link)->item, mode);
    }
    loop_unlock(loop);
}

/*
 * Takes the timer out of all modes and out of the common items. Returns true if the caller must drop the loop's reference; the lock does
 * not guard the timer any more then. Not checked for guards: the home lock of a timer with members is its loop's lock.
 */
NOT_CHECKED static bool leave_everything(CFRunLoopTimerRef timer)
{
    struct timer_member *member;

    while ((member = timer_next_member(timer, NULL)) != NULL) {
        member_detach(timer, member);
    }
    (void)leave_common_items(timer);
    return leave_loop_if_unused(timer);
}

/* Returns some timer of the loop, or NULL if none is left. */
REQUIRES(the_loop_lock) static CFRunLoopTimerRef any_timer(CFRunLoopRef loop)
{
    if (!list_is_empty(&loop->common_timers)) {
        return (CFRunLoopTimerRef)(uintptr_t)common_item_of(loop->common_timers.next)->item;
    }
    for (CFRunLoopTimerRef timer = loop->firing; timer; timer = timer_outer(timer)) {
        if (timer_loop(timer) == loop) {
            return timer; /* the thread ends inside the callout of this timer */
        }
    }
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->timers.count > 0) {
            return timer_of_node(mode->timers.block->entries[mode->timers.count - 1].node); /* the cheapest to take out of a heap */
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
    /*
     * A thread that read this loop from a timer under the item lock retains the loop before it drops that lock. After this wait all such
     * threads have done so, and no thread can find the loop in a timer any more.
     */
    item_locks_pass();
}

/* ---- the end ---- */

/* Returns true if the calling thread is in the timer's callout. Only the thread itself changes its list of timers in callout. */
static bool is_called_here(CFRunLoopTimerRef timer)
{
    CFRunLoopRef own = thread_loop_if_any();
    CFRunLoopTimerRef called = own ? own->firing : NULL;

    while (called && called != timer) {
        called = timer_outer(called);
    }
    return called != NULL;
}

struct timer_teardown timer_make_invalid(CFRunLoopTimerRef timer)
{
    void **info = timer_info(timer);
    struct timer_teardown teardown = {.context = timer_extra(timer)->context, .info = *info};
    bool releases_late = timer_has(timer, timer_is_firing) && (timer_has(timer, timer_keeps_info) || !is_called_here(timer));

    invariant(timer_has(timer, timer_is_valid)); /* invalid for good: the info is released once */
    timer_set(timer, timer_is_valid, false);
    /* The callout on another thread may be about to retain the info. So the end of that callout releases it. */
    timer_set(timer, timer_releases_late, releases_late);
    teardown.releases_info = !releases_late;
    if (teardown.releases_info) {
        *info = NULL;
    }
    teardown.has_left_loop = leave_everything(timer);
    return teardown;
}

void timer_finish_teardown(CFRunLoopTimerRef timer, const struct timer_teardown *teardown)
{
    if (teardown->releases_info) {
        context_release(timer, teardown->context, teardown->info);
    }
    if (teardown->has_left_loop) {
        object_release(timer);
    }
}

void timer_invalidate(CFRunLoopTimerRef timer)
{
    struct timer_teardown teardown = {.releases_info = false};
    CFRunLoopRef home = timer_lock_home(timer);

    if (timer_has(timer, timer_is_valid)) {
        teardown = timer_make_invalid(timer);
    }
    timer_unlock_home(timer, home);
    timer_finish_teardown(timer, &teardown); /* the loop's reference or the caller's keeps the timer alive until here */
}
