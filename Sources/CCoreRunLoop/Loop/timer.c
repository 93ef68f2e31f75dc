/* SPDX-License-Identifier: Apache-2.0 */
/* The mechanics of timers; states and guards are in timer.h. Timers never touch the kernel: the pass asks for the limit and passes it to
 * its wait. */
#include "Loop/timer.h"

#include <math.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/instant.h"
#include "Loop/timer_firing.h"
#include "Loop/thread_loop.h"
#include "Support/fault.h"

/* ---- construction ---- */

const struct timer_rare timer_nothing_rare;

/* To write to; NULL if there is no memory. I, or nobody else knows the timer yet. */
static struct timer_rare *rare_of(CFRunLoopTimerRef timer)
{
    struct timer_rare *rare = atomic_load_explicit(&timer->rare, memory_order_relaxed);

    if (!rare) {
        rare = calloc(1, sizeof *rare);
        atomic_store_explicit(&timer->rare, rare, memory_order_release);
    }
    return rare;
}

static void finalize(CFTypeRef object)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)object;

    struct timer_rare *rare = atomic_load_explicit(&timer->rare, memory_order_relaxed);

    if (!rare) {
        return;
    }
    /* Late it is still where a thread ended in the callout. */
    if (timer_has(timer, timer_is_valid) || timer_has(timer, timer_releases_late)) {
        item_context_release(rare->context, timer->context_info);
    }
    free(rare->context);
    free(rare);
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)object;
    CFStringRef context = item_context_describe(timer_rare(timer)->context, timer->context_info);
    CFStringRef text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFRunLoopTimer %p>{valid = %s, interval = %g, next fire date = %f, order = %ld, callout = %p, context = %@}"),
        object, timer_has(timer, timer_is_valid) ? "Yes" : "No", timer->interval, timer_date(timer), (long)timer_rare(timer)->order,
        (void *)(uintptr_t)timer->callout, context);

    if (context) {
        CFRelease(context);
    }
    return text;
}

const struct object_class timer_class = {
    .type_id = object_type_run_loop_timer,
    .name = "CFRunLoopTimer",
    .finalize = finalize,
    .copy_description = describe,
};

static CFTimeInterval checked_interval(CFTimeInterval interval)
{
    static atomic_flag logged_nan = ATOMIC_FLAG_INIT;
    static atomic_flag logged_tiny = ATOMIC_FLAG_INIT;

    if (isnan(interval)) {
        fault_log_once(&logged_nan, "CFRunLoopTimerCreate: the interval is not a number; the timer fires once");
        return 0.0;
    }
    if (interval <= 0.0) {
        return 0.0;
    }
    if (interval < 1e-9) {
        fault_log_once(&logged_tiny, "CFRunLoopTimerCreate: the interval is below a nanosecond; it becomes one nanosecond");
        return 1e-9;
    }
    return interval;
}

static void set_date_fields(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t fire_ns)
{
    timer->fire_ns = fire_ns;
    timer->date = date > INSTANT_LATEST_DATE ? INSTANT_LATEST_DATE : date;
}

/* Takes over the context and the order of a new timer. False if there is no memory, and then nothing is retained. */
static bool adopt(CFRunLoopTimerRef timer, const CFRunLoopTimerContext *context, CFIndex order)
{
    struct item_context functions = {NULL, NULL, NULL};
    struct timer_rare *rare;

    if (context) {
        functions = (struct item_context){context->retain, context->release, context->copyDescription};
    }
    if (order == 0 && !functions.retain && !functions.release && !functions.copy_description) {
        timer->context_info = context ? context->info : NULL;
        return true;
    }
    rare = rare_of(timer);
    if (!rare) {
        return false;
    }
    rare->order = order;
    return !context || item_context_adopt(&functions, context->info, &rare->context, &timer->context_info);
}

CFRunLoopTimerRef run_loop_timer_create(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFIndex order,
                                        CFRunLoopTimerCallBack callout, const CFRunLoopTimerContext *context)
{
    CFRunLoopTimerRef timer = object_create(allocator, &timer_class, sizeof *timer);

    if (!timer) {
        return NULL;
    }
    if (!adopt(timer, context, order)) {
        object_release(timer);
        return NULL;
    }
    timer_set(timer, timer_is_valid, true);
    timer->callout = callout;
    timer->interval = checked_interval(interval);
    set_date_fields(timer, date, instant_of_date(date));
    return timer;
}

void timer_keep_info(CFRunLoopTimerRef timer)
{
    timer_set(timer, timer_keeps_info, true);
}

/* ---- membership; L and I ---- */

struct timer_member *timer_member_in(CFRunLoopTimerRef timer, const struct mode *mode)
{
    for (struct timer_member *member = timer->members; member; member = member->next) {
        if (member->mode == mode) {
            return member;
        }
    }
    return NULL;
}

/* A sleeper that would wake later than this mode now allows is told. L. */
static void notice_earlier(CFRunLoopRef loop, const struct mode *mode)
{
    if (mode_is_waited_on(loop, mode) && timers_limit(mode) < loop->armed_ns) {
        mailbox_retime(loop->mailbox);
    }
}

static struct timer_member *member_create(CFRunLoopTimerRef timer)
{
    struct timer_member *member = timer->first_member.timer ? calloc(1, sizeof *member) : &timer->first_member;

    if (member) {
        heap_node_init(&member->node);
    }
    return member;
}

static void member_destroy(CFRunLoopTimerRef timer, struct timer_member *member)
{
    if (member == &timer->first_member) {
        member->timer = NULL;
    } else {
        free(member);
    }
}

static void enter_loop(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (!timer_loop(timer)) {
        object_retain(timer);
        atomic_store_explicit(&timer->loop, loop, memory_order_relaxed);
    }
}

/* True if the loop's reference is to be dropped, once the locks are. */
static bool leave_loop_if_unused(CFRunLoopTimerRef timer)
{
    if (timer->members || timer_rare(timer)->common || !timer_loop(timer)) {
        return false;
    }
    atomic_store_explicit(&timer->loop, NULL, memory_order_relaxed);
    return true;
}

static void attach(CFRunLoopRef loop, CFRunLoopTimerRef timer, struct mode *mode, struct timer_member *member)
{
    member->timer = timer;
    member->mode = mode;
    member->node.sequence = loop->next_sequence++; /* its place among equal dates is that of its coming to this mode (134) */
    member->next = timer->members;
    timer->members = member;
    mode->timer_count++;
    mode->tolerant_count += timer_rare(timer)->tolerance > 0;
    enter_loop(loop, timer);
    if (!timer->firing_on) {
        heap_push(&mode->timers, &member->node, timer->fire_ns);
        notice_earlier(loop, mode);
    }
}

static void detach(CFRunLoopTimerRef timer, struct timer_member *member)
{
    struct timer_member **place = &timer->members;

    while (*place != member) {
        place = &(*place)->next;
    }
    *place = member->next;
    if (heap_contains(&member->node)) {
        heap_remove(&member->mode->timers, &member->node);
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

static bool may_join(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    return !loop->is_dead && timer_has(timer, timer_is_valid) && (!timer_loop(timer) || timer_loop(timer) == loop);
}

static void join_mode(CFRunLoopRef loop, CFRunLoopTimerRef timer, struct mode *mode)
{
    struct lock *lock = item_lock(timer);
    bool no_memory = false;

    lock_take(lock);
    if (may_join(loop, timer) && !timer_member_in(timer, mode)) {
        struct timer_member *member = heap_reserve(&mode->timers, mode->timer_count + 1) ? member_create(timer) : NULL;

        no_memory = !member;
        if (member) {
            mode->is_declared = true;
            attach(loop, timer, mode, member);
        }
    }
    lock_drop(lock);
    if (no_memory) {
        log_no_memory();
    }
}

static void join_common(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    struct lock *lock = item_lock(timer);

    lock_take(lock);
    if (may_join(loop, timer) && !timer_rare(timer)->common) {
        struct timer_rare *rare = rare_of(timer);

        if (rare) {
            rare->common = common_item_add(&loop->common_timers, timer);
        }
        if (timer_rare(timer)->common) {
            enter_loop(loop, timer);
        }
    }
    lock_drop(lock);
}

void timer_add(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    loop_lock(loop);
    if (mode_name_means_common(loop, mode_name)) {
        join_common(loop, timer);
        for (struct mode *mode = loop->modes; mode; mode = mode->next) {
            if (mode->is_common) {
                join_mode(loop, timer, mode);
            }
        }
    } else {
        struct mode *mode = loop->is_dead ? NULL : mode_create_undeclared(loop, mode_name);

        if (mode) {
            join_mode(loop, timer, mode);
        }
    }
    loop_unlock(loop);
}

/* Takes the timer out of `mode`. L and I. */
static void leave_mode(CFRunLoopTimerRef timer, const struct mode *mode)
{
    struct timer_member *member = timer_member_in(timer, mode);

    if (member) {
        detach(timer, member);
    }
}

/* False if it is not among them. L and I. */
static bool leave_common_items(CFRunLoopTimerRef timer)
{
    struct timer_rare *rare = atomic_load_explicit(&timer->rare, memory_order_relaxed);

    if (!rare || !rare->common) {
        return false;
    }
    common_item_remove(rare->common);
    rare->common = NULL;
    return true;
}

static void leave_common(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (!leave_common_items(timer)) {
        return; /* 21 */
    }
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->is_common) {
            leave_mode(timer, mode);
        }
    }
}

void timer_remove(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    struct lock *lock = item_lock(timer);
    bool has_left = false;

    loop_lock(loop);
    lock_take(lock);
    if (timer_loop(timer) == loop) {
        if (mode_name_means_common(loop, mode_name)) {
            leave_common(loop, timer);
        } else {
            leave_mode(timer, mode_find(loop, mode_name));
        }
        has_left = leave_loop_if_unused(timer);
    }
    lock_drop(lock);
    loop_unlock(loop);
    if (has_left) {
        object_release(timer);
    }
}

bool timer_is_in(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    struct lock *lock = item_lock(timer);
    bool is_member = false;

    loop_lock(loop);
    lock_take(lock);
    if (timer_loop(timer) == loop) {
        is_member = mode_name_means_common(loop, mode_name) ? timer_rare(timer)->common != NULL
                                                            : timer_member_in(timer, mode_find(loop, mode_name)) != NULL;
    }
    lock_drop(lock);
    loop_unlock(loop);
    return is_member;
}

void timers_join_common_mode(CFRunLoopRef loop, struct mode *mode)
{
    loop_lock(loop);
    list_for_each(link, &loop->common_timers) {
        join_mode(loop, (CFRunLoopTimerRef)(uintptr_t)common_item_of(link)->item, mode);
    }
    loop_unlock(loop);
}

/* Takes it out of everything. True if the loop's reference is to be dropped. L and I. */
static bool leave_everything(CFRunLoopTimerRef timer)
{
    while (timer->members) {
        detach(timer, timer->members);
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
    for (CFRunLoopTimerRef timer = loop->firing; timer; timer = timer->firing_outer) {
        if (timer_loop(timer) == loop) {
            return timer; /* the thread ends in its callout */
        }
    }
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->timers.count > 0) {
            uint32_t last = mode->timers.count - 1; /* the cheapest to take out of a heap */

            return container_of(mode->timers.entries[last].node, struct timer_member, node)->timer;
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
            lock_take(item_lock(timer));
            has_left = leave_everything(timer);
            lock_drop(item_lock(timer));
        }
        loop_unlock(loop);
        if (!timer) {
            return;
        }
        if (has_left) {
            object_release(timer);
        }
    }
}

struct timer_farewell timer_make_invalid(CFRunLoopTimerRef timer)
{
    struct timer_farewell farewell = {.info = timer->context_info};

    timer_set(timer, timer_is_valid, false);
    farewell.has_left_loop = leave_everything(timer);
    /* On another thread the callout may still be about to retain the info: it releases it when it has ended. */
    timer_set(timer, timer_releases_late,
              timer->firing_on && (timer_has(timer, timer_keeps_info) || !thread_loop_is_current(timer->firing_on)));
    farewell.releases_info = !timer_has(timer, timer_releases_late);
    if (farewell.releases_info) {
        timer->context_info = NULL;
    }
    return farewell;
}

void timer_bid_farewell(CFRunLoopTimerRef timer, const struct timer_farewell *farewell)
{
    if (farewell->releases_info) {
        item_context_release(timer_rare(timer)->context, farewell->info);
    }
    if (farewell->has_left_loop) {
        object_release(timer);
    }
}

void timer_invalidate(CFRunLoopTimerRef timer)
{
    struct timer_farewell farewell = {.releases_info = false};
    CFRunLoopRef loop;

    object_retain(timer);
    loop = item_lock_with_loop(timer, &timer->loop);
    if (timer_has(timer, timer_is_valid)) {
        farewell = timer_make_invalid(timer);
    }
    item_unlock_with_loop(timer, loop);
    timer_bid_farewell(timer, &farewell);
    object_release(timer);
}

/* ---- dates ---- */

void timer_reschedule(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    uint64_t sequence = loop->next_sequence++;

    for (struct timer_member *member = timer->members; member; member = member->next) {
        bool was_in_heap = heap_contains(&member->node);

        member->node.sequence = sequence;
        if (was_in_heap) {
            heap_change_key(&member->mode->timers, &member->node, timer->fire_ns);
        } else {
            heap_push(&member->mode->timers, &member->node, timer->fire_ns);
        }
        notice_earlier(loop, member->mode);
    }
}

void timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t fire_ns)
{
    CFRunLoopRef loop = item_lock_with_loop(timer, &timer->loop);

    if (timer_has(timer, timer_is_valid)) {
        set_date_fields(timer, date, fire_ns);
        if (timer->firing_on) {
            timer_set(timer, timer_is_redated, true); /* takes effect when the callout has returned (126) */
        } else if (loop) {
            timer_reschedule(loop, timer);
        }
    }
    item_unlock_with_loop(timer, loop);
}

CFAbsoluteTime timer_date(CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = item_lock_with_loop(timer, &timer->loop);
    CFAbsoluteTime date = timer_has(timer, timer_is_valid) ? timer->date : 0.0;

    item_unlock_with_loop(timer, loop);
    return date;
}

/* Counts a timer that is in modes among the tolerant ones, or no longer. L and I. */
static void count_tolerance(CFRunLoopTimerRef timer, uint32_t change)
{
    for (struct timer_member *member = timer->members; member; member = member->next) {
        member->mode->tolerant_count += change;
    }
}

void timer_set_tolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance)
{
    CFRunLoopRef loop;
    struct timer_rare *rare;
    double limit = timer->interval > 0 ? timer->interval / 2 : INSTANT_LONGEST_SECONDS;
    double clamped = tolerance > 0 ? fmin(tolerance, limit) : 0.0; /* NaN too */

    loop = item_lock_with_loop(timer, &timer->loop);
    rare = clamped == timer_rare(timer)->tolerance ? NULL : rare_of(timer); /* without memory it stays exact */
    if (rare) {
        count_tolerance(timer, (uint32_t)(clamped > 0) - (uint32_t)(rare->tolerance > 0));
        rare->tolerance = clamped;
        for (struct timer_member *member = timer->members; member; member = member->next) {
            notice_earlier(loop, member->mode);
        }
    }
    item_unlock_with_loop(timer, loop);
}
